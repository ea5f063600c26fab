#!/usr/bin/env python3
"""Writes node tests of operators of the domain com.microsoft, with what ONNX Runtime gives as the expected outputs.

usage: write_microsoft_tests.py DIR [--cases GLOB] [--check CANDELA [--backend B]...]

Each case becomes DIR/<name>/model.onnx with test_data_set_0/{input,output}_<i>.pb, as `candela conform --onnx-data`
reads them. Every number comes from a seed that its shape and type give: two runs write the same models and inputs.

ONNX Runtime computes quantized results in float32, with a rounding or two on the way. Where that moves a result by one
step, `candela conform`, which knows no tolerance for integers, calls it a failure. --check runs each case with `candela
run` and allows that step, in one result of a hundred, or one of a case; it says how many there were.

Exit status: 0 written, and all agree; 1 some do not; 2 bad usage.
"""
import argparse
import fnmatch
import pathlib
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

DOMAIN = "com.microsoft"
CASES = {}


def case(name, op, inputs, outputs=1, constants=(), **attributes):
    """One node. inputs: arrays, None for an absent one; those in `constants`, by position, are initializers."""
    assert name not in CASES, name
    CASES[name] = (op, inputs, outputs, constants, attributes)


def draw(*key):
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def floats(*shape, dtype=np.float32, scale=1.0):
    return (draw("floats", shape, str(dtype), scale).standard_normal(shape) * scale).astype(dtype)


def codes(dtype, *shape, seed=0):
    info = np.iinfo(dtype)
    return draw("codes", str(dtype), shape, seed).integers(info.min, info.max + 1, shape).astype(dtype)


def scale(value, *shape):
    """One scale, or one for each channel, around the value."""
    if not shape:
        return np.float32(value)
    return (value * draw("scale", shape).uniform(0.5, 1.5, shape)).astype(np.float32)


# What follows is a table: a section for each group of operators.

# --- Quantized, element by element ------------------------------------------------------------------------------------
BYTES = {"u8": np.uint8, "i8": np.int8}
ZERO = {"u8": (128, 7, 3), "i8": (0, -5, 12)}
for kind, dtype in BYTES.items():
    za, zb, zc = (dtype(z) for z in ZERO[kind])
    x = codes(dtype, 2, 3, 17)
    for op, c_scale in (("QLinearAdd", 0.1127), ("QLinearMul", 0.1741)):
        for label, a_shape, b_shape in (
            ("same", (2, 3, 17), (2, 3, 17)),
            ("row", (2, 3, 17), (17,)),
            ("left", (3, 1), (2, 3, 17)),
            ("one", (2, 3, 17), (1,)),
            ("scalar", (), (5,)),
            ("both", (3, 1), (1, 33)),
        ):
            a, b = codes(dtype, *a_shape), codes(dtype, *b_shape, seed=1)
            inputs = [a, scale(0.0713), za, b, scale(0.0331), zb, scale(c_scale), zc]
            case(f"{op}_{kind}_{label}", op, inputs, constants=(1, 2, 4, 5, 6, 7))
        a, b = codes(dtype, 4, 40), codes(dtype, 4, 40, seed=1)
        inputs = [a, scale(0.0713), za, b, scale(0.0331), zb, scale(c_scale), zc]
        case(f"{op}_{kind}_weight", op, inputs, constants=(1, 2, 3, 4, 5, 6, 7))
        case(f"{op}_{kind}_open_scales", op, inputs)
    for op, attributes, y_scale, y_zero in (
        ("QLinearSigmoid", {}, 1 / 256, 0 if kind == "u8" else -128),
        ("QLinearLeakyRelu", {"alpha": 0.1}, 0.04, zb),
        ("QLinearLeakyRelu", {}, 0.04, zb),
    ):
        label = "".join(f"_{k}" for k in attributes)
        inputs = [x, scale(0.05), zc, scale(y_scale), dtype(y_zero)]
        case(f"{op}_{kind}{label}", op, inputs, constants=(1, 2, 3, 4), **attributes)
        case(f"{op}_{kind}{label}_no_zeros", op, [x, scale(0.05), None, scale(y_scale), None], constants=(1, 3),
             **attributes)
        case(f"{op}_{kind}{label}_open_scales", op, inputs, **attributes)
    pick = draw("where").integers(0, 2, (3, 17)).astype(bool)
    inputs = [pick, x, scale(0.0513), za, codes(dtype, 17, seed=1), scale(0.0207), zb, scale(0.0331), zc]
    case(f"QLinearWhere_{kind}", "QLinearWhere", inputs, constants=(2, 3, 5, 6, 7, 8))

for kind, dtype in {**BYTES, "u16": np.uint16, "i16": np.int16}.items():
    x = floats(3, 4, 33)
    for label, shape, attributes in (("one", (), {}), ("axis", (3,), {"axis": 0}), ("default", (4,), {})):
        grid = [scale(0.0213 if kind in BYTES else 0.00021, *shape), codes(dtype, *shape)]
        case(f"QuantizeLinear_{kind}_{label}", "QuantizeLinear", [x, *grid], constants=(1, 2), **attributes)
        stored = codes(dtype, *x.shape)
        case(f"DequantizeLinear_{kind}_{label}", "DequantizeLinear", [stored, *grid], constants=(1, 2), **attributes)

# --- Quantized, over dims ---------------------------------------------------------------------------------------------
for kind, dtype in BYTES.items():
    za, zb, zc = (dtype(z) for z in ZERO[kind])
    grid = (scale(0.0213), za, scale(0.01519), zc)
    for label, shape, attributes in (
        ("2d", (2, 5, 9, 11), dict(kernel_shape=[3, 3])),
        ("strides", (2, 5, 9, 11), dict(kernel_shape=[3, 2], strides=[2, 3])),
        ("pads", (2, 5, 9, 11), dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])),
        ("pads_uneven", (1, 4, 9, 11), dict(kernel_shape=[4, 3], pads=[1, 0, 2, 1])),
        ("pads_counted", (2, 5, 9, 11), dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)),
        ("ceil", (1, 3, 10, 10), dict(kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)),
        ("same_upper", (1, 3, 10, 11), dict(kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")),
        ("same_lower", (1, 3, 10, 11), dict(kernel_shape=[2, 2], auto_pad="SAME_LOWER")),
        ("1d", (2, 5, 23), dict(kernel_shape=[4])),
        ("3d", (1, 2, 5, 6, 7), dict(kernel_shape=[2, 3, 2])),
    ):
        x = codes(dtype, *shape)
        case(f"QLinearAveragePool_{kind}_{label}", "QLinearAveragePool", [x, *grid], constants=(1, 2, 3, 4),
             **attributes)
        last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
        case(f"QLinearAveragePool_{kind}_{label}_last", "QLinearAveragePool", [last, *grid], constants=(1, 2, 3, 4),
             channels_last=1, **attributes)
    x = codes(dtype, 2, 6, 7, 9)
    for last in (0, 1):
        case(f"QLinearGlobalAveragePool_{kind}_{last}", "QLinearGlobalAveragePool", [x, *grid], constants=(1, 2, 3, 4),
             channels_last=last)
        case(f"QLinearGlobalAveragePool_{kind}_{last}_open_scales", "QLinearGlobalAveragePool", [x, *grid],
             channels_last=last)
    for opset, axis, y_scale in (
        (13, -1, 1 / 256),
        (13, 1, 1 / 128),
        (12, 2, 1 / 256),
        (9, 1, 1 / 256),
        (13, None, 1 / 256),
        (12, None, 1 / 256),
    ):
        inputs = [codes(dtype, 2, 4, 33), scale(0.06), zc, scale(y_scale), dtype(0 if kind == "u8" else -128)]
        attributes = {} if axis is None else {"axis": axis}
        case(f"QLinearSoftmax_{kind}_{opset}_{axis}", "QLinearSoftmax", inputs, constants=(1, 2, 3, 4), opset=opset,
             **attributes)
    for axis, same in ((1, False), (-1, False), (0, True)):
        inputs = [scale(0.0213), zc]
        for i in range(3):
            shape = [2, 3, 4]
            shape[axis] += i
            inputs += [codes(dtype, *shape, seed=i)]
            inputs += [scale(0.0213), zc] if same else [scale(0.0107 * (i + 1)), dtype(3 * i)]
        constants = (0, 1, 3, 4, 6, 7, 9, 10)
        case(f"QLinearConcat_{kind}_{axis}", "QLinearConcat", inputs, constants=constants, axis=axis)

# --- Quantized products -----------------------------------------------------------------------------------------------
for ka, ta in BYTES.items():
    for kb, tb in BYTES.items():
        if (ka, kb) == ("i8", "u8"):
            continue  # ONNX Runtime has no such product
        za, zb = ta(ZERO[ka][1]), tb(ZERO[kb][0])
        many = codes(tb, 10, seed=4)
        wide = codes(np.int32, 7, 10) // 2**16
        for label, turns, alpha, b_scale, b_zero, c in (
            ("plain", (0, 0), 1.0, scale(0.01), zb, None),
            ("bias", (0, 0), 1.0, scale(0.01), zb, wide[0]),
            ("turned", (1, 1), 1.0, scale(0.01), zb, wide[:1]),
            ("alpha", (0, 1), 0.5, scale(0.01), zb, wide[0]),
            ("columns", (0, 0), 1.0, scale(0.01, 10), many * tb(0), wide[1]),
            ("columns_turned", (0, 1), 2.0, scale(0.01, 10), many, wide[1]),
            ("matrix", (0, 0), 1.0, scale(0.01), zb, wide),
            ("side", (0, 0), 1.0, scale(0.01), zb, wide[:, :1]),
            ("one", (0, 0), 1.0, scale(0.01, 10), many * tb(0), wide[0, 0].reshape(1)),
        ):
            a, b = codes(ta, 7, 33), codes(tb, 33, 10, seed=2)
            a, b = (np.ascontiguousarray(m.T) if t else m for m, t in zip((a, b), turns))
            inputs = [a, scale(0.02), za, b, b_scale, b_zero, c, scale(0.4), ta(ZERO[ka][2])]
            constants = (1, 2, 3, 4, 5, 6, 7, 8)
            attributes = dict(transA=turns[0], transB=turns[1], alpha=alpha)
            name = f"QGemm_{ka}{kb}_{label}"
            case(name, "QGemm", inputs, constants=constants, **attributes)
            real = inputs[:7] if c is not None else inputs[:6]
            case(f"{name}_real", "QGemm", real, constants=constants[:6], **attributes)
            if label in ("bias", "columns"):
                case(f"{name}_open", "QGemm", inputs, **attributes)
for kb, tb in BYTES.items():
    zb, bias = tb(ZERO[kb][1]), floats(10)
    for label, a_shape, b_shape, b_scale, b_zero, more in (
        ("plain", (7, 33), (33, 10), scale(0.01), None, None),
        ("zero", (7, 33), (33, 10), scale(0.01), zb, None),
        ("bias", (7, 33), (33, 10), scale(0.01), zb, bias),
        ("columns", (7, 33), (33, 10), scale(0.01, 10), codes(tb, 10), bias),
        ("batch", (3, 7, 33), (33, 10), scale(0.01, 1), tb([3]), bias),
        ("batches", (3, 7, 33), (3, 33, 10), scale(0.01), zb, None),
        ("batches_columns", (3, 7, 33), (3, 33, 10), scale(0.01, 3, 1, 10), codes(tb, 3, 1, 10), bias),
    ):
        b, inputs = codes(tb, *b_shape), [floats(*a_shape)]
        inputs += [b, b_scale, b_zero, more]
        case(f"DynamicQuantizeMatMul_{kb}_{label}", "DynamicQuantizeMatMul", inputs, constants=(1, 2, 3, 4))
        for ka, ta in BYTES.items():
            if (ka, kb) == ("i8", "u8"):
                continue
            inputs = [codes(ta, *a_shape), b, scale(0.02), b_scale, ta(ZERO[ka][1]), b_zero, more]
            name = f"MatMulIntegerToFloat_{ka}{kb}_{label}"
            case(name, "MatMulIntegerToFloat", inputs, constants=(1, 3, 5, 6))
            case(f"{name}_known", "MatMulIntegerToFloat", inputs, constants=(1, 2, 3, 4, 5, 6))
    zeros = [floats(2, 8) * 0, codes(tb, 8, 4), scale(1), zb]
    case(f"DynamicQuantizeMatMul_{kb}_zeros", "DynamicQuantizeMatMul", zeros)
for label, shape, w_shape, attributes in (
    ("plain", (1, 4, 8, 9), (6, 4, 3, 3), dict(pads=[1, 1, 1, 1])),
    ("group", (2, 4, 8, 9), (8, 2, 3, 3), dict(group=2, strides=[2, 2])),
):
    x, w = codes(np.uint8, *shape), codes(np.int8, *w_shape)
    channels = w_shape[0]
    rest = [w, scale(0.01, channels), np.zeros(channels, np.int8), scale(0.3), np.uint8(128)]
    rest += [codes(np.int32, channels) // 2**18]
    case(f"QLinearConv_{label}", "QLinearConv", [x, scale(0.02), np.uint8(128), *rest], constants=range(1, 9),
         **attributes)
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    case(f"QLinearConv_{label}_last", "QLinearConv", [last, scale(0.02), np.uint8(128), *rest], constants=range(1, 9),
         channels_last=1, **attributes)
case("NhwcMaxPool_u8", "NhwcMaxPool", [codes(np.uint8, 1, 8, 9, 3)], kernel_shape=[3, 2], strides=[2, 2],
     pads=[1, 0, 1, 0])
case("NhwcMaxPool_i8", "NhwcMaxPool", [codes(np.int8, 1, 8, 9, 3)], kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1)

# --- Fused products and activations -----------------------------------------------------------------------------------
x, w, b = floats(1, 4, 9, 9), floats(6, 4, 3, 3, scale=0.2), floats(6)
for activation, numbers in (
    (None, None),
    ("Relu", None),
    ("Tanh", None),
    ("Sigmoid", None),
    ("LeakyRelu", [0.2]),
    ("Clip", [-0.5, 1.5]),
    ("HardSigmoid", [0.3, 0.4]),
):
    attributes = dict(activation=activation, activation_params=numbers)
    attributes = {k: v for k, v in attributes.items() if v is not None}
    case(f"FusedConv_{activation}", "FusedConv", [x, w, b], constants=(1, 2), pads=[1, 1, 1, 1], **attributes)
    case(f"FusedConv_{activation}_sum", "FusedConv", [x, w, b, floats(1, 6, 5, 5)], constants=(1, 2), strides=[2, 2],
         auto_pad="SAME_UPPER", **attributes)
case("FusedConv_group_sum", "FusedConv", [x, floats(4, 1, 3, 3), None, floats(1, 4, 7, 7)], constants=(1,), group=4,
     activation="Relu")
for activation, numbers in (
    ("Relu", {}),
    ("Sigmoid", {}),
    ("Softplus", {}),
    ("Softsign", {}),
    ("Tanh", {}),
    ("LeakyRelu", {"activation_alpha": 0.2}),
    ("Elu", {"activation_alpha": 0.7}),
    ("Selu", {"activation_alpha": 1.5, "activation_gamma": 1.1}),
    ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}),
    ("ThresholdedRelu", {"activation_alpha": 0.6}),
):
    case(f"FusedGemm_{activation}", "FusedGemm", [floats(5, 8), floats(7, 8), floats(7)], constants=(1, 2), transB=1,
         alpha=0.5, beta=2.0, activation=activation, **numbers)
    case(f"FusedGemm_{activation}_no_c", "FusedGemm", [floats(5, 8), floats(8, 7)], activation=activation, **numbers)
for label, a_shape, b_shape, attributes in (
    ("plain", (2, 3, 4, 5), (2, 3, 5, 6), {}),
    ("alpha", (2, 3, 4, 5), (5, 6), {"alpha": 0.125}),
    ("a", (2, 3, 5, 4), (2, 3, 5, 6), {"transA": 1, "alpha": 0.3}),
    ("b", (2, 3, 4, 5), (3, 6, 5), {"transB": 1, "alpha": 0.3}),
    ("both", (5, 4), (6, 5), {"transA": 1, "transB": 1}),
    ("batch_a", (4, 2, 3, 5), (2, 3, 5, 6), {"transBatchA": 1}),
    ("batch_b", (2, 3, 4, 5), (5, 2, 3, 6), {"transBatchB": 1, "alpha": 2.0}),
    ("batches", (5, 2, 3, 4), (6, 2, 3, 5), {"transBatchA": 1, "transBatchB": 1, "transA": 1, "transB": 1}),
    ("vector", (5,), (2, 5, 6), {"transA": 1, "alpha": 3.0}),
    ("vectors", (5,), (5,), {"transB": 1}),
):
    inputs = [floats(*a_shape), floats(*b_shape)]
    case(f"FusedMatMul_{label}", "FusedMatMul", inputs, **attributes)
    if not label.startswith("batch"):
        case(f"TransposeMatMul_{label}", "TransposeMatMul", inputs, **attributes)
    case(f"FusedMatMul_{label}_f64", "FusedMatMul", [i.astype(np.float64) for i in inputs], **attributes)
for dtype, kind in ((np.float32, "f32"), (np.float16, "f16")):
    x, bias = floats(3, 4, 16, dtype=dtype), floats(16, dtype=dtype)
    case(f"FastGelu_{kind}", "FastGelu", [x])
    case(f"FastGelu_{kind}_bias", "FastGelu", [x, bias])
    case(f"Gelu_{kind}", "Gelu", [x])
    case(f"QuickGelu_{kind}", "QuickGelu", [x])
    case(f"QuickGelu_{kind}_alpha", "QuickGelu", [x], alpha=1.0)
    case(f"BiasGelu_{kind}", "BiasGelu", [x, bias])


# --- The end of the table ---------------------------------------------------------------------------------------------


def info(name, value):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


def build(name):
    """The model and its inputs by name."""
    op, inputs, outputs, constants, attributes = CASES[name]
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(inputs)]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], domain=DOMAIN, **attributes)
    values = [(n, np.asarray(v), i in constants) for i, (n, v) in enumerate(zip(names, inputs)) if v is not None]
    graph = helper.make_graph(
        [node],
        name,
        [info(n, v) for n, v, c in values if not c],
        [helper.make_value_info(output, onnx.TypeProto()) for output in node.output],
        [numpy_helper.from_array(v, n) for n, v, c in values if c],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9, producer_name="write_microsoft_tests")
    return model, {n: v for n, v, c in values if not c}


def reference(model, feeds):
    """What ONNX Runtime gives; its types go into the model."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results = session.run(None, feeds)
    for output, value in zip(model.graph.output, results):
        output.CopyFrom(info(output.name, value))
    return results


def write(folder, model, feeds, results):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for what, values, infos in (("input", feeds.values(), model.graph.input), ("output", results, model.graph.output)):
        for i, (value, declared) in enumerate(zip(values, infos)):
            (data / f"{what}_{i}.pb").write_bytes(numpy_helper.from_array(value, declared.name).SerializeToString())


def check(candela, backend, folder, model, feeds, results):
    """What is wrong, or "", and how many integers are one step off."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [candela, "run", str(folder / "model.onnx"), "--backend", backend]
        for name, value in feeds.items():
            np.save(f"{scratch}/{name}.npy", value)
            command += ["--input", f"{name}={scratch}/{name}.npy"]
        command += ["--output", scratch]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return (done.stderr or done.stdout).strip().splitlines()[-1], 0
        off = 0
        for output, want in zip(model.graph.output, results):
            got = np.load(f"{scratch}/{output.name}.npy")
            if got.dtype != want.dtype or got.shape != want.shape:
                return f"{output.name} is {got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}", 0
            apart = np.abs(got.astype(np.float64) - want.astype(np.float64))
            if np.issubdtype(want.dtype, np.integer):
                steps = int(np.count_nonzero(apart))
                off += steps
                if apart.max(initial=0) > 1 or steps > max(1, want.size // 100):
                    return f"{output.name}: {steps} of {want.size} differ, by {int(apart.max())} at most", off
            else:
                bound = {"float16": 2**-9, "float64": 1e-12}.get(want.dtype.name, 1e-5)
                large = np.abs(want.astype(np.float64)).max(initial=0)
                if not np.allclose(got, want, rtol=bound, atol=bound * large):
                    return f"{output.name} differs by {apart.max()} of {large}", 0
        return "", off


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--cases", default="*")
    parser.add_argument("--check", metavar="CANDELA")
    parser.add_argument("--backend", action="append")
    options = parser.parse_args()
    target = options.directory
    if target.exists() and any(target.iterdir()):
        parser.error(f"{target}: is not empty")
    names = [name for name in CASES if fnmatch.fnmatch(name, options.cases)]
    backends = options.backend or ["cpu"]
    wrong, off, whole = 0, 0, 0
    for name in names:
        model, feeds = build(name)
        results = reference(model, feeds)
        write(target / name, model, feeds, results)
        whole += sum(r.size for r in results if np.issubdtype(r.dtype, np.integer))
        for backend in backends if options.check else ():
            complaint, steps = check(options.check, backend, target / name, model, feeds, results)
            off += steps
            if complaint:
                wrong += 1
                print(f"{name} on {backend}: {complaint}")
    print(f"{len(names)} cases of ONNX Runtime {ort.__version__} in {target}")
    if options.check:
        print(f"{wrong} wrong on {', '.join(backends)}; {off} of {whole * len(backends)} integers are one step off")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
