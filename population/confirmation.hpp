// The end of a run: are its best as good as the search believed, and is its winner the best of
// them?
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "fitness/sequential_test.hpp"
#include "fitness/worker_client.hpp"
#include "population/archive.hpp"
#include "population/evaluator.hpp"

namespace evo {

struct Finalist {
  Individual individual;  // as the search left it
  Fitness confirmed;      // with the times of the final, the reference's too
  Estimate speedup;       // over the reference, with a 95 % confidence interval
  Estimate over_searched; // over the first finalist's speed, 5 % for all of them together
};

struct Confirmation {
  std::vector<Finalist> finalists;   // the search's winner first
  std::vector<std::string> failures; // sentences about those that did not hold
  std::size_t winner = 0;            // the first, unless another is faster beyond doubt
  std::size_t blocks = 0;
};

/// Times up to five of the archive's best in a fresh worker process, interleaved with each other
/// and the reference: twelve blocks, or fewer where those take longer than a few seconds. Who was
/// never verified is so before; the winner is at the end, in every case at every size, unless that
/// is stopped. Who fails anywhere is out. nullopt when stopped, or when nobody is left.
std::optional<Confirmation> confirm(const Archive& archive, FitnessEvaluator& evaluator,
                                    WorkerClient& worker, const std::vector<int>& sizes,
                                    std::stop_token stop);

/// The finalists' figures, and how much the search's own figure shrank.
std::string report(const Confirmation& confirmation);

nlohmann::json to_record(const Confirmation& confirmation);

} // namespace evo
