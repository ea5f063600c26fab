"""Models of several operators or subgraphs, as flatc reads them, by name."""
import copy

import cases
import run_cases
import tflite_model


def tensor(name, shape, type="FLOAT32", buffer=0, **more):
    return {"name": name, "shape": shape, "type": type, "buffer": buffer, **more}


def floats(*values):
    return {"data": list(tflite_model.Tensor((len(values),), "f32", values=list(values)).data())}


def ints(*values):
    return {"data": list(tflite_model.Tensor((len(values),), "i32", values=list(values)).data())}


def codes(*names):
    return [{"builtin_code": name, "deprecated_builtin_code": min(tflite_model.CODES[name], 127), "version": 1} for name in names]


def op(code, inputs, outputs, table=None, **options):
    made = {"opcode_index": code, "inputs": inputs, "outputs": outputs}
    if table:
        made["builtin_options_type"], made["builtin_options"] = table, options
    return made


def chosen():
    """y = x + 1 where c, else x * x."""
    x, y = tensor("x", [2, 3]), tensor("y", [2, 3])
    return {
        "version": 3, "operator_codes": codes("IF", "ADD", "MUL"), "buffers": [{}, floats(1)],
        "subgraphs": [
            {"name": "main", "tensors": [tensor("c", [], "BOOL"), x, y], "inputs": [0, 1], "outputs": [2],
             "operators": [op(0, [0, 1], [2], "IfOptions", then_subgraph_index=1, else_subgraph_index=2)]},
            {"tensors": [x, tensor("one", [], buffer=1), y], "inputs": [0], "outputs": [2],
             "operators": [op(1, [0, 1], [2], "AddOptions")]},
            {"tensors": [x, y], "inputs": [0], "outputs": [1], "operators": [op(2, [0, 0], [1], "MulOptions")]}]}


def repeated():
    """While i < 5: i + 1, x + x."""
    i, x = tensor("i", [], "INT32"), tensor("x", [2])
    return {
        "version": 3, "operator_codes": codes("WHILE", "LESS", "ADD"), "buffers": [{}, ints(5), ints(1)],
        "subgraphs": [
            {"name": "main", "tensors": [i, x, tensor("i_end", [], "INT32"), tensor("x_end", [2])], "inputs": [0, 1],
             "outputs": [2, 3], "operators": [op(0, [0, 1], [2, 3], "WhileOptions", cond_subgraph_index=1, body_subgraph_index=2)]},
            {"tensors": [i, x, tensor("five", [], "INT32", 1), tensor("goes_on", [], "BOOL")], "inputs": [0, 1], "outputs": [3],
             "operators": [op(1, [0, 2], [3])]},
            {"tensors": [i, x, tensor("one", [], "INT32", 2), tensor("next", [], "INT32"), tensor("twice", [2])],
             "inputs": [0, 1], "outputs": [3, 4],
             "operators": [op(2, [0, 2], [3], "AddOptions"), op(2, [1, 1], [4], "AddOptions")]}]}


def signed():
    """A free batch and a signature: two products, the first with a weight of float16."""
    free = {"shape_signature": [-1, 2]}
    return {
        "version": 3, "description": "written by tests", "operator_codes": codes("DEQUANTIZE", "FULLY_CONNECTED"),
        "buffers": [{}, {"data": [0, 60, 0, 64, 0, 56, 0, 188]}],
        "subgraphs": [
            {"name": "main",
             "tensors": [tensor("serving_x:0", [1, 2], **free), tensor("w16", [2, 2], "FLOAT16", 1), tensor("w", [2, 2]),
                         tensor("inner", [1, 2], **free), tensor("call:0", [1, 2], **free)],
             "inputs": [0], "outputs": [4],
             "operators": [op(0, [1], [2]), op(1, [0, 2, -1], [3], "FullyConnectedOptions", fused_activation_function="RELU"),
                           op(1, [3, 2, -1], [4], "FullyConnectedOptions")]}],
        "signature_defs": [{"signature_key": "serving_default", "subgraph_index": 0,
                            "inputs": [{"name": "x", "tensor_index": 0}], "outputs": [{"name": "y", "tensor_index": 4}]}]}


def custom(options=(1, 2, 3)):
    """An operator Acme, with bytes that are no flexbuffer."""
    code = [{"builtin_code": "CUSTOM", "deprecated_builtin_code": 32, "custom_code": "Acme", "version": 2}]
    return {"version": 3, "operator_codes": code, "buffers": [{}],
            "subgraphs": [{"name": "main", "tensors": [tensor("x", [2]), tensor("y", [2])], "inputs": [0], "outputs": [1],
                           "operators": [{**op(0, [0], [1]), "custom_options": list(options)}]}]}


def of_case(name):
    return tflite_model.model_text(run_cases.with_shapes(next(case for case in cases.CASES if case.name == name)))


WHOLE = {"chosen": chosen(), "repeated": repeated(), "signed": signed(), "custom": custom(),
         # A map whose one key, which begins with the buffer, has no end in it.
         "custom_open_key": custom((0x61, 1, 2, 1, 1, 1, 5, 4, 2, 0x24, 1))}


# Inputs and outputs, each (type, shape, values).
ANSWERS = (
    ("chosen", {"c": ("bool", (), [True]), "x": ("f32", (2, 3), [1, 2, 3, 4, 5, 6])}, {"y": ("f32", (2, 3), [2, 3, 4, 5, 6, 7])}),
    ("chosen", {"c": ("bool", (), [False]), "x": ("f32", (2, 3), [1, 2, 3, 4, 5, 6])},
     {"y": ("f32", (2, 3), [1, 4, 9, 16, 25, 36])}),
    ("repeated", {"i": ("i32", (), [2]), "x": ("f32", (2,), [1, -0.5])},
     {"i_end": ("i32", (), [5]), "x_end": ("f32", (2,), [8, -4])}),
    ("repeated", {"i": ("i32", (), [7]), "x": ("f32", (2,), [1, 3])}, {"i_end": ("i32", (), [7]), "x_end": ("f32", (2,), [1, 3])}),
    ("signed", {"x": ("f32", (3, 2), [1, 0, 0, 1, 2, 4])}, {"y": ("f32", (3, 2), [2, 0, 2, 1, 10, 5])}),
)


def text_of(name):
    """One of these models, or of cases.py."""
    return copy.deepcopy(WHOLE[name] if name in WHOLE else of_case(name))
