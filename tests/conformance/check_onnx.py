#!/usr/bin/env python3
"""Runs `candela conform --tier onnx` and holds it to a committed minimum.

usage: check_onnx.py CANDELA MINIMUM_FILE NAME BACKEND [FLAG...]

MINIMUM_FILE has lines of `NAME NUMBER`: how many cases pass at least. No case may fail, all of the suite must have run,
and the report must agree with itself. Exit status: 0 held, 1 not.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

DATA = pathlib.Path("/usr/share/libonnx-testdata/data/node")


def minimum(path, name):
    for line in pathlib.Path(path).read_text().splitlines():
        words = line.split("#")[0].split()
        if words and words[0] == name:
            return int(words[1])
    sys.exit(f"{path}: no line for {name}")


def main():
    candela, minimum_file, name, backend, *flags = sys.argv[1:]
    wanted = minimum(minimum_file, name)
    with tempfile.TemporaryDirectory() as folder:
        report_file = pathlib.Path(folder) / "report.json"
        command = [candela, "conform", "--backend", backend, "--tier", "onnx", "--json", str(report_file), *flags]
        status = subprocess.run(command).returncode
        report = json.loads(report_file.read_text())
    problems = []
    in_suite = sum((folder / "model.onnx").is_file() for folder in DATA.iterdir())
    if report["total"] != in_suite:
        problems.append(f"{report['total']} cases ran, the suite has {in_suite}")
    if report["passed"] + len(report["failed"]) + len(report["unsupported"]) + len(report["xfail"]) != report["total"]:
        problems.append("passed, failed, unsupported and xfail do not add up to the total")
    if report["passed"] < wanted:
        problems.append(f"{report['passed']} cases passed, {minimum_file} wants {wanted}")
    for failed in report["failed"]:
        problems.append(f"{failed['case']}: {failed['reason']}")
    if (status != 0) != bool(report["failed"]):
        problems.append(f"exit status {status} with {len(report['failed'])} failed cases")
    for unsupported in report["unsupported"]:
        print(f"unsupported {unsupported['case']}: {unsupported['reason'].splitlines()[0]}")
    for problem in problems:
        print(f"{name}: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
