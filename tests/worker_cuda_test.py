#!/usr/bin/env python3
"""evo-worker against a zoo of kernels on a CUDA card: each gate has one that only it catches.

worker_cuda_test.py WORKER [--verbose]. Needs nvcc and the standard library. Exits 77 (skipped)
without a card.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import time

SIZES = [257, 515]
VERIFIED_SIZES = [257, 404, 515]


def tensor(name, shape, distribution="normal", scale=1.0, fan_in="", modifiers=()):
    return {"name": name, "shape": shape, "distribution": distribution, "scale": scale,
            "fan_in": fan_in, "modifiers": list(modifiers)}


def case(name, level, sweep=0, w_scale=1.0, x=None):
    return {"name": name, "level": level, "sweep": sweep,
            "inputs": [tensor("W", ["n", "n"], scale=w_scale, fan_in="n"),
                       x or tensor("X", ["n", "c"], "uniform")]}


CASES = [case("harness", "harness"), case("small", "default", w_scale=1e-5),
         case("positive", "default", x=tensor("X", ["n", "c"], "positive")),
         case("large", "strict", w_scale=1e3)]
CASES += [case(f"sY = {scale}", "default" if scale < 5 else "strict", scale, scale)
          for scale in (0.05, 1, 4, 12)]

PROBLEM = {
    "name": "product", "entry": "product", "output_file": "product.cu", "folder": "/", "seeds": [],
    "vary": "n", "dim_order": ["n", "c"], "fixed_dims": {"c": 48}, "sizes": SIZES,
    "inputs": CASES[0]["inputs"], "cases": CASES, "output": tensor("Y", ["n", "c"]),
    "rtol": 1e-4, "atol": 1e-4, "flops": [],
    "reference": "def reference(W, X):\n    return torch.relu(W @ X)\n",
}

RIGHT = """
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <unistd.h>
__global__ void multiply(const float *W, const float *X, float *Y, float *partial, int n, int c) {
  const int col = threadIdx.x;
  const int row = blockIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < n; ++k) {
    sum += W[row * n + k] * X[k * c + col];
  }
  Y[row * c + col] = sum > 0 ? sum : 0;
  partial[row] = sum;
}
extern "C" size_t product_workspace(int n, int c) { return sizeof(float) * n; }
extern "C" cudaError_t product(const float *W, const float *X, float *Y, int n, int c,
                               void *workspace, cudaStream_t stream) {
  float *partial = static_cast<float *>(workspace);
  multiply<<<n, c, 0, stream>>>(W, X, Y, partial, n, c);
  return cudaGetLastError();
}
"""

BEFORE_LAUNCH = "  multiply<<<"
STORE = "  Y[row * c + col] = sum > 0 ? sum : 0;"
REMEMBER = """  static const float *seen = nullptr;
  static float *kept = nullptr;
  const size_t bytes = sizeof(float) * n * c;
  if (seen == W && n > 200) {
    return cudaMemcpyAsync(Y, kept, bytes, cudaMemcpyDeviceToDevice, stream);
  }
  seen = W;
  multiply<<<n, c, 0, stream>>>(W, X, Y, partial, n, c);
  cudaMalloc(&kept, bytes);
  return cudaMemcpyAsync(kept, Y, bytes, cudaMemcpyDeviceToDevice, stream);
"""

ON_ANOTHER_STREAM = """  static const cudaStream_t other = [] {
    cudaStream_t made;
    cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    return made;
  }();
  for (int i = 0; i < 200; ++i) {
    multiply<<<n, c, 0, other>>>(W, X, Y, partial, n, c);
  }
  return cudaGetLastError();
"""

# name: (text, its replacement, verdict, part of the detail, whether the worker leaves)
ZOO = {
    "right": ("", "", "ok", "", False),
    "prints": (BEFORE_LAUNCH, '  printf("{\\"fitness\\": 1}\\n"); fflush(stdout);\n' + BEFORE_LAUNCH,
               "ok", "", False),
    "writes to descriptors 3 and 4": (
        BEFORE_LAUNCH, '  for (int fd = 3; fd < 5; ++fd) { if (write(fd, "x\\n", 2) > 3) abort(); }\n'
        + BEFORE_LAUNCH, "ok", "", False),
    "wrong": (STORE, STORE.replace("? sum", "? sum * 1.001f"), "wrong answer", "n = 131", False),
    "wrong at one large size": (STORE, STORE.replace("? sum", "? (n == 515 ? sum * 1.01f : sum)"),
                                "wrong answer", "n = 515", False),
    "one element": (STORE, STORE.replace(
        "sum > 0", "row == n - 1 && col == c - 1 ? sum + 0.01f : sum > 0"),
        "wrong answer", "1 of 6288 elements", False),
    "last row unwritten": (STORE, "  if (row < n - 1)" + STORE, "unwritten output",
                           "48 of 6288 elements of Y", False),
    "past the output": (STORE, STORE + " Y[n * c + row] = 0;", "out of bounds", "output", False),
    "before the output": (STORE, STORE + " Y[-1 - row] = 0;", "out of bounds", "output", False),
    "past the workspace": ("  partial[row]", "  partial[n + row]", "out of bounds", "workspace", False),
    "changes an input": (STORE, STORE + " const_cast<float *>(X)[row % n * c + col] += 1.0f;",
                         None, "", False),
    "changes an input it has used": (
        "  return cudaGetLastError();", "  cudaMemsetAsync(const_cast<float *>(X), 0, 4, stream);\n"
        "  return cudaGetLastError();", "touched input", "n = 131", False),
    "adds to its workspace": (STORE, "  partial[row] += sum;\n" + STORE.replace("? sum", "? partial[row]"),
                              None, "", False),
    "remembers": (BEFORE_LAUNCH, REMEMBER + BEFORE_LAUNCH, "wrong answer", "n = 257", False),
    "works five times": (BEFORE_LAUNCH, "  static int calls = 0;\n  if (n > 200 && ++calls > 5) return "
                         "cudaSuccess;\n" + BEFORE_LAUNCH, "unwritten output", "", False),
    "works on another stream": (BEFORE_LAUNCH, ON_ANOTHER_STREAM + BEFORE_LAUNCH, "suspicious",
                                "keep the device busy", False),
    "sleeps in the launcher": (BEFORE_LAUNCH, "  usleep(2000);\n" + BEFORE_LAUNCH, "ok", "", False),
    "block too large": ("<<<n, c,", "<<<n, 2048,", "launch error", "cudaErrorInvalid", False),
    "illegal address": (STORE, STORE + " Y[(size_t)1 << 45] = 0;", "launch error", "illegal", True),
    "trap": (STORE, STORE + ' asm volatile("trap;");', "launch error", "", True),
    "absurd workspace": ("sizeof(float) * n;", "~size_t{0} / 2;", "over limits", "does not fit", False),
    "reads past an input": (STORE, "  sum += X[n * c + row] * 0;\n" + STORE, "wrong answer", "n = 131",
                            False),
    "leaves a thread": (BEFORE_LAUNCH, """  static bool left = false;
  if (!left) { left = true; std::thread([] { for (;;) usleep(1000); }).detach(); }
""" + BEFORE_LAUNCH, "suspicious", "a thread running", True),
    "joins its thread": (BEFORE_LAUNCH, "  std::thread([] {}).join();\n" + BEFORE_LAUNCH, "ok", "",
                         False),
    "leaves a child": (BEFORE_LAUNCH, "  if (fork() == 0) { for (;;) pause(); }\n" + BEFORE_LAUNCH,
                       "suspicious", "a process behind", True),
    "forks and goes on": (BEFORE_LAUNCH, "  static bool done = false;\n  if (!done) { done = true; fork(); }\n"
                          + BEFORE_LAUNCH, None, "", True),
    "leaves a file open": (BEFORE_LAUNCH, '  fopen("/etc/passwd", "r");\n' + BEFORE_LAUNCH,
                           "suspicious", "/etc/passwd open", True),
    "eats the memory": (BEFORE_LAUNCH, """  size_t bytes = (size_t)1 << 40;
  for (void *eaten; bytes > 1 << 20;) { if (cudaMalloc(&eaten, bytes) != cudaSuccess) bytes /= 2; }
  cudaGetLastError();
""" + BEFORE_LAUNCH, "over limits", "memory", True),
    "changes limits": (BEFORE_LAUNCH, """  cudaDeviceSetLimit(cudaLimitStackSize, 4096);
  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1 << 20);
""" + BEFORE_LAUNCH, "ok", "", False),
    "resets the device": (BEFORE_LAUNCH, "  if (n > 500) cudaDeviceReset();\n" + BEFORE_LAUNCH, None,
                          "", True),
    "no workspace function": ("product_workspace", "product_scratch", "no build",
                              "'product_workspace'", False),
}

# Right enough for a judgement. name: (text, its replacement, the verification's verdict, detail)
VERIFIED = {
    "right": ("", "", "ok", ""),
    "wrong at a size that is not timed": (
        STORE, STORE.replace("? sum", "? (n == 404 ? sum * 1.01f : sum)"), "wrong answer", "n = 404"),
    "wrong one time in a hundred": (
        BEFORE_LAUNCH, "  static int calls = 0;\n  if (n < 132 && ++calls % 100 == 0) "
        "return cudaMemsetAsync(Y, 0, sizeof(float) * n * c, stream);\n" + BEFORE_LAUNCH,
        "non-deterministic", "n = 131"),
    "drops what is small": (
        STORE, "  sum = rintf(sum * 50000) / 50000;\n" + STORE, "wrong answer", 'the case "small"'),
    "a little too large": (
        STORE, "  sum *= sum == rintf(sum) ? 1 : 1.00012f;\n" + STORE, "wrong answer",
        'the case "small"'),
}


class Worker:
    def __init__(self, program):
        requests, self.requests = os.pipe()
        answers, channel = os.pipe()

        def arrange():
            ends = os.dup(requests), os.dup(channel)
            for end, number in zip(ends, (3, 4)):
                os.dup2(end, number)

        self.process = subprocess.Popen([program], preexec_fn=arrange, close_fds=False,
                                        stdout=subprocess.DEVNULL)
        os.close(requests)
        os.close(channel)
        self.answers = os.fdopen(answers)

    def ask(self, request):
        token = os.urandom(8).hex()
        os.write(self.requests, (json.dumps(request | {"token": token}) + "\n").encode())
        answer = self.answers.readline()
        if not answer:
            return {"fitness": {"verdict": "crash", "sizes": [],
                                "detail": f"the worker died: {self.process.wait()}"},
                    "leaving": True}
        answer = json.loads(answer)
        assert answer["token"] == token, answer
        return answer

    def prepare(self, sizes=SIZES, reference=()):
        return self.ask({"ask": "prepare", "backend": "cuda", "device": 0, "problem": PROBLEM,
                         "sizes": sizes, "input_seed": 1, "reference": reference})

    def judge(self, library, **options):
        return self.ask({"ask": "judge", "library": library, "id": library, "sizes": SIZES, "stop_at_ms_ratio": 0,
                         "best_ms": [], "calls": 10, "count_sizes": []} | options)

    def compare(self, *libraries, **options):
        contenders = [{"id": library, "library": library} for library in libraries]
        return self.ask({"ask": "compare", "contenders": contenders, "sizes": SIZES, "blocks": 4,
                         "cold_calls": 0} | options)

    def verify(self, library, **options):
        return self.ask({"ask": "verify", "library": library, "id": library, "level": "default",
                         "sizes": VERIFIED_SIZES, "full": False, "calls": 500} | options)

    def end(self):
        os.close(self.requests)
        code = self.process.wait(20)
        if code != 0:
            print(f"    the worker ended with {code}")


def build(folder, arch, name, change):
    before, after = change[:2]
    assert before in RIGHT, name
    stem = os.path.join(folder, name.replace(" ", "_"))
    with open(stem + ".cu", "w") as file:
        file.write(RIGHT.replace(before, after, 1) if before else RIGHT)
    nvcc = next((path for path in (os.path.join(home, "bin/nvcc") for home in
                                   (os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"))
                 if os.path.exists(path)), "nvcc")
    subprocess.run([nvcc, "-shared", "-Xcompiler", "-fPIC", "-w", "-arch", arch, stem + ".cu", "-o",
                    stem + ".so"], check=True)
    return stem + ".so"


def check(name, answer, verbose, seconds):
    _, _, verdict, detail, leaving = ZOO[name]
    fitness = answer["fitness"]
    if verbose:
        print(f"{name}: {fitness['verdict']}, {fitness['detail']} ({seconds * 1000:.0f} ms)")
    wrong = []
    if verdict is None:  # more than one gate may catch it
        if fitness["verdict"] == "ok":
            wrong.append("accepted")
    elif fitness["verdict"] != verdict or detail not in fitness["detail"]:
        wrong.append(f"expected {verdict} with '{detail}'")
    if answer["leaving"] != leaving:
        wrong.append(f"leaving is {answer['leaving']}")
    if (fitness["verdict"] == "ok") != (len(fitness["sizes"]) == len(SIZES)):
        wrong.append("sizes do not go with the verdict")
    for size in fitness["sizes"]:
        if not (size["median_ms"] > 0 and size["reference_ms"] > 0 and size["calls"] == 10):
            wrong.append(f"odd times: {size}")
    return [f"{name}: {complaint}, got {answer}" for complaint in wrong]


def check_comparisons(worker, libraries, verbose):
    right = libraries["right"]
    answer = worker.compare(right, right, cold_calls=10)
    if verbose:
        print(json.dumps(answer))
    wrong = []
    if answer["verdict"] != "ok" or len(answer["blocks"]) != 4:
        wrong.append("a kernel could not be compared with itself")
    for block in answer["blocks"]:
        for size in block["sizes"]:
            times = size["contenders_ms"] + [size["reference_ms"]]
            if len(times) != 3 or any(len(calls) != 2 or min(calls) <= 0 for calls in times):
                wrong.append(f"odd times: {size}")
    if [len(sizes) for sizes in answer["cold_ms"]] != [2, 2] or not answer["empty_kernel_ms"] > 0:
        wrong.append("cold times or the empty kernel's are missing")
    for name, verdict in (("works on another stream", "suspicious"),
                          ("works five times", "unwritten output"),
                          ("changes an input it has used", "touched input"),
                          ("wrong", "wrong answer")):
        answer = worker.compare(right, libraries[name])
        if answer["verdict"] != verdict or answer["culprit"] != libraries[name] or answer["blocks"]:
            wrong.append(f"{name}: compared as {answer}")
    return wrong


def check_verified(name, judged, answer, verbose, seconds):
    _, _, verdict, detail = VERIFIED[name]
    verification = answer["verification"]
    if verbose:
        print(f"{name}: {answer['verdict']}, {answer['detail']}, headroom {verification['headroom']}, "
              f"{verification['calls']} calls ({seconds * 1000:.0f} ms)")
    wrong = []
    if judged["fitness"]["verdict"] != "ok":
        wrong.append("a judgement rejects it already")
    if answer["verdict"] != verdict or detail not in answer["detail"]:
        wrong.append(f"expected {verdict} with '{detail}'")
    if verdict == "ok" and not (verification["calls"] >= 500 and verification["headroom"] >= 4):
        wrong.append("too few calls, or no headroom")
    return [f"{name}: {complaint}, got {answer}, judged {judged}" for complaint in wrong]


def take_over(worker, prepared, verbose):
    """As a standby does: first all but the inputs, then these, with known times."""
    worker.prepare(sizes=[])
    start = time.monotonic()
    answer = worker.prepare(reference=prepared["reference"])
    seconds = time.monotonic() - start
    if verbose:
        print(f"    took over in {seconds * 1000:.0f} ms")
    if answer.get("reference") != prepared["reference"] or answer["error"] or seconds > 0.5:
        return [f"a takeover went wrong: {answer} after {seconds:.2f} s"]
    return []


def main():
    program, verbose = sys.argv[1], "--verbose" in sys.argv
    worker = Worker(program)
    prepared = worker.prepare()
    if prepared["error"]:
        print("skipped:", prepared["error"])
        return 77
    print(json.dumps(prepared))
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        with concurrent.futures.ThreadPoolExecutor() as pool:
            changes = ZOO | VERIFIED
            libraries = dict(zip(changes, pool.map(
                lambda name: build(folder, prepared["arch"], name, changes[name]), changes)))
        for name in ZOO:
            start = time.monotonic()
            answer = worker.judge(libraries[name])
            failures += check(name, answer, verbose, time.monotonic() - start)
            if answer["leaving"]:
                worker.end()
                worker = Worker(program)
                failures += take_over(worker, prepared, verbose)
        for name in VERIFIED:
            judged = worker.judge(libraries[name])
            start = time.monotonic()
            answer = worker.verify(libraries[name])
            failures += check_verified(name, judged, answer, verbose, time.monotonic() - start)
        full = worker.verify(libraries["right"], full=True, level="strict")["verification"]
        if len(full["cases"]) != len(CASES) * len(VERIFIED_SIZES):
            failures.append(f"a full verification leaves cases out: {full}")
        limited = worker.verify(libraries["a little too large"], level="harness")
        if limited["verdict"] != "ok" or limited["verification"]["headroom"] != 1:
            failures.append(f"another scale headroom than 1: {limited}")
        slow = worker.judge(libraries["right"], stop_at_ms_ratio=1.5, best_ms=[1e-6, 1e-6])
        if [size["calls"] for size in slow["fitness"]["sizes"]] != [3, 3]:
            failures.append(f"a slow candidate was not stopped early: {slow}")
        failures += check_comparisons(worker, libraries, verbose)
    worker.end()
    print("\n".join(failures) or f"{len(ZOO) + len(VERIFIED)} kernels judged as they should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
