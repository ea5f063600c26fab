"""The tool of the same installation."""

from __future__ import annotations

import os

import candela


def executable() -> str:
    """The path of the program `candela`. Raises NotFoundError where this installation has none."""
    path = os.path.join(os.path.dirname(os.path.abspath(candela.__file__)), "bin", "candela")
    if not os.access(path, os.X_OK):
        raise candela.NotFoundError(f"{path}: no such program: the tool is no part of this installation")
    return path
