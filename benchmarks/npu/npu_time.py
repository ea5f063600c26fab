#!/usr/bin/env python3
"""Compares the two fidelities of the NPU's time on int8 networks and every preset, and says how long they take.

usage: benchmarks/npu/npu_time.py [--candela FILE] [--models DIR] [--report FILE] [--only NAME,...]

ResNet-50, MobileNetV2 and BERT-4 (build/models, which the fixture of the tests writes), digits, and text detection and
direction (scripts/fetch_models, made 8 bits here) on the six presets: `fast` must be within 10 % of `accurate`, and the
cycles at least those of the array and of the memory's bus. ResNet-50 takes at most 1.25 times the sum of the least cycles
of its layers (docs/reference/simulate.md) on edge4t, edge8t and tpu1. On gem16 it uses at least 70 % of the array; there
`accurate` takes at most 1 s and `fast` at most 0.1 s, which is what the longer one of two executions takes more than the
other: time does not depend on data and is kept. Writes benchmarks/results/npu_time.json. Needs the packages of
tests/models/requirements.txt, and onnx.

--only  these networks; of others the report keeps what it has

Exit status: 0 as it should be, 1 not, 2 nothing to run.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402
import quantized_models  # noqa: E402

SCHEMA = "candela.npu_time.v1"
PRESETS = ("tiny", "nv_small", "gem16", "edge4t", "edge8t", "tpu1")
DIGITS = ROOT / "examples/digits/digits_int8.onnx"
TRAINED = tuple(f"{name}_int8" for name in quantized_models.SHAPES)
NETWORKS = (DIGITS.stem, "mbv2_int8", "resnet50_int8", "bert4_int8", *TRAINED)
APART, USED = 0.10, 0.70
BOUNDED, MOST_OF_LEAST = ("edge4t", "edge8t", "tpu1"), 1.25
TIMED = ("resnet50_int8", "gem16")
MOST_MS = {"accurate": 1000, "fast": 100}
TIMEOUT_SECONDS = 600
USED_KEYS = ("cycles", "macs", "mac_utilization", "dram_bytes", "time", "layers", "least_cycles", "of_least", "host_nodes")
SHOWN = ("name", "cycles", "least_cycles", "least_by")


def arguments_of(model):
    return [] if model.stem.startswith("ocr_") else ["--dim", "N=1"]


def simulate(candela, model, preset, fidelity):
    report = nightly_report.answer([str(candela), "simulate", str(model), "--npu", preset, "--fidelity", fidelity, "--random", "1",
                                    *arguments_of(model)], TIMEOUT_SECONDS)
    return {key: report[key] for key in USED_KEYS if key in report}


def milliseconds(candela, model, preset, fidelity):
    """What the time of one execution takes, without data."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"npu": preset, "engine": fidelity, "data": "off", "report": pathlib.Path(folder) / "report"}
        command = [str(candela), "run", str(model), "--backend", "npu_sim", "--random", "1", "--repeat", "2", *arguments_of(model)]
        for key, value in options.items():
            command += ["--option", f"npu_sim.{key}={value}"]
        latency = nightly_report.answer(command, TIMEOUT_SECONDS)["latency_ms"]
    return round(latency["median"] - latency["min"], 1)


def judge(model, preset, reports, timed):
    name = model.stem
    accurate, fast = (reports[fidelity] for fidelity in MOST_MS)
    apart = fast["cycles"] / accurate["cycles"] - 1
    problems = [] if abs(apart) <= APART else [f"fast is {100 * apart:+.1f} % from accurate"]
    for fidelity, each in reports.items():
        time = each["time"]
        least = max(each["macs"] / time["peak_macs_per_cycle"], each["dram_bytes"]["all"] / time["dram_bytes_per_cycle"])
        if each["cycles"] < least:
            problems.append(f"{fidelity}: {each['cycles']} cycles, at least {least:.0f} are needed")
    case = {"model": name, "npu": preset}
    if "of_least" in accurate:
        layers = [layer for layer in accurate["layers"] if "least_cycles" in layer]
        layers.sort(key=lambda layer: layer["least_cycles"] - layer["cycles"])
        case |= {"least_cycles": accurate["least_cycles"], "of_least": round(accurate["of_least"], 3),
                 "farthest_layers": [{key: layer[key] for key in SHOWN} for layer in layers[:8]]}
        if name == "resnet50_int8" and preset in BOUNDED and accurate["of_least"] > MOST_OF_LEAST:
            problems.append(f"{accurate['of_least']:.3f} times the least cycles")
    if (name, preset) == TIMED:
        if accurate["mac_utilization"] < USED:
            problems.append(f"uses {100 * accurate['mac_utilization']:.1f} % of the array")
        case |= {f"{fidelity}_ms": each for fidelity, each in timed.items()}
        problems += [f"{fidelity} takes {each} ms" for fidelity, each in timed.items() if each > MOST_MS[fidelity]]
    return {**case, "accurate_cycles": accurate["cycles"], "fast_cycles": fast["cycles"], "apart": round(apart, 4),
            "array_used": round(accurate["mac_utilization"], 4), "provenance": accurate["time"]["provenance"],
            "host_nodes": len(accurate["host_nodes"]), "problems": problems, "passed": not problems}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build/models")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/npu_time.json")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    chosen = arguments.only.split(",") if arguments.only else NETWORKS
    models = [DIGITS if name == DIGITS.stem else arguments.models / f"{name}.onnx" for name in chosen if name not in TRAINED]
    for path in (arguments.candela, *models):
        if not path.exists():
            print(f"npu_time: {path} is missing", file=sys.stderr)
            return 2
    timed = {fidelity: milliseconds(arguments.candela, arguments.models / f"{TIMED[0]}.onnx", TIMED[1], fidelity)
             for fidelity in MOST_MS if TIMED[0] in chosen}  # first, while nothing else runs
    results = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        if trained := [name for name in TRAINED if name in chosen]:
            models += quantized_models.quantized(folder, [name.removesuffix("_int8") for name in trained])
        runs = {(model, preset): {fidelity: pool.submit(simulate, arguments.candela, model, preset, fidelity)
                                  for fidelity in MOST_MS} for model in models for preset in PRESETS}
        for (model, preset), both in runs.items():
            case = judge(model, preset, {fidelity: run.result() for fidelity, run in both.items()}, timed)
            least = f", {case['of_least']} of the least" if "of_least" in case else ""
            print(f"{case['model']} on {preset}: {case['accurate_cycles']:,} cycles{least}, fast {100 * case['apart']:+.1f} %; "
                  f"{'; '.join(case['problems']) or 'passed'}", flush=True)
            results.append(case)
    machine = nightly_report.machine()
    if arguments.only and arguments.report.exists():
        results += nightly_report.kept(arguments.report, results)
        if not timed:  # the milliseconds that are kept are those of another machine
            machine = json.loads(arguments.report.read_text())["machine"]
    report = {"schema": SCHEMA, "generated_at": nightly_report.now(), "machine": machine, "results": results}
    return nightly_report.finish(arguments, report, None)


if __name__ == "__main__":
    sys.exit(main())
