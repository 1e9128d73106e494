// The recorded trails of docs/trails: every rewrite of them applies, and what keeps the order of
// sums computes what one chain of fused multiply-adds per output does, k ascending, with the
// low-rank sum in a chain of its own that is added last, to the bit.
#include <bit>
#include <cmath>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "population/trail_file.hpp"
#include "population/variation.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/trails.hpp"

namespace evo::test {
namespace {

constexpr int rank = 16;

std::size_t at(int row, int col, int columns) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
         static_cast<std::size_t>(col);
}

/// The sum over k of left(k) right(k) as one chain.
template <typename Left, typename Right> float chain(int depth, Left left, Right right) {
  float sum = 0;
  for (int k = 0; k < depth; ++k) {
    sum = std::fmaf(left(k), right(k), sum);
  }
  return sum;
}

std::vector<float> sequential(int d) {
  const std::vector<cpu::Tensor> tensors = inputs(lora(), d, Values::Reals);
  const auto& [W, X, A, B] =
      std::tie(tensors[0].values, tensors[1].values, tensors[2].values, tensors[3].values);
  std::vector<float> T;
  for (int low = 0; low < rank; ++low) {
    for (int col = 0; col < d; ++col) {
      T.push_back(chain(
          d, [&](int k) { return B[at(k, low, rank)]; }, [&](int k) { return X[at(k, col, d)]; }));
    }
  }
  std::vector<float> Y;
  for (int row = 0; row < d; ++row) {
    for (int col = 0; col < d; ++col) {
      const float sum = chain(
          d, [&](int k) { return W[at(row, k, d)]; }, [&](int k) { return X[at(k, col, d)]; });
      const float low = chain(
          rank, [&](int k) { return A[at(row, k, rank)]; },
          [&](int k) { return T[at(k, col, d)]; });
      Y.push_back(sum + low);
    }
  }
  return Y;
}

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> result;
  for (const float value : values) {
    result.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return result;
}

bool is_sequential(const Genome& genome, int d) {
  return bits(cpu_result(lora(), genome.source, d, Values::Reals)) == bits(sequential(d));
}

/// What docs/trails/<ladder>_<seed>.trail leads to.
Genome recorded(const std::string& ladder, const std::string& name,
                const Target& target = default_target()) {
  const auto trail = load_trail(in_repository("docs/trails") / (ladder + '_' + name + ".trail"));
  const auto result = replay(lora_seed(name), trail, {mutators(), target});
  const auto* failure = std::get_if<ReplayFailure>(&result);
  if (failure != nullptr) {
    throw std::runtime_error(to_string(trail[failure->gene]) + " does not apply");
  }
  return std::get<Genome>(result);
}

TEST(Ladder, SeedsAreSequential) {
  EXPECT_TRUE(is_sequential(lora_seed("naive"), 33));
  EXPECT_TRUE(is_sequential(lora_seed("tiled"), 67));
}

TEST(Ladder, OrderedFfmaIsSequential) {
  const Genome genome = recorded("ffma_ordered", "tiled");
  EXPECT_TRUE(genome.keeps_order);
  EXPECT_TRUE(is_sequential(genome, 131));
  EXPECT_TRUE(is_sequential(genome, 128));
}

void expect_seed_values(const std::string& ladder, const std::string& name,
                        const std::vector<int>& sizes, const Target& target = default_target()) {
  const Genome genome = recorded(ladder, name, target);
  EXPECT_FALSE(genome.keeps_order);
  EXPECT_EQ(cpu_difference_at(lora(), lora_seed(name).source, genome.source, sizes, false, target),
            "");
}

TEST(Ladder, FoldedFfmaComputesWhatTheSeedsDo) {
  const Target h200 = Target::find("sm_90").value();
  expect_seed_values("ffma", "tiled", {131, 256}, h200);
  expect_seed_values("ffma", "naive", {131}, h200);
}

TEST(Ladder, TensorCoresComputeWhatTheSeedsDo) {
  const Target h200 = Target::find("sm_90").value();
  expect_seed_values("tensor_fp16x3", "tiled", {256}, h200);
  expect_seed_values("tensor_bf16x3", "tiled", {67}, h200);
  expect_seed_values("tensor_fp16x3", "naive", {67}, h200);
}

// No step on the way there makes a kernel faster by itself.
TEST(Ladder, TensorCoresAreOneMutationFromTheSeed) {
  const Dialect dialect{mutators(), Target::find("sm_90").value()};
  const Genome seed = lora_seed("tiled");
  EXPECT_THAT(*dialect.proposals(seed, split_operands()), testing::IsEmpty());
  const Genome ready = prepared(seed, split_operands(), dialect);
  EXPECT_THAT(*dialect.proposals(ready, split_operands()), testing::SizeIs(1));
}

// Nor does a search get there by first making the most of other arithmetic.
TEST(Ladder, TensorCoresAreOneMutationFromKernelsOfASearch) {
  const Dialect dialect{mutators(), Target::find("sm_90").value()};
  const std::vector<std::vector<Gene>> trails = {
      {{"load_fragments", "gemm/k fragments"},
       {"reshape_tile", "gemm/gemm_block_k 16"},
       {"vectorise_access", "gemm/w copy vector 2"},
       {"double_buffer", "gemm/k0 double buffer"},
       {"fold_low_rank", "gemm/W fold update"},
       {"unroll_loop", "gemm/i unroll 4"}},
      {{"tile_reduction", "project/k tile 16x32x64, 2x2 per thread"},
       {"pipeline_copies", "gemm/k0 stages 2 async x"},
       {"stage_epilogue", "gemm/epilogue 32 rows"},
       {"persist_blocks", "gemm/blocks persistent 132"}},
  };
  for (const std::vector<Gene>& trail : trails) {
    const Followed parent = follow(lora_seed("tiled"), trail, dialect);
    EXPECT_THAT(to_strings(parent.dropped), testing::IsEmpty());
    const Genome ready = prepared(parent.genome, split_operands(), dialect);
    EXPECT_THAT(*dialect.proposals(ready, split_operands()), testing::SizeIs(1));
  }
}

TEST(Ladder, LongOtherStrategiesComputeWhatTheSeedsDo) {
  const Target h200 = Target::find("sm_90").value();
  expect_seed_values("tensor_bf16x3_promoted", "tiled", {67, 128}, h200);
  expect_seed_values("tensor_bf16x3_pieces", "tiled", {67, 128}, h200);
  expect_seed_values("tensor_bf16x6", "tiled", {67, 128}, h200);
  expect_seed_values("tensor_tf32x3", "tiled", {67, 128}, h200);
}

} // namespace
} // namespace evo::test
