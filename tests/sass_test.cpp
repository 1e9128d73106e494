// What kernels multiply in: from listings as cuobjdump prints them, and from built kernels.
#include "fitness/sass.hpp"

#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "fitness/builder.hpp"
#include "fitness/problem.hpp"

namespace evo {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;
using testing::Pair;

/// One kernel of these instructions.
Products products_of_code(const std::vector<std::string>& instructions) {
  std::string listing = "\t\tFunction : _Z4gemmPKfS0_Pfi\n\t.headerflags @\"EF_CUDA_SM86\"\n";
  for (const std::string& instruction : instructions) {
    listing += "        /*0170*/                   " + instruction + " ;   /* 0x000f1243 */\n";
    listing += "                                                           /* 0x000fe200 */\n";
  }
  return parse_sass(listing)["gemm"];
}

TEST(Sass, CountsProductsByWhatTheyMultiply) {
  EXPECT_THAT(products_of_code({"FFMA R0, R9, R6, R0", "@!P0 FFMA.FTZ R0, R1, R2, R0",
                                "FMUL R0, R1, R2", "IMAD R1, R2, R3, R4", "FADD R1, R2, R3"}),
              ElementsAre(Pair(PrecisionClass::Ffma, 3)));
  EXPECT_THAT(products_of_code({"HMMA.16816.F32 R4, R8.reuse, R16, R4", "HMMA.1688.F16 R4, R8"}),
              ElementsAre(Pair(PrecisionClass::Fp16, 2)));
  EXPECT_THAT(products_of_code({"HMMA.1684.F32.TF32 R8, R6, R12, RZ"}),
              ElementsAre(Key(PrecisionClass::Tf32)));
  EXPECT_THAT(products_of_code({"HMMA.16816.F32.BF16 R8, R6, R12, RZ"}),
              ElementsAre(Key(PrecisionClass::Bf16)));
  EXPECT_THAT(products_of_code({"IMMA.16816.S8.S8 R8, R4.reuse.ROW, R9.COL, RZ"}),
              ElementsAre(Key(PrecisionClass::Int8)));
  EXPECT_THAT(products_of_code({"IDP.4A.S8.S8 R9, R2, R5, R0"}),
              ElementsAre(Key(PrecisionClass::Int8)));
  EXPECT_THAT(products_of_code({"DFMA R2, R4, R6, R2"}), ElementsAre(Key(PrecisionClass::Fp64)));
}

TEST(Sass, KnowsHoppersWarpGroupProducts) {
  EXPECT_THAT(products_of_code({"HGMMA.64x128x16.F32 R24, gdesc[UR4], R24, gsb0"}),
              ElementsAre(Key(PrecisionClass::Fp16)));
  EXPECT_THAT(products_of_code({"HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24"}),
              ElementsAre(Key(PrecisionClass::Bf16)));
  EXPECT_THAT(products_of_code({"HGMMA.64x128x8.F32.TF32 R24, gdesc[UR4], R24"}),
              ElementsAre(Key(PrecisionClass::Tf32)));
  EXPECT_THAT(products_of_code({"IGMMA.64x128x32.S8.S8 R24, gdesc[UR4], R24"}),
              ElementsAre(Key(PrecisionClass::Int8)));
  EXPECT_THAT(products_of_code({"QGMMA.64x128x32.F32.E4M3.E4M3 R24, gdesc[UR4], R24"}),
              ElementsAre(Key(PrecisionClass::Fp8)));
}

TEST(Sass, AConstantIsNoProduct) {
  EXPECT_THAT(products_of_code({"HFMA2.MMA R7, -RZ, RZ, 0, 2.384185791015625e-07"}), IsEmpty());
  EXPECT_THAT(products_of_code({"HFMA2 R7, R1, R2, R3"}), ElementsAre(Key(PrecisionClass::Fp16)));
  EXPECT_THAT(products_of_code({"HFMA2.BF16_V2 R7, R1, R2, R3"}),
              ElementsAre(Key(PrecisionClass::Bf16)));
}

TEST(Precision, IsThatOfTheFastestProducts) {
  const Products mixed{
      {PrecisionClass::Ffma, 64}, {PrecisionClass::Fp16, 8}, {PrecisionClass::Int8, 16}};
  EXPECT_EQ(precision_class(mixed), PrecisionClass::Int8);
  EXPECT_EQ(describe(mixed), "fp16 + int8");
  EXPECT_EQ(precision_class({{PrecisionClass::Ffma, 1}}), PrecisionClass::Ffma);
  EXPECT_EQ(describe({{PrecisionClass::Ffma, 1}}), "ffma");
  EXPECT_EQ(precision_class({}), PrecisionClass::Unknown);
  EXPECT_EQ(describe({}), "unknown");
  EXPECT_EQ(products_from(to_record(mixed)), mixed);
}

constexpr const char* kernels = R"(
#include <mma.h>
#include <cuda_bf16.h>
using namespace nvcuda::wmma;
__global__ void ffma(const float *a, const float *b, float *c) {
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += a[i + threadIdx.x] * b[i];
  c[threadIdx.x] = sum;
}
template <typename Kind, int k, typename T, typename Sum>
__device__ void product(const T *a, const T *b, Sum *c) {
  fragment<matrix_a, 16, 16, k, Kind, row_major> x;
  fragment<matrix_b, 16, 16, k, Kind, row_major> y;
  fragment<accumulator, 16, 16, k, Sum> z;
  fill_fragment(z, Sum(0));
  load_matrix_sync(x, a, 16);
  load_matrix_sync(y, b, 16);
  mma_sync(z, x, y, z);
  store_matrix_sync(c, z, 16, mem_row_major);
}
__global__ void fp16(const half *a, const half *b, float *c) { product<half, 16>(a, b, c); }
__global__ void bf16(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c) {
  product<__nv_bfloat16, 16>(a, b, c);
}
__global__ void tf32(const float *a, const float *b, float *c) {
  product<precision::tf32, 8>(a, b, c);
}
__global__ void int8(const signed char *a, const signed char *b, int *c) {
  product<signed char, 16>(a, b, c);
}
__global__ void copy(const float *a, float *c) { c[threadIdx.x] = a[threadIdx.x]; }
)";

TEST(Sass, OfABuiltLibraryIsReadAndCached) {
  BuildOptions options;
  try {
    options.nvcc = Builder::find_nvcc();
  } catch (const InputError& error) {
    GTEST_SKIP() << error.what();
  }
  if (!find_cuobjdump(options.nvcc)) {
    GTEST_SKIP() << "this toolkit has no cuobjdump";
  }
  options.arch = "sm_86";
  options.cache = fs::temp_directory_path() / fmt::format("evo-sass-{}", getpid());
  const Builder builder(options);
  for (const char* run : {"built", "cached"}) {
    const BuildResult result = builder.build("id", kernels, {});
    ASSERT_TRUE(std::holds_alternative<Artifact>(result)) << std::get<BuildFailure>(result).detail;
    const Artifact& artifact = std::get<Artifact>(result);
    for (const char* name : {"ffma", "fp16", "bf16", "tf32", "int8"}) {
      EXPECT_EQ(describe(artifact.kernels.at(name).products), name) << run;
    }
    EXPECT_THAT(artifact.kernels.at("copy").products, IsEmpty()) << run;
  }
  fs::remove_all(options.cache);
}

TEST(Cuobjdump, IsThatOfTheToolkitOrNone) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("evo-toolkit-{}", getpid());
  fs::create_directories(folder / "bin");
  EXPECT_EQ(find_cuobjdump(folder / "bin/nvcc"), std::nullopt);
  std::ofstream(folder / "bin/cuobjdump") << "#!/bin/sh\nexit 3\n";
  EXPECT_EQ(find_cuobjdump(folder / "bin/nvcc"), std::nullopt) << "not executable";
  fs::permissions(folder / "bin/cuobjdump", fs::perms::owner_all);
  EXPECT_EQ(find_cuobjdump(folder / "bin/nvcc"), folder / "bin/cuobjdump");
  EXPECT_THAT(read_products(folder / "bin/cuobjdump", "kernel.so", folder, {}), IsEmpty());
  fs::remove_all(folder);
}

} // namespace
} // namespace evo
