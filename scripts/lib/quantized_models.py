"""Trained models in 8 bits: those of scripts/fetch_models at fixed sizes, quantized by ONNX Runtime: weights by channel.

Ranges come from one random input: that suffices for bytes, instructions and time, which do not depend on data; what the
models would answer is not asked. Needs the packages of tests/models/requirements.txt, and onnx.
"""
import pathlib
import tempfile

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

import nightly_models

INPUT, SEED = "x", 1
SHAPES = {"ocr_detection": (1, 3, 416, 576), "ocr_direction": (1, 3, 48, 192)}


class One(CalibrationDataReader):
    """One random input."""

    def __init__(self, shape):
        self.rest = iter([{INPUT: np.random.default_rng(SEED).uniform(-1, 1, shape).astype(np.float32)}])

    def get_next(self):
        return next(self.rest, None)


def quantized(folder, names=tuple(SHAPES)):
    """Writes NAME_int8.onnx of each into the folder; their paths."""
    trained = nightly_models.trained()
    return [write(trained[name][0], SHAPES[name], pathlib.Path(folder) / f"{name}_int8.onnx") for name in names]


def write(path, shape, result):
    model = onnx.load(path)
    for dim, size in zip(model.graph.input[0].type.tensor_type.shape.dim, shape):
        dim.dim_value = size
    del model.graph.value_info[:]  # shapes of another size
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    with tempfile.TemporaryDirectory() as folder:
        fixed, folded = (pathlib.Path(folder) / name for name in ("fixed.onnx", "folded.onnx"))
        onnx.save(model, fixed)
        quant_pre_process(fixed, folded, skip_symbolic_shape=True)
        quantize_static(folded, result, One(shape), quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                        calibrate_method=CalibrationMethod.MinMax, extra_options={"WeightSymmetric": True})
    return result
