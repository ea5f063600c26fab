"""A wheel of this build, installed in an environment of its own, used there, and taken away again.

usage: test_wheel.py BUILD
"""

import glob
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DIGITS = os.path.join(SOURCE, "examples/digits")
FIVE_LINES = f"""
import candela, numpy
images, labels = (numpy.load(f"{DIGITS}/test_{{what}}.npy") for what in ("images", "labels"))
for backend in sys.argv[1:]:
    scores = candela.compile("{DIGITS}/digits.onnx", backend)(images)
    print(backend, (scores.argmax(1) == labels).sum())
"""


def said(*command, status=0, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != status:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def files_below(folder):
    return {os.path.join(where, name) for where, _, names in os.walk(folder) for name in names}


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="candela_wheel_")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        said(os.path.join(SOURCE, "scripts/wheel"), "--build", BUILD, "--output", cls.folder, timeout=300)
        [cls.wheel] = glob.glob(os.path.join(cls.folder, "candela-*.whl"))

    def test_what_is_in_it(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            names = set(wheel.namelist())
        for name in ("candela/py.typed", "candela/_native.pyi", "candela/bin/candela", "candela/lib/libcandela.so.0",
                     "candela/lib/candela/libcandela_template.so"):
            self.assertIn(name, names)
        of_build = {os.path.basename(path) for path in glob.glob(os.path.join(BUILD, "lib/candela/*.so"))}
        self.assertEqual({os.path.basename(name) for name in names if name.startswith("candela/lib/candela/")}, of_build)
        self.assertFalse([name for name in names if name.endswith((".h", ".hpp", ".cmake"))
                          and "npu_rtl" not in name])

    def test_installed_used_and_uninstalled(self):
        venv = os.path.join(self.folder, "venv")
        said(sys.executable, "-m", "venv", "--system-site-packages", venv)  # NumPy is the system's
        python, command = os.path.join(venv, "bin/python"), os.path.join(venv, "bin/candela")
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        options = {"env": environment, "cwd": self.folder}
        before = files_below(venv)
        said(python, "-m", "pip", "--disable-pip-version-check", "install", "--no-index", "--no-deps", self.wheel, **options)

        backends = ["soft", "template"] + (["cpu"] if os.path.exists(f"{BUILD}/lib/candela/libcandela_cpu.so") else [])
        found = said(python, "-c", "import sys" + FIVE_LINES, *backends, **options)
        self.assertEqual(found, "".join(f"{backend} 359\n" for backend in backends))

        tool = os.path.join(BUILD, "bin/candela")
        for arguments, status in ((["--version"], 0), (["--help"], 0), (["run", "nowhere.onnx"], 2), (["nothing"], 2)):
            expected = said(tool, *arguments, status=status, **options)
            self.assertEqual(said(command, *arguments, status=status, **options), expected)
            self.assertEqual(said(python, "-m", "candela", *arguments, status=status, **options), expected)
        ran = said(command, "run", f"{DIGITS}/digits.onnx", "--backend", "template", "--dim", "N=1", "--random", "1", **options)
        self.assertIn("→ template", ran)

        said(python, "-m", "pip", "--disable-pip-version-check", "uninstall", "--yes", "candela", **options)
        self.assertEqual(files_below(venv) - before, set())


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main()
