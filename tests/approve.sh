#!/bin/sh
# Makes what the tests print now the golden files; look at `git diff tests` before you commit it.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/release}
cmake --build "$build" --target tests_sim
LOCKSTEP_APPROVE=1 "$build/tests/tests_sim" '[golden]'
git --no-pager diff --stat -- tests/golden tests/data
