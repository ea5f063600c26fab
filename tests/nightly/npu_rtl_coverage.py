#!/usr/bin/env python3
"""What of the NPU's hardware description and of its instruction set the tests of tests/rtl reach.

usage: tests/nightly/npu_rtl_coverage.py --build DIR --candela FILE [--programs N] [--report FILE]

Lines: Verilator counts the statements of rtl/ while programs that stop, random programs and digits run on two configurations: bench4, and
bench8, which is higher than wide and has 16 bits and two load channels. A line is reached if it is in one of them. Instructions: which operations,
engines, members of enums and values of fields the random programs had executed (tests/rtl/program_coverage.h). The report
names what was not reached. Writes benchmarks/results/npu_rtl_coverage.json.

Exit status: 0 at least the shares of LEAST, 1 less, or a test failed.
"""
import argparse
import csv
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.npu_rtl_coverage.v1"
CONFIGURATIONS = ROOT / "tests/rtl/configs"
LEAST = {"lines": 0.95, "bins": 0.85}
INSTRUCTIONS = 20  # of a random program
TIMEOUT_SECONDS = 3600


def run(command, environment):
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    if done.returncode != 0:
        sys.exit(f"npu_rtl_coverage: {command[0]}: {(done.stdout + done.stderr).strip().splitlines()[-1]}")


def program_of_digits(candela, configuration, folder):
    run([candela, "run", ROOT / "examples/digits/digits_int8.onnx", "--dim", "N=1", "--random", "1", "--backend", "npu_sim",
         "--option", f"npu={configuration}", "--option", f"binary={folder}"], os.environ)
    return folder / "digits.npubin"


def runs_of(configuration, arguments, scratch):
    """The commands of one configuration, and where the bins go."""
    binaries = arguments.build / "tests/bin"
    bins = scratch / f"{configuration.stem}.csv"
    program = program_of_digits(arguments.candela, configuration, scratch / configuration.stem)
    commands = [[binaries / "rtl_npu_random", configuration, "1", arguments.programs, INSTRUCTIONS, bins],
                [binaries / "rtl_npu_network", configuration, program]]
    if configuration.stem == "bench4":
        commands.append([binaries / "rtl_npu_faults_test"])
    return commands, bins


def lines_of(counts):
    """Hits by file and line of what one run of Verilator's coverage wrote, all files together."""
    merged = counts / "merged.info"
    # Many files: a list of arguments has a limit.
    files = sorted(str(path) for path in counts.iterdir())
    total = counts / "total.dat"
    for first in range(0, len(files), 200):
        before = [str(total)] if total.exists() else []
        subprocess.run(["verilator_coverage", "--write", total, *before, *files[first:first + 200]], check=True, capture_output=True)
    subprocess.run(["verilator_coverage", "--write-info", merged, total], check=True, capture_output=True)
    hits, name = {}, ""
    for line in merged.read_text().splitlines():
        if line.startswith("SF:"):
            name = pathlib.Path(line[3:]).name
        elif line.startswith("DA:"):
            number, count = line[3:].split(",")[:2]
            key = (name, int(number))
            hits[key] = max(hits.get(key, 0), int(count))
    return hits


def share(values):
    return round(sum(value > 0 for value in values) / len(values), 4)


def by_module(lines):
    modules = {}
    for (name, number), count in sorted(lines.items()):
        module = modules.setdefault(name, {"lines": 0, "reached": 0, "missing": []})
        module["lines"] += 1
        module["reached"] += count > 0
        if count == 0:
            module["missing"].append(number)
    return modules


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--candela", type=pathlib.Path, required=True)
    parser.add_argument("--programs", type=int, default=400, help="random ones of each configuration (400)")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/npu_rtl_coverage.json")
    arguments = parser.parse_args()
    lines, bins = {}, {}
    with tempfile.TemporaryDirectory(prefix="npu_rtl_coverage.") as scratch:
        scratch = pathlib.Path(scratch)
        cache = scratch / "cache"
        cache.mkdir(mode=0o700)
        for name in ("bench4", "bench8"):
            counts = scratch / f"{name}.counts"
            counts.mkdir()
            commands, found = runs_of(CONFIGURATIONS / f"{name}.toml", arguments, scratch)
            for command in commands:
                run(command, os.environ | {"CANDELA_RTL_COVERAGE": str(counts), "CANDELA_CACHE_DIR": str(cache)})
            for key, count in lines_of(counts).items():
                lines[key] = lines.get(key, 0) + count
            with open(found, encoding="ascii") as file:
                for row in csv.DictReader(file):
                    bins[row["bin"]] = bins.get(row["bin"], 0) + int(row["hits"])
    shares = {"lines": share(lines.values()), "bins": share(bins.values())}
    passed = all(shares[name] >= least for name, least in LEAST.items())
    nightly_report.write(arguments.report, {
        "schema": SCHEMA, "date": nightly_report.now(), "machine": nightly_report.machine(), "passed": passed,
        "programs": 2 * arguments.programs, "lines": len(lines), "lines_reached": shares["lines"], "bins": len(bins),
        "bins_reached": shares["bins"], "bins_missing": sorted(name for name, hits in bins.items() if hits == 0), "modules": by_module(lines)})
    print(f"{100 * shares['lines']:.1f} % of {len(lines)} lines, {100 * shares['bins']:.1f} % of {len(bins)} bins")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
