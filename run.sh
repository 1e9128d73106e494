#!/usr/bin/env bash
# run.sh [WORD...]: leaves a valid optimized_lora.cu within its first second, then sets up, builds,
# and searches for faster ones until 30 minutes after its own start.
#
#   bash run.sh                                   all of it
#   bash run.sh --generations 4 --pop 8 --seed 7  words go to evo (see build/evo --help)
#   bash run.sh test [WORD...]                    builds and runs the tests, those labelled long
#                                            only with -L long; words go to ctest
#
# Exit codes: evo's own (0; 2 for bad input, 3 for a fault), 2 without nvcc, 4 when set-up failed and
# 5 when the build did. The file stays in each case.
set -u
[[ $0 != */* ]] || cd "${0%/*}" || exit

readonly export=optimized_lora.cu
readonly previous=.optimized_lora.previous.cu
readonly seconds=1650 # 30 minutes less a margin for the last export and the end of the worker

# The naive seed, with the shell alone. An earlier run's export steps aside until it is verified.
write_first_export() {
  local first
  first=$(bash scripts/first_export.sh) || return
  if [[ -f $export && $(< "$export") != "$first" ]]; then
    cat "$export" > "$previous.new" && mv -f "$previous.new" "$previous"
  fi
  printf '%s\n' "$first" > "$export.new" && sync "$export.new" && mv -f "$export.new" "$export"
}

# Runs a command so that a signal to this script ends it too.
step() {
  "$@" &
  child=$!
  wait "$child"
}

build() {
  step cmake -G Ninja -S . -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON \
    "-DEVO_TESTS=$1" &&
    step ninja -C build "${@:2}"
}

set_up_and_build() {
  local setup=0
  step bash scripts/setup.sh || setup=$?
  build "$@" && return
  ((setup == 0)) && exit 5
  exit 4
}

require_nvcc() {
  local folder
  for folder in "${CUDA_HOME:-/usr/local/cuda}/bin" /usr/local/cuda/bin; do
    [[ ! -x $folder/nvcc ]] || return 0
  done
  command -v nvcc > /dev/null && return
  echo "run.sh: no nvcc in CUDA_HOME, PATH or /usr/local/cuda: install NVIDIA's CUDA toolkit" \
    "(or the package nvidia-cuda-toolkit), or set CUDA_HOME to where it is" >&2
  exit 2
}

child=
trap '[[ -z $child ]] || kill "$child"; exit 143' TERM
trap '[[ -z $child ]] || kill "$child"; exit 130' INT

if [[ ${1-} == test ]]; then
  set_up_and_build ON
  words=("${@:2}")
  [[ " ${words[*]} " == *" -L "* ]] || words+=(--label-exclude long)
  exec ctest --test-dir build --output-on-failure "${words[@]}"
fi

write_first_export || exit 3
require_nvcc
if [[ -x ./evo ]]; then # a bundle: only the worker depends on this machine
  engine=./evo
  step bash scripts/build_worker.sh || exit 5
else
  engine=build/evo
  set_up_and_build OFF evo evo-worker
fi

words=("$@")
[[ ! -f $previous ]] || words+=(--incumbent "$previous")
[[ " $* " == *" --generations"* ]] || words+=(--generations 100000) # as many as the time allows
[[ " $* " == *" --time-budget"* ]] || words+=(--time-budget "$((seconds - SECONDS))")
exec "$engine" "${words[@]}"
