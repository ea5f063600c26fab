#!/usr/bin/env python3
"""Products with scales of sizes that the conformance suite does not have, against the portable executor: many rows, long blocks.

usage: tests/backends/opencl/scaled_products.py CANDELA PLUGIN

Both styles of kernels get weights as constants, which the plugin packs. Products of rounded rows have the same bits, those of
floats are as close as the order of their sums allows.

Exit status: 0 as it should be, 1 not.
"""
import itertools
import pathlib
import random
import subprocess
import sys
import tempfile

# rows, depth, columns, block: one tile of rows and more, blocks that end beyond K, of odd length, longer than what is decoded at once
SHAPES = ((1, 100, 21, 32), (4, 96, 16, 32), (9, 100, 21, 32), (37, 64, 40, 16), (61, 45, 18, 9), (150, 64, 17, 32), (8, 512, 17, 512))
RANGES = {"i4": (-8, 7), "u4": (0, 15), "i8": (-128, 127), "u8": (0, 255), "f32": (-3, 3)}


def constant(rng, elem, shape):
    count = 1
    for dim in shape:
        count *= dim
    low, high = RANGES[elem]
    numbers = [rng.uniform(low, high) if elem == "f32" else rng.randint(low, high) for _ in range(count)]
    return f"constant [{', '.join(map(str, numbers))}] : {elem}[{','.join(map(str, shape))}]"


def product_of(rng, number, shape, elem, fn):
    """The lines of a product, with a bias behind it; its input and its result are named by the number."""
    rows, depth, columns, block = shape
    blocks = -(-depth // block)
    lines = [f"  %w{number} = {constant(rng, elem, (columns, blocks, block))}",
             f"  %s{number} = {constant(rng, 'f32', (columns, blocks))}"]
    operands = f"%a{number}, %w{number}, %s{number}"
    if zero := rng.choice((None, "u8", "i8")):
        lines.append(f"  %z{number} = {constant(rng, zero, (columns, blocks))}")
        operands += f", %z{number}"
    lines += [f"  %b{number} = {constant(rng, 'f32', (columns,))}",
              f"  %p{number} = scaled_matmul {operands} {{to = f32, fn = \"{fn}\"}}", f"  %y{number} = add %p{number}, %b{number}"]
    return lines


def graph_of(rng, fn, shapes):
    inputs, outputs, lines = [], [], []
    for number, (shape, elem) in enumerate(itertools.product(shapes, ("i4", "u4", "i8"))):
        inputs.append(f"%a{number}: f32[{shape[0]},{shape[1]}]")
        outputs.append(f"%y{number}: f32[{shape[0]},{shape[2]}] \"y{number}\"")
        lines += product_of(rng, number, shape, elem, fn)
    return len(outputs), "\n".join([f"graph @main({', '.join(inputs)}) -> ({', '.join(outputs)}) {{", *lines, "}", ""])


def run(candela, model, *options):
    """What went wrong."""
    done = subprocess.run([candela, "run", model, "--random", "1", *options], capture_output=True, text=True, timeout=500)
    return "" if done.returncode == 0 else (done.stdout + done.stderr).strip()


def main():
    candela, plugin = sys.argv[1:]
    rng, failed = random.Random(1), 0
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "model.cdl"
        for fn, shapes, bound in (("exact", SHAPES, "0.02"), ("dynamic", SHAPES[:-1], "0")):
            outputs, text = graph_of(rng, fn, shapes)
            model.write_text(text)
            problem = run(candela, model, "--backend", "soft", "--output", folder)
            expected = [option for i in range(outputs) for option in ("--expect", f"y{i}={folder}/y{i}.npy")]
            for style in ("cpu", "gpu"):
                problem = problem or run(candela, model, "--backend", plugin, "--option", f"style={style}", "--require-native",
                                         "--rtol", "0", "--atol", bound, *expected)
                if problem:
                    print(f"{fn}, {style}: {problem}", file=sys.stderr)
                    failed, problem = failed + 1, ""
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
