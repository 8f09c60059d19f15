#!/usr/bin/env python3
"""clang-tidy over the files of a compile database, every warning an error.

tidy.py BUILD [--mark] [--seconds N] [FILE...]

A file is skipped when nothing that decides the outcome has changed since it was last found clean: the
file, the headers of the project that it includes, .clang-tidy, the pinned LibTorch and the version of
clang-tidy. What was found clean is remembered by the hash of these in ~/.cache/lockstep/tidy on this
machine. A file that includes LibTorch takes half a minute, so those of runner/ and tests/runner/ are
remembered for every machine too, in .ci/tidied.txt; --mark writes it, to be committed. A hash that is
missing costs time only. With --seconds no file is begun after so long: a gate has an end, and says what it
has not looked at. FILEs: only these.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

TIDY = os.environ.get("CLANG_TIDY", "clang-tidy-19")
PROJECT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "lockstep/tidy"
MARKS = PROJECT / ".ci/tidied.txt"
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


def key(file, version):
    files = set()
    includes(file, files)
    digest = hashlib.sha256(version)
    for path in [PROJECT / ".clang-tidy", PROJECT / "cmake/setup/python.txt", *sorted(files)]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


def tidy(build, file, version, marked, end):
    """Returns (file, its hash, seconds or None when known to be clean, output when not clean). Of a file that
    is not begun any more seconds are below zero."""
    name = str(file.relative_to(PROJECT))
    remembered = CACHE / key(file, version)
    if remembered.name in marked or remembered.exists():
        remembered.touch()
        return name, remembered.name, None, ""
    start = time.monotonic()
    if start > end:
        return name, remembered.name, -1, ""
    # -w: the compiler has judged its own warnings already; some of its options clang does not know.
    run = subprocess.run([TIDY, "-p", build, "--quiet", "--extra-arg=-w", file], stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, check=False)
    if run.returncode == 0:
        remembered.touch()
    output = "" if run.returncode == 0 else run.stdout + run.stderr
    return name, remembered.name, time.monotonic() - start, output


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--mark", action="store_true")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    build, end = options.build, time.monotonic() + options.seconds
    database = json.loads(pathlib.Path(build, "compile_commands.json").read_text())
    files = {pathlib.Path(entry["file"]) for entry in database}
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    marked = set(re.findall(r"^[0-9a-f]{32}", MARKS.read_text() if MARKS.exists() else "", re.MULTILINE))
    CACHE.mkdir(parents=True, exist_ok=True)
    for old in CACHE.iterdir():
        if time.time() - old.stat().st_mtime > REMEMBER_SECONDS:
            old.unlink(missing_ok=True)

    # The slow ones first, so that no core idles at the end; where not all will be looked at, most are if they are last.
    slow_last = options.seconds < float("inf")
    asked = {PROJECT / name for name in options.files}
    order = sorted((f for f in files if f.is_relative_to(PROJECT) and (not asked or f in asked)),
                   key=lambda f: (("/runner/" in str(f)) == slow_last, f))
    bad = known = late = 0
    clean = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, hashed, seconds, output in pool.map(
                lambda f: tidy(build, f, version, marked, end), order):
            known += seconds is None
            bad += bool(output)
            late += seconds is not None and seconds < 0
            if not output and (seconds is None or seconds >= 0) and name.startswith(("runner/", "tests/runner/")):
                clean.append(f"{hashed} {name}\n")
            how = "unchanged" if seconds is None else "not looked at" if seconds < 0 else f"{seconds:.1f} s"
            print(f"{name}: {how}", flush=True)
            if output:
                print(output, flush=True)
    if options.mark:
        MARKS.write_text("".join(sorted(clean, key=lambda line: line.split()[1])))
    print(f"clang-tidy: {len(order)} files, {known} unchanged since found clean, {bad} with errors, {late} not looked "
          "at for want of time")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
