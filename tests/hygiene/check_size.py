#!/usr/bin/env python3
"""Lines of code per room, the figures that rules.toml names, and the limit that is a promise."""

import os
import re
import sys

import common
from common import Violation


def countCode(lines, path):
    """Lines that are neither blank nor only a comment."""
    hashed, count, inBlock = path.endswith((".py", ".sh")) or "." not in os.path.basename(path), 0, None
    for line in lines:
        text = line.strip()
        if inBlock:
            if inBlock in text:
                inBlock = None
            continue
        if not text:
            continue
        if hashed:
            quote = text[:3]
            if quote in ('"""', "'''"):
                if quote not in text[3:]:
                    inBlock = quote
                continue
            count += not text.startswith("#")
        elif text.startswith("/*"):
            rest = text.partition("*/")[2] if "*/" in text else None
            if rest is None:
                inBlock = "*/"
            elif rest and not rest.strip().startswith("//"):
                count += 1
        else:
            count += not text.startswith("//")
    return count


def sizes(root, rules):
    """{path: lines of code} of every counted file."""
    mark, found = re.compile(rules["generated_mark"]), {}
    for path in common.listFiles(root):
        isScript = path.startswith("scripts/") and "." not in os.path.basename(path)
        if not (path.endswith(tuple(rules["extensions"])) or isScript) or common.matchesAny(path, rules["not_counted"]):
            continue
        lines = common.readLines(root, path)
        if not mark.search("\n".join(lines[:5])):
            found[path] = countCode(lines, path)
    return found


def roomsOf(paths, rules):
    for place in rules["rooms"]:
        if place.endswith("/*"):
            parent = place[:-2]
            inside = [p for p in paths if common.below(p, parent) and p.count("/") > parent.count("/") + 1]
            yield from sorted({"/".join(p.split("/")[:parent.count("/") + 2]) for p in inside})
        else:
            yield place


def main(argv=None):
    args = common.parser(__doc__).parse_args(argv)
    root, rules = os.path.abspath(args.root), common.loadRules(args.rules)["size"]
    found = sizes(root, rules)
    for room in roomsOf(found, rules):
        lines = sum(n for p, n in found.items() if common.below(p, room))
        files = sum(common.below(p, room) for p in found)
        if files:
            print(f"{lines:8,d} lines  {files:4d} files  {room}")
    for figure in rules["figure"]:
        lines = sum(n for p, n in found.items() if common.belowAny(p, figure["paths"]))
        print(f"{lines:8,d}  {figure['name']}")
    violations = []
    for limit in rules["limit"]:
        # All lines of all files but prose count, comments and the build file too.
        lines = sum(len(common.readLines(root, p)) for p in common.listFiles(root)
                    if common.belowAny(p, limit["paths"]) and not p.endswith(".md"))
        print(f"{lines:8,d} of {limit['max']:,d}  {limit['name']}")
        if lines > limit["max"]:
            violations.append(Violation(limit["paths"][0], 1, "size",
                                        f"{limit['name']}: {lines:,d} lines, {limit['max']:,d} are allowed"))
    return common.finish(violations, "sizes")


if __name__ == "__main__":
    sys.exit(main())
