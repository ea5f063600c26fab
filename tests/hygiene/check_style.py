#!/usr/bin/env python3
"""One statement a line: assignments that a comma joins, which clang-format leaves as they are."""

import os
import re
import sys

import common
from common import Violation

STRING = re.compile(r'"(\\.|[^"\\])*"')
PLACE = r"[\w.\[\]()>*-]+"
ASSIGNS = r"\s*[-+*/|&^]?=[^=]"
JOINED = re.compile(rf"\s*{PLACE}{ASSIGNS}.*,\s*{PLACE}{ASSIGNS}")
# What may have commas between assignments: declarations, enumerators, initializers and captures.
DECLARES = re.compile(r"\s*(const|auto|int|size_t|double|float|bool|uint|int64_t|static|constexpr|CDL_)")
HEAD = re.compile(r"\s*(?:\} )?(?:else )?(?:if|while) \(.*?\) (?=\w)")


def isJoined(line):
    """Whether the line holds two assignments with a comma between them."""
    code = STRING.sub('""', line).split("//")[0]
    if "for (" in code or DECLARES.match(code):
        return False
    code = re.sub(r"\[[^\]]*\](?=\()|\{[^{}]*\}", "", code)  # captures, initializers
    return bool(JOINED.match(HEAD.sub("", code)))


def main(argv=None):
    args = common.parser(__doc__).parse_args(argv)
    root, rules = os.path.abspath(args.root), common.loadRules(args.rules)["style"]
    violations = []
    for path in common.listFiles(root):
        if not common.matchesAny(path, rules["sources"]) or common.matchesAny(path, rules["not_checked"]):
            continue
        violations += [Violation(path, number, "style", "a comma joins two assignments: one statement a line")
                       for number, line in enumerate(common.readLines(root, path), 1) if isJoined(line)]
    return common.finish(violations, "style")


if __name__ == "__main__":
    sys.exit(main())
