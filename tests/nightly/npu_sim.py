#!/usr/bin/env python3
"""Runs int8 networks on every preset of the NPU: verified, the bytes by DMA and the host's share counted.

usage: tests/nightly/npu_sim.py [--candela FILE] [--models DIR] [--report FILE] [--table FILE] [--untimed] [--witness]

ResNet-50, MobileNetV2 and BERT-4 (build/models, which the fixture of the tests writes) and digits, by `candela simulate
--verify` on the six presets. Each must be verified to the bit; convolutional networks leave the host no product; compiling
takes at most 5 s, and the functional model at most 3 s on ResNet-50. The bytes that the device counts are those of the copies
of the tiled Program (`candela plan`), with packed tables; for ResNet-50 on gem16 the page says for each step how far they are
from what must move, and why. `candela conform --size nightly` on gem16 may have no failure. Writes benchmarks/results/npu_sim.json and docs/reference/npu_networks.md.

--untimed  keeps the times of the report that is there, and says when they were measured: for a machine with other work
--witness  changes nothing: digits on all presets and MobileNetV2 on gem16 and tiny, verified, with the bytes and products
           that the report has

Exit status: 0 as it should be, 1 not, 2 nothing to run.
"""
import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.npu_sim.v1"
PRESETS = ("tiny", "nv_small", "gem16", "edge4t", "edge8t", "tpu1")
DIGITS = ROOT / "examples/digits/digits_int8.onnx"
BATCH = {"digits_int8": 16}
PRODUCTS_ON_HOST = {"bert4_int8"}  # its attention multiplies floats
EXPLAINED = ("resnet50_int8", "gem16")
NEAR_BYTES = 4096  # of a step's distance, not worth a reason
COMPILE_MS, WALL_MS = 5000, 3000
TIMEOUT_SECONDS = 1800


def simulate(candela, model, preset):
    name = model.stem
    report = nightly_report.answer([str(candela), "simulate", str(model), "--npu", preset, "--dim", f"N={BATCH.get(name, 1)}",
                                    "--random", "1", "--verify"], TIMEOUT_SECONDS)
    counts = report["counters"]
    return {"model": name, "npu": preset, "verified": report["verified"],
            "to_the_bit": report["outputs_equal_to_the_bit"] > 0, "macs": report["macs"], "host_macs": report["host_macs"],
            "host_nodes": report["placement"]["host"] + report["placement"]["emulated"],
            "dram_bytes": report["dram_bytes"], "tiled_bytes": report["tiled_bytes"], "instructions": counts["instructions"],
            "compile_ms": round(report["compile_ms"]), "wall_ms": round(report["wall_ms"])}


def tiling(candela, model, preset):
    """What the tiler says of the Programs on the NPU: copied bytes, bound, steps."""
    report = nightly_report.answer([str(candela), "plan", str(model), "--backend", "npu_sim", "--option", f"npu={preset}",
                                    "--dim", f"N={BATCH.get(model.stem, 1)}"], TIMEOUT_SECONDS)
    parts = [part["tiling"] for part in report["models"][0]["partitions"] if part["backend"] == "npu_sim"]
    copied = {key: sum(part["copied_bytes"][key] for part in parts) for key in ("weights", "tables", "loaded", "stored")}
    return {"copied_bytes": copied, "bound_bytes": sum(part["bound_bytes"] for part in parts),
            "steps": [step for part in parts for step in part["steps"]]}


def reasons_of(step, left):
    """Why a step moves other bytes than must move; `left`: by value, the bytes that a step before left in DRAM."""
    reasons, small = [], 0
    for value in step["distance"]["values"]:
        name, loaded, stored, least = (value[key] for key in ("value", "loaded_bytes", "stored_bytes", "least_bytes"))
        if abs(loaded + stored - least) < NEAR_BYTES:
            small += loaded + stored - least
            continue
        if stored and not least:
            left[name] = stored
            reasons.append(f"{name}: {stored:,} spilled")
        elif loaded + stored < least:
            reasons.append(f"{name}: {least - loaded - stored:,} waits in the scratchpad")
        elif least:
            reasons.append(f"{name}: {loaded + stored - least:,} read again, with halo")
        elif 0 < left.get(name, 0) < loaded:
            reasons.append(f"{name}: {left[name]:,} read back, {loaded - left[name]:,} again as halo or for further tiles")
        else:
            reasons.append(f"{name}: {loaded:,} read back")
    if small:
        reasons.append(f"parameters: {small:,}")
    return "; ".join(reasons)


def distanceOf(step):
    return step["distance"]["bytes"]


def steps_page(plan):
    left, rows = {}, []
    for step in plan["steps"]:
        bytes_ = step["loaded_bytes"] + step["stored_bytes"]
        rows.append([step["nodes"][0] if step["nodes"] else "", " ".join(step["kinds"]), f"{bytes_:,}",
                     f"{bytes_ - distanceOf(step):,}", f"{distanceOf(step):,}", reasons_of(step, left)])
    above = sum(distanceOf(step) for step in plan["steps"] if distanceOf(step) > 0)
    copied = sum(plan["copied_bytes"].values())
    return ["", f"## {EXPLAINED[0]} on {EXPLAINED[1]}, step by step", "",
            f"The tiled Program copies {copied:,} bytes, {copied / plan['bound_bytes']:.3f} times the bound of",
            f"{plan['bound_bytes']:,}: constants, inputs and outputs once, and values larger than the scratchpad once out and once",
            f"in. Steps above their share of the bound are {above:,} bytes above it; others are below, where parts of such values",
            "wait in the scratchpad. A step is one instruction with those that go tile by tile behind it. `spilled`: a value that",
            "would fit the scratchpad leaves it, since what is in between needs the room. The device moves the same weights and",
            "values; of tables it loads packed records.", "",
            *nightly_report.table(["step", "instructions", "bytes", "of the bound", "distance", "why"], rows)]


def problems_of(case, timed):
    problems = [] if case["verified"] and case["to_the_bit"] else ["is not verified to the bit"]
    if case["host_macs"] and case["model"] not in PRODUCTS_ON_HOST:
        problems.append(f"leaves {case['host_macs']} products to the host")
    if "copied_bytes" in case and case["copied_bytes"] != case["tiled_bytes"]:
        problems.append(f"moves {case['tiled_bytes']}, the tiled Program copies {case['copied_bytes']}")
    if timed and case["compile_ms"] > COMPILE_MS:
        problems.append(f"takes {case['compile_ms']} ms to compile")
    if timed and case["model"] == "resnet50_int8" and case["wall_ms"] > WALL_MS:
        problems.append(f"takes {case['wall_ms']} ms to run")
    return problems


def moved(case):
    return sum(case["dram_bytes"][key] for key in ("weights", "tables", "activations"))


def conform(candela):
    """The counts of the suite, which ends with 1 where cases failed."""
    report = nightly_report.answer([str(candela), "conform", "--backend", "npu_sim", "--size", "nightly", "--jobs", "2"],
                                   TIMEOUT_SECONDS, statuses=(0, 1))
    return {key: report[key] for key in ("total", "passed")} | {
        key: len(report[key]) for key in ("failed", "emulated", "unsupported")}


def pageOf(results):
    rows = [[case["model"], case["npu"], *(f"{case['dram_bytes'][key] / 1e6:.2f}" for key in ("weights", "tables")),
             *(f"{case['dram_bytes'][key] / 1e6:.2f}" for key in ("activations_loaded", "activations_stored")),
             f"{moved(case) / 1e6:.2f}", f"{case['tiled_bytes']['tables'] / 1e6:.2f}", f"{case['bound_bytes'] / 1e6:.2f}",
             f"{case['macs'] / 1e6:.1f}", f"{case['host_macs'] / 1e6:.1f}",
             str(case["host_nodes"]), f"{case['instructions']:,}"] for case in results]
    prose = ["Int8 networks on the simulated NPU, each verified to the bit against the host's executor, by",
             "`candela simulate MODEL --npu PRESET --verify`. Bytes between DRAM and scratchpad in MB, products in millions,",
             "those of the host beside them. What the device counts is what the copies of the tiled Program sum up to, but for",
             "tables (`tiled tables` in the Program): a channel's multiplier, shift and bias are one packed record, loaded again",
             "only where another one took its place. Written with `benchmarks/results/npu_sim.json`."]
    return nightly_report.page("tests/nightly/npu_sim.py", "Networks on the NPU", prose,
                               ["network", "preset", "weights", "tables", "loaded", "stored", "all", "tiled tables", "bound", "products", "on the host",
                                "host nodes", "instructions"], rows)


def witness(arguments, cases):
    known = {(case["model"], case["npu"]): case for case in json.loads(arguments.report.read_text())["results"]}
    failed = 0
    for model, preset in cases:
        case = simulate(arguments.candela, model, preset)
        case["copied_bytes"] = tiling(arguments.candela, model, preset)["copied_bytes"]
        problems = problems_of(case, False)
        said = known[case["model"], preset]
        problems += [f"{key}: {case[key]}, reported {said[key]}" for key in ("dram_bytes", "macs", "host_macs", "instructions")
                     if case[key] != said[key]]
        print(f"{case['model']} on {preset}: {'; '.join(problems) or 'as reported'}")
        failed += bool(problems)
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build/models")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/npu_sim.json")
    parser.add_argument("--table", type=pathlib.Path, default=ROOT / "docs/reference/npu_networks.md")
    parser.add_argument("--untimed", action="store_true")
    parser.add_argument("--witness", action="store_true")
    arguments = parser.parse_args()
    models = [DIGITS, *(arguments.models / f"{name}.onnx" for name in ("mbv2_int8", "resnet50_int8", "bert4_int8"))]
    for path in (arguments.candela, *models):
        if not path.exists():
            print(f"npu_sim: {path} is missing", file=sys.stderr)
            return 2
    if arguments.witness:
        return witness(arguments, [*((DIGITS, preset) for preset in PRESETS), (models[1], "gem16"), (models[1], "tiny")])
    known = json.loads(arguments.report.read_text()) if arguments.untimed else {"results": []}
    times = {(case["model"], case["npu"]): case for case in known["results"]}
    results, explained = [], []
    for model in models:
        for preset in PRESETS:
            case = simulate(arguments.candela, model, preset)
            plan = tiling(arguments.candela, model, preset)
            case |= {"copied_bytes": plan["copied_bytes"], "bound_bytes": plan["bound_bytes"]}
            if (case["model"], preset) == EXPLAINED:
                explained = steps_page(plan)
            if arguments.untimed:
                case |= {key: times[case["model"], preset][key] for key in ("compile_ms", "wall_ms")}
            case["problems"] = problems_of(case, True)
            case["passed"] = not case["problems"]
            print(f"{case['model']} on {preset}: {moved(case) / 1e6:.2f} MB, {'; '.join(case['problems']) or 'passed'}")
            results.append(case)
    suite = conform(arguments.candela)
    print(f"conform: {suite}")
    now = nightly_report.now()
    report = {"schema": SCHEMA, "generated_at": now, "times_measured_at": known.get("times_measured_at", known.get("generated_at", now)),
              "machine": known.get("machine") or nightly_report.machine(), "conform_nightly": suite, "results": results}
    status = nightly_report.finish(arguments, report, [*pageOf(results), *explained])
    return 1 if suite["failed"] else status


if __name__ == "__main__":
    sys.exit(main())
