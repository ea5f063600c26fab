#!/usr/bin/env python3
"""Climbs the port to OpenCL by primitives level by level: lines, native ratio, whole models, conformance.

usage: tests/nightly/opencl.py [--candela FILE] [--plugin FILE] [--report FILE] [--lines | --witness MODEL]

b0 is memory alone, b1 the primitives, b2 convolutions, pools and expressions too (`--option rung=`). On each level digits
and the six benchmark models run against their committed answers; on the last one `candela conform --size full` may have
no failure. Writes benchmarks/results/opencl.json and the table in backends/opencl/README.md.

--lines    counts anew what stands in both, and runs nothing: after a change of the port's code
--witness  changes nothing: lines and table must be those of the sources, and the model's native ratio as reported

Lines are counted as for the limits on size, neither blank nor only a comment; kernels with them. Needs a build in build/ with
its tests, whose fixture writes build/models.

Exit status: 0 as it should be, 1 not, 2 nothing to run.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/lib"), str(ROOT / "tests/hygiene")]
import check_size  # noqa: E402
import nightly_report  # noqa: E402

SCHEMA = "candela.opencl.v1"
ROOM = ROOT / "backends/opencl"
FILES = {  # what each level adds
    "b0": ("CMakeLists.txt", "backend.cpp", "device.cpp", "opencl.hpp"),
    "b1": ("cache.cpp", "launch.cpp", "primitives/*", "kernels/common.cl", "kernels/m*.cl", "kernels/reduce.cl"),
    "b2": ("optional/*", "kernels/window.cl"),
}
MODELS = {"mbv2": 1.16e-3, "resnet50": 0.35, "bert4": 7e-4, "mbv2_int8": 0.1001, "resnet50_int8": 0.1001,
          "bert4_int8": 0.142}
MARKS = ("<!-- written by tests/nightly/opencl.py -->", "<!-- end -->")
TIMEOUT_SECONDS = 1800


def lines_added():
    added = {}
    for rung, patterns in FILES.items():
        paths = sorted({path for pattern in patterns for path in ROOM.glob(pattern)})
        added[rung] = sum(check_size.countCode(path.read_text().splitlines(), path.name) for path in paths)
    counted = {path for patterns in FILES.values() for pattern in patterns for path in ROOM.glob(pattern)}
    # The program API is a plugin of its own.
    programs = {ROOM / "kernels/program.cl", *ROOM.glob("program/*")}
    missing = {path for path in ROOM.rglob("*") if path.is_file() and path.suffix != ".md"} - counted - programs
    if missing:
        sys.exit(f"opencl: on which rung are {sorted(map(str, missing))}?")
    return added


def json_of(command):
    """What the command says in JSON, or why it failed."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        done = subprocess.run([*map(str, command), "--json", str(report)], capture_output=True, text=True,
                              timeout=TIMEOUT_SECONDS)
        return json.loads(report.read_text()) if report.exists() else {"error": done.stderr.strip()[-500:]}


def ratio_of(report):
    placement, macs = report["placement"], report["macs"]
    return {"nodes": round(placement["native"] / sum(placement.values()), 4),
            "macs": round(macs["native"] / max(sum(macs.values()), 1), 4)}


def run_model(candela, plugin, rung, name):
    target = ["--backend", plugin, "--option", f"rung={rung}", "--rtol", "0"]
    if name == "digits":
        digits = ROOT / "examples/digits"
        command = [candela, "run", digits / "digits.onnx", *target, "--input", f"images={digits / 'test_images.npy'}",
                   "--expect", f"scores={digits / 'expected_scores.npy'}", "--atol", "5.8e-3"]
    else:
        expected = ROOT / f"tests/models/expected/{name}_seed1.npy"
        command = [candela, "run", ROOT / f"build/models/{name}.onnx", *target, "--dim", "N=1", "--random", "1",
                   "--expect", f"out={expected}", "--atol", str(MODELS[name])]
    report = json_of([*command, "--repeat", "2"])
    passed = "error" not in report and not report["mismatches"]
    print(f"{rung} {name}: {'right' if passed else report}", flush=True)
    case = {"rung": rung, "model": name, "passed": passed}
    if "error" in report:
        return {**case, "reason": report["error"]}
    return {**case, "native": ratio_of(report), "arena_bytes": report["arena_bytes"],
            "latency_ms": round(report["latency_ms"]["min"])}


def devices(candela, plugin):
    """The ones that the plugin finds, which it lists when it is asked for one that is not there."""
    refusal = json_of([candela, "run", ROOT / "examples/digits/digits.onnx", "--dim", "N=1", "--random", "1", "--backend",
                       plugin, "--option", "device=none of them"])["error"]
    return refusal.partition("there are: ")[2]


def conform(candela, plugin):
    report = json_of([candela, "conform", "--backend", plugin, "--size", "full"])
    return {key: report[key] for key in ("total", "passed", "failed", "native", "by_tier")} | {
        "unsupported": len(report["unsupported"]), "seconds": round(report["wall_ms"] / 1000)}


def percent(value):
    return f"{100 * value:.1f} %"


def table_of(report):
    what = {"b0": "memory and a queue; the host computes", "b1": "the 13 primitives", "b2": "and CONV2D, POOL2D, expressions"}
    rows = ["| level | | lines added | in all | right | nodes native | MACs native | arena of mbv2_int8 |",
            "|---|---|---|---|---|---|---|---|"]
    total = 0
    for rung, added in report["lines"].items():
        total += added
        cases = [case for case in report["models"] if case["rung"] == rung]
        right = sum(case["passed"] for case in cases)
        arena = next(case["arena_bytes"] for case in cases if case["model"] == "mbv2_int8")
        spans = []
        for part in ("nodes", "macs"):
            ratios = [case["native"][part] for case in cases]
            low, high = percent(min(ratios)), percent(max(ratios))
            spans.append(low if low == high else f"{low} to {high}")
        rows.append(f"| {rung} | {what[rung]} | {added} | {total} | {right} of {len(cases)} | {spans[0]} | {spans[1]} | "
                    f"{arena / 1e6:.1f} MB |")
    suite = report["conform"]
    return "\n".join([*rows, "", f"`candela conform --size full` on the last one: {suite['passed']} of {suite['total']} cases "
                      f"pass, {len(suite['failed'])} fail, {suite['unsupported']} ask for what it does not claim.", ""])


def readme_with(table):
    text = (ROOM / "README.md").read_text()
    before, _, rest = text.partition(MARKS[0])
    return f"{before}{MARKS[0]}\n{table}{MARKS[1]}{rest.partition(MARKS[1])[2]}"


def write(report, file):
    file.write_text(json.dumps(report, indent=2) + "\n")
    (ROOM / "README.md").write_text(readme_with(table_of(report)))


def witness(report, candela, plugin, model):
    problems = []
    if report["lines"] != lines_added():
        problems.append(f"lines are {lines_added()}, reported {report['lines']}: tests/nightly/opencl.py --lines")
    if readme_with(table_of(report)) != (ROOM / "README.md").read_text():
        problems.append("the table in backends/opencl/README.md is another: tests/nightly/opencl.py --lines")
    for case in report["models"]:
        if case["model"] != model.stem:
            continue
        with tempfile.TemporaryDirectory() as folder:
            now = json_of([candela, "compile", model, "--dim", "N=1", "--backend", plugin, "--option",
                           f"rung={case['rung']}", "-o", f"{folder}/x.cdb"])
        now = now.get("error") or {"native": ratio_of(now), "arena_bytes": now["arena_bytes"]}
        then = {"native": case["native"], "arena_bytes": case["arena_bytes"]}
        if now != then:
            problems.append(f"{model.stem} on {case['rung']}: {now}, reported {then}")
    for problem in problems:
        print(f"opencl: {problem}", file=sys.stderr)
    return 1 if problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--plugin", type=pathlib.Path, default=ROOT / "build/lib/candela/libcandela_opencl_primitives.so")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/opencl.json")
    parser.add_argument("--lines", action="store_true")
    parser.add_argument("--witness", type=pathlib.Path)
    arguments = parser.parse_args()
    candela, plugin = arguments.candela, arguments.plugin
    if not arguments.lines and not (candela.is_file() and plugin.is_file()):
        print(f"opencl: {candela} or {plugin} is missing; build them first", file=sys.stderr)
        return 2
    if arguments.lines or arguments.witness:
        report = json.loads(arguments.report.read_text())
        if arguments.witness:
            return witness(report, candela, plugin, arguments.witness)
        write({**report, "lines": lines_added()}, arguments.report)
        return 0
    os.environ.setdefault("POCL_CACHE_DIR", str(ROOT / "build/pocl"))
    pathlib.Path(os.environ["POCL_CACHE_DIR"]).mkdir(parents=True, exist_ok=True)
    models = [run_model(candela, plugin, rung, name) for rung in FILES for name in ("digits", *MODELS)]
    suite = conform(candela, plugin)
    right = all(case["passed"] for case in models) and not suite["failed"]
    if right:  # a table of what is wrong would be no table
        write({"schema": SCHEMA, "date": nightly_report.now(), "devices": devices(candela, plugin), "lines": lines_added(),
               "models": models, "conform": suite}, arguments.report)
    else:
        print(json.dumps([case for case in models if not case["passed"]] + suite["failed"], indent=2), file=sys.stderr)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
