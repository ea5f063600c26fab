#!/usr/bin/env python3
"""A plugin, or a library that one opens, exports exactly the symbols that rules.toml names.

The library of the embedding API exports those of its linker script, each of the version that stands there, and the script names
those that its headers declare.
"""

import glob
import os
import re
import subprocess
import sys

import common
from common import Violation


def versioned(path):
    """{symbol: its version, "" without one} of what a library defines; the names of versions are none."""
    out = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", "--format=posix", path], check=True, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout
    names = [(line.split()[0].partition("@"), line.split()[1]) for line in out.splitlines() if line.strip()]
    versions = {version.lstrip("@") for (_, _, version), _ in names}
    return {symbol: version.lstrip("@") for (symbol, _, version), kind in names if kind != "A" or symbol not in versions}


def exported(path):
    return set(versioned(path))


def scripted(path):
    """{symbol: (version, line)} of a linker script."""
    with open(path, encoding="utf-8") as file:
        lines = [line.split("#")[0].strip() for line in file]
    found, version, isGlobal = {}, "", False
    for number, line in enumerate(lines, 1):
        if node := re.match(r"([\w.]+)\s*\{", line):
            version = node[1]
        elif line in ("global:", "local:"):
            isGlobal = line == "global:"
        elif isGlobal and (symbol := re.fullmatch(r"(\w+);", line)):
            found[symbol[1]] = (version, number)
    return found


def checkVersions(path, rule, root):
    """path: the library of a rule: its script, and the headers that declare what it holds."""
    script = scripted(os.path.join(root, rule["script"]))
    declared = set()
    for header in glob.glob(os.path.join(root, rule["headers"])):
        with open(header, encoding="utf-8") as file:
            declared |= set(re.findall(rule["declaration"], file.read()))
    found = versioned(path)
    wrong = [(line, f"names '{symbol}', which no header declares") for symbol, (_, line) in script.items() if symbol not in declared]
    wrong += [(1, f"does not name '{symbol}', which a header declares") for symbol in sorted(declared - set(script))]
    wrong += [(line, f"'{symbol}' has the version '{found.get(symbol, '')}' in {path}, not {version}" if symbol in found
               else f"{path} does not export '{symbol}'")
              for symbol, (version, line) in script.items() if found.get(symbol) != version]
    wrong += [(1, f"does not name '{symbol}', which {path} exports") for symbol in sorted(set(found) - set(script))]
    return [Violation(rule["script"], line, "symbols", message) for line, message in wrong]


def check(path, rules, root):
    name = os.path.basename(path)
    if rule := rules.get("versioned", {}).get(name.split(".")[0]):
        try:
            return checkVersions(path, rule, root)
        except (OSError, subprocess.CalledProcessError) as error:
            return [Violation(path, 1, "symbols", f"cannot be read: {error}")]
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
    p.add_argument("plugins", metavar="library", nargs="+", help="the .so files")
    args = p.parse_args(argv)
    rules = common.loadRules(args.rules)["symbols"]
    violations = [v for path in args.plugins for v in check(path, rules, args.root)]
    return common.finish(violations, f"symbols of {len(args.plugins)} libraries")


if __name__ == "__main__":
    sys.exit(main())
