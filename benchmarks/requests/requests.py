#!/usr/bin/env python3
"""Measures what several devices and many requests at the same time bring.

usage: benchmarks/requests/requests.py [--build DIR] [--models DIR] [--report FILE]

Two sample devices (tests/devices/timed.cpp) answer by a clock: what they gain is not the cores'. Rows: ResNet-50 that two devices share as a
pipeline, and two copies, beside one device; two copies on cpu with one thread each beside one; eight requests in flight on a device whose
transfers take as long as its array, beside one; a request on an idle device, and an empty model; 100,000 requests on devices with faults.
Each row and what it is compared with run one after the other. Every answer is compared with that of a single run by the command itself.
Writes benchmarks/results/requests.json.

Needs a build in build/, with build/bin/candela-gen-models unless --models has its files.

Exit status: 0 all rows reach their goals; 1 otherwise; 2 bad usage.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_models  # noqa: E402
import nightly_report  # noqa: E402

SCHEMA = "candela.requests.v1"
TIMEOUT_SECONDS = 900
PS_PER_MAC = 250  # ResNet-50: about a second on one array
ONE_OP = "graph @one(%a: f32[64]) -> (%y: f32[64]) {\n  %y = relu %a\n}\n"
EMPTY = 'graph @empty(%a: f32[64]) -> (%a: f32[64] "y") {\n}\n'


def bench(arguments, model, options, in_flight, repeat):
    """The report of one `candela bench --in-flight`."""
    return nightly_report.answer([arguments.build / "bin/candela", "bench", *model, *options, "--in-flight", str(in_flight), "--repeat",
                                  str(repeat)], TIMEOUT_SECONDS)


def figures(report):
    session = report["session"]
    return {"requests_per_second": round(report["throughput"], 3), "latency_ms_median": round(report["latency_ms"]["median"], 4),
            "requests": report["latency_ms"]["requests"], "device_copies": session["device_copies"],
            "staged_bytes": session["staged_bytes"]}


def compared(name, goal, one, many):
    """A row: what many devices or requests bring beside one."""
    row = {"name": name, "goal": goal, "one": figures(one), "many": figures(many),
           "faster": round(many["throughput"] / one["throughput"], 3)}
    row["passed"] = row["faster"] >= goal and row["many"]["staged_bytes"] == 0
    return row


def latency(name, goal_us, report):
    us = round(report["latency_ms"]["median"] * 1000, 2)
    return {"name": name, "goal_us": goal_us, "median_us": us, "requests": report["latency_ms"]["requests"], "passed": us <= goal_us}


def stress(arguments):
    run = subprocess.run([arguments.build / "bin/request_stress", "100000"], stdout=subprocess.PIPE, timeout=TIMEOUT_SECONDS)
    told = json.loads(run.stdout) if run.stdout else {}
    return {"name": "100,000 requests with faults", **told, "passed": run.returncode == 0 and told.get("grown_bytes", 1 << 30) <= 1 << 20}


def measured(arguments, models, folder):
    timed = str(arguments.build / "lib/candela-tests/libcandela_timed.so")
    template = str(arguments.build / "lib/candela/libcandela_template.so")
    path, dims = models["resnet50"]
    resnet = [str(path), *dims]
    clock = ["--option", f"ps_per_mac={PS_PER_MAC}"]
    one_op, empty = folder / "one.cdl", folder / "empty.cdl"
    one_op.write_text(ONE_OP)
    empty.write_text(EMPTY)
    large = folder / "large.cdl"
    large.write_text(ONE_OP.replace("f32[64]", "f32[262144]"))  # a MiB in, a MiB out
    transfers = ["--devices", timed, "--option", "us_per_mib=2000", "--option", "us_per_run=4000"]

    alone = bench(arguments, resnet, ["--devices", f"{timed}:0", *clock], 2, 12)
    yield compared("resnet50: a pipeline of two devices", 1.9, alone,
                   bench(arguments, resnet, ["--backend", f"{timed}:0,{timed}:1", "--partition", "pipeline", *clock], 4, 40))
    yield compared("resnet50: a copy on each of two devices", 1.9, alone,
                   bench(arguments, resnet, ["--devices", f"{timed}:0,{timed}:1", *clock], 4, 24))
    one_thread = ["--option", "threads=1"]
    yield compared("resnet50: two copies on cpu, one thread each", 1.85,
                   bench(arguments, resnet, ["--devices", "cpu", *one_thread], 1, 100),
                   bench(arguments, resnet, ["--devices", "cpu,cpu", *one_thread], 2, 200))
    yield compared("eight in flight on a device with a copy engine", 1.5, bench(arguments, [str(large)], transfers, 1, 50),
                   bench(arguments, [str(large)], transfers, 8, 200))
    yield latency("an empty model", 10, bench(arguments, [str(empty)], [], 1, 20000))
    yield latency("a request on an idle device", 20, bench(arguments, [str(one_op)], ["--devices", template], 1, 20000))
    yield stress(arguments)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--models", type=pathlib.Path, help="what candela-gen-models wrote")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/requests.json")
    arguments = parser.parse_args()
    nightly_models.tool("requests", arguments)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        models = nightly_models.generated(arguments.build, arguments.models, folder)
        rows = []
        for row in measured(arguments, models, folder):
            print(json.dumps(row), flush=True)
            rows.append(row)
    report = {"schema": SCHEMA, "date": nightly_report.now(), "machine": nightly_report.machine(),
              "settings": {"ps_per_mac": PS_PER_MAC}, "results": rows}
    return nightly_report.finish(arguments, report, None)

if __name__ == "__main__":
    sys.exit(main())
