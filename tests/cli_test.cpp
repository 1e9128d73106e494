// The built program, as a user runs it: what it refuses, and in which words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fitness/export.hpp"
#include "fitness/process.hpp"
#include "population/files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace evo {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Words = std::vector<std::string>;

const std::string naive = EVO_SOURCE_DIR "/seeds/lora/naive.cu";
const std::string tiled = EVO_SOURCE_DIR "/seeds/lora/tiled.cu";

ProcessResult evo(const Words& words, const std::filesystem::path& folder = ".") {
  Words command{EVO_PROGRAM};
  command.insert(command.end(), words.begin(), words.end());
  ProcessOptions options;
  options.directory = folder;
  return run_process(command, options);
}

struct Refusal {
  Words words;
  std::string sentence; // a part of it
};

class BadInput : public testing::TestWithParam<Refusal> {};

TEST_P(BadInput, IsOneSentenceAndExitCode2) {
  const TemporaryFolder folder;
  const ProcessResult result = evo(GetParam().words, folder.path());
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_THAT(result.output, StartsWith("evo: "));
  EXPECT_THAT(result.output, HasSubstr(GetParam().sentence));
  EXPECT_EQ(std::ranges::count(result.output, '\n'), 1) << result.output;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "something was written";
}

INSTANTIATE_TEST_SUITE_P(
    Options, BadInput,
    testing::Values(
        Refusal{{"--pop", "0"}, "--pop must be at least 2"},
        Refusal{{"--pop", "1"}, "--pop must be at least 2"}, Refusal{{"--pop", "many"}, "--pop"},
        Refusal{{"--generations", "-1"}, "--generations must not be negative"},
        Refusal{{"--jobs", "0"}, "--jobs must be at least 1"},
        Refusal{{"--time-budget", "-5"}, "--time-budget must be more than 0 seconds"},
        Refusal{{"--backend", "opencl"}, "choose auto, cuda or model"},
        Refusal{{"--level", "hard"}, "there is no level hard; choose harness, default or strict"},
        Refusal{{"--without", "luck"}, "there is no mutator luck to do without"},
        Refusal{{"--backend", "model", "--device", "0"}, "--backend model uses none"},
        Refusal{{"--device", "-1"}, "--device must not be negative"},
        Refusal{{"--target", "sm_11"}, "evo does not know the target sm_11; choose one of sm_70"},
        Refusal{{"--sizes"}, "--sizes"}, Refusal{{"--sizes", "0"}, "--sizes must be positive"},
        Refusal{{"--nonsense"}, "see evo --help"}, Refusal{{"nonsense"}, "see evo --help"}));

INSTANTIATE_TEST_SUITE_P(
    Files, BadInput,
    testing::Values(Refusal{{"--seeds", "missing.cu"}, "cannot read missing.cu"},
                    Refusal{{"--seeds", naive, naive}, "two seeds are named naive.cu"},
                    Refusal{{"--problem", "missing.toml"}, "missing.toml"},
                    Refusal{{"--incumbent", "missing.cu"}, "cannot read missing.cu"},
                    Refusal{{"--out", "no/such/folder/out.cu"}, "there is no such folder"},
                    Refusal{{"--out", "."}, "it is a folder"},
                    Refusal{{"--population-dir", "/dev/null"}, "choose another --population-dir"},
                    Refusal{{"propose", "missing.cu"}, "cannot read missing.cu"},
                    Refusal{{"accuracy"}, "FILES is required"},
                    Refusal{{"apply", naive, "no_such_mutator", "label"},
                            "evo mutators lists them"},
                    Refusal{{"replay", naive, naive}, "line 3: a gene is written"},
                    Refusal{{"selftest", "--zoo", "missing"}, "there are no .cu files in missing"},
                    Refusal{{"selftest", "--only", "honesty"}, "there is no honesty.cu in"},
                    Refusal{{"export", "latest", "12345678"}, "there is no run latest"}));

TEST(Propose, NamesASyntaxErrorAndAHeaderItDoesNotHave) {
  const TemporaryFolder folder;
  write_text(folder.path() / "broken.cu", "__global__ void f() {\n  int x = ;\n}\n");
  ProcessResult result = evo({"propose", "broken.cu"}, folder.path());
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.output, "evo: broken.cu does not parse: 2:11: expected expression\n");
  write_text(folder.path() / "header.cu", "#include <mma.h>\n");
  result = evo({"propose", "header.cu"}, folder.path());
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.output, HasSubstr("'mma.h' file not found"));
}

TEST(Check, NamesWhatThePolicyRefuses) {
  const TemporaryFolder folder;
  write_text(folder.path() / "counting.cu", "#define KEEP static\nKEEP int calls;\n");
  const ProcessResult result = evo({"check", "counting.cu"}, folder.path());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.output, "refused by policy: the file, line 2, keeps state in 'calls'; make it a "
                           "constant, a local variable or a region of the workspace\n");
}

TEST(Help, NamesUnitsAndDefaults) {
  const ProcessResult result = evo({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* word : {"--generations",
                           "--pop",
                           "--seed",
                           "--time-budget",
                           "seconds",
                           "--jobs",
                           "--backend",
                           "auto",
                           "--device",
                           "--target",
                           "sm_86",
                           "--problem",
                           "--seeds",
                           "--out",
                           "--population-dir",
                           "--sizes",
                           "--version",
                           "40",
                           "32",
                           "doctor",
                           "mutators",
                           "propose",
                           "apply",
                           "replay",
                           "check",
                           "bench",
                           "accuracy",
                           "selftest",
                           "export"}) {
    EXPECT_THAT(result.output, HasSubstr(word));
  }
}

TEST(Version, IsTheProjects) {
  const ProcessResult result = evo({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, StartsWith("evo 0."));
}

TEST(Mutators, AreEachShownBeforeAndAfter) {
  const ProcessResult result = evo({"mutators"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr("unroll_loop: "));
  EXPECT_THAT(result.output, HasSubstr("→"));
}

/// The first line that propose prints for the tiled seed.
std::string first_proposal() {
  const std::string text = evo({"propose", tiled}).output;
  return text.substr(0, text.find('\n'));
}

TEST(Apply, PrintsWhatReplayPrintsForTheSameGene) {
  const TemporaryFolder folder;
  const std::string line = first_proposal();
  const auto colon = line.find(": ");
  ASSERT_NE(colon, std::string::npos) << line;
  const ProcessResult applied =
      evo({"apply", tiled, line.substr(0, colon), line.substr(colon + 2)});
  EXPECT_EQ(applied.exit_code, 0) << applied.output;
  EXPECT_NE(applied.output, read_text(tiled));

  for (const std::string& trail :
       {line, "\n# a comment\n    1.35x  " + line + "\n", "        -  " + line, "//   " + line}) {
    write_text(folder.path() / "trail", trail);
    EXPECT_EQ(evo({"replay", tiled, "trail"}, folder.path()).output, applied.output) << trail;
  }
}

TEST(Apply, OfARewriteThatIsNotProposedFails) {
  const ProcessResult result = evo({"apply", tiled, "unroll_loop", "no such label"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("evo propose lists what it does"));
}

TEST(Replay, PrintsAnExportThatSaysItIsNotJudged) {
  const TemporaryFolder folder;
  const std::string gene = first_proposal();
  write_text(folder.path() / "trail", gene + "\n");
  const std::string kernel = evo({"replay", tiled, "trail"}, folder.path()).output;
  const std::string file = evo({"replay", tiled, "trail", "--as-export"}, folder.path()).output;
  EXPECT_EQ(exported_kernel(file), kernel);
  EXPECT_THAT(file, HasSubstr("// Not judged yet."));
  EXPECT_THAT(file, HasSubstr(gene));
  EXPECT_THAT(file, HasSubstr("PYBIND11_MODULE"));
}

TEST(Replay, NamesTheGeneThatDoesNotApply) {
  const TemporaryFolder folder;
  write_text(folder.path() / "trail", first_proposal() + "\nunroll_loop: no such label\n");
  const ProcessResult result = evo({"replay", tiled, "trail"}, folder.path());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.output, "evo: gene 2 of trail, unroll_loop: no such label, does not apply\n");
}

} // namespace
} // namespace evo
