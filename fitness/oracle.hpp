// What is right: inputs, the reference as PyTorch computes it, and the same in float64.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "fitness/fitness.hpp"
#include "fitness/problem.hpp"

namespace torch::jit {
struct CompilationUnit;
}

namespace evo {

using Tensors = std::vector<at::Tensor>;

struct Accuracy {
  double violations = 0; // elements outside |y - ref| <= atol + rtol |ref|
  double max_abs_error = 0;
  double relative_l2_error = 0; // against float64
};

class Oracle {
public:
  /// NoDevice when the problem's TorchScript does not compile.
  Oracle(Problem problem, at::Device device, std::uint64_t input_seed);

  const Problem& problem() const { return problem_; }
  at::Device device() const { return device_; }

  /// Inputs as the problem specifies them: a function of (input seed, size, draw).
  Tensors inputs(int size, int draw) const;
  /// The same of the problem's case of that index.
  Tensors case_inputs(std::size_t index, int size, int draw) const;
  /// Whole numbers in [-2, 2]: products and sums of a small size are exact in float32.
  Tensors small_integers(int size) const;

  /// In the reference's own precision. NoDevice when it fails, or when its result is not what the
  /// problem says.
  at::Tensor reference(const Tensors& inputs, int size) const;
  /// In float64.
  at::Tensor exact(const Tensors& inputs, int size) const;
  /// In float64, of the operands that the reference, which gave `reference`, multiplies: rounded
  /// to TF32 where it was found to do that, else as they are.
  at::Tensor ideal(const Tensors& inputs, const at::Tensor& reference, int size) const;

  /// `exact` undefined: relative_l2_error stays 0.
  Accuracy compare(const at::Tensor& output, const at::Tensor& reference,
                   const at::Tensor& exact) const;

  /// The dims at `size`, as the entry takes them.
  std::vector<int> entry_dims(int size) const;
  std::vector<std::int64_t> shape_of(const TensorSpec& tensor, int size) const;
  /// "d = 4096", for messages.
  std::string at_size(int size) const;
  /// "3 of 4096 elements of Y", for messages.
  std::string elements(double count, int size) const;
  /// The sentence for a failed comparison.
  std::string complaint(const Accuracy& accuracy, int size) const;

private:
  Tensors inputs(const std::vector<TensorSpec>& specs, std::size_t index, int size, int draw) const;
  at::Tensor call(const char* function, const Tensors& inputs, int size) const;
  at::Tensor draw(const TensorSpec& tensor, int size) const;

  Problem problem_;
  at::Device device_;
  std::uint64_t input_seed_;
  std::shared_ptr<torch::jit::CompilationUnit> script_;
};

double relative_l2(const at::Tensor& output, const at::Tensor& exact);

/// "tf32" or "fp32", by a reference's relative error against float64.
std::string precision_of(double relative_l2_error);

} // namespace evo
