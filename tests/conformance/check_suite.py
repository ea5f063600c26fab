#!/usr/bin/env python3
"""Runs `candela conform` on a backend of ours, all tiers but onnx at size full, and holds it to what is committed.

usage: check_suite.py CANDELA NAME BACKEND

suite_minimum.txt, beside this file, has a line `NAME TIER PASSED` for each tier: how many cases pass at least. No case
may fail, the tiers must add up to the total, and the sample stays within its size. Exit status: 0 held, 1 not.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TIERS = ("abi", "memory", "queue", "devices", "async", "primitives", "ops", "models", "gradients", "fuzz")
LARGEST = 2230  # cases of the sample: every row and every value of an axis stands in it, and ties of each row that rounds


def minimum(name):
    lines = (line.split("#")[0].split() for line in (HERE / "suite_minimum.txt").read_text().splitlines())
    return {words[1]: int(words[2]) for words in lines if words and words[0] == name}


def run(candela, backend):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        tiers = [word for tier in TIERS for word in ("--tier", tier)]
        status = subprocess.run([candela, "conform", "--backend", backend, "--json", report, *tiers]).returncode
        return status, json.loads(report.read_text())


def problems_of(report, status, wanted):
    by_tier = report["by_tier"]
    problems = [f"{failed['case']}: {failed['reason']}" for failed in report["failed"]] + report["problems"]
    if sorted(by_tier) != sorted(TIERS) or sorted(wanted) != sorted(TIERS):
        problems.append(f"tiers {sorted(by_tier)}, suite_minimum.txt has {sorted(wanted)}, expected {sorted(TIERS)}")
    if sum(tier["total"] for tier in by_tier.values()) != report["total"] or len(report["cases"]) != report["total"]:
        problems.append("the tiers do not add up to the total")
    if report["total"] > LARGEST:
        problems.append(f"{report['total']} cases, a sample has at most {LARGEST}")
    for tier, number in wanted.items():
        passed = by_tier.get(tier, {}).get("passed", 0)
        if passed < number:
            problems.append(f"{passed} cases of {tier} passed, suite_minimum.txt wants {number}")
    if (status != 0) != (not report["conformant"]):
        problems.append(f"exit status {status}, conformant: {report['conformant']}")
    return problems


def main():
    candela, name, backend = sys.argv[1:]
    status, report = run(candela, backend)
    problems = problems_of(report, status, minimum(name))
    for tier in TIERS:
        print(name, tier, report["by_tier"].get(tier, {}).get("passed", 0))
    for problem in problems:
        print(f"{name}: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
