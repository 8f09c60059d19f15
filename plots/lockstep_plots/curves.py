"""Scaling curves: predicted points in order of workers, each with the measured run beside it.

A result may hold several curves; its `single` point at one worker belongs to all of them. A
measured run belongs to a point when the set-up, the strategy, the batch and n agree.
"""

from dataclasses import dataclass
from typing import NamedTuple

from .records import ResultPoint, median_and_range, normalised_medians


class Setup(NamedTuple):
    """What prediction and measurement must have in common, beside strategy, batch and n."""

    model: str
    calibration: str
    precision: str
    sync: str
    graph: bool

    @property
    def modes(self):
        """Precision, synchronisation and mode in words."""
        return (self.precision, f"sync {self.sync}",
                "graph" if self.graph else "eager")

    @property
    def unusual(self):
        """What of the modes is not the default."""
        return [m for m in self.modes if m not in ("fp32", "sync step", "eager")]


@dataclass(frozen=True)
class Measured:
    """Step time over repeats, ns: at the calibration's speed where that is known."""

    step: float
    low: float
    high: float
    stable: bool


@dataclass(frozen=True)
class CurvePoint:
    workers: int
    batch: int  # of the fullest worker
    samples: int  # a step, of all workers
    predicted: ResultPoint | None  # None in a curve of measured runs alone
    measured: Measured | None


@dataclass(frozen=True)
class Curve:
    scenario: str
    setup: Setup
    weak: bool
    strategy: str
    points: tuple

    @property
    def size(self):
        """What is held fixed: "batch 32 a worker" or "batch 128 in all"."""
        last = self.points[-1]
        return f"batch {last.batch} a worker" if self.weak else f"batch {last.samples} in all"

    def baseline(self):
        """Measured throughput of one worker, samples a second; None where nobody measured it."""
        first = self.points[0]
        if first.workers != 1 or first.measured is None:
            return None
        return throughput(first, first.measured.step)


def throughput(point, step):
    """Samples a second of all workers at a step of `step` ns."""
    return point.samples / step * 1e9


def measured_throughput(point):
    """(value, low, high), samples a second."""
    times = point.measured
    return tuple(throughput(point, t) for t in (times.step, times.high, times.low))


def measured_speedup(curve, point):
    """(value, low, high) over the median of the single worker; None where that is not known."""
    base = curve.baseline()
    if base is None or point.measured is None:
        return None
    return tuple(value / base for value in measured_throughput(point))


def build_curves(records):
    """All curves of the records, results in the order given; without results, of the runs alone."""
    find = _measured_index(records)
    if records.results:
        found = [curve for result in records.results for curve in _curves_of(result, find)]
    else:
        found = list(_curves_of_runs(records, find))
    return [curve for i, curve in enumerate(found) if curve not in found[:i]]


def _curves_of(result, find):
    """One curve per strategy and, in weak scaling, batch; `single` starts each of them."""
    def key(point):
        return (point.strategy, point.batch if result.weak else 0)

    setup = Setup(result.model, result.calibration, result.precision, result.sync, result.graph)
    points = sorted(result.points, key=lambda p: p.workers)

    def samples(point):
        """Shares of an uneven batch differ, so workers x batch may be more than the total."""
        if result.weak:
            return point.workers * point.batch
        return max(1, round(point.throughput * point.step.mean / 1e9))

    alone = [p for p in points if p.strategy == "single"]
    for name in dict.fromkeys(key(p) for p in points if p.strategy != "single") or \
            dict.fromkeys(map(key, alone)):
        own = [p for p in points if key(p) == name]
        start = [p for p in alone if name[1] in (0, p.batch)] if own[0].workers > 1 else []
        yield Curve(result.scenario, setup, result.weak, name[0], tuple(
            CurvePoint(p.workers, p.batch, samples(p), p,
                       find(setup, p.strategy, p.batch, p.workers)) for p in start[:1] + own))


def _curves_of_runs(records, find):
    """Batch per worker is taken as what is held fixed."""
    groups = {}
    for run in records.runs:
        if run.repeats:
            groups.setdefault((_setup(run, run.calibration), run.batch), set()).add(
                (run.workers, run.strategy))
    for (setup, batch), found in groups.items():
        names = sorted({name for _, name in found if name != "single"}) or ["single"]
        for strategy in names:
            counts = sorted({n for n, name in found if name == strategy or n == 1})
            yield Curve("", setup, True, strategy, tuple(
                CurvePoint(n, batch, n * batch, None, find(setup, strategy, batch, n))
                for n in counts))


def _setup(point, calibration):
    return Setup(point.model, calibration, point.precision, point.sync, point.graph)


def _measured_index(records):
    """A function (setup, strategy, batch, workers) -> Measured or None.

    Runs come before a validation, since they hold every repeat, unless nobody says at which speed
    they were and the validation knows. Which are stable a validation knows better: runs judge as if
    steps followed the speed index entirely.
    """
    validated = _from_validations(records)
    known = dict(validated)
    calibrations = {c.id: c for c in records.calibrations}
    medians, stable = {}, {}
    for run in records.runs:
        calibration = calibrations.get(run.calibration)
        key = (_setup(run, run.calibration), run.strategy, run.batch, run.workers)
        if run.repeats and (calibration or key not in known):
            medians.setdefault(key, []).extend(normalised_medians(run, calibration))
            stable[key] = stable.get(key, True) and run.stable
    for key, values in medians.items():
        judged = validated.get(key)
        known[key] = Measured(*median_and_range(values), judged.stable if judged else stable[key])

    def find(setup, strategy, batch, workers):
        found = known.get((setup, strategy, batch, workers))
        if found is None and workers == 1:  # one worker exchanges nothing
            found = known.get((setup, "single", batch, workers))
        return found

    return find


def _from_validations(records):
    """Median and spread; where the median lies inside the spread is not known, so in its middle."""
    known = {}
    for validation in records.validations:
        for p in (p for group in validation.groups for p in group.points):
            middle, half = p.measured_normalised, p.repeat_spread * p.measured_normalised / 2
            key = (_setup(p, validation.calibration), p.strategy, p.batch, p.workers)
            known[key] = Measured(middle, middle - half, middle + half, p.stable)
    return known


def labels(curves):
    """A short name per curve, of what differs between them; of a lone one, strategy and size."""
    parts = [(c.setup.model, c.strategy, c.size, *c.setup.modes, c.scenario) for c in curves]
    last = len(parts[0]) - 1
    differs = [len({p[i] for p in parts}) > 1 for i in range(last + 1)]
    names = [", ".join(p[i] for i in range(last) if differs[i]) for p in parts]
    if len(set(names)) < len(names) and differs[last]:
        names = [", ".join(filter(None, (name, p[last]))) for name, p in zip(names, parts)]
    if not any(names):
        return [", ".join((c.strategy, c.size, *c.setup.unusual)) for c in curves]
    return names


def full_label(curve):
    return ", ".join((curve.setup.model, curve.strategy, curve.size, *curve.setup.unusual))
