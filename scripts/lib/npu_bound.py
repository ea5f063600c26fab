"""The least cycles of a network of convolutions on an array: what no schedule without reuse between layers beats.

For each layer the larger one of ceil(K/R) ceil(N/C) max(P, R) with K = cin kh kw packed, and its bytes of DRAM over the bus.
Needs the onnx package.
"""
import math
import pathlib
import tomllib

import onnx

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def products(path):
    """(K, N, P, is depthwise) by the name of the node, of an int8 network with a batch of 1."""
    model = onnx.load(str(path))
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_value = 1
    graph = onnx.shape_inference.infer_shapes(model).graph
    shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
              for value in (*graph.value_info, *graph.input, *graph.output)}
    constants = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    makers = {output: node for node in graph.node for output in node.output}

    def weights(name):
        while name not in constants:
            if name not in makers:
                return None
            name = makers[name].input[0]
        return constants[name]

    found = {}
    for node in graph.node:
        if node.op_type not in ("Conv", "MatMul", "Gemm"):
            continue
        shape = weights(node.input[1])
        if not shape:
            continue
        if node.op_type == "Conv":
            groups = next((attribute.i for attribute in node.attribute if attribute.name == "group"), 1)
            out = shapes[node.output[0]]
            found[node.name] = (math.prod(shape[1:]), shape[0], out[2] * out[3], groups > 1)
        else:
            found[node.name] = (shape[0], shape[1], math.prod(shapes[node.output[0]][:-1]), False)
    return found


def least_cycles(path, preset, layers, bytes_per_cycle):
    """`layers`: of the backend's report. Returns the sum, and by layer (node, cycles, least)."""
    array = tomllib.loads((ROOT / f"simulator/configs/{preset}.toml").read_text())["array"]
    rows, columns = array["rows"], array["columns"]
    shapes = products(path)
    moved, spent = {}, {}
    for layer in layers:
        moved[layer["node"]] = moved.get(layer["node"], 0) + sum(layer[key] for key in ("weights", "tables", "loaded", "stored"))
        spent[layer["node"]] = spent.get(layer["node"], 0) + layer["cycles"]
    missing = set(shapes) - set(moved)
    if missing:
        raise ValueError(f"{path}: no layer of the report is {', '.join(sorted(missing))}")
    by_layer = []
    for node, byte_count in moved.items():
        k, n, p, is_depthwise = shapes.get(node, (0, 0, 0, False))
        computing = math.ceil(n / columns) * p * k if is_depthwise else math.ceil(k / rows) * math.ceil(n / columns) * max(p, rows)
        by_layer.append((node, spent[node], max(computing if k else 0, byte_count / bytes_per_cycle)))
    return sum(least for _, _, least in by_layer), by_layer
