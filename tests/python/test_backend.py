"""Backends in Python: the example in this process and in the tool, and methods that go wrong."""

import importlib.util
import os
import tempfile
import unittest

import numpy as np

import candela
import common

EXAMPLE = os.path.join(common.SOURCE, "examples/python_backend/acme.py")


def example():
    spec = importlib.util.spec_from_file_location("acme", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Acme


class Broken(candela.Backend):
    """One fault for each kind that a model uses."""

    name = "broken"
    raises = True

    def binary(self, fn, a, b):
        if self.raises:
            raise ValueError(f"no {fn} today")
        return (a + b)[:1]


class Backends(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_in_this_process(self):
        plugin = example().plugin(self.folder)
        count = 8
        images = np.load(os.path.join(common.DIGITS, "test_images.npy"))[:count]
        scores = np.load(os.path.join(common.DIGITS, "expected_scores.npy"))[:count]
        session = candela.compile(os.path.join(common.DIGITS, "digits.onnx"), plugin, dims={"N": count})
        self.assertEqual(session.report()["placement"], {"native": 9, "emulated": 0, "host": 0})
        np.testing.assert_allclose(session(images), scores, rtol=1e-3, atol=1e-3)
        futures = [session.submit([images]) for _ in range(8)]
        for future in futures:
            np.testing.assert_allclose(future.result()[0], scores, rtol=1e-3, atol=1e-3)

    def test_written_twice(self):
        x = np.ones((2, 3), np.float32)
        sessions = [common.compile_text(common.TWO, example().plugin(self.folder)) for _ in range(2)]
        for session in sessions:
            self.assertEqual(session(x, x)[0][0, 0], 2)

    def test_without_methods(self):
        class Empty(candela.Backend):
            pass

        with self.assertRaisesRegex(candela.UnsupportedError, "Empty has no method that is named as a primitive"):
            Empty.plugin(self.folder)

    def test_in_the_tool(self):
        plugin = example().plugin(self.folder)
        found = candela.conform(plugin, size="quick")
        self.assertEqual((found.backend, found.failed, found.conformant), (plugin, [], True))
        self.assertGreater(found.report["rows"]["native"], 20)
        with open(EXAMPLE) as file:
            self.assertLessEqual(sum(1 for line in file if line.strip()), 60)

    def test_what_methods_raise(self):
        plugin = Broken.plugin(self.folder)
        x = np.ones((2, 3), np.float32)
        session = common.compile_text(common.TWO, plugin)
        for run in (session.run, lambda given: session.submit(given).result()):
            with self.assertRaisesRegex(candela.InternalError, "ValueError: no add today"):
                run([x, x])
        Broken.raises = False
        self.addCleanup(setattr, Broken, "raises", True)
        with self.assertRaisesRegex(candela.InternalError, r"binary gave an array of shape \(1,\), expected \(6,\)"):
            session(x, x)

    def test_a_plugin_without_its_class(self):
        plugin = example().plugin(self.folder)
        os.remove(plugin + ".python")
        with self.assertRaisesRegex(candela.InvalidArgumentError, "libcandela_acme.so.python: no such file"):
            candela.conform(plugin, size="quick")

    def test_interpreters_that_end(self):
        status, out, errors = common.run_python(f"""
import importlib.util, candela, common
spec = importlib.util.spec_from_file_location("acme", {EXAMPLE!r})
acme = importlib.util.module_from_spec(spec)
spec.loader.exec_module(acme)
import numpy as np
session = common.compile_text(common.TWO, acme.Acme.plugin({self.folder!r}))
x = np.ones((2, 3), np.float32)
futures = [session.submit([x, x]) for _ in range(32)]
print(session(x, x)[0][0, 0])
""")
        self.assertEqual((status, out, errors), (0, "2.0\n", ""))


if __name__ == "__main__":
    common.main()
