#include "fitness/problem.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

namespace evo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::filesystem::path lora = std::filesystem::path(EVO_SOURCE_DIR) / "seeds/lora";

std::string text_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

/// lora's problem.toml with one text replaced, in a folder that has the seeds.
class Edited {
public:
  Edited(const std::string& before, const std::string& after) {
    std::filesystem::create_directories(folder_);
    for (const char* seed : {"naive.cu", "tiled.cu"}) {
      std::ofstream(folder_ / seed) << "// seed\n";
    }
    std::string text = text_of(lora / "problem.toml");
    const auto at = text.find(before);
    if (at == std::string::npos) {
      throw std::logic_error("problem.toml has no " + before);
    }
    text.replace(at, before.size(), after);
    std::ofstream(folder_ / "problem.toml") << text;
  }
  ~Edited() { std::filesystem::remove_all(folder_); }

  Problem load() const { return Problem::load(folder_ / "problem.toml"); }

private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("evo-problem-{}", getpid());
};

struct BadInput {
  std::string before;
  std::string after;
  std::string complaint; // what follows "problem.toml: "
};

class Refusal : public testing::TestWithParam<BadInput> {};

TEST_P(Refusal, NamesFileKeyAndWhatIsAllowed) {
  const Edited edited(GetParam().before, GetParam().after);
  try {
    edited.load();
    FAIL() << "accepted: " << GetParam().after;
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("problem.toml"));
    EXPECT_THAT(error.what(), HasSubstr(GetParam().complaint));
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Problem, Refusal,
    testing::Values(
        BadInput{"entry = \"lora\"", "entry = lora", "problem.toml:8: not valid TOML"},
        BadInput{"name = \"lora\"", "title = \"lora\"", ": title is unknown; allowed: name, entry"},
        BadInput{"name = \"lora\"", "", ": name is missing"},
        BadInput{"name = \"lora\"", "name = \"\"", ": name must be a text that is not empty"},
        BadInput{"name = \"lora\"", "name = 3", ": name must be a text that is not empty"},
        BadInput{"entry = \"lora\"", "entry = \"lo-ra\"",
                 ": entry is \"lo-ra\"; it must be an identifier"},
        BadInput{"\"optimized_lora.cu\"", "\"../lora.cu\"",
                 ": output_file is \"../lora.cu\"; it must be a file name without folders"},
        BadInput{"\"naive.cu\"", "\"absent.cu\"",
                 ": seeds names absent.cu, which is not a file in"},
        BadInput{"[\"naive.cu\", \"tiled.cu\"]", "[]", ": seeds must be a list that is not empty"},
        BadInput{"[\"naive.cu\", \"tiled.cu\"]", "[1]", ": seeds must be a list of texts"},
        BadInput{"vary = \"d\"", "vary = \"n\"",
                 ": dims.vary names the dim \"n\", which dims.order does not have: d, r"},
        BadInput{"r = 16", "", ": dims.r is missing: dims.order names it"},
        BadInput{"r = 16", "r = 0", ": dims.r must be a whole number from 1"},
        BadInput{"r = 16", "r = 16.5", ": dims.r must be a whole number"},
        BadInput{"r = 16", "r = 16\nd = 5", ": dims.d is the dim that varies"},
        BadInput{"r = 16", "r = 16\nk = 5", ": dims.k names the dim \"k\""},
        BadInput{"[\"d\", \"r\"]", "[\"d\", \"r\", \"a\", \"b\", \"c\"]",
                 ": dims.order has more than 4 dims"},
        BadInput{"[3584, 3999, 4096, 4608]", "[]", ": sizes.measure must be a list"},
        BadInput{"[3584, 3999, 4096, 4608]", "[-1]", ": sizes.measure must be a whole number"},
        BadInput{"[sizes]\nmeasure", "[sizes]\nmeasured",
                 ": sizes.measured is unknown; allowed: measure"},
        BadInput{"distribution = \"normal\"", "distribution = \"gauss\"",
                 ": inputs[0].distribution is \"gauss\"; allowed: normal, uniform, positive, "
                 "zeros, ones"},
        BadInput{"scale = 1.0", "scale = \"big\"", ": inputs[0].scale must be a number"},
        BadInput{"scale = 1.0", "scale = inf", ": inputs[0].scale must be a number"},
        BadInput{"scale = 1.0", "scales = 1.0",
                 ": inputs[0].scales is unknown; allowed: name, shape"},
        BadInput{"fan_in = \"d\"", "fan_in = \"k\"", ": inputs[0].fan_in names the dim \"k\""},
        BadInput{"name = \"X\"", "name = \"W\"", ": inputs[1].name is \"W\" for a second time"},
        BadInput{"shape = [\"d\", \"r\"]", "shape = [\"d\", \"rank\"]",
                 ": inputs[2].shape names the dim \"rank\", which dims.order does not have: d, r"},
        BadInput{"[output]\nname = \"Y\"", "[output]\nname = \"X\"",
                 ": output.name is \"X\", which is an input"},
        BadInput{"[output]", "[outputs]", ": outputs is unknown"},
        BadInput{"rtol = 1e-4", "rtol = -1", ": tolerance.rtol must not be negative"},
        BadInput{"rtol = 1e-4", "", ": tolerance.rtol is missing"},
        BadInput{"[[2, \"d\", \"d\", \"d\"]", "[[\"d\"]",
                 ": cost.flops must be a list of products"},
        BadInput{"[[2, \"d\", \"d\", \"d\"]", "[[2, \"n\"]", ": cost.flops names the dim \"n\""},
        BadInput{"level = \"strict\"", "level = \"hard\"",
                 ".level is \"hard\"; allowed: harness, default, strict"},
        BadInput{"name = \"uniform\"", "name = \"positive\"",
                 ": cases[2].name is \"positive\" for a second time"},
        BadInput{"name = \"uniform\"", "name = \"harness\"",
                 ": cases[2].name is \"harness\", which stands for the inputs"},
        BadInput{"inputs.W.modifiers = [\"opposite_columns\"]", "inputs.W.modifiers = [\"odd\"]",
                 ": cases[4].inputs.W.modifiers is \"odd\"; allowed: large_row, large_column"},
        BadInput{"inputs.W.modifiers = [\"opp", "inputs.Z.modifiers = [\"opp",
                 ": cases[4].inputs.Z is no input; choose from W, X, A, B"},
        BadInput{"inputs.W = { distribution = \"uniform\"", "inputs.W = { distribution = \"flat\"",
                 ": cases[2].inputs.W.distribution is \"flat\"; allowed: normal"},
        BadInput{"times = 1e-3", "times = 0", ": cases[6].times must be more than 0"},
        BadInput{"sweep = 0.3", "sweep = \"0.3\"", ".sweep must be a number"},
        BadInput{"sweep = 0.3", "weep = 0.3", ".weep is unknown; allowed: name, level"},
        BadInput{"def reference(", "def result(",
                 ": reference.torchscript must define a function: def reference(...)"}));

TEST(Problem, LoadsLora) {
  const Problem problem = Problem::load(lora / "problem.toml");
  EXPECT_EQ(problem.entry, "lora");
  EXPECT_EQ(problem.vary, "d");
  EXPECT_THAT(problem.dim_order, ElementsAre("d", "r"));
  EXPECT_THAT(problem.sizes, ElementsAre(3584, 3999, 4096, 4608));
  EXPECT_THAT(problem.seeds, ElementsAre(lora / "naive.cu", lora / "tiled.cu"));
  ASSERT_EQ(problem.inputs.size(), 4u);
  EXPECT_EQ(problem.inputs[0].fan_in, "d");
  EXPECT_EQ(problem.inputs[2].scale, 0.02);
  EXPECT_EQ(problem.rtol, 1e-4);
}

const Case& find(const Problem& problem, const std::string& name) {
  return *std::ranges::find(problem.cases, name, &Case::name);
}

TEST(Problem, ACaseSaysWhatDiffersFromTheInputs) {
  const Problem problem = Problem::load(lora / "problem.toml");
  const Case& start = find(problem, "LoRA start");
  EXPECT_EQ(start.level, Level::Default);
  EXPECT_EQ(start.inputs[0].fan_in, "d");
  EXPECT_EQ(start.inputs[3].distribution, Distribution::Zeros);

  const Case& large = find(problem, "1e3 times everything");
  EXPECT_EQ(large.level, Level::Strict);
  EXPECT_EQ(large.inputs[1].scale, 1e3);
  EXPECT_EQ(large.inputs[3].scale, 20);

  const Case& pairs = find(problem, "cancelling pairs");
  EXPECT_THAT(pairs.inputs[0].modifiers, ElementsAre(Modifier::OppositeColumns));
  EXPECT_EQ(pairs.inputs[0].fan_in, "d") << "modifiers alone change nothing else";
}

TEST(Problem, ADistributionThatIsNamedStartsAfresh) {
  const TensorSpec weights = find(Problem::load(lora / "problem.toml"), "W and X N(0,1)").inputs[0];
  EXPECT_EQ(weights.scale, 1);
  EXPECT_EQ(weights.fan_in, "");
}

TEST(Problem, TheTimedInputsAreTheFirstCase) {
  const Problem problem = Problem::load(lora / "problem.toml");
  EXPECT_EQ(problem.cases[0].name, "harness");
  EXPECT_EQ(problem.cases[0].level, Level::Harness);
  EXPECT_EQ(problem.cases[0].inputs[2].scale, 0.02);
}

TEST(Problem, OnlyTheLargestScaleOfTheSweepIsStrict) {
  std::vector<double> bound;
  for (const Case& each : Problem::load(lora / "problem.toml").cases) {
    if (each.sweep > 0) {
      EXPECT_EQ(each.inputs[1].scale, each.sweep) << "the output is linear in X";
      EXPECT_EQ(each.level, each.sweep > 4 ? Level::Strict : Level::Default);
      bound.push_back(each.sweep);
    }
  }
  EXPECT_THAT(bound, ElementsAre(0.05, 0.3, 1, 4, 12));
}

TEST(Problem, NeedsNoCases) {
  const Problem relu =
      Problem::load(std::filesystem::path(EVO_SOURCE_DIR) / "tests/operators/relu/problem.toml");
  EXPECT_EQ(relu.cases.size(), 1u);
}

TEST(Problem, KnowsItsShapesAndFlops) {
  const Problem problem = Problem::load(lora / "problem.toml");
  EXPECT_THAT(resolve(problem.inputs[2], problem.dims(100)), ElementsAre(100, 16));
  EXPECT_EQ(problem.flops_at(100), 2.0 * 100 * 100 * 100 + 4.0 * 100 * 100 * 16);
}

TEST(Problem, AMissingFileIsRefused) {
  try {
    Problem::load("/nonexistent/problem.toml");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "/nonexistent/problem.toml: no such problem file");
  }
}

} // namespace
} // namespace evo
