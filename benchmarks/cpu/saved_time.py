#!/usr/bin/env python3
"""Measures the time that moving fewer bytes saves on cpu.

usage: benchmarks/cpu/saved_time.py [--build DIR] [--models DIR] [--model NAME]... [--rounds 3] [--seconds 1] [--report FILE]

The six benchmark models and the three trained models of scripts/fetch_models, each compiled in three ways: every node an
instruction of its own (--unstacked --no-groups), with epilogues and expressions (--no-groups), and with groups that run by
bands of rows too. One thread; the ways take turns, the best of all rounds counts. Beside the times stand the bytes of
activations that `candela plan` counts for each. Writes benchmarks/results/saved_time.json and docs/reference/saved_time.md.

Needs a build in build/, with build/bin/candela-gen-models unless --models has its files.

Exit status: 0 every way of every model ran, and none moves more bytes than the one before it; 1 otherwise; 2 bad usage.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_models  # noqa: E402
import nightly_report  # noqa: E402

SCHEMA = "candela.saved_time.v1"
WAYS = {"one_per_node": ["--unstacked", "--no-groups"], "stacked": ["--no-groups"], "bands": []}
TIMEOUT_SECONDS = 600


def measured(candela, path, options, rounds, seconds):
    """{way: {ms, activations}}"""
    base = [path, "--backend", "cpu", *options]
    ways = {}
    for way, flags in WAYS.items():
        model, = nightly_report.answer([candela, "plan", *base, *flags], TIMEOUT_SECONDS)["models"]
        ways[way] = {"ms": float("inf"), "activations": model["moved_bytes"]["activations"]}
    for _ in range(rounds):
        for way, flags in WAYS.items():
            report = nightly_report.answer([candela, "bench", *base, *flags, "--threads", "1", "--seconds", str(seconds)],
                                           TIMEOUT_SECONDS)
            ways[way]["ms"] = min(ways[way]["ms"], report["latency_ms"]["min"])
    return ways


def page(report):
    prose = [
        "Models on cpu, one thread, in milliseconds, each compiled in three ways that took turns on one machine: every node of the",
        "lowered model an instruction of its own; with epilogues and expressions; and with groups that run by bands of rows too.",
        "Beside each time the megabytes of activations that its instructions read and write (see bytes_moved.md). Times hold for",
        f"the machine that measured them ({report['machine']['processor']}, {report['machine']['cores']} cores); the bytes are the same everywhere.",
    ]
    rows = []
    for case in report["results"]:
        if "reason" in case:
            rows.append([case["model"], case["reason"]])
            continue
        node, stacked, bands = (case["ways"][way] for way in WAYS)
        cells = [case["model"]]
        for way, before in ((node, None), (stacked, node), (bands, stacked)):
            cells += [f"{way['ms']:.2f}", f"{way['activations'] / 1e6:,.1f}"]
            cells += [f"{before['ms'] / way['ms']:.2f}×"] if before else []
        rows.append(cells)
    return nightly_report.page("benchmarks/cpu/saved_time.py", "Time saved by moving less", prose,
                               ["model", "one per node", "", "stacked", "", "faster", "by bands", "", "faster"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    nightly_models.add_arguments(parser, "saved_time")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1)
    arguments = parser.parse_args()
    candela = nightly_models.tool("saved_time", arguments)
    results = []
    with tempfile.TemporaryDirectory(prefix="candela_saved_") as folder:
        models = nightly_models.generated(arguments.build, arguments.models, folder) | nightly_models.trained()
        for name, model in nightly_models.chosen("saved_time", models, arguments.model).items():
            try:
                ways = measured(candela, *model, arguments.rounds, arguments.seconds)
                moved = [way["activations"] for way in ways.values()]
                case = {"model": name, "passed": moved == sorted(moved, reverse=True), "ways": ways}
                told = "  ".join(f"{way} {found['ms']:8.2f} ms {found['activations']:13,} bytes" for way, found in ways.items())
            except (RuntimeError, ValueError, KeyError, subprocess.SubprocessError) as error:
                case = {"model": name, "passed": False, "reason": str(error)}
                told = case["reason"]
            results.append(case)
            print(f"{name:16} {'ok' if case['passed'] else 'FAILED'}  {told}", flush=True)
    report = {"schema": SCHEMA, "date": nightly_report.now(), "machine": nightly_report.machine(), "results": results}
    return nightly_report.finish(arguments, report, None if arguments.model else page(report))


if __name__ == "__main__":
    sys.exit(main())
