#!/usr/bin/env python3
"""Images whose channels come last where they come in and go out: the same values in another order, and cycles that are saved.

usage: io_layout_test.py CANDELA
"""
import array
import ast
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "custom"))
from make_model import field, node, port  # noqa: E402

CHANNELS, SIDE, SEED = 64, 28, 1
FLOAT, INT8 = 1, 3


def expect(is_true, what):
    if not is_true:
        sys.exit(f"io_layout_test: seed {SEED}: {what}")


def tensor(name, elem, dims, data):
    return b"".join(field(1, dim) for dim in dims) + field(2, elem) + field(8, name) + field(9, data)


def scalar(name, value):
    return tensor(name, FLOAT, [], struct.pack("<f", value))


def quantized_convolution(path):
    """Images of floats are quantized, convolved and dequantized."""
    taps = CHANNELS * CHANNELS * 9
    weights = array.array("b", (random.Random(SEED).randint(-100, 100) for _ in range(taps))).tobytes()
    constants = [scalar("xs", 0.02), scalar("ws", 0.001), scalar("ys", 0.05), tensor("z", INT8, [], b"\0"),
                 tensor("w", INT8, [CHANNELS, CHANNELS, 3, 3], weights)]
    nodes = [node("QuantizeLinear", "x_quantize", ["x", "xs", "z"], ["xq"], domain=""),
             node("DequantizeLinear", "x_dequantize", ["xq", "xs", "z"], ["xd"], domain=""),
             node("DequantizeLinear", "w_dequantize", ["w", "ws", "z"], ["wd"], domain=""),
             node("Conv", "conv", ["xd", "wd"], ["sums"], domain="", pads=(1, 1, 1, 1)),
             node("QuantizeLinear", "y_quantize", ["sums", "ys", "z"], ["yq"], domain=""),
             node("DequantizeLinear", "y_dequantize", ["yq", "ys", "z"], ["y"], domain="")]
    shape = ["N", CHANNELS, SIDE, SIDE]
    graph = b"".join(field(1, each) for each in nodes) + field(2, "convolution")
    graph += b"".join(field(5, each) for each in constants) + field(11, port("x", shape)) + field(12, port("y", shape))
    path.write_bytes(field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17)))


def save(path, shape, values):
    """A .npy file of f32."""
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + array.array("f", values).tobytes())


def load(path):
    """Its shape and values."""
    data = path.read_bytes()
    length, = struct.unpack("<H", data[8:10])
    return ast.literal_eval(data[10:10 + length].decode())["shape"], array.array("f", data[10 + length:])


def channels_last(values):
    plane = SIDE * SIDE
    return array.array("f", (values[c * plane + p] for p in range(plane) for c in range(CHANNELS)))


def main():
    candela = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = folder / "model.onnx"
        quantized_convolution(model)
        draw = random.Random(SEED)
        image = array.array("f", (draw.gauss(0, 1) for _ in range(CHANNELS * SIDE * SIDE)))
        save(folder / "first.npy", (1, CHANNELS, SIDE, SIDE), image)
        save(folder / "last.npy", (1, SIDE, SIDE, CHANNELS), channels_last(image))

        def run(*arguments):
            ended = subprocess.run([candela, *map(str, arguments)], capture_output=True, text=True)
            expect(ended.returncode == 0, ended.stderr)
            return ended.stdout

        def output(order, *more):
            results = folder / order
            run("run", model, "--backend", "npu_sim", "--input", f"x={folder / order}.npy", "--output", results, *more)
            return load(results / "y.npy")

        shape, first = output("first")
        expect(shape == (1, CHANNELS, SIDE, SIDE) and len(set(first)) > 50, f"the output is {shape}, of {len(set(first))} values")
        shape, last = output("last", "--io-layout", "nhwc")
        expect(shape == (1, SIDE, SIDE, CHANNELS), f"the output is {shape}")
        expect(channels_last(first) == last, "the values are not the same in another order")
        bundle = folder / "last.cdb"
        run("compile", model, "--backend", "npu_sim", "--dim", "N=1", "--io-layout", "nhwc", "-o", bundle)
        run("run", bundle, "--input", f"x={folder / 'last.npy'}", "--expect", f"y={folder / 'last' / 'y.npy'}", "--rtol", "0", "--atol", "0")

        def simulated(*more):
            said = run("simulate", model, "--npu", "tpu1", "--dim", "N=1", "--random", "1", "--verify", "--json", folder / "report.json", *more)
            return said, json.loads((folder / "report.json").read_text())

        said, report = simulated()
        scattered = report["time"]["causes"]["scatter"]
        expect(scattered > report["cycles"] / 2, f"{scattered} of {report['cycles']} cycles put bytes into another order")
        expect("put single bytes into another order" in said and "--io-layout nhwc" in said, said)
        said, after = simulated("--io-layout", "nhwc")
        expect("scatter" not in after["time"]["causes"], after["time"]["causes"])
        expect(after["cycles"] <= report["cycles"] - scattered / 2, f"{report['cycles']} cycles become {after['cycles']}")

        def refused(*arguments):
            ended = subprocess.run([candela, *map(str, arguments)], capture_output=True, text=True)
            expect(ended.returncode == 2, f"exit status {ended.returncode}")
            return ended.stderr

        expect("--io-layout first: there is nhwc" in refused("run", model, "--io-layout", "first", "--random", "1"), "an unknown layout")
        (folder / "model.cdl").write_text("graph @g(%a: f32[4]) -> (%y: f32[4]) {\n  %y = relu %a : f32[4]\n}\n")
        expect("is for ONNX models" in refused("run", folder / "model.cdl", "--io-layout", "nhwc", "--random", "1"), "a text")


if __name__ == "__main__":
    main()
