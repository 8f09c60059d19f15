#!/usr/bin/env python3
"""link_latency.py ONE_HOST ACROSS: what a link between two emulated hosts adds to a message, as scenarios write it.

From small all-reduces of two workers, measured within one host and across two: a ring of two sends two messages one
after the other, each over two links.
"""
import json
import statistics
import sys

SMALL = 4096  # bytes, to which a message's time is all latency


def small_all_reduce(file):
    """Median time of the small sizes, in ns."""
    tables = [sample["table"] for sample in json.load(open(file))["collectives"]]
    times = [
        point["device_ns"]["p50"]
        for table in tables
        if table["collective"] == "all_reduce" and table["workers"] == 2
        for point in table["points"]
        if point["bytes"] <= SMALL
    ]
    if not times:
        sys.exit(f"{file}: no small all-reduce of two workers")
    return statistics.median(times)


within, across = (small_all_reduce(file) for file in sys.argv[1:3])
print(f"{max(0, across - within) / 4 / 1000:.1f}us")
