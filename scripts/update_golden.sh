#!/usr/bin/env bash
# Writes tests/mutators/*/after*.cu anew from before*.cu. Read the diff before you commit it.
# usage: scripts/update_golden.sh [MUTATOR] [BUILD_FOLDER]
set -eu
cd "$(dirname "$0")/.."
EVO_UPDATE_GOLDENS=1 "${2:-build}/mutators_test" --gtest_filter="*TurnsBeforeIntoAfter/${1:-*}"
git diff --stat -- tests/mutators
