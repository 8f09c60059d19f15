"""What the figures need of the records of sim/records: results, validations, runs, calibrations,
measurements; and traces.

Times are nanoseconds, as on disk; ratios are ratios, not percent.
"""

from dataclasses import dataclass, field
from statistics import median

from .node import read_json
from .schedules import read_schedule
from .traces import is_trace, read_trace

FORMAT = 1
SYNCS = ("step", "none")
BASES = ("measured", "interpolated", "extrapolated")
COLLECTIVES = ("all_reduce", "broadcast", "gather", "scatter", "reduce", "all_gather",
               "reduce_scatter", "all_to_all", "send_recv")
PARTS = ("compute", "exposed", "waiting", "host", "input", "idle")  # add up to the step


@dataclass(frozen=True)
class Quantiles:
    mean: float
    p10: float
    p50: float
    p90: float


@dataclass(frozen=True)
class ResultPoint:
    workers: int
    batch: int  # per worker
    strategy: str
    step: Quantiles
    uncertainty: float  # relative, one standard deviation, all sources together
    basis: str
    throughput: float  # samples a second, all workers
    speedup: float
    efficiency: float
    breakdown: dict  # part (and "hidden") -> ns
    host_bound: bool


@dataclass(frozen=True)
class Result:
    scenario: str
    model: str
    calibration: str
    weak: bool
    sync: str
    graph: bool
    precision: str
    points: tuple


@dataclass(frozen=True)
class Repeat:
    step: Quantiles
    speed_index: tuple  # reference kernel before and after, ns


@dataclass(frozen=True)
class Run:
    id: str
    origin: "Origin"
    calibration: str
    model: str
    batch: int
    workers: int
    strategy: str
    precision: str
    sync: str
    graph: bool
    stable: bool
    repeats: tuple
    parity: float | None  # relative L2, None where it was not checked
    failure: str


@dataclass(frozen=True)
class ValidationPoint:
    run: str
    model: str
    strategy: str
    batch: int
    workers: int
    graph: bool
    sync: str
    precision: str
    predicted: float
    measured: float
    measured_normalised: float
    repeat_spread: float
    error: float  # signed, against measured_normalised
    host_bound: bool
    stable: bool
    basis: str
    bytes: int = 0  # of a collective's time; 0: of a step

    @property
    def alone(self):
        """One worker without servers, which compares with its own profile."""
        return self.workers == 1 and self.strategy != "parameter_server"

    @property
    def counts(self):
        return self.stable and not self.alone


@dataclass(frozen=True)
class ValidationGroup:
    name: str
    mean_error: float
    worst_error: float
    points: tuple
    wanted_mean: float | None = None
    wanted_worst: float | None = None
    allowed_mean: float | None = None  # instead, where repeats say no better
    own_question: bool = False  # not of steps as they were asked for

    @property
    def held(self):
        mean = self.wanted_mean if self.allowed_mean is None else self.allowed_mean
        return all(bound is None or error <= bound for error, bound in (
            (self.mean_error, mean), (self.worst_error, self.wanted_worst)))


@dataclass(frozen=True)
class Validation:
    calibration: str
    groups: tuple


@dataclass(frozen=True)
class Origin:
    host: str = ""
    cpu: str = ""
    cores: int = 0
    gpus: tuple = ()  # names
    links: str = ""
    software: tuple = ()  # (name, version)
    environment: tuple = ()  # (name, value)
    command: str = ""
    date: str = ""


@dataclass(frozen=True)
class CollectivePoint:
    bytes: int  # of one rank; of all-gather and the like of all
    p10: float
    p50: float
    p90: float


@dataclass(frozen=True)
class CollectiveTable:
    collective: str
    backend: str
    algorithm: str  # empty: the backend chose
    workers: int
    topology: str
    points: tuple
    held_out: tuple = ()  # measured between them, and never read off


@dataclass(frozen=True)
class Measurement:
    id: str  # of the visit; its calibration has the same
    origin: Origin
    collectives: tuple  # (speed_index, table) of each process


@dataclass(frozen=True)
class Calibration:
    id: str
    origin: Origin
    reference: float  # the speed all times are normalised to, ns of the reference kernel
    profiles: tuple  # (model, batch, precision, device, graph)
    collectives: tuple  # tables at the calibration's speed
    noise: tuple  # (level, relative standard deviation)
    fits: tuple  # (what, residual, points)
    drift_exponent: float  # how far steps follow the reference kernel


@dataclass
class Records:
    """Everything that was read, in the order given; `files` says (name, kind)."""

    files: list = field(default_factory=list)
    results: list = field(default_factory=list)
    validations: list = field(default_factory=list)
    runs: list = field(default_factory=list)
    calibrations: list = field(default_factory=list)
    measurements: list = field(default_factory=list)
    traces: list = field(default_factory=list)
    schedules: list = field(default_factory=list)


def read_records(files):
    """Reads each file by its "kind", traces by their events; InputError at the first that is
    neither."""
    records = Records()
    for file in files:
        node = read_json(file)
        if is_trace(node):
            found = read_trace(node)
            records.traces.extend(found)
            records.files.append((str(file), f"trace, {' and '.join(t.source for t in found)}"))
            continue
        kind = _kind(node)
        if kind == "result":
            records.results.append(_result(node))
        elif kind == "validation":
            records.validations.append(_validation(node))
        elif kind == "calibration":
            records.calibrations.append(_calibration(node))
        elif kind == "measurement":
            records.measurements.append(_measurement(node))
        elif kind == "collective":
            records.schedules.append(read_schedule(node))
        elif kind == "run":
            records.runs.append(_run(node))
        else:
            records.runs.extend(_run(run) for run in node.items("runs"))
        records.files.append((str(file), kind))
    return records


def _kind(node):
    format_ = node.at("format")
    if format_.value != FORMAT or isinstance(format_.value, bool):
        raise format_.error(f"format {str(format_.value)[:20]} is not known",
                            f"these figures read format {FORMAT}")
    kind = node.text("kind")
    if kind not in ("result", "validation", "calibration", "measurement", "run", "runs",
                    "collective"):
        raise node.at("kind").error(
            f'kind "{kind[:30]}" has no figure',
            "give result, validation, run, runs, calibration, measurement, collective or a trace")
    return kind


def _quantiles(node):
    return Quantiles(*(node.number(key, above=0) for key in ("mean", "p10", "p50", "p90")))


def _choice(node, key, names):
    value = node.text(key)
    if value not in names:
        raise node.at(key).error(f'"{value[:30]}" is not known', "one of " + ", ".join(names))
    return value


def _result(node):
    points = tuple(_result_point(point) for point in node.items("points"))
    if not points:
        raise node.at("points").error("has no points", "simulate at least one number of workers")
    return Result(node.text("scenario"), node.text("model"), node.text("calibration"),
                  node.flag("weak"), _choice(node, "sync", SYNCS), node.flag("graph"),
                  node.text("precision"), points)


def _result_point(node):
    parts = node.at("uncertainty")
    breakdown = node.at("breakdown")
    return ResultPoint(
        workers=node.count("workers"),
        batch=node.count("batch_per_worker"),
        strategy=node.text("strategy"),
        step=_quantiles(node.at("step_ns")),
        uncertainty=sum(parts.number(k, low=0) ** 2 for k in ("repeat", "fit", "drawn")) ** 0.5,
        basis=_choice(node, "basis", BASES),
        throughput=node.number("throughput", above=0),
        speedup=node.number("speedup", above=0),
        efficiency=node.number("efficiency", above=0),
        breakdown={part: breakdown.number(part + "_ns", low=0) for part in PARTS + ("hidden",)},
        host_bound=node.flag("host_bound"))


def _run(node):
    return Run(
        id=node.text("id"),
        origin=_origin(node),
        calibration=node.text("calibration"),
        model=node.text("model"),
        batch=node.count("batch_per_worker"),
        workers=node.count("workers"),
        strategy=node.at("strategy").text("kind"),
        precision=node.text("precision"),
        sync=_choice(node, "sync", SYNCS),
        graph=node.flag("graph"),
        stable=node.flag("stable"),
        repeats=tuple(_repeat(repeat) for repeat in node.items("repeats")),
        parity=node.at("parity").number("relative_l2", low=0) if node.has("parity") else None,
        failure=node.at("failure").text("what") if node.has("failure") else "")


def _repeat(node):
    return Repeat(_quantiles(node.at("step_ns")), _speed_index(node))


def _speed_index(node):
    index = node.at("speed_index")
    return index.number("before_ns", low=0), index.number("after_ns", low=0)


def _validation(node):
    groups = tuple(_validation_group(group) for group in node.items("groups"))
    return Validation(node.text("calibration"), groups)


def _validation_group(node):
    points = tuple(_validation_point(point) for point in node.items("points"))
    bounds = [node.number(key, low=0) if node.has(key) else None
              for key in ("wanted_mean", "wanted_worst", "allowed_mean")]
    # When only such groups had bounds, nothing else said so.
    own = (node.flag("own_question") if node.has("own_question")
           else any(bound is not None for bound in bounds))
    return ValidationGroup(node.text("name"), node.number("mean_error", low=0),
                           node.number("worst_error", low=0), points, *bounds, own)


def _validation_point(node):
    return ValidationPoint(
        run=node.text("run"),
        model=node.text("model"),
        strategy=node.text("strategy"),
        batch=node.count("batch_per_worker", low=0),
        workers=node.count("workers"),
        graph=node.flag("graph"),
        sync=_choice(node, "sync", SYNCS),
        precision=node.text("precision", "fp32"),
        bytes=node.count("bytes", low=0) if node.has("bytes") else 0,
        predicted=node.number("predicted_ns", above=0),
        measured=node.number("measured_ns", above=0),
        measured_normalised=node.number("measured_normalised_ns", above=0),
        repeat_spread=node.number("repeat_spread", low=0),
        error=node.number("error", above=-1),
        host_bound=node.flag("host_bound"),
        stable=node.flag("stable"),
        basis=_choice(node, "basis", BASES))


def _calibration(node):
    profiles = tuple((p.text("model"), p.count("batch"), p.text("precision"), p.text("device"),
                      p.flag("graph")) for p in node.items("profiles"))
    noise = node.at("noise")
    fits = tuple((f.text("what"), f.number("residual"), f.count("points", low=0))
                 for f in node.items("fits"))
    levels = tuple((k, noise.number(k, low=0)) for k in ("process", "step", "task"))
    return Calibration(node.text("id"), _origin(node), node.number("reference_ns", low=0), profiles,
                       tuple(map(_table, node.items("collectives"))), levels, fits,
                       node.number("drift_exponent", default=1.0, low=0))


def _measurement(node):
    samples = tuple((_speed_index(s), _table(s.at("table"))) for s in node.items("collectives"))
    return Measurement(node.text("id"), _origin(node), samples)


def _table(node):
    return CollectiveTable(_choice(node, "collective", COLLECTIVES), node.text("backend"),
                           node.text("algorithm"), node.count("workers"), node.text("topology"),
                           tuple(map(_table_point, node.items("points"))),
                           tuple(map(_table_point, node.optional_items("held_out"))))


def _table_point(node):
    times = node.at("device_ns")
    return CollectivePoint(node.count("bytes", low=0),
                           *(times.number(k, low=0) for k in ("p10", "p50", "p90")))


def _origin(node):
    machine = node.at("machine")
    return Origin(
        host=machine.text("host"), cpu=machine.text("cpu"), cores=machine.count("cores", low=0),
        gpus=tuple(gpu.text("name") for gpu in machine.items("gpus")),
        links=machine.text("links"), software=tuple(node.texts("software").items()),
        environment=tuple(node.texts("environment").items()),
        command=node.text("command"),
        date=node.text("date"))


def speed_factor(calibration, index):
    """What takes a time to the calibration's speed: reference / mean(before, after), to the power
    of the drift exponent. 1 where the calibration is None, and on GPUs, whose clock is their own
    (the rule of calibration/speed.h)."""
    reference = calibration.reference if calibration and not calibration.origin.gpus else 0
    before, after = index
    if not (reference and before and after):
        return 1.0
    return (2 * reference / (before + after)) ** calibration.drift_exponent


def normalised_medians(run, calibration):
    """Each repeat's median step, ns, at the calibration's speed."""
    return [repeat.step.p50 * speed_factor(calibration, repeat.speed_index)
            for repeat in run.repeats]


def median_and_range(values):
    return median(values), min(values), max(values)
