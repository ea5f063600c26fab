#!/usr/bin/env python3
"""A bundle names backends and says words and numbers as their options; it names no file."""

import os
import shutil
import unittest

from attack import MARK, PLUGIN, TEMPLATE, Attack, changedBundle

MODEL = ("graph @g(%x: i8[1,16,4,4]) -> (%y: i32[1,16,4,4]) {\n  %w = constant random(2) : i8[16,16,1,1]\n"
         "  %y = conv_integer %x, %w, _, _ {group = 1, pads = [0, 0, 0, 0], strides = [1, 1]} : i32[1,16,4,4]\n}\n")


class Bundles(Attack):
    def compiled(self, backend, *more):
        self.write("model.cdl", MODEL)
        self.succeeds("compile", "model.cdl", "--backend", backend, *more, "-o", "model.cdb")
        with open(self.path("model.cdb"), "rb") as file:
            return file.read()

    def testBackendIsNoPath(self):
        bundle = self.compiled(TEMPLATE)
        shutil.copy(PLUGIN, self.path("libcandela_intruder.so"))
        for name in ("libcandela_intruder.so", "./libcandela_intruder.so", self.path("libcandela_intruder.so"),
                     "../" + os.path.basename(self.folder) + "/libcandela_intruder.so", "intruder.so", "x/../intruder", ".",
                     "Template", "temp late", "template\n", "x" * 65, "\x1b[31m"):
            with self.subTest(name):
                self.write("changed.cdb", changedBundle(bundle, backend=name))
                for command in (["run", "changed.cdb", "--random", "1"], ["inspect", "changed.cdb"],
                                ["bench", "changed.cdb"]):
                    self.refused("changed.cdb: partition 0: backend '", *command)
        self.write("changed.cdb", changedBundle(bundle, backend="intruder"))
        self.refused("no backend named 'intruder'", "run", "changed.cdb", "--random", "1")
        self.write("changed.cdb", changedBundle(bundle))
        self.succeeds("run", "changed.cdb", "--random", "1")

    def testOptionsNameNoFile(self):
        bundle = self.compiled("npu_sim", "--option", "npu=tiny")
        self.succeeds("run", "model.cdb", "--random", "1")
        target = self.write("victim", "as it was\n")
        for options in ({"report": target}, {"report": "./victim"}, {"report": "victim"}, {"report": "../x/victim"},
                        {"binary": self.folder}, {"binary": "victim"}, {"npu": target}, {"npu": "./tiny.toml"},
                        {"timeline": "victim", "engine": "fast"}, {"report": "~"}, {"report": "$HOME"}, {"report": "-"},
                        {"report": ".profile"}, {"report": "a\nb"}, {"report": "a\\b"}):
            with self.subTest(options):
                self.write("changed.cdb", changedBundle(bundle, options={"npu": "tiny", **options}))
                name = next(iter(options))
                self.refused(f"{name}=", "run", "changed.cdb", "--random", "1")
                with open(target) as file:
                    self.assertEqual(file.read(), "as it was\n")
                self.assertEqual(sorted(os.listdir(self.folder)), ["changed.cdb", "model.cdb", "model.cdl", "victim"])

    def testWhoRunsItMayAllowFiles(self):
        self.compiled("npu_sim", "--option", "report=./counts")
        os.remove(self.path("counts")) if os.path.exists(self.path("counts")) else None
        self.refused("CANDELA_BUNDLE_FILES=1 allows it", "run", "model.cdb", "--random", "1")
        self.succeeds("run", "model.cdb", "--random", "1", env={"CANDELA_BUNDLE_FILES": "1"})
        self.assertTrue(os.path.exists(self.path("counts")))

    def testNamesOfProgramsAreNoPaths(self):
        self.write("model.cdl", MODEL.replace("@g(", '@"../../out"('))
        self.succeeds("run", "model.cdl", "--backend", "npu_sim", "--option", "binary=./programs", "--random", "1")
        inside = os.listdir(self.path("programs"))
        self.assertEqual(len(inside), 1)
        self.assertEqual(sorted(os.listdir(self.folder)), ["model.cdl", "programs"])


if __name__ == "__main__":
    unittest.main()
