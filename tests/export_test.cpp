#include "fitness/export.hpp"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace evo {
namespace {

using std::filesystem::path;
using testing::HasSubstr;

const path source_dir = EVO_SOURCE_DIR;

std::string read(const path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

Problem lora() {
  return Problem::load(source_dir / "seeds/lora/problem.toml");
}

Provenance unjudged(std::string seed) {
  Provenance provenance;
  provenance.seed_file = std::move(seed);
  provenance.judged = false;
  return provenance;
}

std::string exported_seed(const std::string& name) {
  return export_text(lora(), read(source_dir / "seeds/lora" / name), unjudged(name));
}

/// A fresh folder that goes away with the test.
class Folder {
public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "evo-export-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  path operator/(const std::string& name) const { return path_ / name; }
  std::size_t files() const {
    return std::distance(std::filesystem::directory_iterator(path_), {});
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }

private:
  path path_;
};

/// Exit code of a shell command whose output goes to the test's.
int shell(const std::string& command) {
  return WEXITSTATUS(std::system(command.c_str()));
}

TEST(ExportText, KeepsTheKernelByteForByteAroundItsGuard) {
  const std::string source = read(source_dir / "seeds/lora/tiled.cu");
  const std::size_t host = source.find("extern \"C\"");
  const std::string text = exported_seed("tiled.cu");
  EXPECT_THAT(text, HasSubstr(source.substr(0, host) + "\n#ifndef __CUDACC_RTC__\n" +
                              source.substr(host) + "\n"));
}

TEST(ExportText, SaysWhatIsNotJudged) {
  EXPECT_THAT(
      exported_seed("naive.cu"),
      testing::StartsWith(
          "// optimized_lora.cu, written by evo: a PyTorch extension, forward(W, X, A, B) -> Y.\n"
          "// The seed naive.cu as it stands.\n"
          "// Not judged yet.\n"));
}

TEST(ExportText, CallsOnlyMeasuredTimesMeasured) {
  Provenance provenance;
  provenance.id = "1234";
  provenance.seed_file = "naive.cu";
  provenance.trail = {"unroll_loop: gemm/k unroll 4"};
  provenance.run_seed = 7;
  provenance.card = "NVIDIA H200";
  provenance.toolkit = "CUDA 13.0, PyTorch 2.11.0";
  provenance.fitness.verdict = Verdict::Ok;
  provenance.fitness.measured = true;
  provenance.fitness.speedup = 2;
  provenance.fitness.sizes = {{.size = 4096, .median_ms = 1.5, .reference_ms = 3}};
  EXPECT_THAT(
      export_text(lora(), "", provenance),
      HasSubstr(
          "\n// The seed naive.cu after 1 rewrite (genome 1234, run seed 7):\n"
          "//   unroll_loop: gemm/k unroll 4\n"
          "// Measured on NVIDIA H200 (CUDA 13.0, PyTorch 2.11.0): 2.000 times as fast as the "
          "reference.\n"
          "//   size 4096: 1.5000 ms, the reference 3.0000 ms\n"));
  provenance.fitness.verification = {
      .level = Level::Default,
      .cases = {{.name = "a", .size = 4608, .figures = {}, .fault = {}},
                {.name = "b", .size = 3584, .figures = {}, .fault = {}}},
      .headroom = 4,
      .calls = 512};
  EXPECT_THAT(
      export_text(lora(), "", provenance),
      HasSubstr("ms\n// Accuracy verified at level default, at the sizes 3584, 4608, in 512 "
                "calls; scale headroom 4.\n"));
  provenance.fitness.measured = false;
  EXPECT_THAT(export_text(lora(), "", provenance), HasSubstr("// Estimated, not measured, for "));
  provenance.fitness.verdict = Verdict::WrongAnswer;
  provenance.fitness.detail = "7 elements differ";
  EXPECT_THAT(export_text(lora(), "", provenance),
              HasSubstr(": wrong answer. 7 elements differ\n"));
}

TEST(ExportText, FollowsTheProblemOfAnotherOperator) {
  const Problem relu = Problem::load(source_dir / "tests/operators/relu/problem.toml");
  const std::string text = export_text(relu, "", unjudged("naive.cu"));
  EXPECT_THAT(text, HasSubstr("torch::Tensor forward(torch::Tensor W, torch::Tensor X) {"));
  EXPECT_THAT(text, HasSubstr("relu_workspace(n, c)"));
  EXPECT_THAT(text, testing::Not(HasSubstr("lora")));
}

TEST(ExportText, LeavesTheKernelsOwnAtSignsAlone) {
  EXPECT_THAT(export_text(lora(), "// @ENTRY@ a@b\n", unjudged("x.cu")),
              HasSubstr("// @ENTRY@ a@b\n"));
}

TEST(ExportText, RefusesADimThatNothingTells) {
  Problem problem = lora();
  problem.dim_order.push_back("q");
  try {
    export_text(problem, "", unjudged("naive.cu"));
    FAIL() << "no InputError";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no input's shape has the dim q"));
  }
}

TEST(ExportText, TakesADimThatNoInputHasFromTheProblem) {
  Problem problem = lora();
  problem.dim_order.push_back("q");
  problem.fixed_dims["q"] = 3;
  EXPECT_THAT(export_text(problem, "", unjudged("naive.cu")), HasSubstr("  const int q = 3;\n"));
}

// A stand-in kernel that records what the binding hands over, and a caller that asks for all of it.
constexpr const char* recording_kernel = R"(#include <cuda_runtime.h>
extern "C" size_t lora_workspace(int d, int r) { return 100 * d + r; }
extern "C" cudaError_t lora(const float *W, const float *X, const float *A, const float *B,
                            float *Y, int d, int r, void *workspace, cudaStream_t stream) {
  if (r != 16) return cudaErrorInvalidValue;
  Y[0] = W[0] + 10 * X[0] + 100 * A[0] + 1000 * B[0];
  Y[1] = d, Y[2] = r, Y[3] = stream == c10::cuda::getCurrentCUDAStream();
  static_cast<char *>(workspace)[100 * d + r - 1] = 1;
  return cudaSuccess;
}
)";

constexpr const char* caller = R"(
#include <cstdio>
#include <cstring>

static torch::Tensor filled(at::IntArrayRef shape, float value) {
  torch::Tensor tensor = torch::empty(shape, {torch::kFloat32, {3}});
  tensor.data_ptr<float>()[0] = value;
  return tensor;
}

static int failures = 0;

static void expect(bool good, const char *what) {
  if (!good) {
    ++failures;
    std::printf("FAILED: %s\n", what);
  }
}

template <typename Call> static void refuses(Call call, const char *message) {
  try {
    call();
    expect(false, message);
  } catch (const std::exception &error) {
    expect(std::strstr(error.what(), message) != nullptr, error.what());
  }
}

int main() {
  const torch::Tensor W = filled({5, 5}, 1), X = filled({5, 5}, 2), A = filled({5, 16}, 3),
                      B = filled({5, 16}, 4);
  const torch::Tensor Y = forward(W, X, A, B);
  const float *y = Y.data_ptr<float>();
  expect(Y.sizes() == at::IntArrayRef{5, 5} && Y.device().index == 3, "output");
  expect(y[0] == 4321 && y[1] == 5 && y[2] == 16 && y[3] == 1, "arguments");
  expect(c10::cuda::guarded_device == 3, "device guard");

  refuses([&] { forward(W, filled({5, 6}, 0), A, B); }, "X must have the shape [5][5], not [5][6]");
  refuses([&] { forward(filled({5, 4}, 0), X, A, B); }, "W must have the shape");
  refuses([&] { forward(W, X, A, filled({5, 8}, 0)); }, "B must have the shape [5][16]");
  refuses([&] { forward(W, X, filled({5, 8}, 0), filled({5, 8}, 0)); }, "lora: invalid argument");
  torch::Tensor wrong = W;
  wrong.contiguous = false;
  refuses([&] { forward(wrong, X, A, B); }, "W must be contiguous float32");
  wrong = A;
  wrong.settings.type = torch::kFloat64;
  refuses([&] { forward(W, X, wrong, B); }, "A must be contiguous float32");
  wrong = X;
  wrong.settings.place.index = 1;
  refuses([&] { forward(W, wrong, A, B); }, "X must be on the CUDA device");
  wrong = W;
  wrong.cuda = false;
  refuses([&] { forward(wrong, X, A, B); }, "W must be on the CUDA device");
  return failures;
}
)";

TEST(ExportText, IsWhatTheShellWritesBeforeAnythingIsBuilt) {
  const Folder folder;
  const std::string file = (folder / "export.cu").string();
  ASSERT_EQ(shell((source_dir / "scripts/first_export.sh").string() + " > " + file), 0);
  EXPECT_EQ(read(file), exported_seed("naive.cu"));
}

TEST(ExportedKernel, IsTheSourceThatWasExported) {
  for (const char* seed : {"naive.cu", "tiled.cu"}) {
    EXPECT_EQ(exported_kernel(exported_seed(seed)), read(source_dir / "seeds/lora" / seed));
  }
}

TEST(ExportedKernel, LeavesAPlainKernelAlone) {
  EXPECT_EQ(exported_kernel(recording_kernel), recording_kernel);
}

TEST(Binding, HandsOverEveryArgumentAndRefusesWhatDoesNotFit) {
  const Folder folder;
  const std::string text = export_text(lora(), recording_kernel, unjudged("recording.cu")) + caller;
  const std::string file = folder.write("binding.cpp", text);
  const std::string program = (folder / "binding").string();
  const std::string stub = (source_dir / "tests/torch_stub").string();
  ASSERT_EQ(shell("c++ -std=c++17 -Wall -Wextra -Werror -fsanitize=address -I " + stub + " -I " +
                  stub + "/cuda -o " + program + " " + file),
            0);
  EXPECT_EQ(shell(program), 0);
}

class ExportedSeed : public testing::TestWithParam<const char*> {};

TEST_P(ExportedSeed, CompilesForTheArchitecturesOfOneFatBinary) {
  const std::string nvcc = "PATH=$PATH:$CUDA_HOME/bin:/usr/local/cuda/bin nvcc ";
  if (shell(nvcc + "--version > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "no nvcc";
  }
  const Folder folder;
  const std::string file = folder.write("export.cu", exported_seed(GetParam()));
  std::string archs;
  for (const char* arch : {"75", "80", "86", "90"}) {
    archs += std::string(" -gencode arch=compute_") + arch + ",code=sm_" + arch;
  }
  EXPECT_EQ(shell(nvcc + "-std=c++17 -O3 -c" + archs + " -I " +
                  (source_dir / "tests/torch_stub").string() + " -o " +
                  (folder / "export.o").string() + " " + file),
            0);
}

TEST_P(ExportedSeed, CompilesUnderTheOldestToolkitsRuntimeCompiler) {
  const Folder folder;
  const std::string file = folder.write("export.cu", exported_seed(GetParam()));
  const int code = shell("python3 " + (source_dir / "tests/nvrtc_check.py").string() + " " + file +
                         " 52 60 70 86");
  if (code == 77) {
    GTEST_SKIP() << "NVRTC 12.4 is not installed";
  }
  EXPECT_EQ(code, 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ExportedSeed, testing::Values("naive.cu", "tiled.cu"),
                         [](const auto& seed) { return path(seed.param).stem().string(); });

TEST(ReplaceFile, WritesAndReplacesWithoutLeavingAnythingBeside) {
  const Folder folder;
  replace_file(folder / "out.cu", "first");
  replace_file(folder / "out.cu", "second");
  EXPECT_EQ(read(folder / "out.cu"), "second");
  EXPECT_EQ(folder.files(), 1U);
}

TEST(ReplaceFile, ReplacesAFileInTheWorkingFolder) {
  const Folder folder;
  const path before = std::filesystem::current_path();
  std::filesystem::current_path(folder / "");
  replace_file("out.cu", "text");
  std::filesystem::current_path(before);
  EXPECT_EQ(read(folder / "out.cu"), "text");
}

/// A file-size limit in place of a full disk: write() fails in the same place.
TEST(ReplaceFile, KeepsTheOldFileWhenTheDiskIsFull) {
  const Folder folder;
  replace_file(folder / "out.cu", "old");
  rlimit saved{};
  getrlimit(RLIMIT_FSIZE, &saved);
  const rlimit small{1000, saved.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(replace_file(folder / "out.cu", std::string(2000, 'x')), std::system_error);
  setrlimit(RLIMIT_FSIZE, &saved);
  EXPECT_EQ(read(folder / "out.cu"), "old");
  EXPECT_EQ(folder.files(), 1U);
}

TEST(ReplaceFile, NamesTheFileThatItCannotWrite) {
  const Folder folder;
  folder.write("plain", "");
  for (const path& target :
       {folder / "missing/out.cu", folder / "plain/out.cu", path("/proc/out.cu")}) {
    try {
      replace_file(target, "text");
      FAIL() << "wrote " << target;
    } catch (const std::system_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("cannot write " + target.string()));
    }
  }
}

TEST(ReplaceFile, KeepsTheOldFileInAFolderThatMayNotBeWritten) {
  const Folder folder;
  replace_file(folder / "out.cu", "old");
  std::filesystem::permissions(folder / "", std::filesystem::perms(0555));
  const bool root = geteuid() == 0; // whom no permission stops
  ASSERT_TRUE(!root || seteuid(65534) == 0);
  EXPECT_THROW(replace_file(folder / "out.cu", "new"), std::system_error);
  ASSERT_TRUE(!root || seteuid(0) == 0);
  std::filesystem::permissions(folder / "", std::filesystem::perms(0755));
  EXPECT_EQ(read(folder / "out.cu"), "old");
}

} // namespace
} // namespace evo
