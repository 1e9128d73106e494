#include "fitness/problem.hpp"

#include <algorithm>

#include "fitness/named.hpp"

namespace evo {

std::string_view to_string(Distribution distribution) {
  switch (distribution) {
  case Distribution::Normal:
    return "normal";
  case Distribution::Uniform:
    return "uniform";
  case Distribution::Positive:
    return "positive";
  case Distribution::Zeros:
    return "zeros";
  case Distribution::Ones:
    return "ones";
  }
  return "unknown";
}

std::optional<Distribution> distribution_from(std::string_view text) {
  return find_named(all_distributions, text);
}

std::string_view to_string(Modifier modifier) {
  switch (modifier) {
  case Modifier::LargeRow:
    return "large_row";
  case Modifier::LargeColumn:
    return "large_column";
  case Modifier::AlikeRows:
    return "alike_rows";
  case Modifier::OppositeRows:
    return "opposite_rows";
  case Modifier::OppositeColumns:
    return "opposite_columns";
  }
  return "unknown";
}

std::optional<Modifier> modifier_from(std::string_view text) {
  return find_named(all_modifiers, text);
}

Dims Problem::dims(int size) const {
  Dims all = fixed_dims;
  all[vary] = size;
  return all;
}

double Problem::flops_at(int size) const {
  const Dims values = dims(size);
  double sum = 0;
  for (const Monomial& monomial : flops) {
    double product = monomial.coefficient;
    for (const std::string& dim : monomial.dims) {
      product *= values.at(dim);
    }
    sum += product;
  }
  return sum;
}

std::vector<CaseOutline> Problem::outlines() const {
  std::vector<CaseOutline> all;
  for (const Case& each : cases) {
    all.push_back({each.name, each.level, each.sweep});
  }
  return all;
}

std::vector<long> resolve(const TensorSpec& tensor, const Dims& dims) {
  std::vector<long> shape;
  for (const std::string& dim : tensor.shape) {
    shape.push_back(dims.at(dim));
  }
  return shape;
}

} // namespace evo
