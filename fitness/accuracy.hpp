// How right is right enough: which cases a candidate must pass, and what their figures say. Knows
// no torch.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace evo {

/// What a candidate must pass: only the distributions that are timed, also what an operator's user
/// may well have, or everything. Each includes the ones before it.
enum class Level { Harness, Default, Strict };

inline constexpr std::array all_levels{Level::Harness, Level::Default, Level::Strict};

/// "harness", as problem.toml and the command line spell it.
std::string_view to_string(Level level);
std::optional<Level> level_from(std::string_view text);

/// Stands for a figure that is a NaN or an infinity, which JSON does not know.
inline constexpr double no_number = 1e99;

/// How three results for the same contents differ: the candidate's, the reference's as found, and
/// the ideal, which is the float64 result of operands rounded as the reference rounds them. The
/// tolerance of an element is atol + rtol |reference|.
struct CaseFigures {
  double ideal_error = 0;         // max |ideal - reference| / tolerance
  double max_error = 0;           // max |candidate - reference| / tolerance
  double violations = 0;          // elements of the candidate beyond the tolerance, and NaNs
  double rms_error = 0;           // candidate - ideal
  double reference_rms_error = 0; // reference - ideal
  double output_rms = 0;          // the ideal's own
  bool zero_passes = false;       // zeros would be within the tolerance of every element

  /// The tolerance tells right from wrong: the ideal is well within it. Never with a NaN.
  bool decidable() const { return ideal_error <= 0.5; }
};

/// nullopt for a candidate that is right enough; else what is wrong, a sentence without subject.
/// Decidable: every element is within the tolerance. Else: the rms error is at most twice the
/// reference's. Where zeros would pass, moreover, it is at most rtol times the output's rms, or
/// twice the reference's: exactly zero where the output is. A NaN never passes.
std::optional<std::string> find_fault(const CaseFigures& figures, double rtol);

/// One case at one size.
struct CaseResult {
  std::string name;
  int size = 0;
  double sweep = 0;     // the case's point of the scale sweep; 0: none
  bool binding = false; // the level lists the case
  CaseFigures figures;
  std::string fault; // empty: passed

  bool passed() const { return fault.empty(); }
};

/// What thorough checking found about a candidate.
struct Verification {
  Level level = Level::Default;
  std::vector<CaseResult> cases;
  double headroom = 0; // the largest point of the sweep that passes, as all smaller ones do
  int calls = 0;       // checked calls; 0: none was asked for

  /// The first binding case that fails, or nullptr.
  const CaseResult* first_fault() const;
  /// Ascending, each once.
  std::vector<int> sizes() const;
};

/// A case, for the planning below.
struct CaseOutline {
  std::string name;
  Level level = Level::Default;
  double sweep = 0;
};

/// Runs a candidate on the case of that index at that size.
using RunCase = std::function<CaseFigures(std::size_t index, int size)>;

struct VerifyPlan {
  Level level = Level::Default;
  std::vector<int> sizes;
  bool full = false; // every case at every size, and on after a failure
};

/// Takes a candidate through the cases that bind, each at one of the sizes in rotation and each
/// size at least once, up to the first failure; then through the sweep beyond them in ascending
/// order, up to the first failure, for the headroom.
Verification verify_cases(const std::vector<CaseOutline>& cases, const VerifyPlan& plan,
                          double rtol, const RunCase& run);

/// Where to verify: the ends of the measured range, and inside it an odd size, one that leaves 4
/// modulo 8, and one drawn from the seed. Ascending, each once.
std::vector<int> verification_sizes(const std::vector<int>& measured, std::uint64_t seed);

} // namespace evo
