// Runs one lowered kernel file on the CPU (see lower.hpp), and reports everything it did wrong.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "fitness/protocol.hpp"
#include "fitness/verdict.hpp"

namespace evo::cpu {

/// The order in which runnable threads of a block are resumed, and blocks of a grid are run.
enum class ThreadOrder { Ascending, Descending, Shuffled };

struct Tensor {
  std::string name; // for messages
  std::vector<float> values;
};

struct Run {
  Verdict verdict = Verdict::Ok; // Ok: ran to the end without a fault; values are not compared here
  std::string detail; // "race on shared memory in gemm: thread 3 writes what thread 40 ..."
  std::vector<LaunchCounts> counts; // one per launch; only when asked for
};

/// How much of every launch is run.
enum class Extent {
  Grid,       // all blocks
  FirstBlock, // enough to count what any inner block does
  Nothing,    // only the configurations are recorded; buffers have no memory
};

/// How tensor cores add up the products of one instruction and the sum before it.
enum class Accumulation {
  Rounded, // exactly, then rounded once to nearest
  Ampere,  // truncated as sm_80 to sm_89 do (tensor_core.hpp)
  Hopper,  // and as sm_90 does
};

struct RunOptions {
  ThreadOrder order = ThreadOrder::Ascending;
  std::uint64_t shuffle_seed = 0;
  Extent extent = Extent::Grid;
  /// Counts what every block that runs does, scaled to the whole grid. A thread that reads a
  /// location again before the next barrier, or reads what it has just written, is taken to hold it
  /// in a register: that is no access.
  bool count = false;
  Accumulation accumulation = Accumulation::Rounded;
};

/// A loaded kernel file. Inputs, output and workspace stand between NaN red zones; output and
/// workspace are NaN before a run, shared memory NaN before each block. Faults: OutOfBounds
/// (a red zone, or memory that belongs to no buffer, was accessed), Race (two threads of a block
/// touch one location between two barriers, or two blocks one global location, and one writes),
/// TouchedInput, UnwrittenOutput (with the first element), LaunchError (bad configuration, more
/// shared memory than opted in to, an error code from the entry), Hang (a barrier that some threads
/// of the block never reach, or a shuffle, ldmatrix or mma.sync that some lanes of the warp do not,
/// or no end after more memory accesses than sizes like these could need), Crash (a misaligned
/// access), NoBuild (no such entry). A real crash ends the process, and a loop that accesses no
/// memory must be ended from outside. Of one library, only one run at a time.
class Executor {
public:
  explicit Executor(const std::filesystem::path& library, const std::string& entry);
  ~Executor();

  /// `dims` in entry order. `output` is resized by the caller, and overwritten by a whole grid.
  /// With Extent::Nothing the tensors may be empty.
  Run run(const std::vector<Tensor>& inputs, Tensor& output, const std::vector<int>& dims,
          const RunOptions& options);

private:
  struct Library;
  std::unique_ptr<Library> library_;
};

} // namespace evo::cpu
