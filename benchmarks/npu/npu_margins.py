#!/usr/bin/env python3
"""Writes how far each way to a time was from what it stands for, as pages of simulations and estimates say it.

usage: benchmarks/npu/npu_margins.py [--check]

Of benchmarks/results/npu_accuracy.json, npu_time.json and npu_published.json, and of docs/reference/device_description.md it
makes tools/candela/simulate/margins.json. `fast` is set beside the hardware's cycles of those runs whose `accurate` cycles are
the same in both files.

--check  write nothing; exit status 1 where the file is not what would be written

Exit status: 0 as it should be, 1 not.
"""
import argparse
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks/results"
MARGINS = ROOT / "tools/candela/simulate/margins.json"
ACCURACY_PAGE, ESTIMATE_PAGE = "docs/reference/npu_accuracy.md", "docs/reference/device_description.md"
ESTIMATED = re.compile(r"takes ([\d.]+) M cycles on gem16; the simulation, with\s+bursts and banks, says ([\d.]+) M")
HARDWARE = "the hardware"


def results_of(name):
    return json.loads((RESULTS / f"{name}.json").read_text())["results"]


def margin(against, source, deviations):
    return {"against": against, "runs": len(deviations), "least": round(min(deviations), 4), "most": round(max(deviations), 4),
            "source": source}


def margins():
    measured = results_of("npu_accuracy")
    accurate = [case["accurate_cycles"] / case["cycles"] - 1 for case in measured]
    # A run with a difference to `exact` fails at night, and is no run that is equal.
    exact = [0.0 for case in measured if "difference" not in case]
    hardware = {(case["model"], case["npu"], case["accurate_cycles"]): case["cycles"] for case in measured}
    fast = [case["fast_cycles"] / hardware[key] - 1 for case in results_of("npu_time")
            if (key := (case["model"], case["npu"], case["accurate_cycles"])) in hardware]
    estimated, simulated = map(float, ESTIMATED.search((ROOT / ESTIMATE_PAGE).read_text()).groups())
    published = {}
    for row in results_of("npu_published"):
        published.setdefault(row["fidelity"], []).append(row["ratio"])
    return {
        "fast": margin(HARDWARE, "benchmarks/results/npu_time.json and npu_accuracy.json", fast),
        "accurate": margin(HARDWARE, ACCURACY_PAGE, accurate),
        "exact": margin(HARDWARE, ACCURACY_PAGE, exact),
        "estimate": margin("the simulation of ResNet-50 on gem16", ESTIMATE_PAGE, [estimated / simulated - 1]),
        "published": {fidelity: {"workloads": len(ratios), "least": min(ratios), "most": max(ratios),
                                 "source": ESTIMATE_PAGE if fidelity == "estimate" else ACCURACY_PAGE}
                      for fidelity, ratios in published.items()},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    text = json.dumps(margins(), indent=2) + "\n"
    if not parser.parse_args().check:
        MARGINS.write_text(text)
        return 0
    if MARGINS.read_text() == text:
        return 0
    print(f"{MARGINS.relative_to(ROOT)}: it is not what benchmarks/npu/npu_margins.py makes of the results: run it", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
