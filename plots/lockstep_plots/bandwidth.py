"""Bus bandwidth of the collectives against bytes: what was measured, and the model's line.

Bus bandwidth is what nccl-tests calls so (its doc/PERFORMANCE.md): the rate at which each link must
carry bytes for the collective to take that long, whatever the number of workers.
"""

import re
from dataclasses import dataclass, field

from matplotlib.lines import Line2D

from . import style
from .numbers import number
from .records import speed_factor

PANELS = 6  # on one page
LINES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))


def bus_factor(collective, n):
    """Bus bandwidth / (bytes / time). Bytes of gather and scatter are one worker's here, of all n
    in nccl-tests: (n-1)/n of theirs is n-1 of ours."""
    if collective == "all_reduce":
        return 2 * (n - 1) / n
    if collective in ("all_gather", "reduce_scatter", "all_to_all"):
        return (n - 1) / n
    return n - 1 if collective in ("gather", "scatter") else 1


# GB/s one way of one NVLink of a card, NVIDIA's data sheets (sim/collectives/bus_bandwidth.cpp)
NVLINKS = {"P100": 20, "V100": 25, "A100": 25, "A800": 25, "H100": 25, "H200": 25, "H800": 25,
           "B200": 50, "B300": 50}


def link_bandwidth(origin):
    """GB/s from one GPU to another of its host; None where that is not known."""
    links = re.match(r"NVLink, (\d+) links a pair", origin.links)
    rates = [rate for card, rate in NVLINKS.items() if origin.gpus and card in origin.gpus[0]]
    return int(links[1]) * rates[0] if links and rates else None


@dataclass(frozen=True)
class Point:
    bytes: int
    time: float  # ns, median
    bus: float  # GB/s, of the median
    low: float  # of p90
    high: float  # of p10


@dataclass
class Panel:
    visit: str
    collective: str
    backend: str
    algorithm: str
    topology: str
    link: float | None = None  # GB/s
    measured: dict = field(default_factory=dict)  # n -> points of each process
    model: dict = field(default_factory=dict)  # n -> points of the calibration
    held_out: dict = field(default_factory=dict)  # n -> points that it does not read

    @property
    def name(self):
        return ", ".join(filter(None, (self.collective, self.backend, self.algorithm,
                                       self.topology)))

    def counts(self):
        return sorted(self.measured.keys() | self.model.keys())

    def dots(self, n):
        """A list of points per process; of the calibration where nothing else was given."""
        return self.measured.get(n) or [self.model[n]]

    def best(self):
        """(point, n) of the largest bus bandwidth; of the model where there is one."""
        found = [(p, n) for n in self.counts() for points in
                 ([self.model[n]] if n in self.model else self.measured[n]) for p in points]
        return max(found, key=lambda item: item[0].bus)


def panels(records):
    """One for each collective, backend, algorithm and topology of each visit."""
    found = {}

    def add(visit, table, factor):
        key = (visit.id, table.collective, table.backend, table.algorithm, table.topology)
        points = _points(table, factor)
        panel = Panel(*key, link_bandwidth(visit.origin)) if points else None
        return found.setdefault(key, panel) if points else None, table.workers, points

    calibrations = {c.id: c for c in records.calibrations}
    for measurement in records.measurements:
        for index, table in measurement.collectives:
            factor = speed_factor(calibrations.get(measurement.id), index)
            panel, n, points = add(measurement, table, factor)
            if panel:
                panel.measured.setdefault(n, []).append(points)
    for calibration in records.calibrations:
        for table in calibration.collectives:
            panel, n, points = add(calibration, table, 1)
            if panel:
                panel.model.setdefault(n, points)
                panel.held_out.setdefault(n, _points(table, 1, table.held_out))
    return list(found.values())


def _points(table, factor, points=None):
    """Of the table, or of `points`; without sizes of no bytes and times of nothing, which have no
    bandwidth."""
    share = bus_factor(table.collective, table.workers) if table.workers > 1 else 0

    def bus(point, time):
        return share * point.bytes / (factor * (time or point.p50))  # bytes / ns = GB/s

    chosen = table.points if points is None else points
    return tuple(Point(p.bytes, factor * p.p50, bus(p, p.p50), bus(p, max(p.p50, p.p90)),
                       bus(p, min(p.p50, p.p10)))
                 for p in chosen if p.bytes and p.p50 and share)


def title(found):
    """What is seen: the fastest of each collective."""
    best = {}
    for panel in found:
        point, n = panel.best()
        if panel.collective not in best or point.bus > best[panel.collective][0].bus:
            best[panel.collective] = point, n
    said = [f"{name} {number(p.bus)} GB/s (n = {n})" for name, (p, n) in best.items()]
    return f"Bus bandwidth, at best: {', '.join(said)}"


def figures(found, narrow=False):
    for first in range(0, len(found), PANELS):
        yield _figure(found[first:first + PANELS], found, narrow)


def _figure(page, found, narrow):
    columns = 1 if narrow or len(page) == 1 else 2
    fig, axes = style.panels(len(page), columns, 1.5 if narrow else 0.95, narrow)
    counts = sorted({n for panel in found for n in panel.counts()})
    looks = {n: (style.COLOURS[i % len(style.COLOURS)], style.SHAPES[i % len(style.SHAPES)],
                 LINES[i % len(LINES)]) for i, n in enumerate(counts)}
    several = len({panel.visit for panel in found}) > 1
    for axis, panel in zip(axes, page):
        _draw(axis, panel, looks)
        name = f"{panel.name}\n{panel.visit}" if several else panel.name
        axis.set_title(name, fontsize=9)
    for axis in axes[::columns]:
        axis.set_ylabel("bus bandwidth (GB/s)")
    style.heading(fig, title(page), narrow)
    pictures, names = zip(*_key(page, looks))
    fig.legend(pictures, names, loc="outside lower center", columnspacing=1.6, handlelength=2.6,
               ncols=style.legend_columns(names, narrow))
    return fig


def _draw(axis, panel, looks):
    for place, n in enumerate(panel.counts()):
        colour, shape, dashes = looks[n]
        if n in panel.model:
            axis.plot([p.bytes for p in panel.model[n]], [p.bus for p in panel.model[n]],
                      color=colour, linestyle=dashes, linewidth=1.2, zorder=3)
        held = panel.held_out.get(n, ())
        axis.plot([p.bytes for p in held], [p.bus for p in held], "x", color=colour,
                  markersize=4, markeredgewidth=0.8, zorder=4 + place)
        for points in panel.dots(n):
            axis.errorbar([p.bytes for p in points], [p.bus for p in points],
                          [[p.bus - p.low for p in points], [p.high - p.bus for p in points]],
                          fmt=shape, markersize=3.4, markerfacecolor="none", color=colour,
                          markeredgewidth=0.8, elinewidth=0.7, capsize=1.5, zorder=4 + place)
    points = [p for n in panel.counts() for own in panel.dots(n) for p in own]
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    low, high = min(p.bytes for p in points) / 1.5, max(p.bytes for p in points) * 1.5
    axis.set_xlim(low, high)
    style.byte_axis(axis.xaxis, low, high)
    if panel.link:
        axis.axhline(panel.link, color="#555555", linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    low = min(p.low for p in points) / 1.3
    high = max([p.high for p in points] + [panel.link or 0]) * 1.3
    axis.set_ylim(low, high)
    style.log_axis(axis.yaxis, low, high)
    axis.set_xlabel("bytes")


def _key(page, looks):
    """Workers by colour, shape and dashes; then what a line and a point are."""
    grey = "#555555"
    lines = any(panel.model for panel in page)
    pairs = [(Line2D([], [], color=looks[n][0], marker=looks[n][1], markersize=4,
                     markerfacecolor="none", linestyle=looks[n][2] if lines else "none"),
              f"n = {n}") for n in sorted({n for panel in page for n in panel.counts()})]
    point = style.with_bar("white", "o", 4)
    if any(panel.measured for panel in page):
        pairs.append((point, "measured, each process; p10 to p90"))
    elif lines:
        pairs.append((point, "points of the calibration; p10 to p90"))
    if lines:
        pairs.append((Line2D([], [], color=grey, linewidth=1.2), "model"))
    if any(points for panel in page for points in panel.held_out.values()):
        pairs.append((Line2D([], [], color=grey, marker="x", markersize=4, linestyle="none"),
                      "held out"))
    if any(panel.link for panel in page):
        pairs.append((Line2D([], [], color=grey, linewidth=0.8, linestyle=(0, (1, 2))), "link"))
    return pairs
