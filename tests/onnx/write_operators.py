#!/usr/bin/env python3
"""Writes tests/onnx/operators.txt: every operator of ONNX's default domain as a model of one node.

usage: write_operators.py [--check]

The schemas of the installed `onnx` package say which element types the first operand may have; shapes, attributes and
small values are those of the operator's node test with the fewest operands and attributes. onnx_operator_page builds
the models and asks the importer about each type. With --check nothing is written, and the exit status is 1 where the
committed file differs.

    op Concat 28                   operator, opset
    type T f32 f16 string          a type variable: the types that ONNX allows
    in x0 T 2x3 = 1 2 3 4 5 6      operand: type or variable, dims ("-": rank 0), values unless many; "in -": absent
    attr axis i 0                  i, f, s and lists of them, t (a tensor), or "other"
    out 1                          results
"""
import pathlib
import sys
import warnings

import numpy as np
import onnx
import onnx.defs
from onnx import AttributeProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

TARGET = pathlib.Path(__file__).resolve().parent / "operators.txt"
NEWEST = 28
SMALL = 64
NAMES = {"float": "f32", "float16": "f16", "bfloat16": "bf16", "double": "f64", "int8": "i8", "uint8": "u8",
         "int16": "i16", "uint16": "u16", "int32": "i32", "uint32": "u32", "int64": "i64", "uint64": "u64",
         "bool": "bool", "int4": "i4", "uint4": "u4", "int2": "i2", "uint2": "u2", "float8e4m3fn": "f8e4m3",
         "float8e5m2": "f8e5m2", "float8e4m3fnuz": "f8e4m3fnuz", "float8e5m2fnuz": "f8e5m2fnuz",
         "float8e8m0": "f8e8m0", "float6e2m3": "f6e2m3", "float6e3m2": "f6e3m2", "float4e2m1": "f4e2m1"}
# What has no node test of its own: dims of the operands, and attributes.
PLAIN = {
    "GlobalLpPool": ([(1, 2, 3, 3)], {}),
    "MaxRoiPool": ([(1, 1, 4, 4), (1, 5)], {"pooled_shape": [2, 2]}),
    "Multinomial": ([(1, 3)], {}),
    "RandomNormal": ([], {"shape": [2, 3]}),
    "RandomUniform": ([], {"shape": [2, 3]}),
}


def elem(text):
    """Our name of "tensor(float)", ONNX's where we have none, or the word for what is no tensor."""
    if not text.startswith("tensor("):
        return text.split("(")[0]
    inner = text[len("tensor("):-1]
    return NAMES.get(inner, inner)


def elem_of(info):
    kind = info.type.WhichOneof("value")
    if kind != "tensor_type":
        return {"sequence_type": "seq", "optional_type": "optional"}[kind]
    return elem(f"tensor({onnx.TensorProto.DataType.Name(info.type.tensor_type.elem_type).lower()})")


def number(value):
    return str(int(value)) if float(value).is_integer() and abs(float(value)) < 2**63 else f"{float(value):.3g}"


def tensor_text(array):
    dims = "x".join(map(str, array.shape)) or "-"
    numeric = array.dtype.kind in "biuf" or array.dtype.name in ("bfloat16", "float16")
    if array.size > SMALL or not numeric:
        return dims
    return f"{dims} = {' '.join(number(v) for v in array.astype(np.float64).ravel())}".rstrip()


def attribute_text(attribute):
    value = helper.get_attribute_value(attribute)
    kind = attribute.type
    if kind in (AttributeProto.INT, AttributeProto.INTS):
        values = [value] if kind == AttributeProto.INT else value
        return f"{'i' if kind == AttributeProto.INT else 'is'} {' '.join(map(str, values))}"
    if kind in (AttributeProto.FLOAT, AttributeProto.FLOATS):
        values = [value] if kind == AttributeProto.FLOAT else value
        return f"{'f' if kind == AttributeProto.FLOAT else 'fs'} {' '.join(map(number, values))}"
    if kind == AttributeProto.STRING:
        return f"s {value.decode()}"
    if kind == AttributeProto.TENSOR and value.data_type != onnx.TensorProto.STRING:
        array = numpy_helper.to_array(value)
        return f"t {elem(f'tensor({onnx.TensorProto.DataType.Name(value.data_type).lower()})')} {tensor_text(array)}"
    return "other"


def parameters(schema, count):
    """The formal parameter of each operand: the last one again where it is variadic."""
    return [schema.inputs[min(i, len(schema.inputs) - 1)] for i in range(count)]


def lines(schema, case):
    opset = NEWEST
    if case:
        given = case.model.opset_import[0].version
        opset = NEWEST if given >= schema.since_version else given
    yield f"op {schema.name} {opset}"
    used = {parameter.type_str for parameter in schema.inputs}
    for constraint in schema.type_constraints:
        if constraint.type_param_str in used:
            yield f"type {constraint.type_param_str} {' '.join(elem(t) for t in constraint.allowed_type_strs)}"
    variables = {constraint.type_param_str for constraint in schema.type_constraints}
    variable = lambda parameter: parameter.type_str if parameter.type_str in variables else elem(parameter.type_str)
    if not case:
        shapes, attributes = PLAIN.get(schema.name, ([(2, 3)] * schema.min_input, {}))
        for i, (parameter, dims) in enumerate(zip(parameters(schema, len(shapes)), shapes)):
            yield f"in x{i} {variable(parameter)} {'x'.join(map(str, dims))}"
        for name, value in attributes.items():
            yield f"attr {name} {attribute_text(helper.make_attribute(name, value))}"
        yield "out 1"
        return
    node, graph = case.model.graph.node[0], case.model.graph
    infos = {info.name: (info, value) for info, value in zip(graph.input, case.data_sets[0][0])}
    for i, (name, parameter) in enumerate(zip(node.input, parameters(schema, len(node.input)))):
        if not name:
            yield "in -"
            continue
        info, value = infos[name]
        # Of a variadic operand whose types may differ, each keeps its own.
        kind = variable(parameter) if parameter.is_homogeneous else elem_of(info)
        if elem_of(info) in ("seq", "optional") or value is None:
            yield f"in x{i} {elem_of(info)} -"
        else:
            yield f"in x{i} {kind} {tensor_text(np.asarray(value))}".rstrip() + ("" if kind in NAMES.values() else
                                                                                f" : {elem_of(info)}")
    for attribute in node.attribute:
        yield f"attr {attribute.name} {attribute_text(attribute)}"
    yield f"out {len(node.output)}"


def size(case, newest):
    """Cases of the newest version first, then those with the fewest parts."""
    node, opset = case.model.graph.node[0], case.model.opset_import[0].version
    return opset < newest[node.op_type].since_version, sum(map(bool, node.input)) + len(node.attribute) + len(node.output), case.name


def text():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflows that the cases are about
        cases = collect_testcases(None)
    newest = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= NEWEST:
            if schema.name not in newest or newest[schema.name].since_version < schema.since_version:
                newest[schema.name] = schema
    best = {}
    for case in cases:
        nodes, data = case.model.graph.node, case.data_sets[0][0]
        if len(nodes) != 1 or nodes[0].domain or any(getattr(value, "size", 1) == 0 for value in data):
            continue
        current = best.get(nodes[0].op_type)
        if current is None or size(case, newest) < size(current, newest):
            best[nodes[0].op_type] = case
    out = ["# written by tests/onnx/write_operators.py, which says what stands here"]
    for name, schema in sorted(newest.items()):
        if not schema.deprecated:
            out += lines(schema, best.get(name))
    return "\n".join(out) + "\n"


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    if not sys.argv[1:]:
        TARGET.write_text(text())
    elif TARGET.read_text() != text():
        sys.exit(f"{TARGET} is not what {pathlib.Path(__file__).name} writes with onnx {onnx.__version__}")


if __name__ == "__main__":
    main()
