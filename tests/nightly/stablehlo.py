#!/usr/bin/env python3
"""Compares StableHLO programs with JAX, run live on the processor: functions and whole networks.

usage: tests/nightly/stablehlo.py [--candela FILE] [--backend B]...

The functions are those of tests/stablehlo/functions.py, the networks those of networks.py, as this JAX prints them;
tests/stablehlo/programs has to be what it prints. Integers are equal, floats within 1e-5 of the largest value; what is computed in
halves, on backends that do not round to them between two steps, within a step of the half.

Writes benchmarks/results/stablehlo.json. Needs a build in build/, and Python with the packages of
tests/stablehlo/requirements.txt.

Exit status: 0 all agree, 1 some do not, 2 bad usage or nothing to run.
"""
import argparse
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["JAX_PLATFORMS"] = "cpu"
import numpy as np  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/lib"), str(ROOT / "tests/stablehlo")]
import functions  # noqa: E402
import networks  # noqa: E402
import nightly_report  # noqa: E402
import write_programs  # noqa: E402

TOLERANCE = 1e-5  # of the largest value


def run(candela, backend, path, feeds, outputs, folder):
    """What Candela answers, by name; a message where it does not."""
    command = [candela, "run", str(path), "--backend", backend, "--output", str(folder / "out")]
    for name, value in feeds.items():
        np.save(folder / f"{name}.npy", value)
        command += ["--input", f"{name}={folder}/{name}.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr.strip()
    return {name: np.load(folder / "out" / f"{name}.npy") for name in outputs}


def difference(expected, got):
    """Of floats the largest one as a share of the largest value; of others 0 where all are equal, else inf."""
    if expected.shape != got.shape or expected.dtype != got.dtype:
        return float("inf")
    same = (expected == got) | ((expected != expected) & (got != got))
    if same.all():
        return 0.0
    if expected.dtype.kind != "f":
        return float("inf")
    wide, mine = expected.astype(np.float64), got.astype(np.float64)
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0, np.abs(wide - mine)).max()
    return float(apart / max(1e-30, np.abs(wide[np.isfinite(wide)]).max(initial=0)))


def result(candela, backend, name, function, arguments, folder):
    program = functions.text(function, arguments)
    path = folder / f"{name}.mlir"
    path.write_text(program)
    expected = functions.answers(function, arguments, program)
    got = run(candela, backend, path, functions.feeds(arguments), list(expected), folder)
    known = True
    if name in write_programs.STORED:
        known = (write_programs.FOLDER / f"{name}.mlir").read_text() == program.strip() + "\n"
    entry = {"case": name, "backend": backend, "known": known}
    if isinstance(got, str):
        return entry | {"passed": False, "reason": got}
    apart = max(difference(value, got[port]) for port, value in expected.items())
    allowed = TOLERANCE
    if backend != "soft" and name in functions.HALVES:
        allowed = functions.HALVES[name]
        entry |= {"allowed": allowed}
    return entry | {"apart": apart, "passed": bool(apart <= allowed and known)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--backend", action="append", help="instead of soft and cpu; may be given again")
    parser.add_argument("--only", action="append", help="a case; may be given again, and no report is written")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/stablehlo.json")
    arguments = parser.parse_args()
    if not arguments.candela.is_file():
        print(f"stablehlo: {arguments.candela} is missing; build it first", file=sys.stderr)
        return 2
    report = {"schema": "candela.stablehlo/1", "date": nightly_report.now(), "machine": nightly_report.machine(),
              "versions": {name: importlib.metadata.version(name) for name in ("jax", "jaxlib")}}
    kinds = {"functions": functions.FUNCTIONS, "networks": networks.NETWORKS}
    with tempfile.TemporaryDirectory(prefix="candela_stablehlo_") as folder:
        for kind, cases in kinds.items():
            report[kind] = [result(arguments.candela, backend, name, *case, pathlib.Path(folder))
                            for backend in arguments.backend or ["soft", "cpu"]
                            for name, case in cases.items() if not arguments.only or name in arguments.only]
    results = report["functions"] + report["networks"]
    report |= {"passed": sum(entry["passed"] for entry in results), "total": len(results)}
    if not arguments.only:
        nightly_report.write(arguments.report, report)
    for entry in results:
        if not entry["passed"]:
            print(json.dumps(entry))
    print(f"{report['passed']} of {report['total']} agree")
    return 0 if results and report["passed"] == report["total"] else 1


if __name__ == "__main__":
    sys.exit(main())
