#!/usr/bin/env python3
"""Quantizes the same models on the same data with `candela quantize` and with ONNX Runtime's quantize_static, and runs
both results in ONNX Runtime.

usage: benchmarks/quantization/compare.py [--candela FILE] [--models DIR] [--model NAME]... [--report FILE]

Per model and calibrator: the signal-to-noise ratio of each output against the float model on data that calibrated
nothing, accuracy where there are labels, and the seconds that each tool took, profiling and writing included. digits is
in the repository; others are taken from --models, where candela-gen-models writes them (their weights are random: what
they show is time). Data of those is random too.

Needs Python with benchmarks/quantization/requirements.txt. Writes benchmarks/results/quantization.json.
"""
import argparse
import json
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnx.version_converter
import onnxruntime as ort
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts/lib"))
sys.path.insert(0, str(ROOT / "scripts"))
import nightly_light_models  # noqa: E402
import nightly_report  # noqa: E402

LIGHT = sorted(path.stem.removeprefix("light_") for path in nightly_light_models.DATA.glob("light_*.onnx"))

SCHEMA = "candela.quantization.v1"
CALIBRATORS = {"minmax": CalibrationMethod.MinMax, "entropy": CalibrationMethod.Entropy,
               "percentile": CalibrationMethod.Percentile}
SEED = 1


class Samples(CalibrationDataReader):
    """One sample a run."""

    def __init__(self, name, data):
        self.name, self.data, self.next = name, data, 0

    def get_next(self):
        if self.next == len(self.data):
            return None
        self.next += 1
        return {self.name: self.data[self.next - 1:self.next]}


def session(path):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    # Else products of bytes saturate in 16 bits on machines without VNNI, whoever made the model.
    options.add_session_config_entry("session.x64quantprecision", "1")
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def outputs(path, name, data):
    model = session(path)
    runs = [model.run(None, {name: data[i:i + 1]}) for i in range(len(data))]
    return [np.concatenate(each) for each in zip(*runs)]


def snr(want, got):
    noise = float(((want.astype(np.float64) - got) ** 2).sum())
    return 200.0 if noise == 0 else 10 * np.log10(float((want.astype(np.float64) ** 2).sum()) / noise)


def digits():
    folder = ROOT / "examples/digits"
    train = (np.load(folder / "train_images.npy") / 16).astype(np.float32)
    return {"path": folder / "digits.onnx", "input": "images", "calibration": train[:256],
            "test": np.load(folder / "test_images.npy"), "labels": np.load(folder / "test_labels.npy")}


def generated(path, count):
    model = onnx.load(path, load_external_data=False)
    value = model.graph.input[0]
    shape = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim][1:]
    random = np.random.default_rng(SEED)
    return {"path": path, "input": value.name, "calibration": random.normal(0, 1, (count, *shape)).astype(np.float32),
            "test": random.normal(0, 1, (4, *shape)).astype(np.float32)}


def light(name, count, folder):
    """One of the onnx package's networks with the weights of scripts/nightly_light_models.py, at opset 13, which
    quantize_static asks for."""
    network = nightly_light_models.Network(nightly_light_models.DATA / f"light_{name}.onnx")
    network.weigh()
    path = folder / f"{name}.onnx"
    network.write(path)
    model = onnx.load(path)
    given = {value.name for value in model.graph.input}
    for tensor in model.graph.initializer:  # which the converter knows as inputs alone
        if tensor.name not in given:
            model.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    converted = onnx.version_converter.convert_version(model, 13)
    names = {tensor.name for tensor in converted.graph.initializer}
    inputs = [value for value in converted.graph.input if value.name not in names]
    del converted.graph.input[:]
    converted.graph.input.extend(inputs)
    converted.ir_version = 8
    onnx.save(converted, path)
    images = [nightly_light_models.image(str(i), network.image_shape) for i in range(count + 2)]
    return {"path": path, "input": network.input.name, "calibration": np.concatenate(images[2:]),
            "test": np.concatenate(images[:2])}


def peers_model(case, calibrator, result, folder):
    prepared = folder / "prepared.onnx"
    start = time.perf_counter()
    quant_pre_process(case["path"], prepared, skip_symbolic_shape=True)
    quantize_static(prepared, result, Samples(case["input"], case["calibration"]), quant_format=QuantFormat.QDQ,
                    per_channel=True, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                    calibrate_method=CALIBRATORS[calibrator], extra_options={"WeightSymmetric": True})
    return time.perf_counter() - start


def our_model(candela, case, calibrator, result, folder):
    data = folder / "data.npy"
    np.save(data, case["calibration"])
    command = [candela, "quantize", case["path"], "--data", data, "--calibrate", calibrator, "-o", result,
               "--compare", "0"]
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", MEASURE, *map(str, command)], check=True, capture_output=True, text=True)
    return time.perf_counter() - start, int(done.stdout.split()[-1]) / 1024


# The peak of the memory of one child, which getrusage has of a process that waits for no other.
MEASURE = """import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"""


def measure(candela, name, case, calibrator):
    row = {"model": name, "calibrator": calibrator, "samples": len(case["calibration"])}
    want = outputs(case["path"], case["input"], case["test"])
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        paths = {"candela": folder / "candela.onnx", "onnxruntime": folder / "onnxruntime.onnx"}
        row["candela_seconds"], row["candela_mb"] = our_model(candela, case, calibrator, paths["candela"], folder)
        row["onnxruntime_seconds"] = peers_model(case, calibrator, paths["onnxruntime"], folder)
        for tool, path in paths.items():
            got = outputs(path, case["input"], case["test"])
            row[f"{tool}_snr_db"] = [round(float(snr(a, b)), 2) for a, b in zip(want, got)]
            if "labels" in case:
                row[f"{tool}_accuracy"] = float((got[0].argmax(1) == case["labels"]).mean())
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--model", action="append", help=f"digits, {', '.join(LIGHT)}, or NAME of NAME.onnx in --models")
    parser.add_argument("--calibrator", action="append", choices=list(CALIBRATORS))
    parser.add_argument("--samples", type=int, default=64, help="of generated models (64)")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/quantization.json")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.model or ["digits"]:
        with tempfile.TemporaryDirectory() as folder:
            if name == "digits":
                case = digits()
            elif name in LIGHT:
                case = light(name, arguments.samples, pathlib.Path(folder))
            else:
                case = generated(arguments.models / f"{name}.onnx", arguments.samples)
            for calibrator in arguments.calibrator or CALIBRATORS:
                row = measure(arguments.candela, name, case, calibrator)
                rows.append(row)
                print(json.dumps(row), flush=True)
    report = {"schema": SCHEMA, "machine": nightly_report.machine(), "onnxruntime": ort.__version__,
              "python": platform.python_version(), "rows": rows}
    arguments.report.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
