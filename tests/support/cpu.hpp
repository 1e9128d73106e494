// Running kernels on the CPU in tests: build once, run often, compare exactly.
#pragma once

#include <string>
#include <vector>

#include "fitness/cpu/executor.hpp"
#include "fitness/problem.hpp"
#include "tests/support/kernels.hpp"

namespace evo::test {

/// seeds/lora/problem.toml.
const Problem& lora();

/// Small integers give sums that are exact in float32, whatever the order; reals do not.
enum class Values { Integers, Reals };

std::vector<cpu::Tensor> inputs(const Problem& problem, int size, Values values);
/// All NaN.
cpu::Tensor output(const Problem& problem, int size);

/// The source lowered for a target and compiled, from the build folder's cache if it is there;
/// std::runtime_error with the reason if it has no lowering or does not compile.
std::filesystem::path cpu_library(const std::string& source,
                                  const Target& target = default_target());

/// What a source without fault computes, threads in shuffled order; std::runtime_error says what it
/// did wrong.
std::vector<float> cpu_result(const Problem& problem, const std::string& source, int size,
                              Values values);

/// Empty if both sources run without fault at every probe size of either and compute the same:
/// bit by bit on integers under all orders of threads, within 1e-4 on reals. Otherwise one
/// sentence that says what differs.
std::string cpu_difference(const Problem& problem, const std::string& before,
                           const std::string& after);

/// Empty if both sources compute the same at each of `sizes`, with threads in shuffled order: reals
/// bit by bit where sums keep their order, otherwise integers. A source that runs without fault is
/// taken to be right about itself: `before` is run once, whatever it is compared with. `after` runs
/// under the limits of `target`.
std::string cpu_difference_at(const Problem& problem, const std::string& before,
                              const std::string& after, const std::vector<int>& sizes,
                              bool keeps_order, const Target& target = default_target());

/// Those of `sizes` at which two sources of the LoRA product give other bits, on reals and with
/// threads in shuffled order; std::runtime_error says what a kernel did wrong.
std::vector<int> sizes_with_other_bits(const std::string& before, const std::string& after,
                                       const std::vector<int>& sizes);

} // namespace evo::test
