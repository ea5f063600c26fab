#!/usr/bin/env python3
"""make_model.py FILE: one step of a sparse coder (LISTA), y = SoftThreshold(x . W) + x, with an op of the domain com.example.
Needs onnx and numpy."""
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

weights = numpy.random.default_rng(1).normal(size=(16, 16)).astype(numpy.float32) / 4
onnx.save(helper.make_model(
    helper.make_graph(
        [helper.make_node("MatMul", ["x", "W"], ["coded"], name="MatMul_0"),
         helper.make_node("SoftThreshold", ["coded"], ["sparse"], name="SoftThreshold_1", domain="com.example", threshold=0.25),
         helper.make_node("Add", ["sparse", "x"], ["y"], name="Add_2")],
        "lista", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 16])], [numpy_helper.from_array(weights, "W")]),
    ir_version=8, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]), sys.argv[1])
