// Two kernels timed against each other until it is clear which one to keep.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include "fitness/fitness.hpp"
#include "fitness/sequential_test.hpp"
#include "fitness/worker_client.hpp"
#include "population/evaluator.hpp"

namespace evo {

/// How a request names a built candidate.
Contender contender(const std::string& id, const Built& built);

struct Duel {
  Verdict verdict = Verdict::Ok; // otherwise the one of a contender that failed meanwhile
  std::string detail;
  std::string culprit; // its id; empty: not known which
  Decision decision = Decision::Undecided;
  Estimate estimate;              // the challenger's speed over the incumbent's
  std::vector<TimedBlock> blocks; // the incumbent is contender 0, the challenger 1
};

/// How long an answer of their duel is awaited.
std::chrono::milliseconds duel_deadline(const Fitness& incumbent, const Fitness& challenger);

/// Asks for blocks until the sequential test decides, `deadline` for each answer. A stop is Hang,
/// "stopped", as the worker client has it.
Duel duel(WorkerClient& worker, const Contender& incumbent, const Contender& challenger,
          const std::vector<int>& sizes, std::chrono::milliseconds deadline, std::stop_token stop);

/// `fitness` with the medians of the contender's calls in place of its times, for the same sizes.
Fitness with_times(Fitness fitness, const std::vector<TimedBlock>& blocks, std::size_t contender);

/// And the reference's, in place of what the worker found when it started.
Fitness with_reference(Fitness fitness, const std::vector<TimedBlock>& blocks);

} // namespace evo
