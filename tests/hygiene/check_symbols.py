#!/usr/bin/env python3
"""A plugin, or a library that one opens, exports exactly the symbols that rules.toml names."""

import os
import subprocess
import sys

import common
from common import Violation


def exported(path):
    out = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", path], check=True, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout
    return {line.split()[0].split("@")[0] for line in out.splitlines() if line.strip()}


def check(path, rules):
    name = os.path.basename(path)
    required = set(rules.get("instead", {}).get(name.split(".")[0], rules["exports"]))
    for key, symbols in rules.get("also", {}).items():
        if key in name:
            required |= set(symbols)
    try:
        found = exported(path)
    except (OSError, subprocess.CalledProcessError) as error:
        detail = (getattr(error, "stderr", None) or str(error)).strip()
        return [Violation(path, 1, "symbols", f"cannot be read: {detail}")]
    return ([Violation(path, 1, "symbols", f"exports '{s}'; allowed: {', '.join(sorted(required))}")
             for s in sorted(found - required)] +
            [Violation(path, 1, "symbols", f"does not export '{s}'") for s in sorted(required - found)])


def main(argv=None):
    p = common.parser(__doc__)
    p.add_argument("plugins", nargs="+", help="the .so files")
    args = p.parse_args(argv)
    rules = common.loadRules(args.rules)["symbols"]
    violations = [v for path in args.plugins for v in check(path, rules)]
    return common.finish(violations, f"symbols of {len(args.plugins)} plugins")


if __name__ == "__main__":
    sys.exit(main())
