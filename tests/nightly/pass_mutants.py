#!/usr/bin/env python3
"""Passes with one thing wrong each: fuzz_rewrites must find every one of them.

usage: tests/nightly/pass_mutants.py [--build DIR] [--graphs N] [--jobs N] [--only NAME] [--report FILE]
       tests/nightly/pass_mutants.py --check

`tests/fuzz/pass_mutants.json` holds the mutants as text: in which file of core/compiler/graph/passes, what to find there,
what to put in its place. One at a time is put into a copy of that folder, which is compiled with the commands of the build
and linked with its fuzz_rewrites.
Then fuzz_rewrites runs up to its first finding, the passes on the oracle alone; a mutant without one, or that
does not compile, is a failure, and so is a finding without a mutant. Nothing outside of a scratch folder is changed.

--check only looks whether each text still stands exactly once in its file.

Writes benchmarks/results/pass_mutants.json. Needs a build in build/ with its tests.

Exit status: 0 all found, 1 one survived, 2 bad usage or nothing to run.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.pass_mutants.v1"
PASSES = ROOT / "core/compiler/graph/passes"
PROGRAM = "tests/bin/fuzz_rewrites"
ARCHIVE = "core/compiler/graph/passes/libcandela_graph_passes.a"
TIMEOUT_SECONDS = 1200


def read_mutants():
    return json.loads((ROOT / "tests/fuzz/pass_mutants.json").read_text())


def check(mutants):
    """Messages about mutants whose text does not stand exactly once in its file."""
    found = []
    for mutant in mutants:
        times = (PASSES / mutant["file"]).read_text().count(mutant["find"])
        if times != 1:
            found.append(f"tests/fuzz/pass_mutants.json: the text of '{mutant['name']}' stands {times} times in "
                         f"core/compiler/graph/passes/{mutant['file']}, expected 1")
    names = [mutant["name"] for mutant in mutants]
    return found + [f"tests/fuzz/pass_mutants.json: two mutants are named '{name}'"
                    for name in set(names) if names.count(name) > 1]


class Build:
    """The commands of the build, for other places."""

    def __init__(self, folder):
        self.folder = folder
        lines = subprocess.run(["ninja", "-t", "commands", PROGRAM], cwd=folder, capture_output=True, text=True,
                               check=True).stdout.splitlines()
        self.compiler = next(shlex.split(line) for line in lines if "candela_graph_passes.dir" in line and " -c " in line)
        self.link = lines[-1]

    def compile(self, source, root, target):
        """With `root` before the repository among the folders of includes."""
        words, kept = iter(self.compiler), []
        for word in words:
            if word in ("-MT", "-MF", "-o", "-c"):
                next(words)
            elif word not in ("-MD", "-Werror"):
                kept.append(word)
        first = next(i for i, word in enumerate(kept) if word.startswith("-I"))
        kept.insert(first, f"-I{root}")
        subprocess.run([*kept, "-w", "-o", target, "-c", source], cwd=self.folder, capture_output=True, text=True,
                       check=True)

    def link_with(self, objects, program):
        command = self.link.replace(ARCHIVE, " ".join(map(shlex.quote, map(str, objects))), 1).replace(ARCHIVE, "")
        subprocess.run(command.replace(f"-o {PROGRAM}", f"-o {shlex.quote(str(program))}"), cwd=self.folder, shell=True,
                       capture_output=True, text=True, check=True)


class Scratch:
    """A copy of core/compiler/graph/passes, compiled file by file."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.sources = sorted(path.name for path in PASSES.glob("*.cpp"))

    def objects(self, jobs):
        root = self.folder / "whole"
        shutil.copytree(PASSES, root / "core/compiler/graph/passes")
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda name: self.build.compile(root / "core/compiler/graph/passes" / name, root,
                                                          self.folder / f"{name}.o"),
                          self.sources))

    def program(self, mutant):
        """fuzz_rewrites with this mutant, or with none."""
        objects = {name: self.folder / f"{name}.o" for name in self.sources}
        name = mutant["name"] if mutant else "none"
        if mutant:
            root = self.folder / name
            shutil.copytree(PASSES, root / "core/compiler/graph/passes")
            path = root / "core/compiler/graph/passes" / mutant["file"]
            path.write_text(path.read_text().replace(mutant["find"], mutant["replace"]))
            objects[mutant["file"]] = self.folder / f"{name}.o"
            self.build.compile(path, root, objects[mutant["file"]])
        program = self.folder / f"{name}.exe"
        self.build.link_with(objects.values(), program)
        return program

    def judge(self, mutant, graphs):
        """How many graphs ran, and the first finding; empty without one."""
        program = self.program(mutant)
        with tempfile.TemporaryDirectory(dir=self.folder) as out:
            done = subprocess.run([program, "--count", str(graphs), "--backends", "", "--stop-at", "1", "--out", out],
                                  capture_output=True, text=True, errors="replace", timeout=TIMEOUT_SECONDS)
        program.unlink()
        said = re.search(r"^FOUND  (.*)$|^(crashed at seed .*)$", done.stdout + "\n" + done.stderr, re.MULTILINE)
        ran = re.search(r"^(\d+) graphs from seed", done.stdout, re.MULTILINE)
        return int(ran.group(1)) if ran else 0, (said.group(1) or said.group(2)) if said else ""


def judged(scratch, mutant, graphs):
    """The mutant's line of the report."""
    try:
        ran, said = scratch.judge(mutant, graphs)
    except subprocess.CalledProcessError as error:
        ran, said = 0, ""
        print(f"{mutant['name']} does not build:\n{error.stderr}")
    print(f"{'found   ' if said else 'SURVIVED'}  {mutant['name']}: {mutant['what']}  {said}", flush=True)
    return {"name": mutant["name"], "file": mutant["file"], "what": mutant["what"], "found": bool(said), "graphs": ran,
            "by": said}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--graphs", type=int, default=20000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/pass_mutants.json")
    arguments = parser.parse_args()
    mutants = read_mutants()
    wrong = check(mutants)
    if wrong or arguments.check:
        print("\n".join(wrong) if wrong else f"{len(mutants)} mutants have their place")
        return 1 if wrong else 0
    if not (arguments.build / PROGRAM).is_file():
        print(f"pass_mutants: {arguments.build / PROGRAM} is missing; build it first", file=sys.stderr)
        return 2
    chosen = [mutant for mutant in mutants if arguments.only in (None, mutant["name"])]
    with tempfile.TemporaryDirectory() as folder:
        scratch = Scratch(Build(arguments.build), pathlib.Path(folder))
        scratch.objects(arguments.jobs)
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            whole = pool.submit(scratch.judge, None, arguments.graphs)
            results = list(pool.map(lambda mutant: judged(scratch, mutant, arguments.graphs), chosen))
            graphs, said = whole.result()
    if said or graphs < arguments.graphs:
        print(f"pass_mutants: without a mutant {graphs} graphs ran; {said}", file=sys.stderr)
        return 1
    survived = [result["name"] for result in results if not result["found"]]
    print(f"{len(results) - len(survived)} of {len(results)} found" + (f"; not {', '.join(survived)}" if survived else ""))
    if not arguments.only:
        nightly_report.write(arguments.report, {
            "schema": SCHEMA, "date": nightly_report.now(), "machine": nightly_report.machine(), "passed": not survived,
            "graphs": arguments.graphs, "mutants": len(results), "found": len(results) - len(survived),
            "results": results})
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
