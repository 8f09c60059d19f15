#!/usr/bin/env python3
"""shape.py rates LOCKSTEP CALIBRATION TOTAL LATENCY   over which link rates do simulated curves look as published?
shape.py runs FILE...                                  do measured ones?

The CPU lab's figures (CS744, VGG-11 on 1 to 4 hosts, the total batch shared out) show: gather_scatter slower on 4 hosts
than on 2 and on 3; all_reduce without gain from 3 to 4; ddp faster with every host, most from 1 to 2. `rates` prints all
rates, and as its last line the one where the line that is nearest to not holding is farthest from it; exit 1 where not
all three hold at any, or in `runs`.
"""
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

STRATEGIES = ("gather_scatter", "all_reduce", "ddp")
NO_GAIN = 0.03  # what cannot be read off a figure
RATES = [round(10 * 10 ** (i / 24)) for i in range(73)]  # Mbit/s, 10 to 10000
FINE = 1.01  # between neighbouring rates where all three hold


def margins(steps):
    """By how much each line holds, as a part of a step; not above zero: it does not. steps[strategy] = times for 1 to 4
    workers."""
    gather, all_reduce, ddp = (steps[strategy] for strategy in STRATEGIES)
    gains = [a - b for a, b in zip(ddp, ddp[1:])]
    return (
        gather[3] / max(gather[1:3]) - 1,
        all_reduce[3] / all_reduce[2] - (1 - NO_GAIN),
        min(min(gains), gains[0] - max(gains[1:])) / ddp[3],
    )


def line(steps):
    return "   ".join(
        f"{'yes' if margin > 0 else 'no ':3} {' '.join(f'{time:6.2f}' for time in steps[strategy])}"
        for strategy, margin in zip(STRATEGIES, margins(steps))
    )


def simulated(lockstep, calibration, total, latency, rate, folder):
    steps = {}
    for strategy in STRATEGIES:
        scenario = folder / "shape.yaml"
        scenario.write_text(
            f"name: shape\ncalibration: {pathlib.Path(calibration).resolve()}\nmodel: vgg11\n"
            f"total_batch: {total}\nworkers: [1, 2, 3, 4]\nstrategy: {{kind: {strategy}}}\nnoise: false\n"
            f"platform:\n  hosts: {{devices: 1}}\n  network: {{bandwidth: {rate}Mbit/s, latency: {latency}}}\n"
        )
        result = folder / "shape.json"
        subprocess.run([lockstep, "simulate", scenario, "--json", result], check=True, stdout=subprocess.DEVNULL)
        steps[strategy] = [point["step_ns"]["p50"] / 1e9 for point in json.load(open(result))["points"]]
    return steps


HEADER = "seconds a step on 1, 2, 3, 4 hosts, and whether the published shape holds: " + ", ".join(STRATEGIES)


def rates(lockstep, calibration, total, latency):
    print(HEADER)
    good = {}  # rate: the smallest margin
    with tempfile.TemporaryDirectory() as name:

        def look(rate):
            steps = simulated(lockstep, calibration, total, latency, rate, pathlib.Path(name))
            if min(margins(steps)) > 0:
                good[rate] = min(margins(steps))
            return steps

        for rate in RATES:
            print(f"{rate:6d} Mbit/s   {line(look(rate))}")
        if not good:
            sys.exit("no rate shows all three")
        for step in (FINE, 1 / FINE):
            rate = float(max(good) if step > 1 else min(good))
            while round(rate) in good:
                rate *= step
                look(round(rate))
        rate = float(min(good))
        while rate < max(good):
            look(round(rate))
            rate *= FINE
    print(f"all three hold from {min(good)} to {max(good)} Mbit/s")
    print(max(good, key=good.get))


def runs(files):
    steps = {strategy: [math.nan] * 4 for strategy in STRATEGIES}
    seen = [run for file in files for run in json.load(open(file))["runs"]]
    total = max(run["batch_per_worker"] for run in seen)
    for run in seen:
        # Each host also measured one worker on its share of the batch; and a worker a host is meant.
        if run["hosts"] == run["workers"] and run["batch_per_worker"] == -(-total // run["workers"]):
            step = statistics.median(repeat["step_ns"]["p50"] for repeat in run["repeats"]) / 1e9 / run["slow_motion"]
            for strategy in STRATEGIES:
                if run["strategy"]["kind"] == strategy or run["workers"] == 1:
                    steps[strategy][run["workers"] - 1] = step
    if any(math.isnan(time) for times in steps.values() for time in times):
        sys.exit("a run of 1, 2, 3 or 4 workers is missing")
    print(HEADER)
    print(f"     measured   {line(steps)}")
    if min(margins(steps)) <= 0:
        sys.exit(1)


if sys.argv[1:2] == ["rates"] and len(sys.argv) == 6:
    rates(*sys.argv[2:])
elif sys.argv[1:2] == ["runs"] and len(sys.argv) > 2:
    runs(sys.argv[2:])
else:
    sys.exit(__doc__)
