#!/usr/bin/env python3
"""make_headers.py API DIR: the headers of backend_api/include as four minor versions of the ABI would have them, in DIR/0.2 ..
DIR/0.5. 0.3 is today's header; 0.2 is as if the last slots had not been added yet; 0.4 and 0.5 have more at
the end of tables, argument structs and capability records, each on top of the one before."""
import pathlib
import re
import shutil
import sys

FIRST, TODAY, LAST = 2, 3, 5
# What 0.2 does not have yet: the last slots of two tables.
LATE = {"cdl_plugin_t": ["emit", "profile_begin", "profile_end", "cancel", "custom_op", "custom_op_decompose",
                          "memory_import"], "cdl_host_t": ["cache_get", "cache_put"]}
# What 0.4 and 0.5 add at the end of a struct, with the version in the name.
ADDED = {
    "cdl_plugin_t": "uint64_t (*later_{})(uint64_t value);",
    "cdl_host_t": "uint64_t (*later_{})(void* context, uint64_t value);",
    "cdl_capabilities_t": "uint64_t later_{};",
    "cdl_bindings_t": "uint64_t later_{};",
    "cdl_refusal_t": "uint64_t later_{};",
    "cdl_row_t": "uint64_t later_{};",
    "cdl_atom_t": "uint64_t later_{};",
}


def change(text, pattern, replacement):
    text, count = re.subn(pattern, replacement, text, count=1, flags=re.S)
    if count != 1:
        sys.exit(f"make_headers.py: cdl.h has changed: nothing matches {pattern}")
    return text


def older(cdl, entry, frozen):
    for struct, slots in LATE.items():
        for slot in slots:
            cdl = change(cdl, rf"\n  /\*(?:(?!\*/).)*\*/\n  [^;/]*\(\*{slot}\)[^;]*;", "")
            entry = re.sub(rf" *t\.{slot} = [^;]*;\n", "", entry)
            frozen = change(frozen, rf"CDL_FROZEN\({struct}, {slot}, [^;]*;\n", "")
        frozen = change(frozen, rf"CDL_FROZEN_SIZE\({struct}, [^;]*;\n", "")
    return cdl, entry, frozen


def newer(cdl, minor):
    for struct, field in ADDED.items():
        more = "".join(f"  {field.format(n)}\n" for n in range(TODAY + 1, minor + 1))
        cdl = change(cdl, rf"\n}} {struct};", "\n" + more.replace("\\", "") + f"}} {struct};")
    return cdl


def main():
    api, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    for minor in range(FIRST, LAST + 1):
        folder = out / f"0.{minor}" / "candela"
        shutil.copytree(api / "candela", folder, dirs_exist_ok=True)
        path = {name: folder / name for name in ("cdl.h", "backend/entry.hpp", "cdl_frozen.h")}
        cdl, entry, frozen = (path[name].read_text() for name in path)
        cdl = change(cdl, r"#define CDL_ABI_MINOR \d+", f"#define CDL_ABI_MINOR {minor}")
        for struct, slots in LATE.items():  # what all four take from the oldest
            first = min(int(re.search(rf"CDL_FROZEN\({struct}, {slot}, (\d+)", frozen)[1]) for slot in slots)
            frozen = change(frozen, rf"#define CDL_OLDEST_{struct} \d+", f"#define CDL_OLDEST_{struct} {first}")
        if minor < TODAY:
            cdl, entry, frozen = older(cdl, entry, frozen)
        cdl = newer(cdl, minor)
        for name, text in zip(path, (cdl, entry, frozen)):
            path[name].write_text(text)


if __name__ == "__main__":
    main()
