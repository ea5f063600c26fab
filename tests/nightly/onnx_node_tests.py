#!/usr/bin/env python3
"""Runs the node tests that the newest `onnx` package generates on our own backends.

usage: tests/nightly/onnx_node_tests.py [--candela FILE] [--data DIR] [--report FILE]

Writes the package's cases as folders (or takes those of --data), runs `candela conform` on soft, on cpu and on the
template in primitives, and checks that the committed tables of tests/onnx/ are what the package says. A run passes
where no case fails and every unsupported one is of a class that is ours to refuse. Writes
benchmarks/results/onnx_node_tests.json.

Needs a build in build/, and Python with the packages of tests/onnx/requirements.txt: that of a virtual environment that
has them, or it makes one in build/onnx-venv.

Exit status: 0 all passed, 1 some did not, 2 bad usage or nothing to run.
"""
import argparse
import json
import pathlib
import platform
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

TOOLS = ROOT / "tests/onnx"
SCHEMA = "candela.onnx_node_tests.v1"
RUNS = (("soft", ()), ("cpu", ()), ("template", ("--to-primitives",)))
TIMEOUT_SECONDS = 3600


def python_with_onnx():
    """This interpreter, or one of a virtual environment of ours, that imports the onnx package."""
    try:
        import onnx  # noqa: F401
        return sys.executable
    except ImportError:
        venv = ROOT / "build/onnx-venv"
        python = venv / "bin/python"
        if not python.is_file():
            subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r",
                        str(TOOLS / "requirements.txt")], check=True)
        return str(python)


def conform(candela, data, backend, flags, folder):
    """One run's record, and the version that the tool names itself by."""
    report_file = pathlib.Path(folder) / f"{backend}.json"
    subprocess.run([candela, "conform", "--tier", "onnx", "--backend", backend, "--onnx-data", data, "--json",
                    report_file, *flags], timeout=TIMEOUT_SECONDS)
    report = json.loads(report_file.read_text())
    other = [record for record in report["unsupported"] if record["class"] == "other"]
    run = {"backend": backend, "to_primitives": bool(flags), "total": report["total"], "passed": report["passed"],
           "raw_passed": report["raw_passed"], "failed": report["failed"], "xfail": report["xfail"],
           "unsupported_by_class": report["unsupported_by_class"],
           "unsupported_other": [{"case": record["case"], "reason": record["reason"].splitlines()[0]}
                                 for record in other]}
    return run, report["candela_version"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--data", type=pathlib.Path, help="folders that tests/onnx/write_node_tests.py wrote before")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/onnx_node_tests.json")
    arguments = parser.parse_args()
    if not arguments.candela.is_file():
        print(f"onnx_node_tests: {arguments.candela} is missing; build it first", file=sys.stderr)
        return 2
    try:
        python = python_with_onnx()
        version = subprocess.run([python, "-c", "import onnx; print(onnx.__version__)"], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout.strip()
        tables = {name: subprocess.run([python, "-B", str(TOOLS / name), "--check"]).returncode == 0
                  for name in ("write_history.py", "write_operators.py")}
        runs, candela_version = [], None
        with tempfile.TemporaryDirectory(prefix="candela_onnx_") as folder:
            data = arguments.data or pathlib.Path(folder) / "data"
            if not arguments.data:
                subprocess.run([python, "-B", str(TOOLS / "write_node_tests.py"), str(data)], check=True)
            for backend, flags in RUNS:
                run, candela_version = conform(arguments.candela, data, backend, flags, folder)
                runs.append(run)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        print(f"onnx_node_tests: {error}", file=sys.stderr)
        return 2
    report = {"schema": SCHEMA, "date": nightly_report.now(),
              "versions": {"candela": candela_version, "onnx": version, "python": platform.python_version()},
              "tables": tables, "runs": runs}
    nightly_report.write(arguments.report, report)
    good = all(tables.values()) and not any(run["failed"] or run["unsupported_other"] for run in runs)
    for run in runs:
        print(f"{run['backend']:9} {run['passed']}/{run['total']} passed, {len(run['failed'])} failed, "
              f"{len(run['unsupported_other'])} unsupported for a reason of no class")
    print(f"report {arguments.report}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
