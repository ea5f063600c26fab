#!/usr/bin/env python3
"""Measures backends/opencl on one device, beside cpu and beside the same device by primitives, in one run.

usage: benchmarks/opencl/opencl_speed.py [--build DIR] [--models DIR] [--device TEXT] [--threads N] [--tune] [--report FILE]

Rows: the six benchmark models on `opencl`, `opencl_primitives` and `cpu`, in turns; what share of the peak ResNet-50's convolutions and a
product of two matrices of 1024 x 1024 reach (4096 x 4096 with --threads 0, and then without a share: the peak that is known is that of
one thread of the host); how long ResNet-50 takes from nothing to its first answer, and again with
what caches hold. Writes benchmarks/results/opencl_speed.json and the table of docs/reference/opencl.md.

--device   which device: its number, or a part of its name, as --option device= takes it
--threads  of the host, of cpu, and compute units of the device where it can be divided (1); 0: all, as on a GPU
--tune     with --option tune=on

Needs a build in build/. The page is written for the default report alone.

Exit status: 0 all rows reach their goals; 1 otherwise; 2 bad usage.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_models  # noqa: E402
import nightly_report  # noqa: E402

SCHEMA = "candela.opencl_speed.v1"
REPORT = ROOT / "benchmarks/results/opencl_speed.json"
PAGE = ROOT / "docs/reference/opencl.md"
MARKS = ("<!-- written by benchmarks/opencl/opencl_speed.py -->", "<!-- end -->")
TIMEOUT_SECONDS = 1800
ROUNDS = 3
GOALS = {"float": 1.6, "int8": 4.0, "convolutions": 0.5, "product": 0.65, "cold_s": 12.0, "warm_s": 0.4}
PRODUCT = ("graph @product(%a: f32[1, {n}, {n}], %b: f32[1, {n}, {n}]) -> (%y: f32[1, {n}, {n}]) {{\n"
           "  %y = batch_matmul %a, %b {{to = f32}}\n}}\n")


class Bench:
    """`candela bench` with what all its runs share."""

    def __init__(self, arguments):
        self.candela = arguments.build / "bin/candela"
        self.device = ["--option", f"device={arguments.device}"] if arguments.device else []
        self.tune = ["--option", "tune=on"] if arguments.tune else []
        self.threads = ["--threads", str(arguments.threads)] if arguments.threads else []

    def options(self, backend):
        own = {"cpu": [], "opencl": [*self.device, *self.tune], "opencl_primitives": self.device}[backend]
        return ["--backend", backend, "--random", "1", *own]

    def report(self, backend, model, dims=()):
        return nightly_report.answer([self.candela, "bench", model, *dims, *self.options(backend), *self.threads], TIMEOUT_SECONDS)


def least(reports):
    return round(min(report["latency_ms"]["min"] for report in reports), 3)


def network(bench, name, path, dims):
    """A model on three backends in turns: the shortest run of each."""
    backends = ("opencl", "cpu", "opencl_primitives")
    reports = {backend: [] for backend in backends}
    for _ in range(ROUNDS):
        for backend in backends:
            reports[backend].append(bench.report(backend, path, dims))
    ms = {backend: least(reports[backend]) for backend in backends}
    ratio = round(ms["opencl"] / ms["cpu"], 3)
    goal = GOALS["int8" if name.endswith("int8") else "float"]
    row = {"name": name, "ms": ms, "of_cpu": ratio, "goal": goal, "passed": ratio <= goal and ms["opencl"] < ms["opencl_primitives"]}
    return row, reports["opencl"]


def rate_of(report, kind):
    """GFLOP/s that the instructions of a kind reached together."""
    ops = [op for op in report["ops"] if op["kind"] == kind]
    return 2e-6 * sum(op["macs"] for op in ops) / sum(op["ms"] for op in ops)


def compute(name, goal, reports, kind, has_peak):
    """A row: the best rate of a kind, and where the device's peak is known its share of the highest peak that was measured."""
    rate = max(rate_of(report, kind) for report in reports)
    row = {"name": name, "gflops": round(rate, 1)}
    if not has_peak:
        return {**row, "passed": True}
    share = round(rate / max(report["peak_gflops"]["f32"] for report in reports), 3)
    return {**row, "goal": goal, "share_of_peak": share, "passed": share >= goal}


def starts(bench, path, dims):
    """Seconds of a process with ResNet-50's first answer: with empty caches, and with what it left in them."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "POCL_CACHE_DIR": f"{folder}/pocl", "CANDELA_CACHE_DIR": f"{folder}/candela"}
        seconds = []
        for _ in range(1 + ROUNDS):
            began = time.monotonic()
            subprocess.run([bench.candela, "run", path, *dims, *bench.options("opencl")], env=environment, check=True, capture_output=True,
                           timeout=TIMEOUT_SECONDS)
            seconds.append(time.monotonic() - began)
    row = {"name": "resnet50: to the first answer", "goal": {key: GOALS[key] for key in ("cold_s", "warm_s")}, "cold_s": round(seconds[0], 2),
           "warm_s": round(min(seconds[1:]), 2)}
    row["passed"] = all(row[key] <= GOALS[key] for key in ("cold_s", "warm_s"))
    return row


def measured(arguments, bench, folder):
    models = nightly_models.generated(arguments.build, arguments.models, folder)
    side = 1024 if arguments.threads else 4096
    product = folder / "product.cdl"
    product.write_text(PRODUCT.format(n=side))
    has_peak = arguments.threads == 1
    products = [bench.report("opencl", product) for _ in range(ROUNDS)]
    yield compute(f"a product of {side} x {side}", GOALS["product"], products, "matmul", has_peak)
    for name, (path, dims) in models.items():
        row, reports = network(bench, name, path, dims)
        yield row
        if name == "resnet50":
            yield compute("resnet50: its convolutions", GOALS["convolutions"], reports, "conv2d", has_peak)
            yield starts(bench, path, dims)


def cells(row):
    if "ms" in row:
        ms = row["ms"]
        return [row["name"], f"{ms['opencl']:.2f} ms", f"{ms['cpu']:.2f} ms", f"{ms['opencl_primitives']:.2f} ms",
                f"{row['of_cpu']:.2f} × cpu", f"≤ {row['goal']} ×"]
    if "gflops" in row and "share_of_peak" not in row:
        return [row["name"], f"{row['gflops']} GFLOP/s"]
    if "share_of_peak" in row:
        return [row["name"], f"{row['gflops']} GFLOP/s", "", "", f"{row['share_of_peak']:.0%} of the peak", f"≥ {row['goal']:.0%}"]
    goal = row["goal"]
    return [row["name"], f"{row['cold_s']} s", "", "", f"{row['warm_s']} s from the cache", f"≤ {goal['cold_s']} s, ≤ {goal['warm_s']} s"]


def write_page(report):
    text = PAGE.read_text()
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1], 1)[1]
    columns = ["", "`opencl`", "`cpu`", "`opencl_primitives`", "", "goal"]
    settings, machine = report["settings"], report["machine"]
    device = settings["device"] or report["devices"][0]
    lines = [MARKS[0], f"{device}, {settings['threads'] or 'all'} of its compute units; {machine['processor']}, {report['date'][:10]}:", "",
             *nightly_report.table(columns, [cells(row) for row in report["results"]]), MARKS[1]]
    PAGE.write_text(before + "\n".join(lines) + after)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--models", type=pathlib.Path, help="what candela-gen-models wrote")
    parser.add_argument("--device", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--report", type=pathlib.Path, default=REPORT)
    arguments = parser.parse_args()
    candela = nightly_models.tool("opencl_speed", arguments)
    backends = nightly_report.answer([candela, "backends"], TIMEOUT_SECONDS)
    opencl = next(backend for backend in backends["backends"] if backend["name"] == "opencl")
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for row in measured(arguments, Bench(arguments), pathlib.Path(folder)):
            print(json.dumps(row), flush=True)
            rows.append(row)
    report = {"schema": SCHEMA, "date": nightly_report.now(), "machine": nightly_report.machine(), "devices": [device["name"] for device in opencl["devices"]],
              "settings": {"device": arguments.device, "threads": arguments.threads, "tune": arguments.tune, "rounds": ROUNDS}, "results": rows}
    if arguments.report == REPORT:
        write_page(report)
    return nightly_report.finish(arguments, report, None)


if __name__ == "__main__":
    sys.exit(main())
