#!/usr/bin/env python3
"""Runs `candela conform --tier onnx` on all suites of ONNX's tests and holds it to what is committed.

usage: check_onnx.py CANDELA NAME BACKEND [FLAG...]

onnx_minimum.txt, beside this file, has a line `NAME SUITE PASSED` for each suite: how many cases pass at least.
No case may fail, all of the suites must have run, the report must agree with itself, and every unsupported case must
be of a class that is ours to refuse, or stand in onnx_unsupported.txt. Exit status: 0 held, 1 not.
"""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

DATA = pathlib.Path("/usr/share/libonnx-testdata/data")
HERE = pathlib.Path(__file__).resolve().parent
EXPECTED_FAILURES = 5  # whose data is wrong


def rows(name):
    lines = (line.split("#")[0].split() for line in (HERE / name).read_text().splitlines())
    return [words for words in lines if words]


def suite_of(case):
    return case.removeprefix("onnx:").split("/")[0]


def run(candela, backend, flags):
    with tempfile.TemporaryDirectory() as folder:
        report_file = pathlib.Path(folder) / "report.json"
        command = [candela, "conform", "--backend", backend, "--tier", "onnx", "--onnx-data", str(DATA), "--json",
                   str(report_file), *flags]
        status = subprocess.run(command).returncode
        return status, json.loads(report_file.read_text())


def check(report, status, name):
    """What is wrong, and the names that onnx_unsupported.txt needs no more."""
    problems = []
    in_suite = collections.Counter(model.parent.parent.name for model in DATA.glob("*/*/model.onnx"))
    if report["total"] != sum(in_suite.values()):
        problems.append(f"{report['total']} cases ran, the suites have {sum(in_suite.values())}")
    kinds = ("failed", "unsupported", "emulated", "xfail", "mistrusted")
    if report["passed"] + sum(len(report[kind]) for kind in kinds) != report["total"]:
        problems.append("passed and " + ", ".join(kinds) + " do not add up to the total")
    passed = in_suite.copy()
    for kind in kinds:
        passed.subtract(suite_of(record["case"]) for record in report[kind])
    wanted = {suite: int(number) for backend, suite, number in rows("onnx_minimum.txt") if backend == name}
    if wanted.keys() != in_suite.keys():
        problems.append(f"onnx_minimum.txt has {sorted(wanted)} for {name}, the data {sorted(in_suite)}")
    for suite, number in wanted.items():
        if passed[suite] < number:
            problems.append(f"{passed[suite]} cases of {suite} passed, onnx_minimum.txt wants {number}")
        elif passed[suite] > number:
            print(f"{name}: {passed[suite]} cases of {suite} passed: onnx_minimum.txt may say so")
    problems += [f"{failed['case']}: {failed['reason']}" for failed in report["failed"]]
    if (status != 0) != bool(report["failed"]):
        problems.append(f"exit status {status} with {len(report['failed'])} failed cases")
    if len(report["xfail"]) > EXPECTED_FAILURES:
        problems.append(f"{len(report['xfail'])} cases are expected to fail, not {EXPECTED_FAILURES}")
    listed = {words[0] for words in rows("onnx_unsupported.txt")}
    other = {record["case"]: record["reason"] for record in report["unsupported"] if record["class"] == "other"}
    problems += [f"unsupported {case}: {reason.splitlines()[0]}" for case, reason in other.items() if case not in listed]
    return problems, listed - other.keys()


def main():
    candela, name, backend, *flags = sys.argv[1:]
    status, report = run(candela, backend, flags)
    problems, unneeded = check(report, status, name)
    if unneeded:
        print(f"{name}: {len(unneeded)} names of onnx_unsupported.txt may go: {' '.join(sorted(unneeded)[:20])}")
    for problem in problems:
        print(f"{name}: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
