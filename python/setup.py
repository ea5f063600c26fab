"""Makes a wheel of a build of CMake: the package, the library, the plugins and the tool.

The environment names a build folder that is there (CANDELA_BUILD), configured for this Python; else one is made in
build/wheel, which takes as long as all of Candela.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPONENTS = ("python", "runtime", "plugins", "backend_cpu", "backend_npu_sim", "backend_opencl", "tools")
# What of an installation is in the wheel, below the package: headers and files of CMake stay out.
WANTED = ("_native*.so", "plugin/*.so", "bin/candela", "lib/candela/*.so", "share/candela/npu_rtl/**/*")


def version():
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"project\(Candela VERSION (\S+)", text).group(1)


def build_folder():
    given = os.environ.get("CANDELA_BUILD")
    if given:
        return pathlib.Path(given).resolve()
    folder = ROOT / "build/wheel"
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                    "-DCANDELA_WITH_TESTS=OFF", "-DCANDELA_PCH=ON", "-DCANDELA_UNITY=ON", f"-DCANDELA_PYTHON={sys.executable}"],
                   check=True)
    subprocess.run(["cmake", "--build", folder, "-j", str(os.cpu_count())], check=True)
    return folder


def install(folder, package):
    """Copies what a wheel has from a build into the package."""
    with tempfile.TemporaryDirectory() as temporary:
        prefix = pathlib.Path(temporary)
        for component in COMPONENTS:
            subprocess.run(["cmake", "--install", folder, "--component", component, "--prefix", prefix, "--strip"],
                           check=True, stdout=subprocess.DEVNULL)
        files = [path for pattern in WANTED for path in prefix.glob(pattern) if path.is_file()]
        for path in files:
            copy(path, package / path.relative_to(prefix))
        # A wheel has no links: the library is there by the one name that programs ask the loader for.
        library = next((prefix / "lib").glob("libcandela.so.?"))
        copy(library.resolve(), package / "lib" / library.name)


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


class Build(build_py):
    def run(self):
        super().run()
        install(build_folder(), pathlib.Path(self.build_lib) / "candela")


class BinaryDistribution(Distribution):
    """The wheel is for this Python and this machine."""

    def has_ext_modules(self):
        return True


setup(version=version(), packages=["candela"], package_data={"candela": ["py.typed", "*.pyi"]},
      cmdclass={"build_py": Build}, distclass=BinaryDistribution)
