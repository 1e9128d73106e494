#include "mutators/rewrite.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace evo {
namespace {

TEST(ApplyEdits, ReplacesInsertsAndDeletes) {
  EXPECT_EQ(apply_edits("abcdef", {{0, 0, ">"}, {1, 2, "X"}, {5, 1, ""}}), ">aXde");
}

TEST(ApplyEdits, InsertsBeforeAReplacementAtTheSameOffset) {
  std::vector<Edit> edits{{1, 1, "B"}, {1, 0, "-"}};
  sort_edits(edits);
  EXPECT_EQ(apply_edits("abc", edits), "a-Bc");
}

TEST(ApplyEdits, RejectsOverlapDisorderAndWhatLiesOutside) {
  EXPECT_THROW(apply_edits("abc", {{0, 2, ""}, {1, 1, ""}}), std::logic_error);
  EXPECT_THROW(apply_edits("abc", {{2, 1, ""}, {0, 1, ""}}), std::logic_error);
  EXPECT_THROW(apply_edits("abc", {{2, 2, ""}}), std::logic_error);
}

TEST(Canonical, IsIdempotentAndKeepsIncludeOrder) {
  const std::string once = canonical("#include <b.h>\n#include <a.h>\nint  f( ){return 1 ;}\n");
  EXPECT_EQ(once, "#include <b.h>\n#include <a.h>\nint f() { return 1; }\n");
  EXPECT_EQ(canonical(once), once);
}

TEST(Digest, IsSha256) {
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

} // namespace
} // namespace evo
