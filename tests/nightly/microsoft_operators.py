#!/usr/bin/env python3
"""Compares operators of the domain com.microsoft with ONNX Runtime, run live, on soft, cpu and template.

usage: tests/nightly/microsoft_operators.py [--candela FILE] [--backend B]...

The cases are those of tests/onnx/write_microsoft_tests.py, which allows quantized results a step here and there, and of
write_microsoft_attention_tests.py, which `candela conform` judges.

Needs a build in build/, and Python with the packages of tests/models/requirements.txt and tests/onnx/requirements.txt.

Exit status: 0 all agree, 1 some do not, 2 bad usage or nothing to run.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
WRITERS = ROOT / "tests/onnx"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--backend", action="append", help="instead of soft, cpu and template; may be given again")
    arguments = parser.parse_args()
    if not arguments.candela.is_file():
        print(f"microsoft_operators: {arguments.candela} is missing; build it first", file=sys.stderr)
        return 2
    backends = arguments.backend or ["soft", "cpu", "template"]
    good = True
    with tempfile.TemporaryDirectory(prefix="candela_microsoft_") as folder:
        command = [sys.executable, "-B", WRITERS / "write_microsoft_tests.py", f"{folder}/steps", "--check",
                   arguments.candela]
        for backend in backends:
            command += ["--backend", backend]
        good &= subprocess.run(command).returncode == 0
        data = f"{folder}/attention"
        good &= subprocess.run(
            [sys.executable, "-B", WRITERS / "write_microsoft_attention_tests.py", data]).returncode == 0
        for backend in backends if good else ():
            good &= subprocess.run([arguments.candela, "conform", "--tier", "onnx", "--backend", backend,
                                    "--onnx-data", data]).returncode == 0
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
