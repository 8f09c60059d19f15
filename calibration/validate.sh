#!/usr/bin/env bash
# validate.sh BUILD FILE [FLAG...]: predicts every measured run that ships in calibration/data from the
# calibration of its visit, on any machine, and prints a table for each visit; `make validate` calls it.
# FILE receives the validation record; flags (--mean 2%, --timelines) go to lockstep validate.
set -euo pipefail
build=$1 file=$2
shift 2
data=$(dirname "${BASH_SOURCE[0]}")/data
shopt -s nullglob
records=("$data"/*/calibration.json "$data"/*/runs.json "$data"/*/runs-*.json)
if [ ${#records[@]} -eq 0 ]; then
  echo "no visit lies in $data: each is a folder with calibration.json and runs.json" >&2
  exit 2
fi
"$build/lockstep" validate "${records[@]}" --json "$file" "$@"
