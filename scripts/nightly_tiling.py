#!/usr/bin/env python3
"""Tiles random programs for random memories and compares, and counts the bytes that tiled models copy.

usage: scripts/nightly_tiling.py [--build DIR] [--draws N] [--model FILE] [--report FILE]

2,000 seeded programs of layers for one to three local memories of 256 bytes to 1 MB: each either does bit by bit what it did
before, on poisoned memory with every wait checked, or is refused with the numbers that disagree. Then ResNet-50 in int8 for
a 16 x 16 array with 256 KB of scratchpad and 64 KB for sums: the bytes of its copies beside what must move whatever the tiles,
and for each step where the distance comes from. All figures are exact and the same on every machine. Writes
benchmarks/results/tiling.json.

Needs a build in build/ with the tests, and build/bin/candela-gen-models unless --model is given.

Exit status: 0 all draws agree and ResNet-50 copies at most 1.25 times the bound, 1 not so, 2 bad usage.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import nightly_report  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMA = "candela.tiling_nightly.v1"
PROMISED_RATIO = 1.25
CHUNK = 100
TIMEOUT_SECONDS = 1800
MEMORIES = "scratchpad=256K,accumulator=64K:sums,engines=3,bytes_per_cycle=19,copy_cycles=4,instr_cycles=2"
LINE = re.compile(r"seeds \d+\.\.\d+: (\d+) tiled, (\d+) refused, (\d+) instructions, (\d+) copies, (\d+) stays")
COUNTED = ("tiled", "refused", "instructions", "copies", "stays")


def draws(build, count):
    """The sums over all draws, and the first failures."""
    sums, failures = dict.fromkeys(COUNTED, 0), []
    for first in range(0, count, CHUNK):
        environment = dict(os.environ, CANDELA_TILING_FIRST=str(first),
                           CANDELA_TILING_DRAWS=str(min(CHUNK, count - first)))
        done = subprocess.run([build / "tests/bin/plan_tile_random_test"], capture_output=True, text=True,
                              env=environment, timeout=TIMEOUT_SECONDS)
        found = LINE.search(done.stdout)
        if done.returncode or not found:
            failures.append({"first": first, "said": done.stdout[-2000:]})
            continue
        for name, number in zip(COUNTED, found.groups()):
            sums[name] += int(number)
    return sums, failures


def model(candela, path):
    done = subprocess.run([candela, "plan", path, "--backend", "cpu", "--dim", "N=1", "--tile", MEMORIES, "--json", "-"],
                          capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    if done.returncode:
        return None, {"passed": False, "reason": done.stderr.strip()}
    report = json.loads(done.stdout)
    part, = report["models"][0]["partitions"]
    tiling = part["tiling"]
    copied = tiling["copied_bytes"]
    steps = [{key: step[key] for key in ("memory", "nodes", "kinds", "extents", "tile", "tiles", "buffers", "kept",
                                         "loaded_bytes", "stored_bytes")} for step in tiling["steps"]]
    ratio = copied["memory"] / tiling["bound_bytes"]
    return report["candela_version"], {
        "passed": ratio <= PROMISED_RATIO,
        "memories": MEMORIES,
        "instructions": part["instructions"],
        "copied_bytes": copied,
        "bound_bytes": tiling["bound_bytes"],
        "ratio": ratio,
        "steps": sorted(steps, key=lambda step: -step["loaded_bytes"] - step["stored_bytes"]),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--model", type=pathlib.Path, help="resnet50_int8.onnx, as candela-gen-models writes it")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/tiling.json")
    arguments = parser.parse_args()
    candela = arguments.build / "bin/candela"
    for needed in (candela, arguments.build / "tests/bin/plan_tile_random_test"):
        if not needed.is_file():
            print(f"nightly_tiling: {needed} is missing; build it first", file=sys.stderr)
            return 2
    with tempfile.TemporaryDirectory(prefix="candela_tiling_") as folder:
        path = arguments.model
        if not path:
            subprocess.run([arguments.build / "bin/candela-gen-models", folder], check=True, stdout=subprocess.DEVNULL)
            path = pathlib.Path(folder) / "resnet50_int8.onnx"
        version, resnet = model(candela, path)
    copied = resnet["copied_bytes"]["memory"] if "copied_bytes" in resnet else resnet["reason"]
    print(f"nightly_tiling: resnet50_int8 copies {copied} bytes, bound {resnet.get('bound_bytes')}")
    sums, failures = draws(arguments.build, arguments.draws)
    print(f"nightly_tiling: {arguments.draws} draws: {sums['tiled']} tiled, {sums['refused']} refused, "
          f"{len(failures)} chunks failed")
    passed = not failures and resnet["passed"]
    nightly_report.write(arguments.report, {
        "schema": SCHEMA,
        "date": nightly_report.now(),
        "versions": {"candela": version},
        "promised": {"ratio": PROMISED_RATIO},
        "passed": passed,
        "draws": {"count": arguments.draws, **sums, "failures": failures},
        "resnet50_int8": resnet,
    })
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
