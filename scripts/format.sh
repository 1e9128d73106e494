#!/usr/bin/env bash
# format.sh [--check]: formats the C++ sources; with --check it only says what it would change.
set -eu
cd "$(dirname "$0")/.."
if [[ ${1-} == --check ]]; then
  action=(--dry-run -Werror)
else
  action=(-i)
fi
git ls-files '*.cpp' '*.hpp' | xargs clang-format-19 "${action[@]}"
