#include "fitness/rounded_script.hpp"

#include <map>
#include <vector>

#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/library.h>

namespace evo {
namespace {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;

constexpr const char* round_operator = "evo::round_tf32";

/// The same values with 10 bits of mantissa.
at::Tensor round_tf32(const at::Tensor& values) {
  constexpr std::int32_t half = 0x1000;
  constexpr std::int32_t dropped = 0x1fff;
  at::Tensor bits = values.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true).view(at::kInt);
  bits.add_(half).bitwise_and_(~dropped);
  return bits.view(at::kFloat).to(values.scalar_type());
}

TORCH_LIBRARY(evo, library) {
  library.def("round_tf32(Tensor values) -> Tensor", &round_tf32);
}

/// Which inputs of a node are factors of a matrix product.
std::vector<std::size_t> factors(const Node& node) {
  static const std::map<std::string, std::vector<std::size_t>> products{
      {"aten::matmul", {0, 1}}, {"aten::mm", {0, 1}},    {"aten::bmm", {0, 1}},
      {"aten::linear", {0, 1}}, {"aten::addmm", {1, 2}}, {"aten::baddbmm", {1, 2}},
  };
  const auto found = products.find(node.kind().toQualString());
  return found == products.end() ? std::vector<std::size_t>{} : found->second;
}

void round_factors(Graph& graph, Block& block) {
  for (Node* node : block.nodes()) {
    for (Block* inner : node->blocks()) {
      round_factors(graph, *inner);
    }
    const torch::jit::WithInsertPoint here(node);
    for (const std::size_t factor : factors(*node)) {
      node->replaceInput(
          factor, graph.insert(c10::Symbol::fromQualString(round_operator), {node->input(factor)}));
    }
  }
}

} // namespace

void add_rounded_function(torch::jit::CompilationUnit& script, const std::string& original,
                          const std::string& name) {
  const std::shared_ptr<Graph> graph =
      torch::jit::toGraphFunction(script.get_function(original)).graph()->copy();
  torch::jit::Inline(*graph);
  round_factors(*graph, *graph->block());
  script.create_function(name, graph);
}

} // namespace evo
