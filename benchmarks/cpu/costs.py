#!/usr/bin/env python3
"""Measures the rates by which the cpu backend prices Programs (backends/cpu/costs.hpp).

usage: benchmarks/cpu/costs.py [--build DIR] [--seconds 1] [--rounds 3] | --check

One graph for each rate, on one thread, in every tier of this machine; the best of all rounds counts. A tier that this machine
lacks keeps what benchmarks/results/cpu_costs.json has of it; one that no machine has measured yet is the one below it, times
the ratio of their vectors and dot products, and is marked as `scaled`. Writes that file and backends/cpu/cost_rates.inc.

--check    measures nothing: is the table that of the file?

Exit status: 0 all was measured, or is as it should be; 1 it is not; 2 bad usage or a failed run.
"""
import argparse
import json
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.cpu_costs.v1"
TIMEOUT_SECONDS = 600
RESULT = ROOT / "benchmarks/results/cpu_costs.json"
TABLE = ROOT / "backends/cpu/cost_rates.inc"

# name: (what is counted, how many of it, the graph)
GRAPHS = {
    "conv": ("products", 128 * 128 * 9 * 28 * 28, """
graph @conv(%x: f32[1,128,28,28]) -> (%y: f32[1,128,28,28]) {
  %w = constant random(1) : f32[128,128,3,3]
  %y = conv %x, %w {group = 1, pads = [1, 1, 1, 1], strides = [1, 1]}
}"""),
    "depthwise": ("products", 192 * 9 * 28 * 28, """
graph @depthwise(%x: f32[1,192,28,28]) -> (%y: f32[1,192,28,28]) {
  %w = constant random(1) : f32[192,1,3,3]
  %y = conv %x, %w {group = 192, pads = [1, 1, 1, 1], strides = [1, 1]}
}"""),
    "product": ("products", 128 * 768 * 768, """
graph @product(%x: f32[128,768]) -> (%y: f32[128,768]) {
  %w = constant random(1) : f32[768,768]
  %y = matmul %x, %w
}"""),
    "convInt8": ("products", 128 * 128 * 9 * 28 * 28, """
graph @conv_int8(%x: u8[1,128,28,28]) -> (%y: i32[1,128,28,28]) {
  %w = constant random(1) : i8[128,128,3,3]
  %y = conv_integer %x, %w, _, _ {group = 1, pads = [1, 1, 1, 1], strides = [1, 1]} : i32[1,128,28,28]
}"""),
    "depthwiseInt8": ("products", 192 * 9 * 28 * 28, """
graph @depthwise_int8(%x: u8[1,192,28,28]) -> (%y: i32[1,192,28,28]) {
  %w = constant random(1) : i8[192,1,3,3]
  %y = conv_integer %x, %w, _, _ {group = 192, pads = [1, 1, 1, 1], strides = [1, 1]} : i32[1,192,28,28]
}"""),
    "productInt8": ("products", 128 * 768 * 768, """
graph @product_int8(%x: u8[128,768]) -> (%y: i32[128,768]) {
  %w = constant random(1) : i8[768,768]
  %y = matmul_integer %x, %w, _, _ : i32[128,768]
}"""),
    "elements": ("elements", 1 << 14, """
graph @elements(%x: f32[16384], %z: f32[16384]) -> (%y: f32[16384]) {
  %y = max %x, %z
}"""),
    "curves": ("elements", 1 << 14, """
graph @curves(%x: f32[16384]) -> (%y: f32[16384]) {
  %y = exp %x
}"""),
    "bytes": ("bytes", 3 * 4 << 22, """
graph @bytes(%x: f32[4194304], %z: f32[4194304]) -> (%y: f32[4194304]) {
  %y = add %x, %z
}"""),
}
TIERS = {"x86-64-v3": "V3", "avxvnni": "AVX_VNNI", "avx512": "AVX512", "avx512vnni": "VNNI", "avx512bf16": "BF16", "amx": "AMX"}
# What a tier that nobody measured has of the rates of the one below: lanes of a vector, products of one instruction.
FLOAT, INT8 = ("conv", "depthwise", "product", "elements", "curves"), ("convInt8", "depthwiseInt8", "productInt8")
SCALES = {
    "avxvnni": {"convInt8": 2, "productInt8": 2},
    "avx512": {**dict.fromkeys(FLOAT, 2), **dict.fromkeys(INT8, 2)},
    "avx512vnni": {"convInt8": 2, "productInt8": 2},
    "avx512bf16": {},
    "amx": {"convInt8": 2, "productInt8": 2},
}

# The tier that one is scaled from; else the one before it.
SCALED_FROM = {"avx512": "x86-64-v3"}


def tiersHere(candela):
    """Those that a tiny model compiles for."""
    here = []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tiny.cdl"
        path.write_text(GRAPHS["elements"][2])
        for tier in TIERS:
            try:
                nightly_report.answer([candela, "run", path, "--backend", "cpu", "--option", f"isa={tier}", "--random", "1"],
                                      TIMEOUT_SECONDS)
                here.append(tier)
            except RuntimeError:
                continue
    return here


def measured(candela, tier, rounds, seconds):
    """{rate: what is done in a nanosecond}"""
    rates = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (_, count, text) in GRAPHS.items():
            path = pathlib.Path(folder) / f"{name}.cdl"
            path.write_text(text)
            best = min(
                nightly_report.answer([candela, "bench", path, "--backend", "cpu", "--option", f"isa={tier}", "--threads", "1",
                                       "--seconds", str(seconds)], TIMEOUT_SECONDS)["latency_ms"]["min"]
                for _ in range(rounds))
            rates[name] = float(f"{count / (best * 1e6):.3g}")
            print(f"{tier:12} {name:14} {rates[name]:9.3g} {GRAPHS[name][0]}/ns", flush=True)
    return rates


def scaled(below, factors):
    return {name: float(f"{rate * factors.get(name, 1):.3g}") for name, rate in below.items()}


def table(tiers):
    lines = [f"// generated by benchmarks/cpu/costs.py of {RESULT.relative_to(ROOT)}; do not edit"]
    for tier, entry in tiers.items():
        rates = entry["rates"]
        numbers = ", ".join(f"{rates[name]:g}" for name in GRAPHS)
        lines.append(f"{{Tier::{TIERS[tier]}, {numbers}}}, // {entry['source']}")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.check:
        tiers = json.loads(RESULT.read_text())["tiers"]
        if table(tiers) == TABLE.read_text() and list(tiers) == list(TIERS):
            return 0
        print(f"costs: {TABLE} is not what {RESULT} says", file=sys.stderr)
        return 1
    candela = arguments.build / "bin/candela"
    if not candela.exists():
        parser.error(f"no tool {candela}")
    known = json.loads(RESULT.read_text())["tiers"] if RESULT.exists() else {}
    here = tiersHere(candela)
    machine = nightly_report.machine()
    tiers, before = {}, None
    for tier in TIERS:
        below = SCALED_FROM.get(tier, before)
        if tier in here:
            tiers[tier] = {"source": f"measured on {machine['processor']}",
                           "rates": measured(candela, tier, arguments.rounds, arguments.seconds)}
        elif known.get(tier, {}).get("source", "").startswith("measured"):
            tiers[tier] = known[tier]
        else:
            tiers[tier] = {"source": f"scaled from {below}", "rates": scaled(tiers[below]["rates"], SCALES[tier])}
        before = tier
    units = {name: f"{counted} in a nanosecond of one thread" for name, (counted, _, _) in GRAPHS.items()}
    RESULT.write_text(json.dumps({"schema": SCHEMA, "units": units, "tiers": tiers}, indent=1) + "\n")
    TABLE.write_text(table(tiers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
