// What a specimen's first lines say, and that nothing of them is left.
#include "population/zoo.hpp"

#include <gmock/gmock.h>

#include "fitness/problem.hpp"
#include "population/files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace evo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Specimen, SaysWhatToExpectAndIsStripped) {
  const Specimen specimen =
      parse_specimen("trap", "// expect: refused by policy; behind it: crash | launch error; "
                             "model: race\n// Traps, at large\n// sizes only.\nint x; // kept\n");
  EXPECT_EQ(specimen.name, "trap");
  EXPECT_THAT(specimen.expected, ElementsAre(Verdict::RefusedByPolicy));
  EXPECT_THAT(specimen.behind_policy, ElementsAre(Verdict::Crash, Verdict::LaunchError));
  EXPECT_THAT(specimen.on_model, ElementsAre(Verdict::Race));
  EXPECT_EQ(specimen.source, "int x; // kept\n");
}

TEST(Specimen, MayRunOnACardOnly) {
  const Specimen specimen = parse_specimen("x", "//expect:hang\nint x;");
  EXPECT_THAT(specimen.expected, ElementsAre(Verdict::Hang));
  EXPECT_THAT(specimen.behind_policy, IsEmpty());
  EXPECT_THAT(specimen.on_model, IsEmpty());
  EXPECT_EQ(specimen.source, "int x;");
}

std::string refusal(const std::string& text) {
  try {
    parse_specimen("odd", text);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(Specimen, AMalformedFirstLineIsNamed) {
  EXPECT_THAT(refusal("int x;\n"), HasSubstr("the first line of odd.cu is no comment"));
  EXPECT_THAT(refusal(""), HasSubstr("is no comment"));
  EXPECT_THAT(refusal("// expect: wrong\n"), HasSubstr("names a verdict \"wrong\""));
  EXPECT_THAT(refusal("// expect: hang |\n"), HasSubstr("names a verdict \"\""));
  EXPECT_THAT(refusal("// expect:\n"), HasSubstr("names a verdict \"\""));
  EXPECT_THAT(refusal("// expects: hang\n"),
              HasSubstr("\"expects: hang\", which is no expectation"));
  EXPECT_THAT(refusal("// expect: hang; hang\n"), HasSubstr("\"hang\", which is no expectation"));
  EXPECT_THAT(refusal("// expect: hang; expect: race\n"), HasSubstr("says \"expect\" twice"));
  EXPECT_THAT(refusal("// model: hang\n"), HasSubstr("does not say what to expect on a card"));
}

TEST(Verdicts, AnyOfThemIsRight) {
  const Verdicts either{Verdict::Crash, Verdict::LaunchError};
  EXPECT_TRUE(allows(either, Verdict::LaunchError));
  EXPECT_FALSE(allows(either, Verdict::Ok));
  EXPECT_EQ(to_string(either), "crash | launch error");
}

class Zoo : public testing::Test {
protected:
  void SetUp() override {
    write_text(folder_.path() / "b.cu", "// expect: hang\nb\n");
    write_text(folder_.path() / "a.cu", "// expect: race\na\n");
    write_text(folder_.path() / "README.md", "not a kernel\n");
  }

  std::vector<std::string> names(const std::vector<std::string>& only) const {
    std::vector<std::string> result;
    for (const Specimen& specimen : load_zoo(folder_.path(), only)) {
      result.push_back(specimen.name);
    }
    return result;
  }

  TemporaryFolder folder_;
};

TEST_F(Zoo, IsReadByName) {
  EXPECT_THAT(names({}), ElementsAre("a", "b"));
  EXPECT_THAT(names({"b"}), ElementsAre("b"));
}

TEST_F(Zoo, ANameThatIsNoneAndAFolderWithoutKernelsAreRefused) {
  try {
    names({"c"});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("there is no c.cu in"));
    EXPECT_THAT(error.what(), HasSubstr("a, b"));
  }
  const TemporaryFolder empty;
  EXPECT_THROW(load_zoo(empty.path(), {}), InputError);
  EXPECT_THROW(load_zoo(empty.path() / "missing", {}), InputError);
}

TEST(ShippedZoo, EverySpecimenIsReadableAndHidesItsExpectation) {
  const std::vector<Specimen> zoo = load_zoo(EVO_SOURCE_DIR "/tests/adversarial", {});
  EXPECT_GE(zoo.size(), 34u);
  for (const Specimen& specimen : zoo) {
    EXPECT_THAT(specimen.source, testing::StartsWith("#include")) << specimen.name;
    EXPECT_THAT(specimen.source, Not(HasSubstr("expect:"))) << specimen.name;
    EXPECT_FALSE(allows(specimen.expected, Verdict::Ok)) << specimen.name;
  }
}

} // namespace
} // namespace evo
