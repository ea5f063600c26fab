#!/usr/bin/env python3
"""run_networks.py --candela TOOL [--backend B] [--keep DIR]: each network of networks.py answers the same as nets of Caffe2, as both
nets in one file, and as a model of ONNX; an NPU leaves no products of them to the host.

Exit status: 0, or 1 where an answer differs.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import caffe2_net
import networks


def run(arguments, *line):
    done = subprocess.run([arguments.candela, "run", "--backend", arguments.backend, *map(str, line)], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError((done.stderr or done.stdout).strip())


def estimate(name, folder, shape, arguments):
    """Weights are constants of the net, so that all products are ones of integers, which the NPU does."""
    command = [arguments.candela, "simulate", str(folder / "predict_net.pb"), "--shape", shape, "--npu", "gem16", "--random", "1", "--no-data"]
    done = subprocess.run(command + ([] if name == "int8" else ["--assume-int8"]), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError((done.stderr or done.stdout).strip())
    if "steps of the host with 0 MACs" not in done.stdout:
        raise RuntimeError("the NPU leaves products to the host:\n" + done.stdout)


def compare(name, folder, arguments):
    folder.mkdir(exist_ok=True)
    network, output = networks.NETWORKS[name]()
    network.write(folder, output)
    np.save(folder / "data.npy", np.random.default_rng(networks.SEED).standard_normal(network.shape).astype(np.float32))
    data = f"data={folder}/data.npy"
    run(arguments, folder / "model.onnx", "--input", data, "--output", folder)
    both = folder / "both.pb"
    both.write_bytes((folder / "init_net.pb").read_bytes() + (folder / "predict_net.pb").read_bytes())
    shape = f"data={'x'.join(map(str, network.shape))}"
    for net in (folder / "predict_net.pb", both):
        run(arguments, net, "--input", data, "--shape", shape, "--expect", f"{output}={folder}/{output}.npy", "--rtol", 1e-5)
    estimate(name, folder, shape, arguments)


def compare_in_place(folder, arguments):
    """A net that writes its input again and gives it out."""
    net = caffe2_net.net([caffe2_net.op("Relu", ["x"], ["x"]), caffe2_net.op("Negative", ["x"], ["y"])], ["x"], ["x", "y"])
    (folder / "in_place.pb").write_bytes(net)
    np.save(folder / "x.npy", np.array([-1, 2], np.float32))
    np.save(folder / "y.npy", np.array([0, -2], np.float32))
    np.save(folder / "x_out.npy", np.array([0, 2], np.float32))
    run(arguments, folder / "in_place.pb", "--shape", "x=2", "--input", f"x={folder}/x.npy", "--expect", f"y={folder}/y.npy",
        "--expect", f"x:1={folder}/x_out.npy")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candela", required=True)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as temporary:
        compare_in_place(arguments.keep or Path(temporary), arguments)
        for name in networks.NETWORKS:
            try:
                compare(name, (arguments.keep or Path(temporary)) / name, arguments)
                print(f"{name}: the same")
            except RuntimeError as error:
                failures += 1
                print(f"{name}: {error}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
