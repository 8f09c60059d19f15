#!/usr/bin/env bash
# demo.sh BUILD OUT: from nothing to a checked prediction on this machine; `make demo` calls it.
# Measures small CNN and VGG-11 (single at n = 1, ddp at n = 2), calibrates, predicts the measured n = 2
# runs from the n = 1 profiles, simulates more workers, and draws it all, with one step's timeline and
# the collectives' bandwidth, into OUT/report.html.
set -euo pipefail
build=$1 out=$2
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
lockstep=$build/lockstep

rm -rf "$out"
mkdir -p "$out"
"$lockstep" measure --demo -o "$out/measured"
"$lockstep" calibrate "$out/measured/measurement.json" -o "$out/calibration.json"
"$lockstep" validate "$out/calibration.json" "$out/measured/runs.json" --json "$out/validation.json"
"$lockstep" simulate "$project/scenarios/demo.yaml" --set calibration="$(realpath "$out")/calibration.json" \
  --json "$out/result.json"
# Of a step with noise the trace would show one draw, which may be far from the median.
traces=()
run=vgg11-b32-ddp-n2
if [[ -f $out/measured/$run.trace.json ]]; then
  "$lockstep" simulate "$project/scenarios/demo.yaml" --set calibration="$(realpath "$out")/calibration.json" \
    --set workers=[2] --set noise=false --trace "$out/$run.simulated.trace.json" > /dev/null
  traces=("$out/$run.simulated.trace.json" "$out/measured/$run.trace.json")
fi
"$lockstep" plot "$out/result.json" "$out/validation.json" "$out/measured/runs.json" \
  "$out/calibration.json" "$out/measured/measurement.json" "${traces[@]}" -o "$out"
echo "See $out/report.html"
