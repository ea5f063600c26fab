#!/usr/bin/env python3
"""Recurrent layers of 1,000 steps, Candela beside ONNX Runtime on one thread, alternating in one run.

usage: benchmarks/rnn.py [--candela FILE] [--models DIR] [--only NAME]... [--steps 1000] [--rounds 3] [--seconds 2]
                         [--backend B] [--report FILE]

Each model is one bidirectional layer of 128 inputs and 256 hidden units with random weights, at batch 1 and 8; it is
written to DIR first. The best over the rounds counts. Ratios are peer / candela: above 1, Candela is faster. Each
answer is checked first, within 2e-4 of the largest value of ONNX Runtime's.

Needs a build in build/ (candela, the plugin), and Python with numpy, onnx and onnxruntime:
    python3 -m venv venv && venv/bin/pip install -r tests/models/requirements.txt -r tests/onnx/requirements.txt
    venv/bin/python benchmarks/rnn.py

Exit status: 0 all answers are right, 1 some are not, 2 bad usage or nothing to run.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import sys

import numpy as np
import onnx
import onnxruntime as ort

from peers import ROOT, Candela, OnnxRuntime, Unusable, check, machine, random_feeds

SCHEMA = "candela.rnn/1"
INPUTS, HIDDEN, DIRECTIONS = 128, 256, 2
GATES = {"lstm": 4, "gru": 3, "rnn": 1}
MODELS = [f"{layer}_b{batch}" for layer in GATES for batch in (1, 8)]


def write_model(name, steps, path):
    layer, batch = name.split("_b")
    random = np.random.default_rng(7)
    rows = GATES[layer] * HIDDEN

    def weights(label, *shape):
        values = random.uniform(-1, 1, (DIRECTIONS, *shape)) / np.sqrt(HIDDEN)
        return onnx.numpy_helper.from_array(values.astype(np.float32), label)

    attributes = {"linear_before_reset": 1} if layer == "gru" else {}
    node = onnx.helper.make_node(layer.upper(), ["x", "w", "r", "b"], ["y"], direction="bidirectional",
                                 hidden_size=HIDDEN, **attributes)
    graph = onnx.helper.make_graph(
        [node], name,
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [steps, int(batch), INPUTS])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [steps, DIRECTIONS, int(batch), HIDDEN])],
        [weights("w", rows, INPUTS), weights("r", rows, HIDDEN), weights("b", 2 * rows)])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 14)], ir_version=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)


def measure(arguments, name, report):
    path = arguments.models / f"{name}_{arguments.steps}.onnx"
    write_model(name, arguments.steps, path)
    peer = OnnxRuntime(path, {}, 1)
    peer.feeds = random_feeds(peer.session)
    candela = Candela(arguments, path, 1, dims=())
    checked = check(name, candela.output("y"), peer.run()[0])
    best = {engine.name: float("inf") for engine in (candela, peer)}
    for _ in range(arguments.rounds):
        for engine in (candela, peer):
            best[engine.name] = min(best[engine.name], engine.best(arguments.seconds))
    report["versions"]["candela"] = candela.version
    return {"model": name, "steps": arguments.steps,
            "candela_ms": round(best["candela"], 3), "onnxruntime_ms": round(best["onnxruntime"], 3),
            "vs_onnxruntime": round(best["onnxruntime"] / best["candela"], 3),
            "compile_ms": round(candela.compile_ms, 1), "check": checked}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build/models", help="where models are written")
    parser.add_argument("--only", action="append", choices=MODELS, help="one model; may be given again")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2, help="per engine and round")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/rnn.json")
    arguments = parser.parse_args()
    report = {
        "schema": SCHEMA,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "versions": {"candela": None, "onnxruntime": ort.__version__, "numpy": np.__version__,
                     "python": platform.python_version()},
        "machine": machine(),
        "settings": {"rounds": arguments.rounds, "seconds": arguments.seconds, "backend": arguments.backend,
                     "threads": 1, "inputs": INPUTS, "hidden": HIDDEN, "directions": DIRECTIONS},
        "results": [],
    }
    try:
        if not arguments.candela.is_file():
            raise Unusable(f"{arguments.candela} is missing; build it first")
        for name in arguments.only or MODELS:
            result = measure(arguments, name, report)
            report["results"].append(result)
            print(f"{name:8}  candela {result['candela_ms']:8.3f} ms  onnxruntime {result['onnxruntime_ms']:8.3f} ms  "
                  f"vs_onnxruntime {result['vs_onnxruntime']:5.2f}  compile {result['compile_ms']:7.1f} ms  "
                  f"{'right' if result['check']['passed'] else 'WRONG: ' + json.dumps(result['check'])}", flush=True)
        arguments.report.parent.mkdir(parents=True, exist_ok=True)
        part = arguments.report.with_name(arguments.report.name + ".part")
        part.write_text(json.dumps(report, indent=2) + "\n")
        os.replace(part, arguments.report)
    except (Unusable, OSError, ValueError) as error:
        print(f"rnn: {error}", file=sys.stderr)
        return 2
    print(f"report {arguments.report}")
    return 1 if any(not result["check"]["passed"] for result in report["results"]) else 0


if __name__ == "__main__":
    sys.exit(main())
