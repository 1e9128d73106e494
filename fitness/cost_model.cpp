#include "fitness/cost_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace evo {
namespace {

constexpr double warp_lanes = 32;
constexpr double schedulers_per_sm = 4;   // warp instructions per clock
constexpr double l1_bytes_per_clock = 64; // global loads per SM
constexpr double sector_bytes = 32;
constexpr double register_granule = 256;             // registers are handed out per warp in these
constexpr double launch_overhead_ms = 0.004;         // an empty kernel, measured on an H200
constexpr double cycles_exposed_per_barrier = 300;   // half a trip to L2 that nothing else covers
constexpr double cycles_per_memory_instruction = 30; // latency over what one warp keeps in flight
constexpr double unknown_library_efficiency = 0.7;   // of the FFMA peak, where none was measured

/// Datasheet rates (multiprocessors, boost clock, FP32 lanes per multiprocessor, memory
/// bandwidth). L2
/// bandwidth is taken as 2.5 times that of memory, as microbenchmarks of these families report.
struct CardRow {
  const char* name;
  const char* arch;
  int multiprocessors;
  double clock_ghz;
  double lanes;
  double memory_gb_per_s;
  double library_tflops; // 0: not measured
};

constexpr std::array<CardRow, 9> cards{{
    {"Tesla V100", "sm_70", 80, 1.53, 64, 900, 0},
    {"Tesla T4", "sm_75", 40, 1.59, 64, 320, 0},
    {"A100", "sm_80", 108, 1.41, 64, 1555, 0},
    {"RTX 3090", "sm_86", 82, 1.695, 128, 936, 24},
    {"RTX 4090", "sm_89", 128, 2.52, 128, 1008, 0},
    {"H200", "sm_90", 132, 1.83, 128, 4800, 49.9},
    {"H200", "sm_90a", 132, 1.83, 128, 4800, 49.9},
    {"B200", "sm_100", 148, 1.85, 128, 8000, 0},
    {"RTX 5090", "sm_120", 170, 2.41, 128, 1792, 0},
}};

/// One block's share of a launch, which counts over the whole grid.
LaunchCounts per_block(LaunchCounts work) {
  for (double LaunchCounts::* total : launch_totals) {
    work.*total /= work.blocks;
  }
  return work;
}

/// How many blocks of this shape one multiprocessor holds at a time; 0 when none fits.
double resident_blocks(const Target& target, const LaunchCounts& work,
                       const KernelResources& resources) {
  const double warps = std::ceil(work.threads / warp_lanes);
  const double registers_per_warp =
      std::ceil(resources.registers * warp_lanes / register_granule) * register_granule;
  const double shared = work.shared_bytes + resources.shared_bytes + 1024; // reserved by the system
  double blocks = target.blocks_per_sm;
  blocks = std::min(blocks, std::floor(target.threads_per_sm / work.threads));
  if (registers_per_warp > 0) {
    blocks = std::min(blocks, std::floor(target.registers_per_sm / (registers_per_warp * warps)));
  }
  return std::min(blocks, std::floor(target.shared_bytes_per_sm / shared));
}

/// Clocks in which one multiprocessor runs `blocks` of its blocks side by side: the busiest of its
/// units, or the latency that so few warps cannot hide.
double clocks_per_wave(const Card& card, const LaunchCounts& work, const KernelResources& resources,
                       double blocks) {
  const double fused_multiply_adds = work.flops / 2;
  const double spills = resources.spill_bytes / 4.0 * work.threads / warp_lanes;
  const double memory_instructions = work.memory_instructions + spills;
  const double arithmetic = blocks * fused_multiply_adds / card.ffma_per_clock_per_sm;
  const double issue =
      blocks * (fused_multiply_adds / warp_lanes + 1.5 * memory_instructions) / schedulers_per_sm;
  const double shared = blocks * (work.shared_load_wavefronts + work.shared_store_wavefronts);
  const double l1 = blocks * (work.global_load_sectors + work.global_store_sectors) * sector_bytes /
                    l1_bytes_per_clock;
  const double warps = std::max(1.0, work.threads / warp_lanes);
  const double latency = memory_instructions / warps * cycles_per_memory_instruction;
  const double exposed = work.barriers * cycles_exposed_per_barrier / blocks;
  return std::max({arithmetic, issue, shared, l1, latency}) + exposed;
}

double launch_ms(const Card& card, const LaunchCounts& launch, const KernelResources& resources) {
  const LaunchCounts work = per_block(launch);
  const double resident = resident_blocks(card.target, work, resources);
  if (resident < 1) {
    return HUGE_VAL;
  }
  const double per_wave = resident * card.multiprocessors;
  const double full_waves = std::floor(work.blocks / per_wave);
  const double left = work.blocks - full_waves * per_wave;
  double clocks = full_waves * clocks_per_wave(card, work, resources, resident);
  if (left > 0) {
    const double last = std::ceil(left / card.multiprocessors);
    clocks += clocks_per_wave(card, work, resources, last);
  }
  const double bytes =
      work.blocks * (work.global_load_sectors + work.global_store_sectors) * sector_bytes;
  const double on_chip = clocks / (card.clock_ghz * 1e6);
  const double l2 = bytes / (card.l2_gb_per_s * 1e6);
  return std::max(on_chip, l2) + launch_overhead_ms;
}

} // namespace

Card Card::for_arch(const std::string& arch) {
  const auto row = std::ranges::find(cards, arch, &CardRow::arch);
  const auto target = Target::find(arch);
  if (row == cards.end() || !target) {
    throw InputError("no card is known for the architecture '" + arch + "'; use one of " +
                     Target::known());
  }
  const double peak = 2e-3 * row->multiprocessors * row->clock_ghz * row->lanes;
  return {.name = row->name,
          .target = *target,
          .multiprocessors = row->multiprocessors,
          .clock_ghz = row->clock_ghz,
          .ffma_per_clock_per_sm = row->lanes,
          .l2_gb_per_s = 2.5 * row->memory_gb_per_s,
          .library_tflops =
              row->library_tflops > 0 ? row->library_tflops : unknown_library_efficiency * peak};
}

double estimate_ms(const Card& card, const std::vector<LaunchCounts>& counts,
                   const std::map<std::string, KernelResources>& kernels, int size) {
  double total = 0;
  for (const LaunchCounts& launch : counts) {
    if (launch.size == size) {
      const auto found = kernels.find(launch.kernel);
      total += launch_ms(card, launch, found == kernels.end() ? KernelResources{} : found->second);
    }
  }
  return total;
}

double estimate_reference_ms(const Card& card, double flops) {
  return flops / (card.library_tflops * 1e9);
}

} // namespace evo
