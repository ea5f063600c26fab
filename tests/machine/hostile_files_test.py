#!/usr/bin/env python3
"""Gives the tool files that are none, texts without an end of nesting, streams that take nothing and numbers that are none.

usage: hostile_files_test.py CANDELA

Each is refused, by its name, with exit status 1 or 2: no signal, no hang. Exit status: 0 held, 1 not.
"""
import os
import pathlib
import resource
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = str(ROOT / "examples/digits/digits.onnx")
TIME_LIMIT = 60
LEVELS = 300_000
GRAPH = 'graph @main(%x: f32[4]) -> (%y: f32[4] "y") {\n  %y = tanh %x\n}\n'
CASES = ["--size", "quick", "--cases", "primitives:binary/add_f32:*"]
MODEL = [DIGITS, "--dim", "N=1"]

# What reads a file; FILE is replaced by one of that suffix.
READERS = [
    ("a.onnx", ["run", "FILE", "--random", "1"]),
    ("a.cdl", ["run", "FILE", "--random", "1"]),
    ("a.cdb", ["run", "FILE", "--random", "1"]),
    ("a.cdl", ["opt", "FILE"]),
    ("a.cdl", ["lower", "FILE"]),
    ("a.onnx", ["compile", "FILE", "-o", "out.cdb"]),
    ("a.onnx", ["inspect", "FILE"]),
    ("a.cdb", ["inspect", "FILE"]),
    ("a.npy", ["inspect", "FILE"]),
    ("a.json", ["inspect", "FILE"]),
    ("a.csv", ["plan", "FILE"]),
    ("a.npy", ["run", *MODEL, "--input", "images=FILE"]),
    ("a.npy", ["run", *MODEL, "--random", "1", "--expect", "scores=FILE"]),
    ("a.npy", ["run", *MODEL, "--random", "1", "--labels", "FILE"]),
    ("a.txt", ["run", *MODEL, "--random", "1", "--top", "1", "--names", "FILE"]),
    ("./a.so", ["run", *MODEL, "--random", "1", "--backend", "FILE"]),
    ("./a.so", ["backends", "FILE"]),
    ("./a.toml", ["npu", "config", "FILE"]),
    ("a.npu", ["npu", "run", "FILE"]),
    ("./a.toml", ["simulate", *MODEL, "--npu", "FILE"]),
    ("a.toml", ["simulate", "--sweep", "FILE"]),
    ("a.csv", ["simulate", *MODEL, "--energy", "FILE"]),
    ("a.json", ["simulate", *MODEL, "--compare", "FILE"]),
    ("a.json", ["quantize", "--compare-reports", "FILE", "FILE"]),
    ("a.journal", ["conform", "--backend", "soft", *CASES, "--resume", "FILE"]),
    ("a.toml", ["conform", "--backend", "soft", *CASES, "--expectations", "FILE"]),
    ("a.json", ["conform", "--merge", "FILE"]),
    ("a.cert", ["conform", "--verify", "FILE"]),
]
NUMBERS = [
    ["bench", *MODEL, "--seconds"],
    ["conform", "--backend", "soft", *CASES, "--time-limit"],
    ["debug", *MODEL, "--timeout"],
    ["debug", *MODEL, "--reduce-time"],
    ["run", *MODEL, "--random", "1", "--rtol"],
    ["run", *MODEL, "--random", "1", "--atol"],
    ["simulate", *MODEL, "--host-bandwidth"],
]
NO_NUMBERS = ["nan", "-inf", "inf", "-1", "1e400", "", "1s"]
DEEP = {
    "dots.toml": "a." * LEVELS + "a = 1\n",
    "head.toml": "[" + "a." * LEVELS + "a]\nx = 1\n",
    "lists.toml": "x = " + "[" * LEVELS,
    "tables.toml": "x = " + "{a=" * LEVELS,
    "open.json": "[" * LEVELS,
    "closed.json": "[" * LEVELS + "]" * LEVELS,
    "report.json": '{"schema":"candela.run/1","x":' + "[" * LEVELS + "]" * LEVELS + "}",
    "objects.json": '{"schema":"candela.simulate/1","x":' + '{"a":' * LEVELS + "1" + "}" * LEVELS + "}",
    "lists.cdl": GRAPH.replace("%x\n", "%x {axes = " + "[" * LEVELS + "}\n"),
    "blocks.cdl": GRAPH.replace("tanh %x", "tanh %x {\n" * LEVELS),
    "loops.cdl": "program @p {\n" + "loop 4 {\n" * LEVELS,
    "steps.cdl": GRAPH.replace("tanh %x", 'expr %x {to = f32, steps = "' + "tanh(" * LEVELS + '"}'),
    "calls.npu": "load(" * LEVELS,
}
READ_DEEP = {
    ".toml": [["npu", "config", "FILE"], ["simulate", "--sweep", "FILE"]],
    ".json": [["inspect", "FILE"], ["simulate", *MODEL, "--compare", "FILE"],
              ["quantize", "--compare-reports", "FILE", "FILE"], ["conform", "--merge", "FILE"],
              ["conform", "--verify", "FILE"]],
    ".cdl": [["inspect", "FILE"], ["run", "FILE", "--random", "1"]],
    ".npu": [["npu", "run", "FILE"]],
}


class Test:
    def __init__(self, candela, folder):
        self.candela, self.folder, self.problems, self.count = candela, folder, [], 0

    def run(self, arguments, **streams):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
        try:
            return subprocess.run([self.candela, *arguments], cwd=self.folder, text=True, errors="replace",
                                  timeout=TIME_LIMIT, **options)
        except subprocess.TimeoutExpired:
            return None

    def refused(self, arguments, name, statuses=(1, 2), **streams):
        """The command ends so, and its error has the name."""
        self.count += 1
        done = self.run(arguments, **streams)
        if done is None:
            problem = "hangs"
        elif done.returncode not in statuses:
            problem = f"exit status {done.returncode}: {(done.stderr or '')[-300:]}"
        elif name and name not in done.stderr:
            problem = f"the error does not name {name}: {done.stderr[-300:]}"
        else:
            return
        self.problems.append(f"{' '.join(word if len(word) < 200 else word[:200] + '...' for word in arguments)}: {problem}")


def make_special(kind, path):
    if path.is_dir():
        path.rmdir()
    elif path.exists() or path.is_symlink():
        path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        before = os.getcwd()
        os.chdir(path.parent)  # the path of a socket is short
        socket.socket(socket.AF_UNIX).bind(path.name)
        os.chdir(before)


def special_files(test):
    """A pipe is given to each reader; the other kinds, for which nobody waits, to a third of them each."""
    others = ["folder", "device", "socket"]
    for i, (name, command) in enumerate(READERS):
        is_slow = command[0] == "conform" and "--backend" in command  # lists the whole suite first
        for kind in ("pipe",) if is_slow else ("pipe", others[i % len(others)]):
            make_special(kind, test.folder / name)
            test.refused([word.replace("FILE", name) for word in command], name.removeprefix("./"))
            make_special("folder", test.folder / name)
            (test.folder / name).rmdir()


def numbers(test):
    for command in NUMBERS:
        for number in NO_NUMBERS:
            test.refused([*command[:-1], f"{command[-1]}={number}"], command[-1], statuses=(2,))


def deep_texts(test):
    for name, text in DEEP.items():
        path = test.folder / name
        path.write_text(text)
        for command in READ_DEEP[path.suffix]:
            test.refused([word.replace("FILE", f"./{name}") for word in command], name)
    # Which lists the whole suite first.
    test.refused(["conform", "--backend", "soft", *CASES, "--expectations", "dots.toml"], "dots.toml")


def streams(test):
    """Streams that take nothing: the exit status says it where no text can."""
    (test.folder / "graph.cdl").write_text(GRAPH)
    good, bad = ["opt", "graph.cdl"], ["opt", "missing.cdl"]

    def close(file):
        return lambda: os.close(file)

    with open("/dev/full", "w") as full:
        test.refused(good, "stdout", (1,), stdout=full)
        test.refused(["--version"], "stdout", (1,), stdout=full)
        test.refused(["opt", "graph.cdl", "--json", "-"], "stdout", (1,), stdout=full)
        test.refused(bad, "", (2,), stderr=full)
        test.refused(good, "", (1,), stdout=full, stderr=full)
    test.refused(good, "stdout", (1,), preexec_fn=close(1))
    test.refused(bad, "", (2,), preexec_fn=close(2))
    # What is opened must not take the place of a stream that is closed, or the stream's text would go there.
    test.refused(["opt", "graph.cdl", "--json", "out.json"], "stdout", (1,), preexec_fn=close(1))
    reader, writer = os.pipe()
    os.close(reader)
    test.refused(good, "stdout", (1,), stdout=writer)
    test.refused(bad, "", (2,), stderr=writer)
    os.close(writer)


def size_limit(test):
    """ulimit -f: an error, an old file as it was, and nothing beside it."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    for arguments, output in ((["compile", *MODEL, "-o"], "old.cdb"),
                              (["run", *MODEL, "--random", "1", "--trace"], "old.json"),
                              (["inspect", DIGITS, "--json"], "new.json")):
        if output.startswith("old"):
            (test.folder / output).write_text("old")
        before = sorted(path.name for path in test.folder.iterdir())
        test.refused([*arguments, output], output, (1,), preexec_fn=limit)
        after = sorted(path.name for path in test.folder.iterdir())
        if before != after:
            test.problems.append(f"{arguments[0]} under a limit of file sizes left {set(after) - set(before)}")
        if output.startswith("old") and (test.folder / output).read_text() != "old":
            test.problems.append(f"{output}: the old file is gone")


def main():
    with tempfile.TemporaryDirectory() as folder:
        test = Test(os.path.abspath(sys.argv[1]), pathlib.Path(folder))
        for part in (special_files, numbers, deep_texts, streams, size_limit):
            part(test)
            print(f"{part.__name__}: {len(test.problems)} problems of {test.count} so far", flush=True)
    for problem in test.problems:
        print(problem, file=sys.stderr)
    return 1 if test.problems else 0


if __name__ == "__main__":
    sys.exit(main())
