#!/usr/bin/env python3
"""Runs the whole conformance suite on our own backends, and the suite's faulty backends.

usage: tests/nightly/conform.py [--candela FILE] [--jobs N] [--report FILE]

`candela conform --size nightly`, all tiers, on soft, the template and cpu; then `candela conform --mutants`. Writes
benchmarks/results/conform.json: cases by tier and outcome, native ratios and the time that each run took.

Needs a build in build/ and the node tests of Debian's libonnx-testdata.

Exit status: 0 nothing failed, every run has 20,000 cases and every mutant was killed; 1 not so, 2 nothing to run.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.conform_nightly.v1"
BACKENDS = ("soft", "template", "cpu")
LEAST_CASES = 20000
TIMEOUT_SECONDS = 3600


def report_of(command, folder):
    """What the command said in JSON; its exit status is the report's business."""
    file = pathlib.Path(folder) / "report.json"
    file.unlink(missing_ok=True)
    subprocess.run([*command, "--json", file], timeout=TIMEOUT_SECONDS)
    return json.loads(file.read_text())


def suite_run(candela, backend, jobs, folder):
    report = report_of([candela, "conform", "--backend", backend, "--size", "nightly", "--jobs", str(jobs)], folder)
    keys = ("suite_version", "corpus_hash", "seed", "total", "passed", "native", "by_tier", "wall_ms", "candela_version")
    run = {"backend": backend, "jobs": jobs, **{key: report[key] for key in keys}}
    run["failed"], run["problems"] = report["failed"], report["problems"]
    for outcome in ("unsupported", "emulated", "xfail", "mistrusted"):
        run[outcome] = len(report[outcome])
    for tier in run["by_tier"].values():
        tier["cases_ms"] = round(tier["cases_ms"])
    run["wall_ms"] = round(run["wall_ms"])
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/conform.json")
    arguments = parser.parse_args()
    if not arguments.candela.is_file():
        print(f"conform: {arguments.candela} is missing; build it first", file=sys.stderr)
        return 2
    try:
        with tempfile.TemporaryDirectory(prefix="candela_conform_") as folder:
            runs = [suite_run(arguments.candela, backend, arguments.jobs, folder) for backend in BACKENDS]
            mutants = report_of([arguments.candela, "conform", "--mutants"], folder)["mutants"]
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        print(f"conform: {error}", file=sys.stderr)
        return 2
    survivors = [mutant["name"] for mutant in mutants if not mutant["killed"]]
    nightly_report.write(arguments.report,
                         {"schema": SCHEMA, "date": nightly_report.now(), "cores": os.cpu_count(), "runs": runs,
                          "mutants": {"total": len(mutants), "survivors": survivors}})
    for run in runs:
        print(f"{run['backend']:9} {run['passed']}/{run['total']} passed, {len(run['failed'])} failed, "
              f"{run['unsupported']} unsupported, {run['wall_ms'] / 1000:.0f} s")
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} mutants killed; report {arguments.report}")
    good = all(not run["failed"] and not run["problems"] and run["total"] >= LEAST_CASES for run in runs)
    return 0 if good and not survivors else 1


if __name__ == "__main__":
    sys.exit(main())
