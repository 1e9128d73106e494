#include "fitness/candidate.hpp"

#include <dlfcn.h>

#include "fitness/cuda_check.hpp"
#include "fitness/entry.hpp"

namespace evo {

Candidate::Candidate(const std::filesystem::path& library, const std::string& entry)
    : handle_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) {
    throw CandidateFailure{Verdict::NoBuild, concat("the library cannot be loaded: ", dlerror())};
  }
  try {
    entry_ = symbol(entry);
    workspace_ = symbol(entry + "_workspace");
  } catch (const CandidateFailure&) {
    dlclose(handle_);
    throw;
  }
}

Candidate::~Candidate() {
  dlclose(handle_);
}

void* Candidate::symbol(const std::string& name) const {
  void* const found = dlsym(handle_, name.c_str());
  if (found == nullptr) {
    throw CandidateFailure{Verdict::NoBuild,
                           concat("the kernel file defines no extern \"C\" function '", name, "'")};
  }
  return found;
}

std::size_t Candidate::workspace_bytes(std::span<const int> dims) const {
  return call_workspace(workspace_, dims);
}

void Candidate::launch(std::span<const float* const> inputs, float* output,
                       std::span<const int> dims, void* workspace) const {
  // The error is of the candidate's own copy of the runtime; the numbers are the same in ours.
  check_cuda(static_cast<cudaError_t>(call_entry(entry_, inputs, output, dims, workspace, nullptr)),
             "the launch");
}

} // namespace evo
