// Warps on the CPU: what their lanes do together, the tensor cores, and the leaf helpers that reach
// them.
#include <array>
#include <bit>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <stdexcept>

#include <gmock/gmock.h>

#include "fitness/builder.hpp"
#include "fitness/cpu/executor.hpp"
#include "fitness/cpu/tensor_core.hpp"
#include "fitness/process.hpp"
#include "mutators/leaf_helpers.hpp"
#include "mutators/ptx_instruction.hpp"
#include "tests/support/cpu.hpp"
#include "tests/support/kernels.hpp"
#include "tests/support/rename.hpp"
#include "tests/support/temporary_folder.hpp"

namespace evo {
namespace {

using cpu::Accumulation;
using cpu::ThreadOrder;
using evo_gpu::MatrixType;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::StartsWith;

// mma.sync, against the PTX ISA's formulas for where the elements of fragments are.

struct Place {
  int row;
  int column;
};
using Fragment = std::function<Place(int group, int thread, int element)>;

struct Shape {
  MatrixType type;
  const char* name;
  int depth;
  int bits; // of an element
  Fragment a;
  Fragment b;
};

const std::array<Shape, 4>& shapes() {
  const Fragment a16 = [](int group, int thread, int i) {
    const bool upper = i < 2 || (4 <= i && i < 6);
    return Place{upper ? group : group + 8, thread * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
  };
  const Fragment b16 = [](int group, int thread, int i) {
    return Place{thread * 2 + (i & 1) + (i >= 2 ? 8 : 0), group};
  };
  const Fragment a32 = [](int group, int thread, int i) {
    return Place{i == 0 || i == 2 ? group : group + 8, i < 2 ? thread : thread + 4};
  };
  const Fragment b32 = [](int group, int thread, int i) {
    return Place{i == 0 ? thread : thread + 4, group};
  };
  const Fragment a8 = [](int group, int thread, int i) {
    const bool upper = i < 4 || (8 <= i && i < 12);
    return Place{upper ? group : group + 8, thread * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
  };
  const Fragment b8 = [](int group, int thread, int i) {
    return Place{thread * 4 + (i & 3) + (i >= 4 ? 16 : 0), group};
  };
  static const std::array<Shape, 4> all{{{MatrixType::Fp16, "Fp16", 16, 16, a16, b16},
                                         {MatrixType::Bf16, "Bf16", 16, 16, a16, b16},
                                         {MatrixType::Tf32, "Tf32", 8, 32, a32, b32},
                                         {MatrixType::Int8, "Int8", 32, 8, a8, b8}}};
  return all;
}

Place sum_place(int group, int thread, int i) {
  return {i < 2 ? group : group + 8, thread * 2 + (i & 1)};
}

/// The bits of a number that the type holds exactly, and that is no subnormal.
unsigned encode(MatrixType type, double value) {
  const unsigned bits = std::bit_cast<unsigned>(static_cast<float>(value));
  switch (type) {
  case MatrixType::Int8:
    return static_cast<unsigned>(static_cast<int>(value)) & 0xffu;
  case MatrixType::Bf16:
    return bits >> 16;
  case MatrixType::Tf32:
    return bits;
  default:
    return value == 0 ? 0 : (bits >> 16 & 0x8000u) | ((bits >> 13 & 0x3ffffu) - (112u << 10));
  }
}

struct Registers {
  std::array<unsigned, 4> sum{};
  std::array<unsigned, 4> a{};
  std::array<unsigned, 2> b{};
};

using Matrix = std::map<std::pair<int, int>, double>;

/// a b + c as the emulated instruction computes it.
Matrix multiplied(const Shape& shape, Matrix& a, Matrix& b, Matrix& c, Accumulation accumulation) {
  std::array<Registers, cpu::warp_size> warp;
  std::array<cpu::Multiplication, cpu::warp_size> operands;
  cpu::Lanes lanes;
  const bool integers = shape.type == MatrixType::Int8;
  for (int lane = 0; lane < 32; ++lane) {
    Registers& own = warp[lane];
    const auto fill = [&](auto& registers, const Fragment& place, Matrix& from) {
      const int per_register = 32 / shape.bits;
      for (int i = 0; i < static_cast<int>(registers.size()) * per_register; ++i) {
        const auto [row, column] = place(lane / 4, lane % 4, i);
        registers[i / per_register] |= encode(shape.type, from[{row, column}])
                                       << i % per_register * (shape.bits % 32);
      }
    };
    fill(own.a, shape.a, a);
    fill(own.b, shape.b, b);
    for (int i = 0; i < 4; ++i) {
      const auto [row, column] = sum_place(lane / 4, lane % 4, i);
      const double value = c[{row, column}];
      own.sum[i] = integers ? static_cast<unsigned>(static_cast<int>(value))
                            : std::bit_cast<unsigned>(static_cast<float>(value));
    }
    operands[lane] = {shape.type, accumulation, {own.sum.data(), own.a.data(), own.b.data()}};
    lanes[lane] = &operands[lane];
  }
  cpu::multiply(lanes);
  Matrix result;
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const auto [row, column] = sum_place(lane / 4, lane % 4, i);
      const unsigned bits = warp[lane].sum[i];
      result[{row, column}] = integers ? static_cast<double>(static_cast<int>(bits))
                                       : double{std::bit_cast<float>(bits)};
    }
  }
  return result;
}

class Multiply : public ::testing::TestWithParam<Shape> {};

TEST_P(Multiply, AgreesWithAPlainLoop) {
  const Shape& shape = GetParam();
  std::mt19937 random(7);
  const auto number = [&] { return static_cast<double>(static_cast<int>(random() % 255) - 127); };
  Matrix a, b, c;
  for (int k = 0; k < shape.depth; ++k) {
    for (int row = 0; row < 16; ++row) {
      a[{row, k}] = number();
    }
    for (int column = 0; column < 8; ++column) {
      b[{k, column}] = number();
    }
  }
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      c[{row, column}] = number();
    }
  }
  Matrix expected = c;
  for (auto& [place, sum] : expected) {
    for (int k = 0; k < shape.depth; ++k) {
      sum += a[{place.first, k}] * b[{k, place.second}];
    }
  }
  for (const Accumulation accumulation :
       {Accumulation::Rounded, Accumulation::Ampere, Accumulation::Hopper}) {
    EXPECT_EQ(multiplied(shape, a, b, c, accumulation), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Multiply, ::testing::ValuesIn(shapes()),
                         [](const auto& test) { return test.param.name; });

/// c + `count` products of 1 and `value` (in the first row and column).
double sum_of(double c, double value, int count, Accumulation accumulation) {
  Matrix a, b, sums;
  for (int k = 0; k < count; ++k) {
    a[{0, k}] = 1;
    b[{k, 0}] = value;
  }
  sums[{0, 0}] = c;
  return multiplied(shapes()[1], a, b, sums, accumulation)[{0, 0}];
}

TEST(MultiplyAccumulation, CutsOffWhatTheHardwareCutsOff) {
  const double large = 1;
  const double small = 0x1p-25;
  // Together 16 of them are 2^-21; alone each lies behind 24 bits, and not behind 25.
  EXPECT_EQ(sum_of(large, small, 16, Accumulation::Rounded), 1 + 0x1p-21);
  EXPECT_EQ(sum_of(large, small, 16, Accumulation::Ampere), 1);
  EXPECT_EQ(sum_of(large, small, 16, Accumulation::Hopper), 1 + 0x1p-21);
  EXPECT_EQ(sum_of(large, 0x1p-26, 16, Accumulation::Hopper), 1);
  EXPECT_EQ(sum_of(-large, -small, 16, Accumulation::Ampere), -1);
  // What is kept rounds the result towards zero.
  EXPECT_EQ(sum_of(large, 0x1.8p-24, 1, Accumulation::Rounded), 1 + 0x1p-23);
  EXPECT_EQ(sum_of(large, 0x1.8p-24, 1, Accumulation::Hopper), 1);
  EXPECT_EQ(sum_of(-large, 0x1p-25, 1, Accumulation::Hopper), -1 + 0x1p-24);
  // Half of k at a time: the second half finds a larger sum.
  EXPECT_EQ(sum_of(0, 1, 16, Accumulation::Ampere), 16);
}

// Whole kernels.

struct Outcome {
  cpu::Run run;
  std::vector<float> values;
};

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(random()) * 0x1p-31f - 1.0f;
  }
  return values;
}

Outcome run(const std::string& source, const std::vector<std::vector<float>>& inputs,
            std::size_t outputs, int dim, const cpu::RunOptions& options = {}) {
  cpu::Executor executor(test::cpu_library(source), "entry");
  std::vector<cpu::Tensor> tensors;
  for (const auto& values : inputs) {
    tensors.push_back({std::string(1, static_cast<char>('A' + tensors.size())), values});
  }
  cpu::Tensor output{"Y", std::vector<float>(outputs)};
  Outcome outcome{executor.run(tensors, output, {dim}, options), {}};
  outcome.values = output.values;
  return outcome;
}

constexpr int extent = 64;
constexpr int depth = 96;

std::string product() {
  return test::read(test::in_repository("tests/tensor_core/product.cu"));
}

Outcome run_product(const std::string& source, const cpu::RunOptions& options = {}) {
  return run(source, {random_values(extent * depth, 1), random_values(extent * depth, 2)},
             extent * extent, depth, options);
}

/// What a finite sum of products must be off by, root mean square, and what a run is off by.
struct Errors {
  double derived = 0;
  double measured = 0;
};

float half(float value) {
  const float unit = std::ldexp(1.0f, std::max(std::ilogb(value), -14) - 10);
  return value == 0 ? 0 : std::nearbyint(value / unit) * unit;
}

/// Derived: what the split drops, low times low, and one rounding to nearest of the sum per
/// instruction: three for every 16 of k.
Errors errors_of(const std::vector<float>& values) {
  const std::vector<float> a = random_values(extent * depth, 1);
  const std::vector<float> b = random_values(extent * depth, 2);
  const auto low = [](float value) { return double{half(value - half(value))}; };
  double dropped = 0;
  double rounded = 0;
  double error = 0;
  for (int row = 0; row < extent; ++row) {
    for (int column = 0; column < extent; ++column) {
      double sum = 0;
      double without = 0; // the terms that the kernel adds
      for (int k = 0; k < depth; ++k) {
        const float x = a[row * depth + k];
        const float y = b[k * extent + column];
        sum += double{x} * y;
        without += half(x) * double{half(y)} + half(x) * low(y) + low(x) * half(y);
        if (k % 16 == 15) {
          const double unit = std::ldexp(1.0, std::ilogb(sum) - 23);
          rounded += 3 * unit * unit / 12;
        }
      }
      dropped += (sum - without) * (sum - without);
      error += std::pow(values[row * extent + column] - sum, 2);
    }
  }
  const double count = double{extent} * extent;
  return {std::sqrt((dropped + rounded) / count), std::sqrt(error / count)};
}

TEST(TensorCoreProduct, IsAsAccurateAsDerivedInEveryOrder) {
  for (const ThreadOrder order :
       {ThreadOrder::Ascending, ThreadOrder::Descending, ThreadOrder::Shuffled}) {
    const Outcome outcome = run_product(product(), {.order = order});
    ASSERT_EQ(outcome.run.verdict, Verdict::Ok) << outcome.run.detail;
    const Errors errors = errors_of(outcome.values);
    EXPECT_THAT(errors.measured, AllOf(Gt(errors.derived / 1.5), Lt(errors.derived * 1.5)));
  }
}

TEST(TensorCoreProduct, IsLessAccurateTruncated) {
  const double rounded = errors_of(run_product(product()).values).measured;
  const auto truncated = [](Accumulation accumulation) {
    return errors_of(run_product(product(), {.accumulation = accumulation}).values).measured;
  };
  EXPECT_THAT(truncated(Accumulation::Hopper), AllOf(Gt(1.2 * rounded), Lt(10 * rounded)));
  EXPECT_THAT(truncated(Accumulation::Ampere),
              AllOf(Gt(truncated(Accumulation::Hopper)), Lt(10 * rounded)));
}

double excess_without(const std::string& what, const std::string& by = "") {
  const Outcome outcome = run_product(test::replaced(product(), what, by));
  EXPECT_EQ(outcome.run.verdict, Verdict::Ok) << outcome.run.detail;
  const Errors errors = errors_of(outcome.values);
  return errors.measured / errors.derived;
}

TEST(TensorCoreProduct, ShowsADroppedLowTerm) {
  EXPECT_THAT(excess_without("mma_fp16(sum[i][j + half], a_high[i], b_low[half]);"), Gt(100));
  EXPECT_THAT(excess_without("mma_fp16(sum[i][j + half], a_low[i], b_high[half]);"), Gt(100));
}

TEST(TensorCoreProduct, ShowsFragmentsInTheWrongOrder) {
  EXPECT_THAT(excess_without("{{high[0], high[1]}, {high[2], high[3]}}",
                             "{{high[0], high[2]}, {high[1], high[3]}}"),
              Gt(1e4));
  EXPECT_THAT(excess_without("ldmatrix_x4_trans(high,", "ldmatrix_x4(high,"), Gt(1e4));
}

/// In every order of threads the same verdict.
void expect_fault(Verdict verdict, const std::string& detail, const std::string& what,
                  const std::string& by) {
  const std::string source = test::replaced(product(), what, by);
  for (const ThreadOrder order :
       {ThreadOrder::Ascending, ThreadOrder::Descending, ThreadOrder::Shuffled}) {
    const cpu::Run result = run_product(source, {.order = order}).run;
    EXPECT_EQ(to_string(result.verdict), to_string(verdict)) << result.detail;
    EXPECT_THAT(result.detail, HasSubstr(detail));
  }
}

TEST(TensorCoreProduct, ShowsAMissingBarrier) {
  expect_fault(Verdict::Race, "between the same barriers",
               "    __syncthreads();\n    for (int step", "    for (int step");
  expect_fault(Verdict::Race, "between the same barriers", "    }\n    __syncthreads();\n  }",
               "    }\n  }");
}

TEST(TensorCoreProduct, ShowsADivergentWarp) {
  const std::string last = "mma_fp16(sum[i][j + half], a_high[i], b_high[half]);";
  expect_fault(Verdict::Hang, "waits at `", last, "if (lane != 31) " + last);
  // The same helper, called from two places: no instruction of the whole warp.
  expect_fault(Verdict::Hang, "waits at `", last,
               "if (lane < 16) { " + last + " } else { " + last + " }");
}

TEST(TensorCoreProduct, ShowsAMisalignedRow) {
  expect_fault(Verdict::Crash, "misaligned: the address is no multiple of 16 bytes", "padding = 8",
               "padding = 4");
}

TEST(TensorCoreProduct, ShowsARowBeyondSharedMemory) {
  expect_fault(Verdict::OutOfBounds, "shared tiles", "&tiles.b_low[step + lane % 16][n]",
               "&tiles.b_low[step + lane][n]");
}

TEST(TensorCoreProduct, CountsConflictFreeRowsByThePadding) {
  const auto wavefronts = [](const std::string& source) {
    const Outcome outcome = run_product(source, {.count = true});
    return outcome.run.counts.at(0).shared_load_wavefronts;
  };
  // 4 warps, 6 steps of k, 4 + 4 loads of 4 matrices; unpadded rows of A lie on 2 of 8 places.
  const double loads = 4.0 * 6 * 4;
  EXPECT_EQ(wavefronts(product()), loads * (4 + 4));
  EXPECT_GT(wavefronts(test::replaced(product(), "padding = 8", "padding = 0")), 2 * loads * 8);
}

// Small kernels of one warp.

std::string program(const std::string& helpers, const std::string& body, int block = 32) {
  return "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n#include <cuda_runtime.h>\n" + helpers +
         "__global__ void k(const float *X, float *Y) {\n  const int lane = threadIdx.x;\n" + body +
         "}\nextern \"C\" cudaError_t entry(const float *X, float *Y, int n, void *workspace,"
         " cudaStream_t stream) {\n  k<<<1, " +
         std::to_string(block) + ", 0, stream>>>(X, Y);\n  return cudaGetLastError();\n}\n";
}

std::vector<float> counted(int count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    values[static_cast<std::size_t>(i)] = static_cast<float>(i);
  }
  return values;
}

Outcome run_warp(const std::string& body, const std::string& helpers = "", int block = 32) {
  return run(program(helpers, body, block), {counted(32)}, 32, 32);
}

TEST(Warp, Shuffles) {
  const auto shuffled = [](const std::string& call) {
    const Outcome outcome = run_warp("Y[lane] = " + call + ";");
    EXPECT_EQ(outcome.run.verdict, Verdict::Ok) << outcome.run.detail;
    return outcome.values;
  };
  EXPECT_THAT(shuffled("__shfl_sync(~0u, X[lane], 5)"), Each(5));
  for (int lane = 0; lane < 32; ++lane) {
    const auto at = [&](const std::string& call) { return shuffled(call)[lane]; };
    EXPECT_EQ(at("__shfl_sync(~0u, X[lane], 9, 8)"), lane / 8 * 8 + 1);
    EXPECT_EQ(at("__shfl_xor_sync(~0u, lane, 3)"), lane ^ 3);
    EXPECT_EQ(at("__shfl_xor_sync(~0u, X[lane], 8, 8)"), lane < 8        ? lane
                                                         : lane % 16 < 8 ? lane
                                                                         : lane - 8);
    EXPECT_EQ(at("__shfl_down_sync(~0u, X[lane], 4)"), lane < 28 ? lane + 4 : lane);
    EXPECT_EQ(at("__shfl_down_sync(~0u, unsigned(lane), 3, 4)"), lane % 4 == 0 ? lane + 3 : lane);
  }
}

TEST(Warp, AddsUpByShuffles) {
  const Outcome outcome = run_warp("float sum = X[lane];\n"
                                   "for (int far = 16; far > 0; far /= 2) {\n"
                                   "  sum += __shfl_xor_sync(0xffffffffu, sum, far);\n}\n"
                                   "Y[lane] = sum;\n");
  EXPECT_THAT(outcome.values, Each(31 * 32 / 2));
}

TEST(Warp, MustComeAsAWhole) {
  const auto detail = [](const std::string& body, int block = 32) {
    const cpu::Run run = run_warp(body, "", block).run;
    EXPECT_EQ(to_string(run.verdict), to_string(Verdict::Hang));
    return run.detail;
  };
  EXPECT_EQ(
      detail("Y[lane] = 0.0f;\nif (lane == 7) return;\nY[lane] = __shfl_sync(~0u, X[lane], 0);"),
      "k: in block (0, 0, 0) thread 0 waits at `__shfl_sync(~0u, X[lane], 0)` in line 8 while "
      "thread 7 has returned");
  EXPECT_THAT(detail("Y[lane] = lane < 3 ? __shfl_sync(~0u, X[lane], 0) : "
                     "__shfl_sync(~0u, X[lane], 1);"),
              HasSubstr("thread 0 waits at `__shfl_sync(~0u, X[lane], 0)` in line 6 while thread 3 "
                        "waits at `__shfl_sync(~0u, X[lane], 1)` in line 6"));
  EXPECT_THAT(detail("Y[lane] = __shfl_sync(0xffffu, X[lane], 0);"),
              HasSubstr("names the lanes 0000ffff of its warp, and on the CPU only all of them can "
                        "work together at"));
  EXPECT_THAT(detail("Y[lane] = __shfl_sync(~0u, X[lane], 0);", 24),
              HasSubstr("waits for the 32 lanes of its warp, which has only 24 at"));
}

const std::string transposing = "__shared__ __align__(16) __half tile[8][8];\n"
                                "for (int i = lane; i < 64; i += 32) {\n"
                                "  tile[i / 8][i % 8] = __float2half_rn(i);\n}\n"
                                "__syncwarp();\n"
                                "unsigned fragment[1];\n"
                                "ldmatrix_x1(fragment, &tile[lane % 8][0]);\n"
                                "Y[lane] = fragment[0];\n";

TEST(Warp, LoadsAMatrixOfOtherLanes) {
  for (const bool transposed : {false, true}) {
    const std::string helper = transposed ? "ldmatrix_x1_trans" : "ldmatrix_x1";
    std::string body = test::replaced(transposing, "ldmatrix_x1(", helper + "(");
    body = test::replaced(body, "Y[lane] = fragment[0]", "Y[lane] = __uint_as_float(fragment[0])");
    const Outcome outcome = run_warp(body, std::string(leaf_helper_text(helper)));
    ASSERT_EQ(outcome.run.verdict, Verdict::Ok) << outcome.run.detail;
    for (int lane = 0; lane < 32; ++lane) {
      const int first = transposed ? lane % 4 * 16 + lane / 4 : lane / 4 * 8 + lane % 4 * 2;
      const int second = first + (transposed ? 8 : 1);
      EXPECT_EQ(std::bit_cast<unsigned>(outcome.values[lane]),
                encode(MatrixType::Fp16, first) | encode(MatrixType::Fp16, second) << 16)
          << helper << " in lane " << lane;
    }
  }
}

TEST(Warp, OrdersItsLanesOnlyByABarrier) {
  const cpu::Run result = run_warp(test::replaced(transposing, "__syncwarp();\n", ""),
                                   std::string(leaf_helper_text("ldmatrix_x1")))
                              .run;
  EXPECT_EQ(to_string(result.verdict), to_string(Verdict::Race));
  EXPECT_THAT(result.detail, AllOf(HasSubstr("reads shared tile["),
                                   HasSubstr("at `ldmatrix_x1(fragment, &tile[lane % 8][0])`")));
}

TEST(Warp, LoadsMatricesFromSharedMemoryAlone) {
  const cpu::Run result = run_warp("Y[lane] = 0.0f;\nunsigned fragment[1];\n"
                                   "ldmatrix_x1(fragment, X);\nY[lane] = fragment[0];\n",
                                   std::string(leaf_helper_text("ldmatrix_x1")))
                              .run;
  EXPECT_EQ(to_string(result.verdict), to_string(Verdict::OutOfBounds));
  EXPECT_THAT(result.detail, HasSubstr("reads the row of a matrix outside all shared memory"));
}

// Short floats.

/// To a significand of `bits` bits; `nearest` decides what to do with ties.
float rounded(float value, int bits, int least_exponent,
              double (*nearest)(double) = std::nearbyint) {
  const int unit = std::max(std::ilogb(value), least_exponent) - bits + 1;
  return static_cast<float>(std::ldexp(nearest(std::ldexp(double{value}, -unit)), unit));
}

TEST(ShortFloats, RoundToNearest) {
  std::vector<float> values;
  for (int exponent = -30; exponent < 16; ++exponent) {
    for (const double significand : {1.0, 1.5, 1 + 0x1p-11, 1 + 0x1.8p-10, 1 + 0x1p-8, 1 + 0x1.8p-7,
                                     2 - 0x1p-12, 2 - 0x1p-20, 1 + 0x1.000002p-11}) {
      values.push_back(static_cast<float>(std::ldexp(significand, exponent)));
      values.push_back(-values.back());
    }
  }
  const auto converted = [&](const std::string& expression, const std::string& helpers = "") {
    const std::string body = "for (int i = lane; i < " + std::to_string(values.size()) +
                             "; i += 32) {\n  const float x = X[i];\n  Y[i] = " + expression +
                             ";\n}\n";
    const Outcome outcome = run(program(helpers, body), {values}, values.size(), 1);
    EXPECT_EQ(outcome.run.verdict, Verdict::Ok) << outcome.run.detail;
    return outcome.values;
  };
  const auto helper = [](const char* name) { return std::string(leaf_helper_text(name)); };
  const auto fp16 = converted("__half2float(__float2half_rn(x))");
  const auto bf16 = converted("__bfloat162float(__float2bfloat16_rn(x))");
  const auto packed = converted("__uint_as_float(pack_bf16(0.0f, x))", helper("pack_bf16"));
  const auto low = converted("__uint_as_float(pack_bf16(x, 0.0f) << 16)", helper("pack_bf16"));
  const auto tf32 = converted("__uint_as_float(round_tf32(x))", helper("round_tf32"));
  const auto low_fp16 =
      converted("low_fp16(pack_fp16(x, 1.0f))", helper("pack_fp16") + helper("low_fp16"));
  const auto high_fp16 =
      converted("high_fp16(pack_fp16(1.0f, x))", helper("pack_fp16") + helper("high_fp16"));
  const auto low_bf16 =
      converted("low_bf16(pack_bf16(x, 1.0f))", helper("pack_bf16") + helper("low_bf16"));
  const auto high_bf16 =
      converted("high_bf16(pack_bf16(1.0f, x))", helper("pack_bf16") + helper("high_bf16"));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float x = values[i];
    const bool beyond = std::abs(x) >= 65520;
    EXPECT_EQ(fp16[i], beyond ? std::copysign(INFINITY, x) : rounded(x, 11, -14)) << x;
    EXPECT_EQ(bf16[i], rounded(x, 8, -126)) << x;
    EXPECT_EQ(packed[i], bf16[i]);
    EXPECT_EQ(low[i], bf16[i]);
    EXPECT_EQ(low_fp16[i], fp16[i]);
    EXPECT_EQ(high_fp16[i], fp16[i]);
    EXPECT_EQ(low_bf16[i], bf16[i]);
    EXPECT_EQ(high_bf16[i], bf16[i]);
    EXPECT_EQ(tf32[i], rounded(x, 11, -126, std::round)) << x;
  }
}

// Leaf helpers.

std::string with_all_helpers() {
  std::string text = "#include <cuda_runtime.h>\n\n";
  for (const PtxInstruction& instruction : ptx_instructions()) {
    text += std::string(leaf_helper_text(instruction.name)) + "\n";
  }
  return text;
}

TEST(LeafHelpers, AreOnePerInstructionInOrder) {
  const std::string file = test::read(test::in_repository("mutators/leaf_helpers.cu"));
  std::size_t last = 0;
  for (const PtxInstruction& instruction : ptx_instructions()) {
    const std::string name(instruction.name);
    const std::string source = "#include <cuda_runtime.h>\n" + std::string(leaf_helper_text(name));
    const Kernel kernel = test::parse(source);
    EXPECT_NE(LeafHelpers(kernel).find(name), nullptr) << name;
    EXPECT_THAT(std::string(leaf_helper_text(name)), StartsWith("// "));
    EXPECT_GT(file.find(" " + name + "("), last);
    last = file.find(" " + name + "(");
  }
}

/// A source after a rewrite that needs some helpers.
std::string with_helpers(const std::string& source, const std::vector<std::string>& helpers) {
  const Kernel kernel = test::parse(source);
  LeafHelpers leaf(kernel);
  for (const std::string& helper : helpers) {
    leaf.use(helper);
  }
  return canonical(apply_edits(source, leaf.edits()));
}

TEST(LeafHelpers, StandInOneOrderWhateverCameFirst) {
  const std::string source = "// A kernel.\n#include <cuda_runtime.h>\n\nconstexpr int n = 1;\n";
  const std::string at_once = with_helpers(source, {"mma_fp16", "ldmatrix_x4", "mma_bf16"});
  EXPECT_EQ(with_helpers(with_helpers(source, {"mma_fp16"}), {"mma_bf16", "ldmatrix_x4"}), at_once);
  EXPECT_EQ(with_helpers(with_helpers(source, {"ldmatrix_x4", "mma_bf16"}), {"mma_fp16"}), at_once);
  EXPECT_EQ(with_helpers(at_once, {"mma_fp16", "mma_bf16"}), at_once);
  EXPECT_THAT(at_once, StartsWith("// A kernel.\n#include <cuda_runtime.h>\n\n// Loads four"));
}

TEST(LeafHelpers, AreKnownByWhatTheyDo) {
  const std::string source =
      test::replaced(with_helpers("#include <cuda_runtime.h>\n", {"mma_fp16"}), " mma_fp16(",
                     " multiply(") +
      "void mma_bf16();\n";
  const Kernel kernel = test::parse(source);
  LeafHelpers helpers(kernel);
  EXPECT_EQ(helpers.use("mma_fp16"), "multiply");
  EXPECT_EQ(helpers.use("mma_bf16"), "mma_bf16_2");
  EXPECT_EQ(helpers.edits().size(), 1u);
}

TEST(LeafHelpers, RunAfterRenaming) {
  const Outcome outcome = run_product(test::rename(product()).source);
  EXPECT_EQ(outcome.run.verdict, Verdict::Ok) << outcome.run.detail;
  EXPECT_EQ(outcome.values, run_product(product()).values);
}

std::string refusal(const std::string& assembly) {
  try {
    test::cpu_library(program("", "unsigned a = 0; float f = 0; " + assembly + "\nY[lane] = a;"));
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(Assembly, IsRunOnlyAsKnownInstructionsWithTheirOperands) {
  const std::string refused = "inline assembly cannot run on the CPU";
  EXPECT_EQ(refusal("asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(a) : \"f\"(f));"), "");
  EXPECT_THAT(refusal("asm(\"cvt.rz.tf32.f32 %0, %1;\" : \"=r\"(a) : \"f\"(f));"),
              HasSubstr(refused));
  EXPECT_THAT(refusal("asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=f\"(f) : \"r\"(a));"),
              HasSubstr(refused));
  EXPECT_THAT(refusal("asm(\"cvt.rn.f16x2.f32 %0, %2, %1;\" : \"=r\"(a) : \"f\"(f), \"f\"(f));"),
              HasSubstr(refused));
  EXPECT_THAT(refusal("asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(a) : \"f\"(f), \"f\"(f));"),
              HasSubstr(refused));
}

TEST(LeafHelpers, CompileForEveryCard) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "all.cu";
  const std::string kernel = product();
  std::ofstream(file) << with_all_helpers() << "#include <cuda_fp16.h>\n"
                      << kernel.substr(kernel.find("constexpr int block_m"));
  const std::vector<std::string> command{Builder::find_nvcc(),
                                         "-gencode=arch=compute_75,code=sm_75",
                                         "-gencode=arch=compute_80,code=[sm_80,sm_86,sm_89,sm_90]",
                                         "-fatbin",
                                         "-o",
                                         "/dev/null",
                                         file};
  const ProcessResult result = run_process(command, {});
  EXPECT_TRUE(result.ok()) << result.output;
}

} // namespace
} // namespace evo
