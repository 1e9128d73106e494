// The run: generations of two islands that take turns.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "population/archive.hpp"
#include "population/credit.hpp"
#include "population/evaluator.hpp"
#include "population/individual.hpp"
#include "population/lineage.hpp"
#include "population/pipeline.hpp"
#include "population/variation.hpp"

namespace evo {

struct SearchSettings {
  int generations = 40;
  int population = 32; // children per generation, at least 2
  std::uint64_t seed = 1;
  int jobs = 1;
};

/// What an earlier run found good: a trail on the seed of that name.
struct Founder {
  std::string seed;
  std::vector<Gene> trail;
};

/// A generation that was complete when the run was interrupted.
struct Past {
  std::vector<Individual> children;     // in slot order
  std::vector<Individual> judged_again; // when the run was resumed after it
};

/// What a run begins with.
struct Beginning {
  std::optional<Genome> incumbent = {};
  std::vector<Founder> founders = {};
  std::vector<Past> past = {}; // of a run that is resumed, from generation 0 on
  bool elsewhere = false;      // the past was judged under other conditions
};

/// What one generation brought.
struct Generation {
  int number = 0;                                 // 0: the seeds, the incumbent and the founders
  bool complete = true;                           // false: the run was stopped in it
  bool past = false;                              // told before, when it happened
  std::vector<Individual> children;               // in slot order
  std::vector<std::vector<Individual>> survivors; // per island, fittest first
};

/// Told what happens, in an order that depends on the settings alone. What it throws ends the run.
class Observer {
public:
  virtual ~Observer() = default;
  /// A new best, before anything else is judged; on the judge's thread.
  virtual void better(const Individual& individual) = 0;
  /// On a thread of the pipeline.
  virtual void settled(const Individual& individual) = 0;
  /// On the thread of Search::run.
  virtual void generation(const Generation& generation) = 0;
  /// On the thread of Search::run: what was judged again after generation `number`, which was the
  /// last before the run was resumed.
  virtual void judged_again(int number, const std::vector<Individual>& individuals) = 0;
};

/// Children of an island are bred from generations already complete: its own up to the last, the
/// other island's up to the one before. So the islands take turns: while one is judged, the
/// children of the other build, and no order of finishing can change a run.
///
/// A resumed run goes through the generations that were complete without breeding or judging them
/// again, and so comes to the state in which it was interrupted. Then the best is judged again, or
/// all that may breed where the past was judged under other conditions, and the rest is as ever.
class Search {
public:
  Search(const SearchSettings& settings, std::vector<Genome> seeds, Dialect dialect,
         FitnessEvaluator& evaluator, Observer& observer, std::stop_token stop);

  /// Runs all generations, or up to a stop. InputError for a seed that does not pass. An
  /// incumbent is judged after the seeds and is what must be beaten, but does not breed; one that
  /// does not pass is only recorded. Founders are judged then, and breed: what still applies of the
  /// trails whose seeds are here.
  void run(const Beginning& beginning = {});

  const Archive& archive() const { return archive_; }
  const Lineage& lineage() const { return lineage_; }

private:
  struct Island {
    int first_slot = 0;
    int size = 0; // children per generation, and survivors
    std::vector<Individual> members;
  };

  /// Children bred but not submitted yet.
  struct Brood {
    int generation = 0;
    std::size_t island = 0;
    std::shared_ptr<Nursery> nursery;
  };

  bool plant(Pipeline& pipeline, const Beginning& beginning);
  std::vector<Pipeline::Propose> planting(const Beginning& beginning) const;
  void breed(Pipeline& pipeline, int generation, std::size_t island);
  void submit(Pipeline& pipeline, const Brood& brood);
  std::vector<Individual> children_of(Pipeline& pipeline, const Beginning& beginning,
                                      int generation, std::size_t island);
  bool leave_past(Pipeline& pipeline, const Beginning& beginning);
  bool judge_again(Pipeline& pipeline, const Beginning& beginning,
                   std::vector<Individual>& results);
  std::vector<Individual> breeding_members() const;
  void update(const std::vector<Individual>& judged_again);
  void take_migrant(std::size_t island);
  void record(const std::vector<Individual>& individuals);
  double gain_of(const Individual& child) const;

  SearchSettings settings_;
  std::vector<Genome> seeds_;
  Dialect dialect_;
  FitnessEvaluator& evaluator_;
  Observer& observer_;
  std::stop_token stop_;
  Archive archive_;
  Lineage lineage_;
  Credit credit_;
  std::array<Island, 2> islands_;
  int past_ = -1;             // the last generation of a resumed run's past
  std::vector<Brood> broods_; // that wait for the end of it
};

} // namespace evo
