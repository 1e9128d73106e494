#!/usr/bin/env bash
# tidy.sh [FILE...]: clang-tidy (.clang-tidy) over the named sources, else over all but the tests and
# those on LibTorch, whose headers in Debian 12 Clang 19 does not accept.
# Needs a configured build folder. The compiler has the word on warnings, hence -w.
set -eu
cd "$(dirname "$0")/.."
(($# > 0)) || mapfile -t files < <(git ls-files 'fitness/*.cpp' 'mutators/*.cpp' 'population/*.cpp' |
  grep -vE 'fitness/(checked_run|compare|cpu_device|cuda_device|device_state|guarded_buffer|oracle|rounded_script|timed_candidate|truth|verifier|worker)\.cpp')
printf '%s\n' "${files[@]-$@}" |
  xargs -P "$(nproc)" -n 1 clang-tidy-19 -p build --quiet --extra-arg=-w \
  2> >(grep -v ' warnings generated' >&2)
