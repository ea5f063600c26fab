#!/usr/bin/env python3
"""Compares TensorFlow Lite models with LiteRT, run live: single operators and whole networks.

usage: tests/nightly/tflite.py [--candela FILE] [--backend B]...

The operators are those of tests/tflite/cases.py, with the reference kernels of LiteRT; tests/tflite/expected.json has to be what
they answer. The networks come from Keras by TensorFlow's converter. Integers may be apart by the steps that a case allows, of
networks by 4; floats by 1e-5 of the largest, of networks too, which with activations of 16 bits may be 0.003 apart.

Writes benchmarks/results/tflite.json and the table of differences in docs/reference/tflite.md. Needs a build in build/, flatc, and
Python with the packages of tests/tflite/requirements.txt.

Exit status: 0 all agree, 1 some do not, 2 bad usage or nothing to run.
"""
import argparse
import importlib.metadata
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/lib"), str(ROOT / "tests/tflite")]
import cases  # noqa: E402
import networks  # noqa: E402
import nightly_report  # noqa: E402
import run_cases  # noqa: E402
import tflite_model  # noqa: E402
import write_expected  # noqa: E402

PAGE = ROOT / "docs/reference/tflite.md"
BEGIN, END = "<!-- differences: tests/nightly/tflite.py -->\n", "<!-- end of differences -->\n"
NETWORK_STEPS = 4    # of an output of integers, behind tens of layers
NETWORK_SHARE = 3e-3  # of the largest value, with activations of 16 bits: twice what was seen
NUMPY = {"f32": "float32", "f16": "float16", "i8": "int8", "u8": "uint8", "i16": "int16", "i32": "int32", "i64": "int64",
         "bool": "bool"}
TOLERANCE = 1e-5     # of the largest value


def run(candela, backend, path, feeds, outputs, folder):
    """What Candela answers, in the order of `outputs`; a message where it does not."""
    command = [candela, "run", str(path), "--backend", backend, "--output", str(folder / "out")]
    for name, value in feeds.items():
        np.save(folder / f"{name}.npy", value)
        command += ["--input", f"{name}={folder}/{name}.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr.strip()
    return [np.load(folder / "out" / f"{name}.npy") for name in outputs]


def difference(expected, got):
    """The largest one of integers in steps, of floats as a share of the largest value."""
    if expected.shape != got.shape:
        return float("inf")
    apart = np.abs(expected.astype(np.float64) - got.astype(np.float64)).max(initial=0)
    if expected.dtype.kind != "f":
        return float(apart)
    return float(apart / max(1e-30, np.abs(expected.astype(np.float64)).max(initial=0)))


def operator_results(candela, backend, folder):
    chosen = [run_cases.with_shapes(case) for case in cases.CASES if case.name in run_cases.EXPECTED]
    tflite_model.write_models({case.name: tflite_model.model_text(case) for case in chosen}, folder)
    results = []
    for case in chosen:
        path = folder / f"{case.name}.tflite"
        answers = write_expected.answer(case, path)
        feeds = {f"in{i}": np.array(tensor.values, NUMPY[tensor.type]).reshape(tensor.shape)
                 for i, tensor in enumerate(case.inputs) if tensor is not None and not tensor.const}
        got = run(candela, backend, path, feeds, [f"out{i}" for i in range(len(case.outputs))], folder)
        result = {"case": case.name, "operator": case.op, "type": case.outputs[0].type, "backend": backend,
                  "known": answers == run_cases.EXPECTED[case.name]}
        if isinstance(got, str):
            results.append(result | {"passed": False, "reason": got})
            continue
        apart, passed = 0, result["known"]
        for value, answer in zip(got, answers):
            expected = np.array(answer["values"], value.dtype).reshape(answer["shape"])
            apart = max(apart, difference(expected, value))
            allowed = case.tolerance if value.dtype.kind == "f" else case.steps
            passed = passed and difference(expected, value) <= allowed
        results.append(result | {"apart": apart, "passed": bool(passed)})
    return results


def network_result(candela, backend, path, folder):
    interpreter = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    source, feeds = np.random.default_rng(4), {}
    runner = interpreter.get_signature_runner()
    for name, detail in runner.get_input_details().items():
        value = source.standard_normal(detail["shape"])
        if detail["dtype"] == np.int8:
            scale, zero = detail["quantization"]
            value = np.clip(np.round(value / scale + zero), -128, 127)
        feeds[name] = value.astype(detail["dtype"])
    expected = runner(**feeds)
    got = run(candela, backend, path, feeds, list(expected), folder)
    result = {"network": path.name.removesuffix(".tflite"), "backend": backend}
    if isinstance(got, str):
        return result | {"passed": False, "reason": got}
    kind = result["network"].split(".")[1]
    apart = max(difference(value, mine) for value, mine in zip(expected.values(), got))
    allowed = {"int8": NETWORK_STEPS, "int16x8": NETWORK_SHARE}.get(kind, TOLERANCE)
    same = float(np.mean([np.mean(value == mine) for value, mine in zip(expected.values(), got)]))
    return result | {"apart": apart, "alike": same, "passed": bool(apart <= allowed)}


def differences_text(report):
    """Integers by operator, those that are not all the same."""
    operators = {}
    for result in report["operators"]:
        if result["type"][0] not in "iu" or result["backend"] != report["operators"][0]["backend"]:
            continue
        entry = operators.setdefault(result["operator"], {"cases": 0, "exact": 0, "most": 0})
        entry["cases"] += 1
        entry["exact"] += result.get("apart") == 0
        entry["most"] = max(entry["most"], result.get("apart", 0))
    text = "| operator | cases of integers | with the same bits | most steps apart |\n|---|---|---|---|\n"
    for name, entry in sorted(operators.items()):
        if entry["exact"] != entry["cases"]:
            text += f"| {name} | {entry['cases']} | {entry['exact']} | {entry['most']:.0f} |\n"
    same = sorted(name for name, entry in operators.items() if entry["exact"] == entry["cases"])
    text += f"\nThe same bits in every case: {', '.join(same)}.\n"
    text += "\n| network | apart | elements alike |\n|---|---|---|\n"
    for result in report["networks"]:
        if result["backend"] == report["networks"][0]["backend"]:
            unit = " steps" if result["network"].endswith(".int8") else " of the largest"
            text += f"| {result['network']} | {result.get('apart', 0):.2g}{unit} | {result.get('alike', 0):.1%} |\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--backend", action="append", help="instead of soft and cpu; may be given again")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/tflite.json")
    arguments = parser.parse_args()
    if not arguments.candela.is_file():
        print(f"tflite: {arguments.candela} is missing; build it first", file=sys.stderr)
        return 2
    report = {"schema": "candela.tflite/1", "date": nightly_report.now(),
              "machine": nightly_report.machine(),
              "versions": {name: importlib.metadata.version(name) for name in ("ai-edge-litert", "tensorflow-cpu")}, "operators": [], "networks": []}
    with tempfile.TemporaryDirectory(prefix="candela_tflite_") as folder:
        folder = pathlib.Path(folder)
        paths = networks.write(folder)
        for backend in arguments.backend or ["soft", "cpu"]:
            report["operators"] += operator_results(arguments.candela, backend, folder)
            report["networks"] += [network_result(arguments.candela, backend, path, folder) for path in paths]
    results = report["operators"] + report["networks"]
    report |= {"passed": sum(result["passed"] for result in results), "total": len(results)}
    nightly_report.write(arguments.report, report)
    page = PAGE.read_text()
    PAGE.write_text(page.split(BEGIN)[0] + BEGIN + differences_text(report) + END + page.split(END)[1])
    for result in results:
        if not result["passed"]:
            print(json.dumps(result))
    print(f"{report['passed']} of {report['total']} agree")
    return 0 if report["passed"] == report["total"] else 1


if __name__ == "__main__":
    sys.exit(main())
