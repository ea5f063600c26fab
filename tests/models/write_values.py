#!/usr/bin/env python3
"""Writes values/: small models whose numbers a rewrite could change, with inputs and what ONNX makes of them.

usage: write_values.py FOLDER [CASE]...

Needs the packages numpy and onnx. The answers are computed here, in float64, each op rounded once to its result's type;
what an op may round differently is the tolerance in values/cases.toml.
"""
import math
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F16, F32, I8, U8, I16, U16, I32, I64 = (np.float16, np.float32, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64)
RANDOM = np.random.default_rng(20)


class Model:
    """A graph that grows node by node; numbers given as arrays are constants, names are values."""

    def __init__(self, opset=21):
        self.opset, self.nodes, self.constants, self.inputs, self.count = opset, [], [], {}, 0

    def input(self, name, value):
        self.inputs[name] = np.asarray(value)
        return name

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, op, *operands, result=None, **attributes):
        names = [operand if isinstance(operand, str) else self.constant(operand) for operand in operands]
        self.count += 1
        result = result or f"v{self.count}"
        self.nodes.append(helper.make_node(op, names, [result], f"{op}_{self.count}", **attributes))
        return result

    def dequantized(self, stored, scale, zero=None):
        return self.add("DequantizeLinear", stored, np.asarray(scale, F32), *([] if zero is None else [zero]))

    def quantized(self, value, scale, zero, result="y"):
        return self.add("QuantizeLinear", value, np.asarray(scale, F32), zero, result=result)

    def write(self, folder, outputs):
        folder.mkdir(parents=True, exist_ok=True)
        info = lambda name, a: helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        graph = helper.make_graph(self.nodes, "g", [info(n, a) for n, a in self.inputs.items()],
                                  [info(n, a) for n, a in outputs.items()], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
        onnx.checker.check_model(model)
        onnx.save(model, folder / "model.onnx")
        for kind, tensors in (("in", self.inputs), ("out", outputs)):
            for name, value in tensors.items():
                np.save(folder / f"{kind}_{name}.npy", value)


def wide(value):
    return np.asarray(value).astype(np.float64)


def conv(x, w, pads=0, group=1):
    """2-D, in float64."""
    x = np.pad(wide(x), ((0, 0), (0, 0), (pads, pads), (pads, pads)))
    w = wide(w)
    rows, columns = x.shape[2] - w.shape[2] + 1, x.shape[3] - w.shape[3] + 1
    y = np.zeros((x.shape[0], w.shape[0], rows, columns))
    each, channels = w.shape[0] // group, w.shape[1]
    for o in range(w.shape[0]):
        first = o // each * channels
        for i in range(w.shape[2]):
            for j in range(w.shape[3]):
                part = x[:, first:first + channels, i:i + rows, j:j + columns]
                y[:, o] += np.einsum("ncij,c->nij", part, w[o, :, i, j])
    return y


def quantize(real, scale, zero):
    limits = np.iinfo(np.asarray(zero).dtype)
    return np.clip(np.rint(real / float(F32(scale))) + int(zero), limits.min, limits.max).astype(np.asarray(zero).dtype)


def around(shape, middle, spread, dtype):
    return (middle + spread * RANDOM.standard_normal(shape)).astype(dtype)


def stored(shape, dtype):
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max + 1, shape).astype(dtype)


# ---- Factors and terms of channels

def factor_behind(dtype, weight, factor, x, gemm=False):
    m = Model()
    w = np.asarray(weight, dtype)
    k = np.asarray(factor, dtype)
    x = np.asarray(x, dtype)
    if gemm:
        x, w = x.reshape(1, -1), w.reshape(-1, 1)
        v = m.add("Gemm", m.input("x", x), w)
        sums = (wide(x) @ wide(w)).astype(dtype)
    else:
        x, w = x.reshape(1, -1, 1, 1), w.reshape(1, -1, 1, 1)
        v = m.add("Conv", m.input("x", x), w)
        sums = conv(x, w).astype(dtype)
    m.add("Mul", v, k, result="y")
    return m, {"y": (wide(sums) * wide(k)).astype(dtype)}


def fold_gemm_f16_up():
    return factor_behind(F16, [200.0] * 4, 400.0, [0.01, 0.02, 0.03, -0.04], gemm=True)


def fold_conv_f32_beyond():
    return factor_behind(F32, [3e37, 1e37], 100.0, [1e-3, 2e-3])


def fold_conv_f32_below():
    return factor_behind(F32, [1.234567e-30, 7.654321e-31], 1e-12, [1e20, 2e20])


def fold_term_f16():
    m, x = Model(), np.asarray([[[[-2047.0]], [[-2046.0]]]], F16)
    w = np.eye(2, dtype=F16).reshape(2, 2, 1, 1)
    bias, term = np.asarray([2048.0, 2048.0], F16), np.asarray([[[0.9]], [[0.4]]], F16)
    m.add("Add", m.add("Conv", m.input("x", x), w, bias), term, result="y")
    sums = (conv(x, w) + wide(bias)[:, None, None]).astype(F16)
    return m, {"y": (wide(sums) + wide(term)).astype(F16)}


def batch_norm(dtype, mean, behind_conv):
    m, x = Model(), around((1, 3, 2, 4), mean, 1, dtype)
    scale, bias = np.full(3, 0.7, dtype), np.full(3, 0.1, dtype)
    means, var = np.full(3, mean, dtype), np.full(3, 1, dtype)
    value = m.input("x", x)
    if behind_conv:
        value = m.add("Conv", value, np.eye(3, dtype=dtype).reshape(3, 3, 1, 1))
    m.add("BatchNormalization", value, scale, bias, means, var, result="y")
    by = wide(scale) / np.sqrt(wide(var) + float(F32(1e-5)))
    column = lambda v: v[:, None, None]
    return m, {"y": ((wide(x) - column(wide(means))) * column(by) + column(wide(bias))).astype(dtype)}


def batch_norm_conv_f16_mean_300():
    return batch_norm(F16, 300, True)


def batch_norm_f32_mean_1e6():
    return batch_norm(F32, 1e6, False)


def batch_norm_conv_f32_mean_1e6():
    return batch_norm(F32, 1e6, True)


def batch_norm_f32_no_spread():
    m, x = Model(), np.asarray([[[[0.0, 1e-30]]]], F32)
    one = lambda v: np.asarray([v], F32)
    m.add("BatchNormalization", m.input("x", x), one(3e38), one(0), one(0), one(0), result="y")
    return m, {"y": (wide(x) / math.sqrt(float(F32(1e-5))) * float(F32(3e38))).astype(F32)}


def gemm_f16_alpha():
    m, x = Model(), np.asarray([[900.0, 800.0, 700.0]], F16)
    w, c = np.asarray([[90.0, 1.0], [80.0, 2.0], [70.0, -3.0]], F16), np.asarray([-20.0, 3.0], F16)
    m.add("Gemm", m.input("x", x), w, c, alpha=2.0**-10, beta=0.5, result="y")
    return m, {"y": (wide(x) @ wide(w) * 2.0**-10 + 0.5 * wide(c)).astype(F16)}


def bias_cancels_f16():
    m, x = Model(), np.asarray([[300.0, 0.1, 0.03]], F16)
    w, c = np.asarray([[1.0, -1.0], [1.0, 1.0], [1.0, -2.0]], F16), np.asarray([-300.0, 300.0], F16)
    value = m.input("x", x)
    m.add("Gemm", value, w, c, result="y")
    image = m.add("Reshape", value, np.asarray([1, 3, 1, 1], I64))
    m.add("Conv", image, np.ascontiguousarray(w.T).reshape(2, 3, 1, 1), c, result="z")
    sums = (wide(x) @ wide(w) + wide(c)).astype(F16)
    return m, {"y": sums, "z": sums.reshape(1, 2, 1, 1)}


def factors_f16():
    m, x = Model(), np.asarray([1.3e-4, 2.7e-4, 5.1e-5, 40000.0], F16)
    down, up = F16(2.0**-10), F16(2.0**10)
    value = m.input("x", x)
    m.add("Mul", m.add("Mul", value, down), up, result="y")
    m.add("Mul", m.add("Mul", value, F16(0.5)), F16(1.9), result="z")
    once = lambda a, k: (wide(a) * float(k)).astype(F16)
    return m, {"y": once(once(x, down), up), "z": once(once(x, F16(0.5)), F16(1.9))}


# ---- Patterns

def attention_f32_factor_before():
    m, shape = Model(), (1, 2, 5, 16)
    q, k = around(shape, 0, 1e18, F32), around(shape, 0, 1e21, F32)
    v = around((1, 2, 5, 4), 0, 1, F32)
    factor = F32(2e-38)
    q1 = m.add("Mul", m.input("q", q), factor)
    kt = m.add("Transpose", m.input("k", k), perm=[0, 1, 3, 2])
    p = m.add("Softmax", m.add("MatMul", q1, kt), axis=-1)
    m.add("MatMul", p, m.input("v", v), result="y")
    scores = wide((wide(q) * float(factor)).astype(F32)) @ wide(k).transpose(0, 1, 3, 2)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return m, {"y": (e / e.sum(-1, keepdims=True) @ wide(v)).astype(F32)}


def near_gelu_f16():
    m, x = Model(), np.linspace(-3, 3, 25).astype(F16)
    root, half = F16(1.409), F16(0.5)
    value = m.input("x", x)
    gate = m.add("Add", m.add("Erf", m.add("Div", value, root)), F16(1))
    m.add("Mul", m.add("Mul", value, gate), half, result="y")
    scaled = (wide(x) / float(root)).astype(F16)
    erf = np.asarray([math.erf(float(s)) for s in scaled]).astype(F16)
    product = (wide(x) * wide((wide(erf) + 1).astype(F16))).astype(F16)
    return m, {"y": (wide(product) * 0.5).astype(F16)}


def layer_norm_f16_mean_300():
    m, x = Model(), around((4, 32), 300, 1, F16)
    value = m.input("x", x)
    axes = np.asarray([-1], I64)
    n = m.add("Sub", value, m.add("ReduceMean", value, axes))
    spread = m.add("Sqrt", m.add("Add", m.add("ReduceMean", m.add("Mul", n, n), axes), F16(1e-3)))
    m.add("Div", n, spread, result="y")
    once = lambda a: wide(np.asarray(a).astype(F16))
    mean = once(wide(x).mean(-1, keepdims=True))
    c = once(wide(x) - mean)
    s = once(np.sqrt(once(once(once(c * c).mean(-1, keepdims=True)) + float(F16(1e-3)))))
    return m, {"y": (c / s).astype(F16)}


def far_norm(op, centres):
    """Rows whose squares are beyond f32, though the result is not."""
    m = Model(opset=23)
    x = (RANDOM.standard_normal((4, 40)) * np.array([[1e19], [1e38], [1], [1e30]])).astype(F32)
    scale, bias = np.linspace(0.5, 2, 40).astype(F32), np.linspace(-1, 1, 40).astype(F32)
    m.add(op, m.input("x", x), scale, *([bias] if centres else []), result="y", axis=-1)
    c = wide(x) - wide(x).mean(-1, keepdims=True) if centres else wide(x)
    y = c / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * scale + (bias if centres else 0)
    return m, {"y": y.astype(F32)}


def layer_norm_f32_near_1e19():
    return far_norm("LayerNormalization", True)


def rms_norm_f32_near_1e19():
    return far_norm("RMSNormalization", False)


# ---- Quantized models

def gemm_parts(m, x, w, sx, sw):
    real = (wide(x) * float(F32(sx))) @ (wide(w) * float(F32(sw)))
    return m.dequantized(m.input("x", x), sx), m.dequantized(m.constant(w), sw), real


def qdq_float_bias_conv():
    m, x, w = Model(), stored((1, 3, 5, 5), I8), stored((2, 3, 3, 3), I8)
    bias = np.asarray([0.3, -0.7], F32)
    m.add("Conv", m.dequantized(m.input("x", x), 1), m.dequantized(m.constant(w), 1), bias, result="y", pads=[1] * 4)
    return m, {"y": (conv(x, w, 1) + wide(bias)[:, None, None]).astype(F32)}


def qdq_float_bias_i16():
    m, x, w = Model(), stored((3, 4), I8) // 16, stored((4, 5), I8) // 16
    bias = np.asarray([0.3, -0.4, 0.26, 0.5, 0.011], F32)
    a, b, real = gemm_parts(m, x, w, 1, 1)
    m.quantized(m.add("Gemm", a, b, bias), 0.01, I16(0))
    return m, {"y": quantize((real + wide(bias)).astype(F32).astype(np.float64), 0.01, I16(0))}


def qdq_own_scale_bias():
    m, x, w = Model(), stored((3, 4), I8), stored((4, 5), I8)
    bias, scale = RANDOM.integers(-1000, 1000, 5).astype(I32), F32(0.003)
    a, b, real = gemm_parts(m, x, w, 0.125, 0.125)
    m.add("Gemm", a, b, m.dequantized(m.constant(bias), scale), result="y")
    return m, {"y": (real + wide(bias) * float(scale)).astype(F32)}


def qdq_matmul_plus_row():
    m, x, w = Model(), stored((2, 3, 4), I8), stored((4, 5), I8)
    row = np.asarray([0.3, -0.4, 0.26, 0.5, 0.011], F32)
    a, b, real = gemm_parts(m, x, w, 1, 1)
    m.add("Add", m.add("MatMul", a, b), row, result="y")
    return m, {"y": (real + wide(row)).astype(F32)}


def qdq_bias_beyond_i32():
    m, x, w = Model(), np.full((1, 4), 127, I8), np.full((4, 3), 127, I8)
    bias = np.asarray([2147483000, -2147483000, 5], I32)
    a, b, real = gemm_parts(m, x, w, 1, 1)
    m.add("Gemm", a, b, m.dequantized(m.constant(bias), 1), result="y")
    return m, {"y": (real + wide(bias.astype(F32))).astype(F32)}


def qdq_far_scales():
    m, x = Model(), stored((8,), I8)
    m.quantized(m.add("Relu", m.dequantized(m.input("x", x), 1e30)), 1e-10, I8(0))
    return m, {"y": quantize(np.maximum(wide(x) * float(F32(1e30)), 0), 1e-10, I8(0))}


# ---- Activations of 16 bits

def int16_conv_bias_relu():
    m, x, w = Model(), stored((1, 8, 6, 6), I16), stored((6, 8, 3, 3), I8)
    bias, sx, sw, sy = RANDOM.integers(-1 << 20, 1 << 20, 6).astype(I32), 2.0**-10, 2.0**-7, 2.0**-3
    a, b = m.dequantized(m.input("x", x), sx, I16(0)), m.dequantized(m.constant(w), sw)
    c = m.add("Conv", a, b, m.dequantized(m.constant(bias), sx * sw), pads=[1] * 4)
    m.quantized(m.add("Relu", c), sy, I16(0))
    sums = conv(x, w, 1) + wide(bias)[:, None, None]
    return m, {"y": quantize(np.maximum(sums * sx * sw, 0), sy, I16(0))}


def int16_conv_depthwise():
    m, x, w = Model(), stored((1, 6, 5, 5), I16), stored((6, 1, 3, 3), I8)
    a, b = m.dequantized(m.input("x", x), 2.0**-10, I16(0)), m.dequantized(m.constant(w), 2.0**-7)
    m.quantized(m.add("Conv", a, b, pads=[1] * 4, group=6), 2.0**-5, I16(0))
    return m, {"y": quantize(conv(x, w, 1, 6) * 2.0**-17, 2.0**-5, I16(0))}


def int16_gemm():
    m, x, w = Model(), stored((5, 32), I16), stored((32, 7), I8)
    bias = RANDOM.integers(-1 << 20, 1 << 20, 7).astype(I32)
    a, b, real = gemm_parts(m, x, w, 2.0**-10, 2.0**-7)
    m.quantized(m.add("Gemm", a, b, m.dequantized(m.constant(bias), 2.0**-17)), 2.0**-3, I16(0))
    return m, {"y": quantize(real + wide(bias) * 2.0**-17, 2.0**-3, I16(0))}


def int16_matmul():
    m, x, w = Model(), stored((2, 5, 16), I16), stored((16, 4), I8)
    a, b, real = gemm_parts(m, x, w, 2.0**-10, 2.0**-7)
    m.quantized(m.add("MatMul", a, b), 2.0**-4, I16(0))
    return m, {"y": quantize(real, 2.0**-4, I16(0))}


def int16_zero_point_clip():
    m, x, w = Model(), stored((1, 4, 5, 5), I16), stored((3, 4, 3, 3), I8)
    zero, scales = I16(-1234), np.asarray([2.0**-7, 3 * 2.0**-9, 2.0**-6], F32)
    weights = m.add("DequantizeLinear", m.constant(w), scales, axis=0)
    c = m.add("Conv", m.dequantized(m.input("x", x), 2.0**-10, zero), weights, pads=[1] * 4, strides=[2, 2])
    m.quantized(m.add("Clip", c, F32(-60), F32(60)), 2.0**-7, I16(77))
    real = conv(wide(x) + 1234, w, 1)[:, :, ::2, ::2] * 2.0**-10 * wide(scales)[:, None, None]
    return m, {"y": quantize(np.clip(real, -60, 60), 2.0**-7, I16(77))}


def int16_to_int8():
    m, x, w = Model(), stored((4, 16), I16), stored((16, 4), I8)
    a, b, real = gemm_parts(m, x, w, 2.0**-10, 2.0**-7)
    m.quantized(m.add("MatMul", a, b), 2.0**2, I8(0))
    return m, {"y": quantize(real, 2.0**2, I8(0))}


def int16_conv_1d():
    m, x, w = Model(), stored((1, 3, 9), I16), stored((2, 3, 3), I8)
    m.quantized(m.add("Conv", m.dequantized(m.input("x", x), 2.0**-10, I16(0)), m.dequantized(m.constant(w), 2.0**-7)),
                2.0**-4, I16(0))
    return m, {"y": quantize(conv(x[..., None], w[..., None])[..., 0] * 2.0**-17, 2.0**-4, I16(0))}


def int16_float_result():
    m, x, w = Model(), stored((4, 16), I16), stored((16, 4), I8)
    bias = np.asarray([0.3, -0.4, 0.26, 0.5], F32)
    a, b, real = gemm_parts(m, x, w, 2.0**-10, 2.0**-7)
    m.add("Gemm", a, b, bias, result="y")
    return m, {"y": (real + wide(bias)).astype(F32)}


def int16_mean_and_product():
    m, x = Model(), stored((1, 3, 4, 4), I16)
    value = m.dequantized(m.input("x", x), 2.0**-10, I16(0))
    m.quantized(m.add("GlobalAveragePool", value), 2.0**-12, I16(0))
    m.quantized(m.add("Mul", value, value), 2.0**-4, I16(0), result="z")
    return m, {"y": quantize(wide(x).mean((2, 3), keepdims=True) * 2.0**-10, 2.0**-12, I16(0)),
               "z": quantize((wide(x) * 2.0**-10) ** 2, 2.0**-4, I16(0))}


def int16_residual():
    m, x, w = Model(), stored((1, 8, 4, 4), I16), stored((8, 8, 1, 1), I8)
    other = stored((1, 8, 4, 4), I16)
    value, beside = m.dequantized(m.input("x", x), 2.0**-10, I16(0)), m.dequantized(m.input("o", other), 2.0**-10, I16(0))
    c = m.quantized(m.add("Conv", value, m.dequantized(m.constant(w), 2.0**-7)), 2.0**-6, I16(0), result="q")
    m.quantized(m.add("Add", m.dequantized(c, 2.0**-6, I16(0)), beside), 2.0**-5, I16(0))
    q = quantize(conv(x, w) * 2.0**-17, 2.0**-6, I16(0))
    return m, {"y": quantize(wide(q) * 2.0**-6 + wide(other) * 2.0**-10, 2.0**-5, I16(0))}


def uint16_conv():
    m, x, w = Model(), stored((1, 4, 5, 5), U16), stored((3, 4, 3, 3), I8)
    zero = U16(32768)
    q = m.quantized(m.input("x", ((wide(x) - 32768) * 2.0**-10).astype(F32)), 2.0**-10, zero, result="q")
    c = m.add("Conv", m.dequantized(q, 2.0**-10, zero), m.dequantized(m.constant(w), 2.0**-7), pads=[1] * 4)
    m.quantized(c, 2.0**-3, I16(0))
    return m, {"y": quantize(conv(wide(x) - 32768, w, 1) * 2.0**-17, 2.0**-3, I16(0))}


# ---- Indices. ONNX leaves open what is outside; here reads are clamped and writes skipped.

FAR = np.asarray([1 << 40, -(1 << 40), (1 << 32) + 1, np.iinfo(I64).min, 1], I64)


def far_gather():
    m, d = Model(), np.arange(12, dtype=F32).reshape(4, 3)
    x, i = m.input("d", d), m.input("i", FAR)
    m.add("Gather", x, i, result="y")
    m.add("Gather", x, i, result="z", axis=1)
    rows = lambda n: np.clip(np.where(FAR < 0, np.maximum(FAR, -n) + n, FAR), 0, n - 1)
    return m, {"y": d[rows(4)], "z": d[:, rows(3)]}


def far_gather_elements():
    m, d = Model(), np.arange(12, dtype=F32).reshape(4, 3)
    i = np.stack([FAR[:3], FAR[2:5]])
    m.add("GatherElements", m.input("d", d), m.input("i", i), result="y", axis=1)
    columns = np.clip(np.where(i < 0, np.maximum(i, -3) + 3, i), 0, 2)
    return m, {"y": np.take_along_axis(d[:2], columns, 1)}


def far_gather_nd():
    m, d = Model(), np.arange(12, dtype=F32).reshape(4, 3)
    i = np.stack([FAR, FAR[::-1]], 1)
    m.add("GatherND", m.input("d", d), m.input("i", i), result="y")
    place = lambda v, n: np.clip(np.where(v < 0, np.maximum(v, -n) + n, v), 0, n - 1)
    return m, {"y": d[place(i[:, 0], 4), place(i[:, 1], 3)]}


def far_scatter():
    m, d = Model(), np.arange(5, dtype=F32)
    i, u = m.input("i", FAR), m.input("u", np.arange(10, 15, dtype=F32))
    x = m.input("d", d)
    m.add("ScatterElements", x, i, u, result="y", axis=0)
    m.add("ScatterND", x, m.add("Unsqueeze", i, np.asarray([1], I64)), u, result="z")
    written = d.copy()
    written[1] = 14
    return m, {"y": written, "z": written.copy()}


def far_one_hot():
    m = Model()
    m.add("OneHot", m.input("i", FAR), np.asarray(4, I64), np.asarray([0, 1], F32), result="y")
    return m, {"y": np.asarray([[1.0 if 0 <= i < 4 and i == c else 0 for c in range(4)] for i in FAR.tolist()], F32)}


CASES = [fold_gemm_f16_up, fold_conv_f32_beyond, fold_conv_f32_below, fold_term_f16, batch_norm_conv_f16_mean_300,
         batch_norm_f32_mean_1e6, batch_norm_conv_f32_mean_1e6, batch_norm_f32_no_spread, gemm_f16_alpha,
         bias_cancels_f16, factors_f16, attention_f32_factor_before, near_gelu_f16, layer_norm_f16_mean_300,
         layer_norm_f32_near_1e19, rms_norm_f32_near_1e19, qdq_float_bias_conv, qdq_float_bias_i16, qdq_own_scale_bias,
         qdq_matmul_plus_row, qdq_bias_beyond_i32, qdq_far_scales, int16_conv_bias_relu, int16_conv_depthwise,
         int16_gemm, int16_matmul, int16_residual, int16_zero_point_clip, int16_to_int8, int16_conv_1d,
         int16_float_result, int16_mean_and_product, uint16_conv, far_gather, far_gather_elements, far_gather_nd,
         far_scatter, far_one_hot]


def main():
    global RANDOM
    folder, only = pathlib.Path(sys.argv[1]), sys.argv[2:]
    for case in CASES:
        RANDOM = np.random.default_rng(20)
        if not only or case.__name__ in only:
            model, outputs = case()
            model.write(folder / case.__name__, outputs)


if __name__ == "__main__":
    main()
