#include "population/lineage.hpp"

#include <algorithm>

#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/visitors.hpp>

namespace evo {
namespace {

class VisitOrder : public boost::default_bfs_visitor {
public:
  explicit VisitOrder(std::vector<std::size_t>& order) : order_(&order) {}
  template <typename Graph> void discover_vertex(std::size_t vertex, const Graph&) {
    order_->push_back(vertex);
  }

private:
  std::vector<std::size_t>* order_; // the search copies its visitor
};

} // namespace

void Lineage::add(const Individual& individual) {
  const Genome& genome = individual.genome;
  if (vertices_.contains(genome.id)) {
    return;
  }
  const auto speedup =
      individual.fitness.ok() ? std::optional(individual.fitness.speedup) : std::nullopt;
  const auto vertex =
      boost::add_vertex(Node{genome.id, genome.seed, genome.trail, speedup}, graph_);
  vertices_.emplace(genome.id, vertex);
  for (const std::string& parent : individual.parents) {
    if (const auto found = vertices_.find(parent); found != vertices_.end()) {
      boost::add_edge(vertex, found->second, graph_);
    }
  }
}

std::vector<Lineage::Graph::vertex_descriptor> Lineage::reachable(const std::string& id) const {
  std::vector<Graph::vertex_descriptor> order;
  if (const auto found = vertices_.find(id); found != vertices_.end()) {
    boost::breadth_first_search(graph_, found->second, boost::visitor(VisitOrder(order)));
  }
  return order;
}

std::vector<std::string> Lineage::ancestry(const std::string& id) const {
  std::vector<std::string> ids;
  for (const auto vertex : reachable(id)) {
    ids.push_back(graph_[vertex].id);
  }
  return ids;
}

std::vector<Step> Lineage::steps(const std::string& id) const {
  const auto order = reachable(id);
  if (order.empty()) {
    return {};
  }
  const Node& winner = graph_[order.front()];
  std::vector<std::optional<double>> speedups(winner.trail.size() + 1); // by prefix length
  for (const auto vertex : order) {
    const Node& node = graph_[vertex];
    const bool prefix = node.seed == winner.seed &&
                        std::ranges::mismatch(node.trail, winner.trail).in1 == node.trail.end();
    if (prefix && node.speedup) {
      speedups[node.trail.size()] = node.speedup;
    }
  }

  std::vector<Step> steps;
  std::optional<double> before = speedups.front();
  for (std::size_t i = 0; i < winner.trail.size(); ++i) {
    Step step{.gene = winner.trail[i], .speedup = speedups[i + 1], .gain = {}};
    if (step.speedup) {
      step.gain = before ? std::optional(*step.speedup / *before) : std::nullopt;
      before = step.speedup;
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

} // namespace evo
