// What a candidate may leave behind in the worker's process.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "fitness/device.hpp"

namespace evo {

/// Children whose own parent ends become ours, so that none gets out of sight.
void adopt_orphans();

/// A look at the process before a candidate is loaded, to be compared with what is left after it.
class Traces {
public:
  Traces();

  /// CandidateFailure (Suspicious) when there are threads, child processes or open files that were
  /// not there before; the children are ended. Threads of the CUDA driver and its devices do not
  /// count. To be asked before the candidate is unloaded.
  std::optional<CandidateFailure> left() const;

private:
  std::set<std::string> threads_;         // numbers
  std::map<std::string, int> open_files_; // by what they are, with their count
};

} // namespace evo
