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

  /// What was settled before: what comes later is a duplicate of it. Before the first batch, in the
  /// order in which it was settled.
  void restore(const std::vector<Individual>& settled);

  /// Starts a batch of what was settled before, which is built and judged again, beside no original
  /// and without an event but `better`.
  void submit_again(const std::vector<Individual>& individuals);

  /// The oldest batch not yet waited for, in slot order. After a stop those without a result are
  /// left out. A proposal, build or judgement that throws costs its candidate the verdict Fault;
  /// what tells of the system instead, an InputError, a NoWorker or a std::system_error, and what
  /// an event throws, comes out here, the first of them.
  std::vector<Individual> wait();

private:
  class Graph;
  std::unique_ptr<Graph> graph_;
};

} // namespace evo
