#include "fitness/policy/names.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace evo::policy {
namespace {

using Names = std::set<std::string_view>;

/// Of the headers that nvcc includes by itself, everything that reaches beyond its arguments; then
/// what processes, threads and files are made of.
const Names system_functions{
    // stdlib.h
    "_Exit", "abort", "aligned_alloc", "alloca", "arc4random", "at_quick_exit", "atexit", "bsearch",
    "calloc", "clearenv", "drand48", "exit", "free", "getenv", "malloc", "mkdtemp", "mkstemp",
    "on_exit", "posix_memalign", "putenv", "qsort", "quick_exit", "rand", "random", "realloc",
    "realpath", "secure_getenv", "setenv", "srand", "srandom", "system", "unsetenv", "valloc",
    // time.h
    "clock", "clock_gettime", "clock_nanosleep", "clock_settime", "gettimeofday", "gmtime",
    "localtime", "mktime", "nanosleep", "time", "timer_create", "timespec_get", "times",
    // string.h
    "memcmp", "memcpy", "memmove", "memset", "strcat", "strcmp", "strcpy", "strdup", "strlen",
    // stdio.h, assert.h
    "assert", "dprintf", "fclose", "fflush", "fopen", "fprintf", "fputs", "fread", "fwrite",
    "getchar", "getline", "perror", "popen", "printf", "putchar", "puts", "rename", "scanf",
    "snprintf", "sprintf", "tmpfile", "vfprintf", "vprintf",
    // unistd.h, fcntl.h, sys/
    "_exit", "access", "alarm", "chdir", "close", "daemon", "dup", "dup2", "execl", "execv",
    "execve", "execvp", "fcntl", "fork", "getpid", "getppid", "ioctl", "kill", "lseek", "mmap",
    "mprotect", "munmap", "open", "openat", "pipe", "poll", "prctl", "ptrace", "pwrite", "read",
    "recv", "send", "sendto", "setsid", "shm_open", "sleep", "socket", "syscall", "unlink",
    "usleep", "vfork", "wait", "waitpid", "write", "writev",
    // signal.h, setjmp.h, pthread.h, sched.h, dlfcn.h
    "dlclose", "dlopen", "dlsym", "dlvsym", "longjmp", "pthread_atfork", "pthread_create", "raise",
    "sched_yield", "setjmp", "sigaction", "siglongjmp", "signal", "sigsetjmp", "thrd_create",
    // CUDA's device code
    "clock64", "globaltimer", "__assertfail", "__assert_fail", "__brkpt", "__clock", "__clock64",
    "__globaltimer", "__nanosleep", "__pm0", "__pm1", "__pm2", "__pm3", "__prof_trigger", "__trap",
    // the program's
    "_fini", "_init", "main"};

const Names launcher_calls{"cudaFuncSetAttribute", "cudaGetLastError", "cudaMemsetAsync",
                           "cudaPeekAtLastError"};

const Names harmless_builtins{"__builtin_assume", "__builtin_assume_aligned", "__builtin_expect",
                              "__builtin_unreachable"};

const Names coordinate_registers{"tid",
                                 "ntid",
                                 "ctaid",
                                 "nctaid",
                                 "laneid",
                                 "warpid",
                                 "nwarpid",
                                 "lanemask_eq",
                                 "lanemask_le",
                                 "lanemask_lt",
                                 "lanemask_ge",
                                 "lanemask_gt",
                                 "clusterid",
                                 "nclusterid",
                                 "cluster_ctaid",
                                 "cluster_nctaid",
                                 "cluster_ctarank",
                                 "cluster_nctarank",
                                 "is_explicit_cluster"};

/// cudaMalloc, cuLaunchKernel.
bool is_cuda_api(std::string_view name) {
  const std::size_t prefix = name.starts_with("cuda") ? 4 : name.starts_with("cu") ? 2 : 0;
  return prefix != 0 && name.size() > prefix &&
         std::isupper(static_cast<unsigned char>(name[prefix])) != 0;
}

} // namespace

bool belongs_to_the_system(std::string_view function) {
  return is_cuda_api(function) || function.starts_with("__cuda") || function.starts_with("__cxa") ||
         system_functions.contains(function);
}

bool is_launcher_call(std::string_view function) {
  return launcher_calls.contains(function);
}

bool is_harmless_builtin(std::string_view function) {
  return harmless_builtins.contains(function);
}

bool is_coordinate_register(std::string_view name) {
  return coordinate_registers.contains(name);
}

} // namespace evo::policy
