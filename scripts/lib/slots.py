"""Who calls the slots of the plugin table, and who fills those of the host: what scripts/slot_callers prints and
tests/hygiene/check_slots.py judges.

A call is written in one of three ways, which a reader of the text can tell from a look whether a slot is there:

  CDL_SLOT(device_->table(), queue_wait)   handed to callSlot, askSlot or endBySlot
  table().memory_import(device, ...)       called where it stands
  ask(bench.table().queue_copy, ...)       handed on by name
"""

import re

HEADER = "backend_api/include/candela/cdl.h"
PLUGIN, HOST = "cdl_plugin_t", "cdl_host_t"
SOURCES = (".cpp", ".h")

SLOT = re.compile(r"^  \w[\w* ]*\(\*(\w+)\)\(", re.MULTILINE)
NAMED = re.compile(r"CDL_SLOT\(\s*[\w.>()-]+,\s*(\w+)\s*\)")
USED = re.compile(r"\btable_?(?:\(\))?(?:\.|->)(\w+)\s*[(,]")
FILLED = re.compile(r"\bhost\.(\w+)\s*=")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def slotsOf(header, struct):
    """The slots of a struct of cdl.h, in their order."""
    body = re.search(r"typedef struct \{((?:(?!typedef struct).)*)\} " + struct + ";", header, re.DOTALL)
    return SLOT.findall(COMMENT.sub("", body.group(1))) if body else []


def withoutComments(text):
    """The same lines, without what is said about them."""
    return COMMENT.sub(lambda comment: "\n" * comment.group().count("\n"), text)


def placesIn(text, pattern):
    """(slot, line) of each place where the pattern names one."""
    for match in pattern.finditer(text):
        yield match.group(1), text.count("\n", 0, match.start(1)) + 1


def callers(texts, header):
    """{struct: {slot: [(path, line)]}} of (path, text) pairs: calls of the plugin's slots, and what fills the host's."""
    found = {struct: {slot: [] for slot in slotsOf(header, struct)} for struct in (PLUGIN, HOST)}
    for path, text in texts:
        text = withoutComments(text)
        for struct, patterns in ((PLUGIN, (NAMED, USED)), (HOST, (FILLED,))):
            for pattern in patterns:
                for slot, line in placesIn(text, pattern):
                    if slot in found[struct]:
                        found[struct][slot].append((path, line))
    return found
