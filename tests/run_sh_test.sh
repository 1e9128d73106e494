#!/usr/bin/env bash
# shellcheck disable=SC2317 # functions are called through expect
# Runs run.sh in copies of the project where set-up, CMake, Ninja and evo are stand-ins that say
# what they were asked, and where nvcc is found or not.
set -eu
source_dir=$1
sandbox=$(mktemp -d)
trap 'rm -rf "$sandbox"' EXIT
cd "$sandbox"
failures=0

expect() { # NAME CONDITION...
  local name=$1
  shift
  if "$@"; then
    echo "ok: $name"
  else
    echo "FAILED: $name"
    failures=$((failures + 1))
  fi
}

stand_in() { # FILE: a program of the lines on standard input
  mkdir -p "$(dirname "$1")"
  { echo '#!/bin/bash' && cat; } > "$1"
  chmod +x "$1"
}

fresh_project() {
  rm -rf project
  mkdir -p project/{bin,scripts,build,seeds/lora,fitness,cuda/bin}
  cp "$source_dir/scripts/first_export.sh" project/scripts
  cp "$source_dir/seeds/lora/naive.cu" project/seeds/lora
  cp "$source_dir/fitness/export_template.cu.in" project/fitness
  # The machine's own toolkit is out of sight.
  sed 's,/usr/local/cuda,/nowhere,g' "$source_dir/run.sh" > project/run.sh
  stand_in project/scripts/setup.sh <<< 'echo "setup" >> log; exit 0'
  stand_in project/bin/cmake <<< 'echo "cmake $*" >> log'
  stand_in project/bin/ninja <<< 'echo "ninja $*" >> log'
  stand_in project/bin/ctest <<< 'echo "ctest $*" >> log'
  stand_in project/bin/nvcc <<< 'true'
  stand_in project/build/evo <<< 'echo "evo $*" >> log'
}

run() {
  local status=0
  (cd project && PATH="$PWD/bin:/usr/bin:/bin" CUDA_HOME='' bash run.sh "$@" > output 2>&1) || status=$?
  echo "$status" > project/status
}

status_is() { [[ $(< project/status) == "$1" ]]; }
logged() { grep -qE -- "$1" project/log; }
first_export_stands() { cmp -s project/optimized_lora.cu <(bash "$source_dir/scripts/first_export.sh"); }

fresh_project
run --generations 4 --pop 8 --seed 7
expect "a run exits as evo does" status_is 0
expect "the first export is there" first_export_stands
expect "words and the time left reach evo" logged '^evo --generations 4 --pop 8 --seed 7 --time-budget 16[45][0-9]$'
expect "tests are not built for a run" logged '^cmake .*-DEVO_TESTS=OFF'

fresh_project
run --generations 2 --time-budget 60
expect "a given budget stands" logged '^evo --generations 2 --time-budget 60$'

fresh_project
run
expect "without words the time alone ends it" logged '^evo --generations 100000 --time-budget 16[45][0-9]$'

fresh_project
echo 'an earlier result' > project/optimized_lora.cu
run
expect "an earlier export makes room" first_export_stands
expect "evo decides about the earlier export" logged '^evo --incumbent .optimized_lora.previous.cu '
expect "the earlier export is kept for it" grep -q 'an earlier result' project/.optimized_lora.previous.cu
run
expect "a first export is no earlier result" grep -q 'an earlier result' project/.optimized_lora.previous.cu

fresh_project
stand_in project/scripts/setup.sh <<< 'cp optimized_lora.cu seen_by_setup'
run
expect "the file is there before set-up" cmp project/seen_by_setup project/optimized_lora.cu

fresh_project
rm project/bin/nvcc
run
expect "no nvcc: exit 2" status_is 2
expect "no nvcc: one sentence" test "$(wc -l < project/output)" = 1
expect "no nvcc: the ways to get it" grep -q 'CUDA_HOME' project/output
expect "no nvcc: the file stays" first_export_stands

fresh_project
stand_in project/bin/ninja <<< 'exit 1'
run
expect "a failed build: exit 5" status_is 5
expect "a failed build: the file stays" first_export_stands

fresh_project
stand_in project/scripts/setup.sh <<< 'exit 1'
run
expect "what set-up could not do may not be needed" status_is 0
stand_in project/bin/cmake <<< 'exit 1'
run
expect "a failed set-up: exit 4" status_is 4
expect "a failed set-up: the file stays" first_export_stands

fresh_project
stand_in project/build/evo <<< 'exit 130'
run
expect "evo's own exit code" status_is 130

fresh_project
run test -R export
expect "the tests are built and run" logged '^ctest --test-dir build .*-R export --label-exclude long$'
run test -L long
expect "long tests run when they are asked for" logged '^ctest --test-dir build .*-L long$'
expect "the tests need the tests" logged '^cmake .*-DEVO_TESTS=ON'
expect "the tests write no export" test ! -e project/optimized_lora.cu

# A bundle: evo lies beside run.sh, and only the worker is compiled.
fresh_project
stand_in project/evo <<< 'echo "prebuilt $*" >> log'
stand_in project/scripts/build_worker.sh <<< 'echo "worker" >> log'
run --pop 8
expect "a bundle's evo runs" logged '^prebuilt --pop 8'
expect "a bundle's worker is compiled" logged '^worker$'
expect "a bundle needs neither set-up nor CMake" test "$(wc -l < project/log)" = 2

# Signals. exec makes run.sh's process evo's, and a step is ended with the script.
signal_during() { # SIGNAL: once the file `started` exists
  local script
  (cd project && PATH="$PWD/bin:/usr/bin:/bin" exec bash run.sh > output 2>&1) &
  script=$!
  for _ in {1..100}; do
    [[ ! -f project/started ]] || break
    sleep 0.05
  done
  kill "-$1" "$script"
  wait "$script" && echo 0 > project/status || echo "$?" > project/status
}
gone() { # within a few seconds
  local pid
  pid=$(< project/started)
  for _ in {1..100}; do
    kill -0 "$pid" 2> /dev/null || return 0
    sleep 0.05
  done
  return 1
}

fresh_project
stand_in project/build/evo <<< 'trap "exit 0" TERM; echo $$ > started; while :; do sleep 0.05; done'
signal_during TERM
expect "SIGTERM ends evo cleanly" status_is 0
expect "no evo is left" gone

fresh_project
stand_in project/build/evo <<< 'echo $$ > started; while :; do sleep 0.05; done'
signal_during KILL
expect "SIGKILL leaves no evo" gone

fresh_project
stand_in project/bin/ninja <<< 'echo $$ > started; exec sleep 60'
signal_during TERM
expect "SIGTERM during the build" status_is 143
expect "no build is left" gone
expect "the file stays" first_export_stands

exit $((failures > 0))
