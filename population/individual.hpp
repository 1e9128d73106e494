// A genome and what became of it.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "fitness/builder.hpp"
#include "fitness/fitness.hpp"
#include "population/genome.hpp"

namespace evo {

enum class Stage { Propose, Build, Judge };

inline constexpr std::array all_stages{Stage::Propose, Stage::Build, Stage::Judge};

std::string_view to_string(Stage stage);

/// Wall-clock seconds; they never enter the log, which is the same for every number of threads.
struct Timing {
  double propose_s = 0;
  double build_s = 0;
  double wait_s = 0; // built, until the judge took it
  double judge_s = 0;
};

struct Individual {
  Genome genome;
  int generation = 0;
  int slot = 0;                                   // unique in its generation
  std::vector<std::string> parents;               // ids; none for a seed
  std::string mutator;                            // of its last new gene; empty for no new one
  std::vector<Gene> dropped;                      // genes that no longer applied
  std::map<std::string, KernelResources> kernels; // once built, by kernel name
  Stage stage = Stage::Propose;                   // how far it came; a failure's is where it failed
  bool built = false;
  std::string binary;       // digest of what was built
  std::string duplicate_of; // id of the first of the same source or binary; empty: none
  Fitness fitness;          // a duplicate's is that of the first
  bool elite = false;       // the best of the run when it was judged
  bool known = false;       // not judged in this run: an earlier one's verdict
  Timing timing;

  /// What log and counts say: Duplicate, or the judge's verdict.
  Verdict verdict() const { return duplicate_of.empty() ? fitness.verdict : Verdict::Duplicate; }
  /// Not the fault of evo, nor that of the same source before.
  bool has_own_verdict() const {
    return duplicate_of != genome.id && fitness.verdict != Verdict::Fault;
  }
  bool failed() const { return duplicate_of.empty() && !fitness.ok(); }
  /// Correct, and the first of its kind.
  bool viable() const { return verdict() == Verdict::Ok; }
  /// Right about what is timed, but not in every case that binds: a parent, and never a result.
  bool frail() const { return duplicate_of.empty() && fitness.frail_speedup > 0; }
  /// The speed-up by which parents are chosen; 0 of what is neither.
  double pace() const { return viable() ? fitness.speedup : frail() ? fitness.frail_speedup : 0; }
};

/// How many failed where, and of what.
using Failures = std::map<Stage, std::map<Verdict, int>>;

/// Counts the individual if it failed.
void count(Failures& failures, const Individual& individual);
int total(const Failures& failures);
/// "build: no build 8, over limits 1; judge: race 1"
std::string to_string(const Failures& failures);

/// Of all kernels of a file together.
Products products_of(const std::map<std::string, KernelResources>& kernels);

/// Viable ones first, the faster first; equal ones by id, so that every order of arrival sorts
/// alike.
bool fitter(const Individual& a, const Individual& b);

void to_json(nlohmann::json& json, const KernelResources& resources);
void from_json(const nlohmann::json& json, KernelResources& resources);
/// Everything but the source, which stands in the file named by the id, and the timing.
void to_json(nlohmann::json& json, const Individual& individual);
void from_json(const nlohmann::json& json, Individual& individual);

} // namespace evo
