#!/usr/bin/env python3
"""clang-tidy over the files of a compile database, every warning an error.

tidy.py BUILD_DIR... : the databases; a file in several is read with the first.

A file that includes LibTorch takes half a minute, so files of runner/ and tests/runner/ are skipped
when nothing that decides the outcome has changed since they were last found clean on this machine:
the file, the headers of the project that it includes, its command line, .clang-tidy and the version of
clang-tidy. What was found clean is remembered by the hash of these in ~/.cache/lockstep/tidy.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

TIDY = os.environ.get("CLANG_TIDY", "clang-tidy-19")
PROJECT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "lockstep/tidy"
REMEMBER_SECONDS = 30 * 24 * 3600


def includes(path, seen):
    """Adds to `seen` the file and the project's headers that it includes, directly or not."""
    if path in seen:
        return
    seen.add(path)
    for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE):
        header = PROJECT / name
        if header.is_file():
            includes(header, seen)


def key(entry, version):
    digest = hashlib.sha256(version)
    command = shlex.split(entry["command"])[1:]
    digest.update(" ".join(c for c in command if not c.startswith("-DLOCKSTEP_")).replace(
        str(PROJECT), "").encode())
    files = set()
    includes(pathlib.Path(entry["file"]), files)
    for path in [PROJECT / ".clang-tidy", *sorted(files)]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def tidy(entry, version):
    """Returns (file, seconds or None when known to be clean, output when not clean)."""
    name = str(pathlib.Path(entry["file"]).relative_to(PROJECT))
    remembered = CACHE / key(entry, version) if name.startswith(("runner/", "tests/runner/")) else None
    if remembered and remembered.exists():
        remembered.touch()
        return name, None, ""
    start = time.monotonic()
    run = subprocess.run([TIDY, "-p", entry["build"], "--quiet", entry["file"]], stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, check=False)
    if run.returncode == 0 and remembered:
        remembered.touch()
    return name, time.monotonic() - start, "" if run.returncode == 0 else run.stdout + run.stderr


def main():
    entries = {}
    for build in sys.argv[1:]:
        for entry in json.loads(pathlib.Path(build, "compile_commands.json").read_text()):
            if pathlib.Path(entry["file"]).is_relative_to(PROJECT):
                entries.setdefault(entry["file"], {**entry, "build": build})
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    CACHE.mkdir(parents=True, exist_ok=True)
    for old in CACHE.iterdir():
        if time.time() - old.stat().st_mtime > REMEMBER_SECONDS:
            old.unlink(missing_ok=True)

    # The slow ones first, so that no core idles at the end.
    order = sorted(entries.values(), key=lambda e: "/runner/" not in e["file"])
    bad = known = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, seconds, output in pool.map(lambda e: tidy(e, version), order):
            known += seconds is None
            bad += bool(output)
            print(f"{name}: " + ("unchanged" if seconds is None else f"{seconds:.1f} s"), flush=True)
            if output:
                print(output, flush=True)
    print(f"clang-tidy: {len(order)} files, {known} of them unchanged since found clean, {bad} with errors")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
