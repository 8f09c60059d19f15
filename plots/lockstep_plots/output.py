"""Files written whole or not at all: all under temporary names first, then all renamed."""

import os
from pathlib import Path

from .errors import InputError


def write_all(folder, files):
    """Writes name -> bytes into `folder`, which is made where it is missing.

    InputError where that cannot be; OSError where writing fails (a full disk). Either way what
    lay there before stays as it was.
    """
    folder = Path(folder)
    made = _make(folder)
    written = []
    try:
        for name, data in files.items():
            temporary = folder / f".{name}.{os.getpid()}.tmp"
            written.append((temporary, folder / name))
            with open(temporary, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
        for temporary, final in written:
            os.replace(temporary, final)
    except BaseException:
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)
        for path in made:
            try:
                path.rmdir()
            except OSError:
                break  # somebody else put something there
        raise


def _make(folder):
    """Makes the folder and its parents; returns those that were missing, innermost first."""
    try:
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(folder, "", f"cannot be written to: {reason}",
                         "give another folder with -o") from None
    return missing
