#!/usr/bin/env bash
# servers_visit.sh MEASURE LOCKSTEP OUT: parameter servers and stragglers on the GPUs of this host, one is enough: parity and
# the exact replay of updates (each visit checks its own before it times), runs with one and two servers, synchronous and
# free, workers slowed by a factor and by constant and drawn delays; each visit calibrated and validated here. Leaves three
# files in OUT. The programs were linked elsewhere; LibTorch, CUDA and cuDNN come from this machine's Python environment.
set -uo pipefail
measure=$(realpath "$1") lockstep=$(realpath "$2") out=$3
mkdir -p "$out"
work=$(mktemp -d)
site=$(timeout 60 python3 -c 'import importlib.util as u, os; print(os.path.dirname(os.path.dirname(u.find_spec("torch").origin)))')
libraries=$(dirname "$measure")/lib:$site/torch/lib:$(echo "$site"/nvidia/*/lib | tr ' ' :)
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
{
  timeout 30 nvidia-smi
  nproc
  timeout 30 ldd "$measure" | grep -i 'not found'
} >"$out/machine.txt" 2>&1

failed=0
most=165  # seconds; what would begin later is left out
# visit NAME FLAGS...: measures, calibrates and validates.
visit() {
  local name=$1 begin=$SECONDS
  shift
  [ $begin -lt $most ] || { echo "== $name: left out after $begin s"; return; }
  echo "== $name: $*"
  timeout --kill-after=5 80 "$measure" --device cuda --verbose --repeats 1 --block 300 --silence 30 -o "$work/$name" "$@" >"$work/$name.log" 2>&1
  local status=$?
  grep -v '^repeat' "$work/$name.log" | tail -n 14
  echo "-- exit code $status after $((SECONDS - begin)) s"
  [ $status = 0 ] || failed=1
  [ -e "$work/$name/runs.json" ] || return
  tr -d ' \n' <"$work/$name/runs.json" | grep -o '"parity":{[^}]*}' | sort | uniq -c
  "$lockstep" calibrate "$work/$name/measurement.json" -o "$work/$name/calibration.json" >/dev/null || failed=1
  "$lockstep" validate "$work/$name/calibration.json" "$work/$name/runs.json" --timelines
}

served=(--models resnet18_cifar,vgg11 --batches 32 --strategies single,parameter_server)
slowed=(--models resnet18_cifar --batches 128 --strategies single)
{
  visit sync1 "${served[@]}" --servers 1 --staleness 0
  visit free2 "${served[@]}" --servers 2 --staleness none
  visit sync2 "${served[@]}" --servers 2 --staleness 0
  visit factor "${slowed[@]}" --straggler rank=0,factor=1.5
  visit constant "${slowed[@]}" --straggler rank=0,delay=5ms,phase=backward
  visit drawn "${slowed[@]}" --straggler '{worker: 0, delay: {kind: log_normal, median: 5ms, sigma: 0.5}, part: forward}'
  visit pauses "${slowed[@]}" --straggler '{worker: all, slowdown: {kind: periodic, factor: 2, every: 4}}'
  visit late --models resnet18_cifar --batches 32 --strategies parameter_server --servers 1 --staleness none \
    --straggler '{worker: 0, delay: {kind: log_normal, median: 10ms, sigma: 0.5}, part: backward}'
  visit host "${slowed[@]}" --straggler rank=0,delay=5ms,phase=step
} >"$out/visit.log" 2>&1
find "$work" -name '*.samples.json' -size +2M -delete
tar -C "$work" -czf "$out/records.tgz" .
rm -rf "$work"
cat "$out/visit.log"
ls -l "$out"
exit $failed
