#!/usr/bin/env python3
"""Single operators at realistic sizes, whole runs on one thread, Candela beside ONNX Runtime, alternating in one run.

usage: benchmarks/operators.py [--candela FILE] [--only TEXT]... [--rounds 5] [--seconds 0.3] [--backend B] [--report FILE]

A whole run is what a caller waits for: `candela bench` calls the embedding API, the peer its Python session, both with
inputs that lie in memory. Every round measures one engine after the other, and the best over the rounds counts, since a
busy machine only ever adds time. Ratios are peer / candela: above 1, Candela is faster. `kernels_ms` is what the
instructions alone took in a run with a profile. Each answer is checked first, within 2e-4 of the largest value of
ONNX Runtime's.

Needs a build in build/ (candela, the plugin), and Python with numpy, onnx and onnxruntime:
    python3 -m venv venv && venv/bin/pip install -r tests/models/requirements.txt -r tests/onnx/requirements.txt
    venv/bin/python benchmarks/operators.py

Exit status: 0 all answers are right, 1 some are not, 2 bad usage or nothing to run.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper

from peers import ROOT, Candela, OnnxRuntime, Unusable, machine

SCHEMA = "candela.operators/1"
OPSET = 17
random = np.random.default_rng(0)


def f32(*shape):
    return random.standard_normal(shape).astype(np.float32)


def scalar(value, kind=np.float32):
    return np.array(value, kind)


def ints(*values):
    return np.array(values, np.int64)


def one(op, inputs="x", outputs="y", **attributes):
    """A node; names by spaces, "-" is an input that is left out."""
    names = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(op, names, outputs.split(), **attributes)


class Case:
    def __init__(self, name, nodes, inputs, constants=None):
        self.name, self.inputs = name, inputs
        nodes = nodes if isinstance(nodes, list) else [nodes]
        made = {name for node in nodes for name in node.output} - {name for node in nodes for name in node.input}
        self.outputs = [name for node in nodes for name in node.output if name in made]
        graph = helper.make_graph(
            nodes, "operator",
            [helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
             for key, value in inputs.items()],
            [helper.make_empty_tensor_value_info(name) for name in self.outputs],
            [onnx.numpy_helper.from_array(value, key) for key, value in (constants or {}).items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        self.model = onnx.shape_inference.infer_shapes(model)


def elementwise():
    x, positive = {"x": f32(1024, 1024)}, {"x": np.abs(f32(1024, 1024))}
    return [
        Case("Exp 1024x1024", one("Exp"), x),
        Case("Sigmoid 1024x1024", one("Sigmoid"), x),
        Case("Tanh 1024x1024", one("Tanh"), x),
        Case("Sin 1024x1024", one("Sin"), x),
        Case("Sqrt 1024x1024", one("Sqrt"), positive),
        Case("Pow 1024x1024 to 2.5", one("Pow", "x e"), positive, {"e": scalar(2.5)}),
        Case("Clip 1024x1024", one("Clip", "x low high"), x, {"low": scalar(-1), "high": scalar(1)}),
        Case("Greater, Where 1024x1024", [one("Greater", "x zero", "above"), one("Where", "above x zero")], x,
             {"zero": scalar(0)}),
        Case("QuantizeLinear 1024x1024", one("QuantizeLinear", "x scale zero"), x,
             {"scale": scalar(0.05), "zero": scalar(128, np.uint8)}),
        Case("Erf as GELU 1x512x3072",
             [one("Erf", "x", "erf"), one("Add", "erf one", "shifted"), one("Mul", "x shifted", "product"),
              one("Mul", "product half")], {"x": f32(1, 512, 3072)}, {"one": scalar(1), "half": scalar(0.5)}),
        Case("Add 1x256x56x56 and 256x1x1", one("Add", "x b"), {"x": f32(1, 256, 56, 56)}, {"b": f32(256, 1, 1)}),
    ]


def along_axes():
    return [
        Case("Softmax 1x12x512x512", one("Softmax", axis=-1), {"x": f32(1, 12, 512, 512)}),
        Case("LayerNormalization 1x512x1024", one("LayerNormalization", "x s b"), {"x": f32(1, 512, 1024)},
             {"s": f32(1024), "b": f32(1024)}),
        Case("InstanceNormalization 1x64x128x128", one("InstanceNormalization", "x s b"), {"x": f32(1, 64, 128, 128)},
             {"s": f32(64), "b": f32(64)}),
        Case("ReduceMean 4096x1024 axis 1", one("ReduceMean", axes=[-1], keepdims=0), {"x": f32(4096, 1024)}),
        Case("ReduceSum 4096x1024 axis 0", one("ReduceSum", "x axes", keepdims=0), {"x": f32(4096, 1024)},
             {"axes": ints(0)}),
        Case("ArgMax 1024x1000 axis 1", one("ArgMax", axis=1), {"x": f32(1024, 1000)}),
        Case("CumSum 1024x1024 axis 1", one("CumSum", "x axis"), {"x": f32(1024, 1024)}, {"axis": scalar(1, np.int64)}),
        Case("TopK 50 of 30000", one("TopK", "x k", "y at"), {"x": f32(1, 30000)}, {"k": ints(50)}),
        Case("TopK 64 of 64, 4096 rows", one("TopK", "x k", "y at"), {"x": f32(4096, 64)}, {"k": ints(64)}),
    ]


def moving():
    image = {"x": f32(1, 64, 112, 112)}
    return [
        Case("Transpose 1x64x128x128 to NHWC", one("Transpose", perm=[0, 2, 3, 1]), {"x": f32(1, 64, 128, 128)}),
        Case("Transpose 12x512x64 to 12x64x512", one("Transpose", perm=[0, 2, 1]), {"x": f32(12, 512, 64)}),
        Case("Concat 4 of 1x64x56x56", one("Concat", "a b c d", axis=1), {key: f32(1, 64, 56, 56) for key in "abcd"}),
        Case("Pad 1x64x112x112 by 3", one("Pad", "x pads"), image, {"pads": ints(0, 0, 3, 3, 0, 0, 3, 3)}),
        Case("Slice 1x64x112x112 by 2", one("Slice", "x from to axes steps"), image,
             {"from": ints(0, 0), "to": ints(112, 112), "axes": ints(2, 3), "steps": ints(2, 2)}),
        Case("DepthToSpace 1x256x32x32", one("DepthToSpace", blocksize=2), {"x": f32(1, 256, 32, 32)}),
        Case("Gather 512 rows of 30000x768", one("Gather", "t x"), {"x": random.integers(0, 30000, 512)},
             {"t": f32(30000, 768)}),
        Case("ScatterND 1000 rows of 30000x64", one("ScatterND", "x at u"),
             {"x": f32(30000, 64), "at": random.permutation(30000)[:1000].reshape(1000, 1), "u": f32(1000, 64)}),
        Case("GridSample 1x16x64x64", one("GridSample", "x g"), {"x": f32(1, 16, 64, 64), "g": f32(1, 64, 64, 2)}),
        Case("Resize linear 1x64x64x64 by 2", one("Resize", "x - scales", mode="linear"), {"x": f32(1, 64, 64, 64)},
             {"scales": np.array([1, 1, 2, 2], np.float32)}),
        Case("Resize nearest 1x64x64x64 by 2", one("Resize", "x - scales", mode="nearest"), {"x": f32(1, 64, 64, 64)},
             {"scales": np.array([1, 1, 2, 2], np.float32)}),
        Case("Resize cubic 1x16x64x64 by 2", one("Resize", "x - scales", mode="cubic"), {"x": f32(1, 16, 64, 64)},
             {"scales": np.array([1, 1, 2, 2], np.float32)}),
    ]


def windows():
    return [
        Case("MaxPool 3x3 by 2, 1x64x112x112",
             one("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), {"x": f32(1, 64, 112, 112)}),
        Case("AveragePool 7x7, 1x512x14x14", one("AveragePool", kernel_shape=[7, 7]), {"x": f32(1, 512, 14, 14)}),
        Case("Conv 3x3, 16x64x28x28", one("Conv", "x w", pads=[1] * 4), {"x": f32(16, 64, 28, 28)},
             {"w": f32(64, 64, 3, 3)}),
        Case("Conv 3x3 dilated by 4, 1x64x56x56", one("Conv", "x w", pads=[4] * 4, dilations=[4, 4]),
             {"x": f32(1, 64, 56, 56)}, {"w": f32(64, 64, 3, 3)}),
        Case("Conv 3x3 in 8 groups, 1x128x56x56", one("Conv", "x w", pads=[1] * 4, group=8),
             {"x": f32(1, 128, 56, 56)}, {"w": f32(128, 16, 3, 3)}),
        Case("Conv 7x7 depthwise, 1x96x56x56", one("Conv", "x w", pads=[3] * 4, group=96), {"x": f32(1, 96, 56, 56)},
             {"w": f32(96, 1, 7, 7)}),
        Case("Conv of 9, 1x128x1000", one("Conv", "x w", pads=[4, 4]), {"x": f32(1, 128, 1000)},
             {"w": f32(128, 128, 9)}),
        Case("Conv 3x3x3, 1x16x16x32x32", one("Conv", "x w", pads=[1] * 6), {"x": f32(1, 16, 16, 32, 32)},
             {"w": f32(16, 16, 3, 3, 3)}),
        Case("ConvTranspose 4x4 by 2, 1x64x32x32", one("ConvTranspose", "x w", strides=[2, 2], pads=[1] * 4),
             {"x": f32(1, 64, 32, 32)}, {"w": f32(64, 32, 4, 4)}),
    ]


def products():
    return [
        Case("MatMul 1x4096 by 4096x4096", one("MatMul", "x w"), {"x": f32(1, 4096)}, {"w": f32(4096, 4096)}),
        Case("MatMul 1024x1024 of two inputs", one("MatMul", "x w"), {"x": f32(1024, 1024), "w": f32(1024, 1024)}),
        Case("MatMul 96 of 128x64 by 64x128", one("MatMul", "x w"), {"x": f32(96, 128, 64), "w": f32(96, 64, 128)}),
        Case("Einsum bhid,bhjd->bhij", one("Einsum", "x w", equation="bhid,bhjd->bhij"),
             {"x": f32(1, 12, 256, 64), "w": f32(1, 12, 256, 64)}),
        Case("LSTM 64 steps of 256", one("LSTM", "x w r", hidden_size=256), {"x": f32(64, 1, 256)},
             {"w": f32(1, 1024, 256) / 20, "r": f32(1, 1024, 256) / 20}),
        Case("GRU 64 steps of 256", one("GRU", "x w r", hidden_size=256), {"x": f32(64, 1, 256)},
             {"w": f32(1, 768, 256) / 20, "r": f32(1, 768, 256) / 20}),
    ]


class Tool(Candela):
    """candela on inputs that lie in files."""

    def __init__(self, arguments, path, case, folder):
        super().__init__(arguments, path, 1, dims=())
        self.kernels_ms = float("inf")
        for name, value in case.inputs.items():
            np.save(folder / f"{name}.npy", value)
            self.rest += ["--input", f"{name}={folder / f'{name}.npy'}"]

    def best(self, seconds):
        report = self.call("bench", "--seconds", str(seconds))
        self.kernels_ms = min(self.kernels_ms, sum(op["ms"] for op in report["ops"]))
        return report["latency_ms"]["min"]


def same(got, want):
    """Within 2e-4 of the largest value; quantized ones within a step, indices exactly."""
    if got.shape != want.shape:
        return False
    if want.dtype == np.int64:
        return bool((got == want).all())
    delta = np.abs(got.astype(np.float64) - want.astype(np.float64)).max()
    return bool(delta <= (1 if want.dtype == np.uint8 else 2e-4 * np.abs(want).max()))


def measure(arguments, case, report, folder):
    path = folder / "operator.onnx"
    onnx.save(case.model, path)
    peer, candela = OnnxRuntime(path, case.inputs, 1), Tool(arguments, path, case, folder)
    right = all(same(candela.output(name), want) for name, want in zip(case.outputs, peer.run()))
    best = {engine.name: float("inf") for engine in (candela, peer)}
    for _ in range(arguments.rounds):
        for engine in (candela, peer):
            best[engine.name] = min(best[engine.name], engine.best(arguments.seconds))
    report["versions"]["candela"] = candela.version
    return {"operator": case.name, "candela_ms": round(best["candela"], 4),
            "kernels_ms": round(candela.kernels_ms, 4), "onnxruntime_ms": round(best["onnxruntime"], 4),
            "vs_onnxruntime": round(best["onnxruntime"] / best["candela"], 4), "right": right}


def geometric_mean(values):
    return round(math.exp(sum(map(math.log, values)) / len(values)), 4)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--only", action="append", help="operators with this text in their name; may be given again")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="per engine and round")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/operators.json")
    arguments = parser.parse_args()
    report = {
        "schema": SCHEMA,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "versions": {"candela": None, "onnxruntime": ort.__version__, "numpy": np.__version__,
                     "python": platform.python_version()},
        "machine": machine(),
        "settings": {"rounds": arguments.rounds, "seconds": arguments.seconds, "backend": arguments.backend,
                     "threads": 1},
        "geometric_mean": None, "geometric_mean_of_kernels": None, "results": [],
    }
    cases = [case for family in (elementwise, along_axes, moving, windows, products) for case in family()
             if not arguments.only or any(text in case.name for text in arguments.only)]
    try:
        if not arguments.candela.is_file():
            raise Unusable(f"{arguments.candela} is missing; build it first")
        if not cases:
            raise Unusable("no operator has such a name")
        with tempfile.TemporaryDirectory(prefix="candela_operators_") as folder:
            for case in cases:
                result = measure(arguments, case, report, pathlib.Path(folder))
                report["results"].append(result)
                print(f"{case.name:38} candela {result['candela_ms']:8.3f} ms (kernels {result['kernels_ms']:8.3f})  "
                      f"onnxruntime {result['onnxruntime_ms']:8.3f} ms  {result['vs_onnxruntime']:5.2f}  "
                      f"{'right' if result['right'] else 'WRONG'}", flush=True)
        results = report["results"]
        report["geometric_mean"] = geometric_mean([result["vs_onnxruntime"] for result in results])
        report["geometric_mean_of_kernels"] = geometric_mean(
            [result["onnxruntime_ms"] / result["kernels_ms"] for result in results])
        part = arguments.report.with_name(arguments.report.name + ".part")
        part.write_text(json.dumps(report, indent=2) + "\n")
        os.replace(part, arguments.report)
    except (Unusable, OSError, ValueError) as error:
        print(f"operators: {error}", file=sys.stderr)
        return 2
    print(f"{len(results)} operators, geometric mean {report['geometric_mean']:.2f}, of their kernels alone "
          f"{report['geometric_mean_of_kernels']:.2f}; report {arguments.report}")
    return 0 if all(result["right"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
