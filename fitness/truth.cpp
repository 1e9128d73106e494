#include "fitness/truth.hpp"

#include <cmath>

namespace evo {
namespace {

/// JSON's numbers only.
double number(const at::Tensor& scalar) {
  const double value = scalar.item<double>();
  return std::isfinite(value) ? value : no_number;
}

at::Tensor rms(const at::Tensor& values) {
  return values.to(at::kDouble).square().mean().sqrt();
}

/// max |error| / (atol + rtol |reference|), where no error is none even of a tolerance of zero.
at::Tensor worst(const Problem& problem, const at::Tensor& error, const at::Tensor& reference) {
  const at::Tensor tolerance = reference.abs().mul_(problem.rtol).add_(problem.atol);
  return error.abs().div_(tolerance).masked_fill_(error.eq(0), 0).max();
}

} // namespace

Truth find_truth(const Oracle& oracle, const Tensors& inputs, int size) {
  const Problem& problem = oracle.problem();
  Truth truth{.reference = oracle.reference(inputs, size), .ideal_offset = {}, .figures = {}};
  const at::Tensor ideal = oracle.ideal(inputs, truth.reference, size);
  const at::Tensor offset = ideal - truth.reference;
  truth.ideal_offset = offset.to(at::kFloat);
  const at::Tensor zeros = at::zeros({}, truth.reference.options());
  truth.figures.ideal_error = number(worst(problem, offset, truth.reference));
  truth.figures.reference_rms_error = number(rms(offset));
  truth.figures.output_rms = number(rms(ideal));
  truth.figures.zero_passes =
      at::isclose(zeros, truth.reference, problem.rtol, problem.atol).all().item<bool>();
  return truth;
}

CaseFigures measure(const Oracle& oracle, const Truth& truth, const at::Tensor& output) {
  const Problem& problem = oracle.problem();
  const at::Tensor error = output - truth.reference;
  const at::Tensor violations =
      at::isclose(output, truth.reference, problem.rtol, problem.atol).logical_not().sum();
  const at::Tensor found = at::stack({worst(problem, error, truth.reference).to(at::kDouble),
                                      violations.to(at::kDouble), rms(error - truth.ideal_offset)})
                               .cpu();
  CaseFigures figures = truth.figures;
  figures.max_error = number(found[0]);
  figures.violations = number(found[1]);
  figures.rms_error = number(found[2]);
  return figures;
}

} // namespace evo
