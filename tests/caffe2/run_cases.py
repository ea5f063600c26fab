#!/usr/bin/env python3
"""run_cases.py --candela TOOL [--backend B] [--only GLOB] [--keep DIR]: every net of cases.py, as an init net and a predict net, gives
what numpy computed.

Exit status: 0, or 1 where a net answers something else, or fails.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import caffe2_net
import cases


def write(case, folder):
    """The files of a case; the command line that checks it, behind `candela run`."""
    names = [f"in{i}" for i in range(len(case.operands))]
    outputs = [f"out{i}" for i in range(len(case.expected))]
    count = len(names) - case.constants
    fills = [caffe2_net.fill(name, array) for name, array in list(zip(names, case.operands))[count:]]
    inputs = dict(zip(names[:count], case.operands))
    predict = caffe2_net.net([caffe2_net.op(case.type, names, outputs, **case.arguments)], names, outputs)
    (folder / "predict_net.pb").write_bytes(predict)
    (folder / "init_net.pb").write_bytes(caffe2_net.net(fills, (), names[count:]))
    (folder / "value_info.json").write_text(json.dumps(caffe2_net.value_info(inputs)))
    line = [str(folder / "predict_net.pb"), "--rtol", "1e-5", "--atol", "1e-5"]
    for name, array in inputs.items():
        np.save(folder / f"{name}.npy", array)
        line += ["--input", f"{name}={folder}/{name}.npy"]
    for name, array in zip(outputs, case.expected):
        like = array.astype(np.float32) if array.dtype == np.float64 else array
        np.save(folder / f"{name}.npy", np.array(like, order="C"))
        line += ["--expect", f"{name}={folder}/{name}.npy"]
    return line


def run(case, root, arguments):
    """What went wrong, or None."""
    folder = root / case.name
    folder.mkdir(exist_ok=True)
    line = [arguments.candela, "run", *write(case, folder), "--backend", arguments.backend]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"{case.name}: {(done.stderr or done.stdout).strip()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candela", required=True)
    parser.add_argument("--backend", default="soft")
    parser.add_argument("--only", default="*")
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    chosen = [case for case in cases.CASES if fnmatch.fnmatch(case.name, arguments.only)]
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor(2) as pool:
        root = arguments.keep or Path(temporary)
        failures = [message for message in pool.map(lambda case: run(case, root, arguments), chosen) if message]
    for message in failures:
        print(message)
    print(f"{len(chosen) - len(failures)} of {len(chosen)} cases agree")
    return 1 if failures or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
