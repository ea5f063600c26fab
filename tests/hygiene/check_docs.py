#!/usr/bin/env python3
"""Rooms have a README, links between Markdown files lead somewhere, and the text is about the project."""

import os
import re
import sys
from urllib.parse import unquote

import common
from common import Violation

LINK = re.compile(r"!?\[[^\]\n]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
HEADING = re.compile(r"#{1,6}\s+(.*?)\s*#*\s*$")
BINARY = (".onnx", ".npy", ".pb", ".png", ".cdb", ".bin", ".gz", ".svg")


def proseLines(lines):
    """(number, line) outside of fenced code; inline code is blanked."""
    fence = None
    for number, line in enumerate(lines, 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark:
            fence = None if fence and mark.group(1).startswith(fence) else fence or mark.group(1)
        elif not fence:
            yield number, re.sub(r"`[^`]*`", lambda m: "`" + " " * (len(m.group()) - 2) + "`", line)


def anchors(lines):
    """The anchors of a file's headings, spelled as code hosts spell them."""
    found, count, fenced = set(), {}, False
    for line in lines:
        if re.match(r"\s*(```|~~~)", line):
            fenced = not fenced
        match = None if fenced else HEADING.match(line)
        if match:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match.group(1))
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            found.add(slug if slug not in count else f"{slug}-{count[slug]}")
            count[slug] = count.get(slug, 0) + 1
    return found


def checkReadmes(files, rules):
    for parent in rules["readme_in_each"]:
        depth = parent.count("/") + 1
        folders = {"/".join(f.split("/")[:depth + 1]) for f in files if common.below(f, parent) and f.count("/") > depth}
        for folder in sorted(folders):
            if f"{folder}/README.md" not in files:
                yield Violation(f"{folder}/README.md", 1, "readme", "is missing: what comes in, what goes out, "
                                "what never stands here, where its tests are")


def checkLinks(root, files):
    known = set(files)
    folders = {os.path.dirname(f) for f in files}
    folders |= {"/".join(d.split("/")[:i]) for d in folders for i in range(1, d.count("/") + 1)}
    for path in (f for f in files if f.endswith(".md")):
        for number, line in proseLines(common.readLines(root, path)):
            for target in LINK.findall(line):
                if re.match(r"[a-z][a-z0-9+.-]*:", target):
                    continue
                place, _, anchor = unquote(target).partition("#")
                goal = os.path.normpath(os.path.join(os.path.dirname(path), place)) if place else path
                if goal != "." and goal not in known and goal not in folders:
                    yield Violation(path, number, "link", f"'{target}' leads nowhere")
                elif anchor and goal.endswith(".md") and anchor not in anchors(common.readLines(root, goal)):
                    yield Violation(path, number, "link", f"'{target}': no such heading")


def checkWords(root, files, rules):
    patterns = [(re.compile(r["pattern"], re.I), r["files"], r["why"]) for r in rules["forbidden"]]
    for path in files:
        wanted = [(p, why) for p, globs, why in patterns
                  if common.matchesAny(path, globs) or common.matchesAny(os.path.basename(path), globs)]
        if not wanted or path.endswith(BINARY):
            continue
        with open(os.path.join(root, path), "rb") as file:
            data = file.read()
        if b"\0" in data[:4096]:
            continue
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            for pattern, why in wanted:
                match = pattern.search(line)
                if match:
                    yield Violation(path, number, "word", f"'{match.group().strip()}': {why}")


def main(argv=None):
    args = common.parser(__doc__).parse_args(argv)
    root, rules = os.path.abspath(args.root), common.loadRules(args.rules)["docs"]
    files = common.listFiles(root)
    violations = [*checkReadmes(files, rules), *checkLinks(root, files), *checkWords(root, files, rules)]
    return common.finish(violations, f"documentation of {sum(f.endswith('.md') for f in files)} Markdown files")


if __name__ == "__main__":
    sys.exit(main())
