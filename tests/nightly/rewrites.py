#!/usr/bin/env python3
"""Random graphs of what passes rewrite: each pass alone, all together, and compiled on soft and cpu, within their bounds.

usage: tests/nightly/rewrites.py [--build DIR] [--graphs N] [--seed N] [--jobs N] [--report FILE]

`fuzz_rewrites` draws the graphs from fixed seeds (tests/fuzz/rewrite_graphs.h). What is right is what the oracle computes of
the graph as it is, within a running error analysis (tests/fuzz/rewrite_bounds.h). Every pass must change some of them.

Writes benchmarks/results/rewrites.json. Needs a build in build/ with its tests.

Exit status: 0 all within their bounds, 1 a finding or a pass with too little to do, 2 bad usage or nothing to run.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.rewrites.v1"
TIMEOUT_SECONDS = 7000
COUNTS = ("graphs", "nodes", "findings", "refused", "elements", "within_a_tenth", "anything")


def run(program, build, seed, count, folder):
    """What one process counted; None where it ended without a word."""
    counted = pathlib.Path(folder) / f"{seed}.json"
    done = subprocess.run([program, "--seed", str(seed), "--count", str(count), "--out", build / "tests/fuzz_failures",
                           "--json", counted], timeout=TIMEOUT_SECONDS)
    if not counted.is_file():
        print(f"rewrites: fuzz_rewrites wrote nothing, exit status {done.returncode}", file=sys.stderr)
        return None
    return {**json.loads(counted.read_text()), "passed": done.returncode == 0}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--graphs", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/rewrites.json")
    arguments = parser.parse_args()
    program = arguments.build / "tests/bin/fuzz_rewrites"
    if not program.is_file():
        print(f"rewrites: {program} is missing; build it first", file=sys.stderr)
        return 2
    share = -(-arguments.graphs // arguments.jobs)
    slices = [(arguments.seed + at, min(share, arguments.graphs - at)) for at in range(0, arguments.graphs, share)]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        parts = list(pool.map(lambda part: run(program, arguments.build, *part, folder), slices))
    if None in parts:
        return 1
    passed = all(part["passed"] for part in parts)
    passes = [{"pass": rows[0]["pass"], **{key: sum(row[key] for row in rows)
                                           for key in ("graphs_changed", "times_among_all")}}
              for rows in zip(*(part["passes"] for part in parts))]
    nightly_report.write(arguments.report, {
        "schema": SCHEMA, "date": nightly_report.now(), "machine": nightly_report.machine(), "passed": passed,
        "seed": arguments.seed, **{key: sum(part[key] for part in parts) for key in COUNTS}, "passes": passes})
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
