#!/usr/bin/env python3
"""Stored executables as a user meets them: what a run loads, needs and takes, and what is told where it cannot run.

  check_stored.py deploy CANDELA PLUGIN_FOLDER MODEL    without the compiler: runs, and compiling says what is missing
  check_stored.py processors CANDELA MODEL QEMU         on processors without AVX2 and without AVX-512
  check_stored.py figures CANDELA MODEL [ARG...]        size, memory and what is loaded are held; times are printed
"""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

COMPILER = "candela_cpu_compiler.so"


def call(command, environment=None, status=0):
    """The output of a command, which must end with `status`."""
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, **(environment or {})})
    if done.returncode != status:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode} instead of {status}:\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def expect(truth, text):
    if not truth:
        sys.exit("FAILED: " + text)


def scoresOf(output):
    return output[output.index("  output"):]


def runWithoutCompiler(candela, stored):
    """The output of a run, which must open the plugin and nothing of the compiler."""
    out, files = call([candela, "run", stored, "--random", "1"], {"LD_DEBUG": "files"})
    expect("libcandela_cpu.so" in files, "LD_DEBUG=files does not tell of the plugin")
    for name in (COMPILER, "libLLVM"):
        expect(name not in files, f"running a stored executable loads {name}")
    return out


def hasAvx512():
    with open("/proc/cpuinfo") as file:
        flags = set(re.search(r"^flags\s*:(.*)$", file.read(), re.MULTILINE)[1].split())
    return {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= flags


def deploy(candela, plugins, model):
    with tempfile.TemporaryDirectory() as folder:
        stored = f"{folder}/model.cdb"
        call([candela, "compile", model, "--dim", "N=2", "--backend", "cpu", "-o", stored])
        compiled, _ = call([candela, "run", model, "--dim", "N=2", "--random", "1", "--backend", "cpu"])

        out = runWithoutCompiler(candela, stored)
        expect(scoresOf(out) == scoresOf(compiled), f"other answers:\n{out}\n{compiled}")
        _, files = call([candela, "run", model, "--dim", "N=2", "--random", "1", "--backend", "cpu"], {"LD_DEBUG": "files"})
        expect(COMPILER in files and "libLLVM" in files, "compiling does not load the compiler: this test sees nothing")

        # An installation without it.
        bare = f"{folder}/bare"
        os.makedirs(f"{bare}/bin")
        os.makedirs(f"{bare}/lib/candela")
        tool = shutil.copy(candela, f"{bare}/bin/candela")
        shutil.copy(f"{plugins}/libcandela_cpu.so", f"{bare}/lib/candela")
        out, _ = call([tool, "run", stored, "--random", "1"])
        expect(scoresOf(out) == scoresOf(compiled), f"other answers without the compiler:\n{out}")
        _, error = call([tool, "run", model, "--dim", "N=2", "--random", "1", "--backend", "cpu"], status=2)
        expect(f"compiling needs {COMPILER}" in error and f"{bare}/lib/candela" in error, error)
        # Something else of that name, and a compiler from elsewhere.
        open(f"{bare}/lib/candela/{COMPILER}", "w").close()
        _, error = call([tool, "run", model, "--dim", "N=2", "--random", "1", "--backend", "cpu"], status=2)
        expect("cannot load the compiler" in error, error)
        os.remove(f"{bare}/lib/candela/{COMPILER}")
        call([tool, "run", model, "--dim", "N=2", "--random", "1", "--backend", "cpu"], {"CANDELA_PLUGIN_PATH": plugins})


def processors(candela, model, qemu):
    with tempfile.TemporaryDirectory() as folder:
        stored = f"{folder}/model.cdb"
        here, _ = call([candela, "run", model, "--dim", "N=2", "--random", "1", "--backend", "soft"])
        run = ["run", model, "--dim", "N=2", "--random", "1", "--backend"]
        call([candela, "compile", model, "--dim", "N=2", "--backend", "cpu", "-o", stored])

        # Nehalem: SSE4.2 is all it has. An illegal instruction would end with a signal.
        old = [qemu, "-cpu", "Nehalem", candela]
        out, _ = call(old + run + ["soft"])
        expect(scoresOf(out) == scoresOf(here), f"soft answers otherwise:\n{out}\n{here}")
        for command in (run + ["cpu"], ["run", stored, "--random", "1"]):
            _, error = call(old + command, status=2)
            lacks = re.search(r"cpu: this processor lacks ([\w, .]*), which the lowest tier \(x86-64-v3\) needs", error)
            expect(lacks, error)
            expect({"AVX", "AVX2", "FMA", "BMI2", "F16C"} <= set(lacks[1].split(", ")), error)
            expect("SSE4.2" not in lacks[1], error)
        call(old + ["backends"])

        # Haswell: AVX2 without AVX-512.
        haswell = [qemu, "-cpu", "Haswell", candela]
        for isa in ("avx512", "avx512vnni"):
            _, error = call(haswell + run + ["cpu", "--option", f"isa={isa}"], status=2)
            expect(f"isa={isa}: this machine has x86-64-v3; it lacks AVX512F" in error, error)
        if hasAvx512():
            _, error = call(haswell + ["run", stored, "--random", "1"], status=2)
            expect(re.search("stored executable was made for (avx512|amx)", error) and "this machine lacks AVX512F" in error, error)
        else:
            print("this machine has no AVX-512: what is compiled for it is not looked at")
            call(haswell + ["run", stored, "--random", "1"])
        call([candela, "compile", model, "--dim", "N=2", "--backend", "cpu", "--option", "isa=x86-64-v3", "-o", stored])
        call(haswell + ["run", stored, "--random", "1"])


def figures(candela, model, *args):
    with tempfile.TemporaryDirectory() as folder:
        stored, report = f"{folder}/model.cdb", f"{folder}/report.json"
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        call([candela, "compile", model, *args, "--backend", "cpu", "-o", stored])
        compileS = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

        def run(*more):
            """The usage of the run that took the least processor time, since others may use the machine too."""
            usages = []
            for _ in range(5):
                child = subprocess.Popen([candela, "run", stored, "--random", "1", "--json", report, *more],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                _, status, usage = os.wait4(child.pid, 0)
                expect(status == 0, "the run failed")
                usages.append(usage)
            return min(usages, key=lambda usage: usage.ru_utime + usage.ru_stime)

        six, first = run("--repeat", "6"), run()
        with open(report) as file:
            told = json.load(file)
        size, peak, arena = os.path.getsize(stored) / 1e6, first.ru_maxrss * 1024 / 1e6, told["arena_bytes"] / 1e6
        sixMs, answerMs = ((usage.ru_utime + usage.ru_stime) * 1e3 for usage in (six, first))
        runMs = (sixMs - answerMs) / 5
        print(f"compile {compileS:.2f} s of processor time; stored {size:.1f} MB; from it to the first answer {answerMs:.0f} ms "
              f"of processor time, of which one run takes {runMs:.0f}; peak memory {peak:.1f} MB, arena {arena:.1f} MB")
        with open(model, "rb") as file:
            modelMB = len(file.read()) / 1e6
        expect(size <= 1.1 * modelMB + 2, f"the bundle has {size:.1f} MB, the model {modelMB:.1f}: something lies in it twice")
        expect(peak <= size + arena + 40, f"peak memory {peak:.1f} MB is above {size:.1f} + {arena:.1f} + 40")
        runWithoutCompiler(candela, stored)


if __name__ == "__main__":
    {"deploy": deploy, "processors": processors, "figures": figures}[sys.argv[1]](*sys.argv[2:])
