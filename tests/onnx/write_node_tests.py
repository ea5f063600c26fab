#!/usr/bin/env python3
"""Writes the node tests that the installed `onnx` package generates as folders.

usage: write_node_tests.py DIR

Each case becomes DIR/<name>/model.onnx with test_data_set_<n>/{input,output}_<i>.pb, as `candela conform --onnx-data`
and ONNX's own runner read them. The cases draw their numbers from numpy's global generator, which the package seeds for
each of them: two runs write the same bytes.
"""
import pathlib
import sys
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases


def message(value, info):
    """The value as the protobuf message that its type in the model asks for."""
    kind = info.type.WhichOneof("value")
    if isinstance(value, (onnx.TensorProto, onnx.SequenceProto, onnx.OptionalProto)):
        return value
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, info.name)
    return numpy_helper.from_array(np.asarray(value), info.name)


def write(case, folder):
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    graph = case.model.graph
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{number}"
        data.mkdir()
        for what, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
            for i, (value, info) in enumerate(zip(values, infos)):
                if value is not None:
                    (data / f"{what}_{i}.pb").write_bytes(message(value, info).SerializeToString())


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    target = pathlib.Path(sys.argv[1])
    if target.exists() and any(target.iterdir()):
        sys.exit(f"{target}: is not empty")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflows that the cases are about
        cases = collect_testcases(None)
    for case in cases:
        write(case, target / case.name)
    print(f"{len(cases)} cases of onnx {onnx.__version__} in {target}")


if __name__ == "__main__":
    main()
