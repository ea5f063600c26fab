#!/usr/bin/env python3
"""Random graphs with and without stacking on soft, template and cpu: the same integers bit by bit, reals within their bounds.

usage: tests/nightly/stacking.py [--build DIR] [--graphs N] [--seed N] [--report FILE]

`fuzz_stacking` draws the graphs from fixed seeds (tests/fuzz/stacked_graphs.h) and compiles each twice on each backend, the
second time with `--unstacked`. Instructions and the bytes that their views read and write are counted for both: stacking may
never move more.

Writes benchmarks/results/stacking.json. Needs a build in build/ with its tests.

Exit status: 0 all equal, 1 a difference or nothing compared, 2 bad usage or nothing to run.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.stacking.v1"
TIMEOUT_SECONDS = 7000


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--graphs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/stacking.json")
    arguments = parser.parse_args()
    program = arguments.build / "tests/bin/fuzz_stacking"
    if not program.is_file():
        print(f"stacking: {program} is missing; build it first", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        counted = pathlib.Path(folder) / "counted.json"
        done = subprocess.run([program, "--seed", str(arguments.seed), "--count", str(arguments.graphs), "--out",
                               arguments.build / "tests/fuzz_failures", "--json", counted], timeout=TIMEOUT_SECONDS)
        if not counted.is_file():
            print(f"stacking: fuzz_stacking wrote nothing, exit status {done.returncode}", file=sys.stderr)
            return 1
        report = json.loads(counted.read_text())
    for backend in report["backends"]:
        for key in ("instructions", "bytes"):
            backend[key] = dict(zip(("unstacked", "stacked"), backend[key]))
    nightly_report.write(arguments.report, {"schema": SCHEMA, "date": nightly_report.now(),
                                            "passed": done.returncode == 0, **report})
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
