#include "population/timing_report.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace evo {

std::string describe(const Estimate& estimate) {
  return fmt::format("{:.3f}x ({:.3f} to {:.3f})", estimate.ratio, estimate.low, estimate.high);
}

std::string describe_conditions(const std::vector<TimedBlock>& blocks) {
  if (blocks.empty() || !blocks.back().conditions) {
    return "its clocks and temperature are not known";
  }
  const Conditions& last = *blocks.back().conditions;
  std::string text =
      fmt::format("{:.0f} MHz, memory {:.0f} MHz, {:.0f} C, {:.0f} W", last.sm_clock_mhz,
                  last.memory_clock_mhz, last.temperature_c, last.power_w);
  for (const std::string& reason : last.throttled) {
    text += ", " + reason;
  }
  const auto slowed = std::ranges::count_if(
      blocks, [](const TimedBlock& block) { return block.conditions && block.conditions->slowed; });
  return slowed == 0
             ? text
             : text + fmt::format("; {} of {} blocks were slowed by heat or by the hardware",
                                  slowed, blocks.size());
}

void Tournament::add(Duel duel) {
  ++duels;
  wins += duel.decision == Decision::Faster ? 1 : 0;
  blocks += static_cast<int>(duel.blocks.size());
  last = std::move(duel);
}

std::string describe(const Tournament& tournament, const std::string& challenger,
                     const std::string& incumbent, bool same) {
  if (tournament.duels == 0) {
    return "No duel was fought.\n";
  }
  if (tournament.duels == 1) {
    return fmt::format("{} against {}: {} as fast after {} blocks: {}\n", challenger, incumbent,
                       describe(tournament.last.estimate), tournament.blocks,
                       tournament.wins == 1 ? "faster" : "not faster");
  }
  return fmt::format("{} against {}: {} in {} of {} trials, {:.1f} %, after {:.1f} blocks each\n",
                     challenger, same ? "itself" : incumbent, same ? "false wins" : "faster",
                     tournament.wins, tournament.duels, 100.0 * tournament.wins / tournament.duels,
                     static_cast<double>(tournament.blocks) / tournament.duels);
}

} // namespace evo
