#!/usr/bin/env python3
"""What the order of instructions saves: peaks of memory in the order of the model's nodes, as scheduled, and with cheap
values computed again.

usage: benchmarks/memory/schedule.py [--candela FILE] [--backend B]... [--models DIR] [--report FILE]
       benchmarks/memory/schedule.py --witness NAME... [--candela FILE] [--report FILE]

The graphs of benchmarks/branching_graphs.py, each in two orders of its nodes, and the models of build/models. Peaks are the most
bytes of temporary buffers that are live at once, in the partition that needs most; no placement needs less.

Passes where no case needs more than in its own order, and at least two graphs, in some order of their nodes, need at least 10 %
less. --witness: these graphs alone, on soft, need what the report says, byte by byte; nothing is written.

Writes benchmarks/results/schedule.json. Needs a build in build/ with its tests, whose fixture writes build/models; Python alone
is enough.

Exit status: 0 as it should be, 1 not, 2 bad usage or nothing to run.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/lib"), str(ROOT / "benchmarks")]
import branching_graphs  # noqa: E402
import nightly_report  # noqa: E402

SCHEMA = "candela.schedule.v1"
FORMS = {"own_order": ["--keep-order"], "scheduled": [], "rematerialized": ["--rematerialize"]}
MODELS = {"mbv2": ["--dim", "N=1"], "resnet50": ["--dim", "N=1"], "bert4": ["--dim", "N=1"], "mbv2_int8": ["--dim", "N=1"],
          "resnet50_int8": ["--dim", "N=1"], "bert4_int8": ["--dim", "N=1"], "text_map": ["--shape", "x=1x3x64x96"],
          "text_line": ["--shape", "x=1x3x48x96"]}
NOTABLE = 0.10
TIMEOUT_SECONDS = 600


def lower(candela, model, backend, arguments, folder):
    """The partitions in the report of `candela lower`."""
    done = subprocess.run([candela, "lower", model, "--backend", backend, "--no-groups", *arguments, "-o", folder / "out.cdl", "--json",
                           folder / "report.json"], capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    if done.returncode:
        raise RuntimeError(f"{model.name} on {backend}: {done.stderr.strip()}")
    return json.loads((folder / "report.json").read_text())["partitions"]


def measure(candela, name, order, model, backend, arguments):
    case = {"model": name, "order": order, "backend": backend, "max_live_bytes": {}, "arena_bytes": {}}
    with tempfile.TemporaryDirectory() as folder:
        for form, flags in FORMS.items():
            parts = lower(candela, model, backend, [*arguments, *flags], pathlib.Path(folder))
            for key in ("max_live_bytes", "arena_bytes"):
                case[key][form] = max(part[key] for part in parts)
            if form == "own_order":
                case["instructions"] = sum(part["instructions"] for part in parts)
            if form == "rematerialized":
                case["computed_again"] = sum(part["instructions"] for part in parts) - case["instructions"]
    case["saved"] = round(1 - case["max_live_bytes"]["scheduled"] / max(case["max_live_bytes"]["own_order"], 1), 4)
    print(f"{name}.{order} on {backend}: {case['max_live_bytes']['own_order']} -> {case['max_live_bytes']['scheduled']} "
          f"({100 * case['saved']:.1f} % less), {case['max_live_bytes']['rematerialized']} with "
          f"{case['computed_again']} computed again", flush=True)
    return case


def problems_of(cases):
    found = []
    for case in cases:
        peaks = case["max_live_bytes"]
        if not peaks["rematerialized"] <= peaks["scheduled"] <= peaks["own_order"]:
            found.append(f"{case['model']}.{case['order']} on {case['backend']}: {peaks}")
    return found


def run(arguments):
    cases = []
    for backend in arguments.backend or ["soft", "cpu"]:
        with tempfile.TemporaryDirectory() as folder:
            for name in branching_graphs.GRAPHS:
                for order in branching_graphs.ORDERS:
                    model = branching_graphs.write(name, order, pathlib.Path(folder))
                    cases.append(measure(arguments.candela, name, order, model, backend, []))
        for name, flags in MODELS.items():
            model = arguments.models / f"{name}.onnx"
            if not model.is_file():
                print(f"schedule: {model} is missing; the tests' fixture writes it", file=sys.stderr)
                return 2
            cases.append(measure(arguments.candela, name, "onnx", model, backend, flags))
    problems = problems_of(cases)
    notable = {case["model"] for case in cases if case["order"] != "onnx" and case["saved"] >= NOTABLE}
    if len(notable) < 2:
        problems.append(f"{len(notable)} graphs need at least 10 % less, 2 should")
    nightly_report.write(arguments.report, {
        "schema": SCHEMA, "date": nightly_report.now(), "passed": not problems, "total": len(cases),
        "at_least_10_percent_less": sorted(notable), "problems": problems, "cases": cases})
    for problem in problems:
        print(f"schedule: {problem}", file=sys.stderr)
    return 1 if problems else 0


def witness(arguments):
    reported = {(case["model"], case["order"]): case for case in json.loads(arguments.report.read_text())["cases"]
                if case["backend"] == "soft"}
    cases, problems = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.witness:
            for order in branching_graphs.ORDERS:
                model = branching_graphs.write(name, order, pathlib.Path(folder))
                now = measure(arguments.candela, name, order, model, "soft", [])
                then = {key: reported.get((name, order), {}).get(key) for key in now}
                if now != then:
                    problems.append(f"{name}.{order}: {now}, reported {then}")
                cases.append(now)
    problems += problems_of(cases)
    for problem in problems:
        print(f"schedule: {problem}", file=sys.stderr)
    return 1 if problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--backend", action="append")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build/models")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/schedule.json")
    parser.add_argument("--witness", nargs="+", choices=branching_graphs.GRAPHS)
    arguments = parser.parse_args()
    if not arguments.candela.is_file():
        print(f"schedule: {arguments.candela} is missing; build it first", file=sys.stderr)
        return 2
    return witness(arguments) if arguments.witness else run(arguments)


if __name__ == "__main__":
    sys.exit(main())
