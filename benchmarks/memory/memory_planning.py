#!/usr/bin/env python3
"""Measures the memory planner: published instances, 10,000 drawn buffers, and models.

usage: benchmarks/memory/memory_planning.py [--data DIR] [--models DIR] [--candela FILE] [--planner FILE] [--report FILE]

DATA holds minimalloc's instances (*.1048576.csv; those of tests/unit/compiler/solvers/memory/minimalloc by default),
MODELS *.onnx
files of a batch N, whose arena at N=1 is compared with the bytes alive at once. Writes
benchmarks/results/memory_planning.json.

Needs a build in build/ with -DCANDELA_WITH_BENCHMARKS=ON.

Exit status: 0 all plans are valid, 1 some are not, 2 bad usage or nothing to run.
"""
import argparse
import json
import pathlib
import platform
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.memory_planning.v1"
TIMEOUT_SECONDS = 3600


def arenas(candela, models):
    """Per model, the arena of its largest partition beside what is alive at once there."""
    found = []
    for model in models:
        with tempfile.TemporaryDirectory(prefix="candela_memory_planning_") as folder:
            file = pathlib.Path(folder) / "lower.json"
            subprocess.run([candela, "lower", model, "--dim", "N=1", "-o", pathlib.Path(folder) / "program.cdl",
                            "--json", file], check=True, timeout=TIMEOUT_SECONDS, stdout=subprocess.DEVNULL)
            parts = json.loads(file.read_text())["partitions"]
        most = max(parts, key=lambda part: part["arena_bytes"])
        ratio = most["arena_bytes"] / most["max_live_bytes"] if most["max_live_bytes"] else 1.0
        found.append({"model": model.stem, "arena_bytes": most["arena_bytes"],
                      "max_live_bytes": most["max_live_bytes"], "ratio": round(ratio, 4)})
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "tests/unit/compiler/solvers/memory/minimalloc")
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--planner", type=pathlib.Path, default=ROOT / "build/bin/memory_planning")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/memory_planning.json")
    arguments = parser.parse_args()
    files = sorted(arguments.data.glob("*.csv"))
    if not files or not arguments.planner.is_file():
        print(f"memory_planning: {arguments.planner} or instances in {arguments.data} are missing",
              file=sys.stderr)
        return 2
    try:
        planner = subprocess.run([arguments.planner, *files], stdout=subprocess.PIPE, text=True,
                                 timeout=TIMEOUT_SECONDS)
        problems = [json.loads(line) for line in planner.stdout.splitlines()]
        models = arenas(arguments.candela, sorted(arguments.models.glob("*.onnx"))) if arguments.models else []
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        print(f"memory_planning: {error}", file=sys.stderr)
        return 2
    nightly_report.write(arguments.report, {"schema": SCHEMA, "date": nightly_report.now(),
                                            "machine": platform.processor() or platform.machine(),
                                            "problems": problems, "models": models})
    for problem in problems:
        print(f"{problem['problem']:26} {'valid' if problem['valid'] else 'NO PLAN':8} {problem['nodes']:9} nodes "
              f"{problem['processor_seconds']:8.3f} s  {problem['bytes'] / problem['max_live_bytes']:.4f} x max-live")
    for model in models:
        print(f"{model['model']:26} {model['ratio']:.4f} x max-live")
    print(f"report {arguments.report}")
    return 0 if planner.returncode == 0 and all(problem["valid"] for problem in problems) else 1


if __name__ == "__main__":
    sys.exit(main())
