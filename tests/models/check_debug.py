#!/usr/bin/env python3
"""Every quantized product and convolution of a model runs as integers, exact to the bit on what it received.

usage: check_debug.py CANDELA MODEL COUNT [argument of `candela debug`]...

Runs `candela debug MODEL ... --json -` and holds of its report: all instructions are inside of their bounds, exactly COUNT
MATMUL and CONV2D instructions take i8 or u8 on both sides, and none of their results differs from the reference.
"""
import json
import subprocess
import sys


def main():
    candela, model, count, *rest = sys.argv[1:]
    done = subprocess.run([candela, "debug", model, *rest, "--json", "-"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"candela debug: exit status {done.returncode}: {done.stderr.strip()}")
    products = []
    for instr in json.loads(done.stdout)["instrs"]:
        left, right, *_ = instr["types"].split(" -> ")[0].split(", ") + ["", ""]
        if instr["kind"] in ("matmul", "conv2d") and {left, right} <= {"i8", "u8"}:
            products.append(instr)
    wrong = [instr for instr in products if instr["different"] or instr["elements"] == 0]
    for instr in wrong:
        print(f"{instr['kind']} [{instr['instr']}] '{instr['node']}': {instr['different']} of {instr['elements']} differ: "
              f"{instr.get('worst')}")
    print(f"{len(products)} products of integers, {len(products) - len(wrong)} of them exact")
    if wrong or len(products) != int(count):
        sys.exit(f"{len(wrong)} are not exact; {count} were expected")


if __name__ == "__main__":
    main()
