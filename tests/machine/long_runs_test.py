#!/usr/bin/env python3
"""What a long run must not lose: its journal, its time, its results, and the order of the folder for temporary files.

usage: long_runs_test.py CANDELA HANGING_PLUGIN

Exit status: 0 held, 1 not.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
INTEGERS = ROOT / "examples/digits/digits_int8.onnx"
TIME_LIMIT = 300


class Test:
    def __init__(self, candela, plugin, folder):
        self.candela, self.plugin, self.folder, self.problems = candela, plugin, folder, []

    def start(self, *arguments, **variables):
        return subprocess.Popen([self.candela, *arguments], cwd=self.folder, env={**os.environ, **variables}, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *arguments, **variables):
        process = self.start(*arguments, **variables)
        try:
            out, error = process.communicate(timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            return subprocess.CompletedProcess(arguments, None, *process.communicate())
        return subprocess.CompletedProcess(arguments, process.returncode, out, error)

    def expect(self, what, holds, seen=""):
        if not holds:
            self.problems.append(f"{what}{': ' if seen else ''}{seen}")

    def refused(self, what, done, *words):
        self.expect(what, done.returncode == 2 and all(word in done.stderr for word in words),
                    f"exit status {done.returncode}: {done.stderr[-300:]}")


def lines_of(file):
    return file.read_text().count("\n") if file.exists() else 0


def journals(test):
    """Two runs on one journal: the second one is refused, and the first one's work is whole."""
    journal = test.folder / "a.journal"
    command = ["conform", "--backend", "soft", "--tier", "primitives", "--size", "full", "--jobs", "1", "--resume",
               journal.name]
    first = test.start(*command)
    while lines_of(journal) < 4 and first.poll() is None:
        try:
            first.wait(timeout=0.01)
        except subprocess.TimeoutExpired:
            continue
    first.send_signal(signal.SIGSTOP)
    before = journal.read_bytes()
    test.expect("the first run was slow enough to be met", first.poll() is None)
    test.refused("a journal in use", test.run(*command), journal.name, f"process {first.pid}")
    test.expect("the journal of the first run is as it was", journal.read_bytes().startswith(before))
    first.kill()
    first.communicate()
    kept = lines_of(journal) - 1
    done = test.run(*command, "--json", "all.json")
    test.expect("the journal of a killed run goes on", done.returncode == 0, done.stderr[-300:])
    report = json.loads((test.folder / "all.json").read_text())
    test.expect("every case once", lines_of(journal) == report["total"] + 1,
                f"{lines_of(journal)} lines, {kept} of before, {report['total']} cases")


def hangs(test):
    """A plugin that gives no answer costs the limit once, as long as --time-limit says."""
    for place, slot in (("query", "cdl_backend_query"), ("open", "device_open")):
        done = test.run("conform", "--backend", test.plugin, "--tier", "primitives", "--tier", "abi", "--size", "quick",
                        "--jobs", "1", "--time-limit", "1", "--json", f"{place}.json", CANDELA_TEST_HANG=place)
        test.expect(f"a hang in {place} ends with failed cases", done.returncode == 1,
                    f"exit status {done.returncode}: {done.stderr[-300:]}")
        report = test.folder / f"{place}.json"
        if not report.exists():
            continue
        reasons = [one["reason"] for one in json.loads(report.read_text())["failed"]]
        told = [reason for reason in reasons if f"{slot}: no answer after 1 s, and is not asked again" in reason]
        waited = [reason for reason in reasons if reason.startswith("no answer after")]
        test.expect(f"a hang in {place} fails cases by its name", len(told) > 20, f"{len(told)} of {len(reasons)}")
        test.expect(f"a hang in {place} is waited for once", len(waited) <= 1, f"{len(waited)} cases waited")


def sweeps(test):
    """A result that is damaged is named, and computed again."""
    (test.folder / "s.toml").write_text(f'models = ["{INTEGERS}"]\nnpu = ["tiny"]\n')
    command = ["simulate", "--sweep", "s.toml", "--jobs", "1"]
    done = test.run(*command)
    results = sorted((test.folder / "s.sweep").glob("*.json"))
    test.expect("a sweep of one simulation", done.returncode == 0 and len(results) == 1, done.stderr[-300:])
    if len(results) != 1:
        return
    result = results[0]
    whole = json.loads(result.read_text())
    damages = {
        "cut": result.read_text()[:-100],
        "empty": "",
        "another type": json.dumps({**whole, "cycles": "many"}),
        "null": json.dumps({**whole, "dram_bytes": None}),
        "no schema": json.dumps({key: value for key, value in whole.items() if key != "schema"}),
        "deep": "[" * 100000,
    }
    for name, text in [*damages.items(), ("pipe", None)]:
        result.unlink()
        if text is None:
            os.mkfifo(result)
        else:
            result.write_text(text)
        done = test.run(*command)
        test.expect(f"a result that is damaged ({name}) is named",
                    done.returncode == 0 and result.name in done.stderr and "computed again" in done.stderr,
                    f"exit status {done.returncode}: {done.stderr[-300:]}")
        again = json.loads(result.read_text()) if result.is_file() else {}
        test.expect(f"a result that is damaged ({name}) is computed again", again.get("cycles") == whole["cycles"])
    test.expect("a whole result is kept", "computed again" not in test.run(*command).stderr)


def temporaries(test):
    """A simulation leaves nothing in the folder for temporary files, be it killed."""
    folder = test.folder / "temporary"
    folder.mkdir()
    command = ["simulate", str(INTEGERS), "--npu", "tiny", "--dim", "N=1", "--random", "1", "--trace", "t.json"]
    for seconds in (0.05, 0.2, 0.5, None):
        process = test.start(*command, TMPDIR=str(folder))
        try:
            process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        left = [path.name for path in folder.iterdir()]
        test.expect(f"a simulation, killed after {seconds} s, leaves nothing", not left, str(left))
    beside = [path.name for path in test.folder.iterdir() if ".tmp" in path.name]
    test.expect("nothing beside the files that are written", not beside, str(beside))


def main():
    with tempfile.TemporaryDirectory() as folder:
        test = Test(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), pathlib.Path(folder))
        for part in (journals, hangs, sweeps, temporaries):
            part(test)
            print(f"{part.__name__}: {len(test.problems)} problems so far", flush=True)
    for problem in test.problems:
        print(problem, file=sys.stderr)
    return 1 if test.problems else 0


if __name__ == "__main__":
    sys.exit(main())
