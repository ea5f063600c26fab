#!/usr/bin/env python3
"""Programs and libraries are searched for in no folder that depends on where a program was started.

A RUNPATH or RPATH with an empty or relative entry is the current folder to the loader, and so is a needed library whose name
has a slash but does not begin with one. Reads every ELF file below the folders that it is given, and those given by name.
"""

import mmap
import os
import re
import struct
import sys

import common
from common import Violation

NEEDED, STRTAB, RPATH, RUNPATH = 1, 5, 15, 29
LOAD, DYNAMIC = 1, 2


def isElf(path):
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(5) == b"\x7fELF\x02"  # of 64 bits


def dynamicEntries(data):
    """[(tag, text)] of what the loader reads of needed libraries and search paths."""
    offset, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    segments = [struct.unpack_from("<IIQQQQQQ", data, offset + i * size) for i in range(count)]
    entries = []
    for kind, _, at, _, _, length, _, _ in segments:
        if kind == DYNAMIC:
            entries += [struct.unpack_from("<qQ", data, at + i) for i in range(0, length - 15, 16)]
    if 0 in (tag for tag, _ in entries):
        entries = entries[:[tag for tag, _ in entries].index(0)]
    table = next((value for tag, value in entries if tag == STRTAB), None)
    strings = next((at + table - address for kind, _, at, address, _, length, _, _ in segments
                    if table is not None and kind == LOAD and address <= table < address + length), None)
    found = []
    for tag, value in entries:
        if tag in (NEEDED, RPATH, RUNPATH) and strings is not None:
            begin = strings + value
            found.append((tag, data[begin:data.find(b"\0", begin)].decode(errors="replace")))
    return found


def check(path):
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            entries = dynamicEntries(data)
    except (OSError, struct.error, ValueError) as error:
        return [Violation(path, 1, "search-path", f"cannot be read: {error}")]
    found = []
    for tag, text in entries:
        if tag == NEEDED:
            if "/" in text and not text.startswith("/"):
                found.append(Violation(path, 1, "search-path", f"needs '{text}', a path from the current folder"))
            continue
        for entry in dict.fromkeys(text.split(":")):
            if not re.match(r"/|\$ORIGIN(/|$)|\$\{ORIGIN\}(/|$)", entry):
                found.append(Violation(path, 1, "search-path",
                                       f"searches '{entry}' of '{text}', which is the current folder or lies in it"))
    return found


def main(argv=None):
    p = common.parser(__doc__)
    p.add_argument("paths", nargs="+", help="files, or folders with all that is below them")
    args = p.parse_args(argv)
    files = []
    for path in args.paths:
        if os.path.isdir(path):
            files += [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
        else:
            files.append(path)
    read = sorted({path for path in files if isElf(path)})
    if not read:
        return common.finish([Violation(args.paths[0], 1, "search-path", "there is no ELF file")], "search paths")
    return common.finish([v for path in read for v in check(path)], f"search paths of {len(read)} files")


if __name__ == "__main__":
    sys.exit(main())
