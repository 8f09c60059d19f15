#!/usr/bin/env python3
"""record.py OUT FOLDER: what validate_cpu.sh left in OUT, as a folder of calibration/data/: the calibration, and
the runs on one machine, on hosts that computed, and on hosts that replayed, without raw samples."""
import json
import pathlib
import shutil
import sys

GROUPS = {"runs": "runs.json", "runs-hosts": "real-*.json", "runs-hosts_replay": "replay-*.json"}


def runs_of(file):
    runs = json.load(open(file))["runs"]
    for run in runs:
        for repeat in run["repeats"]:
            repeat["samples"] = ""
    return runs


out, folder = (pathlib.Path(path) for path in sys.argv[1:])
folder.mkdir(parents=True, exist_ok=True)
shutil.copy(out / "calibration.json", folder)
for name, pattern in GROUPS.items():
    files = sorted(file for file in (out / "runs").glob(pattern) if "samples" not in file.name)
    runs = [run for file in files for run in runs_of(file)]
    record = {"format": 1, "kind": "runs", "runs": runs}
    (folder / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    print(f"{folder}/{name}.json: {len(runs)} runs")
