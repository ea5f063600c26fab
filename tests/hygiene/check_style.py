#!/usr/bin/env python3
"""What clang-format does not see: one statement a line, no conditional within a conditional, functions of at most 60 lines.

A tokenizer and a stack of brackets know enough of C++ for that; they see neither types nor what a macro becomes.
style_known.toml counts what files had before the rules were made: a count may only fall.
"""

import os
import re
import sys
import tomllib
from typing import NamedTuple

import common
from common import Violation

TOKEN = re.compile(r"""
    //[^\n]* | /\*.*?\*/                                                  # comments
  | R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)" | "(?:\\.|[^"\\\n])*"            # strings
  | (?<!\w)'(?:\\.|[^'\\\n])*'                                            # characters
  | [A-Za-z_]\w* | \d(?:[\w.]|'(?=\w))*                                   # names, numbers
  | :: | -> | [-+*/%|&^]?=(?!=) | [<>=!]= | && | \|\| | \S""", re.VERBOSE | re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*\#(?:[^\n\\]|\\.)*(?:\\\n(?:[^\n\\]|\\.)*)*", re.MULTILINE)
ASSIGNS = re.compile(r"(?:[-+*/%|&^]|<<|>>)?=")
NAME = re.compile(r"[A-Za-z_]\w*")
TYPES = {"namespace", "class", "struct", "union", "enum", "extern"}
CONTROLS = {"if", "while", "switch", "for", "catch", "return", "case"}


class Token(NamedTuple):
    text: str
    line: int


class Bracket(NamedTuple):
    """An open bracket: what it encloses, and the tokens of the statement that it interrupts."""
    kind: str  # scope (of a namespace or type), enum, function, block, initializer, group, call
    line: int
    head: list
    conditionals: list


def tokensOf(text):
    """The tokens of a source; comments and directives are none."""
    text = DIRECTIVE.sub(lambda directive: "\n" * directive.group().count("\n"), text)
    line, last = 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", last, match.start())
        last = match.start()
        if not match.group().startswith(("//", "/*")):
            yield Token(match.group(), line)


def kindOfBrace(head, stack):
    """What an opening brace begins, by the statement before it."""
    words = [token.text for token in head]
    last = words[-1] if words else ""
    inScope = all(bracket.kind == "scope" for bracket in stack)
    if "enum" in words[:2]:
        return "enum"
    if words and "(" not in words and TYPES & set(words) and "=" not in words:
        return "scope"
    if "extern" in words[:1] or "namespace" in words:  # before it may stand a macro, which ends no statement
        return "scope"
    if last in ("=", ",", "(", "return") or (stack and stack[-1].kind == "initializer"):
        return "initializer"
    if inScope and "(" in words:
        return "function"
    isBody = not words or last in (")", "]", "mutable", "noexcept", "else", "do", "try", ":", "override", "const") or "->" in words
    return "block" if isBody else "initializer"


def declares(words):
    """Whether a statement begins with a type and a name, as no assignment does."""
    for before, after in zip(words, words[1:]):
        if NAME.fullmatch(after) and (NAME.fullmatch(before) or before in (">", "&", "&&")):
            return True
    return len(words) > 2 and words[1] == "*"


def joins(head):
    """Whether a statement has two assignments with a comma between them."""
    words = [token.text for token in head]
    while words and words[0] in ("else", *CONTROLS):  # what stands before the statement
        rest = words[1:]
        words = rest[rest.index(")") + 1:] if rest and rest[0] == "(" and ")" in rest else rest
    places = [i for i, word in enumerate(words) if ASSIGNS.fullmatch(word)]
    if len(places) < 2 or declares(words[:places[0]]) or "using" in words:
        return False
    return any("," in words[a:b] for a, b in zip(places, places[1:]))


class Reader:
    """Walks the tokens of one source and collects what breaks a rule, as (line, message)."""

    def __init__(self, longest):
        self.longest, self.found = longest, []
        self.stack, self.head, self.conditionals = [], [], []

    def read(self, text):
        for token in tokensOf(text):
            if token.text in ("(", "[", "{"):
                self.open(token)
            elif token.text in (")", "]", "}"):
                self.close(token)
            elif token.text == ";":
                self.endStatement()
            else:
                self.add(token)
        return self.found

    def add(self, token):
        if token.text == ",":
            self.conditionals = []
        elif token.text == "?":
            if self.conditionals:
                self.found.append((token.line, "a conditional operator within another one: use if, switch or a table"))
            self.conditionals.append(token.line)
        self.head.append(token)

    def open(self, token):
        if token.text == "{":
            kind = kindOfBrace(self.head, self.stack)
        else:
            before = self.head[-1].text if self.head else ""
            isCall = token.text == "[" or (re.match(r"[\w>\])]", before) and before not in CONTROLS)
            kind = "call" if isCall else "group"
        self.stack.append(Bracket(kind, token.line, self.head + [token], self.conditionals))
        self.head = []
        self.conditionals = list(self.conditionals) if kind == "group" else []

    def close(self, token):
        if not self.stack:
            return
        bracket = self.stack.pop()
        lines = token.line - bracket.line + 1
        if bracket.kind == "function" and lines > self.longest:
            self.found.append((bracket.line, f"a function of {lines} lines, at most {self.longest}"))
        endsStatement = bracket.kind in ("scope", "enum", "function", "block") and not self.within(("call", "group", "initializer"))
        self.head = [] if endsStatement else bracket.head + [token]
        self.conditionals = [] if endsStatement else bracket.conditionals

    def within(self, kinds):
        return bool(self.stack) and self.stack[-1].kind in kinds

    def endStatement(self):
        isFor = self.within(("group", "call")) and any(token.text == "for" for token in self.stack[-1].head[-2:])
        if not isFor and not self.within(("enum",)) and joins(self.head):
            self.found.append((self.head[0].line, "a comma joins two assignments: one statement a line"))
        self.head, self.conditionals = [], []


def knownIn(root):
    """How many violations each file of the tree may keep."""
    path = os.path.join(root, "tests/hygiene/style_known.toml")
    if not os.path.exists(path):
        return {}
    with open(path, "rb") as file:
        return tomllib.load(file)


def main(argv=None):
    args = common.parser(__doc__).parse_args(argv)
    root, rules = os.path.abspath(args.root), common.loadRules(args.rules)["style"]
    known = knownIn(root)
    violations = []
    for path in common.listFiles(root):
        if not common.matchesAny(path, rules["sources"]) or common.matchesAny(path, rules["not_checked"]):
            continue
        text = "\n".join(common.readLines(root, path))
        found = [Violation(path, line, "style", message) for line, message in Reader(rules["longest_function"]).read(text)]
        if len(found) > known.get(path, 0):
            violations += found
        elif len(found) < known.get(path, 0):
            violations.append(Violation(path, 1, "style", f"style_known.toml says {known[path]}, there are {len(found)}: lower it"))
    return common.finish(violations, "style")


if __name__ == "__main__":
    sys.exit(main())
