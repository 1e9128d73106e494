// Everything a run has judged, and the best of it.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "population/individual.hpp"

namespace evo {

class Archive {
public:
  void add(Individual individual);
  /// Another judgement of one that is here; the counts stay those of the first.
  void update(const Individual& individual);

  /// nullptr when there is none of that id.
  const Individual* find(const std::string& id) const;
  /// The latest elite; nullptr before the first.
  const Individual* best() const;
  /// The best, and then the fittest of the others that are no duplicates, up to `count` of them.
  std::vector<const Individual*> fittest(std::size_t count) const;
  /// How often each verdict was given.
  const std::map<Verdict, int>& counts() const { return counts_; }
  const Failures& failures() const { return failures_; }
  /// How many verdicts are earlier runs'.
  int known() const { return known_; }
  std::set<std::string> ids() const;

private:
  std::deque<Individual> individuals_;       // a deque keeps the pointers into it valid
  std::map<std::string, Individual*> by_id_; // the first of each id
  std::map<Verdict, int> counts_;
  Failures failures_;
  int known_ = 0;
  const Individual* best_ = nullptr;
};

} // namespace evo
