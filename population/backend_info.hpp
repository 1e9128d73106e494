// What a run says about where its numbers come from.
#pragma once

#include <string>
#include <vector>

#include "fitness/protocol.hpp"
#include "mutators/target.hpp"

namespace evo {

struct BackendInfo {
  Backend kind = Backend::Model;
  std::string card; // "NVIDIA H200", or "sm_86 (model)"
  Target target;
  std::string toolkit;              // "CUDA 13.0, PyTorch 2.11.0"
  std::string driver;               // "13.0"; empty without one
  std::string build_line;           // how kernels are compiled
  std::string reference_precision;  // "fp32" or "tf32"
  bool reads_code = true;           // false: no cuobjdump, so precision classes are unknown
  std::string conditions_missing;   // why times come without clocks and temperature; empty: with
  std::string note;                 // why auto chose the model; empty otherwise
  std::vector<std::string> remarks; // what else a user should know, a sentence each
  std::string recorded_in;          // the file that gives the verdicts; empty: a judge does

  bool recorded() const { return !recorded_in.empty(); }
  bool measured() const { return kind == Backend::Cuda; }
};

} // namespace evo
