"""A collective as arrows from rank to rank along time, or along steps where it is not timed."""

from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from . import style
from .numbers import ms

RANKS = 16  # of more, the first
LABELLED = 160  # messages; of more, none has room for a label
HEADED = 600  # messages; of more, none has room for an arrow's head
APART = 0.11  # inches between labels


def title(schedule):
    """What it is, and how long it takes."""
    root = f", root {schedule.root}" if schedule.root is not None else ""
    hosts = f", {schedule.per_host} a host" if schedule.per_host > 1 else ""
    name = f"{schedule.collective}, {schedule.algorithm}".replace("_", "-")
    steps = f"{schedule.steps} step{'' if schedule.steps == 1 else 's'}"
    took = f", {ms(schedule.time)} ms" if schedule.timed else ""
    some = f"; the first {RANKS} are shown" if schedule.ranks > RANKS else ""
    return (f"{name}: {schedule.ranks} ranks{hosts}{root}, {style.size(schedule.bytes)}, "
            f"{steps}{took}{some}")


def figures(schedules, narrow=False):
    for schedule in schedules:
        if schedule.messages:
            yield _figure(schedule, narrow)


def _figure(schedule, narrow):
    shown = min(schedule.ranks, RANKS)
    width = style.NARROW if narrow else style.WIDE
    tall = max(1.0, (0.62 if shown <= 8 else 0.42) * (shown - 1))
    fig = style.figure(width, tall + (1.55 if narrow else 1.25))
    axis = fig.subplots()
    scale = 1e6 if schedule.timed else 1
    messages = [m for m in schedule.messages if max(m.sender, m.receiver) < shown]
    low = 0 if schedule.timed else 1
    high = max((m.end for m in messages), default=1) / scale
    room = 0.015 * (high - low)
    axis.set_xlim(low - room, high + room)
    axis.set_ylim(shown - 0.6, -0.4)
    _lifelines(axis, schedule, shown)
    _arrows(axis, messages, scale)
    if len(messages) <= LABELLED:
        inches = (width - 0.9) / (high - low + 2 * room), tall / max(1, shown)
        _labels(axis, schedule, messages, scale, inches)
    if schedule.timed:
        axis.set_xlabel("time (ms)")
    else:
        axis.set_xlabel("step")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=4 if narrow else 12))
    style.heading(fig, title(schedule), narrow)
    _legend(fig, {m.adds for m in messages}, narrow)
    return fig


def _lifelines(axis, schedule, shown):
    for rank in range(shown):
        axis.axhline(rank, color=style.FAINT, linewidth=0.8, zorder=1)
    for rank in range(schedule.per_host, shown, schedule.per_host):
        if schedule.per_host > 1:  # between hosts
            axis.axhline(rank - 0.5, color=style.FAINT, linewidth=0.8, linestyle=(0, (1, 3)))
    names = [f"rank {r}" + (" (root)" if r == schedule.root else "") for r in range(shown)]
    axis.set_yticks(range(shown), names)
    axis.grid(axis="y", visible=False)


def _colour(message):
    return style.COLOURS[message.first % len(style.COLOURS)]


def _line(message):
    return "-" if message.adds else (0, (4, 2))


def _arrows(axis, messages, scale):
    ends = [((m.start / scale, m.sender), (m.end / scale, m.receiver)) for m in messages]
    if len(messages) > HEADED:
        axis.add_collection(LineCollection(ends, colors=[_colour(m) for m in messages],
                                           linestyles=[_line(m) for m in messages],
                                           linewidths=0.7, zorder=3))
        return
    for message, (start, end) in zip(messages, ends):
        axis.annotate("", xy=end, xytext=start, zorder=3, annotation_clip=False,
                      arrowprops={"arrowstyle": "-|>,head_width=0.16,head_length=0.34",
                                  "shrinkA": 0, "shrinkB": 0, "color": _colour(message),
                                  "linewidth": 1.2, "linestyle": _line(message)})


def _labels(axis, schedule, messages, scale, inches):
    """On the arrow, nearer to its sender, or where there is room along it; else left out."""
    taken = []  # (x, y, half width) in inches
    across, down = inches
    for message in messages:
        text = schedule.label(message)
        half = 0.032 * len(text) + 0.03
        for along in (0.3, 0.42, 0.18, 0.56, 0.7, 0.82):
            x = (message.start + along * (message.end - message.start)) / scale
            y = message.sender + along * (message.receiver - message.sender)
            place = x * across, y * down
            if all(abs(place[0] - a) > half + h or abs(place[1] - b) > APART
                   for a, b, h in taken):
                taken.append((*place, half))
                axis.text(x, y, text, ha="center", va="center", fontsize=7, fontweight="bold",
                          color=style.INK, zorder=5,
                          bbox={"boxstyle": "round,pad=0.12", "facecolor": "white",
                                "edgecolor": _colour(message), "linewidth": 0.6})
                break


def _legend(fig, kinds, narrow):
    names = {True: "chunks are added", False: "chunks are copied"}
    looks = {True: "-", False: (0, (4, 2))}
    shown = [kind for kind in (True, False) if kind in kinds]
    fig.legend([Line2D([], [], color=style.INK, linestyle=looks[k], linewidth=1.2)
                for k in shown], [names[k] for k in shown], loc="outside lower center",
               ncols=1 if narrow and len(shown) > 1 else len(shown))
