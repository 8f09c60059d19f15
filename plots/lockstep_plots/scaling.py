"""Speed-up, efficiency and throughput against workers: prediction with its band, measured runs
over it."""

import math
from itertools import groupby

from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import ScaledTranslation

from . import style
from .curves import labels, measured_speedup, measured_throughput
from .numbers import number

BAND = 2  # standard deviations on either side
ROWS = 3  # models on one page
CURVES = 4  # at most in one row
IDEAL = {"color": style.FAINT, "linestyle": (0, (5, 3)), "linewidth": 1, "zorder": 1}
PREDICTED_DOTS = 20  # beyond so many points the line alone reads better


def rows(curves):
    """Curves that share axes: one model, one kind of scaling."""
    def key(curve):
        return (curve.setup.model, not curve.weak)

    order = {k: i for i, k in enumerate(dict.fromkeys(map(key, curves)))}
    for _, group in groupby(sorted(curves, key=lambda c: order[key(c)]), key):
        group = list(group)
        count = -(-len(group) // CURVES)
        bounds = [len(group) * i // count for i in range(count + 1)]
        yield from (group[a:b] for a, b in zip(bounds, bounds[1:]))


def figures(curves, narrow=False):
    """One figure for every few rows."""
    all_rows = list(rows(curves))
    for first in range(0, len(all_rows), ROWS):
        yield _figure(all_rows[first:first + ROWS], narrow)


def family(row):
    """What the curves of a row share; of a lone curve its label says the rest."""
    shared = [{c.strategy for c in row}, {c.size for c in row}] if len(row) > 1 else []
    parts = [row[0].setup.model, *(found.pop() for found in shared if len(found) == 1),
             f"{'weak' if row[0].weak else 'strong'} scaling"]
    return ", ".join(parts)


def title(row):
    """What the row shows: how far its curves get, and how far measured ones got if less far."""
    most = max(curve.points[-1].workers for curve in row)
    head = family(row)
    if most == 1:
        return f"{head}: one worker"
    measured = [p.workers for c in row for p in c.points if measured_speedup(c, p)]
    said = [_reached(row, most)]
    if measured and 1 < max(measured) < most:
        said.append(_reached(row, max(measured)))
    return f"{head}: " + "; ".join(filter(None, said)) if any(said) else head


def _reached(row, workers):
    """ "1.79 predicted, 1.82 measured on 2 workers", of those curves that have both or either."""
    points = [(c, p) for c in row for p in c.points if p.workers == workers]
    predicted = [p.predicted.speedup for _, p in points if p.predicted]
    measured = [s[0] for c, p in points if (s := measured_speedup(c, p))]
    said = [f"{_range(values)} {word}"
            for word, values in (("predicted", predicted), ("measured", measured)) if values]
    return f"{', '.join(said)} on {workers} workers" if said else ""


def _range(values):
    low, high = number(min(values)), number(max(values))
    return f"{low}×" if low == high else f"{low}–{high}×"


def _figure(page, narrow):
    height = 6.6 if narrow else 2.75
    extra = 0.17 * max(len(row) for row in page) if narrow else 0.1
    fig = style.figure(style.NARROW if narrow else style.WIDE,
                       (height + extra) * len(page) + (0.75 if narrow else 0.35))
    parts = fig.subfigures(len(page), 1, squeeze=False)[:, 0]
    for part, row in zip(parts, page):
        _draw_row(part, row, narrow)
    drawn = [p for row in page for c in row for p in c.points]
    pictures, names = zip(*_key(drawn))
    fig.legend(pictures, names, loc="outside lower center", handlelength=2.4, columnspacing=1.6,
               ncols=style.legend_columns(names, narrow))
    return fig


def _draw_row(part, row, narrow):
    axes = part.subplots(3, 1) if narrow else part.subplots(1, 3)
    counts = [point.workers for curve in row for point in curve.points]
    log = style.use_log(counts)
    for axis in axes:
        style.worker_axis(axis, counts, log, 3.2 if narrow else 1.7, 0.05 + 0.02 * len(row))
    for index, curve in enumerate(row):
        look = {"color": style.COLOURS[index], "marker": style.SHAPES[index]}
        _draw_curve(axes, curve, look, index - (len(row) - 1) / 2)
    _draw_ideals(axes, sorted(set(counts)))
    _finish(axes, row, log)
    style.heading(part, title(row), narrow)
    handles = [Line2D([], [], color=style.COLOURS[i], label=name, markersize=5,
                      linestyle="-" if any(p.predicted for p in curve.points) else "none",
                      marker=style.SHAPES[i] if any(p.measured for p in curve.points) else "",
                      markeredgecolor="black", markeredgewidth=0.7)
               for i, (curve, name) in enumerate(zip(row, labels(row)))]
    part.legend(handles=handles, loc="outside lower center", columnspacing=1.6,
                ncols=style.legend_columns(labels(row), narrow))


def _draw_curve(axes, curve, look, place):
    """`place` moves the measured points of neighbouring curves apart, in steps of 3 points."""
    predicted = [p for p in curve.points if p.predicted]
    if predicted:
        lines = ([p.predicted.speedup for p in predicted],
                 [100 * p.predicted.efficiency for p in predicted],
                 [p.predicted.throughput for p in predicted])
        for index, (axis, values) in enumerate(zip(axes, lines)):
            _draw_prediction(axis, predicted, values, look["color"], relative=index < 2)
    measured = [p for p in curve.points if p.measured]
    speedups = [(p, s) for p in measured if (s := measured_speedup(curve, p))]
    _draw_measured(axes[0], speedups, look, place)
    _draw_measured(axes[1], [(p, [100 * v / p.workers for v in s]) for p, s in speedups], look,
                   place)
    _draw_measured(axes[2], [(p, measured_throughput(p)) for p in measured], look, place)


def _draw_prediction(axis, points, values, colour, relative):
    """The line, dotted where extrapolated, and the band. A ratio to one worker has none there."""
    counts = [p.workers for p in points]
    spread = [0 if relative and p.workers == 1 else BAND * p.predicted.uncertainty for p in points]
    low = [v * math.exp(-s) for v, s in zip(values, spread)]  # noise is a factor
    high = [v * math.exp(s) for v, s in zip(values, spread)]
    axis.fill_between(counts, low, high, color=colour, alpha=0.18, linewidth=0)
    for start, end, dotted in _stretches(points):
        axis.plot(counts[start:end + 1], values[start:end + 1], color=colour,
                  linestyle=":" if dotted else "-", solid_capstyle="round")
    if len(points) == 1:
        axis.vlines(counts, low, high, color=colour, alpha=0.35, linewidth=5)
    if len(points) <= PREDICTED_DOTS:
        axis.plot(counts, values, linestyle="none", marker="o", markersize=2.6, color=colour)


def _stretches(points):
    """(first, last, extrapolated) of each piece of the line whose segments end alike."""
    start = 0
    for i in range(1, len(points)):
        dotted = points[i].predicted.basis == "extrapolated"
        ends = i + 1 == len(points)
        if ends or (points[i + 1].predicted.basis == "extrapolated") != dotted:
            yield start, i, dotted
            start = i


def _draw_measured(axis, points, look, place):
    """Points at (value, low, high); hollow where the run was not stable."""
    aside = axis.transData + ScaledTranslation(3 * place / 72, 0, axis.figure.dpi_scale_trans)
    for point, (value, low, high) in points:
        stable = point.measured.stable
        axis.update_datalim([(point.workers, low), (point.workers, high)])  # `aside` hides it
        axis.errorbar([point.workers], [value], [[value - low], [high - value]],
                      fmt=look["marker"], markersize=4.8, capsize=2.8, elinewidth=1, zorder=4,
                      transform=aside,
                      ecolor="black", markeredgecolor="black" if stable else look["color"],
                      markeredgewidth=0.7 if stable else 1.3,
                      markerfacecolor=look["color"] if stable else "white")
    axis.autoscale_view(scalex=False)


def _draw_ideals(axes, counts):
    axes[0].plot(counts, counts, **IDEAL)
    axes[1].axhline(100, **IDEAL)


def _finish(axes, row, log):
    axes[0].set_title("speed-up over one worker")
    axes[1].set_title("efficiency (speed-up / n)")
    axes[2].set_title("throughput of all workers")
    axes[0].set_ylabel("speed-up (×)")
    axes[1].set_ylabel("efficiency (%)")
    axes[2].set_ylabel("samples per second")
    tops = _tops(row)
    axes[1].set_ylim(0, max(112, 108 * tops[1]))
    if log:
        for axis in (axes[0], axes[2]):
            low, high = axis.dataLim.intervaly
            high = min(high, 1.5 * tops[0 if axis is axes[0] else 2])
            style.doubling_axis(axis, low, high) if axis is axes[0] else axis.set_yscale("log")
            axis.set_ylim(low / 1.15, high * 1.15)
        low, high = axes[2].get_ylim()
        style.log_axis(axes[2].yaxis, low, high)
    else:
        axes[0].set_ylim(0, 1.08 * tops[0])
        axes[2].set_ylim(0, 1.08 * tops[2])


def _tops(row):
    """The largest speed-up, efficiency and throughput of lines, points and ideal; a wide band may
    leave the axes."""
    tops = [max(p.workers for c in row for p in c.points), 1.0, 0.0]
    for curve in row:
        for p in curve.points:
            found = [(p.predicted.speedup, p.predicted.throughput)] if p.predicted else []
            if p.measured:
                speedup = measured_speedup(curve, p)
                found.append((speedup[2] if speedup else 0, measured_throughput(p)[2]))
            for speedup, rate in found:
                tops = [max(tops[0], speedup), max(tops[1], speedup / p.workers),
                        max(tops[2], rate)]
    return tops


def _key(points):
    """What line, band, point and dashes mean; only what is drawn."""
    grey = "#555555"
    pairs = []
    if any(p.predicted for p in points):
        pairs += [(Line2D([], [], color=grey, marker="o", markersize=2.6), "predicted"),
                  (Patch(color=grey, alpha=0.25, linewidth=0), f"± {BAND} standard deviations")]
    if any(p.predicted and p.predicted.basis == "extrapolated" for p in points):
        pairs.append((Line2D([], [], color=grey, linestyle=":"), "extrapolated"))
    if any(p.measured for p in points):
        pairs.append((style.with_bar(grey, "o"), "measured, bar: range of repeats"))
    if any(p.measured and not p.measured.stable for p in points):
        pairs.append((style.with_bar("white", "o"), "measured, unstable"))
    return pairs + [(Line2D([], [], **IDEAL), "ideal")]
