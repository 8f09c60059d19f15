#!/usr/bin/env python3
"""compare_ddp.py RUNS PYTORCH [RUNS PYTORCH]... [-o FILE]: how much faster the runner's DDP steps are than PyTorch's.

Pairs of files that against_pytorch.sh leaves, one pair a turn; medians over turns. A graph's step is compared
with PyTorch's synchronised step, an eager step with the one that is synchronised alike.
"""
import argparse
import json
import statistics
import sys


def steps_of_runner(path):
    with open(path, encoding="utf-8") as file:
        record = json.load(file)
    for run in record["runs"]:
        if run["failure"] is None:
            launch = "graph" if run["graph"] else "eager"
            step = statistics.median(repeat["step_ns"]["p50"] for repeat in run["repeats"]) / 1e6
            yield (run["model"], run["batch_per_worker"]), f"{launch}_{run['sync']}_ms", step


def steps_of_pytorch(record):
    for point in record["points"]:
        for sync in ("step", "none"):
            yield (point["model"], point["batch_per_worker"]), f"pytorch_{sync}_ms", point[f"{sync}_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("-o", "--out")
    options = parser.parse_args()
    if len(options.files) % 2:
        parser.error("give pairs: the runner's runs, then PyTorch's record")
    found = {}
    for runs, pytorch in zip(options.files[::2], options.files[1::2]):
        with open(pytorch, encoding="utf-8") as file:
            baseline = json.load(file)
        for key, name, step in [*steps_of_runner(runs), *steps_of_pytorch(baseline)]:
            found.setdefault(key, {}).setdefault(name, []).append(step)
    points = []
    print(f"{'model':16}{'batch':>6}  {'eager':>15}{'not synchronised':>20}{'graph':>15}  times as fast as PyTorch")
    for (model, batch), steps in found.items():
        step = {name: statistics.median(values) for name, values in steps.items()}
        if not {"pytorch_step_ms", "pytorch_none_ms", "eager_step_ms", "eager_none_ms"} <= step.keys():
            continue
        ratio = {"eager": step["pytorch_step_ms"] / step["eager_step_ms"],
                 "eager_not_synchronised": step["pytorch_none_ms"] / step["eager_none_ms"]}
        if "graph_step_ms" in step:
            ratio["graph"] = step["pytorch_step_ms"] / step["graph_step_ms"]
        print(f"{model:16}{batch:6}  {ratio['eager']:14.2f}x{ratio['eager_not_synchronised']:19.2f}x"
              f"{ratio.get('graph', float('nan')):14.2f}x")
        points.append({"model": model, "batch_per_worker": batch, **step, "ratio": ratio})
    if options.out:
        record = {key: baseline[key] for key in ("torch", "nccl", "device", "workers")}
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump({**record, "turns": len(options.files) // 2, "points": points}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    sys.exit(main())
