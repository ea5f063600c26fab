#!/usr/bin/env python3
"""Makes digits_int8.onnx of digits.onnx: 8 bits for weights (by channel, symmetric) and activations, as QuantizeLinear and
DequantizeLinear around every node. Ranges come from the first images of test_images.npy. Run in the venv of the README.

usage: quantize.py [--images N]
"""
import argparse
import pathlib
import tempfile

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

HERE = pathlib.Path(__file__).resolve().parent


class Images(CalibrationDataReader):
    def __init__(self, images):
        self.rest = iter([{"images": images}])

    def get_next(self):
        return next(self.rest, None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=64, help="how many calibrate (64)")
    count = parser.parse_args().images
    with tempfile.TemporaryDirectory() as folder:
        folded = pathlib.Path(folder) / "folded.onnx"
        quant_pre_process(HERE / "digits.onnx", folded, skip_symbolic_shape=True)  # batch normalizations into the convolutions
        result = pathlib.Path(folder) / "int8.onnx"
        quantize_static(folded, result, Images(np.load(HERE / "test_images.npy")[:count]), quant_format=QuantFormat.QDQ,
                        per_channel=True, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                        calibrate_method=CalibrationMethod.MinMax,
                        extra_options={"WeightSymmetric": True})
        model = onnx.load(result)
    model.graph.name = "digits_int8"
    onnx.save(model, HERE / "digits_int8.onnx")


if __name__ == "__main__":
    main()
