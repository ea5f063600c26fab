"""Whether a quantized model answers alike wherever it runs."""
import pathlib
import re
import subprocess

import numpy as np
import onnx
from onnx import numpy_helper

import tools

STEPS_OF_A_BYTE = 255
SLACK = 1 + 1e-3  # f32's own rounding of a step


def step(path, answer):
    """Of the first output: as its DequantizeLinear has it, else as a byte would have its range."""
    graph = onnx.load(path).graph
    writer = next(node for node in graph.node if graph.output[0].name in node.output)
    for tensor in graph.initializer:
        if writer.op_type == "DequantizeLinear" and tensor.name == writer.input[1]:
            return float(numpy_helper.to_array(tensor))
    return float(np.ptp(answer)) / STEPS_OF_A_BYTE


def beside_onnxruntime(candela, path, case, count):
    """How the answers of one file differ in ONNX Runtime and on Candela's cpu."""
    want = tools.run_onnxruntime(path, case)[0][:count].astype(np.float64)
    got = tools.run_candela(candela, path, case, count, "--backend", "cpu")
    apart = np.abs(want - got)
    return {"samples": count, "outputs": int(apart.size), "within_one_step": float((apart <= step(path, want) * SLACK).mean()),
            "identical": float((apart == 0).mean()), "farthest_steps": round(float(apart.max()) / step(path, want), 3)}


def instruction_sets(candela, path):
    """Those that this machine has, of those that the backend names where it is asked for another."""
    command = [candela, "run", path, "--backend", "cpu", "--isa", "none", "--random", "1"]
    said = subprocess.run([*map(str, command)], capture_output=True, text=True).stderr
    named = re.search(r"expected best\|(\S+)", said).group(1).split("|")
    probe = [candela, "run", path, "--backend", "cpu", "--random", "1", "--dim", "N=1", "--isa"]
    return [name for name in named if subprocess.run([*map(str, probe), name], capture_output=True).returncode == 0]


def cosine(one, other):
    one, other = one.ravel().astype(np.float64), other.ravel().astype(np.float64)
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def across_backends(candela, path, case, count):
    """Where the model, run by Candela alone, gives the bits of the backend soft, and the cosine to the float model."""
    # The reference runs graphs as they are: this is the one of integers.
    graph = pathlib.Path(path).with_suffix(".cdl")
    optimize = [candela, "opt", path, "--dim", "N=1", "--passes", "optimize", "-o", graph]
    subprocess.run([*map(str, optimize)], check=True, capture_output=True)
    runs = {"reference": (graph, ["--backend", "reference"])}
    for name in instruction_sets(candela, path):
        runs[f"cpu {name}"] = path, ["--backend", "cpu", "--isa", name]
    soft = tools.run_candela(candela, path, case, count, "--backend", "soft")
    equal = {}
    for name, (model, options) in runs.items():
        equal[name] = bool(np.array_equal(tools.run_candela(candela, model, case, count, *options), soft))
    want = tools.run_onnxruntime(case.path, case)[0][:count]
    return {"samples": count, "cosine_to_float": round(cosine(want, soft), 6), "bits_of_soft": equal}
