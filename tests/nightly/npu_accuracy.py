#!/usr/bin/env python3
"""How far the timed model is from the hardware, and from what is published of other machines.

usage: tests/nightly/npu_accuracy.py --build DIR --candela FILE [--models DIR] [--only NAME:NPU,...] [--report FILE] [--page FILE]

Networks run whole on the verilated NPU: bytes, counters, and the cycles in which each instruction begins, moves its first data and ends
must be those of `--fidelity exact`. `accurate` stands beside it, by network, by operation and by layer. Writes
benchmarks/results/npu_accuracy.json and, with benchmarks/results/npu_published.json, docs/reference/npu_accuracy.md.

--only  these networks on these NPUs; of others the report keeps what it has

Exit status: 0 no difference to `exact`, 1 a difference, 2 nothing to run.
"""
import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.npu_accuracy.v1"
TITLES = {"digits_int8": "digits int8", "mbv2_int8": "MobileNetV2 int8, 96 x 96", "resnet50_int8": "ResNet-50 int8", "bert4_int8": "BERT-4 int8"}
CASES = [("digits_int8", "bench4"), ("digits_int8", "tiny"), ("digits_int8", "nv_small"), ("digits_int8", "gem16"), ("digits_int8", "edge4t"),
         ("digits_int8", "edge8t"), ("mbv2_int8", "gem16"), ("resnet50_int8", "gem16"), ("bert4_int8", "gem16")]
BY_LAYER = ("mbv2_int8", "gem16")
FARTHEST = 8  # layers in the page
TIMEOUT_SECONDS = 7200
SAID = re.compile(r"(\d+) instructions, (\d+) cycles, ([\d.]+) kcycles/s")


def configuration_of(npu):
    return ROOT / f"tests/rtl/configs/{npu}.toml" if npu.startswith("bench") else npu


def programs_of(arguments, name, npu, folder):
    """The compiled programs of a network, in the order of their names."""
    model = ROOT / "examples/digits/digits_int8.onnx" if name == "digits_int8" else arguments.models / f"{name}.onnx"
    subprocess.run([arguments.candela, "run", model, "--dim", "N=1", "--random", "1", "--backend", "npu_sim",
                    "--option", f"npu={configuration_of(npu)}", "--option", f"binary={folder}"], check=True, capture_output=True)
    return sorted(folder.glob("*.npubin"))


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            yield row["kind"], row["name"], [int(row[key]) for key in ("instructions", "hardware", "accurate")]


def measure(arguments, name, npu):
    """One network on one NPU; its programs run one after the other, so that their cycles add up."""
    case = {"model": name, "npu": npu, "programs": 0, "instructions": 0, "cycles": 0, "accurate_cycles": 0, "kcycles_per_second": 0.0}
    sums = {"operation": {}, "layer": {}}
    with tempfile.TemporaryDirectory(prefix="npu_accuracy.") as scratch:
        scratch = pathlib.Path(scratch)
        for program in programs_of(arguments, name, npu, scratch / "programs"):
            done = subprocess.run([arguments.build / "tests/bin/rtl_npu_network", configuration_of(npu), program, scratch / "rows.csv"],
                                  capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
            if done.returncode != 0:
                return case | {"difference": (done.stdout + done.stderr).strip().splitlines()[-1]}
            instructions, cycles, speed = SAID.search(done.stdout).groups()
            case["programs"] += 1
            case["instructions"] += int(instructions)
            case["cycles"] += int(cycles)
            case["accurate_cycles"] += int(re.search(r"accurate has (\d+) cycles", done.stdout)[1])
            case["kcycles_per_second"] = float(speed)
            for kind, row, values in rows_of(scratch / "rows.csv"):
                before = sums[kind].setdefault(row, [0, 0, 0])
                sums[kind][row] = [a + b for a, b in zip(before, values)]
    for kind, key in (("operation", "operations"), ("layer", "layers")):
        case[key] = [dict(zip(("name", "instructions", "hardware", "accurate"), (row, *values))) for row, values in sums[kind].items()]
    return case


def off(row, hardware="hardware", accurate="accurate"):
    return f"{100 * (row[accurate] / row[hardware] - 1):+.2f} %"


def networks_table(results):
    yield "| network | NPU | instructions | cycles of the hardware | `exact` | `accurate` |"
    yield "|---|---|---|---|---|---|"
    for case in results:
        where = "4 x 4 (`tests/rtl/configs/bench4.toml`)" if case["npu"] == "bench4" else case["npu"]
        exact = case.get("difference", f"{case['cycles']:,}")
        yield nightly_report.row([TITLES[case["model"]], where, f"{case['instructions']:,}", f"{case['cycles']:,}", exact,
                                  f"{case['accurate_cycles']:,}, {off(case, 'cycles', 'accurate_cycles')}"])


def operations_table(results):
    """All networks together, by operation."""
    sums = {}
    for case in results:
        for row in case.get("operations", []):
            total = sums.setdefault(row["name"], {"instructions": 0, "hardware": 0, "accurate": 0})
            for key in total:
                total[key] += row[key]
    yield "| operation | instructions | cycles of the hardware | `accurate` |"
    yield "|---|---|---|---|"
    for name, row in sorted(sums.items(), key=lambda item: -item[1]["hardware"]):
        yield nightly_report.row([f"`{name}`", f"{row['instructions']:,}", f"{row['hardware']:,}", off(row)])


def layers_table(results):
    case = next((each for each in results if (each["model"], each["npu"]) == BY_LAYER), {"layers": []})
    yield "| layer | instructions | cycles of the hardware | `accurate` |"
    yield "|---|---|---|---|"
    farthest = sorted(case["layers"], key=lambda row: row["accurate"] - row["hardware"])[:FARTHEST]
    for row in farthest:
        yield nightly_report.row([row["name"], f"{row['instructions']:,}", f"{row['hardware']:,}", off(row)])


def published_table(path):
    yield "| machine, workload | published | `accurate` | time of the model / published time, `accurate`, `exact` | why |"
    yield "|---|---|---|---|---|"
    rows = {}
    for row in json.loads(path.read_text())["results"] if path.exists() else []:
        rows.setdefault((row["machine"], row["workload"]), {})[row["fidelity"]] = row
    for (machine, workload), row in rows.items():
        accurate, exact = row["accurate"], row.get("exact")
        ratios = ", ".join(f"{each['ratio']:.2f}" for each in (accurate, exact) if each)
        yield nightly_report.row([f"{machine}, {workload}", f"{accurate['published']:g} {accurate['unit']}", f"{accurate['model']:.4g}", ratios,
                                  accurate["reason"]])


PAGE = """<!-- generated by tests/nightly/npu_accuracy.py; do not edit -->
# How far the timed model is from the hardware, and from other machines

`tests/nightly/npu_accuracy.py --build build --candela build/bin/candela` runs networks on the verilated NPU (`rtl/top/cdl_npu.sv`) and on
the models, and writes this page. Bytes, counters, and the cycles in which each instruction begins, moves its first data and ends must be the same
in the hardware and in `--fidelity exact`; a program stops at the first that is not. `accurate`, which plans and sweeps use, stands beside them.

{networks}

Random programs of the whole instruction set (`rtl_npu_random`; 10,000 at night) have no difference either: on bench4, on `two_stores`, and on `bench8`, which is higher
than wide and has 16 bits, two load channels and beats of 8 bytes. Every second one runs with a memory of random latency, and so do digits and MobileNetV2 in the tests; the others have
a memory that answers as the model's DRAM does. What tests reach of the hardware is in `benchmarks/results/npu_rtl_coverage.json`.

## Where `accurate` differs

It has every instruction in the cycles that it takes alone, and differs where streams meet:

- **Banks of the scratchpad.** It charges an instruction that begins beside others for one conflict, or for its share of few banks. The hardware decides word by
  word, and the activations and the weights of a convolution, two ports of one engine, meet as well: of a depthwise convolution, which reads both in each cycle, most of all. A word that is not aligned takes two banks.
- **Accumulators.** The requant engine waits while the matrix engine uses the same bank; `accurate` has no such wait.
- **The port of the memory.** A request and a beat in a cycle, of all channels and the fetch of the program together; `accurate` has a port for each.

By operation, all networks of the table together, from begin to end of each instruction:

{operations}

By layer, those of MobileNetV2 on gem16 that are farthest, from the first begin to the last end of a layer's instructions:

{layers}

## Published figures of other machines

`benchmarks/npu/npu_published.py` gives the model the array, memories and bandwidth of a machine (`benchmarks/npu/machines`) and sets its figure beside the published
one. Below 1 the model is optimistic: designs that wait for memory are within some per cent; systems whose figures hold software, a host processor or a
schedule without overlap take longer than the model says. What was not run, and why, stands in `benchmarks/results/npu_published.json`.

{published}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--candela", type=pathlib.Path, required=True)
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build/models")
    parser.add_argument("--only", default="")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/npu_accuracy.json")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs/reference/npu_accuracy.md")
    arguments = parser.parse_args()
    chosen = [tuple(name.split(":")) for name in arguments.only.split(",")] if arguments.only else CASES
    if unknown := [case for case in chosen if case not in CASES]:
        print(f"npu_accuracy: {unknown[0]} is none of {', '.join(':'.join(case) for case in CASES)}", file=sys.stderr)
        return 2
    results = {(case["model"], case["npu"]): case for case in json.loads(arguments.report.read_text())["results"]} \
        if arguments.only and arguments.report.exists() else {}
    for name, npu in chosen:
        results[name, npu] = measure(arguments, name, npu)
        print(f"{name} on {npu}: {results[name, npu].get('difference', results[name, npu]['cycles'])}", flush=True)
    ordered = [results[case] for case in CASES if case in results]
    passed = not any("difference" in case for case in ordered)
    nightly_report.write(arguments.report, {
        "schema": SCHEMA, "date": nightly_report.now(), "machine": nightly_report.machine(), "passed": passed, "results": ordered})
    tables = {"networks": networks_table(ordered), "operations": operations_table(ordered), "layers": layers_table(ordered),
              "published": published_table(ROOT / "benchmarks/results/npu_published.json")}
    arguments.page.write_text(PAGE.format(**{name: "\n".join(lines) for name, lines in tables.items()}))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
