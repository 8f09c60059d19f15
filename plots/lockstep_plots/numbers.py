"""Numbers as text, the same in figures and tables."""


def number(value):
    """Three or more digits, never an exponent: 0.0123, 1.80, 12.3, 12345."""
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:#.3g}".rstrip(".")


def ms(ns):
    """Nanoseconds as milliseconds, without the unit."""
    return number(ns / 1e6)


def percent(ratio):
    return f"{100 * ratio:.1f} %"


def signed(error):
    """+3.1, \u22123.1 or 0.0, in percent, without the unit."""
    text = f"{100 * error:+.1f}"
    return "0.0" if float(text) == 0 else text.replace("-", "\u2212")
