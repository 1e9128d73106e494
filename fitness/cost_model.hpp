// The analytic time of a kernel on a card that is not there. Every figure from here is an estimate
// and is called one wherever it is shown.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fitness/builder.hpp"
#include "fitness/protocol.hpp"
#include "mutators/target.hpp"

namespace evo {

/// Peak rates of one card; sources in cost_model.cpp.
struct Card {
  std::string name;
  Target target;
  int multiprocessors = 0;
  double clock_ghz = 0;
  double ffma_per_clock_per_sm = 0; // lanes
  double l2_gb_per_s = 0;
  double library_tflops = 0; // what the vendor's SGEMM reaches: the model's reference time

  /// The card evo assumes for an architecture: "sm_86" is an RTX 3090.
  static Card for_arch(const std::string& arch);
};

/// Milliseconds of one call at `size`: the sum over the launches counted at that size of a roofline
/// (arithmetic, instruction issue, shared memory, L1, L2) on the blocks that one multiprocessor
/// holds, plus what so few warps cannot hide. A launch that fits no multiprocessor takes for ever.
double estimate_ms(const Card& card, const std::vector<LaunchCounts>& counts,
                   const std::map<std::string, KernelResources>& kernels, int size);

/// The model's stand-in for the reference: useful flops at the library's rate.
double estimate_reference_ms(const Card& card, double flops);

} // namespace evo
