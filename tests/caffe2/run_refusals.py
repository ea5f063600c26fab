#!/usr/bin/env python3
"""run_refusals.py --candela TOOL: nets that are refused, and what the message has to say.

Exit status: 0, or 1 where one is taken or the message is another.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import caffe2_net
from caffe2_net import op

WEIGHTS = np.ones((4, 3, 3, 3), np.float32)
X = {"x": [1, [1, 3, 8, 8]]}
REFUSALS = []


def refused(name, ops, *wanted, outputs=("y",), fills=None, info=X, init=True):
    """The net of these operators, on an image x and weights w; the message has every one of `wanted`."""
    fills = [caffe2_net.fill("w", WEIGHTS)] if fills is None else fills
    files = {"predict_net.pb": caffe2_net.net(ops, ["x", "w"], list(outputs)), "value_info.json": json.dumps(info).encode()}
    if init:
        files["init_net.pb"] = caffe2_net.net(fills, (), ["w"])
    REFUSALS.append((name, files, wanted))


def conv(**arguments):
    return [op("Conv", ["x", "w"], ["y"], **arguments)]


# ---- Files
refused("no_init", conv(kernel=3), "its init net", "init_net.pb", init=False)
refused("init_as_predict", [caffe2_net.fill("y", WEIGHTS)], "it is an init net, and the predict net is asked for")
refused("training_init", conv(kernel=3), "init_net.pb: node 'XavierFill 0' (XavierFill): it is no fill of constants",
        fills=[op("XavierFill", [], ["w"], shape=[4, 3, 3, 3])])
refused("short_fill", conv(kernel=3), "node 'GivenTensorFill 0' (GivenTensorFill): 2 values for the shape 4x3",
        fills=[op("GivenTensorFill", [], ["w"], shape=[4, 3], values=[1.0, 2.0])])
refused("huge_fill", conv(kernel=3), "the shape 1073741824x64 is too large",
        fills=[op("ConstantFill", [], ["w"], shape=[1 << 30, 64], value=1.0)])
refused("many_fills", conv(kernel=3), "init_net.pb: its ConstantFills make 805306368 bytes, more than 536870912",
        fills=[op("ConstantFill", [], [f"w{i}"], shape=[1 << 26], value=1.0) for i in range(3)])
refused("fill_zero_point", conv(kernel=3), "Y_zero_point 300 is no u8",
        fills=[op("Int8GivenTensorFill", [], ["w"], shape=[1], values="a", Y_scale=1.0, Y_zero_point=300)])
refused("value_of_no_type", conv(kernel=3), "value 2 is no bool",
        fills=[op("GivenTensorBoolFill", [], ["w"], shape=[1], values=[2])])
refused("info_no_entry", conv(kernel=3), "value_info.json: entry 'x': it is no [type, [dims]]", info={"x": 3})
refused("info_type", conv(kernel=3), "value_info.json: entry 'x': type 4 is not supported", info={"x": [4, [1]]})
refused("info_no_object", conv(kernel=3), "value_info.json: no object of JSON", info=[1])
refused("no_shape", conv(kernel=3), "input 'x' declares no shape: --shape x=<dims>", info={})

# ---- Operators
refused("no_kernel", conv(), "node 'Conv 0' (Conv): a kernel of 0")
refused("kernel_text", conv(kernel="three"), "argument 'kernel' is no integer")
refused("pads", conv(kernel=3, pads=[1, 1]), "2 pads for 2 dims")
refused("negative_pad", conv(kernel=3, pad=-1), "a pad of -1")
refused("order", conv(kernel=3, order="CHWN"), "order 'CHWN'")
refused("legacy_pad", conv(kernel=3, legacy_pad=9), "legacy_pad 9")
refused("inputs", [op("Conv", ["x"], ["y"], kernel=3)], "has 1 inputs, expected 2 to 3")
refused("nothing_wrote_it", [op("Relu", ["z"], ["y"])], "blob 'z' is read before anything gives it a value")
refused("output", [op("Relu", ["x"], ["z"])], "output 'y': blob 'y' is read before anything gives it a value")
refused("training_dropout", [op("Dropout", ["x"], ["y"], ratio=0.5)], "is_test is 0: it draws numbers")
refused("training_norm", [op("SpatialBN", ["x", "w", "w", "w", "w"], ["y"])], "is_test is 0: it is of a training")
refused("mask", [op("Dropout", ["x"], ["z", "y"], is_test=1)], "the mask ('y') is read")
refused("axis_by_name", [op("Add", ["x", "w"], ["y"], broadcast=1, axis_str="C")], "axis_str 'C'")
refused("sparse_rows", [op("SparseToDense", ["x", "w"], ["y"])], "has 2 inputs, expected 3")
refused("quantized", [op("Int8Quantize", ["x"], ["q"], Y_scale=0.5, Y_zero_point=3), op("Relu", ["q"], ["y"])], "node 'Relu 1' (Relu): input 0 is quantized")
refused("zero_scale", [op("Int8Quantize", ["x"], ["y"], Y_scale=0.0)], "Y_scale is 0")
refused("zero_point", [op("Int8Quantize", ["x"], ["y"], Y_scale=1.0, Y_zero_point=300)], "Y_zero_point 300 is no u8")
refused("unknown", [op("MagicOp", ["x"], ["y"], size=3)], "node 'MagicOp 0' (MagicOp): operator caffe2.MagicOp of opset 1 is not supported")
refused("hidden_name", [op("Relu", ["x"], ["y\x1b[2J"])], "output 'y\\x1b[2J' is no name")
refused("many", conv() + [op("Dropout", ["y"], ["z"])], "a kernel of 0", "is_test is 0")


def check(name, files, wanted, candela, root):
    """What went wrong, or None."""
    folder = root / name
    folder.mkdir()
    for file, content in files.items():
        (folder / file).write_bytes(content)
    done = subprocess.run([candela, "run", str(folder / "predict_net.pb"), "--random", "1"], capture_output=True, text=True, check=False)
    missing = [text for text in wanted if text not in done.stderr]
    if done.returncode in (1, 2, 3) and not missing:
        return None
    return f"{name}: exit status {done.returncode}, without {missing}: {done.stderr.strip()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candela", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        results = [check(*refusal, arguments.candela, Path(temporary)) for refusal in REFUSALS]
    failures = [message for message in results if message]
    for message in failures:
        print(message)
    print(f"{len(REFUSALS) - len(failures)} of {len(REFUSALS)} are refused as they should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
