#!/usr/bin/env bash
# run.sh SOURCE BUILD: installs BUILD into a folder of its own, builds the consumer against it, runs both.
set -euo pipefail
source=$1 build=$2
work=$build/tests/install
rm -rf "$work"
cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S "$source/tests/install" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_BUILD_TYPE=Release
cmake --build "$work/build"
"$work/build/consumer"
"$work/prefix/bin/lockstep" --version
