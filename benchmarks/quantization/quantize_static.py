"""Quantizes a model with ONNX Runtime's quantize_static, as a script of its users does. Prints the seconds of the calls.

usage: quantize_static.py MODEL INPUT DATA.npy CALIBRATOR RESULT
"""
import pathlib
import sys
import tempfile
import time

import numpy as np
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

METHODS = {"minmax": CalibrationMethod.MinMax, "entropy": CalibrationMethod.Entropy,
           "percentile": CalibrationMethod.Percentile}


class Samples(CalibrationDataReader):
    """One sample a run."""

    def __init__(self, name, data):
        self.name, self.data, self.next = name, data, 0

    def get_next(self):
        if self.next == len(self.data):
            return None
        self.next += 1
        return {self.name: self.data[self.next - 1:self.next]}


def main():
    model, name, data, calibrator, result = sys.argv[1:]
    samples = Samples(name, np.load(data))
    with tempfile.TemporaryDirectory() as folder:
        prepared = pathlib.Path(folder) / "prepared.onnx"
        start = time.perf_counter()
        quant_pre_process(model, prepared, skip_symbolic_shape=True)
        quantize_static(prepared, result, samples, quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                        calibrate_method=METHODS[calibrator], extra_options={"WeightSymmetric": True})
        print(time.perf_counter() - start)


if __name__ == "__main__":
    main()
