#!/usr/bin/env python3
"""Pages of the manual, and completions of bash, zsh and fish, of what a built candela says of itself.

usage: manual.py --candela FILE --output DIR

Writes DIR/man/man1/*.1.gz, DIR/bash/candela, DIR/zsh/_candela and DIR/fish/candela.fish, the same bytes for the same help. What was
there before and belongs to no command is removed. Exit status: 1 where a line of the help has a form that is not known.
"""

import argparse
import gzip
import pathlib
import subprocess
import sys

import commands
import completion
import pages


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != data:
        path.write_bytes(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candela", required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    try:
        tool, version = commands.read_tool(arguments.candela)
    except (commands.Misunderstood, subprocess.SubprocessError, OSError) as error:
        print(f"manual.py: {error}", file=sys.stderr)
        return 1
    man = arguments.output / "man/man1"
    of_page = {man / f"{command.name}.1.gz": pages.page(command, version, tool) for command in tool.all()}
    for path, text in of_page.items():
        write(path, gzip.compress(text.encode(), mtime=0))
    for path in man.iterdir():
        if path not in of_page:
            path.unlink()
    write(arguments.output / "bash/candela", completion.bash(tool).encode())
    write(arguments.output / "zsh/_candela", completion.zsh(tool).encode())
    write(arguments.output / "fish/candela.fish", completion.fish(tool).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
