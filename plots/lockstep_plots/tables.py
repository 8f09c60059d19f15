"""The tables of the report, as HTML."""

from html import escape

from .accuracy import NEAR
from .curves import labels, measured_speedup, measured_throughput
from .numbers import ms, number, percent, signed
from .records import PARTS
from .style import size
from .traces import COMPUTE


def table(head, rows, marks=()):
    """Cells are HTML already; columns after the first are numbers. `marks`: a class per row."""
    heads = "".join(f"<th scope=col>{cell}</th>" for cell in head)
    lines = []
    for index, row in enumerate(rows):
        kind = marks[index] if index < len(marks) else ""
        cells = f"<th scope=row>{row[0]}</th>" + "".join(f"<td>{cell}</td>" for cell in row[1:])
        lines.append(f'<tr class="{kind}">{cells}</tr>' if kind else f"<tr>{cells}</tr>")
    return (f'<div class="scroll"><table><thead><tr>{heads}</tr></thead>\n<tbody>'
            + "\n".join(lines) + "</tbody></table></div>\n")


def _with(value, low, high):
    return f"{value} <small>{low}\u2013{high}</small>"


def scaling(curves):
    """Predicted, and measured where it is, for each number of workers of curves that belong
    together."""
    head = ["curve", "n", "batch", "predicted step, ms <small>p10\u2013p90</small>", "± 1 s.d.",
            "measured step, ms <small>range</small>", "error", "samples/s predicted", "measured",
            "speed-up predicted", "measured", "efficiency predicted", "measured", "rests on",
            "bound by"]
    rows = [[escape(name), *_scaling_row(curve, point)]
            for curve, name in zip(curves, labels(curves)) for point in curve.points]
    kept = [i for i in range(len(head)) if any(row[i] for row in rows)]
    return table([head[i] for i in kept], [[row[i] for i in kept] for row in rows])


def _scaling_row(curve, point):
    row = [str(point.workers), str(point.batch)] + [""] * 12
    if point.predicted:
        p = point.predicted
        row[2] = _with(ms(p.step.p50), ms(p.step.p10), ms(p.step.p90))
        row[3] = percent(p.uncertainty)
        row[6], row[8], row[10] = number(p.throughput), number(p.speedup), percent(p.efficiency)
        row[12:14] = [p.basis, "host" if p.host_bound else "device"]
    if point.measured:
        m = point.measured
        row[4] = _with(ms(m.step), ms(m.low), ms(m.high)) + ("" if m.stable else " unstable")
        row[7] = number(measured_throughput(point)[0])
        if point.predicted:
            row[5] = signed(point.predicted.step.p50 / m.step - 1) + " %"
        if speedup := measured_speedup(curve, point):
            row[9], row[11] = number(speedup[0]), percent(speedup[0] / point.workers)
    return row


def breakdown(curves):
    head = ["curve", "n", "step, ms", *PARTS, "hidden (beside)"]
    rows = []
    for curve, name in zip(curves, labels(curves)):
        for point in (p for p in curve.points if p.predicted):
            parts = point.predicted.breakdown
            step = sum(parts[name] for name in PARTS)
            rows.append([escape(name), str(point.workers), ms(step)] + [
                f"{ms(parts[part])} <small>{100 * parts[part] / (step or 1):.0f} %</small>"
                if parts[part] else "0" for part in (*PARTS, "hidden")])
    return table(head, rows)


def summary(validations):
    head = ["group", "points", "counted", "mean error", "worst error", f"over {100 * NEAR:.0f} %",
            "wanted"]
    rows = []
    for group in (g for v in validations for g in v.groups):
        counted = [p for p in group.points if p.counts]
        misses = sum(abs(p.error) > NEAR for p in counted)
        errors = [percent(group.mean_error), percent(group.worst_error)] if counted else ["", ""]
        rows.append([escape(group.name), str(len(group.points)), str(len(counted)), *errors,
                     str(misses), _wanted(group)])
    kept = len(head) - (not any(row[-1] for row in rows))
    return table(head[:kept], [row[:kept] for row in rows])


def _wanted(group):
    bounds = [f"{what} {percent(bound)}" for what, bound in
              (("mean", group.wanted_mean), ("worst", group.wanted_worst)) if bound is not None]
    return f"{', '.join(bounds)}: {'held' if group.held else 'missed'}" if bounds else ""


def validation(group):
    """Every point with its signed error; misses and what is left out of the mean are marked."""
    head = ["configuration", "n", "batch", "error", "", "predicted, ms", "measured, ms",
            "at calibration's speed", "range of repeats", "rests on", "bound by"]
    rows, marks = [], []
    for p in group.points:
        what = f"{p.strategy} of {size(p.bytes)}" if p.bytes else p.strategy
        name = ", ".join(filter(None, (p.model, what, "graph" if p.graph else "",
                                       "sync none" if p.sync == "none" else "")))
        miss = abs(p.error) > NEAR
        notes = ["miss" if miss else "", "unstable" if not p.stable else "",
                 "n = 1" if p.alone else ""]
        marks.append("miss" if miss else "aside" if any(notes) else "")
        rows.append([escape(name), str(p.workers), str(p.batch or ""), signed(p.error) + " %",
                     ", ".join(filter(None, notes)), ms(p.predicted), ms(p.measured),
                     ms(p.measured_normalised), percent(p.repeat_spread), p.basis,
                     "host" if p.host_bound else "device"])
    return table(head, rows, marks)


def timeline(pair):
    """What each worker did in the step, ms."""
    head = ["step, ms", "worker", *COMPUTE, "transferring", "waiting", "step ends"]
    rows = [[t.source, str(worker), *(ms(t.total(worker, (kind,))) for kind in COMPUTE),
             ms(t.total(worker, ("transfer", "buffers"))), ms(t.total(worker, ("waiting",))),
             ms(t.end)] for t in pair if t for worker in t.workers]
    return table(head, rows)


def schedules(found):
    """What each schedule comes to."""
    head = ["collective", "algorithm", "ranks", "bytes", "steps", "messages", "most a rank sends",
            "takes, ms"]
    rows = [[escape(s.collective), escape(s.algorithm), str(s.ranks), size(s.bytes), str(s.steps),
             str(len(s.messages)), size(s.most_sent), ms(s.time) if s.timed else ""]
            for s in found]
    kept = len(head) - (not any(row[-1] for row in rows))
    return table(head[:kept], [row[:kept] for row in rows])


def bandwidth(found):
    """Smallest and largest size of each collective and n; medians, and their range where several
    processes measured."""
    head = ["collective", "n", "processes", "smallest", "takes, µs", "largest", "takes, ms",
            "bus bandwidth there, GB/s", "of the link's"]
    rows = []
    for panel in found:
        for n in panel.counts():
            dots = panel.dots(n)
            firsts, lasts = [p[0] for p in dots], [p[-1] for p in dots]
            rows.append([escape(panel.name), str(n), str(len(panel.measured.get(n, ()))),
                         size(firsts[0].bytes), _range(p.time / 1e3 for p in firsts),
                         size(lasts[0].bytes), _range(p.time / 1e6 for p in lasts),
                         _range(p.bus for p in lasts),
                         percent(max(p.bus for p in lasts) / panel.link) if panel.link else ""])
    kept = len(head) - (not any(row[-1] for row in rows))
    return table(head[:kept], [row[:kept] for row in rows])


def _range(values):
    values = sorted(values)
    low, high = number(values[0]), number(values[-1])
    return low if low == high else f"{low}\u2013{high}"
