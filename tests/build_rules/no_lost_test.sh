#!/usr/bin/env bash
# no_lost_test.sh SOURCE WORK: a copy of the project with a test file outside every room must not configure.
set -euo pipefail
source=$1 work=$2
rm -rf "$work"
mkdir -p "$work/source/tests/nowhere"
cd "$source"
find CMakeLists.txt LICENSE cmake sim calibration cli tests \
  \( -name '*.cpp' -o -name '*.h' -o -name '*.cmake' -o -name '*.in' -o -name CMakeLists.txt \) -print0 |
  xargs -0 cp --parents -t "$work/source"
configure() {
  cmake -S "$work/source" -B "$work/build" -G Ninja -DLOCKSTEP_RUNNER=OFF >"$work/log" 2>&1
}
configure || { cat "$work/log"; echo "the copy itself does not configure"; exit 1; }
touch "$work/source/tests/nowhere/lost_test.cpp"
if configure; then
  echo "a lost test file was accepted"
  exit 1
fi
grep -q 'lost_test.cpp' "$work/log"
