// What reshape_tile reaches and what it refuses; its goldens run in mutators_test.
#include <algorithm>
#include <set>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/kernels.hpp"

namespace evo::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

std::string tiled() {
  return canonical(read(in_repository("seeds/lora/tiled.cu")));
}

std::string with(std::string source, const std::string& constant, int value) {
  const std::string declaration = "constexpr int " + constant + " = ";
  const std::size_t at = source.find(declaration) + declaration.size();
  return source.replace(at, source.find(';', at) - at, std::to_string(value));
}

/// The tiled seed with the tiles that a search should arrive at.
std::string large() {
  std::string source = tiled();
  for (const auto& [constant, value] :
       {std::pair("gemm_block_m", 128), std::pair("gemm_block_n", 128),
        std::pair("gemm_thread_m", 8), std::pair("gemm_thread_n", 8),
        std::pair("gemm_block_k", 32)}) {
    source = with(source, constant, value);
  }
  return source;
}

/// What is proposed for gemm; the other kernels' constants are made derived ones to save time.
std::vector<std::string> gemm_labels(const std::string& source, const char* arch = "sm_86") {
  const std::string alone =
      replaced(replaced(source, "project_threads = 256", "project_threads = 2 * 128"),
               "update_threads = 256", "update_threads = 2 * 128");
  const Kernel kernel = std::get<Kernel>(Kernel::parse(alone, *Target::find(arch)));
  std::vector<std::string> result;
  for (const Rewrite& rewrite : reshape_tile().propose(kernel)) {
    if (rewrite.label.starts_with("gemm/")) {
      result.push_back(rewrite.label);
    }
  }
  return result;
}

TEST(ReshapeTile, ReachesLargeTilesInFewGenes) {
  std::string source = tiled();
  for (const char* label :
       {"gemm/gemm_block_m 128, gemm_thread_m 8", "gemm/gemm_block_n 128, gemm_thread_n 8",
        "gemm/gemm_block_k 16", "gemm/gemm_block_m 256"}) {
    source = apply(reshape_tile(), source, label);
  }
  EXPECT_THAT(source, AllOf(HasSubstr("gemm_block_m = 256;"), HasSubstr("gemm_block_n = 128;"),
                            HasSubstr("gemm_block_k = 16;"), HasSubstr("gemm_thread_m = 8;"),
                            HasSubstr("gemm_thread_n = 8;")));
}

TEST(ReshapeTile, TakesBothSidesInOneStep) {
  const std::string source =
      apply(reshape_tile(), tiled(),
            "gemm/gemm_block_m 128, gemm_thread_m 8, gemm_block_n 128, gemm_thread_n 8");
  EXPECT_EQ(source, with(with(with(with(tiled(), "gemm_block_m", 128), "gemm_thread_m", 8),
                              "gemm_block_n", 128),
                         "gemm_thread_n", 8));
}

/// Where the file divides each block tile by each thread tile, two pairs make the same step.
TEST(ReshapeTile, ComesToTheSameValuesOnce) {
  const std::string source =
      followed(tiled(), {{&remap_threads(), "gemm/lanes 8x4"},
                         {&remap_threads(), "gemm/thread_row groups 1 in warps"}});
  const Kernel kernel = parse(source);
  std::set<std::string> sources;
  for (const Rewrite& rewrite : reshape_tile().propose(kernel)) {
    EXPECT_TRUE(sources.insert(apply_edits(source, rewrite.edits)).second) << rewrite.label;
  }
}

TEST(ReshapeTile, UndoesItself) {
  const std::string larger =
      apply(reshape_tile(), tiled(), "gemm/gemm_block_n 128, gemm_thread_n 8");
  EXPECT_EQ(apply(reshape_tile(), larger, "gemm/gemm_block_n 64, gemm_thread_n 4"), tiled());
}

TEST(ReshapeTile, WorksAfterTheOtherRewrites) {
  for (const Mutator* mutator :
       {&unroll_loop(), &fuse_epilogue(), &double_buffer(), &relayout_tile()}) {
    SCOPED_TRACE(mutator->about().name);
    const Proposals proposals(*mutator, tiled());
    ASSERT_THAT(proposals.labels(), Not(IsEmpty()));
    for (const std::string& label : {proposals.labels().front(), proposals.labels().back()}) {
      SCOPED_TRACE(label);
      EXPECT_THAT(labels(reshape_tile(), proposals.apply(label)),
                  AllOf(Contains("gemm/gemm_block_m 128, gemm_thread_m 8"),
                        Contains("gemm/gemm_block_k 16")));
    }
  }
}

TEST(ReshapeTile, LeavesAPaddingAlone) {
  const std::string padded = apply(relayout_tile(), tiled(), "gemm/w pad 4");
  EXPECT_EQ(labels(reshape_tile(), padded), labels(reshape_tile(), tiled()));
}

TEST(ReshapeTile, LeavesTheProblemsConstantsAlone) {
  EXPECT_THAT(labels(reshape_tile(), tiled()), Not(Contains(HasSubstr("rank"))));
  const std::string unguarded =
      replaced(tiled(), "if (r != rank) {\n    return cudaErrorInvalidValue;\n  }", "");
  EXPECT_THAT(labels(reshape_tile(), unguarded), Not(Contains(HasSubstr("rank"))));
}

TEST(ReshapeTile, KeepsTheThreadCountThatALaunchSpellsOut) {
  const std::string source =
      replaced(tiled(), "gemm_threads,\n         sizeof", "256,\n         sizeof");
  EXPECT_THAT(gemm_labels(source),
              AllOf(Contains("gemm/gemm_block_m 128, gemm_thread_m 8"),
                    Not(Contains("gemm/gemm_block_m 128")), Not(Contains("gemm/gemm_block_m 32"))));
}

TEST(ReshapeTile, KeepsAKTileThatTheLoopSpellsOut) {
  const std::string source = replaced(tiled(), "k0 += gemm_block_k", "k0 += 8");
  EXPECT_THAT(gemm_labels(source),
              AllOf(Contains("gemm/gemm_block_m 128"), Not(Contains(HasSubstr("gemm_block_k")))));
}

TEST(ReshapeTile, KeepsWithinSharedMemory) {
  EXPECT_THAT(gemm_labels(large()), Contains("gemm/gemm_block_k 64"));
  const std::string wider = with(large(), "gemm_block_m", 256);
  EXPECT_THAT(gemm_labels(wider), Contains("gemm/gemm_block_k 64")) << "96 KiB";
  EXPECT_THAT(gemm_labels(wider, "sm_75"), Not(Contains("gemm/gemm_block_k 64"))) << "of 64 KiB";
  const std::string unasked = replaced(
      large(),
      "cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(GemmTiles));",
      "");
  EXPECT_THAT(gemm_labels(unasked), Not(Contains("gemm/gemm_block_k 64"))) << "of 48 KiB";
}

TEST(ReshapeTile, KeepsWithinThreadsAndRegisters) {
  const std::string many = with(large(), "gemm_thread_m", 2);
  EXPECT_THAT(gemm_labels(many),
              AllOf(Contains("gemm/gemm_block_m 64"), Not(Contains("gemm/gemm_block_m 256")),
                    Not(Contains("gemm/gemm_thread_n 4"))))
      << "1024 threads";
  const std::string held = with(large(), "gemm_thread_m", 16);
  EXPECT_THAT(gemm_labels(held),
              AllOf(Contains("gemm/gemm_thread_n 4"), Not(Contains("gemm/gemm_thread_n 16"))))
      << "256 accumulators";
}

TEST(ReshapeTile, KeepsStaticAssertionsAndExactDivisions) {
  const std::string source =
      replaced(tiled(), "struct GemmTiles", "static_assert(gemm_block_k <= 16);\nstruct GemmTiles");
  EXPECT_THAT(gemm_labels(source),
              AllOf(Contains("gemm/gemm_block_k 16"), Not(Contains("gemm/gemm_block_k 32"))));
  const std::string odd = with(with(tiled(), "gemm_block_m", 96), "gemm_thread_m", 6);
  EXPECT_THAT(gemm_labels(odd),
              AllOf(Contains("gemm/gemm_thread_m 3"), Not(Contains("gemm/gemm_thread_m 5"))));
}

// Where a padded copy of a matrix lies in the workspace is as it pleases, as long as all kernels
// agree on it.
TEST(ReshapeTile, MovesWhatLiesInTheWorkspace) {
  const std::string split = read(in_repository("tests/mutators/split_operands/after.cu"));
  EXPECT_THAT(labels(reshape_tile(), split),
              IsSupersetOf({"multiply/block_m 64", "multiply/block_n 16", "multiply/block_k 16",
                            "multiply/block_m 64, thread_m 8, block_n 64, thread_n 8"}));
  const auto refused = [&](const std::string& what, const std::string& by, const char* constant) {
    EXPECT_THAT(labels(reshape_tile(), replaced(split, what, by)),
                AllOf(Not(Contains(HasSubstr(constant))), Contains("multiply/block_k 64")))
        << what;
  };
  refused("const int split_rows = round_up(d, block_m);", "const int split_rows = round_up(d, 32);",
          "block_m");
  refused("* x_rows + block_col)", "* x_rows + blockIdx.x * 32)", "block_n");
  EXPECT_THAT(labels(reshape_tile(),
                     replaced(split, "round_up(d, block_k) / 2 +", "round_up(d, 32) / 2 +")),
              Not(Contains("multiply/block_k 64")))
      << "behind the end of the workspace";
}

TEST(ReshapeTile, RefusesWhatIsRaceyOrReadsOutside) {
  const std::string racy = replaced(tiled(), "__syncthreads();", "");
  EXPECT_THAT(gemm_labels(racy), IsEmpty());
  const std::string unguarded = replaced(tiled(), "row < d && col < d", "col < d");
  EXPECT_THAT(gemm_labels(unguarded), Not(Contains("gemm/gemm_block_m 128")));
}

} // namespace
} // namespace evo::test
