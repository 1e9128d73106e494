// Every registered mutator against tests/mutators/<name>/:
//   before*.cu     first line "// label: <label>": the rewrite to apply
//   after*.cu      what it gives, in canonical form (scripts/update_golden.sh writes it)
//   unchanged*.cu  nothing may be proposed; the first line says why
// once as written, once with every name changed, once with other tile constants. Then every
// proposal on the seeds, two rewrites deep (random_trails goes deeper).
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/mutator.hpp"
#include "tests/support/goldens.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/rename.hpp"
#include "tests/support/tile_variants.hpp"

namespace evo::test {
namespace {

/// What a label says without its numbers: the same choice in a kernel of other sizes.
std::string without_numbers(const std::string& label) {
  std::string result;
  for (std::size_t i = 0; i < label.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(label[i])) != 0;
    if (!digit) {
      result += label[i];
    } else if (result.empty() || result.back() != '#') {
      result += '#';
    }
  }
  return result;
}

std::set<std::string> choices(const std::vector<std::string>& labels) {
  std::set<std::string> result;
  std::ranges::transform(labels, std::inserter(result, result.end()), without_numbers);
  return result;
}

/// Renaming first or last comes to the same, and neither changes what is proposed.
void expect_names_do_not_matter(const Mutator& mutator, const std::string& source,
                                const Proposals& proposals, const std::string& label) {
  const Renamed renamed = rename(source);
  const Proposals after(mutator, renamed.source);
  std::vector<std::string> expected;
  for (const std::string& proposed : proposals.labels()) {
    expected.push_back(rename_label(proposed, renamed.names));
  }
  EXPECT_EQ(after.labels(), expected);
  EXPECT_EQ(shape(after.apply(rename_label(label, renamed.names))), shape(proposals.apply(label)));
}

class EveryMutator : public testing::TestWithParam<const Mutator*> {
protected:
  const Mutator& mutator() const { return *GetParam(); }
};

TEST_P(EveryMutator, SaysWhatItDoes) {
  const About& about = mutator().about();
  for (const std::string_view text : {about.name, about.summary, about.before, about.after}) {
    EXPECT_FALSE(text.empty());
  }
  EXPECT_EQ(find_mutator(about.name), &mutator()) << "two mutators have this name";
}

TEST_P(EveryMutator, HasAGoldenAndARefusal) {
  EXPECT_FALSE(files(mutator(), "before").empty());
  EXPECT_FALSE(files(mutator(), "unchanged").empty());
}

TEST_P(EveryMutator, TurnsBeforeIntoAfter) {
  for (const Golden& golden : goldens(mutator())) {
    SCOPED_TRACE(golden.file);
    const std::string after = apply(mutator(), golden.before, golden.label);
    if (std::getenv("EVO_UPDATE_GOLDENS") != nullptr) {
      std::ofstream(golden.file) << canonical(golden.before);
      std::ofstream(golden.after) << after;
    }
    EXPECT_EQ(read(golden.file), canonical(golden.before)) << "run scripts/update_golden.sh";
    EXPECT_TRUE(parses(after)) << after;
    EXPECT_EQ(after, read(golden.after));
  }
}

TEST_P(EveryMutator, DoesNotDependOnNames) {
  for (const Golden& golden : goldens(mutator())) {
    SCOPED_TRACE(golden.file);
    expect_names_do_not_matter(mutator(), golden.before, Proposals(mutator(), golden.before),
                               golden.label);
  }
}

TEST_P(EveryMutator, DoesNotDependOnTileConstants) {
  for (const auto& [file, after, source, label] : goldens(mutator())) {
    SCOPED_TRACE(file);
    const std::set<std::string> expected = choices(labels(mutator(), source));
    for (const TileVariant& variant : tile_variants(source)) {
      SCOPED_TRACE(variant.change);
      const Proposals proposals(mutator(), variant.source);
      const std::vector<std::string> proposed = proposals.labels();
      EXPECT_EQ(choices(proposed), expected);
      const auto same = std::ranges::find(proposed, without_numbers(label), without_numbers);
      ASSERT_NE(same, proposed.end());
      const std::string chosen = std::ranges::count(proposed, label) == 1 ? label : *same;
      EXPECT_TRUE(parses(proposals.apply(chosen)));
      expect_names_do_not_matter(mutator(), variant.source, proposals, chosen);
    }
  }
}

TEST_P(EveryMutator, RefusesWhatItCannotProve) {
  for (const auto& file : files(mutator(), "unchanged")) {
    SCOPED_TRACE(file.string());
    const std::string source = read(file);
    EXPECT_TRUE(source.starts_with("// ")) << "the first line says why";
    EXPECT_THAT(labels(mutator(), source), testing::IsEmpty());
    EXPECT_THAT(labels(mutator(), rename(source).source), testing::IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Mutators, EveryMutator, testing::ValuesIn(mutators()),
                         [](const auto& test) { return std::string(test.param->about().name); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EveryMutator);

struct Gene {
  const Mutator* mutator;
  std::string label;
};

/// Checks every proposal on a seed and, a few rewrites deep, on some of its descendants: one per
/// mutator.
class Exploration {
public:
  explicit Exploration(std::string seed) : seed_(std::move(seed)) {}

  void explore(const std::string& source, const std::vector<Gene>& trail, int depth) {
    for (const Mutator* mutator : mutators()) {
      SCOPED_TRACE(mutator->about().name);
      const Proposals& proposals = known(*mutator, source);
      const std::vector<std::string> all = proposals.labels();
      EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size())
          << "a label is not unique";
      for (std::size_t i = 0; i < all.size(); ++i) {
        SCOPED_TRACE(all[i]);
        const std::string child = proposals.apply(all[i]);
        EXPECT_NE(child, source) << "the rewrite changes nothing";
        EXPECT_EQ(canonical(child), child);
        ASSERT_TRUE(parses(child)) << child;
        if (i == all.size() / 2) {
          std::vector<Gene> longer = trail;
          longer.push_back({mutator, all[i]});
          EXPECT_EQ(replay(longer), child) << "replaying the trail gives another kernel";
          if (depth > 1) {
            explore(child, longer, depth - 1);
          }
        }
      }
    }
  }

private:
  const Proposals& known(const Mutator& mutator, const std::string& source) {
    return known_.try_emplace({&mutator, source}, mutator, source).first->second;
  }
  std::string replay(const std::vector<Gene>& trail) {
    std::string source = seed_;
    for (const Gene& gene : trail) {
      source = known(*gene.mutator, source).apply(gene.label);
    }
    return source;
  }

  std::string seed_;
  std::map<std::pair<const Mutator*, std::string>, Proposals> known_;
};

class EverySeed : public testing::TestWithParam<std::string> {
protected:
  std::string seed() const { return canonical(read(in_repository("seeds/lora") / GetParam())); }
};

TEST_P(EverySeed, GetsTheSameProposalsEveryTime) {
  const Kernel kernel = parse(seed());
  for (const Mutator* mutator : mutators()) {
    const std::vector<Rewrite> proposals = mutator->propose(kernel);
    EXPECT_EQ(mutator->propose(kernel), proposals) << mutator->about().name;
    EXPECT_EQ(mutator->propose(parse(seed())), proposals) << mutator->about().name;
  }
}

TEST_P(EverySeed, LongTakesEveryProposalTwoDeep) {
  Exploration(seed()).explore(seed(), {}, 2);
}

INSTANTIATE_TEST_SUITE_P(Lora, EverySeed, testing::Values("naive.cu", "tiled.cu"),
                         [](const auto& test) {
                           return std::filesystem::path(test.param).stem().string();
                         });

} // namespace
} // namespace evo::test
