#!/usr/bin/env python3
"""Runs random instructions of every row that the NPU claims, and compares each bit by bit with the oracle.

usage: tests/nightly/npu_sim_rows.py [--tool FILE] [--backend FILE] [--count N] [--seed N] [--report FILE] [--table FILE] [--witness]

For each op that backends/npu_sim claims NATIVE, on two presets, and for those of 16 bits on the preset that has them: 5,000 Programs of one instruction with random types, shapes, strides, attributes, epilogues and values, tiled,
compiled and run on the functional model with its checks on (tests/backends/npu_sim/random_rows.cpp). What no row takes is
drawn again and not counted. Chains are products with a residual, a pool or a table behind them; how many of them left the
vector engine nothing is counted. Writes benchmarks/results/npu_sim_rows.json and docs/reference/npu_sim_rows.md.

--witness  changes nothing: so many of each op on two presets, and the ops must be those of the report

Exit status: 0 every op has its count and nothing failed, 1 not so, 2 nothing to run.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.npu_sim_rows.v1"
RUNS = (("tiny", []), ("gem16", []), ("edge8t", ["--end", ".i16"]))  # all ops, those of 16 bits
CHAINS = ["--ops", "chain"]
WITNESSED = RUNS[0], RUNS[2]
LEAST, LEAST_OF_CHAINS = 5000, 500
TIMEOUT_SECONDS = 7200


def run(arguments, preset, which, count):
    with tempfile.TemporaryDirectory(prefix="candela_npu_rows_") as folder:
        file = pathlib.Path(folder) / "report.json"
        subprocess.run([str(arguments.tool), "--backend", str(arguments.backend), "--npu", preset, "--seed",
                        str(arguments.seed), "--count", str(count), "--json", str(file), *which], timeout=TIMEOUT_SECONDS)
        return json.loads(file.read_text())


def problems_of(case, count):
    problems = [failure["reason"] for failure in case["failed"]]
    if case["agreed"] < count:
        problems.append(f"{case['agreed']} of {count} in {case['drawn']} draws")
    if case["rows_reached"] < case["rows"] and count >= 20 * case["rows"]:
        problems.append(f"{case['rows_reached']} of {case['rows']} rows")
    if not case["rows"] and not case["in_one_pass"] and "pool2d" not in case["op"]:
        problems.append("none in one pass")
    return problems


def witness(arguments):
    known = json.loads(arguments.report.read_text())["results"]
    failed = 0
    for preset, which in WITNESSED:
        answer = run(arguments, preset, which, arguments.count)
        said = {case["op"] for case in known if case["npu"] == preset and case["rows"]}
        asked = {case["op"] for case in answer["ops"]}
        if said != asked:
            print(f"{preset}: ops that are not reported or not claimed: {', '.join(sorted(said ^ asked))}")
            failed += 1
        failed += sum(bool(problems_of(case, arguments.count)) for case in answer["ops"])
    return 1 if failed else 0


def page_of(results):
    rows = [[case["op"], case["npu"], f"{case['agreed']:,}", f"{case['drawn']:,}", str(case["rows"] or ""),
             f"{case['in_one_pass']:,}" if not case["rows"] else ""] for case in results]
    prose = ["Random instructions of every row that `backends/npu_sim` claims, each one a Program of its own with random types,",
             "shapes, strides, attributes, epilogues and values: tiled, compiled, run on the functional model with its checks",
             "for races and unwritten bytes, and equal bit by bit to the oracle, for three runs each. What no row takes was",
             "drawn again. Chains are products with what may follow them in their pass. Written with `benchmarks/results/npu_sim_rows.json`."]
    return nightly_report.page("tests/nightly/npu_sim_rows.py", "Random instructions on the NPU", prose,
                               ["op", "preset", "agree", "drawn", "rows of types", "in one pass"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "build/tests/bin/npu_random_rows")
    parser.add_argument("--backend", type=pathlib.Path, default=ROOT / "build/lib/candela/libcandela_npu_sim.so")
    parser.add_argument("--count", type=int, default=LEAST)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/npu_sim_rows.json")
    parser.add_argument("--table", type=pathlib.Path, default=ROOT / "docs/reference/npu_sim_rows.md")
    parser.add_argument("--witness", action="store_true")
    arguments = parser.parse_args()
    for path in (arguments.tool, arguments.backend):
        if not path.exists():
            print(f"npu_sim_rows: {path} is missing", file=sys.stderr)
            return 2
    try:
        if arguments.witness:
            return witness(arguments)
        results = []
        for preset, which in RUNS:
            for ops, count, least in ((which, arguments.count, LEAST), (CHAINS, arguments.count // 10, LEAST_OF_CHAINS)):
                for case in run(arguments, preset, ops, count)["ops"]:
                    case = {"npu": preset, **case, "problems": problems_of(case, max(count, least))}
                    results.append({**case, "passed": not case["problems"]})
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        print(f"npu_sim_rows: {error}", file=sys.stderr)
        return 2
    report = {"schema": SCHEMA, "generated_at": nightly_report.now(), "machine": nightly_report.machine(),
              "seed": arguments.seed, "count": arguments.count, "results": results}
    return nightly_report.finish(arguments, report, page_of(results))


if __name__ == "__main__":
    sys.exit(main())
