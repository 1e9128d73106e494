// Where candidates are built and judged, chosen once per program run.
#pragma once

#include <memory>
#include <stop_token>

#include "fitness/worker_client.hpp"
#include "population/backend_info.hpp"
#include "population/evaluator.hpp"
#include "population/options.hpp"

namespace evo {

struct OpenBackend {
  BackendInfo info;
  std::unique_ptr<FitnessEvaluator> evaluator;
  WorkerClient* timer = nullptr; // the evaluator's, where it measures; nullptr: it estimates
};

/// Standby workers for whoever judges many candidates: two, so that one is ready while another
/// starts.
inline constexpr int many_candidates = 2;

/// Starts the worker and asks what it finds: the card for `cuda`, the card or else the model for
/// `auto`, where a start is cheap and needs no standbys. InputError when the backend that was asked
/// for cannot be used, or there is no nvcc.
OpenBackend open_backend(const Options& options, const Problem& problem, std::stop_token stop,
                         int standbys = 0);

} // namespace evo
