#!/usr/bin/env python3
"""Writes expected_scores.npy: ONNX Runtime's scores of digits.onnx for test_images.npy. Versions: requirements.txt.

`--check` compares with the committed file instead of writing it; exit 1 where a score differs by more than 1e-4.
"""
import pathlib
import sys

import numpy as np
import onnxruntime as ort

HERE = pathlib.Path(__file__).resolve().parent


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        print("usage: make_expected.py [--check]", file=sys.stderr)
        return 2
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(
        str(HERE / "digits.onnx"), options, providers=["CPUExecutionProvider"]
    )
    images = np.load(HERE / "test_images.npy")
    labels = np.load(HERE / "test_labels.npy")
    (scores,) = session.run(["scores"], {"images": images})
    hits = int((scores.argmax(1) == labels).sum())
    print(f"onnxruntime {ort.__version__}: {100 * hits / len(labels):.2f} % ({hits} of {len(labels)})")
    if sys.argv[1:] == ["--check"]:
        delta = float(np.abs(scores - np.load(HERE / "expected_scores.npy")).max())
        print(f"largest difference from expected_scores.npy: {delta:.3g}")
        return 0 if delta <= 1e-4 else 1
    np.save(HERE / "expected_scores.npy", scores)
    return 0


if __name__ == "__main__":
    sys.exit(main())
