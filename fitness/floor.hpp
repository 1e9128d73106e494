// The least time that a card can take for a problem: who is faster does something else.
#pragma once

#include <string>

#include "fitness/precision.hpp"
#include "fitness/problem.hpp"
#include "fitness/protocol.hpp"

namespace evo {

/// Dense products of one multiprocessor, in operations (two per multiply-add) per clock; 0 where
/// the architecture has none. Of the fastest card of each architecture. Unknown stands for the
/// fastest class there is.
double operations_per_clock(const std::string& arch, PrecisionClass precision);

/// Bytes per second of the card's memory; 0: unknown.
double memory_bandwidth(const CardRates& card);

class Floor {
public:
  /// `card` and `arch` as the worker reports them.
  Floor(Problem problem, CardRates card, std::string arch);

  /// Milliseconds of one call, the larger of two: the problem's useful operations as products of
  /// the class at the highest clock, and its inputs and output, as far as L2 cannot keep them from
  /// one call to the next, at the memory's bandwidth. 0 for a card that is not known.
  double ms(int size, PrecisionClass precision) const;

private:
  Problem problem_;
  CardRates card_;
  std::string arch_;
};

/// One sentence for the first size at which the times are below the floor, by more than clocks and
/// rounding explain; empty when none is.
std::string below_floor(const std::vector<SizeResult>& sizes, const Floor& floor,
                        PrecisionClass precision);

} // namespace evo
