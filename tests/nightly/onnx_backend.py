#!/usr/bin/env python3
"""Lets ONNX's own test runner drive the Python package by the interface onnx.backend.

usage: tests/nightly/onnx_backend.py [--package DIR] [--report FILE]

Runs the cases Node, Simple, PyTorchConverted and PyTorchOperator of the installed `onnx` package on soft and on cpu, with the
runner's own tolerances. (Real downloads its models, so it is left out.) Every case that does not pass is in the report: what
Candela refuses by its reason, what differs by name. The runner compares random numbers by value and halves within 1e-3;
`candela conform --tier onnx` does not, so it counts some cases more. Writes benchmarks/results/onnx_backend.json.

Needs a build in build/, and a Python of the version that it was built for with the packages of tests/onnx/requirements.txt.

Exit status: 0 nothing differs but the cases that are named here, 1 something does, 2 bad usage or nothing to run.
"""
import argparse
import collections
import pathlib
import platform
import re
import sys
import unittest
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.onnx_backend/1"
BACKENDS = ("soft", "cpu")
KINDS = ("Node", "Simple", "PyTorchConverted", "PyTorchOperator")
KNOWN = (
    (r"test_bernoulli", "random numbers, of another generator"),
    (r"test_training_dropout", "random numbers, of another generator"),
    (r"test_attention_4d_causal_fp16", "f16, of which the runner wants 1e-3: sums are of f32 here, and rounded once"),
    (r"test_adam_multiple", "data that was made with an epsilon which the node does not have"),
    (r"test_dft_inverse", "results beside 0, of which the runner wants 1e-7"),
)


class Outcomes(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.passed = []

    def addSuccess(self, test):
        self.passed.append(name_of(test))


def name_of(test):
    return test.id().split(".")[-1].removesuffix("_cpu")


def reason(traceback):
    """What an exception said, by what is the same in many cases."""
    last = next((line for line in traceback.splitlines() if re.match(r"candela\.errors\.|AssertionError", line)),
                traceback.strip().splitlines()[-1])
    return re.sub(r"^candela\.errors\.\w+: (model\.onnx: )?", "", last)


def run(backend, cases):
    outcomes = Outcomes()
    unittest.defaultTestLoader.loadTestsFromTestCase(cases).run(outcomes)
    failed = [{"case": name_of(test), "known": next((why for pattern, why in KNOWN if re.match(pattern, name_of(test))), None)}
              for test, _ in outcomes.failures]
    refused = [{"case": name_of(test), "reason": reason(text)} for test, text in outcomes.errors]
    refused += [{"case": name_of(test), "reason": text} for test, text in outcomes.skipped if "device" not in text]
    return {"total": len(outcomes.passed) + len(failed) + len(refused), "passed": len(outcomes.passed),
            "failed": failed, "refused": refused}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--package", type=pathlib.Path, default=ROOT / "build/python", help="where the package is")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/onnx_backend.json")
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.package))
    warnings.simplefilter("ignore")  # overflows that the cases are about
    try:
        import candela
        import candela.onnx_backend
        import onnx
        from onnx.backend.test.runner import Runner
    except ImportError as error:
        print(f"onnx_backend: {error}", file=sys.stderr)
        return 2
    runs = []
    for name in BACKENDS:
        backend = type(name, (candela.onnx_backend.Backend,), {"backends": name})
        cases = Runner(backend).test_cases
        for kind in KINDS:
            runs.append({"backend": name, "kind": kind, **run(backend, cases[f"OnnxBackend{kind}ModelTest"])})
            print("{backend:5} {kind:17} {passed}/{total} passed".format_map(runs[-1]), flush=True)
    nightly_report.write(arguments.report, {
        "schema": SCHEMA, "date": nightly_report.now(),
        "versions": {"candela": candela.__version__, "onnx": onnx.__version__, "python": platform.python_version()},
        "runs": runs})
    unknown = [record["case"] for each in runs for record in each["failed"] if not record["known"]]
    counts = collections.Counter(record["reason"] for each in runs for record in each["refused"])
    for text, count in counts.most_common(8):
        print(f"  {count:3}  {text[:120]}")
    for case in unknown:
        print(f"DIFFERS {case}")
    print(f"report {arguments.report}")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
