#!/usr/bin/env python3
"""Each model of values/ gives its answers on every backend, as values/cases.toml says.

usage: check_values.py CANDELA FOLDER BACKEND...
"""
import pathlib
import subprocess
import sys
import tempfile
import tomllib


def tensors(folder, kind):
    return {path.stem.removeprefix(f"{kind}_"): path for path in sorted(folder.glob(f"{kind}_*.npy"))}


class Case:
    def __init__(self, candela, folder, rules):
        self.candela, self.folder, self.rules = candela, folder, rules

    def run(self, backend, *arguments):
        inputs = [word for name, path in tensors(self.folder, "in").items() for word in ("--input", f"{name}={path}")]
        command = [self.candela, "run", self.folder / "model.onnx", "--backend", backend, *inputs, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        said = (done.stdout + done.stderr).strip()
        return "" if done.returncode == 0 else f"{self.folder.name} on {backend}: exit status {done.returncode}\n{said}"

    def faults(self, backends):
        with tempfile.TemporaryDirectory() as scratch:
            expected = tensors(self.folder, "out")
            if self.rules.get("same"):
                yield self.run("reference", "--output", scratch)
                expected = {path.stem: path for path in pathlib.Path(scratch).glob("*.npy")}
            if not expected:
                yield f"{self.folder.name}: nothing is expected"
            bound = ["--rtol", str(self.rules.get("rtol", 0)), "--atol", str(self.rules.get("atol", 0))]
            for name, path in expected.items():
                bound += ["--expect", f"{name}={path}"]
            for backend in sorted(set(backends) - set(self.rules.get("wide", []))):
                alone = self.rules.get("npu", []) if backend == "npu_sim" else []
                options = [word for option in alone for word in ("--option", option)] + ["--require-native"] * bool(alone)
                yield self.run(backend, *bound, *options)


def main():
    candela, folder, *backends = sys.argv[1:]
    folder = pathlib.Path(folder)
    cases = tomllib.loads((folder / "cases.toml").read_text())
    faults = [f"{folder / name}: no such case" for name in cases if not (folder / name).is_dir()]
    faults += [f"{each.name}: not in cases.toml" for each in folder.iterdir() if each.is_dir() and each.name not in cases]
    for name, rules in cases.items():
        if (folder / name).is_dir():
            faults += [fault for fault in Case(candela, folder / name, rules).faults(backends) if fault]
    print("\n".join(faults) or f"{len(cases)} models on {', '.join(backends)}: as expected")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
