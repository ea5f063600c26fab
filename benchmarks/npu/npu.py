#!/usr/bin/env python3
"""Measures the NPU's functional model on the convolutions of ResNet-50 and MobileNetV2, and on single instructions.

usage: benchmarks/npu/npu.py [--benchmark FILE] [--report FILE]

Writes benchmarks/results/npu.json: processor time of one pass, counts of products and instructions, per preset, with
and without AVX2 and the checks; and nanoseconds for each value that an instruction writes, with all checks. Needs a build in build/ with -DCANDELA_WITH_BENCHMARKS=ON.

Exit status: 0 measured, 1 a program was stopped, 2 bad usage or nothing to run.
"""
import argparse
import json
import pathlib
import platform
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.npu.v1"
TIMEOUT_SECONDS = 1800


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--benchmark", type=pathlib.Path, default=ROOT / "build/bin/npu_benchmark")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/npu.json")
    arguments = parser.parse_args()
    try:
        run = subprocess.run([arguments.benchmark, "--benchmark_format=json", "--benchmark_repetitions=3"], check=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=TIMEOUT_SECONDS)
        records = json.loads(run.stdout)["benchmarks"]
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        print(f"npu: {error}", file=sys.stderr)
        return 2
    stopped = [f"{record['name']}: {record['error_message']}" for record in records if record.get("error_occurred")]
    found = {}
    for record in records:
        if record["run_type"] != "iteration" or record.get("error_occurred"):
            continue
        # The least of the repetitions: the others shared the processor.
        best = found.get(record["name"])
        if best is None or record["cpu_time"] < best["processor_ms"]:
            found[record["name"]] = {"name": record["name"], "processor_ms": round(record["cpu_time"], 1),
                                     "instructions": int(record["instructions"])}
            if "GMAC" in record:
                found[record["name"]]["gmac"] = round(record["GMAC"], 3)
            else:
                found[record["name"]]["ns_per_value"] = round(record["ns/value"], 2)
    nightly_report.write(arguments.report, {"schema": SCHEMA, "date": nightly_report.now(),
                                            "machine": platform.processor() or platform.machine(),
                                            "runs": list(found.values()), "stopped": stopped})
    for entry in found.values():
        rate = f"{entry['gmac']} GMAC" if "gmac" in entry else f"{entry['ns_per_value']} ns/value"
        print(f"{entry['name']:60} {entry['processor_ms']:9.1f} ms  {rate}  {entry['instructions']} instructions")
    for line in stopped:
        print(line)
    print(f"report {arguments.report}")
    return 1 if stopped else 0


if __name__ == "__main__":
    sys.exit(main())
