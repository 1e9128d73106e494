// Who descends from whom, and what each rewrite of a winner was worth.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include "population/individual.hpp"

namespace evo {

/// One gene of a trail.
struct Step {
  Gene gene;
  /// Speed-up of the trail up to this gene; nullopt where that was never judged correct.
  std::optional<double> speedup;
  /// `speedup` over that of the last known prefix before: the gain of this gene and of those
  /// directly before it that have none.
  std::optional<double> gain;
};

class Lineage {
public:
  /// Parents are added before their children; an id is added once.
  void add(const Individual& individual);

  /// All ancestors of `id`, itself included, nearest first.
  std::vector<std::string> ancestry(const std::string& id) const;

  /// The trail of `id` with its gains, from the ancestors whose trails are its prefixes.
  std::vector<Step> steps(const std::string& id) const;

private:
  struct Node {
    std::string id;
    std::string seed;
    std::vector<Gene> trail;
    std::optional<double> speedup;
  };
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Node>;

  std::vector<Graph::vertex_descriptor> reachable(const std::string& id) const;

  Graph graph_; // edges from child to parent
  std::map<std::string, Graph::vertex_descriptor> vertices_;
};

} // namespace evo
