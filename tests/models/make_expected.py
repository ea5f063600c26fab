#!/usr/bin/env python3
"""Writes expected/NAME_seed1.npy: ONNX Runtime's output of each model below for batch 1 of the random input 1.

usage: make_expected.py MODELS [--only NAME]... [--check]

MODELS is a directory that candela-gen-models wrote. --check compares with the committed files instead of writing
them; exit 1 where a value differs by more than 2e-4 of the largest. Versions: requirements.txt. The quantized
transformer is run without optimisation, which would replace its float parts.
"""
import argparse
import pathlib
import sys

import numpy as np
import onnxruntime as ort

from random_input import random_input

EXPECTED = pathlib.Path(__file__).resolve().parent / "expected"
SEED = 1
TOLERANCE = 2e-4
MODELS = ("mbv2", "resnet50", "bert4", "mbv2_int8", "resnet50_int8", "bert4_int8", "text_map", "text_line")
SHAPES = {"text_map": [3, 64, 96], "text_line": [3, 48, 96]}  # where the model leaves it open


def run(path):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    if path.stem == "bert4_int8":
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    (x,) = session.get_inputs()
    (out,) = session.get_outputs()
    (y,) = session.run([out.name], {x.name: random_input(SEED, [1] + SHAPES.get(path.stem, x.shape[1:]))})
    return y


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", type=pathlib.Path, help="directory that candela-gen-models wrote")
    parser.add_argument("--only", action="append", choices=MODELS, help="this model alone")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    arguments = parser.parse_args()

    failed = False
    for name in arguments.only or MODELS:
        path = arguments.models / f"{name}.onnx"
        if not path.is_file():
            parser.error(f"{path} is missing; write it with candela-gen-models {arguments.models}")
        y = run(path)
        file = EXPECTED / f"{name}_seed{SEED}.npy"
        if arguments.check:
            delta = float(np.abs(y - np.load(file)).max() / np.abs(y).max())
            failed |= not delta <= TOLERANCE
            print(f"{name}: differs from {file.name} by {delta:.2g} of the largest value")
        else:
            np.save(file, y)
            print(f"{name}: f32{list(y.shape)}, largest {np.abs(y).max():.6g}, onnxruntime {ort.__version__}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
