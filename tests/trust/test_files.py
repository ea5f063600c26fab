#!/usr/bin/env python3
"""A file that changes after it was loaded: the answer is that of before, or an error that names the file."""

import os
import subprocess
import sys
import unittest

from attack import SDK, Attack, field

SMALL, LARGE = 64, 3200  # rows of f32[rows,3000]: below and above what is copied (core/support/mapped_file.h)
COLUMNS = 3000

# Runs in a process of its own: load, change the file, run again, tell.
DRIVER = r"""
import ctypes, sys
class Tensor(ctypes.Structure):
    _fields_ = [("elem", ctypes.c_int), ("rank", ctypes.c_uint32), ("dims", ctypes.c_int64 * 16), ("data", ctypes.c_void_p),
                ("bytes", ctypes.c_uint64)]
sdk, call, path, file, change, rows = *sys.argv[1:6], int(sys.argv[6])
api, error, model = ctypes.CDLL(sdk), ctypes.create_string_buffer(1024), ctypes.c_void_p()
def load():
    if call == "load":
        return api.candela_load(path.encode(), ctypes.byref(model), error, 1024)
    return api.candela_compile(path.encode(), None, ctypes.byref(model), error, 1024)
if load(): sys.exit("load: " + error.value.decode())
values, out = (ctypes.c_float * rows)(*[1] * rows), (ctypes.c_float * %d)()
def run():
    x = Tensor(1, 2, (ctypes.c_int64 * 16)(1, rows), ctypes.cast(values, ctypes.c_void_p), 4 * rows)
    y = Tensor(1, 2, (ctypes.c_int64 * 16)(1, len(out)), ctypes.cast(out, ctypes.c_void_p), 4 * len(out))
    if api.candela_run(model, ctypes.byref(x), 1, ctypes.byref(y), 1, error, 1024):
        return "error: " + error.value.decode()
    return list(out)
before = run()
assert isinstance(before, list), before
with open(file, "r+b") as changed:
    if change == "cut":
        changed.truncate(100)
    else:
        size = changed.seek(0, 2)
        changed.seek(size // 2)
        changed.write(b"\x3f" * (size - size // 2))
after = run()
print("same" if after == before else after if isinstance(after, str) else "another answer")
api.candela_free(model)
""" % COLUMNS


class Files(Attack):
    def model(self, rows):
        return self.write("model.cdl", f"graph @g(%x: f32[1,{rows}]) -> (%y: f32[1,{COLUMNS}]) {{\n"
                          f"  %w = constant random(7) : f32[{rows},{COLUMNS}]\n"
                          f"  %y = matmul %x, %w : f32[1,{COLUMNS}]\n}}\n")

    def external(self, rows):
        """An ONNX file whose weights lie beside it."""
        def port(name, dims):
            shape = b"".join(field(1, field(1, d)) for d in dims)
            return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))
        with open(self.path("w.bin"), "wb") as file:
            file.write(b"\x00\x00\x80\x3f" * (rows * COLUMNS))
        weights = (field(1, rows) + field(1, COLUMNS) + field(2, 1) + field(8, "w") +
                   field(13, field(1, "location") + field(2, "w.bin")) + field(14, 1))
        node = field(1, "x") + field(1, "w") + field(2, "y") + field(4, "MatMul")
        graph = (field(1, node) + field(2, "g") + field(5, weights) + field(11, port("x", [1, rows])) +
                 field(12, port("y", [1, COLUMNS])))
        self.write("model.onnx", field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17)))
        return self.path("model.onnx")

    def after(self, call, path, file, change, rows):
        done = subprocess.run([sys.executable, "-c", DRIVER, SDK, call, path, file, change, str(rows)],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, f"{done.returncode}: {done.stderr}")
        return done.stdout.strip()

    def testBundle(self):
        for rows, change in ((SMALL, "cut"), (SMALL, "write"), (LARGE, "cut"), (LARGE, "write")):
            with self.subTest(rows=rows, change=change):
                self.succeeds("compile", self.model(rows), "-o", "model.cdb")
                file = self.path("model.cdb")
                told = self.after("load", file, file, change, rows)
                if rows == SMALL:
                    self.assertEqual(told, "same")
                else:
                    self.assertIn(f"error: {file}: it was changed while it was in use", told)

    def testModel(self):
        for rows, change in ((SMALL, "write"), (LARGE, "cut"), (LARGE, "write")):
            with self.subTest(rows=rows, change=change):
                path, weights = self.external(rows), self.path("w.bin")
                told = self.after("compile", path, weights, change, rows)
                if rows == SMALL:
                    self.assertEqual(told, "same")
                else:
                    self.assertIn(f"error: {os.path.realpath(weights)}: it was changed while it was in use", told)
                self.assertEqual(self.after("compile", self.external(rows), path, "cut", rows), "same")  # the file of nodes
        self.assertEqual(self.after("compile", self.model(LARGE), self.path("model.cdl"), "cut", LARGE), "same")

    def testReplacedFileIsNoMatter(self):
        """Who writes a new file and renames it changes nothing of what was loaded."""
        self.succeeds("compile", self.model(LARGE), "-o", "model.cdb")
        file = self.path("model.cdb")
        driver = DRIVER.replace('with open(file, "r+b") as changed:', 'import os\nos.rename(file, file + ".old")\n'
                                'with open(file, "w+b") as changed:')
        done = subprocess.run([sys.executable, "-c", driver, SDK, "load", file, file, "cut", str(LARGE)],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "same"), done.stderr)


if __name__ == "__main__":
    unittest.main()
