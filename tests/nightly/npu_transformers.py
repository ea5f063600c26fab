#!/usr/bin/env python3
"""Quantizes transformers for the NPU and simulates them: nothing is multiplied on the host, and every backend gives the same bits.

usage: tests/nightly/npu_transformers.py [--candela FILE] [--report FILE] [--witness]

An encoder in the shape of BERT, and one decode step in the shape of Llama (RMSNorm, rotary embedding, grouped queries, SiLU, caches that
are states), with random weights by a seed, are quantized for a preset with activations of 16 bits (softmax and norms need them inside) and
run on it, bit by bit beside the host's executor, and beside `cpu` and `soft`. Of the encoder only the rounding of its input and the reals of its
output are the host's; of the decode step what moves rows by indices, too. The decoder goes on for some steps from its caches, on `cpu`, beside
the float model. Least ones run on the hardware description too, instruction by instruction in step with the model (Verilator is needed).

Writes benchmarks/results/npu_transformers.json.
--witness  small ones, changes nothing

Needs python3-onnx and python3-numpy. Exit status: 0 all agree, 1 some do not.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.npu_transformers.v1"
PRESET = "edge8t"
SMALL = {"encoder": {"layers": 2, "width": 64, "heads": 4, "tokens": 16, "hidden": 128},
         "decoder": {"layers": 2, "width": 64, "heads": 4, "groups": 2, "places": 32, "hidden": 128, "words": 96}}
LARGE = {"encoder": {"layers": 4, "width": 768, "heads": 12, "tokens": 128, "hidden": 3072},
         "decoder": {"layers": 4, "width": 1024, "heads": 16, "groups": 4, "places": 512, "hidden": 2816, "words": 4096}}
LEAST = {"encoder": {"layers": 1, "width": 32, "heads": 2, "tokens": 12, "hidden": 64},
         "decoder": {"layers": 1, "width": 32, "heads": 2, "groups": 1, "places": 16, "hidden": 64, "words": 40}}
STEPS = 6
LEAST_SNR = 10  # decibels, of random weights and 8 bits all along: those of a trained model are better behaved
MOVES = ("gather ", "put ", "reshape ", "cast ", "select ", "equal ", "less ", "bit_or ", "quantize ", "dequantize ", "add i64")
TIMEOUT_SECONDS = 1800


class Builder:
    def __init__(self, seed):
        self.nodes, self.constants, self.random = [], [], np.random.default_rng(seed)

    def constant(self, values, dtype=np.float32):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def weights(self, *dims):
        return self.constant(self.random.standard_normal(dims) / np.sqrt(dims[0]))

    def op(self, kind, inputs, name=None, **attributes):
        name = name or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def linear(self, x, width, outputs):
        return self.op("MatMul", [x, self.weights(width, outputs)])

    def ints(self, *values):
        return self.constant(values, np.int64)

    def write(self, path, inputs, outputs):
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        onnx.save(model, path)


def real(name, *dims):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


def integer(name, *dims):
    return helper.make_tensor_value_info(name, TensorProto.INT64, dims)


def write_encoder(path, layers, width, heads, tokens, hidden):
    b, y, depth = Builder(1), "x", width // heads
    bias = lambda x, count: b.op("Add", [x, b.constant(0.1 * b.random.standard_normal(count))])
    norm = lambda x: b.op("LayerNormalization", [x, b.constant(np.ones(width)), b.constant(np.zeros(width))], axis=-1, epsilon=1e-5)
    split, joined = b.ints(0, tokens, heads, depth), b.ints(0, tokens, width)
    mask = b.constant(np.where(np.arange(tokens) < tokens - 3, 0, -1e9).reshape(1, 1, 1, tokens))
    for _ in range(layers):
        q, k, v = (b.op("Reshape", [bias(b.linear(y, width, width), width), split]) for _ in range(3))
        q, v = (b.op("Transpose", [each], perm=[0, 2, 1, 3]) for each in (q, v))
        scores = b.op("Div", [b.op("MatMul", [q, b.op("Transpose", [k], perm=[0, 2, 3, 1])]), b.constant(np.sqrt(depth))])
        weights = b.op("Softmax", [b.op("Add", [scores, mask])], axis=-1)
        heads_of = b.op("Transpose", [b.op("MatMul", [weights, v])], perm=[0, 2, 1, 3])
        y = norm(b.op("Add", [y, b.linear(b.op("Reshape", [heads_of, joined]), width, width)]))
        f = bias(b.linear(y, width, hidden), hidden)
        error = b.op("Add", [b.op("Erf", [b.op("Div", [f, b.constant(np.sqrt(2))])]), b.constant(1)])
        gelu = b.op("Mul", [b.op("Mul", [f, error]), b.constant(0.5)])
        y = norm(b.op("Add", [y, bias(b.linear(gelu, hidden, width), width)]))
    b.nodes[-1].output[0] = "out"
    b.write(path, [real("x", 1, tokens, width)], [real("out", 1, tokens, width)])


def write_decoder(path, layers, width, heads, groups, places, hidden, words):
    b, depth = Builder(2), width // heads
    one = lambda value: b.constant(value)

    def norm(x):
        mean = b.op("ReduceMean", [b.op("Pow", [x, one(2)])], axes=[-1], keepdims=1)
        inverse = b.op("Reciprocal", [b.op("Sqrt", [b.op("Add", [mean, one(1e-5)])])])
        return b.op("Mul", [b.op("Mul", [x, inverse]), b.constant(1 + 0.1 * b.random.standard_normal(width))])

    angles = np.outer(np.arange(places), 10000.0 ** (-np.arange(0, depth, 2) / depth))
    angles = np.concatenate([angles, angles], axis=1)
    cosines, sines = (b.op("Gather", [b.constant(table), "position"], axis=0) for table in (np.cos(angles), np.sin(angles)))

    def rotated(x):
        low = b.op("Slice", [x, b.ints(0), b.ints(depth // 2), b.ints(-1)])
        high = b.op("Slice", [x, b.ints(depth // 2), b.ints(depth), b.ints(-1)])
        turned = b.op("Concat", [b.op("Neg", [high]), low], axis=-1)
        return b.op("Add", [b.op("Mul", [x, cosines]), b.op("Mul", [turned, sines])])

    def split(x, count):
        return b.op("Transpose", [b.op("Reshape", [x, b.ints(1, 1, count, depth)])], perm=[0, 2, 1, 3])

    y = b.op("Gather", [b.constant(b.random.standard_normal((words, width))), "ids"], axis=0)
    is_past = b.op("LessOrEqual", [b.constant(np.arange(places).reshape(1, 1, 1, places), np.int64), "position"])
    mask = b.op("Where", [is_past, one(0), one(-np.inf)])
    row = b.op("Expand", [b.op("Reshape", ["position", b.ints(1, 1, 1, 1)]), b.ints(1, groups, 1, depth)])
    b.op("Add", ["position", b.ints(1)], name="next_position")
    for layer in range(layers):
        x = norm(y)
        q, k = rotated(split(b.linear(x, width, width), heads)), rotated(split(b.linear(x, width, groups * depth), groups))
        v = split(b.linear(x, width, groups * depth), groups)
        keys = b.op("ScatterElements", [f"past_k{layer}", row, k], name=f"present_k{layer}", axis=2)
        values = b.op("ScatterElements", [f"past_v{layer}", row, v], name=f"present_v{layer}", axis=2)
        q = b.op("Reshape", [q, b.ints(1, groups, heads // groups, depth)])
        scores = b.op("Mul", [b.op("MatMul", [q, b.op("Transpose", [keys], perm=[0, 1, 3, 2])]), one(1 / np.sqrt(depth))])
        weights = b.op("Softmax", [b.op("Add", [scores, mask])], axis=-1)
        context = b.op("Reshape", [b.op("MatMul", [weights, values]), b.ints(1, 1, width)])
        y = b.op("Add", [y, b.linear(context, width, width)])
        x = norm(y)
        gate = b.linear(x, width, hidden)
        gate = b.op("Mul", [gate, b.op("Sigmoid", [gate])])
        y = b.op("Add", [y, b.linear(b.op("Mul", [gate, b.linear(x, width, hidden)]), hidden, width)])
    b.op("MatMul", [norm(y), b.weights(width, words)], name="logits")
    caches = [f"{kind}{layer}" for layer in range(layers) for kind in "kv"]
    cache = lambda prefix: [real(f"{prefix}_{each}", 1, groups, places, depth) for each in caches]
    b.write(path, [integer("ids", 1, 1), integer("position", 1), *cache("past")],
            [real("logits", 1, 1, words), integer("next_position", 1), *cache("present")])


def write_data(folder, name, shape):
    """Arrays to quantize on; the decoder is at several places of a text."""
    random = np.random.default_rng(5)
    if name == "encoder":
        np.savez(folder / "encoder.npz", x=random.standard_normal((4, shape["tokens"], shape["width"])).astype(np.float32))
        return
    depth = shape["width"] // shape["heads"]
    arrays = {"ids": random.integers(0, shape["words"], (4, 1, 1)), "position": np.array([[0], [3], [shape["places"] // 2], [shape["places"] - 1]])}
    for layer in range(shape["layers"]):
        for kind in "kv":
            dims = (4, 1, shape["groups"], shape["places"], depth)
            arrays[f"past_{kind}{layer}"] = random.standard_normal(dims).astype(np.float32)
    np.savez(folder / "decoder.npz", **arrays)


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise RuntimeError(f"{' '.join(str(word) for word in command[1:3])}: {said[-1] if said else done.returncode}")


def arrays_of(candela, model, backend, folder, *more):
    out = folder / "out"
    run([candela, "run", model, "--backend", backend, "--random", "1", "--output", out, *more])
    return {file.stem: np.load(file) for file in sorted(out.glob("*.npy"))}


def same_bits(candela, model, folder):
    """Backends that differ from the host's executor somewhere."""
    wanted = arrays_of(candela, model, "soft", folder)
    got = arrays_of(candela, model, "cpu", folder)
    return [f"cpu: {name} differs" for name in wanted if not np.array_equal(got[name], wanted[name])]


def decibels(got, wanted):
    noise = np.square(got - wanted).sum()
    return float(10 * np.log10(np.square(wanted).sum() / noise)) if noise else 200.0


def step_snr(candela, floats, integers, folder):
    """Of the logits of the last of some steps from empty caches: integers beside floats."""
    more = ["--state", "past_*=present_*", "--state", "position=next_position", "--steps", STEPS,
            "--input", f"position={folder}/zero.npy"]
    np.save(folder / "zero.npy", np.zeros(1, np.int64))
    return decibels(*(arrays_of(candela, model, "cpu", folder, *more)["logits"] for model in (integers, floats)))


def problems_of(name, simulated):
    problems = []
    if simulated["host_macs"]:
        problems.append(f"{simulated['host_macs']} products on the host")
    host = [node["op"] for node in simulated["host_nodes"]]
    if name == "encoder" and len(host) > 2:
        problems.append(f"{len(host)} steps of the host: {host}")
    problems += [f"the host does {op}" for op in host if not op.startswith(MOVES)]
    rounds = [op for op in host if op.startswith(("quantize", "dequantize"))]
    if len(rounds) > 2:
        problems.append(f"the host rounds {len(rounds)} values: {rounds}")
    return problems


def quantize(candela, name, shape, npu, folder):
    """Where the float model and that of integers are."""
    floats, integers = folder / f"{name}.onnx", folder / f"{name}_int8.onnx"
    {"encoder": write_encoder, "decoder": write_decoder}[name](floats, **shape)
    write_data(folder, name, shape)
    states = ["--state", "past_*=present_*"] if name == "decoder" else []
    run([candela, "quantize", floats, "--data", folder / f"{name}.npz", "--backend", "npu_sim", "--option", f"npu={npu}",
         "-o", integers, *states])
    return floats, integers


def in_hardware(candela, name, shape, folder):
    """On the smallest preset with activations of 16 bits, verilated."""
    said = subprocess.run([candela, "npu", "config", "tiny"], capture_output=True, text=True, check=True).stdout
    npu = folder / "tiny16.toml"
    npu.write_text(said.replace('"tiny"', '"tiny16"').replace("int16 = 0", "int16 = 1"))
    _, integers = quantize(candela, name, shape, npu, folder)
    simulated = nightly_report.answer([str(candela), "simulate", str(integers), "--npu", str(npu), "--random", "1", "--verify",
                                       "--engine", "rtl", "--lockstep"], TIMEOUT_SECONDS)
    problems = problems_of(name, simulated)
    return {"model": name, "npu": "tiny16, rtl in lockstep", "shape": shape, "cycles": simulated["cycles"], "macs": simulated["macs"],
            "host_macs": simulated["host_macs"], "host_nodes": len(simulated["host_nodes"]),
            "mac_utilization": simulated["mac_utilization"], "problems": problems, "passed": not problems}


def measure(candela, name, shape, folder):
    floats, integers = quantize(candela, name, shape, PRESET, folder)
    simulated = nightly_report.answer([str(candela), "simulate", str(integers), "--npu", PRESET, "--random", "1", "--verify"],
                                      TIMEOUT_SECONDS)
    problems = problems_of(name, simulated) + same_bits(candela, integers, folder)
    result = {"model": name, "npu": PRESET, "shape": shape, "cycles": simulated["cycles"], "macs": simulated["macs"],
              "host_macs": simulated["host_macs"], "host_nodes": len(simulated["host_nodes"]),
              "mac_utilization": simulated["mac_utilization"]}
    if name == "decoder":
        result["step_snr_db"] = step_snr(candela, floats, integers, folder)
        if result["step_snr_db"] < LEAST_SNR:
            problems.append(f"after {STEPS} steps {result['step_snr_db']:.1f} dB, at least {LEAST_SNR} are wanted")
    return {**result, "problems": problems, "passed": not problems}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/npu_transformers.json")
    parser.add_argument("--witness", action="store_true")
    arguments = parser.parse_args()
    results = []
    for name, shape in (SMALL if arguments.witness else LARGE).items():
        with tempfile.TemporaryDirectory(prefix="candela_npu_transformers_") as folder:
            results.append(measure(arguments.candela.resolve(), name, shape, pathlib.Path(folder)))
        print(json.dumps(results[-1]))
    if not arguments.witness:
        for name, shape in LEAST.items():
            with tempfile.TemporaryDirectory(prefix="candela_npu_transformers_") as folder:
                results.append(in_hardware(arguments.candela.resolve(), name, shape, pathlib.Path(folder)))
            print(json.dumps(results[-1]))
        nightly_report.write(arguments.report, {"schema": SCHEMA, "generated_at": nightly_report.now(),
                                                "machine": nightly_report.machine(), "steps": STEPS, "results": results})
    return 0 if all(result["passed"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
