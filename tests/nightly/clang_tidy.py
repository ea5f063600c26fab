#!/usr/bin/env python3
"""Runs clang-tidy 19 with the checks of .clang-tidy over all sources but those of the tests.

usage: tests/nightly/clang_tidy.py [--build DIR] [--file GLOB]... [--jobs N] [--update] [--report FILE]

DIR (build/tidy) is configured for its compile_commands.json, one source at a time, and the headers that the build generates are
made there; nothing else is built. A finding in a header counts once. clang_tidy.json beside this script holds how many findings of a
check there may be, for those that were there before the check; a check that it does not name may have none. --update: write it anew
where a number has fallen, or a check has no findings any more; it never rises so. Where there is no such file, the run writes it and
passes: it is committed then. --file: these sources alone ("core/support/*"),
and then nothing is compared. Writes benchmarks/results/clang_tidy.json.

Needs clang-tidy-19 and what a build needs.

Exit status: 0 no more findings than there may be, 1 more, or a source that clang does not understand, 2 nothing to run.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_build  # noqa: E402
import nightly_report  # noqa: E402

SCHEMA = "candela.clang_tidy.v1"
TOOL = "clang-tidy-19"
ALLOWED = pathlib.Path(__file__).with_suffix(".json")
FINDING = re.compile(r"^(?P<path>/[^:]+):(?P<line>\d+):(?P<column>\d+): (?:warning|error): (?P<says>.*) \[(?P<check>[\w.,-]+)\]$")
# What GCC alone understands.
UNKNOWN = ["--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-unused-command-line-argument"]
TIMEOUT_SECONDS = 900


def prepare(folder):
    """Configures the folder and makes the headers that sources include; the folder of the commands, one for a source."""
    nightly_build.configure(ROOT, folder, {"CANDELA_WITH_TESTS": "OFF", "CMAKE_EXPORT_COMPILE_COMMANDS": "ON"})
    said = subprocess.run(["ninja", "-C", folder, "-t", "targets", "all"], capture_output=True, text=True, check=True)
    made = [line.split(":")[0] for line in said.stdout.splitlines() if line.endswith(": CUSTOM_COMMAND")]
    headers = [path for path in made if path.endswith((".h", ".hpp", ".inc"))]
    if headers:
        subprocess.run(["ninja", "-C", folder, *headers], check=True, stdout=subprocess.DEVNULL)
    # A source of two targets would be read twice.
    entries = json.loads((folder / "compile_commands.json").read_text())
    single = folder / "commands"
    single.mkdir(exist_ok=True)
    (single / "compile_commands.json").write_text(json.dumps(list({entry["file"]: entry for entry in entries}.values())))
    return single


def sources(build, commands, globs):
    """The project's own sources of the build, relative to the repository."""
    entries = json.loads((commands / "compile_commands.json").read_text())
    paths = (pathlib.Path(entry["file"]) for entry in entries)
    own = sorted(str(path.relative_to(ROOT)) for path in paths
                 if path.is_relative_to(ROOT) and not path.is_relative_to(build.resolve()))
    return [path for path in own if not globs or any(fnmatch.fnmatchcase(path, glob) for glob in globs)]


def findings_of(commands, source):
    """The findings of one source and of the headers that it reads."""
    done = subprocess.run([TOOL, "--quiet", "-p", commands, *UNKNOWN, ROOT / source], capture_output=True, text=True,
                          errors="replace", timeout=TIMEOUT_SECONDS)
    found = []
    for match in filter(None, map(FINDING.match, done.stdout.splitlines())):
        path = pathlib.Path(os.path.normpath(match["path"]))
        place = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
        found += [(check, f"{place}:{match['line']}:{match['column']}: {match['says']}")
                  for check in match["check"].split(",") if not check.startswith("-")]
    if done.returncode and not found:
        found.append(("clang-diagnostic-error", f"{source}:1:1: {(done.stderr.strip() or 'no word').splitlines()[-1]}"))
    return found


def run_all(commands, files, jobs):
    """Every finding once, by check."""
    by_check = collections.defaultdict(set)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done, found in enumerate(pool.map(lambda source: findings_of(commands, source), files), 1):
            for check, place in found:
                by_check[check].add(place)
            print(f"[{done}/{len(files)}] {files[done - 1]}: {len(found)}", flush=True)
    return {check: sorted(places) for check, places in sorted(by_check.items())}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/tidy")
    parser.add_argument("--file", action="append", help="a glob of sources from the repository's root; may be given again")
    parser.add_argument("--jobs", type=int, default=nightly_build.jobs())
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/clang_tidy.json")
    arguments = parser.parse_args()
    if not shutil.which(TOOL):
        print(f"clang_tidy: {TOOL} is missing; as root: apt-get install {TOOL}", file=sys.stderr)
        return 2
    started = time.monotonic()
    try:
        commands = prepare(arguments.build)
        files = sources(arguments.build, commands, arguments.file)
        found = run_all(commands, files, arguments.jobs)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        print(f"clang_tidy: {error}", file=sys.stderr)
        return 2
    for check, places in found.items():
        for place in places:
            print(f"{place} [{check}]")
    counts = {check: len(places) for check, places in found.items()}
    print(f"{sum(counts.values())} findings in {len(files)} sources: {json.dumps(counts)}")
    if arguments.file or not files:
        return 1 if counts or not files else 0
    if not ALLOWED.is_file():
        ALLOWED.write_text(json.dumps(counts, indent=2) + "\n")
        print(f"clang_tidy: wrote {ALLOWED.relative_to(ROOT)}: commit it")
    allowed = json.loads(ALLOWED.read_text())
    more = {check: count for check, count in counts.items() if count > allowed.get(check, 0)}
    fewer = {check: counts.get(check, 0) for check in allowed if counts.get(check, 0) < allowed[check]}
    if arguments.update:
        kept = {check: min(count, counts.get(check, 0)) for check, count in sorted(allowed.items())}
        ALLOWED.write_text(json.dumps({check: count for check, count in kept.items() if count}, indent=2) + "\n")
    nightly_report.write(arguments.report, {
        "schema": SCHEMA, "date": nightly_report.now(), "machine": nightly_report.machine(), "passed": not more,
        "sources": len(files), "seconds": round(time.monotonic() - started), "counts": counts, "allowed": allowed,
        "findings": {check: found[check] for check in more}})
    for check, count in more.items():
        print(f"clang_tidy: {check}: {count} findings, {allowed.get(check, 0)} are allowed", file=sys.stderr)
    for check, count in fewer.items():
        print(f"clang_tidy: {check}: {count} findings, fewer than the {allowed[check]} allowed: --update")
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main())
