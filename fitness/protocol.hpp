// What the engine and the worker say to each other: one JSON object per line, on two descriptors
// that no candidate knows (worker_client.hpp opens them). The worker answers every request with
// one response, in order, or dies. A request carries a random "token" that its answer repeats: a
// line without it comes from a candidate.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "fitness/fitness.hpp"
#include "fitness/problem.hpp"

namespace evo {

/// Raise it with every change after which an earlier verdict might not be given again.
inline constexpr int judging_version = 1;

/// Where candidates run.
enum class Backend { Cuda, Model };

/// First request: chooses the device, and builds inputs and references. Without sizes it does all
/// but these; a later one with the same device, problem and seed does the rest.
struct PrepareRequest {
  Backend backend = Backend::Model;
  int device = 0;
  Problem problem;
  std::vector<int> sizes;
  std::uint64_t input_seed = 0;
  std::vector<SizeResult> reference; // times known from an earlier worker: not measured again
};

/// What bounds the card's speed, as its driver tells; 0: unknown.
struct CardRates {
  int multiprocessors = 0;
  double clock_mhz = 0; // of the multiprocessors, at most
  double memory_clock_mhz = 0;
  int bus_bits = 0;
  double l2_bytes = 0;
};

/// Answer to PrepareRequest, and what `evo doctor` shows.
struct PrepareResponse {
  std::string device_name;           // "NVIDIA H200"; "CPU" for the model backend
  std::string arch;                  // "sm_90"; empty for the model backend
  std::string driver;                // CUDA driver API version, "13.0"; empty without one
  std::string torch_version;         // "2.11.0"
  std::string reference_precision;   // "fp32" or "tf32": what the reference was found to compute in
  std::vector<SizeResult> reference; // reference_ms per size (CUDA only)
  CardRates card;                    // CUDA only
  std::string conditions_missing;    // why blocks come without conditions; empty: they have them
  std::string error;                 // not empty: the backend cannot be used; one sentence
};

/// Judges one built candidate.
struct JudgeRequest {
  std::string library;          // shared object: nvcc's, or the lowered host code's
  std::string id;               // genome id, for messages
  std::vector<int> sizes;       // subset of the prepared ones (CUDA), or free (model)
  double stop_at_ms_ratio = 0;  // give up timing beyond this multiple of best_ms; 0: never
  std::vector<double> best_ms;  // the incumbent's times, aligned with sizes; empty: none
  int calls = 0;                // timed calls per size
  std::vector<int> count_sizes; // model backend: sizes at which to count what the launches do
};

/// What a launch does, counted on the CPU: the analytic model's input. All totals stand for the
/// whole grid.
struct LaunchCounts {
  std::string kernel;
  int size = 0; // of the varying dim
  double blocks = 0;
  double threads = 0;             // per block
  double shared_bytes = 0;        // dynamic, per block
  double global_load_sectors = 0; // 32-byte sectors, over all warps
  double global_store_sectors = 0;
  double shared_load_wavefronts = 0; // bank-conflict-free passes of up to 128 bytes, over all warps
  double shared_store_wavefronts = 0;
  double memory_instructions = 0; // warp-level loads and stores
  double flops = 0;               // multiplications and additions, over all threads
  double barriers = 0;            // over all blocks
};

/// The fields that are totals over the grid.
inline constexpr std::array launch_totals{&LaunchCounts::global_load_sectors,
                                          &LaunchCounts::global_store_sectors,
                                          &LaunchCounts::shared_load_wavefronts,
                                          &LaunchCounts::shared_store_wavefronts,
                                          &LaunchCounts::memory_instructions,
                                          &LaunchCounts::flops,
                                          &LaunchCounts::barriers};

struct JudgeResponse {
  Fitness fitness;
  std::vector<LaunchCounts> counts; // model backend only
  bool leaving = false; // the candidate spoilt the worker's state: it exits after this answer

  void fail(Verdict verdict, std::string detail);
};

struct Contender {
  std::string id;      // genome id, for messages
  std::string library; // shared object of nvcc's
};

/// Times several candidates and the reference against each other, interleaved (block_order.hpp).
struct CompareRequest {
  std::vector<Contender> contenders;
  std::vector<int> sizes; // subset of the prepared ones
  int blocks = 0;
  int cold_calls = 0; // per contender and size, each after the L2 cache was flushed
};

/// How the card was when a block ended.
struct Conditions {
  double sm_clock_mhz = 0;
  double memory_clock_mhz = 0;
  double temperature_c = 0;
  double power_w = 0;
  std::vector<std::string> throttled; // the driver's reasons, in words
  bool slowed = false;                // by heat or by the hardware, even after repetition
};

/// One block at one size, in ms: the two calls of each contender, and of the reference.
struct BlockTimes {
  int size = 0;
  std::vector<std::vector<double>> contenders_ms;
  std::vector<double> reference_ms;
};

struct TimedBlock {
  std::vector<BlockTimes> sizes; // as the request has them
  int repetitions = 0;           // of the block, because the card was slowed
  std::optional<Conditions> conditions;
};

/// `blocks` are present exactly when the verdict is Ok.
struct CompareResponse {
  Verdict verdict = Verdict::Crash;
  std::string detail;  // one sentence for a failure
  std::string culprit; // id of the contender that failed; empty: the worker died or refused
  std::vector<TimedBlock> blocks;
  std::vector<std::vector<double>> cold_ms; // per contender and size, median; empty: not asked
  double empty_kernel_ms = 0;               // median of a launch that does nothing; 0: unknown
  bool leaving = false;                     // as JudgeResponse's

  void fail(Verdict failed, std::string why);
};

/// Takes one built candidate through the cases of a level, and through many more calls: on the
/// contents of a pool, between buffers that change places. No timing.
struct VerifyRequest {
  std::string library;
  std::string id; // genome id, for messages
  Level level = Level::Default;
  std::vector<int> sizes; // free; each case runs at one of them, in rotation
  bool full = false;      // every case at every size, and on after a failure
  int calls = 0;          // checked calls in all, at least; CUDA only
};

/// `verification` holds whatever was found before a failure, too.
struct VerifyResponse {
  Verdict verdict = Verdict::Crash;
  std::string detail; // one sentence for a failure
  Verification verification;
  bool leaving = false; // as JudgeResponse's

  void fail(Verdict verdict, std::string detail);
  /// The verdict on the cases; `vary` is the dim that sizes set.
  void conclude(const std::string& vary);
};

/// On the wire {"ask": "judge", "token": ..., ...the request's fields}.
using Request = std::variant<PrepareRequest, JudgeRequest, CompareRequest, VerifyRequest>;

nlohmann::json encode(const Request& request);
/// Throws nlohmann::json::exception or std::invalid_argument for what is no request.
Request decode_request(const nlohmann::json& message);

void to_json(nlohmann::json& json, const Problem& problem);
void from_json(const nlohmann::json& json, Problem& problem);
void to_json(nlohmann::json& json, const SizeResult& result);
void from_json(const nlohmann::json& json, SizeResult& result);
void to_json(nlohmann::json& json, const Fitness& fitness);
void from_json(const nlohmann::json& json, Fitness& fitness);
void to_json(nlohmann::json& json, const PrepareRequest& request);
void from_json(const nlohmann::json& json, PrepareRequest& request);
void to_json(nlohmann::json& json, const PrepareResponse& response);
void from_json(const nlohmann::json& json, PrepareResponse& response);
void to_json(nlohmann::json& json, const JudgeRequest& request);
void from_json(const nlohmann::json& json, JudgeRequest& request);
void to_json(nlohmann::json& json, const CompareRequest& request);
void from_json(const nlohmann::json& json, CompareRequest& request);
void to_json(nlohmann::json& json, const TimedBlock& block);
void from_json(const nlohmann::json& json, TimedBlock& block);
void to_json(nlohmann::json& json, const CompareResponse& response);
void from_json(const nlohmann::json& json, CompareResponse& response);
void to_json(nlohmann::json& json, const LaunchCounts& counts);
void from_json(const nlohmann::json& json, LaunchCounts& counts);
void to_json(nlohmann::json& json, const JudgeResponse& response);
void from_json(const nlohmann::json& json, JudgeResponse& response);
void to_json(nlohmann::json& json, const VerifyRequest& request);
void from_json(const nlohmann::json& json, VerifyRequest& request);
void to_json(nlohmann::json& json, const VerifyResponse& response);
void from_json(const nlohmann::json& json, VerifyResponse& response);

} // namespace evo
