#!/usr/bin/env python3
"""Compares two builds of the tool, between which nothing may change but the form of the sources.

usage: tests/nightly/refactoring.py [--before BUILD | --before-revision REV] [--after BUILD] [--only PART]... [--quick]
                                    [--size SIZE] [--within PERCENT] [--models DIR] [--report FILE]

BUILD is a build folder, with its tests for the mutants. Without --before the revision REV, else the newest tag, is built in a work
tree of its own below build/refactoring, with the options of --after (build/). The parts, each for both builds:
  conform   `candela conform` on every shipped backend: the outcome of each case (--size, nightly by default)
  mutants   the kill matrix of the suite's faulty backends
  onnx      the node tests of libonnx-testdata on every shipped backend: the outcome of each case
  cycles    the simulated NPU on each preset: the report of `candela simulate` but for names and times of the host
  lower     what `candela lower` writes, byte by byte
  run       what `candela run --random 1` answers, byte by byte
  latency   `candela bench` on one thread, both builds alternating, the best of the rounds: the geometric mean of after / before and the
            worst of them at most PERCENT (3) above 1. A model that is outside is measured for some rounds more: clocks move
Models are digits, the six benchmark models, which the build's candela-gen-models writes, and the trained ones of
scripts/fetch_models where they can be had. A command that fails must fail with the same words in both builds. --quick: digits alone,
a small part of the suite, no mutants. Writes benchmarks/results/refactoring.json after each part.

Exit status: 0 no difference, 1 a difference, 2 bad usage or nothing to compare, 77 there is no tag and nothing was given.
"""
import argparse
import hashlib
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_build  # noqa: E402
import nightly_models  # noqa: E402
import nightly_report  # noqa: E402

SCHEMA = "candela.refactoring.v1"
SHIPPED = ("soft", "template", "cpu", "npu_sim", "opencl")
DATA = pathlib.Path("/usr/share/libonnx-testdata/data")
NO_TAG = 77  # what CTest takes for a skipped test
SHOWN = 20  # differences of a part that are printed and kept
ROUNDS, MORE_ROUNDS = 5, 15
RUN_SECONDS, SUITE_SECONDS = 1800, 4 * 3600
# Of a report of `candela simulate`: what names the build or measures the host.
VOLATILE = {"candela_version", "command", "compile_ms", "wall_ms", "model", "generated_at", "date", "host_ms", "latency_ms"}


class Unusable(Exception):
    """There is nothing to compare."""


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


class Build:
    """One of the two builds."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder.resolve()
        self.tool = self.folder / "bin/candela"
        if not self.tool.is_file():
            raise Unusable(f"{self.tool} is missing; build it first")
        loaded = subprocess.run(["ldd", self.tool], capture_output=True, text=True).stdout
        for library in re.findall(r"=> (\S*candela\S*)", loaded):
            if not pathlib.Path(library).resolve().is_relative_to(self.folder):
                raise Unusable(f"{self.tool} loads {library}, which is no part of {self.folder}")
        said = subprocess.run([self.tool, "--version"], capture_output=True, text=True)
        self.version = said.stdout.strip() or said.stderr.strip()
        # Neither plugins nor a cache of somewhere else.
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("CANDELA_")}
        self.environment["POCL_CACHE_DIR"] = str(self.folder / "pocl")

    def backends(self):
        found = {"soft"} | {file.stem.removeprefix("libcandela_") for file in self.folder.glob("lib/candela/libcandela_*.so")}
        return [name for name in SHIPPED if name in found]

    def call(self, arguments, folder, seconds):
        """The exit status and the last words of a command of the tool, run in the folder."""
        try:
            done = subprocess.run([self.tool, *map(str, arguments)], cwd=folder, env=self.environment, capture_output=True,
                                  text=True, errors="replace", timeout=seconds)
        except subprocess.TimeoutExpired:
            return None, f"no end after {seconds} seconds"
        words = done.stderr.strip().splitlines()
        return done.returncode, words[-1].replace(str(self.folder), "BUILD") if words else ""

    def report(self, arguments, seconds, failing=(0,)):
        """What a command reports as JSON; where it fails {"failed": status, its last words}."""
        with tempfile.TemporaryDirectory(prefix="candela_refactoring_") as folder:
            file = pathlib.Path(folder) / "report.json"
            status, words = self.call([*arguments, "--json", file], folder, seconds)
            if status not in failing or not file.is_file():
                return {"failed": [status, words]}
            return json.loads(file.read_text())

    def written(self, arguments, seconds):
        """{name of a file: SHA-256} of what a command writes into the folder that it runs in; with how it failed, where it did."""
        with tempfile.TemporaryDirectory(prefix="candela_refactoring_") as name:
            folder = pathlib.Path(name)
            status, words = self.call(arguments, folder, seconds)
            files = {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
                     for file in sorted(folder.rglob("*")) if file.is_file()}
            return {**files, "failed": [status, words]} if status else files


# --- What is built ----------------------------------------------------------------------------------------------------


def git(*arguments, folder=ROOT):
    command = ["git", "-c", "safe.directory=*", "-C", folder, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Unusable(f"git {arguments[0]}: {(done.stderr.strip() or 'failed').splitlines()[-1]}")
    return done.stdout.strip()


def newest_tag():
    """The newest tag before HEAD; none where there is none."""
    try:
        return git("describe", "--tags", "--abbrev=0", "HEAD")
    except Unusable:
        return None


def options_of(folder):
    """What decides how fast a build of ours is and how long it takes."""
    cache = (folder / "CMakeCache.txt").read_text()
    names = ("CMAKE_BUILD_TYPE", "CANDELA_PCH", "CANDELA_UNITY", "CMAKE_CXX_FLAGS")
    values = {name: re.search(rf"^{name}:\w+=(.*)$", cache, re.M) for name in names}
    return {name: match[1] for name, match in values.items() if match}


def built(revision, after, with_matrix):
    """The build folder of a revision."""
    place = ROOT / "build/refactoring"
    tree, folder = place / "source", place / "build"
    commit = git("rev-parse", "--verify", f"{revision}^{{commit}}")
    say(f"before: {revision} ({commit[:12]}), in {tree}")
    if (tree / ".git").exists():
        git("checkout", "--quiet", "--force", "--detach", commit, folder=tree)
    else:
        git("worktree", "prune")
        git("worktree", "add", "--quiet", "--force", "--detach", str(tree), commit)
    nightly_build.configure(tree, folder, {**options_of(after), "CANDELA_WITH_TESTS": "ON"})
    targets = ["candela", "candela-gen-models", *nightly_build.backends(folder)]
    status, _ = nightly_build.build(folder, [*targets, "conformance_kill_matrix"] if with_matrix else targets)
    if status:
        raise Unusable(f"{revision} does not build")
    return folder


# --- The parts: each gives {what was compared: the same for both builds} ----------------------------------------------


def suite_outcomes(build, backend, arguments, jobs):
    """{"outcomes": {case: outcome}, "totals": counts}, and how it failed where it said nothing."""
    report = build.report(["conform", "--backend", backend, "--jobs", jobs, *arguments], SUITE_SECONDS, failing=(0, 1))
    if "failed" in report and "cases" not in report:
        return {"outcomes": {"the run": report["failed"]}, "totals": {}}
    outcomes = {case["case"]: case["outcome"] for case in report["cases"]}
    kept = ("total", "passed", "raw_passed", "corpus_hash", "unsupported_by_class")
    totals = {key: report[key] for key in kept if key in report}
    totals["native_rows"] = report.get("native", {}).get("rows")
    return {"outcomes": outcomes, "totals": totals}


def differing(before, after):
    """Both answers; of records what differs alone."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
        return {"before": {key: before.get(key) for key in keys}, "after": {key: after.get(key) for key in keys}}
    return {"before": before, "after": after}


class Comparison:
    """Both builds, what they are compared on, and what was found."""

    def __init__(self, arguments, before, after, models):
        self.arguments, self.before, self.after, self.models = arguments, before, after, models
        self.backends = [name for name in after.backends() if name in before.backends()]
        self.parts = {}

    def both(self, what, ask):
        """The answers of both builds, asked one after the other."""
        say(what)
        return ask(self.before), ask(self.after)

    def equal(self, part, answers, **more):
        """Keeps a part whose answers {what: (before, after)} have to be equal."""
        differences = [{"what": what, **differing(before, after)}
                       for what, (before, after) in answers.items() if before != after]
        self.parts[part] = {"passed": bool(answers) and not differences, "compared": len(answers),
                            "different": len(differences), **more, "differences": differences[:SHOWN]}

    def suite(self, part, arguments, backends):
        answers, totals = {}, {}
        for backend in backends:
            before, after = self.both(f"{part} on {backend}",
                                      lambda build: suite_outcomes(build, backend, arguments, self.arguments.jobs))
            for case in before["outcomes"].keys() | after["outcomes"].keys():
                answers[f"{backend} {case}"] = (before["outcomes"].get(case), after["outcomes"].get(case))
            answers[f"{backend} totals"] = (before["totals"], after["totals"])
            totals[backend] = after["totals"]
        self.equal(part, answers, totals=totals)

    def conform(self):
        self.suite("conform", ["--size", self.arguments.size], self.backends)

    def onnx(self):
        data = ["--onnx-data", DATA] if DATA.is_dir() else []
        cases = ["--cases", "onnx:*add*"] if self.arguments.quick else []
        self.suite("onnx", ["--tier", "onnx", *data, *cases], self.backends)

    def mutants(self):
        def matrix(build):
            program = build.folder / "tests/bin/conformance_kill_matrix"
            if not program.is_file():
                raise Unusable(f"{program} is missing; build it first")
            with tempfile.TemporaryDirectory(prefix="candela_refactoring_") as folder:
                page = pathlib.Path(folder) / "mutants.md"
                subprocess.run([program, page, "--write"], env=build.environment, stdout=subprocess.DEVNULL,
                               timeout=SUITE_SECONDS)
                return page.read_text().splitlines() if page.is_file() else []

        before, after = self.both("kill matrix", matrix)
        rows = max(len(before), len(after))
        lines = [lines + [None] * (rows - len(lines)) for lines in (before, after)]
        self.equal("mutants", {f"line {number}": pair for number, pair in enumerate(zip(*lines), 1)})

    def cycles(self):
        presets = ["tiny"] if self.arguments.quick else sorted(file.stem for file in (ROOT / "simulator/configs").glob("*.toml"))
        answers, counted = {}, {}
        for name, (path, options) in self.models.items():
            for preset in presets if name.endswith("_int8") else ():
                command = ["simulate", path, "--npu", preset, *options, "--random", "1"]
                what = f"{name} on {preset}"
                answers[what] = self.both(f"cycles of {what}", lambda build: steady(build.report(command, RUN_SECONDS)))
                counted[what] = answers[what][1].get("cycles")
        self.equal("cycles", answers, cycles=counted)

    def lower(self):
        self.files("lower", lambda path, backend, options: ["lower", path, "--backend", backend, *options, "-o", "program.cdl"])

    def run(self):
        self.files("run", lambda path, backend, options: ["run", path, "--backend", backend, *options, "--random", "1",
                                                         "--output", "outputs"])

    def files(self, part, command):
        answers = {}
        for name, (path, options) in self.models.items():
            for backend in self.backends:
                arguments = command(path, backend, options)
                what = f"{name} on {backend}"
                answers[what] = self.both(f"{part} {what}", lambda build: build.written(arguments, RUN_SECONDS))
        self.equal(part, answers, failing_in_both=sorted(
            what for what, (before, after) in answers.items() if before == after and "failed" in after))

    def latency(self):
        if "cpu" not in self.backends:
            raise Unusable("there is no backend cpu in both builds")
        limit = 1 + self.arguments.within / 100
        best = {name: {"before": math.inf, "after": math.inf} for name in self.models}
        seconds = 0.3 if self.arguments.quick else 1

        def measure(names, round_):
            order = (self.before, self.after) if round_ % 2 == 0 else (self.after, self.before)
            for name in names:
                path, options = self.models[name]
                command = ["bench", path, "--backend", "cpu", *options, "--threads", "1", "--seconds", seconds]
                for build in order:
                    report = build.report(command, RUN_SECONDS)
                    found = report["latency_ms"]["min"] if "latency_ms" in report else math.inf
                    best[name][build.name] = min(best[name][build.name], found)

        def ratio(name):
            return best[name]["after"] / best[name]["before"] if math.isfinite(best[name]["before"]) else math.nan

        for round_ in range(ROUNDS + MORE_ROUNDS):
            names = list(best) if round_ < ROUNDS else [name for name in best if ratio(name) > limit]
            if not names:
                break
            say(f"latency, round {round_ + 1}: {', '.join(names)}")
            measure(names, round_)
        ratios = {name: ratio(name) for name in best}
        unmeasured = sorted(name for name in ratios if not math.isfinite(ratios[name]))
        known = [value for value in ratios.values() if math.isfinite(value)]
        mean = math.exp(sum(map(math.log, known)) / len(known)) if known else math.inf
        worst = max(known, default=math.inf)
        self.parts["latency"] = {
            "passed": mean <= limit and worst <= limit and not unmeasured, "within_percent": self.arguments.within,
            "geometric_mean": rounded(mean), "worst": rounded(worst), "unmeasured": unmeasured,
            "models": {name: {"before_ms": rounded(best[name]["before"]), "after_ms": rounded(best[name]["after"]),
                              "ratio": rounded(ratios[name])} for name in best}}


def rounded(value):
    return round(value, 4) if math.isfinite(value) else None


def steady(value):
    """A report without what names the build or measures the host."""
    if isinstance(value, dict):
        return {key: steady(entry) for key, entry in value.items() if key not in VOLATILE}
    return [steady(entry) for entry in value] if isinstance(value, list) else value


# --- The command ------------------------------------------------------------------------------------------------------


def models_of(arguments, after, folder):
    """{name: (path, options)}, and why the trained models are not among them."""
    digits = ROOT / "examples/digits"
    found = {name: (digits / f"{name}.onnx", ["--dim", "N=1"]) for name in ("digits", "digits_int8")}
    if arguments.quick:
        return found, None
    found |= nightly_models.generated(after.folder, arguments.models, folder)
    try:
        return found | nightly_models.trained(), None
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return found, str(error)


def shown(name, part):
    """What is printed of a part."""
    verdict = "equal" if part["passed"] else "DIFFERENT"
    if "error" in part:
        yield f"{name}: NOT COMPARED: {part['error']}"
        return
    if name == "latency":
        verdict = "as fast" if part["passed"] else "NOT AS FAST"
        yield f"{name}: {verdict}: after / before {part['geometric_mean']} in the geometric mean, {part['worst']} at worst"
        for model, figures in part["models"].items():
            yield f"  {model:18} {figures['before_ms']} ms, {figures['after_ms']} ms: {figures['ratio']}"
        return
    yield f"{name}: {verdict}: {part['different']} of {part['compared']} differ"
    for difference in part["differences"]:
        before, after = (str(difference[key])[:300] for key in ("before", "after"))
        yield f"  {difference['what']}\n    before {before}\n    after  {after}"


def compare(arguments, before, after, folder):
    """Runs the parts; whether all passed."""
    models, left_out = models_of(arguments, after, folder)
    comparison = Comparison(arguments, before, after, {name: (path.resolve(), options) for name, (path, options) in models.items()})
    say(f"backends {', '.join(comparison.backends)}; models {', '.join(models)}")
    for name in arguments.only:
        started = time.monotonic()
        try:
            getattr(comparison, name)()
        except (Unusable, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
            comparison.parts[name] = {"passed": False, "error": f"{type(error).__name__}: {error}"}
        part = comparison.parts[name]
        part["seconds"] = round(time.monotonic() - started)
        print("\n".join(shown(name, part)), flush=True)
        passed = all(each["passed"] for each in comparison.parts.values())
        nightly_report.write(arguments.report, {
            "schema": SCHEMA, "date": nightly_report.now(), "machine": nightly_report.machine(), "passed": passed,
            "before": {"build": before.label, "version": before.version}, "after": {"build": after.label, "version": after.version},
            "size": arguments.size, "backends": comparison.backends, "models": list(models), "models_left_out": left_out,
            "parts": comparison.parts})
    return bool(comparison.parts) and all(part["passed"] for part in comparison.parts.values())


PARTS = ("lower", "run", "cycles", "latency", "onnx", "mutants", "conform")  # the soonest first


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    given = parser.add_mutually_exclusive_group()
    given.add_argument("--before", type=pathlib.Path, metavar="BUILD")
    given.add_argument("--before-revision", metavar="REV")
    parser.add_argument("--after", type=pathlib.Path, default=ROOT / "build", metavar="BUILD")
    parser.add_argument("--only", action="append", choices=PARTS, help="this part; may be given again")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--size", choices=("quick", "full", "nightly"))
    parser.add_argument("--within", type=float, metavar="PERCENT")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--models", type=pathlib.Path, help="what candela-gen-models wrote")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/refactoring.json")
    arguments = parser.parse_args()
    arguments.only = arguments.only or [part for part in PARTS if not (arguments.quick and part == "mutants")]
    arguments.size = arguments.size or ("quick" if arguments.quick else "nightly")
    arguments.within = arguments.within or (10 if arguments.quick else 3)  # digits takes microseconds
    return arguments


def main():
    arguments = read_arguments()
    try:
        revision = None
        if not arguments.before:
            revision = arguments.before_revision or newest_tag()
            if not revision:
                print("refactoring: no tag; say what to compare with, --before or --before-revision", file=sys.stderr)
                return NO_TAG
        after = Build("after", arguments.after)
        before = Build("before", arguments.before or built(revision, arguments.after, "mutants" in arguments.only))
        if before.folder == after.folder:
            raise Unusable(f"{before.folder} is both")
        before.label, after.label = revision or str(arguments.before), str(arguments.after)
        with tempfile.TemporaryDirectory(prefix="candela_refactoring_") as folder:
            passed = compare(arguments, before, after, pathlib.Path(folder))
    except (Unusable, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        print(f"refactoring: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print(f"{'no difference' if passed else 'there are differences'}; report {arguments.report}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
