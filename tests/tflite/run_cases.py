#!/usr/bin/env python3
"""run_cases.py --candela TOOL [--flatc FLATC] [--backend B] [--only GLOB] [--keep DIR]: runs every model of cases.py and
compares what it answers with expected.json, which LiteRT's reference kernels gave. Standard library only.

Exit status: 0, or 1 where a case answers something else, or fails.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import cases
import tflite_model

EXPECTED = json.loads(Path(__file__).with_name("expected.json").read_text())


def with_shapes(case):
    """The outputs have the shapes that they were seen to have."""
    for tensor, seen in zip(case.outputs, EXPECTED[case.name]):
        tensor.shape = tuple(seen["shape"])
    return case


def command(case, folder, arguments):
    own = folder / case.name
    own.mkdir(exist_ok=True)
    line = [arguments.candela, "run", str(folder / f"{case.name}.tflite"), "--backend", arguments.backend]
    for i, tensor in enumerate(case.inputs):
        if tensor is None or tensor.const or tensor.variable:
            continue
        tflite_model.write_npy(own / f"in{i}.npy", tensor.type, tensor.shape, tensor.values)
        line += ["--input", f"in{i}={own}/in{i}.npy"]
    for i, (tensor, seen) in enumerate(zip(case.outputs, EXPECTED[case.name])):
        tflite_model.write_npy(own / f"out{i}.npy", tensor.type, seen["shape"], seen["values"])
        line += ["--expect", f"out{i}={own}/out{i}.npy"]
    if case.steps:
        line += ["--rtol", "0", "--atol", str(case.steps)]
    elif case.outputs[0].type[0] == "f":
        line += ["--rtol", str(case.tolerance), "--atol", str(case.tolerance)]
    return line


def run(case, folder, arguments):
    """What went wrong, or None."""
    done = subprocess.run(command(case, folder, arguments), capture_output=True, text=True)
    return None if done.returncode == 0 else f"{case.name}: {(done.stderr or done.stdout).strip()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candela", required=True)
    parser.add_argument("--flatc", default="flatc")
    parser.add_argument("--backend", default="soft")
    parser.add_argument("--only", default="*")
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    chosen = [with_shapes(case) for case in cases.CASES
              if case.name in EXPECTED and fnmatch.fnmatch(case.name, arguments.only)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        tflite_model.write_models({case.name: tflite_model.model_text(case) for case in chosen}, folder, arguments.flatc)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            failures = [message for message in pool.map(lambda case: run(case, folder, arguments), chosen) if message]
    for message in failures:
        print(message)
    print(f"{len(chosen) - len(failures)} of {len(chosen)} cases agree")
    return 1 if failures or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
