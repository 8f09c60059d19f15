#!/usr/bin/env bash
# threads.sh BUILD FOLDER MODEL TOTAL_BATCH,... [BUDGET]: which number of processes with how many threads trains fastest
# on the cores of this machine, at which batch, simulated and real. For each number of threads (1, 2, 4, ... and all cores) it measures the
# processes that the cores then hold (a profile alone and beside each other, and real runs) and calibrates; at the end
# `lockstep threads` searches and puts the real runs beside it. BUDGET (60s) is that of each of these visits.
set -euo pipefail
build=$1 folder=$2 model=$3 budget=${5:-60s}
IFS=, read -r -a totals <<< "$4"
cores=$(nproc)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
numbers=()
for ((threads = 1; threads < cores; threads *= 2)); do numbers+=("$threads"); done
numbers+=("$cores")

for threads in "${numbers[@]}"; do
  processes=$((cores / threads))
  # Shares of the whole batch: of one process alone, and of each of all.
  batches=$(for total in "${totals[@]}"; do echo "$total"; echo $((total / processes)); done | sort -nu | paste -sd,)
  "$build/lockstep-measure" --workers "$processes" --threads "$threads" --models "$model" \
    --batches "$batches" --strategies single,ddp --budget "$budget" -o "$folder/$threads"
  "$build/lockstep" calibrate "$folder/$threads/measurement.json" -o "$folder/$threads/calibration.json"
done

cat > "$folder/scenario.yaml" <<YAML
name: $model, processes x threads
calibration: 1/calibration.json
model: $model
total_batch: ${totals[0]}
workers: [1]
strategy: {kind: ddp}
YAML
others=() runs=("$folder/1/runs.json")
for threads in "${numbers[@]:1}"; do
  others+=("$folder/$threads/calibration.json")
  runs+=("$folder/$threads/runs.json")
done
"$build/lockstep" threads "$folder/scenario.yaml" "${others[@]}" --batches "$4" \
  --json "$folder/threads.json" --runs "${runs[@]}"
