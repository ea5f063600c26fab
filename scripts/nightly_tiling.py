#!/usr/bin/env python3
"""Tiles random Graphs and Programs for random memories and compares, and counts the bytes that tiled models copy.

usage: scripts/nightly_tiling.py [--build DIR] [--draws N] [--program-draws N] [--models DIR] [--report FILE] [--page FILE]

2,000 seeded Graphs lowered as for a device, and as many Programs of layers, each for one to three local memories of 4 KB to
1 MB (Programs: from 256 bytes on): each either does what it did before, on poisoned memory with every wait checked, or is
refused with the numbers that disagree. Then int8 networks for each preset of the NPU (simulator/configs): the bytes of their
copies beside what must move whatever the tiles, and for each step where the distance comes from. All figures but times are
exact and the same on every machine. Writes benchmarks/results/tiling.json and docs/reference/tiling.md.

Needs a build in build/ with the tests and backends/cpu, and build/bin/candela-gen-models unless --models is given.

Exit status: 0 all draws agree and ResNet-50 on gem16 copies at most 1.25 times the bound, 1 not so, 2 bad usage.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import nightly_report  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMA = "candela.tiling_nightly.v2"
PROMISED_RATIO = 1.25
PROMISED = ("resnet50_int8", "gem16")
CHUNK = 100
TIMEOUT_SECONDS = 1800
MODELS = ("resnet50_int8", "mbv2_int8", "bert4_int8")
PRESETS = ("tiny", "nv_small", "gem16", "edge4t", "edge8t", "tpu1")
TESTS = {"graphs": "plan_tile_graph_test", "programs": "plan_tile_random_test"}
NUMBER = re.compile(r"(\d+) ([a-z ]+)")
PAGE = """# Tiles: the bytes that networks copy

Copies from and to memory of int8 networks of one image or sequence, tiled for the presets of the NPU
([the page of its configurations](npu_configuration.md)) with the fusions of backends/cpu. The bound is what must move
whatever the tiles: constants, inputs and outputs once, and values larger than the scratchpad once out and once in.
A ratio below 1 says that parts of such values wait in local memory. Exact, the same on every machine; made by
`scripts/nightly_tiling.py`, which keeps the distance of each step and value in `benchmarks/results/tiling.json`.

| network | preset | copied bytes | weights | tables | values in | values out | bound | ratio |
|---|---|---|---|---|---|---|---|---|
"""


def draws(build, test, count):
    """The sums over all draws, and the first failures."""
    sums, failures = {}, []
    for first in range(0, count, CHUNK):
        environment = dict(os.environ, CANDELA_TILING_FIRST=str(first),
                           CANDELA_TILING_DRAWS=str(min(CHUNK, count - first)))
        done = subprocess.run([build / "tests/bin" / test], capture_output=True, text=True, env=environment,
                              timeout=TIMEOUT_SECONDS)
        found = re.search(r"^seeds \d+\.\.\d+: (.*)$", done.stdout, re.M)
        if done.returncode or not found:
            failures.append({"first": first, "said": done.stdout[-2000:]})
            continue
        for number, name in NUMBER.findall(found[1]):
            sums[name.strip()] = sums.get(name.strip(), 0) + int(number)
    return {"count": count, **sums, "failures": failures}


def memoriesOf(preset):
    """What --tile takes: the preset's memories, array and bandwidth."""
    config = tomllib.loads((ROOT / "simulator/configs" / f"{preset}.toml").read_text())
    transfers = int(config["dram"]["type"].rsplit("-", 1)[1])  # in a microsecond
    bytesPerCycle = transfers * config["dram"]["width_bits"] // 8 // config["clock_mhz"]
    return (f"scratchpad={config['scratchpad']['bytes']},accumulator={config['accumulator']['bytes']}:sums,engines=3,"
            f"bytes_per_cycle={bytesPerCycle},copy_cycles=4,instr_cycles=2,rows={config['array']['rows']},"
            f"columns={config['array']['columns']},lanes={config['vector']['lanes']}")


def model(candela, path, memories):
    done = subprocess.run([candela, "plan", path, "--backend", "cpu", "--dim", "N=1", "--tile", memories,
                           "--json", "-"], capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    if done.returncode:
        return None, {"memories": memories, "reason": done.stderr.strip()}
    report = json.loads(done.stdout)
    parts = report["models"][0]["partitions"]
    copied = {}
    for part in parts:
        for name, number in part["tiling"]["copied_bytes"].items():
            copied[name] = copied.get(name, 0) + number
    steps = [step for part in parts for step in part["tiling"]["steps"]]
    bound = sum(part["tiling"]["bound_bytes"] for part in parts)
    # Copies that a model asks for itself belong to no step's tiles; ids of steps are those of the report.
    return report["candela_version"], {
        "memories": memories,
        "instructions": sum(part["instructions"] for part in parts),
        "copied_bytes": copied,
        "step_bytes": sum(step["loaded_bytes"] + step["stored_bytes"] for step in steps),
        "bound_bytes": bound,
        "ratio": copied["memory"] / bound,
        "distance": sorted(({"nodes": step["nodes"][:1], "kinds": step["kinds"], "tile": step["tile"],
                             **step["distance"]} for step in steps if step["distance"]["bytes"]),
                           key=lambda step: -step["bytes"]),
    }


def page(models):
    lines = [PAGE]
    for name, presets in models.items():
        for preset, found in presets.items():
            if "reason" in found:
                lines.append(f"| {name} | {preset} | refused: {found['reason'].splitlines()[0]} | | | | | | |\n")
                continue
            copied = found["copied_bytes"]
            numbers = [copied[key] for key in ("memory", "weights", "tables", "loaded", "stored")]
            cells = " | ".join(f"{number:,}" for number in [*numbers, found["bound_bytes"]])
            lines.append(f"| {name} | {preset} | {cells} | {found['ratio']:.3f} |\n")
    return "".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--program-draws", type=int, default=2000)
    parser.add_argument("--models", type=pathlib.Path, help="a folder as candela-gen-models writes it")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/tiling.json")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs/reference/tiling.md")
    arguments = parser.parse_args()
    candela = arguments.build / "bin/candela"
    for needed in (candela, *(arguments.build / "tests/bin" / test for test in TESTS.values())):
        if not needed.is_file():
            print(f"nightly_tiling: {needed} is missing; build it first", file=sys.stderr)
            return 2
    models, version = {}, None
    with tempfile.TemporaryDirectory(prefix="candela_tiling_") as folder:
        if not arguments.models:
            subprocess.run([arguments.build / "bin/candela-gen-models", folder], check=True, stdout=subprocess.DEVNULL)
            arguments.models = pathlib.Path(folder)
        for name in MODELS:
            for preset in PRESETS:
                said, found = model(candela, arguments.models / f"{name}.onnx", memoriesOf(preset))
                version = said or version
                models.setdefault(name, {})[preset] = found
                copied = found["copied_bytes"]["memory"] if "copied_bytes" in found else found["reason"]
                print(f"nightly_tiling: {name} on {preset} copies {copied} bytes, bound {found.get('bound_bytes')}")
    ratio = models[PROMISED[0]][PROMISED[1]].get("ratio")
    passed = ratio is not None and ratio <= PROMISED_RATIO
    drawn = {}
    for what, test in TESTS.items():
        drawn[what] = draws(arguments.build, test, arguments.draws if what == "graphs" else arguments.program_draws)
        passed &= not drawn[what]["failures"]
        print(f"nightly_tiling: {what}: {drawn[what]}")
    nightly_report.write(arguments.report, {
        "schema": SCHEMA,
        "date": nightly_report.now(),
        "versions": {"candela": version},
        "promised": {"ratio": PROMISED_RATIO, "of": "/".join(PROMISED)},
        "passed": passed,
        "draws": drawn,
        "models": models,
    })
    arguments.page.write_text(page(models))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
