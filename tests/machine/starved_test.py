#!/usr/bin/env python3
"""Runs the tool's commands, and a program that embeds the library, while memory runs out: each ends with success or with an error that it names.

usage: starved_test.py CANDELA LIBSTARVE EMBED [--every] [--only COMMAND] [--seed N]

Two ways. One allocation fails, or it and all behind it: libstarve.so does that (starve.c). The process may not have more
than so many addresses: RLIMIT_AS, as `ulimit -v` sets it. A sample of both, drawn with a fixed seed, or with --every
many more. A signal, an abort, a hang and an error without a word are failures. Exit status: 0 held, 1 not.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = str(ROOT / "examples/digits/digits.onnx")
INTEGERS = str(ROOT / "examples/digits/digits_int8.onnx")
TIME_LIMIT = 120
EMBEDDED = "embed"  # a program of embed.c, beside the tool's commands

GRAPH = """graph @main(%x: f32[4,8]) -> (%y: f32[4,8] "y") {
  %a = add %x, %x
  %y = tanh %a
}
"""
# Arguments; {dir} is a folder of the command alone.
COMMANDS = {
    "run": ["run", DIGITS, "--dim", "N=1", "--random", "1", "--top", "3"],
    "run_reference": ["run", "{dir}/graph.cdl", "--random", "1", "--backend", "reference", "--json", "{dir}/out.json"],
    "run_template": ["run", "{dir}/graph.cdl", "--random", "1", "--backend", "template"],
    "plan": ["plan", DIGITS, "--dim", "N=1"],
    "compile": ["compile", DIGITS, "--dim", "N=1", "-o", "{dir}/out.cdb"],
    "lower": ["lower", "{dir}/graph.cdl"],
    "opt": ["opt", "{dir}/graph.cdl"],
    "inspect": ["inspect", DIGITS],
    "simulate": ["simulate", INTEGERS, "--npu", "tiny", "--dim", "N=1", "--random", "1", "--engine", "func"],
    "conform": ["conform", "--backend", "soft", "--cases", "primitives:binary/add_f32:*", "--size", "quick", "--jobs",
                "1", "--json", "{dir}/out.json"],
    "help": ["run", "--help"],
}


class Outcome:
    def __init__(self, status, error):
        self.status, self.error = status, error

    def problem(self):
        """Why this is no way to end; empty where it is one."""
        if self.status is None:
            return f"no end within {TIME_LIMIT} s"
        if self.status < 0 or self.status > 2:
            return f"exit status {self.status}: {self.error[-400:]}"
        if self.status and "error: " not in self.error:
            return f"exit status {self.status} without a word: {self.error[-400:]}"
        return ""


def run(program, name, variables=None, addresses=None):
    """Runs a command of the table with such an environment, in so many bytes of addresses."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "graph.cdl").write_text(GRAPH)
        words = [DIGITS, "{dir}/out.cdb"] if name == EMBEDDED else COMMANDS[name]
        command = [program] + [word.replace("{dir}", folder) for word in words]

        def limit():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if addresses:
                resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))

        try:
            done = subprocess.run(command, env={**os.environ, **(variables or {})}, preexec_fn=limit,
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            return Outcome(None, "")
        left = sorted(path.name for path in pathlib.Path(folder).iterdir() if ".tmp" in path.name)
        error = done.stderr.decode(errors="replace")
        if left and done.returncode >= 0:
            return Outcome(-1, f"left behind: {left}; {error}")
        return Outcome(done.returncode, error)


def need_of(program, shim, name):
    """How many allocations a command makes where none fails, and the most KiB of addresses that it has."""
    with tempfile.NamedTemporaryFile() as total:
        outcome = run(program, name, {"LD_PRELOAD": shim, "STARVE_TOTAL": total.name})
        assert not outcome.problem(), f"{name}: {outcome.problem()}"
        return [int(number) for number in pathlib.Path(total.name).read_text().split()]


def starvations(shim, name, total, count, choice):
    """A quarter of the places are the first ones, where what the tool begins with is made."""
    places = set(range(1, 1 + count // 4)) | {choice.randint(1, total) for _ in range(count - count // 4)}
    for place in sorted(places):
        for on in (False, True):
            variables = {"LD_PRELOAD": shim, "STARVE_AT": str(place), **({"STARVE_ON": "1"} if on else {})}
            yield f"{name}: allocation {place}{' and all behind it' if on else ''} of {total}", name, variables, None


def limits(name, least, most, count, choice):
    for kibibytes in sorted(choice.randint(least, most) for _ in range(count)):
        yield f"{name}: {kibibytes} KiB of addresses", name, {}, kibibytes << 10


def least_to_start(program):
    """KiB of addresses in which the libraries find room, so that main is reached and says what is missing."""
    low, high = 1, 1 << 14
    while low < high:
        middle = (low + high) // 2

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (middle << 20, middle << 20))

        done = subprocess.run([program], capture_output=True, preexec_fn=limit)
        low, high = (low, middle) if done.returncode == 2 else (middle + 1, high)
    return low << 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("candela")
    parser.add_argument("shim")
    parser.add_argument("embed")
    parser.add_argument("--every", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    count = arguments.count or (150 if arguments.every else 1)
    choice = random.Random(arguments.seed)
    print(f"seed {arguments.seed}, {count} places of each command", flush=True)
    trials = []
    programs = {name: arguments.candela for name in COMMANDS} | {EMBEDDED: arguments.embed}
    least = {program: least_to_start(program) for program in set(programs.values())}
    for name in [arguments.only] if arguments.only else programs:
        total, most = need_of(programs[name], arguments.shim, name)
        places = 8 * count if name == EMBEDDED else count  # it is quick, and nobody catches what it does not
        trials += starvations(arguments.shim, name, total, places, choice)
        trials += limits(name, least[programs[name]], max(least[programs[name]], most), places, choice)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = pool.map(lambda trial: run(programs[trial[1]], *trial[1:]), trials)
        problems = [f"{what}: {outcome.problem()}" for (what, *_), outcome in zip(trials, outcomes) if outcome.problem()]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(trials)} runs, {len(problems)} of them wrong")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
