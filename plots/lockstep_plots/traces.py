"""Chrome traces, as sim/report/trace.cpp writes them: one step of all workers, simulated or
measured. The names of its processes, "simulated worker 0", say which.

Times are nanoseconds from the start of the step.
"""

import re
from dataclasses import dataclass
from itertools import zip_longest

from .errors import InputError

SOURCES = ("simulated", "measured")
LANES = ("compute", "communication")  # of those that a trace may have, what is drawn
COMPUTE = ("forward", "backward", "optimizer")
BROADCASTS = ("buffers", "batch counters")  # of ddp, before a step; not gradients
WAITING = ", waiting"  # a simulated collective, until its last worker has joined


@dataclass(frozen=True)
class Bar:
    kind: str  # of COMPUTE, "other", "transfer", "buffers" or "waiting"
    name: str
    start: float
    end: float


@dataclass(frozen=True)
class Timeline:
    source: str
    file: str
    lanes: dict  # (worker, lane) -> bars in order of start

    @property
    def workers(self):
        return sorted({worker for worker, _ in self.lanes})

    @property
    def end(self):
        return max(bar.end for bars in self.lanes.values() for bar in bars)

    @property
    def layers(self):
        return {b.name for bars in self.lanes.values() for b in bars if b.kind == "forward"}

    def total(self, worker, kinds):
        """Time of the worker in bars of these kinds."""
        return sum(b.end - b.start for lane in LANES for b in self.lanes.get((worker, lane), ())
                   if b.kind in kinds)


def is_trace(node):
    return isinstance(node.value, dict) and "traceEvents" in node.value


def read_trace(node):
    """The timelines in a file, at least one; InputError where it is not a trace of ours."""
    processes, threads, spans = {}, {}, []
    for event in node.items("traceEvents"):
        phase = event.text("ph")
        if phase == "X":
            spans.append(event)
        elif phase == "M" and event.text("name") == "process_name":
            processes[event.count("pid", low=0)] = _process(event.at("args"))
        elif phase == "M" and event.text("name") == "thread_name":
            place = event.count("pid", low=0), event.count("tid", low=0)
            threads[place] = event.at("args").text("name")
    lanes = {}
    for span in spans:
        source, worker = _known(processes, span, "pid", span.count("pid", low=0))
        lane = _known(threads, span, "tid", (span.count("pid", low=0), span.count("tid", low=0)))
        if lane in LANES:
            lanes.setdefault(source, {}).setdefault((worker, lane), []).append(_bar(span))
    if not lanes:
        raise node.at("traceEvents").error("holds no span of compute or communication",
                                           "write the trace again")
    found = [_timeline(source, str(node.file), lanes[source]) for source in SOURCES
             if source in lanes]
    if not all(timeline.end > 0 for timeline in found):
        raise node.at("traceEvents").error("its spans last no time", "write the trace again")
    return found


def _process(node):
    name = node.text("name")
    found = re.fullmatch(r"(simulated|measured) worker (\d{1,9})", name)
    if not found:
        raise node.at("name").error(
            f'"{name[:40]}" is neither a simulated nor a measured worker',
            "give a trace of `lockstep simulate --trace` or of lockstep-measure")
    return found[1], int(found[2])


def _known(names, span, key, place):
    if place not in names:
        raise span.at(key).error("has no name in this trace", "is it a trace of lockstep?")
    return names[place]


def _bar(span):
    name, what = span.text("name"), span.text("cat")
    start = 1000 * span.number("ts", low=0)  # Chrome counts microseconds
    end = start + 1000 * span.number("dur", low=0)
    if what in COMPUTE:
        kind = what
    elif what != "collective":
        kind = "other"
    elif name.endswith(WAITING):
        kind, name = "waiting", name.removesuffix(WAITING)
    else:
        kind = "buffers" if name in BROADCASTS else "transfer"
    return Bar(kind, name, start, end)


def _timeline(source, file, lanes):
    if source == "measured":
        lanes = _with_waiting(lanes)
    return Timeline(source, file, {
        place: tuple(sorted(bars, key=lambda b: (b.start, b.end)))
        for place, bars in sorted(lanes.items())})


def _with_waiting(lanes):
    """A measured collective lasts from its worker's launch; what lies before the last worker's is
    waiting, as in a simulated one. Only where all workers have it."""
    workers = {worker for worker, _ in lanes}
    starts = {}
    for bars in lanes.values():
        for bar in (b for b in bars if b.kind in ("transfer", "buffers")):
            starts.setdefault(bar.name, []).append(bar.start)
    joined = {name: max(found) for name, found in starts.items() if len(found) == len(workers)}

    def parts(bar):
        join = joined.get(bar.name) if bar.kind in ("transfer", "buffers") else None
        if join is None or join <= bar.start:
            return [bar]
        middle = min(join, bar.end)
        found = [Bar("waiting", bar.name, bar.start, middle),
                 Bar(bar.kind, bar.name, middle, bar.end)]
        return [b for b in found if b.end > b.start]

    return {place: [part for bar in bars for part in parts(bar)] for place, bars in lanes.items()}


def pairs(timelines):
    """(simulated, measured), the first of each together and so on; None where there is no other.
    InputError where two cannot be of the same step."""
    sides = [[t for t in timelines if t.source == source] for source in SOURCES]
    found = list(zip_longest(*sides))
    for simulated, measured in found:
        if simulated and measured:
            _check(simulated, measured)
    return found


def _check(simulated, measured):
    hint = "give a simulated and a measured trace of the same run"
    if len(simulated.workers) != len(measured.workers):
        raise InputError(measured.file, "", f"has {len(measured.workers)} workers, "
                         f"{simulated.file} has {len(simulated.workers)}", hint)
    layers = simulated.layers, measured.layers
    if all(layers) and layers[0].isdisjoint(layers[1]):
        raise InputError(measured.file, "",
                         f"has other layers than {simulated.file}", hint)
