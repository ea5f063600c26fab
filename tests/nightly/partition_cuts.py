#!/usr/bin/env python3
"""The solver of the partitioner on random graphs of at most 12 nodes, against every assignment of targets.

usage: tests/nightly/partition_cuts.py [--build DIR] [--graphs N] [--seed N] [--report FILE]

`fuzz_cuts` draws the graphs from seeds (tests/unit/compiler/solvers/cut/problems.h): costs of nodes on each target, values that many
read, ties, nodes that a target does not take. With two targets the plan must be the least of all and say so, with three within 5 %;
stages must be the least of their order.

Writes benchmarks/results/partition_cuts.json. Needs a build in build/ with its tests.

Exit status: 0 all as promised, 1 a plan that is not, 2 bad usage or nothing to run.
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

SCHEMA = "candela.partition_cuts.v1"
TIMEOUT_SECONDS = 7000


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--graphs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/partition_cuts.json")
    arguments = parser.parse_args()
    program = arguments.build / "tests/bin/fuzz_cuts"
    if not program.is_file():
        print(f"partition_cuts: {program} is missing; build it first", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        counted = pathlib.Path(folder) / "counted.json"
        done = subprocess.run([program, "--seed", str(arguments.seed), "--count", str(arguments.graphs), "--json", counted],
                              timeout=TIMEOUT_SECONDS)
        if not counted.is_file():
            print(f"partition_cuts: fuzz_cuts wrote nothing, exit status {done.returncode}", file=sys.stderr)
            return 1
        kinds = json.loads(counted.read_text())
    nightly_report.write(arguments.report, {"schema": SCHEMA, "date": nightly_report.now(), "passed": done.returncode == 0,
                                            "seed": arguments.seed, "graphs": arguments.graphs, "results": kinds})
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
