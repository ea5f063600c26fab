#!/usr/bin/env python3
"""Compares the two fidelities of the NPU's time on int8 networks and every preset, and says how long they take.

usage: scripts/nightly_npu_time.py [--candela FILE] [--models DIR] [--report FILE]

ResNet-50, MobileNetV2 and BERT-4 (build/models, which the fixture of the tests writes) and digits, on the six presets, time
without data: `fast` must be within 10 % of `accurate`, and the cycles at least those of the array and of the memory's bus.
ResNet-50 takes at most 1.25 times the sum over its layers of what the array or the memory's bus needs on edge4t, edge8t and tpu1
(scripts/lib/npu_bound.py). On gem16 ResNet-50 uses at least 70 % of the array; there `accurate` takes at most 1 s and `fast` at most 0.1 s, which is what
the longer one of two executions takes more than the other: time does not depend on data and is kept. Writes
benchmarks/results/npu_time.json.

Exit status: 0 as it should be, 1 not, 2 nothing to run.
"""
import argparse
import json
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402
import npu_bound  # noqa: E402

SCHEMA = "candela.npu_time.v1"
PRESETS = ("tiny", "nv_small", "gem16", "edge4t", "edge8t", "tpu1")
DIGITS = ROOT / "examples/digits/digits_int8.onnx"
APART, USED = 0.10, 0.70
BOUNDED, MOST_OF_BOUND = ("edge4t", "edge8t", "tpu1"), 1.25
MOST_MS = {"accurate": 1000, "fast": 100}
TIMEOUT_SECONDS = 600
BYTES = ("constants", "input", "output", "activations", "spill")


def measure(candela, model, preset, engine):
    """Sums over the programs of one execution: cycles and counters; and the milliseconds that time took."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "report"
        options = {"npu": preset, "engine": engine, "data": "off", "report": file}
        command = [str(candela), "run", str(model), "--backend", "npu_sim", "--dim", "N=1", "--random", "1", "--repeat", "2"]
        for key, value in options.items():
            command += ["--option", f"npu_sim.{key}={value}"]
        said = nightly_report.answer(command, TIMEOUT_SECONDS)
        lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines = lines[:len(lines) // 2]  # of the first execution
    time = lines[0]["time"]
    moved = sum(line.get(f"dram_{way}_{kind}", 0) for line in lines for way in ("read", "written") for kind in BYTES)
    return {"cycles": sum(line["time"]["cycles"] for line in lines), "macs": sum(line["macs"] for line in lines),
            "bound": max(sum(line["macs"] for line in lines) / time["peak_macs_per_cycle"], moved / time["dram_bytes_per_cycle"]),
            "layers": [layer for line in lines for layer in line["layers"]], "bytes_per_cycle": time["dram_bytes_per_cycle"],
            "peak": time["peak_macs_per_cycle"], "provenance": time["provenance"],
            "ms": round(said["latency_ms"]["median"] - said["latency_ms"]["min"], 1)}


def judge(model, preset, accurate, fast):
    name = model.stem
    apart = fast["cycles"] / accurate["cycles"] - 1
    used = accurate["macs"] / accurate["cycles"] / accurate["peak"]
    problems = [] if abs(apart) <= APART else [f"fast is {100 * apart:+.1f} % from accurate"]
    for engine, each in (("accurate", accurate), ("fast", fast)):
        if each["cycles"] < each["bound"]:
            problems.append(f"{engine}: {each['cycles']} cycles, at least {each['bound']:.0f} are needed")
        if (name, preset) == ("resnet50_int8", "gem16") and each["ms"] > MOST_MS[engine]:
            problems.append(f"{engine} takes {each['ms']} ms")
    if (name, preset) == ("resnet50_int8", "gem16") and used < USED:
        problems.append(f"uses {100 * used:.1f} % of the array")
    bound = {}
    if name == "resnet50_int8":
        least, by_layer = npu_bound.least_cycles(model, preset, accurate["layers"], accurate["bytes_per_cycle"])
        ratio = accurate["cycles"] / least
        worst = sorted(by_layer, key=lambda layer: layer[2] - layer[1])[:8]
        bound = {"least_cycles": round(least), "of_least": round(ratio, 3),
                 "farthest_layers": [{"node": node, "cycles": cycles, "least": round(least)} for node, cycles, least in worst]}
        if preset in BOUNDED and ratio > MOST_OF_BOUND:
            problems.append(f"{ratio:.3f} times the least cycles")
    return {"model": name, "npu": preset, **bound, "accurate_cycles": accurate["cycles"], "fast_cycles": fast["cycles"],
            "apart": round(apart, 4), "array_used": round(used, 4), "provenance": accurate["provenance"],
            "accurate_ms": accurate["ms"], "fast_ms": fast["ms"], "problems": problems, "passed": not problems}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build/models")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/npu_time.json")
    arguments = parser.parse_args()
    models = [DIGITS, *(arguments.models / f"{name}.onnx" for name in ("mbv2_int8", "resnet50_int8", "bert4_int8"))]
    for path in (arguments.candela, *models):
        if not path.exists():
            print(f"nightly_npu_time: {path} is missing", file=sys.stderr)
            return 2
    results = []
    for model in models:
        for preset in PRESETS:
            case = judge(model, preset, *(measure(arguments.candela, model, preset, engine) for engine in MOST_MS))
            least = f", {case['of_least']} of the least" if "of_least" in case else ""
            print(f"{case['model']} on {preset}: {case['accurate_cycles']:,} cycles{least}, fast {100 * case['apart']:+.1f} %, "
                  f"{case['accurate_ms']} and {case['fast_ms']} ms; {'; '.join(case['problems']) or 'passed'}", flush=True)
            results.append(case)
    report = {"schema": SCHEMA, "generated_at": nightly_report.now(), "machine": nightly_report.machine(), "results": results}
    return nightly_report.finish(arguments, report, None)


if __name__ == "__main__":
    sys.exit(main())
