"""All figures of the records, rendered, and the report that holds them."""

import warnings

from . import accuracy, bandwidth, breakdown, collective, report, scaling, style, timeline
from .curves import build_curves

FORMATS = ("png", "svg", "pdf")


def draw(records, title=""):
    """File name -> bytes."""
    curves = build_curves(records)
    files, shown = {}, {}
    with style.settings(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a name in letters that the font lacks, and the like
        for kind, pages in _figures(records, curves).items():
            for index, (wide, narrow) in enumerate(pages):
                name = kind if index == 0 else f"{kind}-{index + 1}"
                images = {form: style.render(wide, form) for form in FORMATS}
                files.update({f"{name}.{form}": data for form, data in images.items()})
                shown.setdefault(kind, []).append(
                    (name, style.said(wide), images["svg"], style.render(narrow, "svg")))
    files["report.html"] = report.page(title or _title(records, curves), records, curves, shown)
    return files


def _figures(records, curves):
    """kind -> pairs of one figure, wide and narrow. The same figure at two widths."""
    def pair(pages, what):
        both = zip(pages(what), pages(what, narrow=True), strict=True)
        return [(style.lay_out(wide), style.lay_out(narrow)) for wide, narrow in both]

    figures = {"scaling": pair(scaling.figures, curves),
               "breakdown": pair(breakdown.figures, curves)}
    if accuracy.flat(records.validations):
        figures["accuracy"] = pair(accuracy.figures, records.validations)
        figures["errors"] = pair(accuracy.error_pages, records.validations)
    figures["timeline"] = pair(timeline.figures, records.traces)
    figures["collective"] = pair(collective.figures, records.schedules)
    figures["bandwidth"] = pair(bandwidth.figures, bandwidth.panels(records))
    return figures


def _title(records, curves):
    models = list(dict.fromkeys(
        [c.setup.model for c in curves]
        + [p.model for _, p in accuracy.flat(records.validations)]))
    named = ", ".join(models[:4]) + (" and others" if len(models) > 4 else "")
    if models:
        return f"Lockstep: scaling of {named}"
    if records.traces:
        return "Lockstep: one step"
    return "Lockstep: who sends what" if records.schedules else "Lockstep: one machine"
