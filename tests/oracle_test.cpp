// What LibTorch is made to compute: the ideal of a TF32 reference, the contents of cases, figures.
#include "fitness/oracle.hpp"

#include <cmath>
#include <functional>

#include <gmock/gmock.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/jit.h>

#include "fitness/rounded_script.hpp"
#include "fitness/truth.hpp"

namespace evo {
namespace {

TensorSpec matrix(const std::string& name, std::vector<Modifier> modifiers = {}) {
  return {.name = name, .shape = {"n", "n"}, .fan_in = {}, .modifiers = std::move(modifiers)};
}

Problem product() {
  Problem problem;
  problem.name = "product";
  problem.vary = "n";
  problem.dim_order = {"n"};
  problem.inputs = {matrix("W"), matrix("X")};
  problem.output = matrix("Y");
  problem.rtol = 1e-4;
  problem.atol = 1e-4;
  problem.cases = {{.name = "harness", .level = Level::Harness, .inputs = problem.inputs}};
  problem.reference = "def reference(W, X):\n    return W @ (W @ X)\n";
  return problem;
}

Oracle oracle_of(const Problem& problem) {
  return Oracle(problem, at::kCPU, 7);
}

/// To 10 bits of mantissa, to nearest, ties away from zero, by arithmetic.
double rounded(double value) {
  if (value == 0) {
    return 0;
  }
  const double unit = std::exp2(std::floor(std::log2(std::abs(value))) - 10);
  return std::round(value / unit) * unit;
}

at::Tensor rounded(const at::Tensor& values) {
  at::Tensor result = values.to(at::kDouble).clone().contiguous();
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    double& value = result.data_ptr<double>()[i];
    value = rounded(static_cast<double>(static_cast<float>(value)));
  }
  return result;
}

at::Tensor call_rounded(const std::string& body, const Tensors& inputs) {
  const auto script = torch::jit::compile("def reference(a, b, c):\n" + body);
  add_rounded_function(*script, "reference", "rounded");
  return script->get_function("rounded")({inputs[0], inputs[1], inputs[2]}).toTensor();
}

class Rounding : public testing::Test {
protected:
  at::Tensor draw() const { return at::randn({5, 5}, at::kDouble).to(at::kFloat).to(at::kDouble); }

  Tensors inputs_{draw(), draw(), draw()};
};

TEST_F(Rounding, FactorsAreRoundedAndIntermediateOnesToo) {
  const at::Tensor found = call_rounded("    return a @ (b @ c)\n", inputs_);
  const at::Tensor inner = rounded(inputs_[1]).matmul(rounded(inputs_[2]));
  EXPECT_TRUE(at::equal(found, rounded(inputs_[0]).matmul(rounded(inner))));
}

TEST_F(Rounding, SumsAreNot) {
  const at::Tensor expected = inputs_[2] + rounded(inputs_[0]).matmul(rounded(inputs_[1]));
  EXPECT_TRUE(at::equal(call_rounded("    return c + a @ b\n", inputs_), expected));
  EXPECT_TRUE(call_rounded("    return torch.addmm(c, a, b)\n", inputs_).allclose(expected, 1e-14));
}

TEST_F(Rounding, BranchesAreSeen) {
  EXPECT_TRUE(at::equal(
      call_rounded("    y = c\n    if a.size(0) > 2:\n        y = torch.mm(a, b)\n    return y\n",
                   inputs_),
      rounded(inputs_[0]).matmul(rounded(inputs_[1]))));
}

TEST_F(Rounding, TheOriginalStays) {
  const auto script = torch::jit::compile("def reference(a, b):\n    return a @ b\n");
  add_rounded_function(*script, "reference", "rounded");
  EXPECT_TRUE(at::equal(script->get_function("reference")({inputs_[0], inputs_[1]}).toTensor(),
                        inputs_[0].matmul(inputs_[1])));
}

TEST(Ideal, OfAFloat32ReferenceIsTheExactResult) {
  const Oracle oracle = oracle_of(product());
  const Tensors inputs = oracle.inputs(64, 0);
  const at::Tensor reference = oracle.reference(inputs, 64);
  EXPECT_TRUE(at::equal(oracle.ideal(inputs, reference, 64), oracle.exact(inputs, 64)));
}

TEST(Ideal, OfATf32ReferenceHasItsRoundedFactors) {
  const Oracle oracle = oracle_of(product());
  const Tensors inputs = oracle.inputs(64, 0);
  const at::Tensor w = rounded(inputs[0]);
  const at::Tensor expected = w.matmul(rounded(w.matmul(rounded(inputs[1]))));
  const at::Tensor reference = expected.to(at::kFloat); // what a card would give, about
  EXPECT_GT(relative_l2(reference, oracle.exact(inputs, 64)), 1e-4);
  EXPECT_LT(relative_l2(oracle.ideal(inputs, reference, 64), expected), 1e-12);
}

at::Tensor drawn(std::vector<Modifier> modifiers) {
  Problem problem = product();
  problem.cases.push_back(
      {.name = "other", .inputs = {matrix("W", std::move(modifiers)), matrix("X")}});
  return oracle_of(problem).case_inputs(1, 65, 0)[0]; // an odd size: the last has no partner
}

TEST(Contents, OneRowOrColumnIsLarge) {
  const auto large = [](const at::Tensor& values, std::int64_t axis) {
    return values.abs().mean(axis).gt(100).sum().item<std::int64_t>();
  };
  EXPECT_EQ(large(drawn({Modifier::LargeRow}), 1), 1);
  EXPECT_EQ(large(drawn({Modifier::LargeColumn}), 0), 1);
  EXPECT_EQ(large(drawn({}), 0), 0);
}

TEST(Contents, PairsCancelOrAreAlike) {
  const at::Tensor columns = drawn({Modifier::OppositeColumns});
  EXPECT_EQ((columns.select(1, 2) + columns.select(1, 3)).abs().max().item<float>(), 0);
  EXPECT_GT(columns.select(1, 64).abs().max().item<float>(), 0);
  const at::Tensor rows = drawn({Modifier::OppositeRows});
  EXPECT_EQ((rows.select(0, 62) + rows.select(0, 63)).abs().max().item<float>(), 0);
  const at::Tensor alike = drawn({Modifier::AlikeRows});
  const float difference = (alike.select(0, 0) - alike.select(0, 1)).abs().max().item<float>();
  EXPECT_GT(difference, 0);
  EXPECT_LT(difference, 0.01);
}

TEST(Contents, CasesAndDrawsDifferAndRepeat) {
  Problem problem = product();
  problem.cases.push_back({.name = "same", .inputs = problem.inputs});
  const Oracle oracle = oracle_of(problem);
  const at::Tensor first = oracle.case_inputs(0, 9, 0)[0];
  EXPECT_TRUE(at::equal(first, oracle.inputs(9, 0)[0])) << "the first case is what is timed";
  EXPECT_TRUE(at::equal(first, oracle.case_inputs(0, 9, 0)[0]));
  EXPECT_FALSE(at::equal(first, oracle.case_inputs(1, 9, 0)[0]));
  EXPECT_FALSE(at::equal(first, oracle.case_inputs(0, 9, 1)[0]));
}

class Figures : public testing::Test {
protected:
  CaseFigures of(const std::function<void(at::Tensor&)>& change) const {
    at::Tensor output = truth_.reference.clone();
    change(output);
    return measure(oracle_, truth_, output);
  }

  Oracle oracle_ = oracle_of(product());
  Truth truth_ = find_truth(oracle_, oracle_.inputs(33, 0), 33);
};

TEST_F(Figures, OfTheReferenceItself) {
  const CaseFigures figures = of([](at::Tensor&) {});
  EXPECT_EQ(figures.max_error, 0);
  EXPECT_EQ(figures.violations, 0);
  EXPECT_NEAR(figures.rms_error / figures.reference_rms_error, 1, 1e-6);
  EXPECT_NEAR(figures.output_rms, 33, 5);
  EXPECT_GT(figures.ideal_error, 0);
  EXPECT_FALSE(figures.zero_passes);
}

TEST_F(Figures, OfOneWrongElement) {
  const CaseFigures figures = of([](at::Tensor& output) { output[3][4] = 1e3; });
  EXPECT_EQ(figures.violations, 1);
  EXPECT_GT(figures.max_error, 1000);
  EXPECT_NEAR(figures.rms_error, 1e3 / 33, 5);
}

TEST_F(Figures, ANaNIsSeenAndIsNoNumber) {
  const CaseFigures figures = of([](at::Tensor& output) { output[3][4] = NAN; });
  EXPECT_EQ(figures.violations, 1);
  EXPECT_EQ(figures.max_error, no_number);
  EXPECT_EQ(figures.rms_error, no_number);
  EXPECT_TRUE(find_fault(figures, 1e-4));
}

TEST(Truths, OfZerosTellThatZerosPass) {
  Problem problem = product();
  problem.inputs[0].distribution = Distribution::Zeros;
  problem.atol = 0;
  const Oracle oracle = oracle_of(problem);
  const Truth truth = find_truth(oracle, oracle.inputs(9, 0), 9);
  EXPECT_TRUE(truth.figures.zero_passes);
  EXPECT_EQ(find_fault(measure(oracle, truth, truth.reference), 1e-4), std::nullopt);
  EXPECT_TRUE(find_fault(measure(oracle, truth, truth.reference + 1e-30), 1e-4));
}

} // namespace
} // namespace evo
