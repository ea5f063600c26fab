"""Whether a quantized model answers alike wherever it runs."""
import pathlib
import re
import subprocess
import tempfile

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


def with_all_integers(model):
    """Makes every value that is rounded to integers an output of its own. Their names and types."""
    types = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    rounded = [node for node in model.graph.node if node.op_type == "QuantizeLinear" and node.input[0] not in types]
    found = {node.output[0]: types[node.input[2]] for node in rounded}
    for name, elem in found.items():
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, elem, None))
    return found


def cut(model, types, values):
    """Lets every reader of such a value read an input of the model instead. What these inputs are."""
    given = {name: f"{name}_given" for name in types}
    for node in model.graph.node:
        for index, name in enumerate(node.input):
            node.input[index] = given.get(name, name)
    for name, elem in types.items():
        model.graph.input.append(onnx.helper.make_tensor_value_info(given[name], elem, values[name].shape))
    return {given[name]: values[name] for name in types}


def integers_apart(candela, path, case):
    """Of each value that is rounded to integers: by how much both differ who compute it of the same operands, which are
    ONNX Runtime's."""
    model, feeds = onnx.load(path), {case.input: case.test[:1]}
    types = with_all_integers(model)
    with tempfile.TemporaryDirectory() as folder:
        whole, parts = (pathlib.Path(folder) / name for name in ("whole.onnx", "parts.onnx"))
        onnx.save(model, whole)
        feeds |= cut(model, types, tools.run_by_name(whole, feeds))
        onnx.save(model, parts)
        want = tools.run_by_name(parts, feeds)
        got = tools.run_candela(candela, parts, feeds, "--backend", "cpu")
    return np.concatenate([np.abs(want[name].astype(np.int32) - got[name]).ravel() for name in types])


def beside_onnxruntime(candela, path, case, count):
    """How one file's answers differ: in ONNX Runtime and on Candela's cpu, and in ONNX Runtime with and without its
    integer kernels."""
    want = tools.run_onnxruntime(path, case)[0][:count].astype(np.float64)
    got = tools.answer_of_candela(candela, path, case, count, "--backend", "cpu")
    unfused = tools.run_onnxruntime(path, case, fuse=False)[0][:count]
    apart, one = np.abs(want - got), step(path, want) * SLACK
    integers = integers_apart(candela, path, case)
    return {"samples": count, "outputs": int(apart.size), "within_one_step": float((apart <= one).mean()),
            "farthest_steps": round(float(apart.max()) / one, 3), "identical": float((apart == 0).mean()),
            "unfused_within_one_step": float((np.abs(want - unfused) <= one).mean()),
            "integers": int(integers.size), "integers_within_one_step": float((integers <= 1).mean()),
            "integers_identical": float((integers == 0).mean())}


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
    soft = tools.answer_of_candela(candela, path, case, count, "--backend", "soft")
    equal = {}
    for name, (model, options) in runs.items():
        equal[name] = bool(np.array_equal(tools.answer_of_candela(candela, model, case, count, *options), soft))
    want = tools.run_onnxruntime(case.path, case)[0][:count]
    return {"samples": count, "cosine_to_float": round(cosine(want, soft), 6), "bits_of_soft": equal}
