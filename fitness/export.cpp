#include "fitness/export.hpp"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "fitness/fill_template.hpp"

namespace evo {

extern const std::string_view export_template; // fitness/export_template.cu.in

namespace {

/// What the template has between two placeholders.
std::string_view between(std::string_view first, std::string_view second) {
  const std::size_t begin = export_template.find(fmt::format("@{}@", first)) + first.size() + 2;
  return export_template.substr(begin, export_template.find(fmt::format("@{}@", second)) - begin);
}

template <typename Items, typename Format>
std::string join(const Items& items, std::string_view separator, Format format) {
  std::string text;
  for (const auto& item : items) {
    text += (text.empty() ? "" : std::string(separator)) + format(item);
  }
  return text;
}

/// "W.size(0)": the first input axis that carries `dim`, else its fixed value.
std::string deduced(const Problem& problem, const std::string& dim) {
  for (const TensorSpec& input : problem.inputs) {
    const auto axis = std::ranges::find(input.shape, dim);
    if (axis != input.shape.end()) {
      return fmt::format("static_cast<int>({}.size({}))", input.name, axis - input.shape.begin());
    }
  }
  const auto fixed = problem.fixed_dims.find(dim);
  if (fixed == problem.fixed_dims.end()) {
    throw InputError(
        fmt::format("problem {}: no input's shape has the dim {}, so the export cannot "
                    "tell its value; add it to an input or give it a value in [dims]",
                    problem.name, dim));
  }
  return std::to_string(fixed->second);
}

std::string checks(const Problem& problem) {
  std::string text;
  for (const std::string& dim : problem.dim_order) {
    text += fmt::format("  const int {} = {};\n", dim, deduced(problem, dim));
  }
  for (const TensorSpec& input : problem.inputs) {
    text += fmt::format("  check_input({0}, \"{0}\", {{{1}}}, {2}.device());\n", input.name,
                        fmt::join(input.shape, ", "), problem.inputs.front().name);
  }
  text.pop_back();
  return text;
}

std::string judgement(const Provenance& provenance) {
  const Fitness& fitness = provenance.fitness;
  if (!provenance.judged) {
    return "// Not judged yet.";
  }
  if (!fitness.ok()) {
    return fmt::format("// Judged on {} ({}): {}. {}", provenance.card, provenance.toolkit,
                       to_string(fitness.verdict), fitness.detail);
  }
  std::string text = fmt::format("// {} {} ({}): {:.3f} times as fast as the reference.",
                                 fitness.measured ? "Measured on" : "Estimated, not measured, for",
                                 provenance.card, provenance.toolkit, fitness.speedup);
  for (const SizeResult& size : fitness.sizes) {
    text += fmt::format("\n//   size {}: {:.4f} ms, the reference {:.4f} ms", size.size,
                        size.median_ms, size.reference_ms);
  }
  if (const auto& verification = fitness.verification) {
    text += fmt::format("\n// Accuracy verified at level {}, at the sizes {}, in {} calls; scale "
                        "headroom {:g}.",
                        to_string(verification->level), fmt::join(verification->sizes(), ", "),
                        verification->calls, verification->headroom);
  }
  return text;
}

std::string describe(const Problem& problem, const Provenance& provenance) {
  const auto name = [](const TensorSpec& tensor) { return tensor.name; };
  std::string text =
      fmt::format("// {}, written by evo: a PyTorch extension, forward({}) -> {}.\n// The seed {}",
                  problem.output_file, join(problem.inputs, ", ", name), problem.output.name,
                  provenance.seed_file);
  if (provenance.trail.empty()) {
    text += " as it stands.";
  } else {
    text +=
        fmt::format(" after {} rewrite{} (genome {}, run seed {}):", provenance.trail.size(),
                    provenance.trail.size() == 1 ? "" : "s", provenance.id, provenance.run_seed);
  }
  for (const std::string& gene : provenance.trail) {
    text += "\n//   " + gene;
  }
  return text + "\n" + judgement(provenance);
}

/// Where the host part of a kernel file begins: its first line that starts with `extern "C"`.
std::size_t host_part(std::string_view source) {
  constexpr std::string_view mark = "extern \"C\"";
  if (source.starts_with(mark)) {
    return 0;
  }
  const std::size_t line = source.find("\n" + std::string(mark));
  return line == source.npos ? source.size() : line + 1;
}

/// An open file that removes itself unless it took its final name.
class Draft {
public:
  explicit Draft(std::filesystem::path target) : target_(std::move(target)), file_(target_) {
    file_.replace_filename(fmt::format(".{}.{}", target_.filename().string(), getpid()));
    descriptor_ = open(file_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
    check(descriptor_ >= 0);
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    if (descriptor_ >= 0) {
      close(descriptor_);
    }
    unlink(file_.c_str()); // gone already once it has been renamed
  }

  void write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(descriptor_, text.data(), text.size());
      check(written >= 0 || errno == EINTR);
      text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
    }
    check(fsync(descriptor_) == 0);
  }

  void take_final_name() { check(rename(file_.c_str(), target_.c_str()) == 0); }

private:
  void check(bool good) const {
    if (!good) {
      throw std::system_error(errno, std::generic_category(), "cannot write " + target_.string());
    }
  }

  std::filesystem::path target_;
  std::filesystem::path file_;
  int descriptor_ = -1;
};

/// Makes a rename inside `folder` durable. A folder that cannot be synced is no reason to fail:
/// the file itself is complete.
void sync_folder(const std::filesystem::path& folder) {
  const int descriptor =
      open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    fsync(descriptor);
    close(descriptor);
  }
}

} // namespace

std::string export_text(const Problem& problem, const std::string& source,
                        const Provenance& provenance) {
  const auto name = [](const TensorSpec& tensor) { return tensor.name; };
  const auto parameter = [&](const TensorSpec& tensor) { return "torch::Tensor " + name(tensor); };
  const auto pointer = [&](const TensorSpec& tensor) {
    return name(tensor) + ".data_ptr<float>()";
  };
  const std::size_t host = host_part(source);
  return fill_template(
      export_template,
      {
          {"PROVENANCE", describe(problem, provenance)},
          {"DEVICE", source.substr(0, host)},
          {"HOST", source.substr(host)},
          {"ENTRY", problem.entry},
          {"PARAMETERS", join(problem.inputs, ", ", parameter)},
          {"CHECKS", checks(problem)},
          {"FIRST", problem.inputs.front().name},
          {"OUTPUT", problem.output.name},
          {"OUTPUT_SHAPE", fmt::format("{}", fmt::join(problem.output.shape, ", "))},
          {"DIMS", fmt::format("{}", fmt::join(problem.dim_order, ", "))},
          {"POINTERS", join(problem.inputs, ", ", pointer)},
      });
}

std::string exported_kernel(const std::string& text) {
  const std::string_view head = between("PROVENANCE", "DEVICE");
  const std::string_view guard = between("DEVICE", "HOST");
  const std::size_t device = text.find(head);
  const std::size_t host = text.find(guard, device);
  const std::size_t end = text.find(between("HOST", "ENTRY"), host);
  if (device == text.npos || host == text.npos || end == text.npos) {
    return text;
  }
  const std::size_t begin = device + head.size();
  return text.substr(begin, host - begin) +
         text.substr(host + guard.size(), end - host - guard.size());
}

void replace_file(const std::filesystem::path& file, const std::string& text) {
  Draft draft(file);
  draft.write(text);
  draft.take_final_name();
  sync_folder(file.parent_path());
}

} // namespace evo
