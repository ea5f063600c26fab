#!/usr/bin/env python3
"""Grows every preset of the NPU, one parameter at a time, and looks for networks that a larger device runs slower.

usage: tests/nightly/npu_monotone.py [--candela FILE] [--models DIR] [--report FILE] [--jobs N] [--only NAME,...] [--witness]

digits, MobileNetV2, BERT-4 and, on three presets, for it compiles longest, ResNet-50, all in int8 (build/models, which the
fixture of the tests writes; digits of examples), compiled anew for each preset with half, one and two times its scratchpad,
accumulators, DRAM width, rows and columns of the array, one and a half times its scratchpad, and the next faster DRAM; time
accurate, without data. From each size to the next larger one no network may lose more than 2 % of its cycles. What a larger array
needs to be filled and drained is no loss by the plan and is taken off: once for each layer with products, a row twice (weights
in, sums down) and a column once. It counts where a network is so small that its layers wait for each other. A step from a device
that does not take the network is no step. Writes benchmarks/results/npu_monotone.json.

--only     these networks; of others the report keeps what it has
--witness  digits on three presets, to the cycle of what that file has, which stays as it is

Exit status: 0 as it should be, 1 not, 2 nothing to run.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.npu_monotone.v1"
PRESETS = ("tiny", "nv_small", "gem16", "edge4t", "edge8t", "tpu1")
DIGITS = ROOT / "examples/digits/digits_int8.onnx"
MODELS = ("mbv2_int8", "bert4_int8", "resnet50_int8")
FEW = {"resnet50_int8": ("gem16", "edge8t", "tpu1")}
WITNESSED = ("nv_small", "edge4t", "tpu1")
MOST = {"scratchpad.bytes": 1 << 25, "array.rows": 256, "array.columns": 256}
DOUBLED = {"scratchpad.bytes": (0.5, 1, 1.5, 2), "accumulator.bytes": (0.5, 1, 2), "dram.width_bits": (0.5, 1, 2),
           "array.rows": (0.5, 1, 2), "array.columns": (0.5, 1, 2)}
FASTER = {"DDR3-2133": "DDR4-2400", "DDR4-2400": "DDR4-3200", "LPDDR4-3200": "LPDDR5-6400", "HyperRAM-400": "SRAM-1000"}
FILLS = {"array.rows": 2, "array.columns": 1}
MOST_LOST = 0.02
TIMEOUT_SECONDS = 600


def changed(text, key, value):
    """The text of a configuration with another value."""
    section, name = key.split(".")
    line = f'{name} = {json.dumps(value)}'
    before, after = text.split(f"[{section}]\n")
    part, *rest = re.split(r"^(?=\[)", after, maxsplit=1, flags=re.M)
    part, count = re.subn(rf"^{name} = .*$", line, part, flags=re.M)
    return f"{before}[{section}]\n" + (part if count else f"{line}\n{part}") + "".join(rest)


def sizes(preset):
    """(parameter, values) of the preset, the smallest first; its own is one of them."""
    own = tomllib.loads((ROOT / "simulator/configs" / f"{preset}.toml").read_text())
    for key, factors in DOUBLED.items():
        section, name = key.split(".")
        values = [int(own[section][name] * factor) for factor in factors]
        yield key, [value for value in values if value <= MOST.get(key, value)]
    if faster := FASTER.get(own["dram"]["type"]):
        yield "dram.type", [own["dram"]["type"], faster]


def simulate(candela, model, text):
    """Cycles of all programs, their products and layers that have some, and seconds; why not where there is no such thing."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "npu.toml").write_text(text)
        options = {"npu": folder / "npu.toml", "engine": "accurate", "data": "off", "report": folder / "report"}
        command = [str(candela), "run", str(model), "--backend", "npu_sim", "--dim", "N=1", "--random", "1", "--json", "-"]
        for key, value in options.items():
            command += ["--option", f"npu_sim.{key}={value}"]
        start = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
        seconds = time.monotonic() - start
        if done.returncode or not (folder / "report").exists():
            said = done.stderr.strip().splitlines()
            return {"refused": (said[-1] if said else "no program").replace(str(folder) + "/", "")}
        lines = [json.loads(line) for line in (folder / "report").read_text().splitlines()]
    return {"cycles": sum(line["time"]["cycles"] for line in lines), "macs": sum(line["macs"] for line in lines),
            "products": sum(layer["macs"] > 0 for line in lines for layer in line["layers"]), "seconds": seconds}


def stepOf(key, small, before, large, after):
    step = {"grew": key, "from": small, "to": large, "cycles": [before["cycles"], after.get("cycles")]}
    if "refused" in after:
        return {**step, "refused": after["refused"]}
    fill = after["products"] * FILLS[key] * (large - small) if key in FILLS else 0
    if fill:
        step["fill"] = fill
    if before["macs"] != after["macs"]:
        step["macs"] = [before["macs"], after["macs"]]
    return {**step, "lost": round((after["cycles"] - fill) / before["cycles"] - 1, 4)}


def judge(model, preset, steps):
    problems = [f"{step['grew']} {step['to']}: {step['refused']}" if "refused" in step else
                f"{step['grew']} {step['to']}: {100 * step['lost']:.1f} % lost"
                for step in steps if "refused" in step or step["lost"] > MOST_LOST]
    most = max((step["lost"] for step in steps if "lost" in step), default=0)
    print(f"{model} on {preset}: {len(steps)} steps, {100 * most:+.1f} % at worst; {'; '.join(problems) or 'passed'}", flush=True)
    return {"model": model, "npu": preset, "steps": steps, "most_lost": most, "problems": problems, "passed": bool(steps) and not problems}


def witness(results, path):
    """Whether the cycles are those of the committed report, and all passed."""
    known = {(case["model"], case["npu"]): case for case in json.loads(path.read_text())["results"]}
    other = [f"{case['model']} on {case['npu']}" for case in results if case["steps"] != known[case["model"], case["npu"]]["steps"]]
    for name in other:
        print(f"npu_monotone: {name}: other cycles than in {path}", file=sys.stderr)
    return 0 if not other and all(case["passed"] for case in results) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build/models")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/npu_monotone.json")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="")
    parser.add_argument("--witness", action="store_true")
    arguments = parser.parse_args()
    models = [DIGITS] + [arguments.models / f"{name}.onnx" for name in MODELS] * (not arguments.witness)
    models = [model for model in models if not arguments.only or model.stem in arguments.only.split(",")]
    for path in (arguments.candela, *models):
        if not path.exists():
            print(f"npu_monotone: {path} is missing", file=sys.stderr)
            return 2
    def presets(model):
        return WITNESSED if arguments.witness else FEW.get(model.stem, PRESETS)

    start = time.monotonic()
    texts = {preset: (ROOT / "simulator/configs" / f"{preset}.toml").read_text() for preset in PRESETS}
    results, slowest = [], 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        runs = {}  # by model and text of the configuration
        for model in models:
            for preset in presets(model):
                for key, values in sizes(preset):
                    for at in ((model, changed(texts[preset], key, value)) for value in values):
                        runs[at] = runs.get(at) or pool.submit(simulate, arguments.candela, *at)
        for model in models:
            for preset in presets(model):
                steps = []
                for key, values in sizes(preset):
                    said = [(value, runs[model, changed(texts[preset], key, value)].result()) for value in values]
                    slowest = max([slowest, *(each["seconds"] for _, each in said if "seconds" in each)])
                    steps += [stepOf(key, *small, *large) for small, large in zip(said, said[1:]) if "refused" not in small[1]]
                results.append(judge(model.stem, preset, steps))
    if arguments.witness:
        return witness(results, arguments.report)
    print(f"{len(runs)} simulations in {time.monotonic() - start:.0f} s, the longest {slowest:.1f} s")
    if arguments.only:
        results += nightly_report.kept(arguments.report, results)
    report = {"schema": SCHEMA, "generated_at": nightly_report.now(), "machine": nightly_report.machine(),
              "steps": sum(len(case["steps"]) for case in results), "results": results}
    return nightly_report.finish(arguments, report, None)


if __name__ == "__main__":
    sys.exit(main())
