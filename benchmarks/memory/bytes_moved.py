#!/usr/bin/env python3
"""Counts the bytes that compiled models move, and how much memory they plan, beside one instruction for each ONNX node.

usage: benchmarks/memory/bytes_moved.py [--build DIR] [--models DIR] [--model NAME]... [--backend B]... [--report FILE]

The six benchmark models, digits, the three trained models of scripts/fetch_models, and the networks that the `onnx` package
brings where it is installed: `candela plan` for cpu and soft, with groups by bands of rows and, where a backend takes them,
with --no-groups beside it. The figures are exact and the same on every machine, the times to plan are not. Writes
benchmarks/results/bytes_moved.json and the table docs/reference/bytes_moved.md from it.

Needs a build in build/, with build/bin/candela-gen-models unless --models has its files.

Exit status: 0 MobileNetV2 moves as little as the project promises, with groups and without; no arena is more than 1.02 times
what lives at once, and without groups no peak above that of the model's own order; 1 otherwise, or where a model has no plan;
2 bad usage.
"""
import argparse
import importlib.util
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_models  # noqa: E402
import nightly_report  # noqa: E402

SCHEMA = "candela.bytes_moved_nightly.v1"
PROMISED = {("mbv2", "cpu"): (1.9, 6.0)}  # times fewer bytes of activations: by fusion alone, with row bands
LARGEST_ARENA = 1.02  # times what is alive at once
ALONE = ("moved_bytes", "activations_ratio", "arena_bytes", "max_live_bytes", "max_live_bytes_before_scheduling")
GROUPING = ("cpu",)  # backends that take groups
MISSED_KEPT = 8
TIMEOUT_SECONDS = 600


def models_of(arguments, folder):
    """{name: (path, options)}"""
    found = nightly_models.generated(arguments.build, arguments.models, folder)
    found["digits"] = (ROOT / "examples/digits/digits.onnx", ["--dim", "N=1"])
    found |= nightly_models.trained()
    package = importlib.util.find_spec("onnx")
    light = pathlib.Path(package.origin).parent / "backend/test/data/light" if package else None
    for path in sorted(light.glob("light_*.onnx")) if light else []:
        found[path.stem] = (path, [])
    return nightly_models.chosen("bytes_moved", found, arguments.model)


def ends(passage):
    """Kinds and nodes of both instructions."""
    side = {key: [passage[key]["kind"], *passage[key]["nodes"]] for key in ("writer", "reader")}
    return {"bytes": passage["bytes"], **side}


def planned(candela, backend, path, options):
    try:
        report = nightly_report.answer([candela, "plan", path, "--backend", backend, *options], TIMEOUT_SECONDS)
    except RuntimeError as error:
        return None, {"reason": str(error)}
    model, = report["models"]
    parts = model["partitions"]
    spaces = [space for part in parts for space in part["spaces"]]
    missed = sorted((ends(m) for part in parts for m in part["missed_fusions"]), key=lambda m: -m["bytes"])
    return report["candela_version"], {
        "instructions": sum(part["instructions"] for part in parts),
        "groups": sum(part["groups"] for part in parts),
        "groups_in_bands": sum(part["groups_in_bands"] for part in parts),
        "moved_bytes": model["moved_bytes"],
        "moved_bytes_per_node": model["moved_bytes_per_node"],
        "activations_ratio": model["activations_ratio"],
        "arena_bytes": max(space["size"] for space in spaces),
        "max_live_bytes": max(space["max_live"] for space in spaces),
        "max_live_bytes_before_scheduling": max(space["max_live_before_scheduling"] for space in spaces),
        "plan_ms": sum(part["time_ms"] for part in parts),
        "missed_bytes": sum(m["bytes"] for m in missed),
        "missed_fusions": missed[:MISSED_KEPT],
    }


def keeps(case, alone, banded):
    """Whether a plan is as good as promised, with so many times fewer bytes of activations by fusion alone and with groups."""
    plain = case["without_groups"]
    return (case["activations_ratio"] >= banded and plain["activations_ratio"] >= alone
            and all(plan["arena_bytes"] <= LARGEST_ARENA * plan["max_live_bytes"] for plan in (case, plain))
            and plain["max_live_bytes"] <= plain["max_live_bytes_before_scheduling"])


def planned_both(candela, backend, path, options):
    """With groups, and what differs by fusion alone below "without_groups"."""
    said, case = planned(candela, backend, path, options)
    if "reason" in case:
        return said, case
    _, alone = planned(candela, backend, path, [*options, "--no-groups"]) if backend in GROUPING else (said, case)
    if "reason" in alone:
        return said, alone
    case["without_groups"] = {key: alone[key] for key in ALONE}
    return said, case


def megabytes(count):
    return f"{count / 1e6:,.2f}"


def page(report):
    prose = [
        "What one run of a compiled model reads and writes: the logical bytes of the views of its instructions, each element",
        "once, without the padding of layouts. `candela plan MODEL` counts them. Beside it one instruction for each ONNX node,",
        "which reads its inputs and writes its outputs once. In megabytes (10^6 bytes), for one image or sequence. Constants are",
        "weights, the same ones in both columns but for what was folded. Arena: the memory that activations are planned into;",
        "live: the most that is alive at once, which no arena can be below; before: the same in the order of the model.",
        "",
        "Fused: by fusion alone (`--no-groups`). Moved: with groups as well, chains of convolutions by bands of rows, what stays",
        "inside of which counts nothing while its rows hold at most 1 MiB at once. Groups: how many there are, and how many of",
        "them run in more than one band.",
    ]
    rows = []
    for case in report["results"]:
        cells = [case["model"], case["backend"]]
        if "reason" in case:
            rows.append([*cells, case["reason"]])
            continue
        alone = case["without_groups"]
        rows.append([
            *cells, str(case["instructions"]), megabytes(case["moved_bytes_per_node"]["activations"]),
            megabytes(alone["moved_bytes"]["activations"]), f"{alone['activations_ratio']:.3f}×",
            megabytes(case["moved_bytes"]["activations"]), f"{case['activations_ratio']:.3f}×",
            f"{case['groups']}, {case['groups_in_bands']}", megabytes(case["moved_bytes"]["constants"]),
            megabytes(alone["arena_bytes"]), megabytes(case["arena_bytes"]), megabytes(case["max_live_bytes"]),
            megabytes(case["max_live_bytes_before_scheduling"])])
    lines = nightly_report.page("benchmarks/memory/bytes_moved.py", "Bytes moved", prose,
                                ["model", "backend", "instructions", "per node", "fused", "fewer", "moved", "fewer", "groups",
                                 "constants", "arena fused", "arena", "live", "before"], rows)
    largest = []
    for case in report["results"]:
        for missed in case.get("missed_fusions", [])[:3] if case["backend"] == "cpu" else []:
            said = [f"{end[0]} {', '.join(end[1:3])}".strip() for end in (missed["writer"], missed["reader"])]
            largest.append([case["model"], megabytes(missed["bytes"]), *said])
    return [*lines, "", "## What fusion could still save", "",
            "Values that one instruction writes for another one alone, where either is elementwise or a copy: the largest three",
            "of each model on cpu.", "",
            *nightly_report.table(["model", "megabytes", "written by", "read by"], largest)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    nightly_models.add_arguments(parser, "bytes_moved")
    parser.add_argument("--backend", action="append", help="instead of cpu and soft; may be given again")
    arguments = parser.parse_args()
    candela = nightly_models.tool("bytes_moved", arguments)
    results, version = [], None
    with tempfile.TemporaryDirectory(prefix="candela_bytes_") as folder:
        for name, (path, options) in models_of(arguments, folder).items():
            for backend in arguments.backend or ("cpu", "soft"):
                said, case = planned_both(candela, backend, path, options)
                version = version or said
                alone, banded = PROMISED.get((name, backend), (0, 0))
                kept = "reason" not in case and keeps(case, alone, banded)
                case = {"model": name, "backend": backend, "passed": kept, **case}
                results.append(case)
                told = case.get("reason") or (f"{case['moved_bytes']['activations']:,} of "
                                              f"{case['moved_bytes_per_node']['activations']:,} bytes, "
                                              f"{case['activations_ratio']:.3f} times fewer, "
                                              f"{case['without_groups']['activations_ratio']:.3f} by fusion alone")
                print(f"{name:22} {backend:5} {'ok' if case['passed'] else 'FAILED'}  {told}", flush=True)
    report = {"schema": SCHEMA, "date": nightly_report.now(), "versions": {"candela": version},
              "promised": [{"model": m, "backend": b, "activations_ratio_by_fusion": f, "activations_ratio": r}
                           for (m, b), (f, r) in PROMISED.items()], "results": results}
    return nightly_report.finish(arguments, report, None if arguments.model or arguments.backend else page(report))


if __name__ == "__main__":
    sys.exit(main())
