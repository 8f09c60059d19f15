#!/usr/bin/env bash
# validate.sh BUILD FILE: predicts every measured run that ships in calibration/data from its calibration,
# on any machine; `make validate` calls it. FILE receives the validation record.
set -euo pipefail
build=$1 file=$2
data=$(dirname "${BASH_SOURCE[0]}")/data
"$build/lockstep" validate "$data"/*/calibration.json "$data"/*/runs/*.json --json "$file"
