"""The stub that people and type checkers read has the names that the module has."""

import ast
import os
import unittest

import candela
import common

STUB = os.path.join(common.SOURCE, "python/candela/_native.pyi")
OF_TYPING = {"Array", "Inputs", "Outputs", "SupportsArray", "SupportsDlpack"}
# Python has these of the buffer protocol since 3.12 alone; the others every class has.
OF_EVERY_CLASS = {name for name in dir(type("Any", (), {}))} | {"__buffer__", "_pybind11_conduit_v1_"}


def names_in(body):
    """{name: names within it} of functions, classes and variables."""
    found = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = names_in(node.body)
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = {}
        elif isinstance(node, ast.Assign):
            found[node.targets[0].id] = {}
    return found


class Stub(unittest.TestCase):
    def setUp(self):
        with open(STUB) as file:
            self.stub = names_in(ast.parse(file.read()).body)

    def test_names(self):
        of_module = {name for name in dir(candela._native) if not name.startswith("__")}
        self.assertEqual(set(self.stub) - OF_TYPING, of_module)

    def test_members(self):
        for name, members in self.stub.items():
            thing = getattr(candela._native, name, None)
            if isinstance(thing, type):
                with self.subTest(type=name):
                    self.assertEqual(set(members) - OF_EVERY_CLASS, set(dir(thing)) - OF_EVERY_CLASS)

    def test_all(self):
        for name in candela.__all__:
            self.assertTrue(hasattr(candela, name), name)
            self.assertIn(name, dir(candela))
            self.assertTrue(getattr(candela, name).__doc__, name)


if __name__ == "__main__":
    common.main()
