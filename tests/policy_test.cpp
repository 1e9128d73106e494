// What the policy refuses, in the open and in disguise, and what it must let through.
#include "fitness/policy.hpp"

#include <chrono>
#include <filesystem>
#include <ostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mutators/leaf_helpers.hpp"
#include "mutators/mutator.hpp"
#include "tests/support/goldens.hpp"
#include "tests/support/kernels.hpp"

namespace evo::test {
namespace {

using testing::HasSubstr;

/// A complete kernel file: `file` at namespace scope, `host` in the entry before its launch,
/// `device` in its kernel.
struct Parts {
  std::string file;
  std::string host;
  std::string device;
  std::string launch = "scale<<<dim3(d), 128, 0, stream>>>(W, Y, d);";
};

std::string source(const Parts& parts) {
  return "#include <cuda_runtime.h>\n" + parts.file +
         "\n__global__ void scale(const float *W, float *Y, int d) {\n"
         "  const int i = blockIdx.x * 128 + threadIdx.x;\n" +
         parts.device +
         "\n  if (i < d) { Y[i] = 2.0f * W[i]; }\n}\n"
         "extern \"C\" size_t lora_workspace(int d) { return 0; }\n"
         "extern \"C\" cudaError_t lora(const float *W, float *Y, int d, void *workspace, "
         "cudaStream_t stream) {\n" +
         parts.host + "\n  " + parts.launch + "\n  return cudaGetLastError();\n}\n";
}

std::string violation(const std::string& text) {
  return policy_violation(parse(text)).value_or("");
}

struct Case {
  std::string name;
  Parts parts;
  std::string expected; // of the sentence; empty: let through
};

std::ostream& operator<<(std::ostream& stream, const Case& example) {
  return stream << example.name;
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
  return info.param.name;
}

Case refused_file(std::string name, std::string code, std::string expected) {
  return {
      std::move(name), {.file = std::move(code), .host = {}, .device = {}}, std::move(expected)};
}
Case refused_host(std::string name, std::string file, std::string host, std::string expected) {
  return {std::move(name),
          {.file = std::move(file), .host = std::move(host), .device = {}},
          std::move(expected)};
}
Case refused_device(std::string name, std::string file, std::string device, std::string expected) {
  return {std::move(name),
          {.file = std::move(file), .host = {}, .device = std::move(device)},
          std::move(expected)};
}
Case refused_launch(std::string name, std::string file, std::string launch, std::string expected) {
  return {std::move(name),
          {.file = std::move(file), .host = {}, .device = {}, .launch = std::move(launch)},
          std::move(expected)};
}

class Policy : public testing::TestWithParam<Case> {};

TEST_P(Policy, Decides) {
  const std::string text = source(GetParam().parts);
  const std::string sentence = violation(text);
  if (GetParam().expected.empty()) {
    EXPECT_EQ(sentence, "") << text;
  } else {
    EXPECT_THAT(sentence, HasSubstr(GetParam().expected)) << text;
    EXPECT_THAT(sentence, HasSubstr("; ")) << "what to do about it";
  }
}

const std::string calls = "which is neither defined in the file";
const std::string state = "keeps state in";
const std::string other_stream = "uses a stream that is not the entry's";

INSTANTIATE_TEST_SUITE_P(
    ForeignCalls, Policy,
    testing::Values(
        refused_host("Redeclared", "int getpagesize();", "getpagesize();", "'getpagesize'"),
        refused_host("InTheEntryOnly", "", "extern int fork(); fork();", "'fork'"),
        refused_host("ThroughAMacro", "int getpid();\n#define STEP() getpid", "STEP()();",
                     "'getpid'"),
        refused_host("ThroughAPointer", "void step(int);", "void (*f)(int) = step; f(d);", calls),
        refused_host("ThroughAReference", "void step(int);", "auto &f = step;", calls),
        refused_host("ThroughANamespace", "namespace at { void matmul(int); } using at::matmul;",
                     "matmul(d);", "'matmul'"),
        refused_host("ThroughATypedef", "using F = void(int); F step;", "step(d);", calls),
        refused_host("ThroughADefaultArgument", "int pick(); void f(int a = pick()) {}", "f();",
                     "'pick'"),
        refused_host("ThroughATemplate",
                     "void step(int); template <typename T> void f(T t) { step(t); }", "f(d);",
                     "'step'"),
        refused_host("ThroughATemplateParameter",
                     "void step(int); template <void (*F)(int)> void f(int d) { F(d); }",
                     "f<step>(d);", "calls through a pointer"),
        refused_host("InALambda", "void step(int);", "auto f = [](int a) { step(a); }; f(d);",
                     "'step'"),
        refused_host("InAConstructor", "void step(int); struct S { S() { step(1); } };", "S s;",
                     "'step'"),
        refused_host("InADestructor", "void step(int); struct S { ~S() { step(1); } };", "S s;",
                     "'step'"),
        refused_host("InAMemberInitialiser", "int pick(); struct S { int a = pick(); };", "S s{};",
                     "'pick'"),
        refused_host("InAnOperator", "struct S {}; S operator+(S, S);", "S s; s + s;",
                     "'operator+'"),
        refused_host("AMethodWithoutABody", "struct S { void step(); };", "S s; s.step();",
                     "'step'"),
        refused_host("ABuiltin", "", "__builtin_malloc(8);", "'__builtin_malloc'"),
        refused_device("ABuiltinTrap", "", "__builtin_trap();", "'__builtin_trap'"),
        refused_device("ADeviceFunctionFromElsewhere", "__device__ long ticks();",
                       "if (ticks() > 0) { return; }", "'ticks'"),
        refused_device("DeviceMalloc", "__device__ void *malloc(size_t);", "malloc(8);",
                       "'malloc'"),
        refused_device("DeviceClock", "__device__ long long clock64();", "clock64();", "'clock64'"),
        refused_device("DevicePrintf", "extern \"C\" __device__ int printf(const char *, ...);",
                       "printf(\"x\");", "'printf'"),
        refused_host("CudaStreamCreate", "cudaError_t cudaStreamCreate(cudaStream_t *);", "",
                     "cudaStreamCreate"),
        refused_host("CudaLimits", "cudaError_t cudaDeviceSetLimit(int, size_t);",
                     "cudaDeviceSetLimit(6, 1 << 20);", "cudaDeviceSetLimit"),
        refused_host("CudaLimitsWithCLinkage",
                     "extern \"C\" cudaError_t cudaCtxResetPersistingL2Cache();",
                     "cudaCtxResetPersistingL2Cache();", "cudaCtxResetPersistingL2Cache"),
        refused_host("TheDriver", "extern \"C\" int cuCtxSetLimit(int, size_t);", "",
                     "cuCtxSetLimit"),
        refused_launch("TheLaunchConfigurationByHand", "",
                       "__cudaPushCallConfiguration(dim3(1), dim3(1), 0, stream);",
                       "__cudaPushCallConfiguration")),
    test_name);

INSTANTIATE_TEST_SUITE_P(
    Pointers, Policy,
    testing::Values(
        refused_host("CallOfAnAddress", "", "auto f = reinterpret_cast<void (*)()>(0x400000);",
                     "makes a pointer to a function"),
        refused_host("CallOfData", "", "using F = void(); F *f = (F *)workspace;",
                     "makes a pointer to a function"),
        refused_host("CallThroughMemory", "", "auto f = *(void (**)())workspace;",
                     "makes a pointer to a function"),
        refused_host("CallThroughAMember", "struct Table { void (*f)(); };",
                     "((Table *)workspace)->f();", "pointer to a function in a member"),
        refused_host("CallThroughAUnion", "union U { long a; void *p; };", "", "in a union"),
        refused_host("CallThroughAVirtualTable", "struct S { virtual void f() {} };",
                     "((S *)workspace)->f();", "is virtual"),
        refused_host("CallOfAnOwnFunctionThroughAPointer", "void f() {}", "auto g = f; g();",
                     "calls through a pointer"),
        refused_host("JumpToAnAddress", "", "void *p = &&done; goto *p; done:;",
                     "jumps to an address"),
        refused_host("InputAsANumber", "", "if ((uintptr_t)W == 0x7f0000) { return cudaSuccess; }",
                     "reads a pointer as a number"),
        refused_host("InputAsAHash", "unsigned mix(uintptr_t a) { return a * 31; }",
                     "mix(reinterpret_cast<uintptr_t>(W) >> 4);", "reads a pointer as a number"),
        refused_host("InputThroughAMask", "", "if (((uintptr_t)W & 0xfffff) == 16) { d = 0; }",
                     "reads a pointer as a number"),
        refused_host("InputThroughATypedef", "using Number = unsigned long;",
                     "Number n = Number(W);", "reads a pointer as a number"),
        refused_host("InputsCompared", "", "if (W < Y) { return cudaSuccess; }",
                     "compares two pointers"),
        refused_host("InputsSubtracted", "", "if (Y - W > 4) { return cudaSuccess; }",
                     "compares two pointers"),
        refused_host("BytesOfAPointer", "", "long n = *reinterpret_cast<long *>(&W);",
                     "reads the bytes of a pointer"),
        refused_host("BytesOfAPointerByReference", "", "long n = reinterpret_cast<long &>(W);",
                     "reads the bytes of a pointer"),
        refused_host("AFixedAddress", "", "int now = *(volatile int *)0x7fff0000;",
                     "makes a pointer of a number")),
    test_name);

INSTANTIATE_TEST_SUITE_P(
    Streams, Policy,
    testing::Values(
        refused_launch("LeftOut", "", "scale<<<dim3(d), 128>>>(W, Y, d);", other_stream),
        refused_launch("Null", "", "scale<<<dim3(d), 128, 0, nullptr>>>(W, Y, d);", other_stream),
        refused_launch("Zero", "", "scale<<<dim3(d), 128, 0, 0>>>(W, Y, d);", other_stream),
        refused_launch("PerThread", "#define PER_THREAD ((cudaStream_t)0x2)",
                       "scale<<<dim3(d), 128, 0, PER_THREAD>>>(W, Y, d);", other_stream),
        refused_launch("Uninitialised", "",
                       "cudaStream_t other; scale<<<dim3(d), 128, 0, other>>>(W, Y, d);",
                       other_stream),
        refused_launch("ValueInitialised", "",
                       "scale<<<dim3(d), 128, 0, cudaStream_t{}>>>(W, Y, d);", other_stream),
        refused_launch("AConstant", "constexpr cudaStream_t other = nullptr;",
                       "scale<<<dim3(d), 128, 0, other>>>(W, Y, d);", other_stream),
        refused_launch("ThroughAnAlias", "using Queue = CUstream_st *;",
                       "Queue q = (Queue)workspace; scale<<<dim3(d), 128, 0, q>>>(W, Y, d);",
                       other_stream),
        refused_launch("ThroughADefaultArgument",
                       "__global__ void other(); void go(cudaStream_t s = nullptr) {}", "go();",
                       other_stream),
        refused_launch("ThroughAMember", "struct Job { cudaStream_t stream; };",
                       "Job job{stream}; scale<<<dim3(d), 128, 0, job.stream>>>(W, Y, d);",
                       "keeps a stream in a member"),
        refused_launch("Overwritten", "",
                       "stream = nullptr; scale<<<dim3(d), 128, 0, stream>>>(W, Y, d);",
                       other_stream),
        refused_launch("OverwrittenByReference", "", "reinterpret_cast<long &>(stream) = 1;",
                       "reads a stream as something else"),
        refused_launch("OverwrittenByAddress", "", "void *p = &stream;",
                       "reads a stream as something else"),
        refused_launch("FromAFunction", "cudaStream_t other() { return cudaStream_t(1); }",
                       "scale<<<dim3(d), 128, 0, other()>>>(W, Y, d);", other_stream),
        refused_launch("FromAnArray", "",
                       "cudaStream_t s[2]; scale<<<dim3(d), 128, 0, s[0]>>>(W, Y, d);",
                       other_stream),
        refused_launch("OnlyWhenTimed", "",
                       "if (stream) { scale<<<dim3(d), 128, 0, stream>>>(W, Y, d); }",
                       "reads a stream as something else"),
        refused_launch("InATemplate",
                       "template <typename T> void go(T t) { cudaMemsetAsync(t, 0, 4); }", "go(Y);",
                       other_stream),
        refused_launch("DefaultOfMemset", "", "cudaMemsetAsync(Y, 0, 4);", other_stream)),
    test_name);

INSTANTIATE_TEST_SUITE_P(
    State, Policy,
    testing::Values(
        refused_file("AGlobal", "int calls;", state),
        refused_file("ThroughAMacro", "#define KEEP static\nKEEP int calls = 3;", state),
        refused_file("InANamespace", "namespace a { namespace { float last[4]; } }", state),
        refused_file("AStaticMember", "struct S { static int calls; }; int S::calls = 0;", state),
        refused_file("AnInlineMember", "struct S { inline static int calls = 0; };", state),
        refused_file("OfATemplate", "template <int N> int calls = N; int f() { return calls<1>; }",
                     state),
        refused_host("AStaticLocal", "", "static int calls = 0; ++calls;", "state in 'calls'"),
        refused_host("InALambda", "", "auto f = [] { static int n = 0; return ++n; }; f();", state),
        refused_host("AStaticLocalOfATemplate",
                     "template <typename T> int f() { static T n; return ++n; }", "f<int>();",
                     state),
        refused_device("AStaticLocalOnTheDevice", "", "static int n = 0; ++n;", state),
        refused_file("ADeviceVariable", "__device__ float last[16];", state),
        refused_file("AConstantSymbol", "__constant__ float table[16];", state),
        refused_file("AThreadLocal", "thread_local int calls = 0;", state),
        refused_file("AConstThreadLocal", "thread_local const int calls = 0;", state),
        refused_file("AConstOfAFunction", "int pick() { return 1; } const int first = pick();",
                     state),
        refused_file("AConstructor", "struct S { int a; S() : a(1) {} }; const S s;", state),
        refused_file("ADestructor", "struct S { constexpr S() {} ~S() {} }; const S s;", state),
        refused_file("AReference", "int &&kept = 3;", state),
        refused_file("AnExtern", "extern const int other;", state),
        refused_file("TheEnvironment", "extern \"C\" char **environ;", state),
        refused_host("InTheStacksRemains", "", "int calls; if (calls == 7) { return cudaSuccess; }",
                     "leaves 'calls' without a value"),
        refused_host("InTheRemainsOfAStructure", "struct S { int a[4]; };", "S s; d = s.a[1];",
                     "leaves 's' without a value"),
        refused_device("InADeviceConstant", "__device__ const int calls[1] = {0};",
                       "++*const_cast<int *>(calls);", "takes the address of the constant 'calls'"),
        refused_device("InADeviceConstantByAssembly", "__device__ const int calls = 0;",
                       "asm volatile(\"st.global.u32 [%0], 1;\" :: \"l\"(&calls));",
                       "takes the address of the constant 'calls'"),
        refused_device("InAStaticConstant", "",
                       "static const int calls[2] = {}; const int *p = calls; Y[0] = p[0];",
                       "takes the address of the constant 'calls'"),
        refused_file("AMutableMember", "struct S { mutable int n; }; constexpr S s{1};",
                     "has a mutable member 'n'"),
        refused_file("AVolatileConst", "const volatile int n = 1;", state)),
    test_name);

INSTANTIATE_TEST_SUITE_P(
    Symbols, Policy,
    testing::Values(
        refused_file("AThirdCFunction", "extern \"C\" void helper() {}", "has C linkage"),
        refused_file("InABlock", "extern \"C\" { int helper(int); }", "has C linkage"),
        refused_file("Write", "extern \"C\" long write(int, const void *, size_t) { return 0; }",
                     "name of the system's"),
        refused_file("WithoutCLinkage", "void exit(int) {}", "name of the system's"),
        refused_file("InANamespace", "namespace a { int system(float) { return 0; } }",
                     "name of the system's"),
        refused_file("ThroughAMacro", "#define QUIT abort\nvoid QUIT() {}", "name of the system's"),
        refused_file("OfATemplate", "template <typename T> void free(T *) {}",
                     "name of the system's"),
        refused_file("OfTheRuntime", "cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }",
                     "name of the system's"),
        refused_file("ADeclaredOneOfTheRuntime", "cudaError_t cudaGetLastError();",
                     "name of the system's"),
        refused_file("AnIntrinsic", "__host__ __device__ float rsqrtf(float a) { return a; }",
                     "one of CUDA's"),
        refused_file("ASpecialisedIntrinsic",
                     "template <> __device__ float __ldg<float>(const float *p) { return *p; }",
                     "one of CUDA's"),
        refused_file("Registration", "extern \"C\" void __cudaRegisterFunction() {}",
                     "name of the system's"),
        refused_file("OperatorNew", "void *operator new(size_t, int) { return nullptr; }",
                     "replaces an allocation"),
        refused_file("OperatorDeleteOfAClass", "struct S { void operator delete(void *) {} };",
                     "replaces an allocation"),
        refused_file("AnAssemblerName", "int f() asm(\"write\"); int f() { return 0; }",
                     "has the attribute 'asm'"),
        refused_file("AConstructor", "__attribute__((constructor)) void f() {}",
                     "has the attribute 'constructor'"),
        refused_file("ADestructor", "[[gnu::destructor]] void f() {}", "attribute 'destructor'"),
        refused_file("AMacroOfAConstructor",
                     "#define FIRST __attribute__((__constructor__(101)))\nFIRST void f() {}",
                     "has the attribute"),
        refused_file("Weak", "__attribute__((weak)) void f() {}", "has the attribute 'weak'"),
        refused_file("AnAlias",
                     "#ifndef __CUDA_ARCH__\nvoid g() {}\n"
                     "void f() __attribute__((alias(\"_Z1gv\")));\n#endif",
                     "has the attribute 'alias'"),
        refused_file("AnIfunc",
                     "#if !defined(__CUDA_ARCH__)\nextern \"C\" void *g() { return "
                     "nullptr; }\nvoid f() __attribute__((ifunc(\"g\")));\n#endif",
                     "has the attribute 'ifunc'"),
        refused_file(
            "ASection",
            "void f() {}\n__attribute__((section(\".init_array\"))) void (*const p)() = f;",
            "has the attribute 'section'"),
        refused_file("AnUnknownAttribute", "__attribute__((symver(\"f@A\"))) void f() {}",
                     "symver"),
        refused_file("AssemblyInTheFile", "asm(\".globl write\");", "outside of functions")),
    test_name);

INSTANTIATE_TEST_SUITE_P(
    Statements, Policy,
    testing::Values(
        refused_host("AssemblyOnTheHost", "", "asm volatile(\"syscall\");", "in host code"),
        refused_host("AssemblyInAHelper",
                     "__host__ __device__ inline void f() { asm volatile(\"\"); }", "f();",
                     "in host code"),
        refused_host("AssemblyInALambda", "", "[] { asm(\"nop\"); }();", "in host code"),
        refused_host("New", "", "int *p = new int[4];", "allocates with new"),
        refused_host("Delete", "", "delete Y;", "calls delete"),
        refused_host("OperatorNewByName", "", "::operator new(8);", "'operator new'"),
        refused_device("NewOnTheDevice", "struct S { float *p = new float; };", "S s;",
                       "allocates with new"),
        refused_host("Throw", "", "throw 1;", "throws an exception"),
        refused_host("Try", "", "try { d = 1; } catch (...) {}", "catches exceptions"),
        refused_device("Clock", "", "long t; asm volatile(\"mov.u64 %0, %%clock64;\" : \"=l\"(t));",
                       "reads '%clock64'"),
        refused_device("GlobalTimer", "#define NOW \"%%globaltimer\"",
                       "long t; asm volatile(\"mov.u64 %0, \" NOW \";\" : \"=l\"(t));",
                       "reads '%globaltimer'"),
        refused_device("Multiprocessor",
                       "__device__ int at() { int s; asm(\"mov.u32 %0, \\x25%smid;\" : \"=r\"(s)); "
                       "return s; }",
                       "if (at() == 3) { return; }", "reads '%smid'"),
        refused_device("Nanosleep", "", "asm volatile(\"@p  nanosleep.u32 100;\");",
                       "uses 'nanosleep'"),
        refused_device("Trap", "", "asm(\"{ mov.u32 a, 1; /* ; */ done: trap; }\");",
                       "uses 'trap'"),
        refused_device("CallInAssembly", "", "asm(\"call (r), vprintf, (a, b);\");", "uses 'call'"),
        refused_device("DeclarationInAssembly", "", "asm(\".global .u32 kept;\");",
                       "uses '.global'"),
        refused_device("LeavingTheFunction", "", "asm(\"} .global .u32 kept; {\");",
                       "closes a brace")),
    test_name);

INSTANTIATE_TEST_SUITE_P(
    Directives, Policy,
    testing::Values(
        refused_file("HiddenFromTheDevice", "#ifndef __CUDA_ARCH__\nint calls;\n#endif", state),
        refused_file("InAnElse", "#ifdef __CUDA_ARCH__\n#else\nint calls;\n#endif", state),
        refused_file("ForOlderCards", "#if __CUDA_ARCH__ < 800\n__device__ int calls;\n#endif",
                     state),
        refused_file("ForNewerCards", "#if __CUDA_ARCH__ >= 900\n__device__ int calls;\n#endif",
                     state),
        refused_file(
            "BetweenTwo",
            "#if __CUDA_ARCH__ >= 700 && !(__CUDA_ARCH__ >= 750)\n__device__ int n;\n#endif",
            state),
        refused_host("HiddenInTheEntry", "int step();",
                     "\n#if !defined(__CUDA_ARCH__)\nstep();\n#endif", "'step'"),
        refused_file("ThatOnlyParsesForTheTarget",
                     "#if __CUDA_ARCH__ >= 800\n#else\nnonsense\n#endif", "does not parse"),
        refused_file("OnTheCompiler", "#ifdef __clang__\n#else\nint calls;\n#endif",
                     "an #if on '__clang__'"),
        refused_file("OnNvcc", "#if defined(__CUDACC_VER_MAJOR__)\n#endif", "an #if on"),
        refused_file("OnAnOwnMacro", "#define OLD __CUDA_ARCH__\n#if OLD\n#endif",
                     "uses '__CUDA_ARCH__'"),
        refused_file("OnAHeader", "#if __has_include(<unistd.h>)\n#endif", "an #if on"),
        refused_file("BehindALineSplice", "#\\\nif __GNU\\\nC__\n#endif", "an #if on '__GNUC__'"),
        refused_file("AsADigraph", "%:ifdef __GNUC__\n%:endif", "an #if on '__GNUC__'"),
        refused_file("WhereNobodyLooks", "#if 0\n#ifdef __GNUC__\n#endif\n#endif", "an #if on"),
        refused_file("PredefinedMacro", "constexpr int line = __LINE__;", "uses '__LINE__'"),
        refused_file("PastedMacro", "#define AT(a) a[__COUNTER__]", "uses '__COUNTER__'"),
        refused_file("PastedTokens", "#define JOIN(a, b) a##b", "pastes tokens"),
        refused_file("PastedDigraphs", "#define JOIN(a, b) a %:%: b", "pastes tokens"),
        refused_file("ATrigraph", "// Why\?\?/\nint calls;\n", "trigraph or a control character"),
        refused_file("ACarriageReturn", "// one line\rint calls;",
                     "trigraph or a control character"),
        refused_file("AnAbsoluteInclude", "#include \"/dev/null\"", "includes \"/dev/null\""),
        refused_file("AMacroInclude", "#define FILE <cuda_runtime.h>\n#include FILE", "includes"),
        refused_file("APragma", "#pragma GCC optimize(\"O0\")", "has a #pragma GCC"),
        refused_file("APragmaOperator", "_Pragma(\"weak f\") void f() {}", "_Pragma"),
        refused_file("ALine", "#line 7", "has a #line"),
        refused_file("AKeyword", "#define const", "makes a macro of 'const'"),
        refused_file("ARuntimeCall", "#define cudaGetLastError() cudaSuccess", "makes a macro of"),
        refused_file("AnArchitecture", "#undef __CUDA_ARCH__", "makes a macro of")),
    test_name);

INSTANTIATE_TEST_SUITE_P(
    LetThrough, Policy,
    testing::Values(
        Case{"Nothing", {}, ""},
        refused_file("Tables",
                     "constexpr int n = 4; constexpr float table[n] = {1, 2, 3, 4};\n"
                     "__constant__ const float weights[2] = {0.5f, 0.25f};\n"
                     "__device__ const int order[2] = {1, 0};\n"
                     "struct Shape { int m, n; static constexpr int k = 8; };\n"
                     "constexpr Shape shape{1, 2}; template <int N> struct Step { static constexpr "
                     "int k = N;\n"
                     "static const int half = N / 2; };\nconstexpr int used = Step<4>::k; "
                     "Step<2> step();\nconst int &first = table[0] > 0 ? n : n;",
                     ""),
        refused_device("Intrinsics", "",
                       "float v = __ldg(W) + fmaf(W[0], 2.0f, __shfl_xor_sync(~0u, W[1], 1));\n"
                       "atomicAdd(Y, fmaxf(v, 0.0f)); __threadfence(); __syncthreads();",
                       ""),
        refused_device("VectorsAndSharedMemory", "struct Tile { float a[8][8]; };",
                       "extern __shared__ float4 shared[]; __shared__ float more[32];\n"
                       "Tile &tile = *reinterpret_cast<Tile *>(shared);\n"
                       "const float4 v = *reinterpret_cast<const float4 *>(W);\n"
                       "tile.a[0][0] = v.x; more[0] = make_float4(1, 2, 3, 4).y;\n"
                       "Y[0] = tile.a[0][0] + more[0];",
                       ""),
        refused_device(
            "TensorCores",
            "__device__ __forceinline__ void copy(void *to, const void *from) {\n"
            "  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));\n"
            "#if __CUDA_ARCH__ >= 800\n"
            "  asm volatile(\"cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\\n\" :: "
            "\"r\"(at), \"l\"(from) : \"memory\");\n#endif\n}\n"
            "__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], "
            "const unsigned (&b)[2]) {\n"
            "  asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, "
            "%2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\\n\" : \"+f\"(c[0]), "
            "\"+f\"(c[1]), \"+f\"(c[2]), \"+f\"(c[3]) : \"r\"(a[0]), \"r\"(a[1]), "
            "\"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1]));\n}\n"
            "__device__ __forceinline__ void load(unsigned (&a)[4], unsigned at) {\n"
            "  asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, "
            "[%4];\" : \"=r\"(a[0]), \"=r\"(a[1]), \"=r\"(a[2]), \"=r\"(a[3]) : "
            "\"r\"(at));\n}",
            "__shared__ float shared[64]; copy(shared, W);\n"
            "asm volatile(\"cp.async.commit_group;\\ncp.async.wait_group %0;\" :: \"n\"(0));\n"
            "unsigned a[4], b[2] = {}; float c[4] = {}; load(a, 0); mma(c, a, b); Y[0] = "
            "c[0];",
            ""),
        refused_device(
            "Coordinates", "",
            "unsigned lane; asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(lane));\n"
            "asm volatile(\"{\\n .reg .pred %%p;\\n setp.ne.u32 %%p, %0, 0;\\n again: @%%p "
            "bar.sync 0; // not %%clock\\n}\" :: \"r\"(lane));",
            ""),
        refused_host("Alignment",
                     "inline bool is_aligned(const void *p) {\n"
                     "  return reinterpret_cast<uintptr_t>(p) % 16 == 0;\n}",
                     "const bool all = is_aligned(W) && ((size_t)Y & 15) == 0 &&\n"
                     "  (((uintptr_t)W | (uintptr_t)Y) % sizeof(float4)) == 0;\n"
                     "if (!all || d % 4 != 0) { return cudaErrorInvalidValue; }",
                     ""),
        refused_host("Workspace", "",
                     "if (workspace == nullptr || !W) { return cudaErrorInvalidValue; }\n"
                     "float *T = static_cast<float *>(workspace);\n"
                     "unsigned char *rest = reinterpret_cast<unsigned char *>(T + 16 * d);\n"
                     "float *U = reinterpret_cast<float *>(\n"
                     "    (reinterpret_cast<uintptr_t>(rest) + 255) & ~uintptr_t(255));\n"
                     "cudaMemsetAsync(U, 0, sizeof(float) * d, stream);",
                     ""),
        refused_launch(
            "Attributes",
            "__launch_bounds__(128, 2) __global__ void other(int d);\n"
            "__global__ void other(int d) {}",
            "if (cudaFuncSetAttribute(scale, cudaFuncAttributeMaxDynamicSharedMemorySize, "
            "65536) != cudaSuccess) { return cudaErrorInvalidValue; }\n"
            "cudaStream_t same = stream; other<<<1, 128, 0, same>>>(d);\n"
            "scale<<<dim3(d, 1), dim3(128), 65536, stream>>>(W, Y, d);",
            ""),
        refused_launch(
            "Templates",
            "template <int N, typename T> __device__ T twice(T t) {\n"
            "  if constexpr (N > 1) { return twice<N - 1>(t + t); } else { return t; }\n}\n"
            "template <int N> __global__ void many(float *Y) {\n"
            "#pragma unroll 4\n  for (int i = 0; i < N; ++i) { Y[i] = twice<N>(Y[i]); }\n}\n"
            "template <typename K, typename... A>\n"
            "void go(K kernel, int blocks, cudaStream_t on, A... a) {\n"
            "  kernel<<<blocks, 128, 0, on>>>(a...);\n}",
            "go(many<4>, d, stream, Y);\n"
            "auto *kernel = d % 4 == 0 ? &many<4> : many<1>;\n"
            "kernel<<<d, 128, 0, stream>>>(Y);\n"
            "[&] { many<2><<<1, 1, 0, stream>>>(Y); }();",
            ""),
        refused_device(
            "Helpers",
            "namespace tile { struct View { float *p; int ld;\n"
            "  __device__ float &operator()(int r, int c) const { return p[r * ld + c]; }\n"
            "};\n[[nodiscard]] __host__ __device__ constexpr int up(int a, int b = 4) {\n"
            "  return (a + b - 1) / b; }\n}\nusing tile::View;\n"
            "#define FOR(i, n) for (int i = 0; i < (n); ++i)\n"
            "__device__ float sum(const float *p, int n);\n"
            "__device__ float sum(const float *p, int n) { float s = 0; FOR(i, n) s += "
            "p[i]; return s; }",
            "View view{Y, d}; auto at = [&](int r) -> float & { return view(r, 0); };\n"
            "at(0) = sum(W, tile::up(d)); static constexpr int steps[2] = {1, 2};\n"
            "Y[1] = steps[i % 2]; __builtin_assume(d > 0);",
            "")),
    test_name);

TEST(Policy, LetsEveryLeafHelperIn) {
  EXPECT_EQ(violation(source({.file = std::string(leaf_helpers_text), .host = {}, .device = {}})),
            "");
}

TEST(PolicySentence, SaysWhereWhatAndWhatToDo) {
  EXPECT_EQ(violation(source({.file = "int step();", .host = "  step();", .device = {}})),
            "'lora', line 10, calls 'step', which is neither defined in the file nor a call that "
            "kernels and launchers need; remove the call");
  EXPECT_EQ(violation(source({.file = "int calls;", .host = {}, .device = {}})),
            "the file, line 2, keeps state in 'calls'; make it a constant, a local variable or a "
            "region of the workspace");
}

TEST(PolicyLetsThrough, WhatMutatorsMakeOfWhatItLetsThrough) {
  int tried = 0;
  for (const Mutator* mutator : mutators()) {
    for (const Golden& golden : goldens(*mutator)) {
      if (violation(golden.before).empty()) {
        EXPECT_EQ(violation(read(golden.after)), "") << golden.after;
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 10);
}

TEST(PolicyLetsThrough, OtherOperators) {
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(in_repository("tests/operators"))) {
    if (entry.path().extension() == ".cu") {
      EXPECT_EQ(violation(read(entry.path())), "") << entry.path();
    }
  }
}

TEST(PolicyLetsThrough, EveryRewriteOfTheSeeds) {
  for (const char* seed : {"seeds/lora/naive.cu", "seeds/lora/tiled.cu"}) {
    const std::string text = read(in_repository(seed));
    for (const Mutator* mutator : mutators()) {
      const Proposals proposals(*mutator, text);
      for (const std::string& label : proposals.labels()) {
        EXPECT_EQ(violation(proposals.apply(label)), "") << seed << ": " << label;
      }
    }
  }
}

TEST(PolicyAndTheZoo, AgreeOnWhoCheats) {
  for (const auto& entry :
       std::filesystem::directory_iterator(in_repository("tests/adversarial"))) {
    const std::string text = read(entry.path());
    const std::string sentence = violation(text);
    EXPECT_EQ(sentence != "", text.starts_with("// expect: refused by policy"))
        << entry.path() << ": " << sentence;
  }
}

TEST(PolicyCosts, Milliseconds) {
  const Kernel kernel = parse(read(in_repository("seeds/lora/tiled.cu")));
  const auto start = std::chrono::steady_clock::now();
  constexpr int calls_made = 10;
  for (int i = 0; i < calls_made; ++i) {
    EXPECT_EQ(policy_violation(kernel), std::nullopt);
  }
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  EXPECT_LT(spent.count() / calls_made, 100);
  RecordProperty("ms", std::to_string(spent.count() / calls_made));
}

} // namespace
} // namespace evo::test
