"""report.html: one file with the figures and the tables inside; it asks the network for nothing."""

import base64
from html import escape
from pathlib import Path

from . import tables
from .accuracy import FAR, NEAR, counted, flat, point_name
from .bandwidth import panels
from .curves import full_label
from .numbers import number, percent, signed
from .scaling import BAND, family, rows
from .traces import pairs

CSS = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; color: #222; margin: 0 auto;
  max-width: 62rem; padding: 1rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .5rem 0; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .5rem; border-bottom: 1px solid #ccc; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
p { max-width: 46rem; }
.answer { font-size: 1.1rem; border-left: 4px solid #0072B2; padding-left: .8rem; }
figure { margin: 1rem 0; }
figure img { width: 100%; height: auto; display: block; }
figcaption, small { color: #555; }
figcaption { font-size: .9rem; max-width: 46rem; margin-top: .4rem; }
.scroll { overflow-x: auto; margin: .4rem 0 1rem; }
table { border-collapse: collapse; font-size: .82rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .5rem; text-align: right; vertical-align: bottom; white-space: nowrap; }
thead th { border-bottom: 2px solid #888; font-weight: 600; white-space: normal; }
thead small { display: block; font-weight: 400; }
tbody tr { border-bottom: 1px solid #ddd; }
th:first-child { text-align: left; padding-left: 0; }
tbody th { font-weight: 400; }
tr.miss td:nth-child(4), tr.miss td:nth-child(5), tr.miss th { color: #a33c00; font-weight: 600; }
tr.aside { color: #666; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; font-size: .9rem; }
dt { color: #555; } dd { margin: 0; overflow-wrap: anywhere; }
code { font: .85rem ui-monospace, "DejaVu Sans Mono", monospace; }
@media (max-width: 640px) { body { padding: .7rem; } dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; } h1 { font-size: 1.35rem; } }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } table { font-size: 7pt; }
  th, td { padding: .1rem .25rem; } .scroll { overflow: visible; }
  figure, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } }
"""

WORDS = (
    ("worker, n", "one training process with one device; how many of them there are"),
    ("weak, strong scaling", "batch per worker fixed; total batch fixed"),
    ("speed-up", "throughput of n workers / throughput of one"),
    ("efficiency", "speed-up / n"),
    ("compute", "the compute lane works"),
    ("exposed", "it is idle while a collective transfers"),
    ("waiting", "it is idle while a collective waits for another worker"),
    ("host, input", "it is idle because its next task was not issued, or the batch was not there"),
    ("hidden", "communication while the compute lane works: it costs nothing"),
    ("sync none", "the host does not wait for the device at the end of a step, and may run ahead"),
    ("graph", "the whole step is one CUDA graph; else it is issued eagerly, call by call"),
    ("rests on", "the profile was measured at this batch, lies between measured ones, or beyond"),
    ("bound by", "host: the host's lane is at least 90 % busy; else the device"),
    ("at calibration's speed", "machines drift: the measured time, corrected by a reference kernel "
     "timed before and after; errors are against this"),
    ("unstable", "the machine drifted inside the measurement, beyond correction; not averaged"),
    ("error", "predicted / measured \u2212 1; means are of absolute errors, of stable points with "
     "n > 1"),
)


def page(title, records, curves, figures):
    """The whole file. `figures`: kind -> [(name, heading, SVG wide, SVG narrow)]."""
    body = [f"<h1>{escape(title)}</h1>", _answer(records, curves)]
    if records.validations:
        body += ["<h2>Predicted against measured</h2>", *_images(figures, "accuracy")]
        body += [_caption_accuracy(), tables.summary(records.validations)]
        body += _images(figures, "errors")
        body += [f"<h3>Group {escape(g.name)}</h3>" + tables.validation(g)
                 for v in records.validations for g in v.groups]
    if curves:
        body += ["<h2>Scaling</h2>", *_images(figures, "scaling"), _caption_scaling(records)]
        body += [f"<h3>{escape(family(row))}</h3>" + tables.scaling(row) for row in rows(curves)]
    predicted = [c for c in curves if any(p.predicted for p in c.points)]
    if predicted:
        body += ["<h2>Where a step goes</h2>", *_images(figures, "breakdown"), _caption_breakdown()]
        body += [f"<h3>{escape(family(row))}</h3>" + tables.breakdown(row)
                 for row in rows(predicted)]
    if records.traces:
        body += ["<h2>One step</h2>", *_images(figures, "timeline"), _caption_timeline()]
        body += [tables.timeline(pair) for pair in pairs(records.traces)]
    if records.schedules:
        body += ["<h2>Who sends what to whom</h2>", *_images(figures, "collective")]
        body += [_caption_collective(), tables.schedules(records.schedules)]
    if found := panels(records):
        body += ["<h2>How fast collectives are</h2>", *_images(figures, "bandwidth")]
        body += [_caption_bandwidth(records), tables.bandwidth(found)]
    body += _origins(records)
    body.append("<h2>Words</h2>" + _definitions(WORDS))
    return ("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            f"<title>{escape(title)}</title>\n<style>{CSS}</style>\n</head>\n<body>\n"
            + "\n".join(body) + "\n</body>\n</html>\n").encode("utf-8")


def _answer(records, curves):
    """The first lines: how far off, and where it was worst; how far it scales."""
    said = []
    if points := counted(flat(records.validations)):
        errors = [abs(p.error) for p in points]
        worst = max(points, key=lambda p: abs(p.error))
        said.append(f"{len(points)} measured configurations with more than one worker: predictions "
                    f"are <b>{percent(sum(errors) / len(errors))}</b> off in the mean; the "
                    f"worst is {escape(point_name(worst))}, <b>{signed(worst.error)} %</b>.")
        unstable = sum(not p.stable for _, p in flat(records.validations))
        if unstable:
            said.append(f"{unstable} points were unstable and are not averaged.")
    elif records.results:
        said.append("No measured run with more than one worker stands beside these predictions.")
    reached = [
        f"{escape(full_label(c))}: <b>{number(p.speedup)}×</b> on {p.workers} workers, "
        f"{percent(p.efficiency)} efficient"
        for c in curves if (p := c.points[-1].predicted) and p.workers > 1]
    if reached:
        said.append(f"Predicted: {'; '.join(reached[:4])}"
                    + (f"; {len(reached) - 4} more below." if len(reached) > 4 else "."))
    return "".join(f'<p class="answer">{line}</p>' for line in said)


def _images(figures, kind):
    for _, heading, wide, narrow in figures.get(kind, ()):
        yield (f'<figure><picture><source media="screen and (max-width: 640px)" '
               f'srcset="{_data(narrow)}"><img src="{_data(wide)}" alt="{escape(heading)}">'
               f"</picture></figure>")


def _data(svg):
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")


def _caption(text):
    return f"<figcaption>{text}</figcaption>"


def _caption_accuracy():
    return _caption(
        f"Left: predicted over measured median step, both axes logarithmic; the bands are "
        f"± {100 * NEAR:.0f} and ± {100 * FAR:.0f} %. Right: the signed error of the same points. "
        "Measured steps are the median over repeats of each repeat's median, at the calibration's "
        "speed; bars span the repeats.")


def _caption_scaling(records):
    raw = "" if records.calibrations or records.validations else (
        " No calibration was given: measured times are as they were, not corrected for drift.")
    return _caption(
        f"Lines are predictions, their bands ± {BAND} standard deviations of repeat, fit and drawn "
        "noise together. Points are measured: the median over repeats, bars from the fastest "
        "repeat to the slowest. Measured throughput is that of the median step; a measured "
        "speed-up is over the median of the measured single worker." + raw)


def _caption_breakdown():
    return _caption(
        "Parts of the mean predicted step of the slowest worker; they add up to it. Hidden "
        "communication stands beside, since it costs nothing. The diamond is the measured step.")


def _caption_timeline():
    return _caption(
        "Both sides share one time axis. The measured step is a single one, recorded layer by "
        "layer and not among the timed ones; the simulated one is a single draw of the noise, "
        "where the scenario has any. Neither need last as long as the median step. Numbers are "
        "buckets (or gradients) in order; where they would touch, some are left out. A worker "
        "waits from its own launch of a collective until the last worker's; between machines "
        "that is as good as their clocks. The measured side shows no host work between layers.")


def _caption_collective():
    return _caption(
        "An arrow is a message: it leaves its sender's line when both ends are ready and ends on "
        "the receiver's line when it has arrived. Beside it stand the chunks of the array that it "
        "holds, numbered from 0 (in an all_to_all, from whom and for whom). Solid: the receiver "
        "adds them to its own; dashed: they take the place of what it has there. Colours repeat "
        "the first chunk's number; labels that would lie over each other are left out.")


def _caption_bandwidth(records):
    known = {c.id for c in records.calibrations}
    raw = any(m.id not in known for m in records.measurements)
    speed = (" Without the calibration of the same visit, times are as they were measured."
             if raw else "")
    return _caption(
        "Both axes logarithmic. Bus bandwidth as in nccl-tests: bytes / time, times "
        "2(n\u22121)/n for all_reduce, 1 for broadcast and reduce, (n\u22121)/n for the others; "
        "time from the last launch to the end. Bytes are those of one worker (of all_gather and "
        "the like those of all); for gather and scatter the bandwidth counts those of all n. "
        "Points are medians, bars p10 to p90, at the calibration's speed; the line is what the "
        "simulator takes between the points, and it goes through the medians over "
        "processes. Crosses are sizes that were held out to see how right it is there; the link is "
        f"what a pair of GPUs has one way.{speed}")


def _definitions(pairs):
    return "<dl>" + "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in pairs) + "</dl>"


def _origins(records):
    """Where calibrations and runs came from, and the files this page was made of."""
    parts = ["<h2>Where the numbers come from</h2>"]
    for c in records.calibrations:
        parts.append(f"<h3>Calibration {escape(c.id)}</h3>" + _origin(c.origin) + _calibrated(c))
    known = {c.id for c in records.calibrations}
    for m in records.measurements:
        if m.id not in known:
            parts.append(f"<h3>Measurement {escape(m.id)}</h3>" + _origin(m.origin))
    origins = {}
    for run in records.runs:
        origins.setdefault(run.origin, []).append(run)
    for origin, runs in origins.items():
        word = "run" if len(runs) == 1 else "runs"
        parts.append(f"<h3>{len(runs)} measured {word}</h3>" + _origin(origin) + _run_notes(runs))
    parts.append("<h3>Files</h3>" + _definitions(
        (Path(file).name, kind) for file, kind in records.files))
    return parts


def _origin(origin):
    def listed(names):
        return ", ".join(f"{k} {v}" for k, v in names if v)

    gpus = "; ".join(f"{origin.gpus.count(name)} × {name}" for name in dict.fromkeys(origin.gpus))
    pairs = [("machine", origin.host), ("processor", f"{origin.cpu}, {origin.cores} cores"),
             ("GPUs", gpus), ("links", origin.links), ("software", listed(origin.software)),
             ("environment", ", ".join(f"{k}={v}" for k, v in origin.environment)),
             ("date", origin.date)]
    command = f"<dt>command</dt><dd><code>{escape(origin.command)}</code></dd></dl>"
    return _definitions((k, v) for k, v in pairs if v).replace("</dl>", command)


def _calibrated(calibration):
    profiles = {}
    for model, batch, precision, device, graph in calibration.profiles:
        name = ", ".join(filter(None, (model, precision, device, "graph" if graph else "")))
        profiles.setdefault(name, []).append(batch)
    pairs = [(name, "profiled at batch " + ", ".join(map(str, sorted(set(batches)))))
             for name, batches in profiles.items()]
    noise = ", ".join(f"{level} {percent(v)}" for level, v in calibration.noise)
    pairs.append(("noise (1 s.d.)", noise))
    fits = [[escape(what), str(points), signed(residual) + " %"]
            for what, residual, points in calibration.fits]
    return _definitions(pairs) + (tables.table(["fit", "points", "residual"], fits) if fits else "")


def _run_notes(runs):
    checked = [run.parity for run in runs if run.parity is not None]
    failed = [f"{run.id}: {run.failure}" for run in runs if run.failure]
    pairs = []
    if checked:
        pairs.append(("parity", f"{len(checked)} runs agree with one device to a relative L2 of "
                                f"{max(checked):.1e} or better"))
    pairs += [("failed", text) for text in failed]
    return _definitions(pairs) if pairs else ""
