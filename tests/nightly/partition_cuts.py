#!/usr/bin/env python3
"""The solver of the partitioner on random graphs of at most 12 nodes, against every assignment of targets.

usage: tests/nightly/partition_cuts.py [--build DIR] [--graphs N] [--seed N] [--report FILE]

`fuzz_cuts` draws the graphs from seeds (tests/unit/compiler/solvers/cut/problems.h): costs of nodes on each target, values that many
read, ties, nodes that a target does not take. With two targets the plan must be the least of all and say so, with three within 5 %;
stages must be the least of their order.

Writes benchmarks/results/partition_cuts.json. Needs a build in build/ with its tests.

Exit status: 0 all as promised, 1 a plan that is not, 2 bad usage or nothing to run.
"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_fuzz  # noqa: E402
import nightly_report  # noqa: E402

SCHEMA = "candela.partition_cuts.v1"


def main():
    arguments = nightly_fuzz.arguments(__doc__, "partition_cuts")
    status, kinds = nightly_fuzz.counted("partition_cuts", arguments, "fuzz_cuts")
    nightly_report.write(arguments.report, {"schema": SCHEMA, "date": nightly_report.now(), "passed": status == 0,
                                            "seed": arguments.seed, "graphs": arguments.graphs, "results": kinds})
    return status


if __name__ == "__main__":
    sys.exit(main())
