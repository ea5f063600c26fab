#!/usr/bin/env python3
"""Measures which lines of core/ the tests of the classes quick and full run.

usage: tests/nightly/coverage.py [--build DIR] [--target NAME]... [--tests REGEX] [--jobs N] [--report FILE]

Builds everything in DIR (build/coverage) with --coverage, runs the tests and adds up what gcov says of each object: a line is run where
some program ran it. Lines of headers count in their folder. Left out are tests that build, and those of hygiene, which read what was
built. A test that fails is named in the report and is no failure here. --target and --tests: these alone, so that one library and its
test can be looked at. Writes benchmarks/results/coverage.json: percent of lines for each folder of core/ that holds sources.

Needs g++ and its gcov.

Exit status: 0 measured, 1 nothing was, 2 it does not build.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_build  # noqa: E402
import nightly_report  # noqa: E402

SCHEMA = "candela.coverage.v1"
ROOM = "core"
LEFT_OUT = "^(hygiene_.*|sanitizer_build_and_tests|out_of_tree_backend)$"
OBJECTS_AT_ONCE = 20
BUILD_AND_TESTS = {
    "CANDELA_WITH_TESTS": "ON",
    # Counters that threads share; paths that do not depend on the folder of the object. -O1: lines stay where they are.
    "CMAKE_CXX_FLAGS": "--coverage -fprofile-abs-path -fprofile-update=atomic",
    "CMAKE_C_FLAGS": "--coverage -fprofile-abs-path -fprofile-update=atomic",
    "CMAKE_CXX_FLAGS_RELWITHDEBINFO": "-O1 -g",
}


def run_tests(folder, tests, jobs):
    """The names of the tests that failed."""
    chosen = ["-R", tests] if tests else []
    done = subprocess.run(["ctest", "--test-dir", folder, "-L", "^(quick|full)$", "-E", LEFT_OUT, "-j", str(jobs), "--timeout", "3600",
                           *chosen], stdout=subprocess.PIPE, text=True, errors="replace")
    return re.findall(r"^\s*\d+ - (\S+) \(", done.stdout, re.M)


def counted(folder, objects):
    """{source: {line: whether it was run}} of some objects, as gcov says it."""
    done = subprocess.run(["gcov", "--json-format", "--stdout", *map(str, objects)], cwd=folder, capture_output=True, text=True,
                          errors="replace", check=True)
    found = collections.defaultdict(dict)
    for text in filter(None, done.stdout.splitlines()):
        for file in json.loads(text)["files"]:
            path = pathlib.Path(os.path.normpath(folder / file["file"]))
            if not path.is_relative_to(ROOT / ROOM):
                continue
            lines = found[str(path.relative_to(ROOT))]
            for line in file["lines"]:
                number = line["line_number"]
                lines[number] = lines.get(number, False) or line["count"] > 0
    return found


def all_lines(folder, jobs):
    """The same of all objects of the build that gcov knows, those that nothing ran too."""
    notes = sorted(folder.rglob("*.gcno"))
    groups = [notes[first:first + OBJECTS_AT_ONCE] for first in range(0, len(notes), OBJECTS_AT_ONCE)]
    total = collections.defaultdict(dict)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for found in pool.map(lambda objects: counted(folder, objects), groups):
            for source, lines in found.items():
                for number, was_run in lines.items():
                    total[source][number] = total[source].get(number, False) or was_run
    return total


def by_folder(total):
    """{folder: {files, lines, run, percent}}, the whole room first."""
    folders = collections.defaultdict(lambda: {"files": 0, "lines": 0, "run": 0})
    for source, lines in total.items():
        for name in (ROOM, os.path.dirname(source)) if os.path.dirname(source) != ROOM else (ROOM,):
            folders[name]["files"] += 1
            folders[name]["lines"] += len(lines)
            folders[name]["run"] += sum(lines.values())
    return {name: {**counts, "percent": round(100 * counts["run"] / max(counts["lines"], 1), 1)}
            for name, counts in sorted(folders.items())}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/coverage")
    parser.add_argument("--target", action="append", help="what is built instead of everything; may be given again")
    parser.add_argument("--tests", help="those whose names match, instead of all of quick and full")
    parser.add_argument("--jobs", type=int, default=nightly_build.jobs())
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/coverage.json")
    arguments = parser.parse_args()
    started = time.monotonic()
    folder = arguments.build.resolve()
    try:
        nightly_build.configure(ROOT, folder, BUILD_AND_TESTS, {"CANDELA_TIME_PERCENT": "400"})
        for old in folder.rglob("*.gcda"):
            old.unlink()  # counters of another run would be added to
        status, _ = nightly_build.build(folder, arguments.target or ())
        if status:
            print("coverage: it does not build", file=sys.stderr)
            return 2
        failed = run_tests(folder, arguments.tests, arguments.jobs)
        folders = by_folder(all_lines(folder, arguments.jobs))
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        print(f"coverage: {error}", file=sys.stderr)
        return 2
    nightly_report.write(arguments.report, {
        "schema": SCHEMA, "date": nightly_report.now(), "machine": nightly_report.machine(), "tests_failed": failed,
        "seconds": round(time.monotonic() - started), "folders": folders})
    for name, counts in folders.items():
        print(f"{counts['percent']:6.1f} %  {counts['run']:6d} of {counts['lines']:6d} lines  {name}")
    for name in failed:
        print(f"coverage: {name} failed")
    print(f"report {arguments.report}")
    return 0 if any(counts["run"] for counts in folders.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
