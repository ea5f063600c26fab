#!/usr/bin/env python3
"""run_refusals.py --candela TOOL [--flatc FLATC]: models that are refused, and what the message has to say.

Each is a model of models.py or cases.py, changed. Exit status: 0, or 1 where one is taken or the message is another.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import models
import tflite_model

REFUSALS = []


def refused(name, base, *wanted):
    """The function changes the text of a model; the message has every one of `wanted`."""
    def add(change):
        text = models.text_of(base)
        change(text, text["subgraphs"][0])
        REFUSALS.append((name, text, wanted))
        return change
    return add


def setter(*path_and_value):
    """Sets what lies at a path of the main subgraph."""
    *path, last, value = path_and_value

    def change(_, main):
        for key in path:
            main = main[key]
        main[last] = value
    return change


# ---- The file
refused("version", "signed", "its schema has version 2, expected 3")(lambda text, _: text.update(version=2))
refused("no_subgraph", "signed", "no subgraph")(lambda text, _: text.update(subgraphs=[], signature_defs=[]))
refused("code_index", "abs", "subgraph 0: operator 0: its code 7 is none of 1")(setter("operators", 0, "opcode_index", 7))
refused("input_index", "abs", "operator 0: ABS: input 9 is none of 2 tensors")(setter("operators", 0, "inputs", [9]))
refused("output_index", "abs", "operator 0: ABS: output -2 is none of 2 tensors")(setter("operators", 0, "outputs", [-2]))
refused("graph_input", "abs", "input 5 is none of 2 tensors")(setter("inputs", [5]))
refused("graph_output", "abs", "output -1 is none of 2 tensors")(setter("outputs", [-1]))
refused("buffer_index", "prelu", "tensor 1 ('in1'): its buffer 9 is none of 2")(setter("tensors", 1, "buffer", 9))
refused("buffer_size", "prelu", "tensor 1 ('in1'): its buffer has 16 bytes, but f32[1,1,5] needs 20")(
    setter("tensors", 1, "shape", [1, 1, 5]))
refused("huge_shape", "abs", "tensor 0 ('in0'): its shape", "impossibly large")(setter("tensors", 0, "shape", [1 << 30] * 4))
refused("negative_dim", "abs", "tensor 0 ('in0'): it has a dim of -3")(setter("tensors", 0, "shape", [-3]))
refused("many_dims", "abs", "tensor 0 ('in0'): it has 9 dims, more than 8")(setter("tensors", 0, "shape", [1] * 9))
refused("signature_rank", "abs", "its shape has 3 dims and its signature 2")(setter("tensors", 0, "shape_signature", [-1, 2]))


@refused("far_buffer", "prelu", "tensor 1 ('in1'): its 100 bytes at 5000 leave the file")
def _(text, _main):
    text["buffers"][1] = {"offset": 5000, "size": 100}


# ---- Quantization
QUANTIZED = "fully_connected_i8_none"
refused("negative_scale", QUANTIZED, "tensor 0 ('in0'): its scale is -1")(
    setter("tensors", 0, "quantization", {"scale": [-1], "zero_point": [0]}))
refused("zero_points", QUANTIZED, "it has 1 scales and 2 zero points")(
    setter("tensors", 0, "quantization", {"scale": [1], "zero_point": [0, 0]}))
refused("zero_range", QUANTIZED, "its zero point 200 is no i8")(setter("tensors", 0, "quantization", {"scale": [1], "zero_point": [200]}))
refused("scales_dim", QUANTIZED, "tensor 1 ('in1'): its scales are of dim 5, but it has 2")(
    setter("tensors", 1, "quantization", {"scale": [1, 1], "zero_point": [0, 0], "quantized_dimension": 5}))
refused("scales_count", QUANTIZED, "tensor 1 ('in1'): it has 3 scales for a dim of 4")(
    setter("tensors", 1, "quantization", {"scale": [1, 1, 1], "zero_point": [0, 0, 0], "quantized_dimension": 0}))
refused("blockwise", QUANTIZED, "node 'FULLY_CONNECTED 0' (FULLY_CONNECTED): tensor 'in1': it is quantized in blocks")(
    setter("tensors", 1, "quantization", {"scale": [1], "zero_point": [0], "details_type": "BlockwiseQuantization", "details": {}}))
refused("float_bias", QUANTIZED, "its bias is i32, but its operands are not quantized")(setter("tensors", 0, "quantization", {}))

# ---- Tensors
refused("sparse", "prelu", "node 'PRELU 0' (PRELU): tensor 'in1': it is sparse")(setter("tensors", 1, "sparsity", {}))
refused("strings", "abs", "input 'in0': its elements are STRING")(setter("tensors", 0, "type", "STRING"))
refused("complex", "abs", "node 'ABS 0' (ABS): tensor 'out0': its elements are COMPLEX64")(setter("tensors", 1, "type", "COMPLEX64"))
refused("external", "prelu", "tensor 'in1': its elements are in another file")(setter("tensors", 1, "external_buffer", 3))
refused("no_value", "abs", "node 'ABS 0' (ABS): tensor 'in0' is read before anything gives it a value")(setter("inputs", []))


@refused("two_values", "abs", "node 'ABS 1' (ABS): tensor 'out0' has a value already")
def _(_text, main):
    main["operators"].append(main["operators"][0])


# ---- Operators
refused("few_inputs", "add_none", "node 'ADD 0' (ADD): has 1 inputs, expected 2")(setter("operators", 0, "inputs", [0]))
refused("left_out", "add_none", "node 'ADD 0' (ADD): input 0 is missing")(setter("operators", 0, "inputs", [-1, 1]))
refused("many_outputs", "add_none", "node 'ADD 0' (ADD): has 2 outputs, expected 1")(setter("operators", 0, "outputs", [2, 2]))


@refused("other_options", "add_none", "node 'ADD 0' (ADD): its attributes are those of another operator")
def _(_text, main):
    main["operators"][0].update(builtin_options_type="PackOptions", builtin_options={})


def options(**values):
    def change(_, main):
        main["operators"][0]["builtin_options"].update(values)
    return change


CONV = "node 'CONV_2D 0' (CONV_2D): "
refused("sign_bit", "add_none", "ADD", "activation 5 is not supported")(options(fused_activation_function="SIGN_BIT"))
refused("stride", "conv_2d_same", CONV + "stride is 0, expected at least 1")(options(stride_h=0))
refused("dilation", "conv_2d_same", CONV + "dilation is -1, expected at least 1")(options(dilation_h_factor=-1))
refused("conv_rank", "conv_2d_same", CONV + "input 0 has rank 3, expected 4")(setter("tensors", 0, "shape", [5, 6, 3]))
refused("conv_channels", "conv_2d_same", CONV + "its input has 4 channels, its filter 3")(setter("tensors", 0, "shape", [1, 5, 6, 4]))
refused("depthwise_channels", "depthwise_conv_2d_same", "its input has 4 channels, its filter 6")(setter("tensors", 0, "shape", [1, 5, 6, 4]))
refused("shuffled", "fully_connected", "shuffled weights are not supported")(options(weights_format="SHUFFLED4x16INT8"))
refused("filter", "max_pool_2d_same", "MAX_POOL_2D 0", "filter is 0, expected at least 1")(options(filter_width=0))
refused("transposed", "transpose_conv_same", "a result of 80 is none of 4 elements with stride 2 and 3 taps")(
    lambda text, _: text["buffers"][1]["data"].__setitem__(4, 80))
refused("axes", "mean", "node 'MEAN 0' (MEAN): axis 9 is out of range for rank 3")(lambda text, _: text["buffers"][1]["data"].__setitem__(0, 9))
refused("open_axes", "mean", "node 'MEAN 0' (MEAN): axes are no constants")(
    lambda _, main: (main.update(inputs=[0, 1]), main["tensors"][1].update(buffer=0)))
refused("reshape", "reshape", "node 'RESHAPE 0' (RESHAPE): its shape has several -1")(
    lambda text, _: text["buffers"][1].update(data=[255] * 8))
refused("offset", "strided_slice_plain", "ends that are offsets are not supported")(options(offset=True))
refused("stride_zero", "strided_slice_plain", "stride 0 is 0")(lambda text, _: text["buffers"][3]["data"].__setitem__(0, 0))
refused("unpack", "unpack", "num is 4, but it has 3 outputs")(options(num=4))
refused("split", "split", "num_splits is 2, but it has 3 outputs")(options(num_splits=2))
refused("mirror", "mirror_pad_reflect", "pads 9 and 1 are wider than 2 elements")(lambda text, _: text["buffers"][1]["data"].__setitem__(0, 9))
refused("blocks", "space_to_batch_nd", "are no whole number of blocks of 5")(lambda text, _: text["buffers"][1]["data"].__setitem__(0, 5))
refused("crops", "batch_to_space_nd", "crops 200 and 2 are wider than 6 elements")(lambda text, _: text["buffers"][2]["data"].__setitem__(0, 200))
refused("batch_dims", "gather_batch", "axis 2 behind 1 batch dims is not supported")(options(axis=2))
refused("bits", "fake_quant", "num_bits is 40, expected 2 to 16")(options(num_bits=40))
refused("range", "fake_quant", "its range is 1 to 3, which has to hold 0")(options(min=1))
refused("bitcast", "bitcast", "from f32 to i64, which has another size")(setter("tensors", 1, "type", "INT64"))
refused("corners", "resize_bilinear_aligned_7", "align_corners and half_pixel_centers")(options(half_pixel_centers=True))
refused("branch", "chosen", "node 'IF 0' (IF): subgraph 8 is none of 2 behind the main one")(options(else_subgraph_index=8))
refused("itself", "chosen", "subgraph 0 is none of 2 behind the main one")(options(then_subgraph_index=0))
refused("condition", "repeated", "node 'WHILE 0' (WHILE): subgraph 2 has 2 outputs, expected a condition")(options(cond_subgraph_index=2))
refused("outputs", "custom", "node 'Acme 0' (Acme): has 4097 outputs, more than 4096")(setter("operators", 0, "outputs", [-1] * 4097))
refused("no_channels", "conv_2d_same", CONV + "its input has 0 channels, its filter 3")(setter("tensors", 0, "shape", [1, 5, 6, 0]))
refused("custom", "custom", "node 'Acme 0' (Acme): operator tflite.Acme of opset 1 is not supported")(lambda *_: None)


refused("decay", "nms_v5_0.0", "NON_MAX_SUPPRESSION_V5 0", "soft_nms_sigma is not the constant 0")(
    lambda text, _: text["buffers"][-1].update(data=[0, 0, 0, 63]))
DETECTION = "node 'TFLite_Detection_PostProcess 0' (TFLite_Detection_PostProcess): "


def detection(**values):
    def change(_, main):
        given = {"max_detections": 4, "num_classes": 2, "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0, **values}
        main["operators"][0]["custom_options"] = list(tflite_model.flexbuffer(given))
    return change


refused("regular", "detection_post_process", DETECTION + "suppression by class (use_regular_nms) is not supported")(detection(use_regular_nms=1))
refused("classes", "detection_post_process", DETECTION + "3 classes of a box are not supported")(detection(max_classes_per_detection=3))
refused("class_count", "detection_post_process", DETECTION + "it has 3 scores for 9 classes")(detection(num_classes=9))
refused("scale", "detection_post_process", DETECTION + "its h_scale is 0, expected more than 0")(detection(h_scale=0.0))
refused("boxes", "detection_post_process", DETECTION + "0 boxes to be chosen")(detection(max_detections=0))
refused("box_count", "detection_post_process", DETECTION + "its max_detections is 1e+30, expected a number below 1000000000")(
    detection(max_detections=1e30))
refused("anchors", "detection_post_process", DETECTION + "boxes 1x4x4, scores 1x5x3 and anchors 5x4 do not fit")(
    setter("tensors", 0, "shape", [1, 4, 4]))


@refused("nested", "chosen", "subgraphs are nested deeper than 16")
def _(text, _main):
    branch = text["subgraphs"][1]
    branch["tensors"].append(models.tensor("c", [], "BOOL", 2))
    text["buffers"].append({"data": [1]})
    branch["operators"] = [models.op(0, [3, 0], [2], "IfOptions", then_subgraph_index=1, else_subgraph_index=2)]


@refused("many_strides", "strided_slice_plain", "it has 40 strides, more than 16")
def _(text, main):
    main["inputs"] = [0, 1]
    main["tensors"][1]["buffer"] = 0
    main["tensors"][3]["shape"] = [40]
    text["buffers"][3] = models.ints(*[1] * 40)


@refused("custom_transpose", "custom", "node 'Transpose 0' (Transpose): operator tflite.Transpose of opset 1 is not supported")
def _(text, main):
    text["operator_codes"][0]["custom_code"] = "Transpose"
    main["operators"][0]["outputs"] = []
    main["outputs"] = [0]


@refused("mean_count", "mean_i32", "node 'MEAN 0' (MEAN): a mean of more elements than 64 bits count")
def _(text, main):
    main["tensors"][0]["shape"] = [0, 1 << 30, 1 << 30, 1 << 30]
    main["tensors"][1]["shape"] = [3]
    text["buffers"][1] = models.ints(1, 2, 3)


@refused("constants", "matrix_diag", "its operators make ", "bytes of constants, more than ")
def _(_text, main):
    """Each makes a mask of 16 MB."""
    main["tensors"] = [models.tensor("x", [4096])] + [models.tensor(f"y{i}", [4096, 4096]) for i in range(20)]
    main["operators"] = [{**main["operators"][0], "inputs": [0], "outputs": [i + 1]} for i in range(20)]


@refused("written_again", "chosen", "it has more than 1000000 operators, with those of subgraphs for each use")
def _(text, main):
    """Each of 14 subgraphs is written twice by the one before; the last one has 100 tensors."""
    x, y, on = models.tensor("x", [2, 3]), models.tensor("y", [2, 3]), models.tensor("on", [], "BOOL", 2)
    text["buffers"].append({"data": [1]})
    main["operators"][0]["builtin_options"] = {"then_subgraph_index": 1, "else_subgraph_index": 1}
    chain = [{"tensors": [x, on, y], "inputs": [0], "outputs": [2],
              "operators": [models.op(0, [1, 0], [2], "IfOptions", then_subgraph_index=i + 1, else_subgraph_index=i + 1)]}
             for i in range(1, 14)]
    last = {"tensors": [x] + [models.tensor(f"t{i}", [1]) for i in range(200)], "inputs": [0], "outputs": [0], "operators": []}
    text["subgraphs"] = [main, *chain, last]


@refused("unknown", "abs", "node 'HASHTABLE 0' (HASHTABLE): operator tflite.HASHTABLE of opset 1 is not supported")
def _(text, _main):
    text["operator_codes"][0].update(builtin_code="HASHTABLE", deprecated_builtin_code=127)


@refused("all_at_once", "add_none", "ADD 0", "activation 5", "'ADD 1'", "has 1 inputs")
def _(_text, main):
    first = main["operators"][0]
    first["builtin_options"]["fused_activation_function"] = "SIGN_BIT"
    main["tensors"].append(models.tensor("other", [2, 3, 4]))
    main["operators"].append({**first, "inputs": [2], "outputs": [3]})


def judge(candela, path, wanted):
    """What is wrong with how the model is refused, or None."""
    done = subprocess.run([candela, "run", str(path), "--random", "1"], capture_output=True, text=True)
    if done.returncode in (0, 3) or done.returncode < 0:
        return f"exit status {done.returncode}"
    missing = [part for part in (path.name, *wanted) if part not in done.stderr]
    return f"the message lacks {missing}: {done.stderr.strip()}" if missing else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candela", required=True)
    parser.add_argument("--flatc", default="flatc")
    arguments = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        tflite_model.write_models({name: text for name, text, _ in REFUSALS}, folder, arguments.flatc)
        for name, _, wanted in REFUSALS:
            wrong = judge(arguments.candela, folder / f"{name}.tflite", wanted)
            if wrong:
                failures += 1
                print(f"{name}: {wrong}")
    print(f"{len(REFUSALS) - failures} of {len(REFUSALS)} are refused as they should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
