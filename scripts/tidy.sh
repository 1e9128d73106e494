#!/usr/bin/env bash
# tidy.sh [FILE...]: clang-tidy (.clang-tidy) over the named sources, else over all but the tests and
# those on LibTorch, whose headers in Debian 12 Clang 19 does not accept.
# All sources are checked in the batches of a unity build: most of the time goes into Clang's own
# headers, which a batch reads once. The compiler has the word on warnings, hence -w.
set -eu
cd "$(dirname "$0")/.."

configure() { # FOLDER OPTION...: for its compile commands
  cmake -G Ninja -S . -B "$1" -DCMAKE_BUILD_TYPE=Release -DEVO_TESTS=OFF "${@:2}" > /dev/null
}

lint() { # FOLDER FILE...
  printf '%s\n' "${@:2}" |
    xargs -P "$(nproc)" -n 1 clang-tidy-19 -p "$1" --quiet --extra-arg=-w \
      2> >(grep -v ' warnings generated' >&2)
}

configure build/single
if (($# > 0)); then
  lint build/single "$@"
  exit
fi

batches_folder=build/batches
configure $batches_folder -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16 -DEVO_WORKER=OFF
mapfile -t batches < <(find $batches_folder -name 'unity_*.cxx')
mapfile -t others < <(comm -23 \
  <(git ls-files 'fitness/*.cpp' 'mutators/*.cpp' 'population/*.cpp' |
    grep -vE 'fitness/(checked_run|compare|cpu_device|cuda_device|device_state|guarded_buffer|oracle|rounded_script|timed_candidate|truth|verifier|worker)\.cpp' |
    sort) \
  <(sed -n "s|^#include \"$PWD/\(.*\)\"|\1|p" "${batches[@]}" | sort))
lint $batches_folder "${batches[@]}"
lint build/single "${others[@]}"
