#!/usr/bin/env python3
"""Measures what threads save the portable executor.

usage: benchmarks/soft/soft_threads.py [--build DIR] [--models DIR] [--model NAME]... [--threads 1,2] [--rounds 5] [--repeat 10]
                                  [--report FILE]

The f32 benchmark models on soft with each number of threads. The numbers take turns; the best of all runs of all rounds counts.
Beside it stands the processor time of a process, which compiles once and runs --repeat times: where others keep the machine busy,
it says what the threads cost. The outputs are compared, bit by bit. Writes benchmarks/results/soft_threads.json.

Needs a build in build/, with build/bin/candela-gen-models unless --models has its files.

Exit status: 0 every model ran and gave the same bits with every number of threads; 1 otherwise; 2 bad usage.
"""
import argparse
import pathlib
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_models  # noqa: E402
import nightly_report  # noqa: E402

SCHEMA = "candela.soft_threads.v1"
MODELS = ("resnet50", "mbv2", "bert4")
TIMEOUT_SECONDS = 600


def user_seconds():
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def run_once(candela, model, threads, repeat, folder):
    """(the shortest run in ms, processor time of the process in s, the outputs' bytes by file)"""
    path, options = model
    outputs = folder / f"outputs_{threads}"
    before = user_seconds()
    report = nightly_report.answer([candela, "run", path, *options, "--backend", "soft", "--random", "1", "--repeat", str(repeat),
                                    "--threads", str(threads), "--output", outputs], TIMEOUT_SECONDS)
    user = user_seconds() - before
    return report["latency_ms"]["min"], user, {file.name: file.read_bytes() for file in sorted(outputs.iterdir())}


def measured(candela, model, arguments, folder):
    """One case of the report."""
    ways = {threads: {"ms": float("inf"), "user_s": float("inf")} for threads in arguments.threads}
    seen = []
    for _ in range(arguments.rounds):
        for threads, way in ways.items():
            ms, user, outputs = run_once(candela, model, threads, arguments.repeat, folder)
            way["ms"] = min(way["ms"], ms)
            way["user_s"] = round(min(way["user_s"], user), 3)
            seen.append(outputs)
    first = ways[arguments.threads[0]]["ms"]
    for way in ways.values():
        way["faster"] = round(first / way["ms"], 3)
    same = all(outputs == seen[0] for outputs in seen)
    return {"passed": same, "same_bits": same, "threads": {str(threads): way for threads, way in ways.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    nightly_models.add_arguments(parser, "soft_threads")
    parser.add_argument("--threads", default="1,2", type=lambda text: [int(part) for part in text.split(",")])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=10)
    arguments = parser.parse_args()
    candela = nightly_models.tool("soft_threads", arguments)
    results = []
    with tempfile.TemporaryDirectory(prefix="candela_soft_threads_") as folder:
        found = nightly_models.generated(arguments.build, arguments.models, folder)
        models = {name: found[name] for name in MODELS}
        for name, model in nightly_models.chosen("soft_threads", models, arguments.model).items():
            try:
                case = measured(candela, model, arguments, pathlib.Path(folder))
                told = "  ".join(f"{threads} threads {way['ms']:8.1f} ms {way['faster']:.2f}×"
                                 for threads, way in case["threads"].items())
            except (RuntimeError, ValueError, KeyError, subprocess.SubprocessError) as error:
                case = {"passed": False, "reason": str(error)}
                told = case["reason"]
            results.append({"model": name, **case})
            print(f"{name:10} {'ok' if case['passed'] else 'FAILED'}  {told}", flush=True)
    report = {"schema": SCHEMA, "date": nightly_report.now(), "machine": nightly_report.machine(), "settings":
              {"rounds": arguments.rounds, "repeat": arguments.repeat}, "results": results}
    return nightly_report.finish(arguments, report, None)


if __name__ == "__main__":
    sys.exit(main())
