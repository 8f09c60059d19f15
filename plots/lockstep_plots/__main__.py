"""python -m lockstep_plots RESULT... -o DIR"""

import argparse
import sys

from .errors import InputError
from .output import write_all
from .records import read_records

EXAMPLE = """\
Writes scaling, breakdown, accuracy, errors, timeline, collective and bandwidth as PNG, SVG and PDF,
as far as the records hold what they need, and report.html with all of them and the tables.

examples:
  python -m lockstep_plots result.json runs.json validation.json calibration.json -o build/plots
  python -m lockstep_plots simulated.trace.json measured.trace.json -o build/plots
"""


def main(arguments=None):
    """Exit code: 0 done, 2 bad input, 3 the files could not be written."""
    parser = argparse.ArgumentParser(
        prog="lockstep_plots", description="Figures and a report from records of lockstep.",
        epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="+", metavar="RESULT",
                        help="result, validation, run, runs, calibration, measurement, "
                             "collective or trace, as JSON")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder to write to")
    parser.add_argument("-t", "--title", default="", help="heading of the report")
    options = parser.parse_args(arguments)
    try:
        records = read_records(options.records)
        files = _draw(records, options.title)
        write_all(options.output, files)
    except InputError as error:
        print(f"lockstep: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"lockstep: {options.output}: writing failed: {error.strerror or error}; nothing was changed",
              file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130
    print(f"wrote {len(files)} files to {options.output}; open {options.output}/report.html")
    return 0


def _draw(records, title):
    try:
        from .draw import draw
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("lockstep_plots"):
            raise
        raise InputError("lockstep_plots", "", f"Python has no {error.name}",
                         "pip install matplotlib, or use the Python in .venv") from None
    return draw(records, title)


if __name__ == "__main__":
    sys.exit(main())
