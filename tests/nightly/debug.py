#!/usr/bin/env python3
"""Seeded faults of a backend, each found in a model by `candela debug` and made small.

usage: tests/nightly/debug.py [--candela FILE] [--model FILE] [--dim NAME=N] [--plugin FILE] [--fault NAME]... [--report FILE]

The faults are those of the catalogue of `candela conform --mutants` (docs/reference/mutants.md) that MobileNetV2 meets,
and what a plugin of the tests does besides: it dies, exits, hangs, or is right alone and wrong behind another
instruction. For each: `candela debug` must end with 1, leave at most 5 instructions within 2 minutes, and the command
that it prints must repeat the fault from the files alone. Writes benchmarks/results/debug.json.

Needs a build in build/.

Exit status: 0 all were found, 1 some were not, 2 bad usage or nothing to run.
"""
import argparse
import datetime
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.debug_faults.v1"
MOST_INSTRUCTIONS = 5
MOST_SECONDS = 120
TIMEOUT_SECONDS = 600

# What `candela debug` is told besides --option fault=NAME.
TWICE = ("--twice", "4")
MUTANTS = {
    "matmul.stride_off_by_one.0": (),
    "matmul.wrong_tail": (),
    "matmul.wrong_axis.a": (),
    "matmul.epilogue_dropped": (),
    "matmul.writes_input.0": (),
    "matmul.one_too_many": (),
    "reduce.epilogue_dropped": (),
    "reduce.stride_off_by_one.0": (),
    "copy.strides_ignored": (),
    "copy.offset_ignored.y": (),
    "copy.wrong_tail": (),
    "binary.wrong_tail": (),
    "binary.function_ignored": (),
    "fill.wrong_tail": (),
    "primitives.gives_inputs": (),
    "primitives.only_powers_of_two": (),
    "primitives.only_first_run": TWICE,
    "primitives.answers_from_cache": TWICE,
    "memory.one_too_few.write": (),
    "executable.does_nothing": (),
    "queue.signal_lost": ("--timeout", "5"),
}
# Of the plugin, in instructions of the node.
PLUGIN = {
    "crash": (),
    "exit": (),
    "hang": ("--timeout", "5"),
    "unstable": TWICE,
    "sequence": (),
    "whole": (),
}


def processor_seconds():
    """Of all processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def shown(command):
    """How a command ended that was printed to be pasted."""
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=TIMEOUT_SECONDS)


def hunt(arguments, name, folder):
    """The record of one fault."""
    own = PLUGIN.get(name)
    backend = ["--backend", "soft"] if own is None else ["--backend", arguments.plugin, "--option", f"node={arguments.node}"]
    output = pathlib.Path(folder) / name
    command = [arguments.candela, "debug", arguments.model, "--random", "1", *backend, "--option", f"fault={name}",
               *(MUTANTS[name] if own is None else own), "--output", output, "--json", f"{output}.json"]
    for dim in arguments.dim:
        command += ["--dim", dim]
    start, used = time.monotonic(), processor_seconds()
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    record = {"fault": name, "seconds": round(time.monotonic() - start, 1),
              "processor_seconds": round(processor_seconds() - used, 1), "status": done.returncode, "found": False}
    if done.returncode != 1 or not pathlib.Path(f"{output}.json").is_file():
        record["reason"] = (done.stderr.strip().splitlines() or ["nothing was found"])[-1]
        return record
    report = json.loads(pathlib.Path(f"{output}.json").read_text())
    wrong = [instr for instr in report["instrs"] if "fault" in instr]
    record["instruction"] = f"{wrong[0]['kind']} '{wrong[0]['node']}'" if wrong else "the whole Program"
    reduced = report.get("reduced")
    if not reduced:
        record["reason"] = "it was not made small"
        return record
    record.update({key: reduced[key] for key in ("fault", "instructions", "bytes", "of_bytes", "tries")}, fault=name,
                  outcome=reduced["fault"])
    again = shown(reduced["command"])
    record["repeated"] = again.returncode == 1
    record["found"] = (record["repeated"] and record["instructions"] <= MOST_INSTRUCTIONS and
                       record["seconds"] <= arguments.seconds)
    if not record["repeated"]:
        record["reason"] = f"exit {again.returncode} of: {reduced['command']}"
    return record


def main():
    today = datetime.datetime.now(datetime.timezone.utc)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "build/models/mbv2.onnx")
    parser.add_argument("--dim", action="append", metavar="NAME=N")
    parser.add_argument("--plugin", type=pathlib.Path, default=ROOT / "build/lib/candela-tests/libcandela_wrong.so")
    parser.add_argument("--node", default="Conv12", help="where the plugin is wrong")
    parser.add_argument("--fault", action="append", choices=[*MUTANTS, *PLUGIN], metavar="NAME")
    parser.add_argument("--seconds", type=float, default=MOST_SECONDS, help="that a fault may take")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/debug.json")
    arguments = parser.parse_args()
    arguments.dim = arguments.dim or ["N=1"]
    arguments.candela = arguments.candela.resolve()
    maker = arguments.candela.with_name("candela-gen-models")
    if not arguments.model.is_file() and maker.is_file():
        subprocess.run([maker, arguments.model.parent], stdout=subprocess.DEVNULL)
    for file in (arguments.candela, arguments.model, arguments.plugin):
        if not file.is_file():
            print(f"debug: {file} is missing; build it first", file=sys.stderr)
            return 2
    os.environ["PATH"] = f"{arguments.candela.parent}{os.pathsep}{os.environ['PATH']}" # of the commands that are printed
    records = []
    with tempfile.TemporaryDirectory(prefix="candela_debug_") as folder:
        for name in arguments.fault or [*MUTANTS, *PLUGIN]:
            try:
                record = hunt(arguments, name, folder)
            except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
                record = {"fault": name, "found": False, "reason": str(error)}
            records.append(record)
            print(" ".join(f"{key}={value}" for key, value in record.items()), flush=True)
    version = subprocess.run([arguments.candela, "--version"], capture_output=True, text=True).stdout.strip()
    found = sum(record["found"] for record in records)
    nightly_report.write(arguments.report, {
        "schema": SCHEMA, "date": today.strftime("%Y-%m-%dT%H:%M:%SZ"), "versions": {"candela": version},
        "model": arguments.model.name, "most_instructions": MOST_INSTRUCTIONS, "most_seconds": arguments.seconds,
        "found": found, "total": len(records), "faults": records})
    print(f"{found} of {len(records)} found and made small; report {arguments.report}")
    return 0 if found == len(records) else 1


if __name__ == "__main__":
    sys.exit(main())
