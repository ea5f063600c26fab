#!/usr/bin/env python3
"""write_expected.py [--check]: what LiteRT's reference kernels answer to the models of cases.py, into expected.json.

Needs the package ai-edge-litert. --check compares instead of writing. Cases that LiteRT refuses are printed and left out.
Exit status: 0, or 1 where --check finds a difference.
"""
import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import cases
import tflite_model

EXPECTED = Path(__file__).with_name("expected.json")


def answer(case, path):
    """Shapes and values of the outputs; of what the reference kernels have not, by those that are optimized."""
    reference, plain = OpResolverType.BUILTIN_REF, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    try:
        kernels = plain if case.optimized else reference
        interpreter = Interpreter(str(path), experimental_op_resolver_type=kernels)
    except ValueError:
        interpreter = Interpreter(str(path), experimental_op_resolver_type=plain)
    interpreter.allocate_tensors()
    for detail, tensor in zip(interpreter.get_input_details(), case.fed()):
        interpreter.set_tensor(detail["index"], np.array(tensor.values, detail["dtype"]).reshape(tensor.shape))
    interpreter.invoke()
    outputs = []
    for detail in interpreter.get_output_details():
        value = interpreter.get_tensor(detail["index"])
        outputs.append({"shape": list(value.shape), "values": value.ravel().tolist()})
    return outputs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        tflite_model.write_models({case.name: tflite_model.model_text(case) for case in cases.CASES}, folder)
        answers = {}
        for case in cases.CASES:
            try:
                answers[case.name] = answer(case, folder / f"{case.name}.tflite")
            except (RuntimeError, ValueError) as error:
                print(f"{case.name}: {str(error).splitlines()[0]}", file=sys.stderr)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(outputs)}" for name, outputs in sorted(answers.items()))
    text = "{\n" + lines + "\n}\n"
    if not arguments.check:
        EXPECTED.write_text(text)
        print(f"{len(answers)} of {len(cases.CASES)} cases")
        return 0
    known = json.loads(EXPECTED.read_text())
    differing = [name for name in known.keys() | answers.keys() if known.get(name) != answers.get(name)]
    for name in sorted(differing):
        print(f"{name}: expected.json has something else")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
