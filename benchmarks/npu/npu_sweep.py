#!/usr/bin/env python3
"""Sweeps 60 configurations of the NPU over two networks, killed in the middle and gone on with, and compares what they say.

usage: benchmarks/npu/npu_sweep.py [--candela FILE] [--models DIR] [--report FILE]

ResNet-50 and MobileNetV2 in int8 (build/models, which the fixture of the tests writes), fidelity fast, on gem16 with three
arrays, five scratchpads and four kinds of memory. The first run is killed when a third of the results is there; the second
one must keep those. Both together take at most 5 minutes on 2 cores. Of two configurations that differ in one number the
larger one should lose at most 2 %: how often it loses more stands in the report, and more than 6 % is a failure. Writes
benchmarks/results/npu_sweep.json.

Exit status: 0 as it should be, 1 not, 2 nothing to run.
"""
import argparse
import csv
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.npu_sweep.v1"
MODELS = ("resnet50_int8", "mbv2_int8")
VARIED = {"array.rows+array.columns": [8, 16, 32], "scratchpad.bytes": [2 ** power for power in range(17, 22)],
          "dram.type": ["DDR3-2133", "DDR4-2400", "DDR4-3200", "LPDDR5-6400"]}
MOST_SECONDS, WANTED_LOST, MOST_LOST = 300, 0.02, 0.06
GROWING = ("array.rows", "scratchpad.bytes")


def losses(rows):
    """(share lost, what grew, from, to) of neighbours of which the larger one takes longer."""
    lost = []
    for key in GROWING:
        groups = {}
        for row in rows:
            rest = tuple(row[name] for name in ("model", "array.rows", "scratchpad.bytes", "dram.type") if name != key)
            groups.setdefault(rest, []).append((int(row[key]), int(row["cycles"])))
        for rest, points in groups.items():
            points.sort()
            lost += [(after / before - 1, key, rest, size) for (_, before), (size, after) in zip(points, points[1:]) if after > before]
    return sorted(lost, reverse=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build/models")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/npu_sweep.json")
    arguments = parser.parse_args()
    models = [(arguments.models / f"{name}.onnx").resolve() for name in MODELS]
    for path in (arguments.candela, *models):
        if not path.exists():
            print(f"npu_sweep: {path} is missing", file=sys.stderr)
            return 2
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        varied = "\n".join(f'"{key}" = {values}'.replace("'", '"') for key, values in VARIED.items())
        (folder / "sizes.toml").write_text(f"models = {[str(path) for path in models]}\n[vary]\n{varied}\n".replace("'", '"'))
        command = [arguments.candela, "simulate", "--sweep", folder / "sizes.toml"]
        results = folder / "sizes.sweep"
        start = time.monotonic()
        first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        while first.poll() is None and len(list(results.glob("*.json"))) < 40:
            time.sleep(0.2)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        kept = {path.name: path.stat().st_mtime_ns for path in results.glob("*.json")}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds = time.monotonic() - start
        rows = list(csv.DictReader((results / "sweep.csv").open()))
        whole = [path for path in kept if (results / path).stat().st_mtime_ns == kept[path]]
    done = [row for row in rows if row["status"] == "done"]
    lost = losses(done)
    worse = [each for each in lost if each[0] > WANTED_LOST]
    problems = []
    if len(done) != len(rows) or len(rows) != 120:
        problems.append(f"{len(done)} of {len(rows)} rows are done, 120 are wanted")
    if len(kept) - len(whole) > os.cpu_count():  # one for each process may have been cut
        problems.append(f"{len(kept) - len(whole)} results that were whole were made again")
    if seconds > MOST_SECONDS:
        problems.append(f"took {seconds:.0f} s")
    if lost and lost[0][0] > MOST_LOST:
        problems.append(f"a larger one loses {100 * lost[0][0]:.1f} %")
    case = {"simulations": len(done), "seconds": round(seconds, 1), "kept_after_kill": len(whole), "losses": len(lost),
            "losses_above_2_percent": len(worse),
            "worst": [{"lost": round(share, 4), "grew": key, "to": size, "of": list(rest)} for share, key, rest, size in lost[:8]],
            "problems": problems, "passed": not problems}
    print(f"{len(done)} simulations in {seconds:.0f} s, {len(whole)} kept after the kill; {len(worse)} times the larger one loses more "
          f"than {100 * WANTED_LOST:.0f} %; {'; '.join(problems) or 'passed'}")
    for worst in case["worst"]:
        print(f"  {100 * worst['lost']:.1f} % lost with {worst['grew']} {worst['to']} of {', '.join(worst['of'])}")
    report = {"schema": SCHEMA, "generated_at": nightly_report.now(), "machine": nightly_report.machine(), "results": [case]}
    return nightly_report.finish(arguments, report, None)


if __name__ == "__main__":
    sys.exit(main())
