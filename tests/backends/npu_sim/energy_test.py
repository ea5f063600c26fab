#!/usr/bin/env python3
"""Energy is counts times prices: each action by itself against the counts of the report, and sums that are the totals.

usage: energy_test.py CANDELA DIGITS_INT8
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

CONFIGURATION = """name = "half"
clock_mhz = 500
[array]
rows = 8
columns = 16
[scratchpad]
bytes = 131072
[accumulator]
bytes = 32768
[dram]
width_bits = 32
"""
MULTIPLIERS, KIBIBYTES, BUS_BYTES, NANOSECONDS_PER_CYCLE = 8 * 16, 160, 4, 2
ACTIONS = ("mac", "accumulator", "scratchpad", "requant", "vector", "dram", "clock", "leakage", "leakage_memory", "dram_background")


def expect(is_true, what):
    if not is_true:
        sys.exit(f"energy_test: {what}")


def report_of(candela, digits, folder, prices):
    """prices: nanojoules by action, the rest are 0; none: those that are built in."""
    command = [candela, "simulate", digits, "--dim", "N=2", "--npu", folder / "half.toml", "--random", "1", "--json", folder / "report.json"]
    if prices is not None:
        rows = [f"{action},{1000 * prices.get(action, 0)},measured,test" for action in ACTIONS]
        (folder / "prices.csv").write_text("\n".join(["action,picojoule,tag,source", *rows]) + "\n")
        command += ["--energy", folder / "prices.csv"]
    ended = subprocess.run(command, capture_output=True, text=True)
    expect(ended.returncode == 0, ended.stderr)
    report = json.loads((folder / "report.json").read_text())
    energy = report["energy"]
    for whole, parts in (("actions", energy["by_action"].values()), ("layers", [layer["energy_nj"] for layer in report["layers"]])):
        expect(math.isclose(energy["nj"], math.fsum(parts), rel_tol=1e-12), f"{energy['nj']} nJ are not the sum of all {whole}")
    return report


def main():
    candela, digits = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "half.toml").write_text(CONFIGURATION)
        built_in = report_of(candela, digits, folder, None)
        expect(set(built_in["energy"]["by_action"]) == set(ACTIONS), built_in["energy"])
        expect(all(nanojoules > 0 for action, nanojoules in built_in["energy"]["by_action"].items() if action != "vector"), built_in["energy"])
        cycles, counters = built_in["cycles"], built_in["counters"]
        nanoseconds = NANOSECONDS_PER_CYCLE * cycles
        wanted = {
            "mac": built_in["macs"],
            "scratchpad": counters["scratchpad_read"] + counters["scratchpad_written"],
            "dram": built_in["dram_bytes"]["all"] + built_in["dram_bytes"]["program"],
            "clock": cycles * MULTIPLIERS,
            "leakage": nanoseconds * MULTIPLIERS,
            "leakage_memory": nanoseconds * KIBIBYTES,
            "dram_background": nanoseconds * BUS_BYTES,
        }
        # Sums are written once and read once.
        wanted["accumulator"] = 2 * counters["array_passes"] * 16 * 4
        by_action = report_of(candela, digits, folder, dict.fromkeys(ACTIONS, 1))["energy"]["by_action"]
        for action, count in wanted.items():
            expect(math.isclose(by_action[action], count, rel_tol=1e-12), f"{action}: {by_action[action]} nJ of 1 nJ each, {count} are counted")


if __name__ == "__main__":
    main()
