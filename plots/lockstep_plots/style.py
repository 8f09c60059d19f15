"""How every figure looks, and how it becomes bytes that are the same on every run.

Colours are Okabe and Ito's, which the colour-blind can tell apart; shapes and hatches say the same
again, for grey print. Nothing here depends on the date, the machine or the window system.
"""

import io
import logging
import math
import textwrap

import matplotlib

logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it announces its font cache
matplotlib.use("Agg")

from matplotlib.figure import Figure  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator  # noqa: E402

WIDE, NARROW = 7.2, 4.0  # inches: the width of a page, of a phone
INK, FAINT = "#222222", "#8a8a8a"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
SHAPES = ("o", "s", "^", "D", "v", "P", "X", "*")

SETTINGS = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 9, "axes.titlesize": 9.5, "axes.labelsize": 9, "legend.fontsize": 8,
    "xtick.labelsize": 8.5, "ytick.labelsize": 8.5, "figure.titlesize": 11,
    "axes.titlelocation": "left", "axes.titlepad": 6,
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.edgecolor": "#555555", "axes.linewidth": 0.8,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": "#e3e3e3", "grid.linewidth": 0.7,
    "text.color": INK, "axes.labelcolor": INK, "xtick.color": "#444444", "ytick.color": "#444444",
    "legend.frameon": False, "hatch.linewidth": 0.6, "lines.linewidth": 1.6,
    "svg.hashsalt": "lockstep", "svg.fonttype": "path", "pdf.fonttype": 42, "path.simplify": False,
    "figure.constrained_layout.use": True,
}


def figure(width, height):
    return Figure(figsize=(width, height), layout="constrained")


def panels(count, columns, border, narrow):
    """A figure with `count` panels in `columns`, 2.5 inches a line and `border` more, and its axes:
    in the last line some may be left over, and are not shown."""
    lines = -(-count // columns)
    fig = figure(NARROW if narrow else WIDE, 2.5 * lines + border)
    axes = fig.subplots(lines, columns, squeeze=False).ravel()
    for axis in axes[count:]:
        axis.set_visible(False)
    return fig, axes


def heading(part, text, narrow):
    """What the figure shows, above it, broken where the width ends."""
    part.suptitle(textwrap.fill(text, 42 if narrow else 84), fontsize=10, fontweight="bold",
                  x=0.01, ha="left")


def said(fig):
    """The headings of a figure, for those who cannot see it."""
    return "; ".join(" ".join(part.get_suptitle().split()) for part in [fig, *fig.subfigs]
                     if part.get_suptitle())


def settings():
    """The context in which figures are both drawn and rendered."""
    matplotlib.rcdefaults()
    return matplotlib.rc_context(SETTINGS)


def lay_out(fig):
    """Places everything once, so that each rendering need not."""
    fig.draw_without_rendering()
    fig.set_layout_engine("none")
    return fig


def render(fig, kind):
    """The figure as bytes of "png", "svg" or "pdf", without a date."""
    metadata = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None},
                "pdf": {"CreationDate": None, "Producer": None, "Creator": None}}[kind]
    stream = io.BytesIO()
    fig.savefig(stream, format=kind, dpi=200, metadata=metadata, facecolor="white")
    return stream.getvalue()


def legend_columns(names, narrow):
    """How many columns of these names fit under a figure: 8 point letters, 46 points of picture
    and gap each."""
    most = max(map(len, names))
    fit = max(1, int(72 * (NARROW if narrow else WIDE) / (46 + 4.9 * most)))
    rows = -(-len(names) // fit)
    return -(-len(names) // rows)


def with_bar(colour, marker, size=5):
    """A legend's picture of a point with its error bar."""
    bar = Line2D([], [], color="black", marker="|", linestyle="none", markersize=9)
    point = Line2D([], [], color=colour, marker=marker, linestyle="none", markersize=size,
                   markeredgecolor="black", markeredgewidth=0.7)
    return bar, point


def use_log(values):
    """Doublings are even steps where the numbers of workers span more than a factor of 8."""
    return max(values) > 8 * min(values)


def worker_axis(axis, counts, log, inches, room):
    """Ticks at the actual numbers of workers, fewer where they would touch; `room` of the span is
    left free on either side."""
    counts = sorted(set(counts))
    low, high = counts[0], counts[-1]
    place = math.log2 if log else float
    if log:
        axis.set_xscale("log", base=2)
    pad = room * (place(high) - place(low)) or (0.5 if log else 0.6)
    back = (lambda x: 2.0**x) if log else float
    axis.set_xlim(back(place(low) - pad), back(place(high) + pad))
    _fixed_ticks(axis.xaxis, thinned(counts, place, inches))
    axis.set_xlabel("workers n")


def thinned(counts, place, inches):
    """The counts whose labels fit on an axis of so many inches: the ends first, then round ones
    (doublings where `place`, the count's place on the axis, is a logarithm), then others."""
    if len(counts) < 3:
        return list(counts)
    span = place(counts[-1]) - place(counts[0])

    def fit(n, other):
        label = 0.085 * (len(str(n)) + len(str(other))) / 2 + 0.07  # inches of text and gap
        return abs(place(n) - place(other)) / span * inches >= label

    kept = []
    for n in [counts[-1], counts[0], *_round_ones(counts, place, fit), *counts]:
        if all(fit(n, other) for other in kept):
            kept.append(n)
    return sorted(kept)


def _round_ones(counts, place, fit):
    if place is math.log2:
        return [n for n in reversed(counts) if n & (n - 1) == 0]
    for stride in (1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000):
        found = [n for n in counts if n % stride == 0]
        if all(fit(a, b) for a, b in zip(found, found[1:])):
            return found
    return []


def plain(value):
    """1, 2.5, 1500, 20 000: no exponent, no trailing zeros."""
    return f"{value:,.10g}".replace(",", "\u2009") if abs(value) >= 10000 else f"{value:.4g}"


def doubling_axis(axis, low, high):
    """A base-2 log scale with plain numbers."""
    axis.set_yscale("log", base=2)
    first, last = math.floor(math.log2(low)), math.ceil(math.log2(high))
    stride = max(1, (last - first) // 6)
    _fixed_ticks(axis.yaxis, [2.0**e for e in range(first, last + 1, stride)])


def nice_log_ticks(low, high, most=7):
    """1-2-5 numbers, or decades where those are too many, inside [low, high]."""
    for digits in ((1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        ticks = [d * 10.0**e for e in range(first, last + 1) for d in digits]
        ticks = [t for t in ticks if low <= t <= high]
        if 2 <= len(ticks) <= most:
            return ticks
    return ticks[::max(1, len(ticks) // most)] if len(ticks) > 1 else [low, high]


def log_axis(axis, low, high):
    """Few plain numbers on an x or y axis (matplotlib's Axis) that is logarithmic already."""
    _fixed_ticks(axis, nice_log_ticks(low, high))


def _fixed_ticks(axis, ticks):
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def byte_axis(axis, low, high):
    """Ticks such as 1 KiB, 32 KiB, 1 MiB on an axis that is logarithmic already."""
    first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
    stride = 5 if last - first >= 10 else 2 if last - first >= 4 else 1
    ticks = [e for e in range(first, last + 1) if e % stride == 0] or [first]
    _fixed_ticks(axis, [2.0**e for e in ticks])
    axis.set_major_formatter(FuncFormatter(lambda value, _: size(value)))


def size(count):
    """A number of bytes as text: 256 B, 32 KiB, 1.5 MiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{plain(count)} {unit}"
        count /= 1024
