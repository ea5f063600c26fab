#!/usr/bin/env python3
"""What is installed is packaged, and what was installed is found by pkg-config.

usage: test_packages.py BUILD
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# A package of Debian has its own form of these.
NOT_IN_PACKAGES = {"licence"}


def said(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def components():
    """Those that a whole installation has."""
    rule = re.compile(r'^ *if\(CMAKE_INSTALL_COMPONENT STREQUAL "([^"]*)" OR NOT CMAKE_INSTALL_COMPONENT\)', re.M)
    return {name for script in BUILD.rglob("cmake_install.cmake") for name in rule.findall(script.read_text())} - {"Unspecified"}


def files_below(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()}


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="candela_package_", dir=BUILD)
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        config = (BUILD / "CPackConfig.cmake").read_text()
        cls.packaged = re.search(r'set\(CPACK_COMPONENTS_ALL "([^"]*)"\)', config)[1].split(";")
        groups = dict(re.findall(r'set\(CPACK_COMPONENT_(\S+)_GROUP "([^"]*)"\)', config))
        cls.package_of = {name: groups.get(name.upper()) for name in cls.packaged}
        cls.whole = cls.folder / "whole"
        said("cmake", "--install", BUILD, "--prefix", cls.whole, "--strip")

    def test_each_component_is_in_one_package(self):
        self.assertGreater(len(components()), 5)
        self.assertEqual(components() - set(self.packaged), NOT_IN_PACKAGES)
        self.assertEqual(len(self.packaged), len(set(self.packaged)))
        self.assertEqual([name for name in self.packaged if not self.package_of[name]], [])

    def test_each_file_is_in_one_package(self):
        owner = {}
        for component in self.packaged:
            place = self.folder / component
            said("cmake", "--install", BUILD, "--prefix", place, "--component", component, "--strip")
            for path in files_below(place):
                self.assertNotIn(path, owner, f"{path}: in {self.package_of[component]} by {component} too")
                owner[path] = self.package_of[component]
            shutil.rmtree(place, ignore_errors=True)
        left = files_below(self.whole) - set(owner)
        self.assertEqual({path for path in left if not path.endswith("/LICENSE")}, set())
        for path, package in (("bin/candela", "candela"), ("include/candela/candela.h", "libcandela-dev"),
                              ("include/candela/cdl.h", "libcandela-dev")):
            self.assertEqual(owner[path], package)
        names = {path.rsplit("/", 1)[-1]: package for path, package in owner.items()}
        for name, package in (("libcandela.so", "libcandela-dev"), ("libcandela.so.0", "libcandela0"), ("candela.pc", "libcandela-dev"),
                              ("libcandela_template.so", "candela"), ("libcandela_cpu.so", "candela-backend-cpu"),
                              ("candela_cpu_compiler.so", "candela-backend-cpu"), ("libcandela_npu_sim.so", "candela-backend-npu-sim"),
                              ("cdl_npu.sv", "candela-backend-npu-sim"), ("libcandela_simulator.a", "candela-simulator-dev")):
            self.assertEqual(names[name], package, name)
        for package in set(self.package_of.values()):
            for name in ("copyright", "changelog.Debian.gz"):
                self.assertEqual(owner.get(f"share/doc/{package}/{name}"), package)

    def pkg_config(self, prefix, *arguments):
        [folder] = prefix.rglob("pkgconfig")
        return said("pkg-config", *arguments, env={"PATH": "/usr/bin:/bin", "PKG_CONFIG_PATH": str(folder)}).split()

    def test_pkg_config_builds_where_it_was_moved(self):
        moved = self.folder / "moved"
        self.whole.rename(moved)
        self.addCleanup(moved.rename, self.whole)
        version = said(moved / "bin/candela", "--version").strip()
        names = [path.stem for path in moved.rglob("*.pc")]
        for name in names:
            self.assertEqual(self.pkg_config(moved, "--modversion", name), [version])
        hello, digits = self.folder / "hello", SOURCE / "examples/digits"
        said("c++", "-std=c++17", "-O0", SOURCE / "examples/hello_run/main.cpp", *self.pkg_config(moved, "--cflags", "--libs", "candela"),
             "-o", hello)
        [library] = moved.rglob("libcandela.so.0")
        answer = said(hello, digits / "digits.onnx", digits / "test_images.npy", env={"LD_LIBRARY_PATH": str(library.parent)})
        self.assertGreaterEqual(answer.count("\n"), 10)
        if "candela-simulator" in names:
            said("c++", "-std=c++20", "-fsyntax-only", SOURCE / "tests/package/simulator/main.cpp",
                 *self.pkg_config(moved, "--cflags", "candela-simulator"))
            self.assertIn("-lfmt", self.pkg_config(moved, "--libs", "candela-simulator"))

    def test_changelog_is_of_this_version(self):
        version = said(self.whole / "bin/candela", "--version").strip()
        first = (SOURCE / "packaging/debian/changelog").read_text().splitlines()[0]
        self.assertIn(f"({version}-1)", first)

    def test_symbols_file_is_that_of_the_linker_script(self):
        script = (SOURCE / "core/runtime/api/libcandela.map").read_text()
        names = re.findall(r"^ +(candela_\w+);", script, re.M)
        symbols = (BUILD / "packaging/symbols").read_text().splitlines()
        self.assertRegex(symbols[0], r"^libcandela\.so\.\d+ libcandela\d+ #MINVER#$")
        self.assertEqual([line.split("@")[0].strip() for line in symbols if "candela_" in line], names)


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)
