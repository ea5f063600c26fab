#!/usr/bin/env python3
"""Random graphs with and without stacking on soft, template and cpu: the same integers bit by bit, reals within their bounds.

usage: tests/nightly/stacking.py [--build DIR] [--graphs N] [--seed N] [--report FILE]

`fuzz_stacking` draws the graphs from fixed seeds (tests/fuzz/stacked_graphs.h) and compiles each twice on each backend, the
second time with `--unstacked`. Instructions and the bytes that their views read and write are counted for both: stacking may
never move more.

Writes benchmarks/results/stacking.json. Needs a build in build/ with its tests.

Exit status: 0 all equal, 1 a difference or nothing compared, 2 bad usage or nothing to run.
"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_fuzz  # noqa: E402
import nightly_report  # noqa: E402

SCHEMA = "candela.stacking.v1"


def main():
    arguments = nightly_fuzz.arguments(__doc__, "stacking")
    status, report = nightly_fuzz.counted("stacking", arguments, "fuzz_stacking",
                                          ["--out", arguments.build / "tests/fuzz_failures"])
    for backend in report["backends"]:
        for key in ("instructions", "bytes"):
            backend[key] = dict(zip(("unstacked", "stacked"), backend[key]))
    nightly_report.write(arguments.report, {"schema": SCHEMA, "date": nightly_report.now(), "passed": status == 0, **report})
    return status


if __name__ == "__main__":
    sys.exit(main())
