#!/usr/bin/env python3
"""Every slot of the plugin table has a caller in the core, but those that rules.toml names with a reason."""

import os
import sys

import common
from common import Violation

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(common.HERE)), "scripts", "lib"))
import slots  # noqa: E402

# What the core owes: who calls a plugin's slot, who fills one of the host's.
OWED = {slots.PLUGIN: "calls", slots.HOST: "fills"}


def lineOf(header, slot):
    return header[:header.find(f"(*{slot})")].count("\n") + 1


def check(root, rules):
    with open(os.path.join(root, slots.HEADER), encoding="utf-8") as file:
        header = file.read()
    without = {entry["slot"]: entry["why"] for entry in rules.get("without_caller", [])}
    paths = [path for path in common.listFiles(root) if common.below(path, "core") and path.endswith(slots.SOURCES)]
    texts = ((path, "\n".join(common.readLines(root, path))) for path in paths)
    for struct, places in slots.callers(texts, header).items():
        for slot, all_ in places.items():
            line = lineOf(header, slot)
            if not all_ and slot not in without:
                yield Violation(slots.HEADER, line, "slots", f"nothing in core/ {OWED[struct]} the slot {slot} of {struct}")
            elif all_ and slot in without:
                path, where = all_[0]
                yield Violation(path, where, "slots", f"{slot} has a caller: take it out of [[slots.without_caller]]")
            without.pop(slot, None)
    for slot in without:
        yield Violation(slots.HEADER, 1, "slots", f"[[slots.without_caller]] names {slot}, which is no slot")


def main(argv=None):
    arguments = common.parser(__doc__).parse_args(argv)
    rules = common.loadRules(arguments.rules)["slots"]
    return common.finish(list(check(arguments.root, rules)), "slots")


if __name__ == "__main__":
    sys.exit(main())
