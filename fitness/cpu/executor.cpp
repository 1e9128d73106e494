#include "fitness/cpu/executor.hpp"

#include <algorithm>

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include "fitness/cpu/device.hpp"
#include "fitness/entry.hpp"

namespace evo::cpu {
namespace {

/// Far above what a matrix product of such operands needs (about their elements to the power of
/// 1.5), and yet over in seconds.
std::int64_t access_budget(std::size_t elements) {
  return 20'000'000 + 2000 * static_cast<std::int64_t>(elements);
}

/// The loaded library that holds an address.
struct Image {
  std::uintptr_t address = 0;
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
};

int find_image(dl_phdr_info* info, std::size_t, void* data) {
  Image& image = *static_cast<Image*>(data);
  std::size_t bytes = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD) {
      bytes = std::max<std::size_t>(bytes, segment.p_vaddr + segment.p_memsz);
    }
  }
  if (image.address - info->dlpi_addr >= bytes) {
    return 0;
  }
  image.begin = info->dlpi_addr;
  image.bytes = bytes;
  return 1;
}

std::size_t bytes_of(const Tensor& tensor) {
  return tensor.values.size() * sizeof(float);
}

void check_written(const Array& output, int granule) {
  const auto shadow = output.shadow();
  const auto unwritten = std::ranges::find_if_not(shadow, &Cell::written);
  if (unwritten != shadow.end()) {
    const auto byte = (unwritten - shadow.begin()) * granule;
    throw Fault{Verdict::UnwrittenOutput,
                fmt::format("{}[{}] is never written", output.name,
                            byte / static_cast<std::ptrdiff_t>(sizeof(float)))};
  }
}

} // namespace

struct Executor::Library {
  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle != nullptr) {
      dlclose(handle);
    }
  }

  void call(Device& device, const std::vector<Tensor>& inputs, Tensor& output,
            const std::vector<int>& dims, Extent extent) const;

  void* handle = nullptr;
  const evo_gpu::Module* module = nullptr;
  std::string name; // of the entry
  void* entry = nullptr;
  void* workspace_size = nullptr; // nullptr: it needs no workspace
  Image image;
  std::string error; // not empty: it cannot run
};

void Executor::Library::call(Device& device, const std::vector<Tensor>& inputs, Tensor& output,
                             const std::vector<int>& dims, Extent extent) const {
  std::vector<const float*> pointers;
  std::size_t elements = output.values.size();
  for (const Tensor& input : inputs) {
    Array& array = device.allocate(input.name, bytes_of(input));
    std::ranges::copy(input.values, array.as<float>().begin());
    array.read_only = true;
    pointers.push_back(array.as<float>().data());
    elements += input.values.size();
  }
  Array& result = device.allocate(output.name, bytes_of(output));
  const bool no_workspace = workspace_size == nullptr || extent == Extent::Nothing;
  Array& workspace =
      device.allocate("workspace", no_workspace ? 0 : call_workspace(workspace_size, dims));
  device.set_budget(access_budget(elements));

  const int status = call_entry(entry, pointers, result.as<float>().data(), dims,
                                workspace.as<std::byte>().data(), nullptr);
  if (status != 0) {
    throw Fault{Verdict::LaunchError, fmt::format("{} returns error {}", name, status)};
  }
  if (extent != Extent::Grid) {
    return;
  }
  check_written(result, module->granule);
  std::ranges::copy(result.as<float>(), output.values.begin());
}

Executor::Executor(const std::filesystem::path& library, const std::string& entry)
    : library_(std::make_unique<Library>()) {
  Library& loaded = *library_;
  loaded.handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded.handle == nullptr) {
    loaded.error = fmt::format("the lowered kernel cannot be loaded: {}", dlerror());
    return;
  }
  const auto symbol = [&](const std::string& name) { return dlsym(loaded.handle, name.c_str()); };
  loaded.module = static_cast<const evo_gpu::Module*>(symbol("evo_gpu_module"));
  loaded.name = entry;
  loaded.entry = symbol(entry);
  loaded.workspace_size = symbol(entry + "_workspace");
  if (loaded.module == nullptr) {
    loaded.error = fmt::format("{} is not a lowered kernel", library.string());
  } else if (loaded.entry == nullptr) {
    loaded.error = fmt::format("the kernel file defines no extern \"C\" function '{}'", entry);
  } else {
    loaded.image.address = reinterpret_cast<std::uintptr_t>(loaded.module);
    dl_iterate_phdr(find_image, &loaded.image);
  }
}

Executor::~Executor() = default;

Run Executor::run(const std::vector<Tensor>& inputs, Tensor& output, const std::vector<int>& dims,
                  const RunOptions& options) {
  if (!library_->error.empty()) {
    return {Verdict::NoBuild, library_->error, {}};
  }
  Device device(*library_->module, options);
  device.add_constants(library_->image.begin, library_->image.bytes);
  Run run;
  try {
    library_->call(device, inputs, output, dims, options.extent);
  } catch (const Fault& fault) {
    run.verdict = fault.verdict;
    run.detail = fault.detail;
  }
  run.counts = device.counts();
  return run;
}

} // namespace evo::cpu
