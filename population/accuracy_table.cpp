#include "population/accuracy_table.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace evo {
namespace {

constexpr const char* head =
    "| case | size | output rms | reference rms error | ideal / tolerance | decidable "
    "| error / tolerance | rms error / reference's | violations | passes |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";

std::string figure(double value) {
  return value < no_number ? fmt::format("{:.2g}", value) : "no number";
}

/// Of two figures that may both be zero.
std::string ratio(double value, double of) {
  return value == 0 && of == 0 ? "0" : of == 0 ? "no number" : figure(value / of);
}

} // namespace

std::string accuracy_table(const Verification& verification) {
  std::string text = head;
  for (const CaseResult& result : verification.cases) {
    const CaseFigures& figures = result.figures;
    const std::string passes = result.passed() ? "yes" : "no";
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {:.0f} | {} |\n", result.name, result.size,
        figure(figures.output_rms), ratio(figures.reference_rms_error, figures.output_rms),
        figure(figures.ideal_error), figures.decidable() ? "yes" : "no", figure(figures.max_error),
        ratio(figures.rms_error, figures.reference_rms_error), figures.violations,
        result.binding ? passes : "(" + passes + ")");
  }
  return text;
}

std::string describe(const Verification& verification) {
  const auto bound = std::ranges::count_if(verification.cases, &CaseResult::binding);
  return fmt::format("{} checks of level {} at the sizes {}, {} calls, scale headroom {:g}", bound,
                     to_string(verification.level), fmt::join(verification.sizes(), ", "),
                     verification.calls, verification.headroom);
}

std::string accuracy_report(const Verification& verification) {
  return fmt::format("{}\n{}.\n", accuracy_table(verification), describe(verification));
}

} // namespace evo
