#!/usr/bin/env bash
# tidy.sh [FILE...]: clang-tidy (.clang-tidy) over the named sources, else over all but the tests and
# those on LibTorch, whose headers in Debian 12 Clang 19 does not accept.
# Each source is compiled by itself, so one that leans on its neighbours in a unity build is found
# here. The compiler has the word on warnings, hence -w.
set -eu
cd "$(dirname "$0")/.."
cmake -G Ninja -S . -B build/single -DCMAKE_BUILD_TYPE=Release > /dev/null # for its compile commands
(($# > 0)) || mapfile -t files < <(git ls-files 'fitness/*.cpp' 'mutators/*.cpp' 'population/*.cpp' |
  grep -vE 'fitness/(checked_run|compare|cpu_device|cuda_device|device_state|guarded_buffer|oracle|rounded_script|timed_candidate|truth|verifier|worker)\.cpp')
printf '%s\n' "${files[@]-$@}" |
  xargs -P "$(nproc)" -n 1 clang-tidy-19 -p build/single --quiet --extra-arg=-w \
  2> >(grep -v ' warnings generated' >&2)
