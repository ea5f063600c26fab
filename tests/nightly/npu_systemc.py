#!/usr/bin/env python3
"""Compares the SystemC engine of the NPU with the one without SystemC, on int8 networks.

usage: tests/nightly/npu_systemc.py [--candela FILE] [--models DIR] [--report FILE] [--witness]

Digits, MobileNetV2, ResNet-50 and BERT-4 (build/models, which the fixture of the tests writes), on gem16 and edge8t: the outputs of `--engine
systemc` are those of `--engine func` byte by byte, and its report, every layer and counter of it, is that of `--engine timed`.
Writes benchmarks/results/npu_systemc.json, with the milliseconds of an execution by both.

--witness  changes nothing: digits and MobileNetV2 on gem16, with the cycles that the report has.

Exit status: 0 equal, 1 not, 2 nothing to run.
"""
import argparse
import json
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.npu_systemc.v1"
DIGITS = ROOT / "examples/digits/digits_int8.onnx"
NETWORKS, PRESETS = ("mbv2_int8", "resnet50_int8", "bert4_int8"), ("gem16", "edge8t")
OF_THE_RUN = ("command", "engine", "wall_ms", "compile_ms")  # what may differ between two reports
TIMEOUT_SECONDS = 600


def simulated(candela, model, preset, engine):
    report = nightly_report.answer([candela, "simulate", model, "--npu", preset, "--engine", engine, "--dim", "N=1", "--random", "1"],
                                   TIMEOUT_SECONDS)
    return {key: value for key, value in report.items() if key not in OF_THE_RUN}, report["wall_ms"]


def outputs(candela, model, preset, engine):
    with tempfile.TemporaryDirectory() as folder:
        nightly_report.answer([candela, "run", model, "--backend", "npu_sim", "--option", f"npu_sim.npu={preset}", "--option",
                               f"npu_sim.engine={engine}", "--dim", "N=1", "--random", "1", "--output", folder], TIMEOUT_SECONDS)
        return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


def compare(candela, model, preset):
    timed, timed_ms = simulated(candela, model, preset, "timed")
    systemc, systemc_ms = simulated(candela, model, preset, "systemc")
    values = outputs(candela, model, preset, "func")
    problems = [f"{key} differs" for key in {**timed, **systemc} if timed.get(key) != systemc.get(key)]
    if not values or outputs(candela, model, preset, "systemc") != values:
        problems.append("outputs differ")
    return {"model": model.stem, "npu": preset, "cycles": systemc["cycles"], "instructions": systemc["counters"]["instructions"],
            "timed_ms": round(timed_ms, 1), "systemc_ms": round(systemc_ms, 1), "problems": problems, "passed": not problems}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build/models")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/npu_systemc.json")
    parser.add_argument("--witness", action="store_true")
    arguments = parser.parse_args()
    networks, presets = (NETWORKS[:1], PRESETS[:1]) if arguments.witness else (NETWORKS, PRESETS)
    models = [DIGITS, *(arguments.models / f"{name}.onnx" for name in networks)]
    for path in (arguments.candela, *models):
        if not path.exists():
            print(f"npu_systemc: {path} is missing", file=sys.stderr)
            return 2
    known = {(case["model"], case["npu"]): case["cycles"] for case in json.loads(arguments.report.read_text())["results"]} \
        if arguments.witness else {}
    results = []
    for model in models:
        for preset in presets:
            case = compare(arguments.candela, model, preset)
            reported = known.get((case["model"], preset))
            if arguments.witness and case["cycles"] != reported:
                case["problems"].append(f"{reported} cycles in the report")
            print(f"{case['model']} on {preset}: {case['cycles']:,} cycles, {case['timed_ms']} ms, by SystemC {case['systemc_ms']} ms; "
                  f"{'; '.join(case['problems']) or 'equal'}", flush=True)
            results.append(case)
    if arguments.witness:
        return int(any(case["problems"] for case in results))
    report = {"schema": SCHEMA, "generated_at": nightly_report.now(), "machine": nightly_report.machine(), "results": results}
    return nightly_report.finish(arguments, report, None)


if __name__ == "__main__":
    sys.exit(main())
