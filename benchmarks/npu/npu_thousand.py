#!/usr/bin/env python3
"""Sweeps 1,000 configurations of the NPU over ResNet-50, and computes every 50th row anew.

usage: benchmarks/npu/npu_thousand.py [--candela FILE] [--models DIR] [--report FILE] [--every N]

ResNet-50 of int8 (build/models, which the fixture of the tests writes), fidelity fast, on gem16 with five arrays, five
scratchpads, five kinds of memory, four buses and one or two load channels. Rows of one process take from each other what is the same
(docs/reference/simulate.md); a row that is computed anew, in a process of its own that takes nothing, has to have the cycles, bytes and
energy of the first time. Writes benchmarks/results/npu_thousand.json, with the processor time of all processes: other work on the machine
makes the seconds more.

--every N   takes each N-th size of every list alone, to try the script

Exit status: 0 as it should be, 1 not, 2 nothing to run.
"""
import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.npu_thousand.v1"
VARIED = {"array.rows+array.columns": [8, 12, 16, 24, 32],  # wider ones want wider banks than gem16 has
          "scratchpad.bytes": [2 ** power for power in range(17, 22)],
          "dram.type": ["DDR3-2133", "DDR4-2400", "DDR4-3200", "LPDDR4-3200", "LPDDR5-6400"],
          "dram.width_bits": [16, 32, 64, 128],
          "dma.load_channels": [1, 2]}
RECOMPUTED = 50
KEPT = ("cycles", "dram_bytes", "energy")


def sweep_of(folder, model, varied, output):
    text = "\n".join(f'"{key}" = {json.dumps(values)}' for key, values in varied.items())
    file = folder / f"{output}.toml"
    file.write_text(f'models = ["{model}"]\noutput = "{output}"\n[vary]\n{text}\n')
    return file


def processor_seconds():
    """Of all processes that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def chosen(jobs):
    """One of every 50 rows, in another place each time: every 50th one would have the first scratchpad always."""
    places = [at + 7 * at // RECOMPUTED % RECOMPUTED for at in range(0, len(jobs), RECOMPUTED)]
    return [jobs[min(place, len(jobs) - 1)] for place in places]


def differences(candela, jobs, folder):
    """Rows whose second computation says something else."""
    problems = []
    for job in chosen(jobs):
        first = json.loads(pathlib.Path(job["result"]).read_text())
        command = [str(candela), *job["command"][1:]]
        again = folder / "again.json"
        command[command.index("--json") + 1] = str(again)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        second = json.loads(again.read_text())
        problems += [f"{job['id']}: {key} {second[key]}, {first[key]} at first" for key in KEPT if first[key] != second[key]]
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build/models")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/npu_thousand.json")
    parser.add_argument("--every", type=int, default=1)
    arguments = parser.parse_args()
    model = (arguments.models / "resnet50_int8.onnx").resolve()
    for path in (arguments.candela, model):
        if not path.exists():
            print(f"npu_thousand: {path} is missing", file=sys.stderr)
            return 2
    varied = {key: values[::arguments.every] for key, values in VARIED.items()}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        file = sweep_of(folder, model, varied, "rows")
        start, before = time.monotonic(), processor_seconds()
        subprocess.run([arguments.candela, "simulate", "--sweep", file], check=True, stdout=subprocess.DEVNULL)
        seconds, processor = time.monotonic() - start, processor_seconds() - before
        listed = subprocess.run([arguments.candela, "simulate", "--sweep", file, "--list", "--json", "-"], check=True,
                                capture_output=True, text=True)
        jobs = [job for job in json.loads(listed.stdout)["jobs"] if not job.get("refused")]
        problems = differences(arguments.candela, jobs, folder)
    case = {"simulations": len(jobs), "seconds": round(seconds, 1), "seconds_each": round(seconds / len(jobs), 3),
            "processor_seconds": round(processor, 1), "computed_anew": len(chosen(jobs)), "problems": problems,
            "passed": not problems}
    print(f"{len(jobs)} simulations in {seconds:.0f} s, {processor:.0f} s of processors; {case['computed_anew']} computed anew; "
          f"{'; '.join(problems) or 'passed'}")
    report = {"schema": SCHEMA, "generated_at": nightly_report.now(), "machine": nightly_report.machine(), "results": [case]}
    return nightly_report.finish(arguments, report, None)


if __name__ == "__main__":
    sys.exit(main())
