// From proposals to judged individuals: proposing and building run in parallel, judging one at a
// time, and yet everything that is remembered happens in the order of submission.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "population/evaluator.hpp"
#include "population/individual.hpp"
#include "population/variation.hpp"

namespace evo {

/// Called in the order of submission, never two at a time. What they throw comes out of wait().
struct PipelineEvents {
  std::function<void(const Individual&)> better;  // a new elite, before anything else is judged
  std::function<void(const Individual&)> settled; // judged, failed or found to be a duplicate
};

/// propose ─► in order ─► same source? ─► build ─► in order ─► same binary? ─► judge ─► collect.
/// Builds and judgements wait on threads of their own (`jobs` of them, and one), so a generation
/// builds while the one before is judged.
class Pipeline {
public:
  using Propose = std::function<Proposal()>;

  /// `jobs`: how many candidates are proposed, and how many built, side by side.
  Pipeline(FitnessEvaluator& evaluator, int jobs, std::stop_token stop, PipelineEvents events);
  ~Pipeline(); // stops what is still under way

  /// Starts a batch; slots count from `first_slot`. Proposals run on any thread, at any time.
  void submit(int generation, int first_slot, std::vector<Propose> proposals);

  /// The oldest batch not yet waited for, in slot order. After a stop those without a result are
  /// left out. Rethrows the first exception of a proposal, a build, a judgement or an event.
  std::vector<Individual> wait();

private:
  class Graph;
  std::unique_ptr<Graph> graph_;
};

} // namespace evo
