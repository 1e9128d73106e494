// Matrices in the workspace laid out anew, among all other rewrites; the goldens run in
// mutators_test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/registry.hpp"
#include "tests/support/kernels.hpp"

namespace evo::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const char* const label = "gemm/folded transpose";
const Trail fold{{&fold_low_rank(), "gemm/W fold update"}};
const Trail turn{{&relayout_matrix(), label}};
const Trail tiles{{&relayout_tile(), "gemm/w transpose"}, {&load_fragments(), "gemm/k fragments"}};

const std::string& folded() {
  static const std::string source =
      followed(canonical(read(in_repository("seeds/lora/tiled.cu"))), fold);
  return source;
}

const std::string& turned() {
  static const std::string source = followed(folded(), turn);
  return source;
}

std::string golden() {
  return read(in_repository("tests/mutators/relayout_matrix/before.cu"));
}

TEST(RelayoutMatrix, TurnsTheWriterAndTheReader) {
  EXPECT_THAT(turned(), AllOf(HasSubstr("folded[col * d + row] = W[row * d + col] + sum;"),
                              HasSubstr("const int k = i / gemm_block_m;\n"
                                        "      const int row = i % gemm_block_m;"),
                              HasSubstr("W[(k0 + k) * d + block_row + row]")));
}

TEST(RelayoutMatrix, IsItsOwnInverse) {
  EXPECT_EQ(followed(turned(), turn), folded());
}

TEST(RelayoutMatrix, MayComeBeforeOrAfterOtherRewrites) {
  for (const auto& [mutator, other] : Trail{{&relayout_tile(), "gemm/w transpose"},
                                            {&vectorise_access(), "gemm/x copy vector 4"},
                                            {&vectorise_access(), "fold/B load vector 4"},
                                            {&remap_threads(), "gemm/lanes 4x8"},
                                            {&double_buffer(), "gemm/k0 double buffer"},
                                            {&pipeline_copies(), "gemm/k0 stages 3 async"}}) {
    SCOPED_TRACE(other);
    EXPECT_EQ(apply(*mutator, turned(), other), followed(apply(*mutator, folded(), other), turn));
  }
}

TEST(RelayoutMatrix, GivesRowsAPitchOnceWhateverReadsThem) {
  const Trail pitch{{&relayout_matrix(), "gemm/folded pitch 4"}};
  const std::string wide = apply(vectorise_access(), turned(), "fold/folded store vector 4");
  EXPECT_THAT(followed(wide, pitch),
              AllOf(HasSubstr("folded[col * folded_pitch + row + 3] = "),
                    HasSubstr("W[(k0 + k) * folded_pitch + block_row + row]"),
                    HasSubstr("return sizeof(float) * d * ((d + 3) / 4 * 4);"),
                    HasSubstr("const int folded_pitch = (d + 3) / 4 * 4;")));
  EXPECT_EQ(followed(turned(), pitch), followed(followed(folded(), pitch), turn));
  EXPECT_THAT(labels(relayout_matrix(), followed(folded(), pitch)), ElementsAre(label));
}

TEST(RelayoutMatrix, LeavesAKernelWithAPitchToOtherRewrites) {
  const Trail pitch{{&relayout_matrix(), "gemm/folded pitch 4"}};
  const std::string pitched = followed(turned(), pitch);
  for (const Mutator* mutator : mutators()) {
    if (mutator != &relayout_matrix()) {
      EXPECT_EQ(labels(*mutator, pitched), labels(*mutator, turned())) << mutator->about().name;
    }
  }
}

TEST(RelayoutMatrix, MakesCopiesIntoATransposedTileWide) {
  const Trail wide{{&vectorise_access(), "gemm/w copy vector 4"},
                   {&vectorise_access(), "fold/folded store vector 4"},
                   {&pipeline_copies(), "gemm/k0 stages 3 async"}};
  EXPECT_THAT(followed(followed(turned(), tiles), wide),
              AllOf(ContainsRegex("&W.\\(k0 \\+ k\\) \\* d \\+ block_row \\+ row.,[[:space:]]+"
                                  "sizeof\\(float4\\)\\);"),
                    HasSubstr("*reinterpret_cast<float4 *>(&folded[col * d + row])")));
}

TEST(RelayoutMatrix, TransposesNoNeighboursThatAreTakenAtOnce) {
  for (const auto& wide : {apply(vectorise_access(), folded(), "gemm/w copy vector 4"),
                           apply(vectorise_access(), turned(), "fold/folded store vector 4")}) {
    EXPECT_THAT(labels(relayout_matrix(), wide), ElementsAre("gemm/folded pitch 4"));
  }
}

TEST(RelayoutMatrix, FollowsOtherFormsOfTheSame) {
  for (const auto& [one, other] : std::vector<std::pair<std::string, std::string>>{
           {"W[(block_row + row) * d + k0 + k]", "W[k0 + k + d * (block_row + row)]"},
           {"scaled[row * d + col] =", "const int at = row * d + col;\n    scaled[at] ="},
           {"i < gemm_block_m * gemm_block_k", "i < gemm_block_k * gemm_block_m"},
       }) {
    SCOPED_TRACE(other);
    EXPECT_THAT(labels(relayout_matrix(), replaced(golden(), one, other)),
                Contains("gemm/scaled transpose"));
  }
}

TEST(RelayoutMatrix, LeavesLoopsAloneThatReadColumnsAlready) {
  const std::string columns =
      replaced(replaced(golden(), "row = i / gemm_block_k", "row = i % gemm_block_m"),
               "k = i % gemm_block_k", "k = i / gemm_block_m");
  EXPECT_THAT(apply(relayout_matrix(), columns, "gemm/scaled transpose"),
              AllOf(HasSubstr("row = i % gemm_block_m"), HasSubstr("k = i / gemm_block_m")));
}

TEST(RelayoutMatrix, RefusesWhatItCannotProve) {
  for (const auto& [right, wrong] : std::vector<std::pair<std::string, std::string>>{
           {"scaled[row * d + col] =", "scaled[row * d + col] +="},
           {"scaled[row * d + col] = ", "scaled[row * d + col] = scaled[0 * d + col] + "},
           {"float *scaled = static_cast<float *>(workspace)",
            "float *scaled = static_cast<float *>(workspace) + 1"},
           {"sizeof(float) * d * d", "sizeof(float) * d * (d - 1)"},
           {"W[(block_row + row) * d + k0 + k]", "(&W[(block_row + row) * d])[k0 + k]"},
           {"if (col < d) {", "if (col < d && row < 7) {"},
       }) {
    EXPECT_THAT(labels(relayout_matrix(), replaced(golden(), right, wrong)), IsEmpty()) << wrong;
  }
}

} // namespace
} // namespace evo::test
