"""One step as lanes of compute and communication: simulated above measured, on one time axis."""

from pathlib import Path

from matplotlib.patches import Patch

from . import style
from .numbers import ms
from .traces import LANES, pairs

LOOKS = {  # colour and hatch; those of breakdown.py where it has them
    "forward": ("#56B4E9", ""),
    "backward": ("#0072B2", ""),
    "optimizer": ("#009E73", "xxxx"),
    "other": ("#8a8a8a", ""),
    "transfer": ("#D55E00", "////"),
    "buffers": ("#CC79A7", "\\\\\\\\"),
    "waiting": ("#E69F00", "...."),
}
NAMES = {
    "forward": "forward", "backward": "backward", "optimizer": "optimizer",
    "other": "other work of the host", "transfer": "gradients, by bucket number",
    "buffers": "buffers", "waiting": "waiting for other workers",
}
WORKERS = 4  # of more, the first
HALF = 0.34  # of a bar's height; lanes are 1 apart
PARTED = 0.006  # of the axis: narrower bars have no white edge, which would hide them


def title(pair):
    """How long the step was, predicted and in truth."""
    shown = [t for t in pair if t]
    workers = len(shown[0].workers)
    said = ", ".join(f"{t.source} {ms(t.end)} ms" for t in shown)
    first = f"; the first {WORKERS} are shown" if workers > WORKERS else ""
    return f"One step of {workers} worker{'s' if workers > 1 else ''}: {said}{first}"


def figures(timelines, narrow=False):
    for pair in pairs(timelines):
        yield _figure(pair, narrow)


def _figure(pair, narrow):
    shown = [t for t in pair if t]
    rows = [[(w, lane) for w in t.workers[:WORKERS] for lane in LANES] for t in shown]
    heights = [0.5 + 0.3 * len(lanes) for lanes in rows]
    width = style.NARROW if narrow else style.WIDE
    fig = style.figure(width, sum(heights) + (1.7 if narrow else 1.15))
    axes = fig.subplots(len(shown), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    end = 1.02 * max(t.end for t in shown)
    for axis, timeline, lanes in zip(axes, shown, rows):
        axis.set_xlim(0, end / 1e6)
        _draw(axis, timeline, lanes, end, width, narrow)
    axes[-1].set_xlabel("time since the step began (ms)")
    style.heading(fig, title(pair), narrow)
    used = {b.kind for t, lanes in zip(shown, rows) for place in lanes
            for b in t.lanes.get(place, ())}
    key = [kind for kind in LOOKS if kind in used]
    names = [NAMES[kind] for kind in key]
    fig.legend([_patch(kind) for kind in key], names, loc="outside lower center",
               columnspacing=1.6, ncols=style.legend_columns(names, narrow))
    return fig


def _patch(kind):
    colour, hatch = LOOKS[kind]
    return Patch(facecolor=colour, hatch=hatch, edgecolor="white")


def _draw(axis, timeline, lanes, end, width, narrow):
    for row, place in enumerate(lanes):
        bars = timeline.lanes.get(place, ())
        for kind, (colour, hatch) in LOOKS.items():
            own = [b for b in bars if b.kind == kind]
            for parted in (True, False):
                spans = [(b.start / 1e6, (b.end - b.start) / 1e6) for b in own
                         if (b.end - b.start > PARTED * end) == parted]
                axis.broken_barh(spans, (row - HALF, 2 * HALF), facecolor=colour, hatch=hatch,
                                 edgecolor="white" if parted else colour,
                                 linewidth=0.4 if parted else 0.2)
    for row, place in enumerate(lanes):
        if place[1] == "communication":
            _number(axis, row, timeline.lanes.get(place, ()), end, width - (1.4, 1)[narrow])
    axis.axvline(timeline.end / 1e6, color=style.INK, linestyle=(0, (4, 2)), linewidth=1)
    names = [lane if lane != LANES[0] else f"{'w' if narrow else 'worker '}{worker} {lane}"
             for worker, lane in lanes]
    axis.set_yticks(range(len(lanes)), names, fontsize=8)
    axis.set_ylim(len(lanes) - 0.4, -0.6)
    axis.grid(axis="y", visible=False)
    axis.set_title(f"{timeline.source}: {ms(timeline.end)} ms ({label(timeline)})")


def label(timeline):
    """The file's name, short."""
    name = Path(timeline.file).name.removesuffix(".json").removesuffix(".trace")
    return name if len(name) <= 44 else name[:41] + "..."


def numbers(bars):
    """Name -> number of each gradient or bucket: the one it has, else the order of the first."""
    found = {}
    for bar in bars:
        if bar.kind == "transfer":
            found.setdefault(_array(bar.name), len(found))
    for name in found:
        last = name.split()[-1]
        if last.isdigit():
            found[name] = int(last)
    return found


def _array(name):
    return name.removeprefix("gather ").removeprefix("scatter ")


def _number(axis, row, bars, end, inches):
    """The buckets' numbers on their transfers; those that would touch the last are left out."""
    number = numbers(bars)
    free = 0.0  # inches along the axis
    for bar in (b for b in bars if b.kind == "transfer"):
        text = str(number[_array(bar.name)])
        half = 0.035 * len(text) + 0.035
        place = (bar.start + bar.end) / 2 / end * inches
        if place - half < free:
            continue
        free = place + half
        axis.text((bar.start + bar.end) / 2 / 1e6, row, text, ha="center", va="center",
                  fontsize=7, fontweight="bold", zorder=5,
                  bbox={"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none"})
