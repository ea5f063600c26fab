#!/usr/bin/env python3
"""Runs random models with control flow on our own backends.

usage: tests/nightly/control_flow.py [--candela FILE] [--seed N] [--count N] [--report FILE]

tests/fuzz/write_control_flow.py writes the models, on whose answers ONNX's reference evaluator and ONNX Runtime agree;
`candela conform` runs them on reference, soft, cpu and the template, there in primitives. The seed is the day's, so
that each night sees models of its own, and stands in the report. Writes benchmarks/results/control_flow.json.

Needs a build in build/, and Python with the packages of tests/onnx/requirements.txt and tests/models/requirements.txt.

Exit status: 0 all passed, 1 some did not, 2 bad usage or nothing to run.
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

import onnx
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

WRITER = ROOT / "tests/fuzz/write_control_flow.py"
SCHEMA = "candela.control_flow.v1"
RUNS = (("reference", ()), ("soft", ()), ("cpu", ()), ("template", ("--to-primitives",)))
TIMEOUT_SECONDS = 3600


def conform(candela, data, backend, flags, folder):
    """One run's record, and the version that the tool names itself by."""
    report_file = pathlib.Path(folder) / f"{backend}.json"
    subprocess.run([candela, "conform", "--tier", "onnx", "--backend", backend, "--onnx-data", data, "--json",
                    report_file, *flags], timeout=TIMEOUT_SECONDS)
    report = json.loads(report_file.read_text())
    run = {"backend": backend, "to_primitives": bool(flags), "total": report["total"], "passed": report["passed"],
           "failed": report["failed"],
           "unsupported": [{"case": record["case"], "reason": record["reason"].splitlines()[0]}
                           for record in report["unsupported"]]}
    return run, report["candela_version"]


def main():
    today = datetime.datetime.now(datetime.timezone.utc)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--seed", type=int, default=int(today.strftime("%Y%m%d")))
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/control_flow.json")
    arguments = parser.parse_args()
    if not arguments.candela.is_file():
        print(f"control_flow: {arguments.candela} is missing; build it first", file=sys.stderr)
        return 2
    try:
        runs, version = [], None
        with tempfile.TemporaryDirectory(prefix="candela_control_flow_") as folder:
            data, written = pathlib.Path(folder) / "data", pathlib.Path(folder) / "written.json"
            subprocess.run([sys.executable, "-B", WRITER, data, "--seed", str(arguments.seed), "--count",
                            str(arguments.count), "--json", written], check=True, timeout=TIMEOUT_SECONDS)
            models = json.loads(written.read_text())
            for backend, flags in RUNS:
                run, version = conform(arguments.candela, data, backend, flags, folder)
                runs.append(run)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        print(f"control_flow: {error}", file=sys.stderr)
        return 2
    report = {"schema": SCHEMA, "date": today.strftime("%Y-%m-%dT%H:%M:%SZ"),
              "versions": {"candela": version, "onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__},
              "models": models, "runs": runs}
    nightly_report.write(arguments.report, report)
    for run in runs:
        print(f"{run['backend']:9} {run['passed']}/{run['total']} passed, {len(run['failed'])} failed, "
              f"{len(run['unsupported'])} unsupported")
    print(f"report {arguments.report}")
    return 0 if all(run["passed"] == run["total"] for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
