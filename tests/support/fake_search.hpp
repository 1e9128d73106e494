// A world small enough to search in milliseconds: kernels are a few constants, mutators change
// one, and the evaluator reads them off.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <thread>

#include "population/evaluator.hpp"
#include "population/genome.hpp"
#include "population/search.hpp"

namespace evo::fake {

inline std::string source(int a, int b) {
  return "constexpr int a = " + std::to_string(a) + ";\nconstexpr int b = " + std::to_string(b) +
         ";\n";
}

/// The value of `constexpr int <name> = <value>;`.
inline int value(const std::string& source, const std::string& name) {
  std::smatch match;
  const bool found =
      std::regex_search(source, match, std::regex("constexpr int " + name + " = (-?\\d+);"));
  return found ? std::stoi(match[1]) : 0;
}

/// Adds `step` to a constant, as long as it stays in [0, 9]: "a 3".
class Add : public Mutator {
public:
  Add(std::string_view name, std::string constant, int step)
      : about_{name, "adds", "a = 1", "a = 2"}, constant_(std::move(constant)), step_(step) {}

  const About& about() const override { return about_; }

  std::vector<Rewrite> propose(const Kernel& kernel) const override {
    const std::string before = "constexpr int " + constant_ + " = ";
    const auto place = kernel.source().find(before);
    const int now = value(kernel.source(), constant_);
    if (place == std::string::npos || now + step_ < 0 || now + step_ > 9) {
      return {};
    }
    const auto offset = static_cast<unsigned>(place + before.size());
    const std::string to = std::to_string(now + step_);
    return {{constant_ + " " + to, {{offset, 1, to}}}};
  }

private:
  About about_;
  std::string constant_;
  int step_;
};

inline Dialect dialect() {
  static const Add more_a("more_a", "a", 1);
  static const Add less_a("less_a", "a", -1);
  static const Add more_b("more_b", "b", 1);
  return {.mutators = {&more_a, &less_a, &more_b}, .target = *Target::find("sm_86")};
}

/// The speed-up is 1 + a; b is invisible in the binary beyond its third part. a = 4 does not
/// build, a = 6 is wrong, b = 9 hangs.
class World : public FitnessEvaluator {
public:
  std::chrono::microseconds longest_delay{0}; // of a build or a judgement, drawn at random
  std::function<void(const Genome&)> on_judge = [](const Genome&) {};
  std::atomic<int> builds = 0;
  std::atomic<int> judgements = 0;
  std::atomic<int> building = 0;
  std::atomic<int> builds_during_judgements = 0;
  std::atomic<int> most_builds_at_once = 0;
  std::set<std::string> judged; // ids

  std::variant<Built, BuildFailure> build(const Genome& genome, std::stop_token,
                                          Gates) const override {
    auto& self = const_cast<World&>(*this); // counts only
    const int now = ++self.building;
    for (int most = most_builds_at_once; now > most;) {
      self.most_builds_at_once.compare_exchange_weak(most, now);
    }
    ++self.builds;
    delay();
    --self.building;
    const int a = value(genome.source, "a");
    if (a == 4) {
      return BuildFailure{Verdict::NoBuild, "a is 4"};
    }
    const int b = value(genome.source, "b");
    return Built{.library = {},
                 .binary_digest =
                     std::to_string(a) + "/" + std::to_string(b / 3) + (b == 9 ? "!" : ""),
                 .kernels = {{"f", {.registers = a, .shared_bytes = 0, .spill_bytes = 0}}},
                 .probe_sizes = {}};
  }

  Judgement judge(const Genome& genome, const Built&, const Incumbent*, std::stop_token) override {
    on_judge(genome);
    ++judgements;
    judged.insert(genome.id);
    builds_during_judgements += building > 0 ? 1 : 0;
    delay();
    if (value(genome.source, "b") == 9) {
      return {{.verdict = Verdict::Hang, .detail = "b is 9", .sizes = {}}, {}};
    }
    const int a = value(genome.source, "a");
    if (a == 6) {
      return {{.verdict = Verdict::WrongAnswer, .detail = "a is 6", .sizes = {}}, {}};
    }
    const SizeResult size{.size = 64, .median_ms = 1.0 / (1 + a), .reference_ms = 1};
    return {{.verdict = Verdict::Ok, .detail = {}, .sizes = {size}, .speedup = 1.0 + a}, {}};
  }

  VerifyResponse verify(const Genome&, const Built&, bool, std::stop_token) override {
    return {.verdict = Verdict::Ok, .detail = {}, .verification = {}};
  }

private:
  void delay() const {
    if (longest_delay.count() > 0) {
      thread_local std::mt19937 random(std::random_device{}()); // unlike the search's: not seeded
      std::this_thread::sleep_for(longest_delay * (random() % 100) / 100);
    }
  }
};

} // namespace evo::fake
