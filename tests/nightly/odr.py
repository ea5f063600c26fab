#!/usr/bin/env python3
"""Links the tool and the backends with -flto and -Werror=odr: no two classes of one name with different members.

usage: tests/nightly/odr.py [--build DIR] [--target NAME]... [--witness] [--report FILE]

Two sources that each define a class of one name in one namespace compile, link and run, with the members of either. Link-time
optimization sees both definitions. First two small libraries with such a fault are linked: where the compiler does not find it
there, its silence about the tool says nothing. --witness: no more than that. Then the tool and the backends are built in DIR
(build/odr), one source at a time as in a build without CANDELA_UNITY. Writes benchmarks/results/odr.json.

Needs g++ with its link-time optimization (gcc-ar).

Exit status: 0 no finding, 1 findings or a link that fails, 2 the compiler does not find the fault, or nothing can be built.
"""
import argparse
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
import nightly_report  # noqa: E402

SCHEMA = "candela.odr.v1"
FLAGS = "-flto=auto -Wodr -Werror=odr"
FINDING = re.compile(r"^(?:(?P<place>\S+?:\d+:\d+): )?(?:warning|error): (?P<says>.*) \[-W(?:error=)?odr\]$")
FAULT = {
    "one.cpp": "namespace house { struct Room { int doors; int area() const; }; int Room::area() const { return doors; } }\n"
               "int first(int doors) { return house::Room{doors}.area(); }\n",
    "two.cpp": "namespace house { struct Room { double walls; int doors; int size() const; };\n"
               "int Room::size() const { return doors; } }\n"
               "int second(int doors) { return house::Room{1.0, doors}.size(); }\n",
    "main.cpp": "int first(int);\nint second(int);\nint main(int count, char**) { return first(count) - second(count); }\n",
}


def findings(lines, folder):
    """Each finding once: programs that link the same rooms repeat theirs. Paths are the repository's."""
    matches = (FINDING.match(line) for line in lines)
    return sorted({f"{os.path.relpath(folder / (match['place'] or '.'), ROOT)} {match['says']}" for match in matches if match})


def finds_a_fault():
    """Whether two static libraries with one class of two forms are refused."""
    with tempfile.TemporaryDirectory(prefix="candela_odr_") as name:
        folder = pathlib.Path(name)
        for file, text in FAULT.items():
            (folder / file).write_text(text)
        for stem in ("one", "two"):
            subprocess.run(["g++", "-std=c++20", "-O2", *FLAGS.split(), "-c", f"{stem}.cpp"], cwd=folder, check=True)
            subprocess.run(["gcc-ar", "rcs", f"lib{stem}.a", f"{stem}.o"], cwd=folder, check=True)
        linked = subprocess.run(["g++", "-std=c++20", "-O2", *FLAGS.split(), "main.cpp", "libone.a", "libtwo.a", "-o", "main"],
                                cwd=folder, capture_output=True, text=True)
        said = findings(linked.stderr.splitlines(), folder)
        return linked.returncode != 0 and any("house::Room" in line or "struct Room" in line for line in said)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/odr")
    parser.add_argument("--target", action="append", help="instead of the tool and the backends; may be given again")
    parser.add_argument("--witness", action="store_true")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/odr.json")
    arguments = parser.parse_args()
    if not finds_a_fault():
        print("odr: the compiler does not find two classes of one name", file=sys.stderr)
        return 2
    print("a class of two forms in two libraries is found")
    if arguments.witness:
        return 0
    started = time.monotonic()
    try:
        nightly_build.configure(ROOT, arguments.build, {
            "CANDELA_WITH_TESTS": "OFF", "CMAKE_AR": "gcc-ar", "CMAKE_RANLIB": "gcc-ranlib", "CMAKE_CXX_FLAGS": FLAGS,
            "CMAKE_C_FLAGS": "-flto=auto"})
        targets = arguments.target or ["candela", *nightly_build.backends(arguments.build)]
        status, lines = nightly_build.build(arguments.build, targets, keep_going=True)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"odr: {error}", file=sys.stderr)
        return 2
    found = findings(lines, arguments.build)
    passed = status == 0 and not found
    nightly_report.write(arguments.report, {
        "schema": SCHEMA, "date": nightly_report.now(), "machine": nightly_report.machine(), "passed": passed,
        "targets": targets, "seconds": round(time.monotonic() - started), "findings": found})
    for finding in found:
        print(finding)
    print(f"{len(found)} findings in {', '.join(targets)}; report {arguments.report}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
