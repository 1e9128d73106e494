// Unrolls a loop by pragma: by a factor, in full, not at all, or as the compiler likes (undo).
//
//   before                             after "gemm/k unroll 4"
//   for (int k = 0; k < 8; ++k) {      #pragma unroll 4
//     sum += a[k] * b[k];              for (int k = 0; k < 8; ++k) {
//   }                                    sum += a[k] * b[k];
//                                      }
//
// Precondition: a counted loop of device code (analysis/counted_loop.hpp), with no pragma or with
// one unroll pragma on a line of its own. A factor divides a constant trip count and is less than
// it; `full` needs a constant trip count. The copies of the innermost body stay within max_copies.
// The pragma leaves the order of operations alone, so results keep every bit.
//
// Expected gain: fewer branches and index computations, more independent loads in flight; it costs
// registers and instruction cache. The compiler's own choice is often good: `unroll 1` where it
// unrolls too far.
//
// Duplicating the body in the source would give nothing beyond the pragma: the compiler writes
// the remainder loop itself, and later rewrites still find one loop instead of copies.
#include <algorithm>
#include <array>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>
#include <clang/Basic/SourceManager.h>

#include "mutators/analysis/loops.hpp"
#include "mutators/mutator.hpp"
#include "mutators/registry.hpp"
#include "mutators/render.hpp"

namespace evo {
namespace {

constexpr std::array unroll_factors{1, 2, 4, 8, 16, 32};

/// "4", "full": what stands after "unroll" in a label; empty for a pragma of another kind.
std::string choice_of(const Kernel& kernel, const clang::Attr& attribute) {
  const auto* hint = clang::dyn_cast<clang::LoopHintAttr>(&attribute);
  if (hint == nullptr) {
    return "";
  }
  if (hint->getOption() == clang::LoopHintAttr::UnrollCount) {
    const auto factor = constant_value(kernel, *hint->getValue());
    return factor ? std::to_string(*factor) : "by name";
  }
  if (hint->getOption() == clang::LoopHintAttr::Unroll) {
    return hint->getState() == clang::LoopHintAttr::Disable ? "1" : "full";
  }
  return "";
}

std::vector<std::string> sensible_choices(std::optional<std::int64_t> trips, std::int64_t inner) {
  std::vector<std::string> choices;
  for (const int factor : unroll_factors) {
    const bool divides = !trips || (factor < *trips && *trips % factor == 0);
    if (divides && factor * inner <= max_copies) {
      choices.push_back(std::to_string(factor));
    }
  }
  if (trips && *trips > 1 && *trips * inner <= max_copies) {
    choices.push_back("full");
  }
  return choices;
}

std::string pragma_text(const std::string& choice) {
  return choice == "full" ? "#pragma unroll\n" : "#pragma unroll " + choice + "\n";
}

/// The edit that puts a pragma before a loop that has none; the pragma must begin its line.
std::optional<Edit> insertion(const Kernel& kernel, const DeviceLoop& loop,
                              const std::string& choice) {
  const auto span = span_of(kernel, *loop.counted.loop);
  if (!span) {
    return std::nullopt;
  }
  const unsigned begin = line_begin(kernel, span->begin);
  const bool first_on_line =
      kernel.source().find_first_not_of(" \t", begin) == std::size_t{span->begin};
  return first_on_line ? Edit{begin, 0, pragma_text(choice)}
                       : Edit{span->begin, 0, "\n" + pragma_text(choice)};
}

std::vector<Rewrite> proposals(const Kernel& kernel, const DeviceLoop& loop, std::int64_t inner) {
  std::string present;
  std::optional<Span> line;
  if (!loop.attributes.empty()) {
    present = choice_of(kernel, *loop.attributes.front());
    line = pragma_line(kernel, *loop.attributes.front());
    if (loop.attributes.size() != 1 || present.empty() || !line) {
      return {};
    }
  }
  std::vector<Rewrite> result;
  const auto propose = [&](const std::string& choice, const std::optional<Edit>& edit) {
    if (edit && choice != present) {
      result.push_back({loop.name + " unroll " + choice, {*edit}});
    }
  };
  for (const std::string& choice : sensible_choices(trip_count(kernel, loop.counted), inner)) {
    propose(choice, line ? Edit{line->begin, line->length(), pragma_text(choice)}
                         : insertion(kernel, loop, choice));
  }
  if (line) {
    propose("undo", Edit{line->begin, line->length(), ""});
  }
  return result;
}

class UnrollLoop : public Mutator {
public:
  const About& about() const override {
    static const About about{
        .name = "unroll_loop",
        .summary =
            "unrolls a loop by pragma: fewer branches and more loads in flight, for registers",
        .before = "for (int k = 0; k < 8; ++k) { ... }",
        .after = "#pragma unroll 4\nfor (int k = 0; k < 8; ++k) { ... }",
    };
    return about;
  }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    std::vector<Rewrite> result;
    const std::vector<DeviceLoop> loops = device_loops(kernel);
    for (const DeviceLoop& loop : loops) {
      std::ranges::move(proposals(kernel, loop, inner_copies(kernel, loop, loops)),
                        std::back_inserter(result));
    }
    return result;
  }
};

} // namespace

const Mutator& unroll_loop() {
  static const UnrollLoop mutator;
  return mutator;
}

} // namespace evo
