#!/usr/bin/env python3
"""Who may include whom: the dependency table of rules.toml against every #include and every candela_add_room()."""

import os
import re
import sys

import common
from common import Violation

INCLUDE = re.compile(r'\s*#\s*include(?:_next)?\s*(?:"([^"]+)"|<([^>]+)>|(\S.*))')
ADD_ROOM = re.compile(r"candela_add_room\s*\(([^)]*)\)", re.S)


class Rooms:
    """Which room a path lies in, and which rooms that one may include."""

    def __init__(self, rules):
        self.rules = rules["room"]

    def of(self, path):
        """(identity, rule) of the room, or None. The identity tells two folders of one "dir/*" rule apart."""
        best = None
        for rule in self.rules:
            place = rule["path"]
            if place.endswith("/*"):
                parent = place[:-2]
                if not common.below(path, parent) or path.count("/") <= parent.count("/") + 1:
                    continue
                identity = "/".join(path.split("/")[:parent.count("/") + 2])
            elif common.below(path, place):
                identity = place
            else:
                continue
            rank = (len(identity), not place.endswith("/*"))
            if best is None or rank > best[0]:
                best = (rank, identity, rule)
        return best and best[1:]

    def allows(self, source, target, header=None):
        if source[0] == target[0] or "*" in source[1]["may"] or target[1]["name"] in source[1]["may"]:
            return True
        return header is not None and common.matchesAny(header, source[1].get("may_headers", []))


class Checker:
    def __init__(self, root, rules):
        self.root, self.rules, self.rooms = root, rules, Rooms(rules)
        self.files = common.listFiles(root)
        self.known = set(self.files)
        self.sources = [f for f in self.files if f.endswith(common.SOURCES)]
        self.tops = {rule["path"].split("/")[0] for rule in rules["room"]}
        self.includes = {f: list(self.readIncludes(f)) for f in self.sources}
        self.violations = []

    def readIncludes(self, path):
        """(line, spelled name, path in the repository or None) of every include in a file."""
        inComment = False
        for number, line in enumerate(common.readLines(self.root, path), 1):
            if inComment or line.lstrip().startswith("/*"):
                inComment = "*/" not in line
                continue
            match = INCLUDE.match(line)
            if match:
                quoted, angled, computed = match.groups()
                name = quoted or angled or computed
                yield number, name, None if computed else self.resolve(path, name, bool(quoted))

    def resolve(self, source, name, quoted):
        folders = [os.path.dirname(source)] if quoted else []
        for folder in folders + ["", "backend_api/include", "include"]:
            path = os.path.normpath(os.path.join(folder, name))
            if path in self.known:
                return path
        path = os.path.normpath(os.path.join(os.path.dirname(source), name) if name.startswith(".") else name)
        if path.split("/")[0] in self.tops:
            return path
        if path.startswith("candela/") and not path.endswith(".pb.h"):
            top = "include" if path.startswith("candela/candela.") else "backend_api/include"
            return f"{top}/{path}"
        return None

    def thirdParty(self, name):
        return next((t for t in self.rules["third_party"] if common.matchesAny(name, t["headers"])), None)

    def isSystem(self, name):
        return bool(re.fullmatch(r"[a-z_0-9]+", name)) or common.matchesAny(name, self.rules["system"]["headers"])

    def fail(self, path, line, rule, message):
        self.violations.append(Violation(path, line, rule, message))

    def checkRooms(self):
        for source in self.sources:
            room = self.rooms.of(source)
            if room is None:
                self.fail(source, 1, "room", "lies in no room of rules.toml")
                continue
            for line, name, path in self.includes[source]:
                if path is None:
                    self.checkOutside(source, line, name)
                    continue
                target = self.rooms.of(path)
                if target is None:
                    self.fail(source, line, "room", f"'{name}' lies in no room of rules.toml")
                elif not self.rooms.allows(room, target, path):
                    self.fail(source, line, "include",
                              f"room '{room[1]['name']}' may not include '{name}' of room '{target[1]['name']}'")

    def checkOutside(self, source, line, name):
        party = self.thirdParty(name)
        if party:
            if not common.belowAny(source, party["allowed"]):
                self.fail(source, line, "third_party",
                          f"{party['name']} ('{name}') is only for {', '.join(party['allowed'])}")
        elif not self.isSystem(name):
            self.fail(source, line, "unknown", f"'{name}' is neither a file here nor a known dependency of rules.toml")

    def checkHeaders(self):
        """Headers with a rule of their own, and third parties that no header may carry into another room."""
        for rule in self.rules.get("header", []):
            for source in self.sources:
                if source == rule["path"]:
                    continue
                for line, name, path in self.includes[source]:
                    if path == rule["path"] and not common.belowAny(source, rule["allowed"]):
                        self.fail(source, line, "header", f"'{name}' is only for {', '.join(rule['allowed'])}: {rule['why']}")
                if common.belowAny(source, rule.get("never_reached_from", [])):
                    self.checkReach(source, lambda f, n, p, rule=rule: p == rule["path"], "header", rule["path"], rule["why"])
        for party in self.rules["third_party"]:
            if not party.get("sealed"):
                continue
            hit = lambda f, n, p, party=party: p is None and self.thirdParty(n) is party
            for source in self.sources:
                if not common.belowAny(source, party["allowed"]):
                    self.checkReach(source, hit, "third_party", party["name"], "it must stay inside its room")

    def checkReach(self, source, hit, rule, what, why):
        """Report each include of source through which, at a second step or later, something is reached."""
        for line, name, path in self.includes[source]:
            chain = path and self.chainTo(path, hit)
            if chain:
                self.fail(source, line, rule, f"'{name}' reaches {what} through {' -> '.join(chain)}: {why}")

    def chainTo(self, start, hit):
        queue, seen = [[start]], {start}
        while queue:
            chain = queue.pop(0)
            for _, name, path in self.includes.get(chain[-1], []):
                if hit(chain[-1], name, path):
                    return chain
                if path and path not in seen:
                    seen.add(path)
                    queue.append(chain + [path])
        return None

    def checkLinks(self):
        """DEPS of candela_add_room() name only rooms that the room may include."""
        calls, roomsOf = [], {}
        for path in self.files:
            if os.path.basename(path) != "CMakeLists.txt":
                continue
            text = "\n".join(line.split("#")[0] for line in common.readLines(self.root, path))
            for match in ADD_ROOM.finditer(text):
                words = match.group(1).split()
                if not words:
                    continue
                lists, current = {"SOURCES": [], "DEPS": [], "PRIVATE_DEPS": []}, None
                for word in words[1:]:
                    current = word if word in lists else current
                    if current and word != current:
                        lists[current].append(word)
                folder = os.path.dirname(path)
                places = [os.path.normpath(os.path.join(folder, s)) for s in lists["SOURCES"] if "$" not in s]
                rooms = [r for r in map(self.rooms.of, places or [folder + "/x"]) if r]
                line = text.count("\n", 0, match.start()) + 1
                calls.append((path, line, words[0], rooms, lists["DEPS"] + lists["PRIVATE_DEPS"]))
                roomsOf[words[0]] = rooms
        for path, line, name, rooms, deps in calls:
            for dep in deps:
                targets = roomsOf.get(re.sub(r"^(Candela::|candela_)", "", dep))
                if targets and not any(self.rooms.allows(s, t) for s in rooms for t in targets):
                    self.fail(path, line, "link", f"room '{name}' may not depend on '{dep}'")

    def run(self):
        self.checkRooms()
        self.checkHeaders()
        self.checkLinks()
        return self.violations


def main(argv=None):
    args = common.parser(__doc__).parse_args(argv)
    checker = Checker(os.path.abspath(args.root), common.loadRules(args.rules))
    return common.finish(checker.run(), f"includes of {len(checker.sources)} files")


if __name__ == "__main__":
    sys.exit(main())
