// What was timed, in words.
#pragma once

#include <string>
#include <vector>

#include "population/duel.hpp"

namespace evo {

/// "1.012x (1.010 to 1.014)".
std::string describe(const Estimate& estimate);

/// Of the last block, and how many were slowed: "1755 MHz, memory 3201 MHz, 52 C, 610 W, power
/// cap". Says so where nothing is known.
std::string describe_conditions(const std::vector<TimedBlock>& blocks);

/// Duels of the same two kernels.
struct Tournament {
  int duels = 0;
  int wins = 0;   // of the challenger
  int blocks = 0; // of all duels
  Duel last;

  void add(Duel duel);
};

/// One duel: the estimate and the decision. Several: how often the challenger won, which of a
/// kernel against itself is the rate of false wins.
std::string describe(const Tournament& tournament, const std::string& challenger,
                     const std::string& incumbent, bool same);

} // namespace evo
