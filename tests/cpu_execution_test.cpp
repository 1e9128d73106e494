// Whole kernels on the CPU: the seeds are right, and each kind of wrong kernel gets its verdict.
#include <cmath>
#include <stdexcept>

#include <gmock/gmock.h>

#include "fitness/cpu/executor.hpp"
#include "fitness/cpu/lower.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/kernels.hpp"

namespace evo {
namespace {

using cpu::ThreadOrder;
using test::Values;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;

constexpr int rank = 16;

std::vector<double> reference(const std::vector<cpu::Tensor>& inputs, int d) {
  const auto at = [&](int tensor, int row, int col, int columns) {
    return double{inputs[tensor].values[static_cast<std::size_t>(row) * columns + col]};
  };
  std::vector<double> projected(static_cast<std::size_t>(rank) * d);
  for (int k = 0; k < d; ++k) {
    for (int row = 0; row < rank; ++row) {
      for (int col = 0; col < d; ++col) {
        projected[row * d + col] += at(3, k, row, rank) * at(1, k, col, d);
      }
    }
  }
  std::vector<double> result(static_cast<std::size_t>(d) * d);
  for (int row = 0; row < d; ++row) {
    for (int k = 0; k < d; ++k) {
      for (int col = 0; col < d; ++col) {
        result[row * d + col] += at(0, row, k, d) * at(1, k, col, d);
      }
    }
    for (int k = 0; k < rank; ++k) {
      for (int col = 0; col < d; ++col) {
        result[row * d + col] += at(2, row, k, rank) * projected[k * d + col];
      }
    }
  }
  return result;
}

class Seeds : public ::testing::TestWithParam<const char*> {
protected:
  void expect_correct(int d, Values values, ThreadOrder order, double tolerance) {
    cpu::Executor executor(test::cpu_library(test::read(test::in_repository(GetParam()))), "lora");
    const auto inputs = test::inputs(test::lora(), d, values);
    cpu::Tensor output = test::output(test::lora(), d);
    const cpu::Run run =
        executor.run(inputs, output, {d, rank}, {.order = order, .shuffle_seed = 3});
    ASSERT_EQ(run.verdict, Verdict::Ok) << run.detail;
    EXPECT_THAT(run.counts, IsEmpty());
    const std::vector<double> expected = reference(inputs, d);
    double error = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      error = std::max(error, std::abs(output.values[i] - expected[i]));
    }
    EXPECT_LE(error, tolerance) << "d = " << d;
  }
};

TEST_P(Seeds, AreExactOnSmallIntegersInEveryOrder) {
  for (const int d : {17, 65, 131}) {
    for (const ThreadOrder order :
         {ThreadOrder::Ascending, ThreadOrder::Descending, ThreadOrder::Shuffled}) {
      expect_correct(d, Values::Integers, order, 0);
    }
  }
}

TEST_P(Seeds, AreAccurateOnReals) {
  expect_correct(131, Values::Reals, ThreadOrder::Shuffled, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Lora, Seeds,
                         ::testing::Values("seeds/lora/naive.cu", "seeds/lora/tiled.cu"));

TEST(CpuDifference, IsNoneBetweenTheSeedsAndSomeWhenOneForgetsTheLowRankTerm) {
  const std::string naive = test::read(test::in_repository("seeds/lora/naive.cu"));
  const std::string tiled = test::read(test::in_repository("seeds/lora/tiled.cu"));
  EXPECT_EQ(test::cpu_difference(test::lora(), tiled, tiled), "");
  std::string wrong = tiled;
  wrong.erase(wrong.find("  update<<<"),
              wrong.find("  return cudaGetLastError") - wrong.find("  update<<<"));
  EXPECT_THAT(test::cpu_difference(test::lora(), tiled, wrong), HasSubstr("before and"));
}

// Small kernels from one vector to another: Y[i] for i < n from X[0..n).

struct Outcome {
  cpu::Run run;
  std::vector<float> values;
};

std::string program(const std::string& kernel, const std::string& launch) {
  return "#include <cuda_runtime.h>\n" + kernel +
         "\nextern \"C\" cudaError_t entry(const float *X, float *Y, int n, void *workspace,"
         " cudaStream_t stream) {\n  " +
         launch + "\n  return cudaGetLastError();\n}\n";
}

Outcome run(const std::string& source, int n, const cpu::RunOptions& options = {}) {
  cpu::Executor executor(test::cpu_library(source), "entry");
  cpu::Tensor input{"X", std::vector<float>(static_cast<std::size_t>(n))};
  for (int i = 0; i < n; ++i) {
    input.values[static_cast<std::size_t>(i)] = static_cast<float>(i + 1);
  }
  cpu::Tensor output{"Y", std::vector<float>(static_cast<std::size_t>(n))};
  Outcome outcome{executor.run({input}, output, {n}, options), {}};
  outcome.values = output.values;
  return outcome;
}

Outcome run(const std::string& kernel, const std::string& launch, int n,
            const cpu::RunOptions& options = {}) {
  return run(program(kernel, launch), n, options);
}

/// In every order of threads the same verdict.
void expect_verdict(Verdict verdict, const std::string& detail, const std::string& kernel,
                    const std::string& launch, int n) {
  for (const ThreadOrder order :
       {ThreadOrder::Ascending, ThreadOrder::Descending, ThreadOrder::Shuffled}) {
    const cpu::Run result = run(kernel, launch, n, {.order = order}).run;
    EXPECT_EQ(to_string(result.verdict), to_string(verdict)) << result.detail;
    EXPECT_THAT(result.detail, HasSubstr(detail));
  }
}

/// Reverses blocks of 64 through shared memory, over and over, with barriers to leave out.
std::string reverse(const std::string& first_barrier, const std::string& second_barrier) {
  return "__global__ void reverse(const float *X, float *Y) {\n"
         "  __shared__ float tile[64];\n"
         "  for (int k = 0; k < 128; k += 64) {\n"
         "    tile[threadIdx.x] = X[k + threadIdx.x];\n" +
         first_barrier + "    Y[k + threadIdx.x] = tile[63 - threadIdx.x];\n" + second_barrier +
         "  }\n}\n";
}
const std::string barrier = "    __syncthreads();\n";

TEST(CpuExecution, RunsThreadsBetweenBarriers) {
  const Outcome outcome = run(reverse(barrier, barrier), "reverse<<<1, 64>>>(X, Y);", 128);
  EXPECT_EQ(outcome.run.verdict, Verdict::Ok) << outcome.run.detail;
  EXPECT_EQ(outcome.values[0], 64);
  EXPECT_EQ(outcome.values[127], 65);
}

TEST(CpuExecution, FindsAMissingFirstBarrier) {
  expect_verdict(Verdict::Race, "shared tile[", reverse("", barrier), "reverse<<<1, 64>>>(X, Y);",
                 128);
}

TEST(CpuExecution, FindsAMissingSecondBarrier) {
  expect_verdict(Verdict::Race, "between the same barriers", reverse(barrier, ""),
                 "reverse<<<1, 64>>>(X, Y);", 128);
}

TEST(CpuExecution, NamesWhatRaces) {
  const cpu::Run result = run("__global__ void clash(float *Y) {\n"
                              "  __shared__ float one[1];\n"
                              "  one[0] = threadIdx.x;\n"
                              "  Y[threadIdx.x] = one[0];\n"
                              "}\n",
                              "clash<<<1, 2>>>(Y);", 2)
                              .run;
  EXPECT_EQ(result.verdict, Verdict::Race);
  EXPECT_EQ(result.detail,
            "clash: thread 1 of block (0, 0, 0) writes shared one[0], which thread 0 "
            "writes between the same barriers, at `one[0]` in line 4");
}

TEST(CpuExecution, FindsARaceBetweenBlocks) {
  expect_verdict(Verdict::Race, "in the same launch",
                 "__global__ void last(float *Y, int n) { Y[threadIdx.x] = blockIdx.x; }\n",
                 "last<<<2, 8>>>(Y, n);", 8);
  // One block reads what another writes.
  expect_verdict(Verdict::Race, "in the same launch",
                 "__global__ void shift(float *Y) {\n"
                 "  if (blockIdx.x == 0) Y[0] = 1.0f; else Y[1] = Y[0];\n}\n",
                 "shift<<<2, 1>>>(Y);", 2);
}

TEST(CpuExecution, LetsLaunchesFollowEachOtherAndAtomicsMeet) {
  const Outcome outcome = run("__global__ void clear(float *Y, int n) { Y[threadIdx.x] = 0.0f; }\n"
                              "__global__ void add(const float *X, float *Y, int n) {\n"
                              "  atomicAdd(&Y[0], X[blockIdx.x]);\n}\n",
                              "clear<<<1, n>>>(Y, n);\n  add<<<n, 1>>>(X, Y, n);", 4);
  EXPECT_EQ(outcome.run.verdict, Verdict::Ok) << outcome.run.detail;
  EXPECT_THAT(outcome.values, ElementsAre(10, 0, 0, 0));
}

TEST(CpuExecution, FindsAPlainAccessAmongAtomics) {
  expect_verdict(Verdict::Race, "atomically updates",
                 "__global__ void mixed(float *Y) {\n"
                 "  if (threadIdx.x == 0) atomicAdd(&Y[0], 1.0f); else Y[0] = 1.0f;\n}\n",
                 "mixed<<<1, 2>>>(Y);", 1);
}

TEST(CpuExecution, FindsAReadPastTheEnd) {
  expect_verdict(Verdict::OutOfBounds, "reads X[65], outside its 65 elements",
                 "__global__ void next(const float *X, float *Y) {\n"
                 "  Y[threadIdx.x] = X[threadIdx.x + 1];\n}\n",
                 "next<<<1, n>>>(X, Y);", 65);
}

TEST(CpuExecution, FindsAWritePastTheEndAndBeforeTheBeginning) {
  const std::string kernel = "__global__ void shift(const float *X, float *Y, int by) {\n"
                             "  Y[static_cast<int>(threadIdx.x) + by] = X[threadIdx.x];\n}\n";
  expect_verdict(Verdict::OutOfBounds, "writes Y[33]", kernel, "shift<<<1, n>>>(X, Y, 1);", 33);
  expect_verdict(Verdict::OutOfBounds, "writes Y[-1]", kernel, "shift<<<1, n>>>(X, Y, -1);", 33);
  expect_verdict(Verdict::OutOfBounds, "belongs to no buffer", kernel,
                 "shift<<<1, n>>>(X, Y, 1 << 28);", 33);
}

TEST(CpuExecution, FindsAVectorAccessThatStartsInsideOrLiesAskew) {
  const std::string kernel = "__global__ void copy(const float *X, float *Y, int n) {\n"
                             "  const int i = 4 * threadIdx.x;\n"
                             "  *reinterpret_cast<float4 *>(&Y[i]) =\n"
                             "      *reinterpret_cast<const float4 *>(X + i);\n}\n";
  EXPECT_THAT(run(kernel, "copy<<<1, n / 4>>>(X, Y, n);", 8).values,
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  expect_verdict(Verdict::OutOfBounds, "X[4]", kernel, "copy<<<1, 2>>>(X, Y, n);", 6);
  expect_verdict(Verdict::Crash, "misaligned", kernel, "copy<<<1, 1>>>(X + 1, Y, n);", 6);
}

TEST(CpuExecution, FindsAnIndexBeyondALocalArray) {
  expect_verdict(Verdict::OutOfBounds, "index 4 of a local array of 4 elements",
                 "__global__ void local(float *Y, int n) {\n"
                 "  float sum[4] = {};\n"
                 "  for (int i = 0; i <= n; ++i) sum[i] += 1.0f;\n"
                 "  for (int i = 0; i < n; ++i) Y[i] = sum[i];\n}\n",
                 "local<<<1, 1>>>(Y, n);", 4);
}

TEST(CpuExecution, FindsAnUnwrittenTail) {
  expect_verdict(Verdict::UnwrittenOutput, "Y[64] is never written",
                 "__global__ void copy(const float *X, float *Y) {\n"
                 "  const int i = blockIdx.x * 32 + threadIdx.x;\n  Y[i] = X[i];\n}\n",
                 "copy<<<n / 32, 32>>>(X, Y);", 70);
}

TEST(CpuExecution, FindsAWriteIntoAnInput) {
  expect_verdict(Verdict::TouchedInput, "writes X[0]",
                 "__global__ void swap(float *X, float *Y) { Y[0] = X[0]; X[0] = 0.0f; }\n",
                 "swap<<<1, 1>>>(const_cast<float *>(X), Y);", 1);
}

TEST(CpuExecution, FindsAnEarlyReturnBeforeABarrier) {
  expect_verdict(Verdict::Hang, "has returned",
                 "__global__ void leave(const float *X, float *Y, int n) {\n"
                 "  __shared__ float tile[32];\n"
                 "  if (threadIdx.x >= n) return;\n"
                 "  tile[threadIdx.x] = X[threadIdx.x];\n"
                 "  __syncthreads();\n"
                 "  Y[threadIdx.x] = tile[n - 1 - threadIdx.x];\n}\n",
                 "leave<<<1, 32>>>(X, Y, n);", 20);
}

TEST(CpuExecution, FindsABarrierInADivergentBranch) {
  expect_verdict(Verdict::Hang, "waits at `__syncthreads()` in line 3",
                 "__global__ void split(float *Y) {\n"
                 "  if (threadIdx.x < 4) { __syncthreads(); }\n"
                 "  else { __syncthreads(); }\n"
                 "  Y[threadIdx.x] = 0.0f;\n}\n",
                 "split<<<1, 8>>>(Y);", 8);
}

TEST(CpuExecution, FindsAnInfiniteLoop) {
  const cpu::Run result =
      run("__global__ void spin(float *Y) {\n  Y[0] = 0.0f;\n  while (Y[0] == 0.0f) {}\n}\n",
          "spin<<<1, 1>>>(Y);", 1)
          .run;
  EXPECT_EQ(result.verdict, Verdict::Hang);
  EXPECT_THAT(result.detail, HasSubstr("still running"));
}

TEST(CpuExecution, ShowsSharedMemoryThatWasNeverWritten) {
  const std::string kernel = "__global__ void stale(const float *X, float *Y) {\n"
                             "  extern __shared__ float tile[];\n"
                             "  if (blockIdx.x == 0) tile[threadIdx.x] = X[threadIdx.x];\n"
                             "  Y[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x];\n}\n";
  const Outcome outcome = run(kernel, "stale<<<2, 32, 128>>>(X, Y);", 64);
  EXPECT_EQ(outcome.run.verdict, Verdict::Ok) << outcome.run.detail;
  EXPECT_EQ(outcome.values[31], 32);
  EXPECT_TRUE(std::isnan(outcome.values[32]));
}

TEST(CpuExecution, FindsAnAccessBeyondDynamicSharedMemory) {
  expect_verdict(Verdict::OutOfBounds, "outside its 8 elements",
                 "__global__ void small(float *Y) {\n"
                 "  extern __shared__ float tile[];\n"
                 "  tile[threadIdx.x] = 1.0f;\n  Y[threadIdx.x] = tile[threadIdx.x];\n}\n",
                 "small<<<1, 16, 32>>>(Y);", 16);
}

class LaunchErrors : public ::testing::Test {
protected:
  static constexpr const char* fill =
      "template <int value> __global__ void fill(float *Y) { Y[threadIdx.x] = value; }\n"
      "__global__ void __launch_bounds__(64) bounded(float *Y) { Y[threadIdx.x] = 0.0f; }\n"
      "__global__ void large(float *Y) {\n"
      "  __shared__ float tile[8192];\n"
      "  tile[threadIdx.x] = 1.0f;\n  Y[threadIdx.x] = tile[threadIdx.x];\n}\n";

  static void expect(const std::string& detail, const std::string& launch) {
    const cpu::Run result = run(fill, launch, 4).run;
    EXPECT_EQ(result.verdict, Verdict::LaunchError) << launch;
    EXPECT_THAT(result.detail, HasSubstr(detail));
  }
  static void expect_none(const std::string& launch) {
    const cpu::Run result = run(fill, launch, 4).run;
    EXPECT_EQ(result.verdict, Verdict::Ok) << launch << ": " << result.detail;
  }
  static std::string opt_in(int allowed, int used) {
    return "cudaFuncSetAttribute(fill<1>, cudaFuncAttributeMaxDynamicSharedMemorySize, " +
           std::to_string(allowed) + ");\n  fill<1><<<1, 4, " + std::to_string(used) + ">>>(Y);";
  }
};

TEST_F(LaunchErrors, TooManyThreads) {
  expect("1 to 1024 threads", "fill<1><<<1, 2048>>>(Y);");
}

TEST_F(LaunchErrors, NoBlocksOrThreads) {
  expect("its grid is (1, 0, 1)", "fill<1><<<dim3(1, n - 4), 4>>>(Y);");
  expect("its block is (0, 1, 1)", "fill<1><<<1, n - 4>>>(Y);");
}

TEST_F(LaunchErrors, MoreThreadsThanItsBounds) {
  expect("launch bounds of 64", "bounded<<<1, 65>>>(Y);");
}

TEST_F(LaunchErrors, MoreSharedMemoryThanOptedInTo) {
  expect_none("fill<1><<<1, 4, 48 * 1024>>>(Y);");
  expect("cudaFuncSetAttribute asks for no more", "fill<1><<<1, 4, 48 * 1024 + 4>>>(Y);");
  expect_none(opt_in(60000, 60000));
  expect("as cudaFuncSetAttribute asks", opt_in(60000, 60004));
  expect("asks for no more", opt_in(100 * 1024, 60000)); // beyond the device's limit: refused
  expect("asks for no more", opt_in(60000, 0) + "\n  fill<2><<<1, 4, 60000>>>(Y);");
}

TEST_F(LaunchErrors, StaticAndDynamicSharedMemoryTogether) {
  expect_none("large<<<1, 4, 16 * 1024>>>(Y);");
  expect("needs 49156 bytes", "large<<<1, 4, 16 * 1024 + 4>>>(Y);");
}

TEST_F(LaunchErrors, AnErrorCodeFromTheEntry) {
  expect("entry returns error 1", "return cudaErrorInvalidValue;");
}

TEST(CpuExecution, MissesTheEntry) {
  cpu::Executor executor(test::cpu_library(program("", "")), "other");
  cpu::Tensor output{"Y", {0}};
  const cpu::Run result = executor.run({}, output, {1}, {});
  EXPECT_EQ(result.verdict, Verdict::NoBuild);
  EXPECT_THAT(result.detail, HasSubstr("no extern \"C\" function 'other'"));
}

// What lowering has to see through.

TEST(Lowering, ChecksThroughReferencesHelpersTemplatesLambdasAndStructs) {
  const Outcome outcome =
      run("struct Tiles { float a[4][8]; float2 b[16]; };\n"
          "template <typename T> __device__ T twice(const T &value) { return value + value; }\n"
          "__device__ float &cell(Tiles &tiles, int i) { return tiles.a[i / 8][i % 8]; }\n"
          "template <int count> __global__ void kernel(const float *__restrict__ X, float *Y) {\n"
          "  __shared__ Tiles tiles;\n"
          "  __shared__ float row[count], other[count];\n"
          "  const int i = threadIdx.x;\n"
          "  cell(tiles, i) = __ldg(X + i);\n"
          "  if (i < 16) { tiles.b[i].x = 1.0f; tiles.b[i].y = X[i]; }\n"
          "  row[i] = 0.0f;\n"
          "  other[i] = 2.0f;\n"
          "  __syncthreads();\n"
          "  auto add = [&](float value) { row[i] += value; };\n"
          "  add(twice(cell(tiles, count - 1 - i)));\n"
          "  const float2 pair = tiles.b[i / 2];\n"
          "  float values[2] = {pair.x, pair.y};\n"
          "  row[i] += values[0] + values[1];\n"
          "  Y[i] = row[i] + (i % 2 == 0 ? other[i] : tiles.b[0].x);\n"
          "}\n",
          "kernel<32><<<1, dim3(32)>>>(X, Y);", 32);
  ASSERT_EQ(outcome.run.verdict, Verdict::Ok) << outcome.run.detail;
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(outcome.values[i], 2 * (32 - i) + 1 + (i / 2 + 1) + (i % 2 == 0 ? 2 : 1)) << i;
  }
}

TEST(Lowering, SeesTheTargetsArchitectureAndMacroArguments) {
  const Outcome outcome = run("#define TWICE(x) ((x) + (x))\n"
                              "__global__ void kernel(const float *X, float *Y) {\n"
                              "#if __CUDA_ARCH__ >= 860\n"
                              "  Y[threadIdx.x] = TWICE(X[threadIdx.x]);\n"
                              "#endif\n}\n",
                              "kernel<<<1, n>>>(X, Y);", 2);
  ASSERT_EQ(outcome.run.verdict, Verdict::Ok) << outcome.run.detail;
  EXPECT_THAT(outcome.values, ElementsAre(2, 4));
}

TEST(Lowering, OrdersLanesByABarrierOfTheirWarp) {
  const auto kernel = [](const std::string& wait) {
    return "__global__ void shift(const float *X, float *Y) {\n"
           "  __shared__ float tile[64];\n"
           "  tile[threadIdx.x] = X[threadIdx.x];\n" +
           wait + "  Y[threadIdx.x] = tile[threadIdx.x ^ 1];\n}\n";
  };
  const Outcome outcome = run(kernel("  __syncwarp();\n"), "shift<<<1, 64>>>(X, Y);", 64);
  EXPECT_EQ(outcome.run.verdict, Verdict::Ok) << outcome.run.detail;
  EXPECT_EQ(outcome.values[63], 63);
  expect_verdict(Verdict::Race, "shared tile", kernel(""), "shift<<<1, 64>>>(X, Y);", 64);
  // A warp's barrier does not order it against other warps.
  std::string across = kernel("  __syncwarp();\n");
  across.replace(across.find("^ 1"), 3, "^ 32");
  expect_verdict(Verdict::Race, "shared tile", across, "shift<<<1, 64>>>(X, Y);", 64);
}

std::string refusal(const std::string& kernel, const std::string& launch) {
  try {
    test::cpu_library(program(kernel, launch));
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(Lowering, RefusesWhatHasNone) {
  EXPECT_EQ(refusal("__global__ void k(float *Y) { asm volatile(\"membar.gl;\"); }", ""),
            "2:31: inline assembly cannot run on the CPU");
  EXPECT_EQ(refusal("#define LOAD Y[0] + 1\n__global__ void k(float *Y) { float x = LOAD; }", ""),
            "3:41: a memory access in the body of a macro cannot run on the CPU");
  EXPECT_EQ(refusal("__device__ int ticket;\n__global__ void k() { ++ticket; }", ""),
            "3:25: a __device__ variable cannot run on the CPU");
}

// Counts.

LaunchCounts count(const std::string& kernel, const std::string& launch, int n) {
  const Outcome outcome = run(kernel, launch, n, {.count = true});
  EXPECT_EQ(outcome.run.verdict, Verdict::Ok) << outcome.run.detail;
  EXPECT_EQ(outcome.run.counts.size(), 1u);
  return outcome.run.counts.at(0);
}

TEST(Counts, TellCoalescedFromStridedAccess) {
  const auto kernel = [](const std::string& index) {
    return "__global__ void copy(const float *X, float *Y) {\n"
           "  const int i = blockIdx.x * 256 + threadIdx.x;\n"
           "  Y[i] = 2.0f * X[" +
           index + "] + 1.0f;\n}\n";
  };
  const LaunchCounts coalesced = count(kernel("i"), "copy<<<n / 256, 256>>>(X, Y);", 1024);
  EXPECT_EQ(coalesced.kernel, "copy");
  EXPECT_EQ(coalesced.blocks, 4);
  EXPECT_EQ(coalesced.threads, 256);
  EXPECT_EQ(coalesced.global_load_sectors, 1024 / 8);
  EXPECT_EQ(coalesced.global_store_sectors, 1024 / 8);
  EXPECT_EQ(coalesced.memory_instructions, 2 * 1024 / 32);
  EXPECT_EQ(coalesced.flops, 2 * 1024);
  EXPECT_EQ(coalesced.barriers, 0);
  const LaunchCounts strided =
      count(kernel("i % 32 * 32 + i / 32"), "copy<<<n / 256, 256>>>(X, Y);", 1024);
  EXPECT_EQ(strided.global_load_sectors, 1024);
  EXPECT_EQ(strided.global_store_sectors, 1024 / 8);
}

TEST(Counts, TellBankConflictsAndBroadcasts) {
  const auto wavefronts = [](const std::string& index) {
    return count("__global__ void pick(float *Y) {\n"
                 "  __shared__ float tile[33 * 32];\n"
                 "  for (int i = threadIdx.x; i < 33 * 32; i += 32) tile[i] = 1.0f;\n"
                 "  __syncthreads();\n"
                 "  Y[threadIdx.x] = tile[" +
                     index + "];\n}\n",
                 "pick<<<1, 32>>>(Y);", 32);
  };
  EXPECT_EQ(wavefronts("threadIdx.x").shared_load_wavefronts, 1);
  EXPECT_EQ(wavefronts("0").shared_load_wavefronts, 1);
  EXPECT_EQ(wavefronts("threadIdx.x * 2").shared_load_wavefronts, 2);
  EXPECT_EQ(wavefronts("threadIdx.x * 32").shared_load_wavefronts, 32);
  EXPECT_EQ(wavefronts("threadIdx.x * 33").shared_load_wavefronts, 1);
  EXPECT_EQ(wavefronts("0").shared_store_wavefronts, 33);
  EXPECT_EQ(wavefronts("0").barriers, 1);
}

TEST(Counts, LoadOnceWhatStaysInARegister) {
  const LaunchCounts counts = count("__global__ void sum(const float *X, float *Y, int n) {\n"
                                    "  float sum = 0.0f;\n"
                                    "  for (int i = 0; i < 100; ++i) sum += X[threadIdx.x];\n"
                                    "  Y[threadIdx.x] = sum;\n}\n",
                                    "sum<<<1, n>>>(X, Y, n);", 32);
  EXPECT_EQ(counts.global_load_sectors, 4);
  EXPECT_EQ(counts.memory_instructions, 2);
  EXPECT_EQ(counts.flops, 3200);
}

TEST(Counts, AddUpForTheTiledSeed) {
  cpu::Executor executor(test::cpu_library(test::read(test::in_repository("seeds/lora/tiled.cu"))),
                         "lora");
  constexpr int d = 64;
  cpu::Tensor output = test::output(test::lora(), d);
  const cpu::Run run = executor.run(test::inputs(test::lora(), d, Values::Integers), output,
                                    {d, rank}, {.count = true});
  ASSERT_EQ(run.counts.size(), 3u);
  const LaunchCounts& gemm = run.counts[1];
  EXPECT_EQ(gemm.kernel, "gemm");
  EXPECT_EQ(gemm.blocks, 1);
  EXPECT_EQ(gemm.shared_bytes, 64 * 8 * 4 * 2);
  EXPECT_EQ(gemm.flops, 2.0 * d * d * d);
  EXPECT_EQ(gemm.barriers, 2 * d / 8);
  EXPECT_EQ(gemm.global_load_sectors, 2 * d * d / 8);
  // Per warp and k: 4 + 4 loads, none of them twice, each of two words per bank.
  EXPECT_EQ(gemm.shared_load_wavefronts, 8.0 * d * 8 * 2);
}

TEST(ProbeSizes, LieAroundTheLargestBlockTile) {
  const auto sizes = [](const std::string& source) {
    return cpu::probe_sizes(test::parse(source));
  };
  EXPECT_THAT(sizes(test::read(test::in_repository("seeds/lora/tiled.cu"))),
              ElementsAre(63, 65, 131));
  EXPECT_THAT(sizes(test::read(test::in_repository("seeds/lora/naive.cu"))),
              ElementsAre(255, 257, 300));
  const std::string kernel = "constexpr int tile = 48;\n"
                             "int blocks(int size) { return (size + tile - 1) / tile; }\n"
                             "__global__ void k(float *Y) {}\n";
  EXPECT_THAT(sizes(program(kernel, "const int columns = blocks(n);\n"
                                    "  const dim3 grid(columns, n);\n"
                                    "  k<<<grid, 32>>>(Y);")),
              ElementsAre(47, 49, 99));
  EXPECT_THAT(sizes(program(kernel, "k<<<*static_cast<int *>(workspace), 32>>>(Y);")),
              ElementsAre(47, 49, 99)); // not to be evaluated
  EXPECT_THAT(sizes(program(kernel, "k<<<(n + 7) / 8, 32>>>(Y);")), ElementsAre(17, 19));
}

} // namespace
} // namespace evo
