#!/usr/bin/env python3
"""Compares Candela with ONNX Runtime, run live, on whole models.

usage: tests/nightly/onnxruntime_equality.py [--candela FILE] [--models DIR] [--backend B]... [--report FILE]

Each model (digits, mbv2) runs on each backend (soft, template) as it is and with --to-primitives, on the random
input 1 at batch 1. A case passes where every output has the shape and type that ONNX Runtime gives it and differs by
at most 2e-4 of its largest value. Writes the report benchmarks/results/onnxruntime_equality.json.

Needs a build in build/, and Python with numpy and onnxruntime:
    python3 -m venv venv && venv/bin/pip install -r tests/models/requirements.txt
    venv/bin/python tests/nightly/onnxruntime_equality.py

Exit status: 0 all cases agree, 1 some do not, 2 bad usage or nothing to run.
"""
import argparse
import json
import pathlib
import platform
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime as ort

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/models"))
from random_input import random_input  # noqa: E402

SCHEMA = "candela.onnxruntime_equality.v1"
SEED = 1
TOLERANCE = 2e-4
BACKENDS = ("soft", "template")
TIMEOUT_SECONDS = 900
NUMPY_TYPES = {"tensor(float)": np.float32}


class Unusable(Exception):
    """There is nothing to compare: a missing program or model."""


def digits_model(_arguments):
    return ROOT / "examples/digits/digits.onnx"


def mbv2_model(arguments):
    path = arguments.models / "mbv2.onnx"
    if not path.is_file():
        writer = arguments.candela.parent / "candela-gen-models"
        if not writer.is_file():
            raise Unusable(f"{path} is missing, and so is {writer}, which writes it")
        subprocess.run([writer, arguments.models, "--only", "mbv2"], check=True, stdout=subprocess.DEVNULL)
    return path


MODELS = {"digits": digits_model, "mbv2": mbv2_model}


def run_onnxruntime(model):
    """ONNX Runtime's outputs by name, for batch 1 of the random input."""
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    feeds, first = {}, 0
    for value in session.get_inputs():
        if value.type not in NUMPY_TYPES:
            raise Unusable(f"{model}: input {value.name} is {value.type}; random inputs are float32")
        shape = [dim if isinstance(dim, int) else 1 for dim in value.shape]
        feeds[value.name] = random_input(SEED, shape, first)
        first += feeds[value.name].size
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds)))


def run_candela(arguments, model, backend, to_primitives, directory):
    """The JSON of `candela run`, or a string that says why there is none."""
    command = [str(arguments.candela), "run", str(model), "--backend", backend]
    command += ["--random", str(SEED), "--dim", "N=1", "--output", str(directory), "--json", "-"]
    command += ["--to-primitives"] if to_primitives else []
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        return f"no answer after {TIMEOUT_SECONDS} s"
    except OSError as error:
        raise Unusable(f"cannot run {arguments.candela}: {error.strerror}") from error
    if done.returncode != 0:
        last = (done.stderr.strip() or "nothing on stderr").splitlines()[-1]
        return f"exit status {done.returncode}: {last}"
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError as error:
        return f"stdout is not JSON: {error}"


def compare(name, got_file, expected):
    """One output's record: largest difference, absolute and in parts of the largest expected value."""
    record = {"name": name, "shape": list(expected.shape), "passed": False}
    try:
        got = np.load(got_file)
    except (OSError, ValueError) as error:
        return record | {"reason": f"cannot read {got_file.name}: {getattr(error, 'strerror', None) or error}"}
    if got.shape != expected.shape or got.dtype != expected.dtype:
        reason = f"is {got.dtype}{list(got.shape)}, expected {expected.dtype}{list(expected.shape)}"
        return record | {"reason": reason}
    if not np.isfinite(got).all():
        return record | {"reason": f"{int((~np.isfinite(got)).sum())} values are not finite"}
    largest = float(np.abs(expected).max())
    delta = float(np.abs(got.astype(np.float64) - expected.astype(np.float64)).max())
    record |= {"max_abs": delta, "largest": largest, "max_of_largest": delta / largest if largest else delta}
    record["passed"] = delta <= TOLERANCE * largest
    if not record["passed"]:
        record["reason"] = f"differs by {record['max_of_largest']:.3g} of the largest value"
    return record


def run_case(arguments, name, model, backend, to_primitives, expected):
    """One case's record, and the version that the tool names itself by."""
    case = {"model": name, "backend": backend, "to_primitives": to_primitives, "passed": False, "outputs": []}
    with tempfile.TemporaryDirectory(prefix="candela_onnxruntime_") as directory:
        answer = run_candela(arguments, model, backend, to_primitives, directory)
        if isinstance(answer, str):
            return case | {"reason": answer}, None
        for output, values in expected.items():
            case["outputs"].append(compare(output, pathlib.Path(directory) / f"{output}.npy", values))
    failed = [record for record in case["outputs"] if not record["passed"]]
    case["passed"] = not failed
    if failed:
        case["reason"] = f"{failed[0]['name']}: {failed[0]['reason']}"
    if "placement" in answer:
        case["placement"] = answer["placement"]
    return case, answer.get("candela_version")


def write_report(path, cases, candela_version):
    report = {
        "schema": SCHEMA,
        "date": nightly_report.now(),
        "versions": {
            "candela": candela_version,
            "onnxruntime": ort.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "seed": SEED,
        "tolerance": TOLERANCE,
        "passed": sum(case["passed"] for case in cases),
        "total": len(cases),
        "cases": cases,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    nightly_report.write(path, report)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build/models",
                        help="where mbv2.onnx is, or is to be written")
    parser.add_argument("--backend", action="append", help="instead of soft and template; may be given again")
    parser.add_argument("--report", type=pathlib.Path,
                        default=ROOT / "benchmarks/results/onnxruntime_equality.json")
    arguments = parser.parse_args()

    cases, version = [], None
    try:
        if not arguments.candela.is_file():
            raise Unusable(f"{arguments.candela} is missing; build it first")
        for name, locate in MODELS.items():
            model = locate(arguments)
            expected = run_onnxruntime(model)
            for backend in arguments.backend or BACKENDS:
                for to_primitives in (False, True):
                    case, said = run_case(arguments, name, model, backend, to_primitives, expected)
                    version = version or said
                    cases.append(case)
                    what = f"{name:8} {backend:10} {'primitives' if to_primitives else 'as it is':10}"
                    worst = max((r.get("max_of_largest", 0) for r in case["outputs"]), default=0)
                    print(f"{what}  {'ok' if case['passed'] else 'FAILED'}  "
                          f"{case.get('reason') or f'{worst:.2g} of the largest value'}", flush=True)
        write_report(arguments.report, cases, version)
    except (Unusable, subprocess.CalledProcessError, OSError) as error:
        print(f"onnxruntime_equality: {error}", file=sys.stderr)
        return 2
    passed = sum(case["passed"] for case in cases)
    print(f"{passed} of {len(cases)} agree with ONNX Runtime {ort.__version__}; report {arguments.report}")
    return 0 if passed == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
