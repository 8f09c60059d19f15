"""Records as sim/records writes them, made up for the tests; every number can be overridden.

The step of `model` grows with the batch: about 96 ms for small_cnn and 704 ms for VGG-11 at 32.
Each doubling of the workers adds, as exposed communication and waiting, what 1.92 samples take.
"""

import json
import math
from pathlib import Path

CALIBRATION_ID = "cpu-2-cores"
BASE_NS = {"small_cnn": 3_000_000, "vgg11": 22_000_000}  # per sample
REFERENCE_NS = 1_000_000


def step_ns(model, batch, workers):
    alone = BASE_NS[model] * batch
    return round(alone * (1 + 1.92 / batch * math.log2(workers)))


def origin():
    return {
        "machine": {"host": "2-core virtual machine", "cpu": "Example CPU @ 2.00GHz", "cores": 2,
                    "gpus": [], "links": "loopback"},
        "software": {"lockstep": "0.1.0", "torch": "2.11.0", "cuda": "", "nccl": "",
                     "gloo": "0.0~git20230124", "driver": ""},
        "environment": {"OMP_NUM_THREADS": "1"},
        "command": "lockstep-measure --models small_cnn,vgg11 --batches 16,32 -o demo",
        "date": "2026-01-02T03:04:05Z",
    }


def quantiles(ns, spread=0.03):
    return {"mean": ns, "p10": round(ns * (1 - spread)), "p50": ns, "p90": round(ns * (1 + spread))}


def result_point(model, batch, workers, weak=True, basis="measured"):
    share = batch if weak else max(1, -(-batch // workers))
    alone = step_ns(model, batch, 1)
    step = step_ns(model, share, workers)
    throughput = (batch * workers if weak else batch) / step * 1e9
    speedup = throughput / (batch / alone * 1e9)
    compute = BASE_NS[model] * share
    waiting = (step - compute) // 4
    return {
        "workers": workers, "batch_per_worker": share,
        "strategy": "single" if workers == 1 else "ddp",
        "step_ns": quantiles(step),
        "uncertainty": {"repeat": 0.015, "fit": 0.02, "drawn": 0.005 * math.log2(workers)},
        "basis": basis, "throughput": throughput, "speedup": speedup,
        "efficiency": speedup / workers,
        "breakdown": {"compute_ns": compute, "exposed_ns": step - compute - waiting,
                      "waiting_ns": waiting, "host_ns": 0, "input_ns": 0, "idle_ns": 0,
                      "hidden_ns": 0 if workers == 1 else compute // 7},
        "host_busy": 0.97, "host_bound": True, "buckets": [],
    }


def result(model="vgg11", batch=32, workers=(1, 2), weak=True, **changes):
    points = [result_point(model, batch, n, weak, "measured" if n <= 2 else "extrapolated")
              for n in workers]
    kind = "weak" if weak else "strong"
    return {"format": 1, "kind": "result", "scenario": f"{model}, batch {batch}, {kind}",
            "model": model, "calibration": CALIBRATION_ID, "weak": weak, "sync": "step",
            "graph": False, "precision": "fp32", "points": points, **changes}


def run(model="vgg11", batch=32, workers=2, factors=(0.98, 1.01, 1.04), stable=True, **changes):
    """Repeat i took `factors[i]` times the expected step while the machine was 10 % slow."""
    ns = step_ns(model, batch, workers)
    strategy = "single" if workers == 1 else "ddp"
    return {
        "format": 1, "kind": "run", "id": f"{model}-{strategy}-n{workers}-b{batch}", **origin(),
        "calibration": CALIBRATION_ID, "model": model, "batch_per_worker": batch,
        "workers": workers,
        "strategy": {"kind": strategy, "options": {"bucket_cap_bytes": 26214400,
                                                   "first_bucket_cap_bytes": 1048576,
                                                   "broadcast_buffers": True}},
        "precision": "fp32", "sync": "step", "graph": False,
        "dataset": {"name": "synthetic", "samples": 0}, "stable": stable,
        "repeats": [{"process": i, "warmup": 3, "steps": 20,
                     "step_ns": quantiles(round(ns * f * 1.1)), "input_ns": 0,
                     "speed_index": {"before_ns": 1_090_000, "after_ns": 1_110_000}, "samples": ""}
                    for i, f in enumerate(factors)],
        "ranks": [], "parity": {"relative_l2": 3.1e-7, "steps": 3}, "failure": None, **changes,
    }


def runs(*members):
    return {"format": 1, "kind": "runs",
            "runs": [{k: v for k, v in m.items() if k not in ("format", "kind")} for m in members]}


def validation_point(model="vgg11", batch=32, workers=2, error=-0.031, stable=True, graph=False,
                     spread=0.04):
    predicted = step_ns(model, batch, workers)
    normalised = round(predicted / (1 + error))
    strategy = "single" if workers == 1 else "ddp"
    return {"run": f"{model}-{strategy}-n{workers}-b{batch}", "model": model,
            "strategy": strategy, "batch_per_worker": batch, "workers": workers, "graph": graph,
            "sync": "step", "predicted_ns": predicted, "measured_ns": round(normalised * 1.1),
            "measured_normalised_ns": normalised, "repeat_spread": spread,
            "error": predicted / normalised - 1, "host_bound": not graph, "stable": stable,
            "basis": "measured"}


def group(name, *points):
    counted = [abs(p["error"]) for p in points if p["stable"] and p["workers"] > 1]
    return {"name": name, "mean_error": sum(counted) / len(counted) if counted else 0,
            "worst_error": max(counted, default=0), "points": list(points)}


def validation(*groups):
    return {"format": 1, "kind": "validation", "calibration": CALIBRATION_ID,
            "groups": list(groups)}


def calibration(**changes):
    zero = {"host_ns": 0, "device_ns": 0, "launches": 0}
    profiles = [{"model": model, "batch": batch, "precision": "fp32", "device": "cpu",
                 "graph": False, "beside": 1, "structure": 0,
                 "layers": {"columns": [], "rows": []}, "optimizer": zero, "step_overhead": zero,
                 "gradient_hook": zero, "input": {"load_ns": 0, "copy_ns": 0, "bytes": 0},
                 "peak_bytes": 0, "step_ns": step_ns(model, batch, 1),
                 "spread": {"between_processes": 0.01, "between_steps": 0.02}}
                for model in BASE_NS for batch in (16, 32)]
    return {"format": 1, "kind": "calibration", "id": CALIBRATION_ID, **origin(),
            "reference_ns": REFERENCE_NS, "structures": [], "profiles": profiles,
            "collectives": [], "copies": [],
            "interference": {"waiting": 1, "transferring": 1, "collective_beside_compute": 1,
                             "by_layer_kind": []},
            "cores": [], "noise": {"process": 0.02, "step": 0.015, "task": 0}, "launch_queue": 0,
            "fits": [{"what": "all_reduce over loopback", "residual": 0.034, "points": 12}],
            **changes}


def table(collective="all_reduce", workers=2, ns=((1024, 10_000), (1048576, 1_000_000)),
          **changes):
    """`ns`: bytes and median; p10 is 10 % less, p90 25 % more."""
    points = [{"bytes": size, "device_ns": {"p10": round(0.9 * t), "p50": t,
                                            "p90": round(1.25 * t)}, "host_ns": 900}
              for size, t in ns]
    return {"collective": collective, "backend": "gloo", "algorithm": "ring",
            "workers": workers, "topology": "one host", "points": points, "environment": {},
            **changes}


def measurement(*tables, **changes):
    """Each table from a process of its own, at 1.1 times the reference kernel's time."""
    return {"format": 1, "kind": "measurement", "id": CALIBRATION_ID, **origin(),
            "collectives": [{"process": i, "speed_index": {"before_ns": 1_090_000,
                                                           "after_ns": 1_110_000}, "table": t}
                            for i, t in enumerate(tables)], **changes}


def trace(source="simulated", workers=2, layers=("conv", "fc"), scale=1.0):
    """Worker w is 1 ms later than w - 1: forward and backward of 2 ms a layer, one bucket of 3 ms
    from when the last has launched it, the optimizer. Only a simulated one names the waiting."""
    events, last = [], workers - 1

    def span(worker, tid, kind, name, start, end):
        if end > start:
            events.append({"ph": "X", "pid": worker, "tid": tid, "ts": 1000 * scale * start,
                           "dur": 1000 * scale * (end - start), "cat": kind, "name": name,
                           "args": {"iteration": 0}})

    for w in range(workers):
        events.append({"ph": "M", "pid": w, "name": "process_name",
                       "args": {"name": f"{source} worker {w}"}})
        for tid, lane in ((1, "host"), (2, "compute"), (3, "communication")):
            events.append({"ph": "M", "pid": w, "tid": tid, "name": "thread_name",
                           "args": {"name": lane}})
        for i, layer in enumerate(layers):
            span(w, 2, "forward", layer, w + 2 * i, w + 2 * i + 2)
            span(w, 2, "backward", layer, w + 2 * (len(layers) + i), w + 2 * (len(layers) + i + 1))
        ready, joined = w + 4 * len(layers), last + 4 * len(layers)
        if source == "simulated":
            span(w, 3, "collective", "bucket 0, waiting", ready, joined)
            ready = joined
        span(w, 3, "collective", "bucket 0", ready, joined + 3)
        span(w, 2, "optimizer", "optimizer", joined + 3, joined + 4)
        span(w, 1, "issue", "optimizer", 0, 1)
    return {"displayTimeUnit": "ms", "traceEvents": events}


def schedule(ranks=4, timed=True, collective="all_reduce", algorithm="ring", **changes):
    """A ring's all-reduce of 16 MB chunks, 16 ms each."""
    rows = []
    for step in range(2 * (ranks - 1)):
        adds = step < ranks - 1
        for rank in range(ranks):
            chunk = (rank - step if adds else rank + ranks - step) % ranks
            times = [16_000_000 * step, 16_000_000 * (step + 1)] if timed else [0, 0]
            rows.append([step, rank, (rank + 1) % ranks, chunk, 1, 16_000_000, adds, *times])
    steps = 2 * (ranks - 1)
    return {"format": 1, "kind": "collective", "collective": collective, "algorithm": algorithm,
            "ranks": ranks, "root": None, "per_host": 1, "bytes": 16_000_000 * ranks,
            "steps": steps, "time_ns": 16_000_000 * steps if timed else None,
            "chunks": [16_000_000] * ranks,
            "messages": {"columns": ["step", "from", "to", "first", "chunks", "bytes", "adds",
                                     "start_ns", "end_ns"], "rows": rows}, **changes}


def demo():
    """What the demo leaves: four scenarios, their runs, the validation, the calibration, what it
    was made of, and the traces of a step."""
    cases = [(m, b) for m in BASE_NS for b in (16, 32)]
    errors = (0.021, -0.034, 0.062, -0.117)
    factors = [tuple(f / (1 + e) for f in (0.985, 1.0, 1.02)) for e in errors]
    measured = [run(m, b, n, f if n > 1 else (0.99, 1.0, 1.015), stable=b == 32 or m == "vgg11")
                for (m, b), f in zip(cases, factors) for n in (1, 2)]
    points = [validation_point(m, b, n, e if n > 1 else 0.004, b == 32 or m == "vgg11")
              for (m, b), e in zip(cases, errors) for n in (1, 2)]
    return {**{f"{m}-{b}": result(m, b) for m, b in cases}, "runs": runs(*measured),
            "validation": validation(group("cpu", *points)),
            "calibration": calibration(collectives=[table(), table("broadcast")]),
            "measurement": measurement(table(), table(), table("broadcast")),
            "simulated": trace(), "measured": trace("measured", scale=1.05)}


def write(folder, **documents):
    """Writes each document as NAME.json; returns the paths in order."""
    paths = []
    for name, document in documents.items():
        path = Path(folder) / f"{name}.json"
        path.write_text(json.dumps(document, indent=1))
        paths.append(path)
    return paths
