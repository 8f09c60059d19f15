#!/usr/bin/env bash
# resumed_visit.sh BINARY OUT: on one GPU, in about three minutes: the captioner eager and as a graph, a search for the
# batch that fills the memory, and a visit that is planned, killed after its first piece, and resumed. Leaves in OUT a
# log and the records. BINARY was linked elsewhere, as in gpu_visit.sh.
set -uo pipefail
binary=$(realpath "$1") out=$(realpath -m "$2") work=$(mktemp -d)
mkdir -p "$out"
site=$(timeout 60 python3 -c 'import importlib.util as u, os; print(os.path.dirname(os.path.dirname(u.find_spec("torch").origin)))')
export LD_LIBRARY_PATH=$(dirname "$binary")/lib:$site/torch/lib:$(echo "$site"/nvidia/*/lib | tr ' ' :)
cd "$work" || exit 1

# Runs the binary for at most so many seconds and says how it ended.
measure() {
  local seconds=$1 begin=$SECONDS
  shift
  echo "== $*"
  timeout --kill-after=5 "$seconds" "$binary" --device cuda --strategies single --block 200 "$@"
  echo "-- exit code $? after $((SECONDS - begin)) s"
}

visit=(--models resnet18_cifar --batches 32,128 --repeats 2 --precision tf32 -o visit)
{
  nvidia-smi --query-gpu=name,memory.total,clocks.sm --format=csv,noheader
  measure 60 --models captioner --batches 16,32 --precision tf32 --repeats 1 -o captioner --verbose
  measure 30 --models captioner --batches 16 --precision bf16 --repeats 1 -o captioner-bf16
  measure 100 --models resnet50 --batches auto --precision tf32 --repeats 1 -o full --verbose
  measure 40 "${visit[@]}" --dry-run
  "$binary" --device cuda --strategies single --block 200 "${visit[@]}" &
  killed=$!
  for ((i = 0; i < 300; i++)); do
    grep -q took_ns visit/visit.json 2>/dev/null && break
    sleep 0.2
  done
  sleep 2
  kill -9 "$killed" && echo "== killed after the first piece"
  wait "$killed" 2>/dev/null
  cp visit/visit.json killed.json
  measure 20 "${visit[@]}"
  measure 60 "${visit[@]}" --resume
  measure 20 "${visit[@]}" --resume
  measure 20 "${visit[@]}" --dry-run
  echo "== runs"
  python3 - <<'PYTHON'
import json
for folder in ("captioner", "captioner-bf16", "full", "visit"):
    try:
        runs = json.load(open(f"{folder}/runs.json"))["runs"]
    except OSError as error:
        print(error)
        continue
    for run in runs:
        steps = [round(repeat["step_ns"]["p50"] / 1e6, 3) for repeat in run["repeats"]]
        peaks = [round(rank["peak_bytes"] / 2**30, 2) for rank in run["ranks"]]
        print(folder, run["model"], run["batch_per_worker"], run["precision"], "graph" if run["graph"] else "eager",
              run["sync"], "ms", steps, "GiB", peaks, run["failure"] or "")
PYTHON
} >"$out/visit.log" 2>&1
cp killed.json visit/visit.json "$out/" 2>/dev/null
for folder in captioner full visit; do tar -czf "$out/$folder.tgz" "$folder" 2>/dev/null; done
rm -rf "$work"
grep -v '^repeat' "$out/visit.log"
