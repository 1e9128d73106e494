#include "fitness/oracle.hpp"

#include <cmath>

#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/jit.h>

#include "fitness/concat.hpp"
#include "fitness/device.hpp"
#include "fitness/mix.hpp"
#include "fitness/rounded_script.hpp"

namespace evo {
namespace {

constexpr float larger = 1000;  // a large row or column
constexpr double unlike = 1e-3; // of alike rows

/// Every second slice along the axis from `first` on, as many as have a partner.
at::Tensor every_second(const at::Tensor& values, std::int64_t axis, std::int64_t first) {
  const std::int64_t pairs = values.size(axis) / 2;
  return values.slice(axis, first, 2 * pairs, 2);
}

void modify(at::Tensor& values, Modifier modifier, std::uint64_t chance) {
  const auto enlarge = [&](std::int64_t axis) {
    const auto count = static_cast<std::uint64_t>(values.size(axis));
    values.select(axis, static_cast<std::int64_t>(chance % count)).mul_(larger);
  };
  const auto oppose = [&](std::int64_t axis) {
    every_second(values, axis, 1).copy_(every_second(values, axis, 0).neg());
  };
  switch (modifier) {
  case Modifier::LargeRow:
    return enlarge(0);
  case Modifier::LargeColumn:
    return enlarge(values.dim() - 1);
  case Modifier::AlikeRows: {
    at::Tensor odd = every_second(values, 0, 1);
    odd.mul_(unlike).add_(every_second(values, 0, 0));
    return;
  }
  case Modifier::OppositeRows:
    return oppose(0);
  case Modifier::OppositeColumns:
    return oppose(values.dim() - 1);
  }
}

/// LibTorch throws types of many kinds; the first line is the message, a backtrace follows.
[[noreturn]] void refuse_reference(const Problem& problem, const std::exception& error) {
  const std::string message = error.what();
  throw NoDevice(concat("the TorchScript reference of ", problem.name,
                        " fails: ", message.substr(0, message.find('\n'))));
}

Tensors as_doubles(const Tensors& inputs) {
  Tensors doubles;
  for (const at::Tensor& input : inputs) {
    doubles.push_back(input.to(at::kDouble));
  }
  return doubles;
}

} // namespace

Oracle::Oracle(Problem problem, at::Device device, std::uint64_t input_seed)
    : problem_(std::move(problem)), device_(device), input_seed_(input_seed) {
  try {
    script_ = torch::jit::compile(problem_.reference);
    add_rounded_function(*script_, "reference", "rounded");
  } catch (const std::exception& error) {
    refuse_reference(problem_, error);
  }
}

Tensors Oracle::inputs(int size, int draw_index) const {
  return inputs(problem_.inputs, 0, size, draw_index);
}

Tensors Oracle::case_inputs(std::size_t index, int size, int draw_index) const {
  return inputs(problem_.cases.at(index).inputs, index, size, draw_index);
}

Tensors Oracle::inputs(const std::vector<TensorSpec>& specs, std::size_t index, int size,
                       int draw_index) const {
  Tensors tensors;
  for (const TensorSpec& tensor : specs) {
    const std::uint64_t place = (static_cast<std::uint64_t>(index) << 48U) +
                                (static_cast<std::uint64_t>(size) << 16U) +
                                (static_cast<std::uint64_t>(draw_index) << 8U) + tensors.size();
    const std::uint64_t seed = mix(input_seed_ ^ mix(place)); // apart for every tensor
    at::manual_seed(seed);
    tensors.push_back(draw(tensor, size));
    for (const Modifier modifier : tensor.modifiers) {
      modify(tensors.back(), modifier, mix(seed));
    }
  }
  return tensors;
}

at::Tensor Oracle::draw(const TensorSpec& tensor, int size) const {
  const auto options = at::TensorOptions(at::kFloat).device(device_);
  at::Tensor values = at::empty(shape_of(tensor, size), options);
  switch (tensor.distribution) {
  case Distribution::Normal:
    values.normal_();
    break;
  case Distribution::Uniform:
    values.uniform_(-1, 1);
    break;
  case Distribution::Positive:
    values.uniform_(0, 1);
    break;
  case Distribution::Zeros:
    values.zero_();
    break;
  case Distribution::Ones:
    values.fill_(1);
    break;
  }
  const double fan_in = tensor.fan_in.empty() ? 1 : problem_.dims(size).at(tensor.fan_in);
  return values.mul_(tensor.scale / std::sqrt(fan_in));
}

Tensors Oracle::small_integers(int size) const {
  at::manual_seed(mix(input_seed_ + static_cast<std::uint64_t>(size)));
  Tensors tensors;
  for (const TensorSpec& tensor : problem_.inputs) {
    tensors.push_back(
        at::randint(-2, 3, shape_of(tensor, size), at::TensorOptions(at::kFloat).device(device_)));
  }
  return tensors;
}

at::Tensor Oracle::reference(const Tensors& inputs, int size) const {
  return call("reference", inputs, size);
}

at::Tensor Oracle::call(const char* function, const Tensors& inputs, int size) const {
  // Operator by operator, as a Python caller runs it: no fusion.
  const torch::jit::GraphOptimizerEnabledGuard plain(false);
  c10::IValue result;
  try {
    result =
        script_->get_function(function)(std::vector<c10::IValue>(inputs.begin(), inputs.end()));
  } catch (const std::exception& error) {
    refuse_reference(problem_, error);
  }
  if (!result.isTensor() || result.toTensor().sizes() != shape_of(problem_.output, size)) {
    throw NoDevice(concat("the reference of ", problem_.name, " does not return one tensor of ",
                          problem_.output.name, "'s shape at ", at_size(size)));
  }
  return result.toTensor().contiguous();
}

at::Tensor Oracle::exact(const Tensors& inputs, int size) const {
  return call("reference", as_doubles(inputs), size);
}

at::Tensor Oracle::ideal(const Tensors& inputs, const at::Tensor& reference, int size) const {
  const at::Tensor exact = this->exact(inputs, size);
  const double error = relative_l2(reference, exact);
  if (precision_of(error) == "fp32") {
    return exact;
  }
  // Cancellation alone may also make a float32 result that bad.
  const at::Tensor rounded = call("rounded", as_doubles(inputs), size);
  return relative_l2(reference, rounded) < error ? rounded : exact;
}

Accuracy Oracle::compare(const at::Tensor& output, const at::Tensor& reference,
                         const at::Tensor& exact) const {
  Accuracy accuracy;
  accuracy.violations = at::isclose(output, reference, problem_.rtol, problem_.atol)
                            .logical_not()
                            .sum()
                            .item<double>();
  accuracy.max_abs_error = (output - reference).abs().max().item<double>();
  if (exact.defined()) {
    accuracy.relative_l2_error = relative_l2(output, exact);
  }
  return accuracy;
}

std::vector<int> Oracle::entry_dims(int size) const {
  const Dims dims = problem_.dims(size);
  std::vector<int> values;
  for (const std::string& name : problem_.dim_order) {
    values.push_back(dims.at(name));
  }
  return values;
}

std::vector<std::int64_t> Oracle::shape_of(const TensorSpec& tensor, int size) const {
  const std::vector<long> shape = resolve(tensor, problem_.dims(size));
  return {shape.begin(), shape.end()};
}

std::string Oracle::at_size(int size) const {
  return concat(problem_.vary, " = ", size);
}

std::string Oracle::elements(double count, int size) const {
  const auto shape = shape_of(problem_.output, size);
  return concat(count, " of ", c10::multiply_integers(shape), " elements of ",
                problem_.output.name);
}

std::string Oracle::complaint(const Accuracy& accuracy, int size) const {
  return concat(elements(accuracy.violations, size), " differ from the reference at ",
                at_size(size), " by more than ", problem_.atol, " + ", problem_.rtol,
                " |ref|; the largest difference is ", accuracy.max_abs_error);
}

double relative_l2(const at::Tensor& output, const at::Tensor& exact) {
  const double size = exact.norm().item<double>();
  const double error = (output.to(at::kDouble) - exact).norm().item<double>();
  return size > 0 ? error / size : error;
}

std::string precision_of(double relative_l2_error) {
  // One product: 3e-4 in TF32, about 1e-6 in float32.
  return relative_l2_error > 3e-5 ? "tf32" : "fp32";
}

} // namespace evo
