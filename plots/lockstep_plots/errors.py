"""The one exception for bad input; caught once, in the command."""


class InputError(Exception):
    """Says in one line where the user's input is wrong: `file: pointer: what; hint`."""

    def __init__(self, file, pointer, what, hint=""):
        line = ": ".join(part for part in (str(file), pointer, what) if part)
        super().__init__(" ".join((line + ("; " + hint if hint else "")).split()))
