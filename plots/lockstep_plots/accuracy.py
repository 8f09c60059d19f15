"""Predicted against measured step times, and the signed error of each point."""

import textwrap
from itertools import groupby

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from . import style
from .numbers import signed

NEAR, FAR = 0.05, 0.10  # the two bands
ROWS = 40  # configurations on one page of errors


def flat(validations):
    """(group name, point) in order; each run once per group. Without the groups that answer a
    question of their own: collectives, and steps predicted from less than was measured."""
    return [(g.name, p) for v in validations for g in v.groups if not g.own_question
            for p in g.points]


def counted(points):
    """Those that an average is taken over."""
    return [p for _, p in points if p.counts]


def title(points):
    """What is seen, in one line."""
    errors = [abs(p.error) for p in counted(points)]
    if not errors:
        return "Predicted against measured step times"
    mean = 100 * sum(errors) / len(errors)
    return (f"{len(errors)} predictions on 2 or more workers: {mean:.1f} % off in the mean, "
            f"{100 * max(errors):.1f} % at worst")


def looks(points):
    """Colour by model; shape by group where there are several, by strategy otherwise."""
    models = list(dict.fromkeys(p.model for _, p in points))
    groups = list(dict.fromkeys(g for g, _ in points))
    by_group = len(groups) > 1
    kinds = groups if by_group else list(dict.fromkeys(p.strategy for _, p in points))
    colour = {m: style.COLOURS[i % len(style.COLOURS)] for i, m in enumerate(models)}
    shape = {k: style.SHAPES[i % len(style.SHAPES)] for i, k in enumerate(kinds)}
    return colour, shape, lambda g, p: shape[g if by_group else p.strategy]


def figures(validations, narrow=False):
    """One: predicted over measured on log axes, and the signed error below or beside."""
    points = flat(validations)
    fig = style.figure(*((style.NARROW, 8.9) if narrow else (style.WIDE, 4.05)))
    axes = fig.subplots(2, 1) if narrow else fig.subplots(1, 2)
    times = [t / 1e6 for _, p in points for t in (p.predicted, p.measured_normalised)]
    low, high = min(times) / 1.25, max(times) * 1.25
    _bands(axes[0], low, high)
    _draw_points(axes, points)
    _finish(axes, points, low, high)
    style.heading(fig, title(points), narrow)
    handles, columns = _key(points, narrow)
    fig.legend(handles=handles, loc="outside lower center", ncols=columns, columnspacing=1.4)
    yield fig


def _bands(axis, low, high):
    ends = [low, high]
    for width, shade in ((FAR, "#ececec"), (NEAR, "#d6d6d6")):
        axis.fill_between(ends, [x * (1 - width) for x in ends], [x * (1 + width) for x in ends],
                          color=shade, linewidth=0, zorder=0)
    axis.plot(ends, ends, color="#555555", linewidth=0.9, zorder=1)


def _draw_points(axes, points):
    colour, _, shape = looks(points)
    for group, p in points:
        look = {"marker": shape(group, p), "color": colour[p.model],
                "markerfacecolor": colour[p.model] if p.stable else "white",
                "markersize": 4 if p.alone else 6, "markeredgewidth": 1.1,
                "linestyle": "none", "zorder": 3 if p.alone else 4}
        x = p.measured_normalised / 1e6
        half = 50 * p.repeat_spread
        axes[0].errorbar([x], [p.predicted / 1e6], xerr=[[x * half / 100], [x * half / 100]],
                         elinewidth=0.9, ecolor=colour[p.model], **look)
        axes[1].errorbar([x], [100 * p.error], [[half], [half]], elinewidth=0.9, capsize=2,
                         ecolor=colour[p.model], **look)


def _finish(axes, points, low, high):
    for axis in axes:
        axis.set_xscale("log")
        axis.set_xlim(low, high)
        style.log_axis(axis.xaxis, low, high)
        axis.set_xlabel("measured step (ms)")
        axis.set_box_aspect(1)
    axes[0].set_yscale("log")
    axes[0].set_ylim(low, high)
    style.log_axis(axes[0].yaxis, low, high)
    axes[0].set_ylabel("predicted step (ms)")
    axes[0].set_title("step time: on the line is right")
    for width, shade in ((FAR, "#ececec"), (NEAR, "#d6d6d6")):
        axes[1].axhspan(-100 * width, 100 * width, color=shade, linewidth=0, zorder=0)
    axes[1].axhline(0, color="#555555", linewidth=0.9, zorder=1)
    far = max(100 * (abs(p.error) + p.repeat_spread / 2) for _, p in points)
    far = max(12, 1.1 * far)
    axes[1].set_ylim(-far, far)
    axes[1].set_ylabel("error of the prediction (%)")
    axes[1].set_title("error; bar: range of repeats")


def _key(points, narrow):
    """Columns: models, shapes, bands and notes."""
    colour, shape, _ = looks(points)
    models = [Line2D([], [], color=c, marker="s", markersize=6, linestyle="none", label=m)
              for m, c in colour.items()]
    shapes = [Line2D([], [], color="#555555", marker=s, markersize=5.5, linestyle="none", label=k)
              for k, s in shape.items()]
    notes = [Patch(color="#d6d6d6", label=f"± {100 * NEAR:.0f} %"),
             Patch(color="#ececec", label=f"± {100 * FAR:.0f} %")]
    if any(not p.stable for _, p in points):
        notes.append(Line2D([], [], color="#555555", marker="o", markerfacecolor="white",
                            linestyle="none", label="hollow: unstable, not counted"))
    if any(p.alone for _, p in points):
        notes.append(Line2D([], [], color="#555555", marker="o", markersize=3.5,
                            linestyle="none", label="small: n = 1, not counted"))
    columns = [models + shapes, notes] if narrow else [models, shapes, notes]
    most = max(map(len, columns))
    blank = Patch(alpha=0, label=" ")
    return [h for column in columns for h in column + [blank] * (most - len(column))], len(columns)


def point_name(p, group=""):
    """ "vgg11, ddp, n = 2, batch 32"; what the group says already is left out."""
    mode = ["graph"] if p.graph and group != "graph" else []
    sync = ["sync none"] if p.sync == "none" else []
    return ", ".join([p.model, p.strategy, f"n = {p.workers}", f"batch {p.batch}", *mode, *sync])


def error_pages(validations, narrow=False):
    """The error of each configuration, one line each, so that every miss has its name."""
    points = flat(validations)
    for page in pages(points):
        yield _errors(page, points, narrow)


def pages(points):
    """At most ROWS points each; a group begins a new page where it does not fit on the last."""
    page = []
    for _, group in groupby(points, lambda item: item[0]):
        group = list(group)
        if page and len(page) + len(group) > ROWS:
            yield page
            page = []
        page += group
        while len(page) > ROWS:
            yield page[:ROWS]
            page = page[ROWS:]
    if page:
        yield page


def _errors(page, points, narrow):
    """Names stand left of the axis, on a narrow page above their points."""
    line = 0.34 if narrow else 0.2  # inches a configuration
    fig = style.figure(style.NARROW if narrow else style.WIDE, 1.35 + line * len(page))
    axis = fig.subplots()
    far = max(12, 1.1 * max(100 * (abs(p.error) + p.repeat_spread / 2) for _, p in page))
    for width, shade in ((FAR, "#ececec"), (NEAR, "#d6d6d6")):
        axis.axvspan(-100 * width, 100 * width, color=shade, linewidth=0, zorder=0)
    axis.axvline(0, color="#555555", linewidth=0.9, zorder=1)
    several = len({group for group, _ in points}) > 1
    names = [f"{g}: {point_name(p, g)}" if several else point_name(p) for g, p in page]
    names = [textwrap.shorten(name, 76, placeholder=" ...") for name in names]
    colour, _, shape = looks(points)
    for row, (group, p) in enumerate(page):
        _draw_error(axis, row, p, colour[p.model], shape(group, p))
        if narrow:
            axis.text(0.01, row - 0.38, names[row], transform=axis.get_yaxis_transform(),
                      va="center", fontsize=7)
    axis.set_yticks(range(len(page)), [""] * len(page) if narrow else names, fontsize=8)
    axis.set_ylim(len(page) - 0.4, -0.8)
    axis.set_xlim(-far, far)
    axis.set_xlabel("error of the prediction (%); bar: range of repeats")
    axis.grid(axis="y", visible=False)
    worst = max(counted(page) or [p for _, p in page], key=lambda p: abs(p.error))
    style.heading(fig, f"Error of each prediction; worst here: {point_name(worst)}, "
                       f"{signed(worst.error)} %", narrow)
    return fig


def _draw_error(axis, row, p, colour, shape):
    half = 50 * p.repeat_spread
    axis.errorbar([100 * p.error], [row], xerr=[[half], [half]], marker=shape, color=colour,
                  markersize=4 if p.alone else 6, capsize=2, elinewidth=0.9,
                  markerfacecolor=colour if p.stable else "white")
    axis.text(1.01, row, signed(p.error), transform=axis.get_yaxis_transform(), va="center",
              fontsize=8, fontweight="bold" if abs(p.error) > NEAR else "normal")
