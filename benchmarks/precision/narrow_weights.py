#!/usr/bin/env python3
"""Measures matrix products whose weights are narrower than f32, beside ONNX Runtime, alternating in one run.

usage: narrow_weights.py [--candela FILE] [--rounds N] [--threads T]... [--report FILE]

Eight products of 2048 x 2048 one after the other, of one row and of 128: weights of f32, of f32 rounded by `--precision bf16` and
`f16`, a model of f16, and MatMulNBits of 8, 4 and 2 bits in blocks of 32 at accuracy levels 0 and 4. ONNX Runtime runs the same
file; where it has no such precision (bf16, f16 for a model of f32), its f32 stands beside ours. Outputs are compared first.

Writes benchmarks/results/narrow_weights.json. Needs a build in build/, and Python with the packages of
tests/models/requirements.txt and tests/onnx/requirements.txt. On a machine that does nothing else.

Exit status: 0 measured, 1 outputs differ.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper, save

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

WIDTH, LAYERS, BLOCK = 2048, 8, 32
ROWS = (1, 128)
RUNS = {1: 40, 128: 8}  # of ONNX Runtime in a round, the best one counts
APART = {"f32": 1e-5, "f16": 2e-2, "bf16": 5e-2, "nbits": 5e-2}  # relative L2 norms


def write_floats(path, rows, dtype):
    random, value, nodes, weights = np.random.default_rng(0), "x", [], []
    for i in range(LAYERS):
        weights.append(numpy_helper.from_array((random.standard_normal((WIDTH, WIDTH)) / WIDTH**0.5).astype(dtype), f"w{i}"))
        nodes.append(helper.make_node("MatMul", [value, f"w{i}"], [f"y{i}"]))
        value = f"y{i}"
    write(path, rows, nodes, weights, value, TensorProto.FLOAT16 if dtype == np.float16 else TensorProto.FLOAT)


def write_bits(path, rows, bits, level):
    random, value, nodes, weights = np.random.default_rng(0), "x", [], []
    shape = (WIDTH, WIDTH // BLOCK, BLOCK * bits // 8)
    for i in range(LAYERS):
        weights += [numpy_helper.from_array(random.integers(0, 256, shape, dtype=np.uint8), f"w{i}"),
                    numpy_helper.from_array((random.random(WIDTH**2 // BLOCK) * 0.08 / 2**bits).astype(np.float32), f"s{i}")]
        nodes.append(helper.make_node("MatMulNBits", [value, f"w{i}", f"s{i}"], [f"y{i}"], domain="com.microsoft", K=WIDTH, N=WIDTH,
                                      bits=bits, block_size=BLOCK, accuracy_level=level))
        value = f"y{i}"
    write(path, rows, nodes, weights, value, TensorProto.FLOAT)


def write(path, rows, nodes, weights, value, elem):
    graph = helper.make_graph(nodes, "products", [helper.make_tensor_value_info("x", elem, [rows, WIDTH])],
                              [helper.make_tensor_value_info(value, elem, [rows, WIDTH])], weights)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


def variants(folder):
    """Name, file by rows, more words of our command, and how far outputs may be apart."""
    for name, dtype, words, apart in [("f32", np.float32, [], "f32"), ("f32 --precision bf16", np.float32, ["--precision", "bf16"], "bf16"),
                                      ("f32 --precision f16", np.float32, ["--precision", "f16"], "f16"),
                                      ("f16", np.float16, [], "f16")]:
        files = {rows: folder / f"{np.dtype(dtype).name}_{rows}.onnx" for rows in ROWS}
        for rows, file in files.items():
            if not file.exists():
                write_floats(file, rows, dtype)
        yield name, files, words, APART[apart]
    for bits in (8, 4, 2):
        for level in (0, 4):
            files = {rows: folder / f"bits{bits}_level{level}_{rows}.onnx" for rows in ROWS}
            for rows, file in files.items():
                write_bits(file, rows, bits, level)
            yield f"{bits} bits, accuracy level {level}", files, [], APART["nbits"]


class Peer:
    def __init__(self, file, threads):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        port = self.session.get_inputs()[0]
        dtype = np.float16 if "float16" in port.type else np.float32
        self.x = np.random.default_rng(1).standard_normal(port.shape).astype(dtype)

    def milliseconds(self):
        best = float("inf")
        for _ in range(RUNS[self.x.shape[0]]):
            start = time.perf_counter()
            self.session.run(None, {"x": self.x})
            best = min(best, time.perf_counter() - start)
        return best * 1e3


def ours(args, command, file, words, threads, *more):
    line = [args.candela, command, file, "--backend", "cpu", "--threads", threads, *words, *more, "--json", "-"]
    return json.loads(subprocess.run(list(map(str, line)), check=True, capture_output=True, text=True).stdout)


def apart(args, peer, file, words, folder):
    np.save(folder / "x.npy", peer.x)
    ours(args, "run", file, words, 1, "--input", f"x={folder}/x.npy", "--output", folder)
    expected = peer.session.run(None, {"x": peer.x})[0].astype(np.float64)
    got = np.load(folder / f"{peer.session.get_outputs()[0].name}.npy").astype(np.float64)
    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))


def measure(args, folder):
    lines, failures = [], []
    for threads in args.threads or [1, 2]:
        for name, files, words, limit in variants(folder):
            for rows, file in files.items():
                peer = Peer(file, threads)
                difference = apart(args, peer, file, words, folder)
                if difference > limit:
                    failures.append(f"{name}, {rows} rows: {difference:.3g} from ONNX Runtime, allowed {limit:.3g}")
                rounds = [(ours(args, "bench", file, words, threads, "--seconds", 1)["latency_ms"]["min"], peer.milliseconds())
                          for _ in range(args.rounds)]
                line = {"weights": name, "rows": rows, "threads": threads, "ms": min(r[0] for r in rounds),
                        "onnxruntime_ms": min(r[1] for r in rounds), "relative_difference": difference}
                lines.append(line)
                print(f"{threads} threads, {rows:3} rows, {name:28} {line['ms']:8.2f} ms, ONNX Runtime {line['onnxruntime_ms']:8.2f} ms",
                      flush=True)
    return lines, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candela", default=ROOT / "build/bin/candela")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, action="append")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/narrow_weights.json")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines, failures = measure(args, pathlib.Path(folder))
    report = {"schema": "candela.narrow_weights/1", "date": nightly_report.now(), "machine": nightly_report.machine(),
              "onnxruntime": ort.__version__, "width": WIDTH, "layers": LAYERS, "rounds": args.rounds, "results": lines,
              "failures": failures}
    nightly_report.write(args.report, report)
    for failure in failures:
        print(f"FAILED  {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
