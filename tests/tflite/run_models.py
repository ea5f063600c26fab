#!/usr/bin/env python3
"""run_models.py --candela TOOL [--flatc FLATC] [--backend B]: runs the models of models.py, whose answers stand there.

Exit status: 0, or 1 where one answers something else, or fails.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import models
import tflite_model


def flags(option, values, folder):
    line = []
    for name, (type, shape, numbers) in values.items():
        path = folder / f"{name}.npy"
        tflite_model.write_npy(path, type, shape, numbers)
        line += [option, f"{name}={path}"]
    return line


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candela", required=True)
    parser.add_argument("--flatc", default="flatc")
    parser.add_argument("--backend", default="soft")
    arguments = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        tflite_model.write_models({name: models.text_of(name) for name, _, _ in models.ANSWERS}, folder, arguments.flatc)
        for name, inputs, outputs in models.ANSWERS:
            command = [arguments.candela, "run", str(folder / f"{name}.tflite"), "--backend", arguments.backend]
            command += flags("--input", inputs, folder) + flags("--expect", outputs, folder)
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                failures += 1
                print(f"{name}: {(done.stderr or done.stdout).strip()}")
    print(f"{len(models.ANSWERS) - failures} of {len(models.ANSWERS)} models answer what they should")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
