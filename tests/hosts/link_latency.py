#!/usr/bin/env python3
"""link_latency.py ONE_HOST ACROSS: what a link between emulated hosts adds to a message, as scenarios write it.

From small all-reduces, of two workers within one host and of n across n hosts: a ring of n sends 2(n - 1) messages one
after the other, each over two links. Hosts beyond the machine's cores take turns on them, as `emulated` platforms have it.
"""
import json
import statistics
import sys

SMALL = 4096  # bytes, to which a message's time is all latency


def small_message(measurement, turns):
    """(workers, a message's time in ns without others' turns), from the medians of the small sizes."""
    points = [
        (sample["table"]["workers"], point["device_ns"]["p50"])
        for sample in measurement["collectives"]
        if sample["table"]["collective"] == "all_reduce"
        for point in sample["table"]["points"]
        if point["bytes"] <= SMALL
    ]
    if not points:
        sys.exit("no small all-reduce was measured")
    workers = min(workers for workers, _ in points)
    time = statistics.median(time for n, time in points if n == workers)
    return time / (2 * (workers - 1)) / turns(workers)


within, across = (json.load(open(file)) for file in sys.argv[1:3])
cores = within["machine"]["cores"]
alone = small_message(within, lambda workers: 1)
linked = small_message(across, lambda workers: max(1, workers / cores))
print(f"{max(0, linked - alone) / 2 / 1000:.1f}us")
