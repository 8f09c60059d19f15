#!/usr/bin/env bash
# validate_cpu.sh BUILD OUT [piece]: measures the four strategies on this machine and on hosts emulated on
# it, predicts all of it from the machine's own profile, and compares; `make validate-cpu` calls it.
# About 50 minutes on 2 cores that nothing else uses; `piece` is its part for a gate, 3 minutes. Root.
#   one machine       n = 1, 2, computing, three models
#   emulated hosts    n = 2, computing; n = 2, 3, 4, 8 replayed; links of 1 Gbit/s and 200 Mbit/s
#                     (1 Gbit/s in slow motion where hosts share cores)
#   shape             VGG-11, 32 samples in all, n = 1 .. 4, at the rate where simulated curves look as published
# Leaves in OUT: measurement.json, calibration.json, runs/*.json, validation-GROUP.json, shape.txt.
# Exit 1: a bound does not hold; 2: something is missing.
set -euo pipefail
build=$(realpath "$1") out=$2 mode=${3:-full}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
lockstep=$build/lockstep
cores=$(nproc)
mkdir -p "$out/runs"
out=$(realpath "$out")
rm -f "$out"/runs/*.json
say() { printf '\n%s, %d s\n' "$*" "$SECONDS"; }

trap '"$here/hosts.sh" down' EXIT
"$here/hosts.sh" down

# on_hosts HOSTS RATE NAME FLAG...: one worker a host, all started at once; runs/NAME.json is what they measured.
# Each host has a core, as a worker of one machine has: hosts beyond the cores share them.
on_hosts() {
  local hosts=$1 rate=$2 name=$3 host workers=() failed=
  shift 3
  rm -rf "${out:?}/$name"  # of one that was interrupted
  "$here/hosts.sh" up "$hosts" "$rate"
  for ((host = 0; host < hosts; host++)); do
    RANK=$host WORLD_SIZE=$hosts LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 \
      timeout 600 taskset -c $((host % cores)) "$here/hosts.sh" run "$host" \
      "$build/lockstep-measure" -o "$out/$name" "$@" >"$out/$name.$host.log" 2>&1 &
    workers+=($!)
  done
  for host in "${!workers[@]}"; do
    wait "${workers[host]}" && continue
    failed=${failed:-$host}
    "$here/hosts.sh" down  # the others would wait for it
  done
  "$here/hosts.sh" down
  if [ ! -e "$out/$name/runs.json" ] && [ ! -e "$out/$name/measurement.json" ]; then
    tail -n 3 "$out/$name.${failed:-0}.log" >&2
    exit 3
  fi
  for file in "$out/$name"/runs*.json; do
    [ ! -e "$file" ] || sed "s/runs\.samples\.json/$name.samples.json/" "$file" >"$out/runs/$name${file#"$out/$name/runs"}"
  done
  [ ! -e "$out/$name/measurement.json" ] || mv "$out/$name/measurement.json" "$out/$name.measurement.json"
  rm -rf "${out:?}/$name" "$out/$name".*.log
}

# Hosts that share a core take turns in sending and receiving, which real ones do not. In slow motion every wait is as many
# times as long and every link as many times as slow, so that this counts for as much less: time dilation, as in Gupta et
# al., "To Infinity and Beyond: Time-Warped Network Emulation", 2006. Slow links need it not, and would take long.
slow_motion_of() { # slow_motion_of HOSTS RATE
  case $2 in
    200mbit) echo 1 ;;
    *) echo $((($1 + cores - 1) / cores)) ;;
  esac
}
slower() { # slower RATE TIMES
  local mbit=${1/gbit/000mbit}
  echo $((${mbit%mbit} / $2))mbit
}

written() { # 200mbit as scenarios and flags write it
  local rate=${1/mbit/Mbit\/s}
  echo "${rate/gbit/Gbit\/s}"
}

if [ "$mode" = piece ]; then
  models=small_cnn,vgg11 replayed=vgg11 steps=4 repeats=1 budget=()
  counts=(2 4) rates=(200mbit) strategies=all_reduce,ddp
else
  models=small_cnn,vgg11,resnet18_cifar replayed=vgg11,resnet18_cifar steps=12 repeats=3 budget=(--budget 7min)
  counts=(2 3 4 8) rates=(1gbit 200mbit) strategies=all_reduce,gather_scatter,ddp
fi

say "one machine"
rm -rf "$out/one"
"$lockstep" measure --workers 2 --models "$models" --batches 4 --strategies "single,$strategies" \
  --steps "$steps" --repeats "$repeats" "${budget[@]}" -o "$out/one"
mv "$out"/one/measurement.json "$out"/measurement.json
mv "$out"/one/runs.json "$out"/one/runs.samples.json "$out"/runs
rm -r "$out/one"
calibration=$out/calibration.json
"$lockstep" calibrate "$out/measurement.json" -o "$calibration" >/dev/null

declare -A latency
for hosts in "${counts[@]}"; do
  say "a message between $hosts emulated hosts"
  on_hosts "$hosts" 1gbit "across-$hosts" --collectives --repeats 1
  latency[$hosts]=$(python3 "$here/link_latency.py" "$out/measurement.json" "$out/across-$hosts.measurement.json")
  echo "a link of theirs: ${latency[$hosts]}"
done

if [ "$mode" != piece ]; then
  say "two emulated hosts, computing"
  for rate in "${rates[@]}"; do
    # At the fast rate a step is mostly computing, whose speed changes from one minute to the next.
    computed=4
    [ "$rate" = 200mbit ] || computed=12
    on_hosts 2 "$rate" "real-$rate" --calibration "$calibration" --models "$models" --batches 4 \
      --strategies "$strategies" --steps "$computed" --repeats 1 --link "$(written "$rate")" --link-latency "${latency[2]}"
  done
fi

for hosts in "${counts[@]}"; do
  for rate in "${rates[@]}"; do
    times=$(slow_motion_of "$hosts" "$rate")
    emulated=$(slower "$rate" "$times")
    say "$hosts emulated hosts, replayed, $rate in slow motion: $times"
    replay=(--calibration "$calibration" --compute replay --slow-motion "$times" --models "$replayed" --batches 4 --repeats 1
      --link "$(written "$emulated")" --link-latency "${latency[$hosts]}")
    on_hosts "$hosts" "$emulated" "replay-$rate-$hosts" "${replay[@]}" --strategies all_reduce,ddp --steps 3
    # Through a root a step takes long, and always as long.
    [ "$mode" = piece ] || on_hosts "$hosts" "$emulated" "replay-$rate-$hosts-root" "${replay[@]}" --strategies gather_scatter --steps 1
  done
done

failed=0
compare() { # compare NAME MEAN WORST FILE...
  local name=$1 mean=$2 worst=$3
  shift 3
  say "$name: a mean error of $mean and a worst of $worst are allowed"
  "$lockstep" validate "$calibration" "$@" --mean "$mean" --worst "$worst" --json "$out/validation-$name.json" || failed=1
}
shopt -s extglob
if [ "$mode" = piece ]; then
  # A gate's machine may be busy, and what waits instead of computing feels that: bounds for what is broken.
  compare hosts_replay 15% 40% "$out"/runs/replay-+([a-z0-9-]).json
else
  compare cpu 5% 12% "$out/runs/runs.json"
  compare hosts 7% 15% "$out"/runs/real-+([a-z0-9]).json
  compare hosts_replay 4% 10% "$out"/runs/replay-+([a-z0-9-]).json

  total=32
  say "shape"
  "$here/shape.py" rates "$lockstep" "$calibration" $total "${latency[4]}" >"$out/shape.txt" && rate=$(tail -n 1 "$out/shape.txt") || failed=1
  tail -n 2 "$out/shape.txt"
  if [ -n "${rate:-}" ]; then
    for hosts in 1 2 3 4; do
      times=$(slow_motion_of "$hosts" "${rate}mbit")
      emulated=$(slower "${rate}mbit" "$times")
      on_hosts "$hosts" "$emulated" "shape-$hosts" --calibration "$calibration" --compute replay --slow-motion "$times" \
        --models vgg11 --batches $(((total + hosts - 1) / hosts)) --strategies "single,$strategies" --steps 5 --repeats 1 \
        --link "$(written "$emulated")" --link-latency "${latency[$hosts]:-${latency[2]}}"
    done
    "$here/shape.py" runs "$out"/runs/shape-[1-4].json | tee -a "$out/shape.txt" || failed=1
    "$lockstep" validate "$calibration" "$out"/runs/shape-[2-4].json
  fi
fi
say "done"
exit $failed
