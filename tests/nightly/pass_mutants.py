#!/usr/bin/env python3
"""Passes and decompositions with one thing wrong each: each must be found.

usage: tests/nightly/pass_mutants.py [--build DIR] [--graphs N] [--jobs N] [--room NAME] [--only NAME]
                                     [--report FILE]
       tests/nightly/pass_mutants.py --check

`tests/fuzz/pass_mutants.json` holds the mutants as text: in which file, what to find there, what to put in its place. A
mutant's `room` says what is mutated, and who has to notice:

  passes      core/compiler/graph/passes, where no room is said: fuzz_rewrites, up to its first finding, the passes on the
              oracle alone
  decompose   core/compiler/lowering/decompose: `candela conform` on soft, its random graphs

One mutant at a time is compiled in place of its file, with the commands of the build, and linked into the room's
program. A mutant that is not found, or that does not compile, is a failure, and so is a finding without a mutant. Nothing
outside of a scratch folder is changed.

With --room the lines of other rooms stay in the report as they are; with --only nothing is written. --check only looks
whether each text still stands exactly once in its file.

Writes benchmarks/results/pass_mutants.json. Needs a build in build/ with its tests.

Exit status: 0 all found, 1 one survived, 2 bad usage or nothing to run.
"""
import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.pass_mutants.v2"
TIMEOUT_SECONDS = 1200


def find_by_rewrites(program, graphs, out):
    """How many graphs ran, and the first finding; empty without one."""
    done = subprocess.run([program, "--count", str(graphs), "--backends", "", "--stop-at", "1", "--out", out],
                          capture_output=True, text=True, errors="replace", timeout=TIMEOUT_SECONDS)
    said = re.search(r"^FOUND  (.*)$|^(crashed at seed .*)$", done.stdout + "\n" + done.stderr, re.MULTILINE)
    if not said:
        done.check_returncode()
    ran = re.search(r"^(\d+) graphs from seed", done.stdout, re.MULTILINE)
    return int(ran.group(1)) if ran else 0, (said.group(1) or said.group(2)) if said else ""


def find_by_conform(program, _graphs, out):
    """How many cases ran, and the first that failed; empty without one."""
    report = pathlib.Path(out) / "report.json"
    subprocess.run([program, "conform", "--backend", "soft", "--tier", "fuzz", "--size", "nightly", "--jobs", "1",
                    "--json", report],
                   capture_output=True, timeout=TIMEOUT_SECONDS)
    found = json.loads(report.read_text())
    said = [f"{case['case']}: {case['reason']}" for case in found["failed"]]
    return found["total"], said[0] if said else ""


@dataclasses.dataclass(frozen=True)
class Room:
    folder: pathlib.Path  # of its sources, in the repository
    archive: str          # that the build makes of them
    objects: str          # in the commands that compile them
    program: str          # of the build, that holds them
    find: Callable


ROOMS = {
    "passes": Room(pathlib.Path("core/compiler/graph/passes"), "core/compiler/graph/passes/libcandela_graph_passes.a",
                   "candela_graph_passes.dir", "tests/bin/fuzz_rewrites", find_by_rewrites),
    "decompose": Room(pathlib.Path("core/compiler/lowering/decompose"),
                      "core/compiler/lowering/decompose/libcandela_decompose.a", "candela_decompose.dir", "bin/candela",
                      find_by_conform),
}


def room_of(mutant):
    return mutant.get("room", "passes")


def read_mutants():
    return json.loads((ROOT / "tests/fuzz/pass_mutants.json").read_text())


def check(mutants):
    """Messages about mutants whose text does not stand exactly once in its file."""
    found = []
    for mutant in mutants:
        path = ROOMS[room_of(mutant)].folder / mutant["file"]
        times = (ROOT / path).read_text().count(mutant["find"])
        if times != 1:
            found.append(f"tests/fuzz/pass_mutants.json: the text of '{mutant['name']}' stands {times} times in {path}, "
                         f"expected 1")
    names = [mutant["name"] for mutant in mutants]
    return found + [f"tests/fuzz/pass_mutants.json: two mutants are named '{name}'"
                    for name in set(names) if names.count(name) > 1]


class Build:
    """The commands of the build for one room, for other places."""

    def __init__(self, folder, room):
        self.folder, self.room = folder, room
        lines = subprocess.run(["ninja", "-t", "commands", room.program], cwd=folder, capture_output=True, text=True,
                               check=True).stdout.splitlines()
        self.compiler = next(shlex.split(line) for line in lines if room.objects in line and " -c " in line)
        self.link = lines[-1]

    def compile(self, source, target):
        words, kept = iter(self.compiler), []
        for word in words:
            if word in ("-MT", "-MF", "-o", "-c"):
                next(words)
            elif word not in ("-MD", "-Werror"):
                kept.append(word)
        subprocess.run([*kept, "-w", "-o", target, "-c", source], cwd=self.folder, capture_output=True, text=True,
                       check=True)

    def link_with(self, objects, program):
        archive = self.room.archive
        command = self.link.replace(archive, " ".join(map(shlex.quote, map(str, objects))), 1).replace(archive, "")
        target = f"-o {self.room.program}"
        subprocess.run(command.replace(target, f"-o {shlex.quote(str(program))}"), cwd=self.folder, shell=True,
                       capture_output=True, text=True, check=True)


class Scratch:
    """The objects of a room, file by file, and those of its mutants."""

    def __init__(self, build, folder):
        self.build, self.room, self.folder = build, build.room, folder
        self.folder.mkdir()
        self.sources = sorted(str(path.relative_to(ROOT / self.room.folder))
                              for path in (ROOT / self.room.folder).rglob("*.cpp"))

    def object_of(self, name, mutant="none"):
        return self.folder / f"{mutant}.{name.replace('/', '.')}.o"

    def compile_all(self, jobs):
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda name: self.build.compile(ROOT / self.room.folder / name, self.object_of(name)),
                          self.sources))

    def program(self, mutant):
        """The room's program with this mutant, or with none."""
        objects = {name: self.object_of(name) for name in self.sources}
        name = mutant["name"] if mutant else "none"
        if mutant:
            source = self.folder / f"{name}.cpp"
            original = (ROOT / self.room.folder / mutant["file"]).read_text()
            source.write_text(original.replace(mutant["find"], mutant["replace"]))
            objects[mutant["file"]] = self.object_of(mutant["file"], name)
            self.build.compile(source, objects[mutant["file"]])
        program = self.folder / f"{name}.exe"
        self.build.link_with(objects.values(), program)
        return program

    def judge(self, mutant, graphs):
        """How many graphs or cases ran, and the first finding; empty without one."""
        program = self.program(mutant)
        with tempfile.TemporaryDirectory(dir=self.folder) as out:
            result = self.room.find(program, graphs, out)
        program.unlink()
        return result


def judged(scratch, mutant, graphs):
    """The mutant's line of the report."""
    try:
        ran, said = scratch.judge(mutant, graphs)
    except subprocess.CalledProcessError as error:
        ran, said = 0, ""
        print(f"{mutant['name']} does not build:\n{error.stderr}")
    print(f"{'found   ' if said else 'SURVIVED'}  {mutant['name']}: {mutant['what']}  {said}", flush=True)
    return {"name": mutant["name"], "room": room_of(mutant), "file": mutant["file"], "what": mutant["what"],
            "found": bool(said), "graphs": ran, "by": said}


def judge_room(scratch, mutants, arguments):
    """The mutants' lines of the report; None where the program finds something without a mutant."""
    scratch.compile_all(arguments.jobs)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        whole = pool.submit(scratch.judge, None, arguments.graphs)
        results = list(pool.map(lambda mutant: judged(scratch, mutant, arguments.graphs), mutants))
        ran, said = whole.result()
    if not said and ran:
        return results
    print(f"pass_mutants: without a mutant {scratch.room.program} ran {ran}; {said}", file=sys.stderr)
    return None


def kept(arguments):
    """The lines of the report that is there, of rooms that are not run again."""
    if not arguments.room or not arguments.report.is_file():
        return []
    return [line for line in json.loads(arguments.report.read_text())["results"] if room_of(line) != arguments.room]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--graphs", type=int, default=20000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--room", choices=ROOMS)
    parser.add_argument("--only")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/pass_mutants.json")
    arguments = parser.parse_args()
    mutants = read_mutants()
    wrong = check(mutants)
    if wrong or arguments.check:
        print("\n".join(wrong) if wrong else f"{len(mutants)} mutants have their place")
        return 1 if wrong else 0
    chosen = [mutant for mutant in mutants
              if arguments.only in (None, mutant["name"]) and arguments.room in (None, room_of(mutant))]
    results = []
    for name in dict.fromkeys(map(room_of, chosen)):
        room = ROOMS[name]
        if not (arguments.build / room.program).is_file():
            print(f"pass_mutants: {arguments.build / room.program} is missing; build it first", file=sys.stderr)
            return 2
        with tempfile.TemporaryDirectory() as folder:
            scratch = Scratch(Build(arguments.build, room), pathlib.Path(folder) / name)
            found = judge_room(scratch, [mutant for mutant in chosen if room_of(mutant) == name], arguments)
        if found is None:
            return 1
        results += found
    survived = [result["name"] for result in results if not result["found"]]
    print(f"{len(results) - len(survived)} of {len(results)} found" + (f"; not {', '.join(survived)}" if survived else ""))
    if not arguments.only:
        results = kept(arguments) + results
        found = sum(result["found"] for result in results)
        nightly_report.write(arguments.report, {
            "schema": SCHEMA, "date": nightly_report.now(), "machine": nightly_report.machine(),
            "passed": found == len(results), "graphs": arguments.graphs, "mutants": len(results), "found": found,
            "results": results})
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
