#include "population/search.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <ranges>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "fitness/problem.hpp"
#include "population/selection.hpp"

namespace evo {
namespace {

constexpr int migration_interval = 3; // generations

/// The genome that a trail makes of its seed today.
Proposal descend(const Genome& seed, const std::vector<Gene>& trail, const Dialect& dialect) {
  Followed followed = follow(seed, trail, dialect);
  return {.genome = std::move(followed.genome),
          .parents = {seed.id},
          .mutator = {},
          .dropped = std::move(followed.dropped),
          .fault = {}};
}

void check_seed(const Individual& seed) {
  const Verdict verdict = seed.verdict();
  if (verdict != Verdict::Ok && verdict != Verdict::Duplicate) {
    throw InputError(fmt::format("seed {} does not pass ({}: {}); correct it or leave it out",
                                 seed.genome.seed, to_string(verdict), seed.fitness.detail));
  }
}

} // namespace

Search::Search(const SearchSettings& settings, std::vector<Genome> seeds, Dialect dialect,
               FitnessEvaluator& evaluator, Observer& observer, std::stop_token stop)
    : settings_(settings), seeds_(std::move(seeds)), dialect_(std::move(dialect)),
      evaluator_(evaluator), observer_(observer), stop_(std::move(stop)) {
  const int half = (settings_.population + 1) / 2;
  islands_[0] = {.first_slot = 0, .size = half, .members = {}};
  islands_[1] = {.first_slot = half, .size = settings_.population - half, .members = {}};
}

void Search::run(const Beginning& beginning) {
  Pipeline pipeline(evaluator_, settings_.jobs, stop_,
                    {.better = [this](const Individual& i) { observer_.better(i); },
                     .settled = [this](const Individual& i) { observer_.settled(i); }});
  past_ = static_cast<int>(beginning.past.size()) - 1;
  for (const Past& past : beginning.past) {
    pipeline.restore(past.children);
  }
  if (!plant(pipeline, beginning) || settings_.generations == 0) {
    return;
  }
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    breed(pipeline, 1, i);
  }
  if (past_ == 0 && !leave_past(pipeline, beginning)) {
    return;
  }
  for (int number = 1; number <= settings_.generations; ++number) {
    Generation generation{.number = number,
                          .complete = true,
                          .past = number <= past_,
                          .children = {},
                          .survivors = {}};
    for (std::size_t i = 0; i < islands_.size(); ++i) {
      Island& island = islands_[i];
      const std::vector<Individual> children = children_of(pipeline, beginning, number, i);
      record(children);
      island.members = survivors(island.members, children, static_cast<std::size_t>(island.size));
      generation.complete &= std::cmp_equal(children.size(), island.size);
      generation.children.insert(generation.children.end(), children.begin(), children.end());
      if (generation.complete && number < settings_.generations) {
        if (number % migration_interval == 0) {
          take_migrant(i);
        }
        breed(pipeline, number + 1, i);
      }
      generation.survivors.push_back(island.members);
    }
    if (!generation.children.empty()) {
      observer_.generation(generation);
    }
    if (!generation.complete) {
      return;
    }
    if (number < past_) {
      update(beginning.past[static_cast<std::size_t>(number)].judged_again);
    } else if (number == past_ && !leave_past(pipeline, beginning)) {
      return;
    }
  }
}

/// Judges the seeds and founders, which become the first members of every island, and the
/// incumbent. False when stopped meanwhile.
bool Search::plant(Pipeline& pipeline, const Beginning& beginning) {
  Generation generation{
      .number = 0, .complete = true, .past = past_ >= 0, .children = {}, .survivors = {}};
  if (generation.past) {
    generation.children = beginning.past.front().children;
  } else {
    std::vector<Pipeline::Propose> proposals = planting(beginning);
    const std::size_t expected = proposals.size();
    pipeline.submit(0, 0, std::move(proposals));
    generation.children = pipeline.wait();
    generation.complete = generation.children.size() == expected;
  }
  const auto is_seed = [&](const Individual& individual) {
    return std::cmp_less(individual.slot, seeds_.size());
  };
  std::vector<Individual> planted = generation.children;
  std::erase_if(planted, [&](const Individual& i) { return i.parents.empty() && !is_seed(i); });
  std::ranges::for_each(planted | std::views::filter(is_seed), check_seed);
  record(generation.children);
  for (Island& island : islands_) {
    island.members = survivors({}, planted, planted.size());
    generation.survivors.push_back(island.members);
  }
  if (!generation.children.empty()) {
    observer_.generation(generation);
  }
  if (past_ > 0) {
    update(beginning.past.front().judged_again);
  }
  return generation.complete;
}

std::vector<Pipeline::Propose> Search::planting(const Beginning& beginning) const {
  std::vector<Pipeline::Propose> proposals;
  const auto as_it_stands = [](const Genome& genome) {
    return [genome] { return Proposal{genome, {}, {}, {}, {}}; };
  };
  std::ranges::transform(seeds_, std::back_inserter(proposals), as_it_stands);
  if (beginning.incumbent) {
    proposals.push_back(as_it_stands(*beginning.incumbent));
  }
  for (const Founder& founder : beginning.founders) {
    const auto seed = std::ranges::find(seeds_, founder.seed, &Genome::seed);
    if (seed != seeds_.end()) {
      proposals.push_back(
          [this, founder, seed] { return descend(*seed, founder.trail, dialect_); });
    }
  }
  return proposals;
}

/// Children of the past are there already; those of the generation after it wait for its end.
void Search::breed(Pipeline& pipeline, int generation, std::size_t island) {
  if (generation <= past_) {
    return;
  }
  const Brood brood{.generation = generation,
                    .island = island,
                    .nursery = std::make_shared<Nursery>(
                        Nursery{islands_[island].members, seeds_, archive_.ids(), credit_})};
  if (generation == past_ + 1 && past_ >= 0) {
    broods_.push_back(brood);
  } else {
    submit(pipeline, brood);
  }
}

void Search::submit(Pipeline& pipeline, const Brood& brood) {
  const int first = islands_[brood.island].first_slot;
  std::vector<Pipeline::Propose> proposals;
  for (int slot = first; slot < first + islands_[brood.island].size; ++slot) {
    proposals.push_back([this, nursery = brood.nursery, generation = brood.generation, slot] {
      return evo::breed(*nursery, dialect_, random_for(settings_.seed, generation, slot));
    });
  }
  pipeline.submit(brood.generation, first, std::move(proposals));
}

std::vector<Individual> Search::children_of(Pipeline& pipeline, const Beginning& beginning,
                                            int generation, std::size_t island) {
  if (generation > past_) {
    return pipeline.wait();
  }
  const Island& slots = islands_[island];
  std::vector<Individual> children = beginning.past[static_cast<std::size_t>(generation)].children;
  std::erase_if(children, [&](const Individual& child) {
    return child.slot < slots.first_slot || child.slot >= slots.first_slot + slots.size;
  });
  return children;
}

/// From here on everything happens for the first time. False when stopped.
bool Search::leave_past(Pipeline& pipeline, const Beginning& beginning) {
  std::vector<Individual> results;
  if (!judge_again(pipeline, beginning, results)) {
    return false;
  }
  observer_.judged_again(past_, results);
  update(results);
  for (const Brood& brood : broods_) {
    if (brood.nursery->members.empty()) {
      throw InputError("nothing that the run has kept passes here; begin a new run");
    }
    submit(pipeline, brood);
  }
  broods_.clear();
  return true;
}

/// The best alone, or also what may breed: where the past was judged under other conditions, and
/// where the best does not pass any more. False when stopped.
bool Search::judge_again(Pipeline& pipeline, const Beginning& beginning,
                         std::vector<Individual>& results) {
  const auto judge = [&](const std::vector<Individual>& individuals) {
    pipeline.submit_again(individuals);
    const std::vector<Individual> judged = pipeline.wait();
    results.insert(results.end(), judged.begin(), judged.end());
    return judged.size() == individuals.size();
  };
  const Individual* best = archive_.best();
  const std::vector<Individual> first =
      best != nullptr ? std::vector{*best} : std::vector<Individual>{};
  if (!judge(first)) {
    return false;
  }
  if (!beginning.elsewhere && !results.empty() && results.front().fitness.ok()) {
    return true;
  }
  std::vector<Individual> others = breeding_members();
  std::erase_if(others, [&](const Individual& member) {
    return best != nullptr && member.genome.id == best->genome.id;
  });
  return judge(others);
}

/// Of all islands and broods, each once.
std::vector<Individual> Search::breeding_members() const {
  std::vector<Individual> result;
  std::set<std::string> ids;
  const auto add = [&](const std::vector<Individual>& members) {
    std::ranges::copy_if(members, std::back_inserter(result), [&](const Individual& member) {
      return ids.insert(member.genome.id).second;
    });
  };
  for (const Island& island : islands_) {
    add(island.members);
  }
  for (const Brood& brood : broods_) {
    add(brood.nursery->members);
  }
  return result;
}

/// What was judged again replaces what it was, and leaves who may breed where it failed.
void Search::update(const std::vector<Individual>& judged_again) {
  const auto update_members = [&](std::vector<Individual>& members) {
    for (const Individual& now : judged_again) {
      const auto member = std::ranges::find(members, now.genome.id,
                                            [](const Individual& each) { return each.genome.id; });
      if (member != members.end()) {
        *member = now;
      }
    }
    std::erase_if(members, [](const Individual& member) { return member.pace() == 0; });
    std::ranges::stable_sort(members, fitter);
  };
  for (const Individual& now : judged_again) {
    archive_.update(now);
  }
  for (Island& island : islands_) {
    update_members(island.members);
  }
  for (const Brood& brood : broods_) {
    update_members(brood.nursery->members);
  }
}

/// The best of the other island, as far as its generations are complete, joins this one.
void Search::take_migrant(std::size_t island) {
  const std::vector<Individual>& others = islands_[1 - island].members;
  islands_[island].members = survivors(islands_[island].members, {others.front()},
                                       static_cast<std::size_t>(islands_[island].size));
}

void Search::record(const std::vector<Individual>& individuals) {
  std::vector<Credit::Earning> earnings;
  for (const Individual& individual : individuals) {
    if (!individual.mutator.empty()) {
      earnings.push_back({individual.mutator, gain_of(individual)});
    }
    archive_.add(individual);
    lineage_.add(individual);
  }
  credit_.add(earnings);
}

/// The logarithm of how much faster a child is than its fittest parent; 0 where it is not. A right
/// child of frail parents gains, whatever it costs.
double Search::gain_of(const Individual& child) const {
  double best = 0;
  bool frail = true;
  for (const std::string& parent : child.parents) {
    const Individual* known = archive_.find(parent);
    best = std::max(best, known == nullptr ? 0 : known->pace());
    frail = frail && known != nullptr && known->frail();
  }
  if (best == 0 || child.pace() == 0) {
    return 0;
  }
  constexpr double mended = 0.3;
  return std::max({std::log(child.pace() / best), child.viable() && frail ? mended : 0.0, 0.0});
}

} // namespace evo
