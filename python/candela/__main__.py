"""The command `candela` of an installed package, and `python -m candela`: the tool of the same installation."""

import os
import sys

from candela.tool import executable


def main():
    tool = executable()
    os.execv(tool, ["candela", *sys.argv[1:]])


if __name__ == "__main__":
    main()
