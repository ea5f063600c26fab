#!/usr/bin/env python3
"""Writes graphs with many branches, for what the order of instructions does to memory.

usage: benchmarks/branching_graphs.py DIR [--only NAME]...

Each is DIR/<name>.<order>.cdl, a Graph in text, in two orders of its nodes: `depth`, branch after branch, as tracers of
programs write a model; and `breadth`, level after level, as exporters do that sort a graph. Python alone is enough. The same
files every time: all random numbers come from seeds in here.

inception  four branches of 1 to 3 convolutions each, joined by concat, six times
densenet   three blocks in which each layer reads all before it
unet       four levels down and up again, with a skip on each
nasnet     cells of five sums of two random ops, each reading the two cells before; two seeds
randwire   random graphs of sums and inverted bottlenecks in three stages; two seeds
hydra      one trunk, six heads that widen before they narrow
fractal    branches that split again, four levels deep
"""
import argparse
import pathlib
import random
import sys


class Net:
    """Nodes in the order in which they were made. A value is (name, channels, height and width)."""

    def __init__(self, name, channels, size):
        self.name = name
        self.nodes = []  # level, text
        self.levels = {"x": 0}
        self.counts = {}
        self.input = ("x", channels, size)

    def add(self, op, inputs, channels, size, attributes="", weights=()):
        self.counts[op] = self.counts.get(op, -1) + 1
        name = f"{op}{self.counts[op]}"
        operands = [value[0] for value in inputs]
        text = ""
        for number, shape in enumerate(weights):
            operands.append(f"{name}_w{number}")
            dims = ",".join(map(str, shape))
            text += f"  %{operands[-1]} = constant random({len(self.nodes) * 2 + number}) : f32[{dims}]\n"
        text += f"  %{name} = {op} {', '.join('%' + o for o in operands)}"
        text += f' {{{attributes}}} loc("{name}")\n' if attributes else f' loc("{name}")\n'
        self.levels[name] = 1 + max(self.levels[value[0]] for value in inputs)
        self.nodes.append((self.levels[name], text))
        return name, channels, size

    def conv(self, x, channels, kernel=1, stride=1, group=1):
        pad = kernel // 2
        attributes = f"group = {group}, pads = [{pad}, {pad}, {pad}, {pad}], strides = [{stride}, {stride}]"
        return self.relu(self.add("conv", [x], channels, -(-x[2] // stride), attributes,
                                  [(channels, x[1] // group, kernel, kernel), (channels,)]))

    def relu(self, x):
        return self.add("relu", [x], x[1], x[2])

    def pool(self, x, stride=1):
        size = -(-x[2] // stride)
        return self.add("max_pool", [x], x[1], size,
                        f"kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [{stride}, {stride}]")

    def up(self, x, channels):
        return self.add("conv_transpose", [x], channels, 2 * x[2], "strides = [2, 2]", [(x[1], channels, 2, 2)])

    def sum(self, values):
        total = values[0]
        for value in values[1:]:
            total = self.add("add", [total, value], total[1], total[2])
        return total

    def concat(self, values):
        return self.add("concat", values, sum(v[1] for v in values), values[0][2], "axis = 1")

    def separable(self, x, channels, kernel, stride=1):
        return self.conv(self.conv(x, x[1], kernel, stride, x[1]), channels)

    def inverted(self, x, channels, factor=6):
        wide = self.conv(x, factor * x[1])
        return self.conv(self.conv(wide, wide[1], 3, 1, wide[1]), channels)

    def text(self, result, order):
        y = self.add("global_average_pool", [result], result[1], 1)
        nodes = sorted(self.nodes, key=lambda node: node[0]) if order == "breadth" else self.nodes
        _, channels, size = self.input
        body = "".join(text for _, text in nodes)
        return (f"graph @{self.name}(%x: f32[1,{channels},{size},{size}]) -> (%{y[0]}: f32[1,{y[1]},1,1]) {{\n{body}}}\n")


def inception(net):
    x = net.conv(net.input, 64, 3, 2)
    for block in range(6):
        if block in (2, 4):
            x = net.pool(x, 2)
        width = 32 << (block // 2)
        x = net.concat([net.conv(x, 2 * width), net.conv(net.conv(x, width), 2 * width, 3),
                        net.conv(net.conv(net.conv(x, width // 2), width, 3), width, 3),
                        net.conv(net.pool(x), width)])
    return x


def densenet(net):
    x = net.conv(net.input, 48, 3, 2)
    for block in range(3):
        known = [x]
        for _ in range(6):
            together = net.concat(known) if len(known) > 1 else x
            known.append(net.conv(net.conv(together, 96), 24, 3))
        x = net.conv(net.concat(known), 48 << block)
        if block < 2:
            x = net.pool(x, 2)
    return x


def unet(net):
    x, skips = net.input, []
    for level in range(4):
        x = net.conv(net.conv(x, 16 << level, 3), 16 << level, 3)
        skips.append(x)
        x = net.pool(x, 2)
    x = net.conv(net.conv(x, 256, 3), 256, 3)
    for level in reversed(range(4)):
        x = net.concat([skips[level], net.up(x, 16 << level)])
        x = net.conv(net.conv(x, 16 << level, 3), 16 << level, 3)
    return net.conv(x, 4)


def nasnet(net, seed):
    numbers = random.Random(seed)
    before = x = net.conv(net.input, 32, 3, 2)
    for cell in range(6):
        stride = 2 if cell in (2, 4) else 1
        width = 24 << (cell // 2)
        ends = [net.conv(before, width, 1, before[2] // x[2]), net.conv(x, width)]
        if stride == 2:
            ends = [net.pool(end, 2) for end in ends]
        states, used = list(ends), set()
        for _ in range(5):
            pair = []
            for _ in range(2):
                pick = numbers.randrange(len(states))
                used.add(pick)
                op = numbers.choice(["sep3", "sep5", "sep7", "pool", "same", "wide"])
                value = states[pick]
                pair.append(value if op == "same" else net.pool(value) if op == "pool" else
                            net.inverted(value, width, 4) if op == "wide" else net.separable(value, width, int(op[3])))
            states.append(net.sum(pair))
        before, x = x, net.concat([s for i, s in enumerate(states) if i not in used])
    return x


def randwire(net, seed):
    numbers = random.Random(seed)
    x = net.conv(net.input, 24, 3, 2)
    for stage in range(3):
        values, used = [x], set()
        for node in range(12):
            picks = sorted(numbers.sample(range(max(0, len(values) - 6), len(values)), min(len(values), numbers.randint(1, 3))))
            used.update(picks)
            values.append(net.inverted(net.sum([values[p] for p in picks]), x[1], numbers.choice([1, 2, 6])))
        x = net.conv(net.sum([v for i, v in enumerate(values) if i not in used]), x[1] * 2, 3, 2)
    return x


def hydra(net):
    x = net.conv(net.conv(net.input, 32, 3, 2), 32, 3)
    return net.concat([net.inverted(net.inverted(x, 16, 4 + head), 8, 8) for head in range(6)])


def fractal(net):
    def grow(x, depth):
        if depth == 0:
            return net.conv(x, 32, 3)
        left = net.inverted(grow(x, depth - 1), 32, depth)
        return net.sum([net.conv(x, 32, 3), grow(left, depth - 1)])
    return grow(net.conv(net.input, 32, 3, 2), 4)


GRAPHS = {
    "inception": (inception, (), 112), "densenet": (densenet, (), 112), "unet": (unet, (), 96),
    "nasnet1": (nasnet, (1,), 112), "nasnet2": (nasnet, (2,), 112),
    "randwire1": (randwire, (1,), 112), "randwire2": (randwire, (2,), 112),
    "hydra": (hydra, (), 64), "fractal": (fractal, (), 64),
}
ORDERS = ("depth", "breadth")


def write(name, order, folder):
    """The file of one graph in one order."""
    make, seeds, size = GRAPHS[name]
    net = Net(name, 3, size)
    path = folder / f"{name}.{order}.cdl"
    path.write_text(net.text(make(net, *seeds), order))
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", action="append", choices=GRAPHS)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.only or GRAPHS:
        for order in ORDERS:
            print(write(name, order, arguments.folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
