#!/usr/bin/env python3
"""run_programs.py --candela TOOL [--backend B] [--only GLOB]: runs the programs of programs/, whose answers by JAX stand in
programs/expected.json: integers and bools are equal, floats within 1e-5 of the largest value. Standard library only.

Exit status: 0, or 1 where one answers something else, or fails.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import math
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "programs"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
FORMATS = {"f32": "f", "f16": "e", "i8": "b", "u8": "B", "i16": "h", "i32": "i", "u32": "I", "i64": "q", "bool": "?"}
TOLERANCE = 1e-5  # of the largest value


def write_npy(path, tensor):
    code = FORMATS[tensor["type"]]
    size = struct.calcsize(code)
    kind = tensor["type"][0]
    dims = "(" + "".join(f"{dim}, " for dim in tensor["shape"]) + ")"
    head = f"{{'descr': '{'|' if size == 1 else '<'}{kind}{size}', 'fortran_order': False, 'shape': {dims}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    body = struct.pack(f"<{len(tensor['values'])}{code}", *tensor["values"])
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + body)


def command(name, folder, arguments):
    own = folder / name
    own.mkdir()
    line = [arguments.candela, "run", str(FOLDER / f"{name}.mlir"), "--backend", arguments.backend]
    largest = 0
    for option, tensors in (("--input", EXPECTED[name]["inputs"]), ("--expect", EXPECTED[name]["outputs"])):
        for port, tensor in tensors.items():
            write_npy(own / f"{port}.npy", tensor)
            line += [option, f"{port}={own}/{port}.npy"]
            if option == "--expect" and tensor["type"][0] == "f":
                largest = max([largest, *(abs(value) for value in tensor["values"] if math.isfinite(value))])
    return line + ["--rtol", str(TOLERANCE), "--atol", str(TOLERANCE * largest)]


def run(name, folder, arguments):
    """What went wrong, or None."""
    done = subprocess.run(command(name, folder, arguments), capture_output=True, text=True)
    return None if done.returncode == 0 else f"{name}: {(done.stderr or done.stdout).strip()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candela", required=True)
    parser.add_argument("--backend", default="soft")
    parser.add_argument("--only", default="*")
    arguments = parser.parse_args()
    chosen = [name for name in EXPECTED if fnmatch.fnmatch(name, arguments.only)]
    with tempfile.TemporaryDirectory() as folder:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            failures = [said for said in pool.map(lambda name: run(name, Path(folder), arguments), chosen) if said]
    for message in failures:
        print(message)
    print(f"{len(chosen) - len(failures)} of {len(chosen)} programs agree")
    return 1 if failures or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
