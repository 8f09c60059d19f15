"""A cursor over a JSON document that knows where it stands, so that an error can say it.

Keys that nobody asks for are left alone: names may grow, meanings stay (the C++ readers are the
strict ones).
"""

import json

from .errors import InputError

LARGEST_FILE = 256 * 2**20  # bytes; a record is under 1 MB, a mistaken file may be anything
LARGEST_NUMBER = 1e18  # nanoseconds: 30 years


class _Twice(dict):
    """An object in which a key stands twice."""

    key = ""


def _object(pairs):
    seen = dict(pairs)
    if len(seen) == len(pairs):
        return seen
    names = [name for name, _ in pairs]
    twice = _Twice(seen)
    twice.key = next(name for name in names if names.count(name) > 1)
    return twice


def _show(value):
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."


class Node:
    """A value in a document, with its file and JSON pointer."""

    def __init__(self, value, file, pointer=""):
        self.value, self.file, self.pointer = value, file, pointer
        if isinstance(value, _Twice):
            raise self.error(f'key "{value.key}" appears twice', "keep one")

    def error(self, what, hint=""):
        return InputError(self.file, self.pointer or "/", what, hint)

    def has(self, key):
        return self._object().get(key) is not None

    def at(self, key):
        step = str(key).replace("~", "~0").replace("/", "~1")
        if key not in self._object():
            raise self.error(f'key "{key}" is missing', "was the file written by lockstep?")
        return Node(self.value[key], self.file, f"{self.pointer}/{step}")

    def items(self, key):
        """The elements of the array under `key`."""
        array = self.at(key)
        if not isinstance(array.value, list):
            raise array.error(f"{_show(array.value)} is not an array", "expected [...]")
        return [Node(v, self.file, f"{array.pointer}/{i}") for i, v in enumerate(array.value)]

    def optional_items(self, key):
        return self.items(key) if self.has(key) else []

    def text(self, key, default=None):
        if default is not None and not self.has(key):
            return default
        node = self.at(key)
        if not isinstance(node.value, str):
            raise node.error(f"{_show(node.value)} is not text", 'expected "..."')
        return node.value

    def flag(self, key, default=None):
        if default is not None and not self.has(key):
            return default
        node = self.at(key)
        if not isinstance(node.value, bool):
            raise node.error(f"{_show(node.value)} is not a flag", "expected true or false")
        return node.value

    def number(self, key, default=None, low=None, above=None):
        """A finite number, at least `low`, greater than `above`."""
        if default is not None and not self.has(key):
            return default
        node = self.at(key)
        value = node.value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise node.error(f"{_show(value)} is not a number")
        if not abs(value) <= LARGEST_NUMBER:  # nor is NaN
            raise node.error("the number is not finite or too large", f"at most {LARGEST_NUMBER:g}")
        if low is not None and value < low:
            raise node.error(f"{_show(value)} is too small", f"at least {low:g}")
        if above is not None and value <= above:
            raise node.error(f"{_show(value)} is too small", f"must be above {above:g}")
        return value

    def count(self, key, low=1):
        node = self.at(key)
        value = self.number(key, low=low)
        if value != int(value):
            raise node.error(f"{_show(value)} is not a whole number")
        return int(value)

    def texts(self, key):
        """An object of names and texts, as environments are."""
        node = self.at(key)
        return {name: node.text(name) for name in node._object()}

    def _object(self):
        if not isinstance(self.value, dict):
            raise self.error(f"{_show(self.value)} is not an object", "expected {...}")
        return self.value


def read_json(file):
    """The document in `file`; InputError where there is none."""
    try:
        with open(file, "rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(file, "", f"cannot be read: {reason}", "check the path") from None
    if len(data) > LARGEST_FILE:
        raise InputError(file, "", "is larger than 256 MiB", "give a record, not raw samples")
    if not data.strip():
        raise InputError(file, "", "is empty", "write it again")
    try:
        return Node(json.loads(data.decode("utf-8"), object_pairs_hook=_object), file)
    except UnicodeDecodeError:
        raise InputError(file, "", "is not UTF-8 text", "give a JSON record") from None
    except json.JSONDecodeError as error:
        where = f"{file}:{error.lineno}:{error.colno}"
        raise InputError(where, "", f"is not JSON: {error.msg}", "is it cut off?") from None
    except (RecursionError, ValueError):
        raise InputError(file, "", "is not JSON that a record could hold",
                         "nested too deeply or a number too long") from None
