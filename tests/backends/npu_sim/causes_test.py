#!/usr/bin/env python3
"""What a layer's cycles went to: the causes sum to them exactly, and taking the first one away helps, another one does not.

usage: causes_test.py CANDELA DIGITS_INT8
"""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

SLOW_MEMORY = """name = "slow"
clock_mhz = {clock}
[dma]
beat_bytes = 2
[dram]
type = "DDR3-2133"
width_bits = 16
"""
# One long product by weights that do not stay: the memory has 2 bytes a cycle, the array needs 16.
PRODUCT = """graph @product(%x: i8[16,512]) -> (%y: i32[16,2048]) {
  %w = constant random(2) : i8[512,2048]
  %y = matmul_integer %x, %w, _, _ : i32[16,2048]
}
"""
# Much to multiply, in 16 rows and 16 columns each.
CONVOLUTION = """graph @convolution(%x: i8[1,64,28,28]) -> (%y: i8[1,64,28,28]) {
  %w = constant random(2) : i8[64,64,3,3]
  %sums = conv_integer %x, %w, _, _ {group = 1, pads = [1, 1, 1, 1], strides = [1, 1]} : i32[1,64,28,28]
  %m = constant [9942054] : i32[]
  %s = constant [36] : i32[]
  %z = constant [0] : i32[]
  %y = rescale %sums, %m, %s, %z {to = i8} : i8[1,64,28,28]
}
"""
# Three channels in: of 16 rows 9 taps of one channel are used.
NARROW = CONVOLUTION.replace("i8[1,64,28,28]) ->", "i8[1,1,28,28]) ->").replace("i8[64,64,3,3]", "i8[64,1,3,3]")
MEMORY = {"load", "store", "dram", "scatter"}


def expect(is_true, what):
    if not is_true:
        sys.exit(f"causes_test: {what}")


class Simulator:
    def __init__(self, candela, folder):
        self.candela = candela
        self.folder = folder

    def report(self, model, npu, *more):
        """Checks the sums of what comes back."""
        out, table = self.folder / "report.json", self.folder / "layers.csv"
        command = [self.candela, "simulate", model, "--npu", npu, "--random", "1", "--json", out, "--csv", table, *more]
        ended = subprocess.run(command, capture_output=True, text=True)
        expect(ended.returncode == 0, ended.stderr)
        report = json.loads(out.read_text())
        for layer in report["layers"]:
            causes = list(layer["causes"].values())
            expect(sum(causes) == layer["cycles"], f"{model}: {layer['name']}: {layer['causes']} are not {layer['cycles']} cycles")
            expect(causes == sorted(causes, reverse=True), f"{model}: {layer['causes']}: the most does not come first")
            expect(layer.get("bound") == next(iter(layer["causes"]), None), f"{layer['causes']}: the first is not the bound")
        expect(sum(layer["cycles"] for layer in report["layers"]) == report["cycles"], f"{model}: layers are not the whole")
        expect(sum(report["time"]["causes"].values()) == report["cycles"], f"{model}: causes are not the whole")
        with open(table, newline="") as file:
            for row in csv.DictReader(file):
                causes = [int(cycles) for name, cycles in row.items() if name.startswith("cause_")]
                expect(sum(causes) == int(row["cycles"]), f"{model}: {row}")
        return report

    def model(self, name, text):
        path = self.folder / f"{name}.cdl"
        path.write_text(text)
        return path

    def npu(self, clock):
        path = self.folder / f"slow{clock}.toml"
        path.write_text(SLOW_MEMORY.format(clock=clock))
        return path


def main():
    candela, digits = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        simulator = Simulator(candela, pathlib.Path(name))
        for fidelity in ("fast", "accurate", "exact"):
            for npu in ("tiny", simulator.npu(1000)):
                simulator.report(digits, npu, "--dim", "N=2", "--fidelity", fidelity)
        product = simulator.model("product", PRODUCT)
        slow = simulator.report(product, simulator.npu(1000))
        expect(slow["layers"][0]["bound"] in MEMORY, slow["layers"][0]["causes"])
        quick = simulator.report(product, "gem16")
        memory = sum(slow["time"]["causes"].get(cause, 0) for cause in MEMORY)
        expect(slow["cycles"] - quick["cycles"] > memory / 2, f"another memory takes away {slow['cycles'] - quick['cycles']} of {memory}")
        expect(slow["cycles"] - quick["cycles"] <= memory, "another memory takes away more than its share")
        convolution = simulator.model("convolution", CONVOLUTION)
        busy = simulator.report(convolution, "gem16")
        expect(busy["layers"][0]["bound"] == "products", busy["layers"][0]["causes"])
        narrow = simulator.report(simulator.model("narrow", NARROW), "gem16")["layers"][0]["causes"]
        expect(narrow["unused"] > narrow["products"] / 2, f"7 of 16 rows are empty: {narrow}")


if __name__ == "__main__":
    main()
