#include "fitness/builder.hpp"

#include <cstdlib>
#include <fstream>
#include <future>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fitness/elf_digest.hpp"
#include "fitness/problem.hpp"
#include "fitness/ptxas_report.hpp"

namespace evo {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kernel = R"(
#include <cuda_runtime.h>
template <int scale> __global__ void multiply(float *y, int n) {
  __shared__ float staged[256];
  staged[threadIdx.x] = y[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < n) y[threadIdx.x] = scale * staged[threadIdx.x ^ 1];
}
extern "C" cudaError_t entry(float *y, int n, void *, cudaStream_t stream) {
  multiply<3><<<1, 256, 0, stream>>>(y, n);
  return cudaGetLastError();
}
)";

std::string replaced(std::string text, const std::string& before, const std::string& after) {
  const auto at = text.find(before);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, before.size(), after);
}

const std::string& message_of(const BuildResult& result) {
  return std::get<BuildFailure>(result).detail;
}

/// One cache for all tests, so that each source is compiled once.
class BuilderTest : public testing::Test {
protected:
  static void SetUpTestSuite() {
    cache_ = fs::temp_directory_path() / fmt::format("evo-cache-{}", getpid());
  }
  static void TearDownTestSuite() { fs::remove_all(cache_); }

  static BuildOptions options() { return {Builder::find_nvcc(), "sm_86", cache_}; }

  static BuildResult build(const std::string& source) {
    return Builder(options()).build("some id", source, {});
  }

  static Artifact artifact_of(const std::string& source) {
    const BuildResult result = build(source);
    if (const auto* failure = std::get_if<BuildFailure>(&result)) {
      ADD_FAILURE() << failure->detail;
      return {};
    }
    return std::get<Artifact>(result);
  }

  static inline fs::path cache_;
};

TEST_F(BuilderTest, BuildsALibraryAndKnowsItsResources) {
  const Artifact artifact = artifact_of(kernel);
  EXPECT_EQ(artifact.id, "some id");
  EXPECT_TRUE(fs::is_regular_file(artifact.library));
  ASSERT_TRUE(artifact.kernels.contains("multiply"));
  EXPECT_EQ(artifact.kernels.at("multiply").shared_bytes, 1024);
  EXPECT_GT(artifact.kernels.at("multiply").registers, 0);
  EXPECT_EQ(artifact.kernels.at("multiply").spill_bytes, 0);
}

TEST_F(BuilderTest, TheDigestSeesHostAndDeviceCodeAndNothingElse) {
  const std::string digest = artifact_of(kernel).cubin_digest;
  const auto digest_with = [](const std::string& before, const std::string& after) {
    return artifact_of(replaced(kernel, before, after)).cubin_digest;
  };
  EXPECT_EQ(digest, digest_with("<<<1, 256,", "<<<\n1, // one block\n256,")) << "only formatting";
  EXPECT_NE(digest, digest_with("multiply<3>", "multiply<5>")) << "device code";
  EXPECT_NE(digest, digest_with("<<<1, 256,", "<<<2, 256,")) << "the launch";
}

ino_t inode_of(const fs::path& file) {
  struct stat status{};
  EXPECT_EQ(stat(file.c_str(), &status), 0);
  return status.st_ino;
}

TEST_F(BuilderTest, TheSecondBuildComesFromTheCache) {
  const Artifact first = artifact_of(kernel);
  const auto inode = inode_of(first.library);
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(9);
  fs::last_write_time(first.library, long_ago);
  const Artifact second = artifact_of(kernel);
  EXPECT_EQ(second.library, first.library);
  EXPECT_EQ(second.cubin_digest, first.cubin_digest);
  EXPECT_EQ(second.kernels.at("multiply").registers, first.kernels.at("multiply").registers);
  EXPECT_EQ(inode_of(second.library), inode) << "a build would have brought another file";
  EXPECT_GT(fs::last_write_time(second.library), long_ago) << "it was used";
}

TEST_F(BuilderTest, ADamagedEntryIsBuiltAgain) {
  const Artifact first = artifact_of(kernel);
  std::ofstream(first.library, std::ios::app) << "x";
  const Artifact second = artifact_of(kernel);
  EXPECT_EQ(second.cubin_digest, first.cubin_digest);
  EXPECT_EQ(second.library.stem(), artifact_of(kernel).library.stem());

  for (const auto& entry : fs::directory_iterator(cache_)) {
    if (entry.path().extension() == ".json") {
      std::ofstream(entry.path()) << "{\"library\": 3";
    }
  }
  EXPECT_EQ(artifact_of(kernel).cubin_digest, first.cubin_digest);
}

TEST_F(BuilderTest, OneSourceMayBeBuiltTwiceAtOnce) {
  const std::string source = replaced(kernel, "multiply<3>", "multiply<7>");
  auto other = std::async(std::launch::async, [&] { return artifact_of(source); });
  const Artifact mine = artifact_of(source);
  const Artifact theirs = other.get();
  EXPECT_EQ(mine.cubin_digest, theirs.cubin_digest);
  EXPECT_TRUE(fs::exists(mine.library));
  EXPECT_TRUE(fs::exists(theirs.library));
  EXPECT_TRUE(fs::exists(artifact_of(source).library));
}

TEST_F(BuilderTest, ASyntaxErrorIsItsFirstLineWithoutPaths) {
  const BuildResult result = build("__global__ void k(float *y) {\n  y[0] = missing;\n}\n");
  EXPECT_EQ(std::get<BuildFailure>(result).verdict, Verdict::NoBuild);
  EXPECT_EQ(message_of(result), "kernel.cu(2): error: identifier \"missing\" is undefined");
}

TEST_F(BuilderTest, TooMuchStaticSharedMemoryIsOverLimits) {
  const BuildResult result = build(replaced(kernel, "staged[256]", "staged[20000]"));
  EXPECT_EQ(std::get<BuildFailure>(result).verdict, Verdict::OverLimits);
  EXPECT_THAT(message_of(result), HasSubstr("uses too much shared data"));
}

TEST_F(BuilderTest, DeadlineAndStopAreBuildTimeouts) {
  BuildOptions hasty = options();
  hasty.deadline = std::chrono::milliseconds(50);
  const std::string source = replaced(kernel, "multiply<3>", "multiply<9>");
  const BuildResult late = Builder(hasty).build("id", source, {});
  EXPECT_EQ(std::get<BuildFailure>(late).verdict, Verdict::BuildTimeout);
  EXPECT_EQ(message_of(late), "nvcc ran past its deadline of 0.05 s");

  std::stop_source stop;
  stop.request_stop();
  const BuildResult stopped = Builder(options()).build("id", source, stop.get_token());
  EXPECT_EQ(std::get<BuildFailure>(stopped).verdict, Verdict::BuildTimeout);
  EXPECT_EQ(message_of(stopped), "stopped");
}

TEST_F(BuilderTest, LeavesNoTemporaryFolders) {
  build("syntax error");
  for (const auto& entry : fs::directory_iterator(cache_)) {
    EXPECT_FALSE(entry.is_directory()) << entry.path();
  }
}

TEST_F(BuilderTest, AnArchTheToolkitDoesNotKnowIsRefused) {
  BuildOptions old = options();
  old.arch = "sm_20";
  try {
    const Builder builder(old);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("target sm_20 is not known to"));
    EXPECT_THAT(error.what(), HasSubstr("sm_86"));
  }
}

TEST_F(BuilderTest, ACacheThatCannotBeWrittenThrows) {
  BuildOptions unwritable = options();
  unwritable.cache = "/proc/evo";
  EXPECT_THROW(Builder(unwritable).build("id", kernel, {}), std::system_error);
}

TEST(Nvcc, IsFoundInCudaHomePathOrTheDefaultPlace) {
  const fs::path home = fs::temp_directory_path() / fmt::format("evo-cuda-{}", getpid());
  const fs::path nvcc = home / "bin/nvcc";
  fs::create_directories(home / "bin");
  std::ofstream(nvcc) << "#!/bin/sh\necho release 12.4, V12.4.131\n";
  fs::permissions(nvcc, fs::perms::owner_all);
  const std::string path = std::getenv("PATH");

  setenv("PATH", "/nonexistent", 1);
  setenv("CUDA_HOME", home.c_str(), 1);
  EXPECT_EQ(Builder::find_nvcc("/nonexistent"), nvcc);
  setenv("CUDA_HOME", "/nonexistent", 1);
  EXPECT_EQ(Builder::find_nvcc(home), nvcc);
  try {
    Builder::find_nvcc("/nonexistent");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("nvcc was not found in CUDA_HOME, on PATH or in"));
  }
  setenv("PATH", (home / "bin").c_str(), 1);
  EXPECT_EQ(Builder::find_nvcc("/nonexistent"), nvcc);

  setenv("PATH", path.c_str(), 1);
  unsetenv("CUDA_HOME");
  EXPECT_EQ(Builder::nvcc_version(nvcc), "12.4");
  EXPECT_THROW(Builder::nvcc_version("/bin/true"), InputError);
  EXPECT_THROW(Builder::nvcc_version("/bin/false"), InputError);
  EXPECT_THROW(Builder::nvcc_version("/nonexistent"), InputError);
  fs::remove_all(home);
}

TEST(PtxasReport, ReadsBothFormats) {
  const auto kernels =
      parse_ptxas("ptxas info    : Compiling entry function '_Z4gemmPKfS0_Pfi' for 'sm_86'\n"
                  "ptxas info    : Function properties for _Z4gemmPKfS0_Pfi\n"
                  "    16 bytes stack frame, 20 bytes spill stores, 24 bytes spill loads\n"
                  "ptxas info    : Used 255 registers, 8192 bytes smem, 380 bytes cmem[0]\n"
                  "ptxas info    : Compiling entry function 'plain' for 'sm_86'\n"
                  "ptxas info    : Function properties for plain\n"
                  "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                  "ptxas info    : Used 12 registers, used 1 barriers, 4 bytes smem\n");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels.at("gemm").registers, 255);
  EXPECT_EQ(kernels.at("gemm").shared_bytes, 8192);
  EXPECT_EQ(kernels.at("gemm").spill_bytes, 44);
  EXPECT_EQ(kernels.at("plain").registers, 12);
  EXPECT_EQ(kernels.at("plain").spill_bytes, 0);
}

TEST(PtxasReport, KeepsThePlainNameOfAKernel) {
  EXPECT_EQ(plain_kernel_name("_Z4gemmPKfS0_Pfi"), "gemm");
  EXPECT_EQ(plain_kernel_name("_Z8multiplyILi3EEvPfi"), "multiply");
  EXPECT_EQ(plain_kernel_name("_ZN2ns4gemmEPf"), "gemm");
  EXPECT_EQ(plain_kernel_name("_ZN12_GLOBAL__N_14gemmEPf"), "gemm");
  EXPECT_EQ(plain_kernel_name("gemm"), "gemm");
}

TEST(LoadedDigest, RefusesWhatIsNoElfFile) {
  EXPECT_THROW(loaded_digest(""), std::runtime_error);
  EXPECT_THROW(loaded_digest(std::string(200, 'x')), std::runtime_error);
}

} // namespace
} // namespace evo
