"""What the nightly scripts share that send random graphs through a program of the tests and keep what it counted."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TIMEOUT_SECONDS = 7000


def arguments(description, results):
    """--build, --graphs, --seed and --report; results: the name of the report."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--graphs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / f"benchmarks/results/{results}.json")
    return parser.parse_args()


def counted(script, given, program, options=()):
    """(exit status, what the program counted) of so many graphs; ends the script where there is no program, or it counts nothing."""
    path = given.build / "tests/bin" / program
    if not path.is_file():
        print(f"{script}: {path} is missing; build it first", file=sys.stderr)
        sys.exit(2)
    with tempfile.TemporaryDirectory() as folder:
        counts = pathlib.Path(folder) / "counted.json"
        done = subprocess.run([path, "--seed", str(given.seed), "--count", str(given.graphs), *options, "--json", counts],
                              timeout=TIMEOUT_SECONDS)
        if not counts.is_file():
            print(f"{script}: {program} wrote nothing, exit status {done.returncode}", file=sys.stderr)
            sys.exit(1)
        return done.returncode, json.loads(counts.read_text())
