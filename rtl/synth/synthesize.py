#!/usr/bin/env python3
"""Synthesizes the blocks of rtl/synth.f with Yosys: cells and longest path of each, and no latch in any.

usage: rtl/synth/synthesize.py [--report FILE] [--yosys FILE]

Cells are those of Yosys' generic library (two-input gates, multiplexers, flip-flops) after `synth -noshare -flatten`; the longest path is in such
cells, from input or flip-flop to output or flip-flop. Neither is a figure of a technology.

Exit status: 0 all are synthesized without a latch, 1 some are not, 2 there is no Yosys.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

TIMEOUT_S = 600
SCHEMA = "candela.rtl_synth.v1"


def blocks():
    """Lines of synth.f: a file, and the parameters that its module is taken with."""
    lines = (ROOT / "rtl/synth.f").read_text().splitlines()
    return [line.split() for line in lines if line.strip() and not line.strip().startswith("//")]


def synthesize(yosys, sources, top, parameters):
    """One result: cells by kind, length of the longest path, or what Yosys said."""
    block = " ".join([top, *parameters])
    chosen = "".join(f"chparam -set {parameter.replace('=', ' ')} {top}; " for parameter in parameters)
    script = f"read_verilog -sv {' '.join(sources)}; {chosen}synth -noshare -flatten -top {top}; stat; ltp -noff"
    started = time.monotonic()
    try:
        done = subprocess.run([yosys, "-p", script], cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return {"block": block, "passed": False, "message": f"not done after {TIMEOUT_S} s"}
    seconds = round(time.monotonic() - started, 1)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        return {"block": block, "passed": False, "message": said[-1] if said else f"exit {done.returncode}"}
    # The last statistics are those after synthesis; a block without gates has no path.
    last = done.stdout[done.stdout.rindex("Number of cells:"):]
    kinds = {kind: int(count) for kind, count in re.findall(r"^\s+\$_(\w+?)_\s+(\d+)$", last, re.MULTILINE)}
    path = re.search(r"Longest topological path in \S+ \(length=(\d+)\)", last)
    latches = sum(count for kind, count in kinds.items() if "LATCH" in kind)
    return {"block": block, "passed": latches == 0 and bool(kinds), "cells": sum(kinds.values()),
            "flip_flops": sum(count for kind, count in kinds.items() if "DFF" in kind), "latches": latches,
            "longest_path": int(path.group(1)) if path else 0, "seconds": seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/rtl_synth.json")
    parser.add_argument("--yosys", default="yosys")
    arguments = parser.parse_args()
    if not shutil.which(arguments.yosys):
        print(f"synthesize: {arguments.yosys} is missing; as root: apt-get install yosys", file=sys.stderr)
        return 2
    version = subprocess.run([arguments.yosys, "-V"], capture_output=True, text=True).stdout.strip()
    report = {"schema": SCHEMA, "date": nightly_report.now(), "yosys": version, "machine": nightly_report.machine(), "results": []}
    lines = blocks()
    sources = list(dict.fromkeys(source for source, *_ in lines))
    for source, *parameters in lines:
        top = pathlib.Path(source).stem
        if top.endswith("_pkg"):
            continue
        result = synthesize(arguments.yosys, sources, top, parameters)
        print(f"{result['block']}: " + (f"{result['cells']} cells, longest path {result['longest_path']}" if "cells" in result
                            else result["message"]), flush=True)
        report["results"].append(result)
    return nightly_report.finish(arguments, report, [])


if __name__ == "__main__":
    sys.exit(main())
