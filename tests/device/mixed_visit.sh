#!/usr/bin/env bash
# mixed_visit.sh MEASURE LOCKSTEP OUT: GPUs and a worker on cores share batches, for real, on all GPUs of this machine,
# with programs that were built elsewhere (see gpu_visit.sh): parity, runs with gradients added on the device and on
# the host, at shares by measured speed and at shares by hand, and what the simulator says about them. Leaves in OUT a
# log and a folder each as .tgz. BY_HAND: shares of one batch, of which there are as many as workers (of 128 samples
# each).
set -uo pipefail
measure=$(realpath "$1") lockstep=$(realpath "$2") out=$3
mkdir -p "$out" && out=$(realpath "$out")
log=$out/visit.log
site=$(timeout 60 python3 -c 'import importlib.util as u, os; print(os.path.dirname(os.path.dirname(u.find_spec("torch").origin)))')
libraries=$(dirname "$measure")/lib:$site/torch/lib:$(echo "$site"/nvidia/*/lib | tr ' ' :)
gpus=$(nvidia-smi --list-gpus | wc -l)
by_hand=${BY_HAND:-$(for ((i = 0; i < gpus; i++)); do echo -n $(((128 * (gpus + 1) - 8) / gpus)),; done)8}
work=$(mktemp -d)

# One visit, calibrated, and its runs beside their predictions; then where the ways of adding overtake each other.
visit() {
  local name=$1 split=$2 models=$3 status=0 begin=$SECONDS
  cd "$work" && mkdir -p "$name" || return
  LD_LIBRARY_PATH=$libraries timeout --kill-after=10 150 "$measure" --device cuda --cpu-workers 1 \
    --strategies heterogeneous --combine device,host --split "$split" --models "$models" --batches 128 --repeats 1 \
    --block 400 --silence 60 --verbose -o "$name" || status=$?
  echo "$name: exit code $status after $((SECONDS - begin)) s"
  [ -e "$name/runs.json" ] || return 1
  "$lockstep" calibrate "$name/measurement.json" -o "$name/gpus.json" &&
    "$lockstep" calibrate "$name/measurement-cores.json" -o "$name/cores.json" &&
    "$lockstep" validate "$name/gpus.json" "$name/cores.json" "$name/runs.json" --json "$name/validation.json" || status=1
  for model in ${models//,/ }; do
    printf '%s\n' "name: $model, $gpus GPUs and cores" "calibration: gpus.json" "model: $model" \
      "total_batch: $((128 * (gpus + 1)))" "workers: [$((gpus + 1))]" "strategy: {kind: heterogeneous, split: measured}" \
      "devices: [{calibration: gpus.json, count: $gpus}, {calibration: cores.json, count: 1}]" >"$name/$model.yaml"
    "$lockstep" split "$name/$model.yaml" || status=1
  done
  tar -C "$work" -czf "$out/$name.tgz" "$name"
  return "$status"
}

{
  nvidia-smi --query-gpu=index,name,clocks.sm,power.draw --format=csv
  nproc
  failed=0
  visit measured measured small_cnn,resnet18_cifar,vgg11 || failed=1
  visit by_hand "$by_hand" small_cnn,vgg11 || failed=1
  echo "failed: $failed"
} >"$log" 2>&1
cat "$log"
grep -q '^failed: 0$' "$log"
