#!/usr/bin/env python3
"""The committed tables are what candela-gen makes from spec/: it says so itself, by --check."""

import os
import subprocess
import sys

import common

GENERATOR = "tools/candela-gen/candela_gen.py"


def main(argv=None):
    root = os.path.abspath(common.parser(__doc__).parse_args(argv).root)
    if not os.path.isfile(os.path.join(root, GENERATOR)):
        return common.finish([common.Violation(GENERATOR, 1, "drift", "the generator is missing")], "generated tables")
    run = subprocess.run([sys.executable, GENERATOR, "--check"], cwd=root, stdin=subprocess.DEVNULL, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    violations = []
    if run.returncode != 0:
        print(run.stdout.rstrip())
        violations.append(common.Violation(GENERATOR, 1, "drift", f"--check ended with {run.returncode}: "
                                           f"run `python3 {GENERATOR}` and commit what changes"))
    return common.finish(violations, "generated tables")


if __name__ == "__main__":
    sys.exit(main())
