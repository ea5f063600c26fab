#!/usr/bin/env python3
"""Synthesizes every module of rtl/ with Yosys: cells, flip-flops and longest path of each, the whole NPU's too, and no latch in any.

usage: rtl/synth/synthesize.py [--configuration NAME]... [--report FILE] [--table FILE] [--yosys FILE]

Yosys elaborates `cdl_npu` as each of CONFIGURATIONS has it. What this makes of a module, a block, is synthesized alone, the blocks that it
holds being black boxes: its cells are its own and those of all that it holds, so often as it does, and nothing is optimized across the border.
`cdl_npu_ram` is a macro that is counted in bits. What two configurations have in common is synthesized once.

Cells are those of Yosys' generic library (two-input gates, multiplexers, flip-flops) after `synth -noshare`; a path is in such cells, from input or
flip-flop to output or flip-flop. Neither is a figure of a technology. A block's own path ends at the blocks that it holds; its longest path
is that of all of them flattened, and ends at macros.

All configurations write the table too; some the report alone.

Exit status: 0 all are synthesized without a latch, 1 some are not, 2 there is no Yosys.
"""
import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

TIMEOUT_S = 600
SCHEMA = "candela.rtl_synth.v2"
TOP = "cdl_npu"
MACRO = "cdl_npu_ram"
# Some dozens of them are in an array, and each is as many flip-flops as its bits: the page has their sum alone.
SUMMED = "cdl_npu_delay"
BENCH4 = "tests/rtl/configs/bench4.toml"
GEM16 = "simulator/configs/gem16.toml"
CONFIGURATIONS = {
    "4 x 4": (BENCH4, {}),
    "16 x 16": (GEM16, {}),
    "4 x 4, Int16": (BENCH4, {"features.int16": 1}),
}
SIDE_BY_SIDE = ("4 x 4", "16 x 16")
# As simulator/rtl_model/parameters.cpp has them. A line of the fetch is a burst in these; the hash is left out.
PARAMETERS = {
    "Rows": "array.rows",
    "Columns": "array.columns",
    "ScratchpadBytes": "scratchpad.bytes",
    "ScratchpadBanks": "scratchpad.banks",
    "BankWidth": "scratchpad.bank_width",
    "AccBytes": "accumulator.bytes",
    "AccBanks": "accumulator.banks",
    "RequantLanes": "requant.lanes",
    "VectorLanes": "vector.lanes",
    "LoadChannels": "dma.load_channels",
    "StoreChannels": "dma.store_channels",
    "BurstBytes": "dma.burst_bytes",
    "Outstanding": "dma.outstanding",
    "QueueDepth": "command.queue_depth",
    "Int16": "features.int16",
}


def sources():
    lines = (ROOT / "rtl/synth.f").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("//")]


def modules():
    """Where each module of rtl/ stands, in the order of synth.f; the one of a file has its name."""
    files = map(pathlib.Path, sources())
    return {file.stem: file.parent.name for file in files if not file.stem.endswith("_pkg")}


def parameters_of(configuration):
    """The parameters of the whole NPU."""
    file, changes = CONFIGURATIONS[configuration]
    keys = tomllib.loads((ROOT / "spec/npu/config.toml").read_text())["key"]
    values = {key: entry.get("default") for key, entry in keys.items()}
    for section, entries in tomllib.loads((ROOT / file).read_text()).items():
        if isinstance(entries, dict):
            values.update({f"{section}.{key}": value for key, value in entries.items()})
    values.update(changes)
    parameters = {name: values[key] for name, key in PARAMETERS.items()}
    parameters["BeatBytes"] = min(values["dma.burst_bytes"], values["dma.beat_bytes"])
    return parameters


class Yosys:
    """Runs scripts; what they leave is in a folder of its own."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = pathlib.Path(folder)

    def run(self, lines):
        """What it prints; RuntimeError with its last words."""
        script = self.folder / "script.ys"
        script.write_text("\n".join(lines) + "\n")
        try:
            done = subprocess.run([self.program, script], cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"not done after {TIMEOUT_S} s") from None
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            raise RuntimeError(said[-1] if said else f"exit {done.returncode}")
        return done.stdout


def number(text):
    """A parameter as RTLIL has it: decimal, or bits behind their count."""
    _, quote, bits = text.partition("'")
    return int(bits, 2) if quote else int(text)


def elaborate(yosys, configuration):
    """The file of an NPU's blocks, and their parameters by the name that Yosys gave them."""
    file = yosys.folder / f"{configuration.replace(' ', '')}.il"
    parameters = " ".join(f"-set {name} {value}" for name, value in parameters_of(configuration).items())
    reads = [f"read_verilog -sv {source}" for source in sources() if source.endswith("_pkg.sv")]
    reads += [f"read_verilog -sv -defer {source}" for source in sources() if not source.endswith("_pkg.sv")]
    yosys.run([*reads, f"chparam {parameters} {TOP}", f"hierarchy -check -top {TOP}", f"write_rtlil {file}"])
    found = {}
    for line in file.read_text().splitlines():
        words = line.split()
        if line.startswith("module "):
            parameters = found.setdefault(words[1], {})
        elif line.startswith("  parameter ") and len(words) == 3:
            parameters[words[1].removeprefix("\\")] = number(words[2])
    return file, found


class Block:
    """A module with parameters. The same ones make the same block in every configuration."""

    def __init__(self, name, parameters):
        self.name = name                       # as Yosys has it
        self.module = next(part for part in name.split("\\") if part.startswith(TOP))
        self.parameters = parameters
        self.children = collections.Counter()  # blocks that it holds, how many of each
        self.instances = collections.Counter() # by configuration, in the whole NPU
        self.own_cells = 0
        self.own_flip_flops = 0
        self.own_path = 0
        self.longest_path = 0
        self.latches = 0
        self.seconds = 0.0
        self.netlist = None
        self.message = ""

    def text(self):
        return " ".join([self.module, *(f"{name}={value}" for name, value in self.parameters.items())])

    def macro_bits(self):
        if self.module != MACRO:
            return 0
        return self.parameters["Width"] * self.parameters["Lanes"] * self.parameters["Depth"]

    def total(self, amount):
        """Of the block and all that it holds."""
        return amount(self) + sum(count * child.total(amount) for child, count in self.children.items())

    def below(self):
        """The blocks that it holds, and what these hold; each once."""
        found = set(self.children)
        for child in self.children:
            found |= child.below()
        return found

    def result(self):
        result = {"block": self.text(), "folder": modules()[self.module], "module": self.module, "parameters": self.parameters,
                  "instances": dict(self.instances), "passed": not self.message}
        if self.message:
            return {**result, "message": self.message}
        return {**result, "own_cells": self.own_cells, "cells": self.total(lambda block: block.own_cells),
                "own_flip_flops": self.own_flip_flops, "flip_flops": self.total(lambda block: block.own_flip_flops),
                "latches": self.latches, "macro_bits": self.total(Block.macro_bits), "own_path": self.own_path,
                "longest_path": self.longest_path, "seconds": round(self.seconds, 1)}


def length_of(printed):
    """A block without gates has no path."""
    if "Detected loop" in printed:
        raise RuntimeError("a loop without a flip-flop")
    path = re.search(r"Longest topological path in .* \(length=(\d+)\)", printed)
    return int(path.group(1)) if path else 0


def synthesize(yosys, file, block, blocks):
    """The block's own logic. Its ports to what it holds end paths, as its own do: those blocks are taken away before paths are measured."""
    netlist = yosys.folder / f"netlist{len(list(yosys.folder.iterdir()))}.il"
    name = block.name
    printed = yosys.run([
        f"read_rtlil {file}", f"select -set others * {name} %d", "blackbox @others", f"synth -noshare -top {name}",
        f"stat {name}", f"select {name}", f"write_rtlil -selected {netlist}", "select -clear",
        f"delete {name}/t:*cdl_npu_*", f"ltp -noff {name}"])
    # The last statistics are those after synthesis.
    last = printed[printed.rindex("Number of cells:"):]
    kinds = {kind: int(count) for kind, count in re.findall(r"^\s+(\S+)\s+(\d+)$", last, re.MULTILINE)}
    gates = {kind: count for kind, count in kinds.items() if kind.startswith("$_")}
    held = {each.name.removeprefix("\\"): each for each in blocks.values()}   # as statistics call them
    block.children = collections.Counter({held[kind]: count for kind, count in kinds.items() if kind in held})
    unknown = kinds.keys() - gates.keys() - held.keys()
    if unknown:
        raise RuntimeError(f"cells that are no gates: {', '.join(sorted(unknown))}")
    block.own_cells = sum(gates.values())
    block.own_flip_flops = sum(count for kind, count in gates.items() if "DFF" in kind)
    block.latches = sum(count for kind, count in gates.items() if "LATCH" in kind)
    block.own_path = length_of(last)
    block.netlist = netlist
    if block.latches:
        raise RuntimeError(f"{block.latches} latches")


def measure_path(yosys, block):
    """The longest path of the block with all that it holds."""
    inside = [child for child in block.below() if child.netlist]
    if not inside:
        return block.own_path
    reads = [f"read_rtlil {each.netlist}" for each in [block, *inside]]
    macros = [f"delete {block.name}/t:*{MACRO}*"]
    printed = yosys.run([*reads, f"hierarchy -top {block.name}", "flatten", *macros, f"ltp -noff {block.name}"])
    return length_of(printed)


def measure(yosys, file, block, blocks):
    started = time.monotonic()
    try:
        synthesize(yosys, file, block, blocks)
        block.longest_path = measure_path(yosys, block)
    except RuntimeError as error:
        block.message = str(error)
    block.seconds = time.monotonic() - started
    # What holds a block that failed has no sum.
    failed = [child.text() for child in block.below() if child.message]
    if failed and not block.message:
        block.message = f"not all that it holds is synthesized: {failed[0]}"


def count_instances(block, count, configuration):
    block.instances[configuration] += count
    for child, times in block.children.items():
        count_instances(child, count * times, configuration)


def order_of(file):
    """Names of blocks, each behind those that it holds."""
    held = {}
    for line in file.read_text().splitlines():
        words = line.split()
        if line.startswith("module "):
            inside = held.setdefault(words[1], {})
        elif line.startswith("  cell ") and not words[1].startswith("$") or line.startswith("  cell $paramod"):
            inside[words[1]] = None
    order = {}

    def visit(name):
        for inner in held[name]:
            visit(inner)
        order[name] = None

    for name in held:
        visit(name)
    return list(order)


def synthesize_all(yosys, configurations):
    """All blocks, by name and parameters: the whole NPU has one name in all configurations."""
    known = {}
    for configuration in configurations:
        file, found = elaborate(yosys, configuration)
        blocks = {}
        for name in order_of(file):
            key = (name, *found[name].items())
            block = known.setdefault(key, Block(name, found[name]))
            is_new = not block.netlist and not block.message
            blocks[name] = block
            if block.module == MACRO or not is_new:
                continue
            measure(yosys, file, block, blocks)
            print(f"{configuration}: {block.text()}: " + (block.message or f"{block.own_cells} cells of its own, "
                  f"{block.total(lambda each: each.own_cells)} in all, longest path {block.longest_path}, {block.seconds:.0f} s"), flush=True)
        count_instances(blocks["\\" + TOP], 1, configuration)
    return list(known.values())


def joined(blocks):
    """Yosys has two names for one block where parameters are of different types; here they are one."""
    found = {}
    for block in blocks:
        first = found.setdefault(block.text(), block)
        if first is not block:
            first.instances += block.instances
    return list(found.values())


def group(count):
    return f"{count:,}" if count else ""


def totals_table(blocks, configurations):
    rows = []
    for configuration in configurations:
        whole = next(block for block in blocks if block.module == TOP and block.instances[configuration])
        parameters = whole.parameters
        rows.append([configuration, f"{parameters['ScratchpadBytes'] // 1024} KB", f"{parameters['AccBytes'] // 1024} KB",
                     f"{parameters['RequantLanes']}, {parameters['VectorLanes']}", *sums(whole)])
    return nightly_report.table(["array", "scratchpad", "accumulators", "lanes", "cells", "flip-flops", "macro bits", "longest path"], rows)


def sums(block):
    return [group(block.total(lambda each: each.own_cells)), group(block.total(lambda each: each.own_flip_flops)),
            group(block.total(Block.macro_bits)), str(block.longest_path)]


def modules_table(blocks):
    """Of each module, in the NPU of each configuration: how many, cells and flip-flops that are its own, in all of them, and its longest path."""
    columns = ["folder", "module"]
    for configuration in SIDE_BY_SIDE:
        columns += [f"{configuration}: instances", "own cells", "own flip-flops", "macro bits", "longest path"]
    rows = []
    for module, folder in modules().items():
        row = [folder, f"`{module}`"]
        for configuration in SIDE_BY_SIDE:
            there = [block for block in blocks if block.module == module and block.instances[configuration]]

            def summed(amount):
                return group(sum(block.instances[configuration] * amount(block) for block in there))

            row += [summed(lambda block: 1), summed(lambda block: block.own_cells), summed(lambda block: block.own_flip_flops),
                    summed(Block.macro_bits), str(max((block.longest_path for block in there), default="")) or ""]
        rows.append(row)
    return nightly_report.table(columns, rows)


def blocks_table(blocks, configurations):
    columns = ["module", "parameters", *configurations, "own cells", "cells", "own flip-flops", "flip-flops", "macro bits", "own path", "longest path"]
    rows = []
    for module in modules():
        for block in sorted((each for each in blocks if each.module == module and module != SUMMED), key=lambda each: list(each.parameters.values())):
            parameters = ", ".join(f"{name} {value}" for name, value in block.parameters.items() if value or name == "Int16")
            cells, flip_flops, bits, path = sums(block)
            rows.append([f"`{module}`", parameters, *(group(block.instances[each]) for each in configurations), group(block.own_cells), cells,
                         group(block.own_flip_flops), flip_flops, bits, str(block.own_path), path])
    return nightly_report.table(columns, rows)


def page(blocks, configurations, version):
    """docs/reference/npu_synthesis.md."""
    prose = [
        f"What {version.split(' (')[0]} makes of `rtl/` in its generic gates: two-input gates, multiplexers and flip-flops, of no technology. Paths are in",
        "such gates, from an input or a flip-flop to an output or a flip-flop. No latch is in any. Written with",
        "`benchmarks/results/rtl_synth.json`.",
        "",
        "A module is synthesized alone with its parameters, what it holds being black boxes: *own* is its logic without these, the other figures are with",
        "them, so often as it holds them. Nothing is optimized across the border of a module, so that ports that are constant there cost what they",
        "cost elsewhere. The own path ends at what a module holds; the longest path goes through it, of all that is below flattened. Macros",
        "are the memories `cdl_npu_ram`, counted in bits; a path ends at them, and their own time is in none. All other storage is",
        "flip-flops here: entries of queues and FIFOs, tables, counters and their copies, descriptors.",
        "",
        f"4 x 4 is `{BENCH4}`, 16 x 16 is `{GEM16}`; Int16 is the first of them with elements of 16 bits.",
        "",
        "## The whole",
    ]
    return ["<!-- generated by rtl/synth/synthesize.py; do not edit -->", "# The NPU in gates", "", *prose, "", *totals_table(blocks, configurations),
            "", "## By module", "", "All instances of a module in the NPU together; own cells and flip-flops add up to those of the whole. The path is the longest one of its instances.",
            "", *modules_table(blocks),
            "", "## By parameters", "", "One instance of each, and how many there are in which NPU. Not listed: `cdl_npu_delay`, which is Width x Depth flip-flops.",
            "", *blocks_table(blocks, configurations)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--configuration", action="append", choices=CONFIGURATIONS)
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/rtl_synth.json")
    parser.add_argument("--table", type=pathlib.Path, default=ROOT / "docs/reference/npu_synthesis.md")
    parser.add_argument("--yosys", default="yosys")
    arguments = parser.parse_args()
    if not shutil.which(arguments.yosys):
        print(f"synthesize: {arguments.yosys} is missing; as root: apt-get install yosys", file=sys.stderr)
        return 2
    version = subprocess.run([arguments.yosys, "-V"], capture_output=True, text=True).stdout.strip()
    configurations = arguments.configuration or list(CONFIGURATIONS)
    with tempfile.TemporaryDirectory() as folder:
        blocks = joined(synthesize_all(Yosys(arguments.yosys, folder), configurations))
    is_whole = not arguments.configuration
    report = {"schema": SCHEMA, "date": nightly_report.now(), "yosys": version, "machine": nightly_report.machine(),
              "configurations": {name: parameters_of(name) for name in configurations},
              "results": [block.result() for block in blocks]}
    absent = modules().keys() - {block.module for block in blocks} if is_whole else set()
    report["results"] += [{"block": module, "passed": False, "message": "in no configuration"} for module in sorted(absent)]
    failed = any(not result["passed"] for result in report["results"])
    lines = page(blocks, configurations, version) if is_whole and not failed else []
    return nightly_report.finish(arguments, report, lines)


if __name__ == "__main__":
    sys.exit(main())
