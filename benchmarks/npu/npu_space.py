#!/usr/bin/env python3
"""Compares NPUs that the hardware description does not have: other arrays, sums that stay, flash beside SRAM, compressed constants.

usage: benchmarks/npu/npu_space.py [--candela FILE] [--models DIR] [--report FILE] [--witness]

MobileNetV2 and ResNet-50 in int8 (build/models, which the fixture of the tests writes), and both with the smaller half of each tensor of
weights made zero, on each device: time by bursts, energy by the built-in table, outputs against the host's own executor. Every output must
be equal to the bit, nothing may be multiplied on the host, and no cycles may be fewer than the array and the buses need. Writes
benchmarks/results/npu_space.json. Weights made zero say what compression brings, not what such a network answers. Needs numpy and onnx.

--witness  changes nothing: MobileNetV2 as it is on one device of each kind, with the cycles and bytes that the report has

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

SCHEMA = "candela.npu_space.v1"
NETWORKS = ("mbv2_int8", "resnet50_int8")
ARRAY = """name = "{name}"
array = {{rows = {rows}, columns = {columns}, dataflow = "{dataflow}"}}
"""
# As microcontrollers have it: 400 MHz, and a memory of 6.4 GB/s, or SRAM beside flash of 0.4 GB/s.
MICRO = """name = "{name}"
clock_mhz = 400
"""
LPDDR4 = """dram = {type = "LPDDR4-3200", width_bits = 16}
"""
FLASH = """dram = {type = "SRAM-1000", width_bits = 64, bytes = 4194304}
second = {holds = "constants", type = "NOR-octal-400", width_bits = 8, bytes = 33554432}
"""
ZERO_RUN = """weights = {compression = "zero_run"}
"""
DATAFLOWS = {"ws": "weight_stationary", "os": "output_stationary"}
DEVICES = {f"{rows}x{columns}_{short}": ARRAY.format(name=f"{rows}x{columns}_{short}", rows=rows, columns=columns, dataflow=dataflow)
           for rows, columns in ((16, 16), (24, 24), (12, 20)) for short, dataflow in DATAFLOWS.items()}
DEVICES |= {name: MICRO.format(name=name) + rest for name, rest in (
    ("lpddr4", LPDDR4), ("lpddr4_zero_run", LPDDR4 + ZERO_RUN), ("sram_flash", FLASH), ("sram_flash_zero_run", FLASH + ZERO_RUN))}
WITNESSES = ("24x24_ws", "16x16_os", "sram_flash_zero_run")
TIMEOUT_SECONDS = 900
COUNTED = ("cycles", "time_ms", "mac_utilization", "least_cycles", "of_least")


def zeroed(path, folder):
    """A copy of the model whose smaller half of each tensor of weights is zero."""
    import numpy
    import onnx
    from onnx import numpy_helper
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype != numpy.int8 or values.ndim < 2:
            continue
        size = numpy.abs(values.astype(numpy.int16))
        kept = numpy.where(size > numpy.median(size), values, 0).astype(numpy.int8)
        tensor.CopyFrom(numpy_helper.from_array(kept, tensor.name))
    to = folder / f"{path.stem}_half_zero.onnx"
    onnx.save(model, to)
    return to


def simulate(candela, model, device, folder):
    configuration = folder / f"{device}.toml"
    return nightly_report.answer([str(candela), "simulate", str(model), "--npu", str(configuration), "--dim", "N=1", "--random", "1",
                                  "--verify"], TIMEOUT_SECONDS)


def judge(model, device, report):
    time, moved = report["time"], report["dram_bytes"]["all"]
    case = {"model": model.stem, "device": device, **{key: report[key] for key in COUNTED if key in report},
            "energy_nj": float(f"{report['energy']['nj']:.2g}"), "dram_bytes": moved, "accumulator_nj": round(report["energy"]["by_action"]["accumulator"]),
            "scratchpad_read": report["counters"]["scratchpad_read"], "model_only": report.get("model_only", [])}
    problems = [] if report["verified"] and report["outputs_equal_to_the_bit"] else ["outputs differ"]
    if report["host_macs"]:
        problems.append(f"{report['host_macs']} MACs on the host")
    buses = {"dram": moved / time["dram_bytes_per_cycle"]}
    if compression := report.get("compression"):
        case["compression"] = {key: compression[key] for key in ("bytes_before", "bytes_after", "ratio")}
        buses["dram"] -= (compression["bytes_before"] - compression["bytes_after"]) / time["dram_bytes_per_cycle"]
    if memories := report.get("memories"):
        case["memories"] = [{key: memory[key] for key in ("memory", "type", "holds", "moved_bytes", "bus_busy")} for memory in memories]
        buses = {memory["memory"]: memory["moved_bytes"] / memory["bytes_per_cycle"] for memory in memories}
    for name, least in {**buses, "the array": report["macs"] / time["peak_macs_per_cycle"]}.items():
        if report["cycles"] < least:
            problems.append(f"{report['cycles']} cycles, {name} needs {least:.0f}")
    return {**case, "problems": problems, "passed": not problems}


def witness(arguments, results):
    """Whether the cycles and bytes of before come out again; the exit status."""
    known = {(case["model"], case["device"]): case for case in json.loads(arguments.report.read_text())["results"]}
    different = []
    for case in results:
        before = known[case["model"], case["device"]]
        different += [f"{case['device']}: {key} is {case.get(key)}, the report has {before.get(key)}"
                      for key in ("cycles", "dram_bytes", "compression", "memories") if case.get(key) != before.get(key)]
        different += [f"{case['device']}: {problem}" for problem in case["problems"]]
    print("\n".join(different) or f"{len(results)} as the report has them")
    return 1 if different else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build/models")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/npu_space.json")
    parser.add_argument("--witness", action="store_true")
    arguments = parser.parse_args()
    models = [arguments.models / f"{name}.onnx" for name in (NETWORKS[:1] if arguments.witness else NETWORKS)]
    for path in (arguments.candela, *models):
        if not path.exists():
            print(f"npu_space: {path} is missing", file=sys.stderr)
            return 2
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = pathlib.Path(name)
        for device, text in DEVICES.items():
            (folder / f"{device}.toml").write_text(text)
        if not arguments.witness:
            models += [zeroed(path, folder) for path in models]
        runs = {(model, device): pool.submit(simulate, arguments.candela, model, device, folder)
                for model in models for device in (WITNESSES if arguments.witness else DEVICES)}
        results = []
        for (model, device), run in runs.items():
            case = judge(model, device, run.result())
            print(f"{model.stem} on {device}: {case['cycles']:,} cycles, {case['energy_nj'] / 1e6:.1f} mJ; "
                  f"{'; '.join(case['problems']) or 'passed'}", flush=True)
            results.append(case)
    if arguments.witness:
        return witness(arguments, results)
    report = {"schema": SCHEMA, "generated_at": nightly_report.now(), "machine": nightly_report.machine(), "results": results}
    return nightly_report.finish(arguments, report, None)


if __name__ == "__main__":
    sys.exit(main())
