#!/usr/bin/env python3
"""No code of the current folder runs because the tool was started there, and none of a file because somebody looked at it."""

import os
import shutil
import subprocess
import unittest

from attack import INTRUDER, MARK, PLUGIN, TEMPLATE, Attack

MODEL = "graph @g(%x: f32[4]) -> (%y: f32[4]) {\n  %y = relu %x : f32[4]\n}\n"


def checkedProgram(binary):
    """The NPU's binary with its checksum (simulator/binary) made anew."""
    total = 0xCBF29CE484222325
    for i, byte in enumerate(binary):
        if not 40 <= i < 48:
            total = (total ^ byte) * 0x100000001B3 % (1 << 64)
    return binary[:40] + total.to_bytes(8, "little") + binary[48:]


class SearchPaths(Attack):
    def testLibrariesOfTheCurrentFolder(self):
        listed = subprocess.run(["ldd", os.environ["TRUST_TOOL"]], capture_output=True, text=True, check=True).stdout
        for name in [line.split()[0] for line in listed.splitlines() if "=>" in line]:
            shutil.copy(INTRUDER, self.path(name))
        self.succeeds("--version")
        self.assertNoIntruder()

    def testPluginsOfTheCurrentFolder(self):
        inner = self.path("inner", "x")
        for folder in ("inner/candela", "inner/lib/candela", "lib/candela", "candela", "inner"):
            shutil.copy(PLUGIN, self.path(folder, "libcandela_intruder.so"))
        self.folder, outer = os.path.dirname(inner), self.folder
        listed = self.succeeds("backends")
        self.assertNotIn(b"intruder", listed.stdout)
        model = self.write("model.cdl", MODEL)
        self.refused("no backend named 'intruder'", "run", model, "--random", "1", "--backend", "intruder")
        self.folder = outer
        self.assertNoIntruder()

    def testRelativeFoldersOfThePluginPath(self):
        model = self.write("model.cdl", MODEL)
        shutil.copy(PLUGIN, self.path("plugins", "libcandela_intruder.so"))
        for path in ("plugins", ".", "./plugins", "../" + os.path.basename(self.folder) + "/plugins", "/none:plugins"):
            with self.subTest(path):
                env = {"CANDELA_PLUGIN_PATH": path}
                named = path.split(":")[-1]
                self.refused(f"CANDELA_PLUGIN_PATH: '{named}' is no absolute path", "run", model, "--random", "1",
                             "--backend", "intruder", env=env)
                self.run_("backends", env=env)
                self.assertNoIntruder()
        for path in ("", ":", "::"):  # the current folder to a shell
            self.refused("no backend named 'intruder'", "run", model, "--random", "1", "--backend", "intruder",
                         env={"CANDELA_PLUGIN_PATH": path})
        shutil.copy(TEMPLATE, self.path("plugins", "libcandela_mine.so"))
        self.succeeds("run", model, "--random", "1", "--backend", "mine",
                      env={"CANDELA_PLUGIN_PATH": os.path.join(self.folder, "plugins")})

    def testProgramsOfTheNpuNamePresets(self):
        """A binary's or a text's configuration is a name: the file of that name is not read."""
        self.write("evil.toml", "this is read\n")
        for name in ("evil.toml", "./evil.toml", self.path("evil.toml"), "/dev/zero", "../tiny"):
            self.write("p.npu", f".config {name}\nhalt\n")
            self.refused(f"there is no preset '{name}'", "npu", "as", "p.npu", "-o", "p.npubin")
        self.write("p.npu", ".config tiny\nhalt\n")
        self.succeeds("npu", "as", "p.npu", "-o", "p.npubin")
        with open(self.path("p.npubin"), "rb") as file:
            binary = file.read()
        self.assertEqual(binary.count(b"tiny\0"), 1)
        self.succeeds("npu", "run", "p.npubin")
        self.write("a\x1b", "this is read\n")
        self.write("q.npubin", checkedProgram(binary.replace(b"tiny\0", b"./a\x1b\0")))
        self.refused("no preset './a\\x1b'", "npu", "run", "q.npubin")

    def testNamesAreNoPaths(self):
        model = self.write("model.cdl", MODEL)
        shutil.copy(PLUGIN, self.path("up", "libcandela_x.so"))
        os.makedirs(self.path("plugins", "libcandela_", "x"))
        for name in ("..", "a\\b", "A", "x y", "x\n", "é", "x" * 65):
            with self.subTest(name):
                self.refused("no backend named", "run", model, "--random", "1", "--backend", name,
                             env={"CANDELA_PLUGIN_PATH": os.path.join(self.folder, "plugins")})

    def testInspectRunsNoCode(self):
        for name, source in (("library.so", INTRUDER), ("model.onnx", INTRUDER), ("model.cdb", INTRUDER), ("notes.txt", INTRUDER)):
            shutil.copy(source, self.path(name))
            for more in ([], ["--load"], ["--all"], ["--html", "page.html"]):
                self.refused(f"{name}: a shared library or program that is no plugin: it does not export cdl_backend_query",
                             "inspect", name, *more)
        for name in ("plugin.so", "model.onnx"):
            shutil.copy(PLUGIN, self.path(name))
            for more in ([], ["--all"], ["--json", "-"]):
                shown = self.succeeds("inspect", name, *more)
                self.assertIn(b"cdl_backend_query", shown.stdout)
                self.assertNoIntruder()
        self.assertIn(b"--load", self.succeeds("inspect", "plugin.so").stdout)
        self.assertNotEqual(self.run_("inspect", "plugin.so", "--load").returncode, 0)  # its query says so
        self.assertTrue(os.path.exists(self.path(MARK)), "--load runs it")

    def testInspectLoadsOnDemand(self):
        shutil.copy(TEMPLATE, self.path("libcandela_template.so"))
        self.assertNotIn(b"native rows", self.succeeds("inspect", "libcandela_template.so").stdout)
        self.assertIn(b"native rows", self.succeeds("inspect", "libcandela_template.so", "--load").stdout)

    def testWhatIsNoPluginIsNotLoadedAsOne(self):
        model = self.write("model.cdl", MODEL)
        shutil.copy(INTRUDER, self.path("library.so"))
        self.refused("library.so: not a backend plugin: it does not export cdl_backend_query", "run", model, "--random", "1",
                     "--backend", "./library.so")
        self.refused("library.so: not a backend plugin", "backends", "./library.so")
        shutil.copy(TEMPLATE, self.path("other.so"))
        self.succeeds("run", model, "--random", "1", "--backend", "other.so")  # named by whoever runs it
        self.succeeds("backends", "./other.so")


if __name__ == "__main__":
    unittest.main()
