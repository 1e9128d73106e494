// What a run tells at its end.
#pragma once

#include <string>
#include <vector>

#include "population/archive.hpp"
#include "population/backend_info.hpp"
#include "population/lineage.hpp"

namespace evo {

/// "4096: 3.21 ms, the reference 3.84 ms, 1.20x", a line per size, each after two blanks; with
/// "cold 3.30 ms" where those times are given.
std::string size_table(const Fitness& fitness, const std::vector<double>& cold_ms = {});

/// The trail, a line per gene: its gain, or a dash where that is not known by itself.
std::string trail_table(const std::vector<Step>& steps);

/// The best: times and speed-ups per size, the trail with each rewrite's gain; the seeds, the
/// counts of verdicts, and the backend, which says of an estimate that it is one.
std::string summary(const Archive& archive, const Lineage& lineage,
                    const std::vector<Genome>& seeds, const BackendInfo& backend);

/// "cuda, NVIDIA H200, sm_90, CUDA 13.0, PyTorch 2.11.0", or of the model, "estimated, not
/// measured".
std::string describe(const BackendInfo& backend);

} // namespace evo
