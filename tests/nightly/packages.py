#!/usr/bin/env python3
"""Installs the packages in a Debian 12 that has nothing else, uses them as a user would, and takes them away again.

usage: tests/nightly/packages.py --build DIR [--whole] [--system TAR] [--keep] [--report FILE]

Makes the packages with scripts/packages, of the build in DIR or, with --whole, of a build of their own, hardened, which takes as long
as all of Candela. Then

  lint        lintian finds nothing, beside what packaging/debian says with a reason
  contents    what was compiled is stripped, has no search path, and each package names the others that it needs
  image       the steps of packaging/Containerfile, in a bare system that mmdebstrap makes (--system: that one)
  install     the other packages, and what a developer has
  manual      pages, and the completion of bash where the shell looks for it
  run         the digits by each backend, as a user without rights, options or variables of the environment
  python      the same by the package for Python, and the tool as functions
  build       hello_run and a user of the simulator with pkg-config and with CMake; what dpkg-shlibdeps says of hello_run
  purge       no file, package or folder is left
  archive     the archive, unpacked in two places one after the other, runs from either

A build in DIR that is not configured with CMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu fails lint: its libraries go to /usr/lib.
Needs root, lintian, mmdebstrap and Debian's mirror. Writes benchmarks/results/packages.json.

Exit status: 0 all passed, 1 something did not, 2 nothing could be made.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.packages.v1"
PACKAGES = ["candela", "candela-backend-cpu", "candela-backend-npu-sim", "candela-backend-opencl", "candela-examples",
            "candela-onnxruntime", "candela-simulator-dev", "libcandela-dev", "libcandela0", "python3-candela"]
EXAMPLES = "/usr/share/candela/examples"
DIGITS = f"{EXAMPLES}/digits"
RIGHT = "99.72 %"
USER = "reader"
HOME = f"/home/{USER}"
# Where each is right: the float network, or its integers.
BACKENDS = {"soft": "digits.onnx", "template": "digits.onnx", "cpu": "digits.onnx", "opencl": "digits.onnx",
            "npu_sim": "digits_int8.onnx"}
PYTHON = f"""
import candela, numpy, sys
images, labels = (numpy.load("{DIGITS}/test_" + name + ".npy") for name in ("images", "labels"))
for backend in ("soft", "cpu", "opencl"):
    scores = candela.compile("{DIGITS}/digits.onnx", backend)(images)
    print(backend, int((scores.argmax(1) == labels).sum()))
print(candela.inspect("{DIGITS}/digits.onnx").kind)
"""


class Failure(Exception):
    pass


def said(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, **options)
    if done.returncode:
        raise Failure(f"{command if isinstance(command, str) else ' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def expect(condition, text):
    if not condition:
        raise Failure(text)


def fields(package):
    """{field: text} of a package's control file."""
    lines = said(["dpkg-deb", "-f", package]).splitlines()
    return dict(line.split(": ", 1) for line in lines if re.match(r"[A-Z]\S*: ", line))


class System:
    """A Debian in a folder. Each command sees its own /proc."""

    def __init__(self, folder):
        self.folder = folder

    def said(self, script, user=None):
        inside = ["chroot", *(["--userspec", user] if user else []), self.folder, "/usr/bin/env", "-i",
                  "PATH=/usr/sbin:/usr/bin:/sbin:/bin", f"HOME={HOME if user else '/root'}", "LC_ALL=C.UTF-8",
                  "DEBIAN_FRONTEND=noninteractive", "bash", "-euc", script]
        return said(["unshare", "--mount", "--pid", "--fork", "bash", "-euc",
                     'mount -t proc proc "$0/proc"; mount --bind /dev "$0/dev"; mount --bind /sys "$0/sys"; exec "$@"', self.folder, *inside])

    def user(self, script):
        return self.said(f"cd; {script}", user=USER)

    def named(self):
        """Files and folders that have candela in their names, and packages."""
        found = self.said("find / -xdev -iname '*candela*' -not -path '/packages*' -not -path '/proc/*'; dpkg-query -W -f '${Package}\\n'")
        return sorted(line for line in found.splitlines() if "candela" in line.lower())


def make_packages(arguments):
    build = arguments.build / "packages" if arguments.whole else arguments.build
    given = [] if arguments.whole else ["--build", str(build)]
    said([ROOT / "scripts/packages", *given], cwd=ROOT)
    return build / "packages"


def file_of(folder, name):
    [path] = folder.glob(f"{name}_*.deb")
    return path


def lint(folder, _):
    found = said(["lintian", "--allow-root", *sorted(folder.glob("*.deb"))]).strip()
    expect(not found, f"lintian says:\n{found}")


def contents(folder, _):
    expect(sorted(path.name.split("_")[0] for path in folder.glob("*.deb")) == PACKAGES, f"{folder}: other packages than {PACKAGES}")
    same = f"(= {fields(file_of(folder, 'candela'))['Version']})"
    for name, needed in {"candela-backend-cpu": ["libllvm19", f"candela {same} | libcandela0 {same}"],
                         "candela-backend-opencl": ["ocl-icd-libopencl1"], "candela": ["libprotobuf32"],
                         "candela-simulator-dev": ["libfmt-dev", f"libcandela-dev {same}"], "libcandela-dev": [f"libcandela0 {same}"],
                         "python3-candela": [f"libcandela0 {same}", "libpython3.11", "python3 (<< 3.12)"]}.items():
        depends = fields(file_of(folder, name))["Depends"]
        for one in needed:
            expect(one in depends, f"{name} does not depend on {one}: {depends}")
    with tempfile.TemporaryDirectory(prefix="candela_packages_") as place:
        for package in sorted(folder.glob("*.deb")):
            said(["dpkg-deb", "-x", package, place])
        said([sys.executable, "-B", ROOT / "tests/hygiene/check_search_paths.py", place])
        for path in pathlib.Path(place).rglob("*"):
            if path.is_file() and not path.is_symlink() and path.open("rb").read(4) == b"\x7fELF":
                headers = said(["readelf", "-S", "-d", path])
                expect(".symtab" not in headers and ".debug_info" not in headers, f"{path}: not stripped")
                expect("RPATH" not in headers and "RUNPATH" not in headers, f"{path}: has a search path")


def steps_of_containerfile():
    """[(instruction, text)], and the defaults of its arguments."""
    text = re.sub(r"\\\n", "", re.sub(r"^#.*\n", "", (ROOT / "packaging/Containerfile").read_text(), flags=re.M))
    steps = [line.split(None, 1) for line in text.splitlines() if line.strip()]
    arguments = dict(step[1].split("=", 1) for step in steps if step[0] == "ARG")
    return steps, {name: value.strip('"') for name, value in arguments.items()}


def image(folder, system):
    expect(not system.named(), f"the bare system has {system.named()}")
    system.said(f"useradd --create-home {USER}")
    steps, arguments = steps_of_containerfile()
    for instruction, text in steps:
        if instruction == "COPY":
            pattern, target = text.split()
            (pathlib.Path(system.folder) / target.strip("/")).mkdir()
            for path in folder.glob(pattern):
                shutil.copy(path, f"{system.folder}/{target.strip('/')}")
        elif instruction == "RUN":
            defaults = "".join(f"{name}='{value}'; " for name, value in arguments.items())
            system.said(defaults + text)
    for package in ("candela", "candela-backend-cpu", "candela-backend-npu-sim", "candela-backend-opencl", "candela-examples"):
        expect(package in system.named(), f"the image has no package {package}")
    expect("Usage: candela" in system.user("candela --help"), "candela --help does not answer")


def install(folder, system):
    os.makedirs(f"{system.folder}/packages")
    for path in folder.glob("*.deb"):
        shutil.copy(path, f"{system.folder}/packages")
    system.said("apt-get update; apt-get install -y --no-install-recommends /packages/*.deb python3-numpy g++ cmake ninja-build "
                "pkgconf libsystemc-dev dpkg-dev")


def manual(_, system):
    """The page, and the completion of bash from where Debian's bash-completion looks for it."""
    system.said("apt-get install -y --no-install-recommends man-db bash-completion")
    page = system.user("man candela-run | cat")
    expect("--partition POLICY" in page, f"man candela-run shows {page[:500]}")
    answer = system.user("set +eu; source /usr/share/bash-completion/bash_completion; _completion_loader candela; "
                         "COMP_LINE='candela run --backend npu' COMP_POINT=25; _candela candela; echo ${COMPREPLY[@]}")
    expect(answer == "npu_sim\n", f"bash completes with {answer}")


def run(_, system):
    listed = system.user("candela backends")
    for backend, model in BACKENDS.items():
        expect(re.search(rf"^{backend}\s", listed, re.M), f"candela backends does not list {backend}:\n{listed}")
        answer = system.user(f"candela run {DIGITS}/{model} --backend {backend} --input images={DIGITS}/test_images.npy "
                             f"--labels {DIGITS}/test_labels.npy")
        expect(RIGHT in answer, f"{backend}: {answer}")
    system.user(f"candela compile {DIGITS}/digits.onnx --dim N=1 --backend cpu -o digits.cdb && candela run digits.cdb --random 1")


def python(_, system):
    answer = system.user(f"python3 -c '{PYTHON}'")
    expect(answer == "soft 359\ncpu 359\nopencl 359\nONNX model\n", f"Python answers {answer}")
    version = system.user("python3 -c 'import importlib.metadata; print(importlib.metadata.version(\"candela\"))'").strip()
    expect(version == system.user("candela --version").strip(), f"the package for Python has the version {version}")


def build(_, system):
    shutil.copytree(ROOT / "tests/package/simulator", f"{system.folder}{HOME}/simulator")
    system.said(f"chown -R {USER}: {HOME}")
    answers = [
        system.user(f"g++ -std=c++17 {EXAMPLES}/hello_run/main.cpp $(pkg-config --cflags --libs candela) -o hello && "
                    f"./hello {DIGITS}/digits.onnx {DIGITS}/test_images.npy"),
        system.user(f"cmake -G Ninja -S {EXAMPLES}/hello_run -B hello_build >/dev/null && cmake --build hello_build >/dev/null && "
                    f"hello_build/hello_run {DIGITS}/digits.onnx {DIGITS}/test_images.npy")]
    expect(answers[0] == answers[1] and answers[0].count("\n") >= 10, f"hello_run answers {answers}")
    exact = re.compile(r"^exact: [1-9]\d* cycles", re.M)
    for answer in (system.user("g++ -std=c++20 simulator/main.cpp $(pkg-config --cflags --libs candela-simulator) -o user && ./user"),
                   system.user("cmake -G Ninja -S simulator -B user_build >/dev/null && cmake --build user_build >/dev/null && "
                               "user_build/simulator_user")):
        expect(exact.search(answer), f"the user of the simulator answers {answer}")
    system.user("pkg-config --exists --print-errors candela-systemc candela-backend")
    depends = system.user("mkdir -p debian && echo 'Source: hello' >debian/control && dpkg-shlibdeps -O hello")
    expect("libcandela0 (>= 0.2)" in depends, f"dpkg-shlibdeps says {depends}")
    acme = system.user("candela new-backend acme acme && cmake -G Ninja -S acme -B acme/build >/dev/null && cmake --build acme/build "
                       f">/dev/null && candela run {DIGITS}/digits.onnx --dim N=1 --random 1 --backend acme/build/lib/candela/libcandela_acme.so")
    expect("→ acme" in acme, f"the new backend answers {acme}")


def purge(_, system):
    system.said("apt-get purge -y " + " ".join(PACKAGES))
    left = [path for path in system.named() if not path.startswith(HOME + "/")]
    expect(not left, f"left behind: {left}")
    expect(not os.path.exists(f"{system.folder}/usr/lib/python3/dist-packages/candela"), "the folder of the package for Python is left")


def archive(folder, _):
    [path] = folder.glob("candela-*.tar.gz")
    with tempfile.TemporaryDirectory(prefix="candela_archive_") as place:
        with tarfile.open(path) as packed:
            packed.extractall(place, filter="data")
        [sdk] = pathlib.Path(place).iterdir()
        for where in (f"{place}/with a blank", f"{place}/elsewhere"):
            sdk = sdk.rename(where)
            digits = f"{sdk}/share/candela/examples/digits"
            for backend, model in BACKENDS.items():
                answer = said([f"{sdk}/bin/candela", "run", f"{digits}/{model}", "--backend", backend, "--input",
                               f"images={digits}/test_images.npy", "--labels", f"{digits}/test_labels.npy"], cwd="/",
                              env={"PATH": "/usr/bin:/bin", "HOME": place})
                expect(RIGHT in answer, f"{where}: {backend}: {answer}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a whole build")
    parser.add_argument("--whole", action="store_true", help="make the packages in a build of their own below it")
    parser.add_argument("--system", type=pathlib.Path, help="a tar file of a bare Debian 12")
    parser.add_argument("--keep", action="store_true", help="leave the system there, and say where")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/packages.json")
    arguments = parser.parse_args()
    for tool, package in (("lintian", "lintian"), ("mmdebstrap", "mmdebstrap"), ("dpkg-shlibdeps", "dpkg-dev")):
        if not shutil.which(tool):
            parser.error(f"{tool} is missing; as root: apt-get install {package}")
    if os.geteuid():
        parser.error("only root may change the root")

    place = tempfile.mkdtemp(prefix="candela_system_")
    try:
        folder = make_packages(arguments)
        system = System(f"{place}/root")
        os.makedirs(system.folder)
        tar = arguments.system or pathlib.Path(place) / "system.tar"
        if not arguments.system:
            said(["mmdebstrap", "--variant=apt", "--include=ca-certificates", "bookworm", tar])
        said(["tar", "-xf", tar, "-C", system.folder])
        shutil.copy("/etc/resolv.conf", f"{system.folder}/etc/resolv.conf")
        # Nobody wants this system after a crash of the machine.
        pathlib.Path(f"{system.folder}/etc/dpkg/dpkg.cfg.d/unsafe-io").write_text("force-unsafe-io\n")
    except (Failure, OSError) as error:
        print(f"packages.py: {error}", file=sys.stderr)
        return 2

    results = []
    for check in (lint, contents, image, install, manual, run, python, build, purge, archive):
        try:
            check(folder, system)
            results.append({"check": check.__name__, "passed": True})
            print(f"{check.__name__:10} passed", flush=True)
        except (Failure, OSError, KeyError, ValueError) as error:
            results.append({"check": check.__name__, "passed": False, "reason": str(error)[:2000]})
            print(f"{check.__name__:10} FAILED  {error}", flush=True)
    sizes = [{"file": path.name, "bytes": path.stat().st_size, **({"depends": fields(path).get("Depends", "")} if path.suffix == ".deb" else {})}
             for path in sorted(folder.glob("*.deb")) + sorted(folder.glob("*.tar.gz"))]
    if arguments.keep:
        print(f"the system lies in {place}/root")
    else:
        shutil.rmtree(place)
    return nightly_report.finish(arguments, {"schema": SCHEMA, "date": nightly_report.now(), "packages": sizes, "results": results}, None)


if __name__ == "__main__":
    sys.exit(main())
