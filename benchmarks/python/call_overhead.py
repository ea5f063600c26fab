#!/usr/bin/env python3
"""What a call from Python costs over the C API, beside ONNX Runtime, and how long the import takes.

usage: benchmarks/python/call_overhead.py [--candela FILE] [--package DIR] [--rounds 7] [--calls 20000] [--report FILE]

The model adds four floats to themselves, so that a call is all that there is to measure. Forms are called in turns; the
shortest round counts. The C API is what `candela bench` measures of the same model, in a process of its own. An import is
the shortest of ten fresh interpreters, less the shortest of ten that import nothing.

Needs a build in build/, and a Python of the version that it was built for with numpy, onnx and onnxruntime:
    python3 -m venv venv && venv/bin/pip install -r tests/models/requirements.txt -r tests/onnx/requirements.txt
    venv/bin/python benchmarks/python/call_overhead.py

Exit status: 0 the goals are held, 1 they are not, 2 bad usage or nothing to run.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import numpy as np
import onnx
import onnxruntime

from peers import machine

SCHEMA = "candela.python_calls/1"
GOALS = {"call_over_c_us": 15, "import_ms": 150}


def tiny_model():
    def value(name):
        return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4])

    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "x"], ["y"])], "tiny", [value("x")], [value("y")])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


def c_api_us(tool, content):
    with tempfile.TemporaryDirectory() as folder:
        model, report = pathlib.Path(folder, "tiny.onnx"), pathlib.Path(folder, "bench.json")
        model.write_bytes(content)
        subprocess.run([tool, "bench", model, "--backend", "cpu", "--threads", "1", "--json", report], check=True,
                       stdout=subprocess.DEVNULL)
        return json.loads(report.read_text())["latency_ms"]["min"] * 1000


def forms(content):
    """{name: a call}, each with the same answer."""
    import candela
    session = candela.compile(content, "cpu")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    peer = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    x, y = np.arange(4, dtype=np.float32), np.empty(4, np.float32)
    named, memory = {"x": x}, {"y": y}
    binding = peer.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y", "cpu")
    calls = {
        "candela_run": lambda: session.run(named)["y"],
        "candela_call": lambda: session(x),
        "candela_run_into_memory": lambda: session.run(named, memory)["y"],
        "candela_submit_and_wait": lambda: session.submit(named).result()["y"],
        "onnxruntime_run": lambda: peer.run(None, named)[0],
        "onnxruntime_run_with_io_binding": lambda: (peer.run_with_iobinding(binding), binding.copy_outputs_to_cpu()[0])[1],
    }
    for name, call in calls.items():
        np.testing.assert_array_equal(call(), x + x, name)
    return calls


def shortest_us(calls, rounds, count):
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            begin = time.perf_counter()
            for _ in range(count):
                call()
            best[name] = min(best[name], (time.perf_counter() - begin) / count * 1e6)
    return {name: round(us, 3) for name, us in best.items()}


def start_ms(statement):
    def once():
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        return (time.perf_counter() - begin) * 1e3

    return min(once() for _ in range(10))


def import_ms(package):
    os.environ["PYTHONPATH"] = str(package)
    nothing = start_ms("pass")
    return {name: round(start_ms(f"import {name}") - nothing, 1) for name in ("candela", "numpy", "onnxruntime")}


def measure(arguments):
    sys.path.insert(0, str(arguments.package))
    content = tiny_model().SerializeToString()
    calls = shortest_us(forms(content), arguments.rounds, arguments.calls)
    c_api = c_api_us(arguments.candela, content)
    imports = import_ms(arguments.package)
    found = {"call_over_c_us": round(calls["candela_run"] - c_api, 3), "import_ms": imports["candela"]}
    import candela
    return {
        "schema": SCHEMA,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "versions": {"candela": candela.__version__, "onnxruntime": onnxruntime.__version__, "numpy": np.__version__,
                     "python": platform.python_version()},
        "machine": machine(),
        "settings": {"rounds": arguments.rounds, "calls": arguments.calls, "backend": "cpu", "threads": 1},
        "c_api_us": round(c_api, 3), "calls_us": calls, "import_ms": imports,
        "goals": [{"goal": name, "at_most": most, "found": found[name], "passed": found[name] <= most}
                  for name, most in GOALS.items()],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--package", type=pathlib.Path, default=ROOT / "build/python", help="where the package is")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=20000, help="of each form in a round")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/python_calls.json")
    arguments = parser.parse_args()
    if not arguments.candela.is_file() or not arguments.package.is_dir():
        print(f"{arguments.candela} or {arguments.package} is missing; build them first", file=sys.stderr)
        return 2
    report = measure(arguments)
    print(f"C API                            {report['c_api_us']:8.2f} us")
    for name, us in report["calls_us"].items():
        print(f"{name:32} {us:8.2f} us")
    for name, ms in report["import_ms"].items():
        print(f"import {name:25} {ms:8.1f} ms")
    arguments.report.write_text(json.dumps(report, indent=2) + "\n")
    print(f"report {arguments.report}")
    return 0 if all(goal["passed"] for goal in report["goals"]) else 1


if __name__ == "__main__":
    sys.exit(main())
