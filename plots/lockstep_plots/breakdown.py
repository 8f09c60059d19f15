"""Where a step goes: stacked parts per number of workers, hidden communication beside."""

import textwrap

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from . import style
from .curves import full_label
from .numbers import number
from .records import PARTS

LOOKS = {  # colour and hatch
    "compute": ("#0072B2", ""),
    "exposed": ("#D55E00", "////"),
    "waiting": ("#E69F00", "...."),
    "host": ("#009E73", "xxxx"),
    "input": ("#56B4E9", "\\\\\\\\"),
    "idle": ("#C9C9C9", ""),
}
NAMES = {
    "compute": "compute", "exposed": "exposed communication", "waiting": "waiting for others",
    "host": "waiting for the host", "input": "waiting for input", "idle": "idle",
    "hidden": "hidden communication",
}
MEASURED = "#F0E442"  # yellow, the one colour of the palette that no part has
MANY = 8  # numbers of workers; beyond, bars lose their figures and take the whole width
DENSE = 40  # beyond, bars touch
PANELS = 8  # on one page


def figures(curves, narrow=False):
    curves = [c for c in curves if any(p.predicted for p in c.points)]
    most = max((len(c.points) for c in curves), default=0)
    columns = 1 if narrow or len(curves) == 1 or most > MANY else 2
    per_page = PANELS // 2 if most > MANY else PANELS
    for first in range(0, len(curves), per_page):
        yield _figure(curves[first:first + per_page], columns, narrow)


def _figure(curves, columns, narrow):
    fig, axes = style.panels(len(curves), columns, 1.15 if narrow else 0.75, narrow)
    for axis, curve in zip(axes, curves):
        _draw(axis, curve, fig.get_figwidth() / columns - 0.6)
        axis.set_title(textwrap.fill(full_label(curve), 90 // columns if not narrow else 45),
                       fontsize=9)
    for axis in axes[::columns]:
        axis.set_ylabel("step time (ms)")
    shown = [p for c in curves for p in c.points if p.predicted]
    style.heading(fig, _title(shown), narrow)
    pictures, names = zip(*_key(shown, any(len(c.points) > DENSE for c in curves)))
    fig.legend(pictures, names, loc="outside lower center", columnspacing=1.6,
               ncols=style.legend_columns(names, narrow))
    return fig


def _title(points):
    """What is seen: the part that takes most of a step beside compute."""
    share, part = max((p.predicted.breakdown[name] / p.predicted.step.mean, name)
                      for p in points for name in PARTS[1:])
    if share < 0.005:
        return "Where a predicted step goes: all of it is compute"
    return f"Where a predicted step goes: up to {100 * share:.0f} % is {NAMES[part]}"


def _draw(axis, curve, inches):
    points = [p for p in curve.points if p.predicted]
    dense = len(points) > DENSE
    width = 1 if dense else 0.56
    bottoms = [0.0] * len(points)
    for part in PARTS:
        heights = [p.predicted.breakdown[part] / 1e6 for p in points]
        colour, hatch = LOOKS[part]
        axis.bar(range(len(points)), heights, width, bottoms, color=colour, edgecolor="white",
                 hatch="" if dense else hatch, linewidth=0 if dense else 0.4)
        bottoms = [b + h for b, h in zip(bottoms, heights)]
    hidden = [p.predicted.breakdown["hidden"] / 1e6 for p in points]
    _draw_hidden(axis, hidden, width)
    _draw_measured(axis, points, width)
    top = max(bottoms + hidden + [p.measured.high / 1e6 for p in points if p.measured])
    if len(points) <= MANY:
        _write_totals(axis, points, bottoms, top)
    axis.set_ylim(0, 1.14 * top)
    place = {p.workers: x for x, p in enumerate(points)}
    kept = style.thinned(list(place), place.get, inches)
    axis.set_xticks([place[n] for n in kept], kept)
    axis.set_xlim(-0.6, max(len(points), 2) - 0.3)
    axis.set_xlabel("workers n")
    axis.grid(axis="x", visible=False)


def _write_totals(axis, points, totals, top):
    """Above the bars, beside the measured point, or above it where bars are narrow."""
    few = len(points) <= 4
    for x, (point, total) in enumerate(zip(points, totals)):
        if point.measured and not few:
            total = max(total, point.measured.high / 1e6)
        axis.text(x + (0.1 if few and point.measured else 0), total + 0.02 * top,
                  number(totals[x]), ha="center", va="bottom", fontsize=8)


def _draw_hidden(axis, hidden, width):
    """Thin bars beside the parts; a line over them where bars touch."""
    if not any(hidden):
        return
    if width == 1:
        axis.stairs(hidden, [x - 0.5 for x in range(len(hidden) + 1)], color="black",
                    linewidth=1.4, baseline=None)
    else:
        axis.bar([x + width / 2 + 0.11 for x in range(len(hidden))], hidden, 0.16, color="white",
                 edgecolor=LOOKS["exposed"][0], hatch="////", linewidth=0.8)


def _draw_measured(axis, points, width):
    """At the left of each bar, so that the figure above it stays free."""
    for x, point in enumerate(points):
        if point.measured:
            m = point.measured
            axis.errorbar([x - width / 2 + 0.07], [m.step / 1e6],
                          [[(m.step - m.low) / 1e6], [(m.high - m.step) / 1e6]], fmt="D",
                          markersize=3.8, markerfacecolor=MEASURED if m.stable else "white",
                          markeredgecolor="black", markeredgewidth=0.7, ecolor="black",
                          elinewidth=1, capsize=2.8, zorder=4)


def _key(points, dense):
    used = [part for part in PARTS if any(p.predicted.breakdown[part] > 0 for p in points)]
    pairs = [(Patch(facecolor=LOOKS[p][0], hatch=LOOKS[p][1], edgecolor="white"), NAMES[p])
             for p in used]
    if any(p.predicted.breakdown["hidden"] > 0 for p in points):
        bar = Patch(facecolor="white", hatch="////", edgecolor=LOOKS["exposed"][0])
        pairs.append((Line2D([], [], color="black") if dense else bar, NAMES["hidden"]))
    if any(p.measured for p in points):
        pairs.append((style.with_bar(MEASURED, "D", 4), "measured step, range of repeats"))
    if any(p.measured and not p.measured.stable for p in points):
        pairs.append((style.with_bar("white", "D", 4), "measured, unstable"))
    return pairs
