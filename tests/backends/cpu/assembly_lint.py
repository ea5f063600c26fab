#!/usr/bin/env python3
"""Reads the machine code of the hot kernels: registers that spill and loops that lost their shape cost half the speed, and
no clock of a shared machine would show it.

usage: assembly_lint.py CANDELA

Compiles the models of assembly/ on every tier that this machine has, with CANDELA_CPU_DUMP=1. The hot block of a kernel is
the one with the most multiplications. Held of it, by the table below: no call, no vector or tile in stack memory, so many
multiplications at least (a tile that shrank), and so many instructions for each of them at most (loads, address arithmetic).
Then faults are planted into the same text, each of which must be found.
"""
import os
import pathlib
import re
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent / "assembly"
FLOAT, DOT, PAIRS, TILES = r"vfn?madd\w*ps", r"({vex}\s+)?vpdpbusd", r"vpmaddwd", r"tdpb[su]{2}d"
HALVES, HALF_TILES = r"vdpbf16ps", r"tdpbf16ps"

# (model, tier): what multiplies, how often at least, instructions per multiplication at most, vectors on the stack at most.
# Without vpdpbusd a dot product is many instructions, and its tile does not fit into the registers.
EXPECTED = {
    ("conv", "x86-64-v3"): (FLOAT, 48, 3.0, 0),
    ("conv", "avx512"): (FLOAT, 112, 2.5, 0),
    ("conv", "avx512vnni"): (FLOAT, 112, 2.5, 0),
    ("depthwise", "x86-64-v3"): (FLOAT, 36, 3.0, 0),
    ("depthwise", "avx512"): (FLOAT, 63, 2.5, 0),
    ("depthwise", "avx512vnni"): (FLOAT, 63, 2.5, 0),
    ("matmul", "x86-64-v3"): (FLOAT, 48, 2.5, 0),
    ("matmul", "avx512"): (FLOAT, 96, 2.2, 0),
    ("matmul", "avx512vnni"): (FLOAT, 96, 2.2, 0),
    ("conv_int8", "x86-64-v3"): (PAIRS, 96, 4.5, 96),
    ("conv_int8", "avxvnni"): (DOT, 48, 3.0, 0),
    ("conv_int8", "avx512"): (PAIRS, 224, 4.5, 224),
    ("conv_int8", "avx512vnni"): (DOT, 112, 2.5, 0),
    ("conv_int8", "amx"): (TILES, 4, 4.0, 0),
    ("matmul_int8", "x86-64-v3"): (PAIRS, 96, 5.0, 96),
    ("matmul_int8", "avxvnni"): (DOT, 48, 2.0, 0),
    ("matmul_int8", "avx512"): (PAIRS, 192, 5.0, 192),
    ("matmul_int8", "avx512vnni"): (DOT, 96, 2.0, 0),
    ("matmul_int8", "amx"): (TILES, 4, 4.0, 0),
    ("conv_bf16", "avx512bf16"): (HALVES, 112, 2.5, 0),
    ("conv_bf16", "amx"): (HALF_TILES, 4, 4.0, 0),
    ("matmul_bf16", "avx512bf16"): (HALVES, 96, 2.5, 0),
    ("matmul_bf16", "amx"): (HALF_TILES, 4, 4.0, 0),
}


def blocks(text):
    """The instructions of every basic block."""
    found = [[]]
    for line in text.splitlines():
        if re.match(r"[.\w]+:", line):
            found.append([])
        elif line.strip() and line.strip()[0] not in ".#":
            found[-1].append(line.strip())
            if re.match(r"j\w+\s", line.strip()):
                found.append([])
    return found


def hot_block(text, product):
    return max(blocks(text), key=lambda block: sum(bool(re.match(product, line)) for line in block))


def complaints(text, product, products, per_product, stack):
    block = hot_block(text, product)
    count = sum(bool(re.match(product, line)) for line in block)
    spills = [line for line in block if "(%rsp" in line and re.search(r"%[xyzt]mm", line)]
    if count < products:
        yield f"{count} multiplications, expected at least {products}"
    if len(block) > per_product * count:
        yield f"{len(block)} instructions for {count} multiplications, at most {per_product} each"
    if len(spills) > stack:
        yield f"{len(spills)} vectors in stack memory, at most {stack}: {spills[0]}"
    for line in block:
        if line.startswith("call"):
            yield f"a call: {line}"


def assembly(candela, model, tier):
    """The text, or None where the machine does not have the tier."""
    done = subprocess.run([candela, "run", FOLDER / f"{model}.cdl", "--random", "1", "--backend", "cpu", "--require-native",
                           "--option", f"isa={tier}"], capture_output=True, text=True,
                          env=os.environ | {"CANDELA_CPU_DUMP": "1"})
    if done.returncode and "this machine has" in done.stderr:
        return None
    if done.returncode:
        sys.exit(f"{model} on {tier}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout and done.stderr


def planted(text, product, stack):
    """The same text with a fault in its hot block, by the word that must be complained of."""
    line = next(line for line in hot_block(text, product) if re.match(product, line))
    spill = "\n".join(["\tvmovups\t%ymm3, 64(%rsp)"] * (stack + 1))
    yield "stack memory", text.replace(line, line + "\n" + spill)
    yield "a call", text.replace(line, line + "\n\tcallq\texpf")
    yield "multiplications, expected", "\n".join(
        other for other in text.splitlines() if not re.match(product, other.strip()))
    yield "at most", text.replace(line, line + "\n\taddq\t$64, %rax" * 1000)


def main():
    candela, failed, seen = sys.argv[1], 0, 0
    for (model, tier), expected in EXPECTED.items():
        text = assembly(candela, model, tier)
        if text is None:
            print(f"{model:12} {tier:11} not on this machine")
            continue
        seen += 1
        found = list(complaints(text, *expected))
        for word, broken in planted(text, expected[0], expected[3]):
            if not any(word in complaint for complaint in complaints(broken, *expected)):
                found.append(f"a planted fault was not found: {word}")
        block = hot_block(text, expected[0])
        count = sum(bool(re.match(expected[0], line)) for line in block)
        print(f"{model:12} {tier:11} {count:4} of {len(block):4} instructions multiply  {'; '.join(found) or 'clean'}")
        failed += bool(found)
    sys.exit(f"{failed} of {seen} kernels failed" if failed or not seen else 0)


if __name__ == "__main__":
    main()
