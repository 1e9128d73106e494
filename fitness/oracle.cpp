#include "fitness/oracle.hpp"

#include <cmath>

#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/jit.h>

#include "fitness/concat.hpp"
#include "fitness/device.hpp"

namespace evo {
namespace {

/// Apart for every tensor of every size and draw (the finaliser of splitmix64).
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

/// LibTorch throws types of many kinds; the first line is the message, a backtrace follows.
[[noreturn]] void refuse_reference(const Problem& problem, const std::exception& error) {
  const std::string message = error.what();
  throw NoDevice(concat("the TorchScript reference of ", problem.name,
                        " fails: ", message.substr(0, message.find('\n'))));
}

} // namespace

Oracle::Oracle(Problem problem, at::Device device, std::uint64_t input_seed)
    : problem_(std::move(problem)), device_(device), input_seed_(input_seed) {
  try {
    script_ = torch::jit::compile(problem_.reference);
  } catch (const std::exception& error) {
    refuse_reference(problem_, error);
  }
}

Tensors Oracle::inputs(int size, int draw_index) const {
  Tensors tensors;
  for (const TensorSpec& tensor : problem_.inputs) {
    const std::uint64_t place = (static_cast<std::uint64_t>(size) << 16) +
                                (static_cast<std::uint64_t>(draw_index) << 8) + tensors.size();
    at::manual_seed(mix(input_seed_ ^ mix(place)));
    tensors.push_back(draw(tensor, size));
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
  // Operator by operator, as a Python caller runs it: no fusion.
  const torch::jit::GraphOptimizerEnabledGuard plain(false);
  c10::IValue result;
  try {
    result =
        script_->get_function("reference")(std::vector<c10::IValue>(inputs.begin(), inputs.end()));
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
  Tensors doubles;
  for (const at::Tensor& input : inputs) {
    doubles.push_back(input.to(at::kDouble));
  }
  return reference(doubles, size);
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
