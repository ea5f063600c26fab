"""What the checks share: the rules, the list of files, and how a violation is reported."""

import argparse
import os
import subprocess
import sys
import tomllib
from fnmatch import fnmatchcase
from typing import NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = (".c", ".h", ".cc", ".cpp", ".hpp", ".inc")


class Violation(NamedTuple):
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.message}"


def listFiles(root):
    """Paths from root of all files that belong to the repository: tracked, or new and not ignored."""
    git = subprocess.run(["git", "-c", f"safe.directory={root}", "-C", root, "ls-files", "-z", "--cached", "--others",
                          "--exclude-standard"], capture_output=True)
    if git.returncode == 0 and os.path.exists(os.path.join(root, ".git")):
        names = git.stdout.decode().split("\0")
        return sorted({n for n in names if n and os.path.isfile(os.path.join(root, n))})
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [d for d in folders if d not in (".git", "build", "out", "__pycache__") and not d.startswith("build-")]
        found += [os.path.relpath(os.path.join(folder, n), root) for n in names]
    return sorted(found)


def readLines(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


def below(path, prefix):
    return path == prefix or path.startswith(prefix + "/")


def belowAny(path, prefixes):
    return any(below(path, p) for p in prefixes)


def matchesAny(name, globs):
    return any(fnmatchcase(name, g) for g in globs)


def parser(description):
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--root", default=os.path.dirname(os.path.dirname(HERE)), help="the repository (default: this one)")
    p.add_argument("--rules", default=os.path.join(HERE, "rules.toml"))
    return p


def loadRules(path):
    with open(path, "rb") as file:
        return tomllib.load(file)


def finish(violations, what):
    """Print what was found; the exit status: 0 clean, 1 violations."""
    for violation in sorted(violations):
        print(violation)
    print(f"{what}: {len(violations)} violation{'' if len(violations) == 1 else 's'}" if violations else f"{what}: clean",
          file=sys.stderr if violations else sys.stdout)
    return 1 if violations else 0
