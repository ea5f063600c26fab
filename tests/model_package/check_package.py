#!/usr/bin/env python3
"""Packages as a user meets them.

  check_package.py models CANDELA SOURCE        each model: strict C99, what is undefined, weights both ways, the test's verdict
  check_package.py arm CANDELA SOURCE QEMU      the same for AArch64, run by QEMU, and processors that lack something
  check_package.py riscv CANDELA SOURCE QEMU    the same for 64-bit RISC-V
  check_package.py cortex CANDELA SOURCE QEMU   the same for Cortex-M without a system
  check_package.py board CANDELA SOURCE QEMU    examples/microcontroller
  check_package.py web CANDELA SOURCE NODE LINKER   the same for WebAssembly, run by node
  check_package.py limits CANDELA SOURCE QEMU   arenas and flash of at most so many bytes, and the map
  check_package.py codes CANDELA SOURCE QEMU    every code that the functions return
  check_package.py builds CANDELA SOURCE        two models in one program, a shared library, CMake and make
  check_package.py figures CANDELA SOURCE       the time of a run beside that of this process, and up to the first answer
"""

import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wno-sign-conversion", "-pedantic", "-Werror", "-O1"]
X86 = ["--target", "x86_64-linux-gnu"]
LSTM_STATES = ["--state", "h=ht", "--state", "c=ct"]


def call(command, status=0, **options):
    """The output of a command, which must end with `status`."""
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode != status:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode} instead of {status}:\n{done.stdout}")
    return done.stdout


def expect(truth, text):
    if not truth:
        sys.exit("FAILED: " + text)


def modelsOf(source):
    """Name, model and arguments of everything that is packaged."""
    digits = f"{source}/examples/digits"
    return [("digits", f"{digits}/digits.onnx", ["--dim", "N=1"]),
            ("digits_int8", f"{digits}/digits_int8.onnx", ["--dim", "N=1"]),
            ("depthwise", f"{HERE}/depthwise.cdl", []),
            ("lstm_step", f"{HERE}/lstm_step.cdl", LSTM_STATES),
            ("state", f"{HERE}/state.cdl", ["--state", "kept=next"])]


def package(candela, model, folder, *arguments):
    return call([candela, "package", model, "-o", folder, *arguments])


def undefined(nm, path):
    return sorted(line.split()[-1] for line in call([nm, "-u", path]).splitlines() if line.strip())


class Machine:
    """How programs for a target are compiled and run."""

    def __init__(self, arguments, prefix="", flags=(), runner=(), hasFiles=True):
        self.arguments = ["--target", *arguments]
        self.compiler = [prefix + "gcc", *STRICT, "-no-pie", *flags]
        self.nm = prefix + "nm"
        self.runner = list(runner)
        self.hasFiles = hasFiles


def compiled(machine, program, folder, objects):
    call([*machine.compiler, "-o", program, f"{folder}/main.c", *objects, "-lm"])


def checkSymbols(nm, name, objects):
    expect(set(undefined(nm, objects[0])) <= {"memcpy", "memset"}, f"{name}.o refers to {undefined(nm, objects[0])}")
    expect(undefined(nm, objects[1]) == [], f"{name}_weights.o refers to something")
    for line in call([nm, "--defined-only", "--extern-only", *objects]).splitlines():
        if len(line.split()) == 3:
            expect(line.split()[2].startswith(name + "_"), f"{name}: the symbol {line}")
            expect(line.split()[1] in "TR", f"{name}: what is written is global: {line}")
    expect(not re.search(r" [bBdD] ", call([nm, "--defined-only", *objects])), f"{name}: there is memory that can be written")


def checkOne(candela, machine, name, model, arguments):
    """Packages, compiles as strict C and runs."""
    with tempfile.TemporaryDirectory() as folder:
        said = package(candela, model, folder, "--name", name, *machine.arguments, *arguments)
        objects = [f"{folder}/{name}.o", f"{folder}/{name}_weights.o"]
        checkSymbols(machine.nm, name, objects)
        program = f"{folder}/test"
        compiled(machine, program, folder, objects)
        out = call([*machine.runner, program])
        if machine.hasFiles:
            expect(call([*machine.runner, program, f"{folder}/{name}.weights"]) == out, f"{name}: other answers from the file of weights")
        # Its layers are integers: the scores differ by nothing.
        expect("int8" not in name or out.rstrip().endswith("largest difference 0"), f"{name}: {out}")
        print(f"{said}{out}", end="")


def checkComparison(candela, machine, name, model, arguments):
    """What is compared can differ: another expectation fails."""
    with tempfile.TemporaryDirectory() as folder:
        package(candela, model, folder, "--name", name, *machine.arguments, *arguments)
        data = f"{folder}/{name}_test_data.h"
        with open(data) as file:
            text = file.read()
        changed = re.sub(r"(_expected\[\d+\] = \{\s*)0x[0-9a-f]+|(_expected\[\d+\] = \{\s*)0\b", r"\g<1>0x7ee11ee17ee11ee1", text, count=1)
        expect(changed != text, f"{name}: no expectation in {data}")
        with open(data, "w") as file:
            file.write(changed)
        compiled(machine, f"{folder}/test", folder, [f"{folder}/{name}.o", f"{folder}/{name}_weights.o"])
        expect("DIFFER" in call([f"{folder}/test"], status=1), f"{name}: the test does not see another expectation")


def models(candela, source):
    for each in modelsOf(source):
        checkOne(candela, Machine(X86[1:]), *each)
    checkComparison(candela, Machine(X86[1:]), *modelsOf(source)[0])
    checkComparison(candela, Machine(X86[1:]), *modelsOf(source)[4])
    checkOne(candela, Machine([*X86[1:], "--pic"]), *modelsOf(source)[1])
    vnni = Machine([*X86[1:], "--cpu", "alderlake"])
    if "avx_vnni" in pathlib.Path("/proc/cpuinfo").read_text().split():
        checkOne(candela, vnni, *modelsOf(source)[1])
    else:
        refused(candela, vnni, *modelsOf(source)[4])


def refused(candela, machine, name, model, arguments):
    """The processor is told what the code needs."""
    with tempfile.TemporaryDirectory() as folder:
        package(candela, model, folder, "--name", name, *machine.arguments, *arguments)
        compiled(machine, f"{folder}/test", folder, [f"{folder}/{name}.o", f"{folder}/{name}_weights.o"])
        expect("error 5" in call([*machine.runner, f"{folder}/test"], status=1), f"{name}: the processor is not told")


def arm(candela, source, qemu):
    def machine(cpu, *features):
        return Machine(["aarch64-linux-gnu", *features], "aarch64-linux-gnu-", runner=[qemu, "-cpu", cpu, "-L", "/usr/aarch64-linux-gnu"])

    digits, int8, depthwise, lstm, state = modelsOf(source)
    for each in (digits, depthwise, lstm):
        checkOne(candela, machine("cortex-a53"), *each)
    for less, cpu, features in (("cortex-a53", "neoverse-n1", "+dotprod"), ("neoverse-n1", "max", "+dotprod,+i8mm")):
        checkOne(candela, machine(cpu, "--features", features), *int8)
        refused(candela, machine(less, "--features", features), *state)


def riscv(candela, source, qemu):
    machine = Machine(["riscv64-linux-gnu"], "riscv64-linux-gnu-", runner=[qemu, "-L", "/usr/riscv64-linux-gnu"])
    for each in modelsOf(source)[1:4:2]:
        checkOne(candela, machine, *each)


class Board(Machine):
    """A board of Arm's without a system."""

    def __init__(self, qemu, cpu, name, memory, triple="thumbv7em-none-eabihf", fpu=None, flash="0", ram="0x20000000", clock=25):
        places = {"flash": flash, "flash_size": "512K", "ram": ram, "ram_size": memory}
        super().__init__([triple, "--cpu", cpu], "arm-none-eabi-",
                         ["--specs=picolibc.specs", "--crt0=hosted", "--oslib=semihost", f"-mcpu={cpu}", "-mfloat-abi=hard",
                          *([f"-mfpu={fpu}"] if fpu else []), *[f"-Wl,--defsym=__{key}={value}" for key, value in places.items()],
                          "-Wl,--no-warn-execstack"],
                         ["timeout", "60", qemu, "-icount", "shift=0", "-M", name, "-nographic", "-monitor", "none", "-serial", "none",
                          "-semihosting-config", "enable=on,target=native", "-kernel"], hasFiles=False)
        self.cpu = cpu
        self.clock = clock  # of its timer, in MHz

    def instructionsOf(self, folder, objects):
        """Of a run of digits in int8."""
        call([*self.compiler, f"-DCLOCK={self.clock}", "-I", os.path.dirname(objects[0]), "-o", f"{folder}/count", "-xc", f"{HERE}/count.c.in", "-xnone",
              *objects])
        return int(call([*self.runner, f"{folder}/count"]))


def boardsOf(qemu, memory):
    """Each with the most instructions that a run of digits in int8 takes; floats of 32 bits, then of 64 bits too."""
    armv8 = "thumbv8m.main-none-eabihf"
    return [(Board(qemu, "cortex-m4", "mps2-an386", memory, fpu="fpv4-sp-d16"), 1350000),
            (Board(qemu, "cortex-m33", "mps2-an505", memory, armv8, "fpv5-sp-d16", "0x10000000", "0x38000000", 20), 1350000),
            (Board(qemu, "cortex-m7", "mps2-an500", memory, fpu="fpv5-d16"), 1210000),
            (Board(qemu, "cortex-m55", "mps3-an547", memory, armv8, ram="0x30000000", clock=32), 1210000)]


def checkCount(candela, board, name, model, arguments, most):
    """Packages a model as digits, and counts."""
    with tempfile.TemporaryDirectory() as folder:
        package(candela, model, folder, "--name", "digits", *board.arguments, *arguments)
        count = board.instructionsOf(folder, [f"{folder}/digits.o", f"{folder}/digits_weights.o"])
        print(f"{name} on {board.cpu}: {count} instructions")
        expect(most - 10000 <= count <= most, f"{name} on {board.cpu}: {count} instructions, and not {most} or a little less")


def cortex(candela, source, qemu):
    digits, int8, depthwise, lstm, state = modelsOf(source)
    for board, most in boardsOf(qemu, "64K"):
        checkOne(candela, board, *int8)
        checkCount(candela, board, *int8, most)
    m4 = boardsOf(qemu, "256K")[0][0]
    for each in (depthwise, lstm):
        checkOne(candela, m4, *each)
    with tempfile.TemporaryDirectory() as folder:
        said = call([candela, "package", f"{HERE}/doubles.cdl", "-o", f"{folder}/no", *m4.arguments], status=2)
        expect("has no instructions for what this model computes, and would call __aeabi_d" in said, said)
        expect(not os.path.exists(f"{folder}/no"), "a package is left where there is none")


def board(candela, source, qemu):
    """examples/microcontroller, which holds its sizes."""
    example = f"{source}/examples/microcontroller"
    with tempfile.TemporaryDirectory() as folder:
        out = call(["make", "-C", example, "run", f"OUT={folder}", f"CANDELA={os.path.abspath(candela)}"])
        expect("\n10 of 10\n" in out, out)
        objects = [f"{folder}/model/digits.o", f"{folder}/model/digits_weights.o"]
        sizes = [int(line.split()[0]) for line in call(["arm-none-eabi-size", *objects]).splitlines()[1:]]
        with open(f"{folder}/model/digits.h") as file:
            arena = int(re.search(r"_ARENA_BYTES \(\(size_t\)(\d+)\)", file.read())[1])
        count = boardsOf(qemu, "64K")[2][0].instructionsOf(folder, objects)
        print(f"code {sizes[0]} B, weights {sizes[1]} B, arena {arena} B, {count} instructions a run")
        expect(sum(sizes) <= 72 * 1024 and arena <= 12 * 1024, "the example outgrew its board")
        expect(count <= 1210000, f"{count} instructions a run")
    # Its images are the test's.
    with open(f"{source}/examples/digits/test_images.npy", "rb") as file:
        content = file.read()
    pixels = struct.unpack_from("<640f", content, 10 + int.from_bytes(content[8:10], "little"))
    with open(f"{example}/images.h") as file:
        text = file.read()
    listed = [int(number) for number in re.findall(r"\d+", text[text.index("[PIXELS]") + 8:text.index("labels")])]
    expect([16 * pixel for pixel in pixels] == listed[:640], "images.h differs from test_images.npy")


def checkWeb(candela, node, linker, name, model, arguments):
    """Packages, links and runs on node, which gives the module nothing: it has no imports."""
    with tempfile.TemporaryDirectory() as folder:
        said = package(candela, model, folder, "--name", name, "--target", "wasm32-unknown-unknown", *arguments)
        call(["make", "-s", "-f", f"{folder}/{name}.mk", f"{folder}/{name}.wasm", f"WASM_LD={linker}"])
        out = call([node, f"{folder}/main.mjs"])
        expect(call([node, f"{folder}/main.mjs", f"{folder}/{name}.weights"]) == out, f"{name}: other answers from the file of weights")
        expect("int8" not in name or out.rstrip().endswith("largest difference 0"), f"{name}: {out}")
        print(f"{said}{out}", end="")
        data = f"{folder}/{name}_test_data.mjs"
        with open(data) as file:
            text = file.read()
        begin = text.index("export const expected")
        changed = text[:begin] + re.sub(r"0x[0-9a-f]+n", "0x7ee11ee17ee11ee1n", text[begin:], count=1)
        with open(data, "w") as file:
            file.write(changed)
        expect("DIFFER" in call([node, f"{folder}/main.mjs"], status=1), f"{name}: the test does not see another expectation")


def webHost(candela, source, node, linker):
    """What a page sees of a model: weights apart, weights of another, wrong inputs, and a state that goes on."""
    with tempfile.TemporaryDirectory() as folder:
        package(candela, f"{HERE}/lstm_step.cdl", folder, "--name", "step", "--target", "wasm32-unknown-unknown", *LSTM_STATES)
        options = re.search(r"_ldflags := (.*)", pathlib.Path(f"{folder}/step.mk").read_text())[1].split()
        call([linker, *options, "-o", f"{folder}/step.wasm", f"{folder}/step.o"])
        with open(f"{folder}/page.mjs", "w") as file:
            file.write(pathlib.Path(f"{HERE}/page.mjs").read_text())
        print(call([node, f"{folder}/page.mjs"]), end="")
        digits, model, arguments = modelsOf(source)[0]
        project = f"{folder}/cmake"
        package(candela, model, project, "--target", "wasm32-unknown-unknown", *arguments)
        call(["cmake", "-S", project, "-B", f"{project}/build", f"-DWASM_LD={linker}", f"-DNODE={node}"])
        call(["cmake", "--build", f"{project}/build"])
        call(["ctest", "--test-dir", f"{project}/build", "--no-tests=error"])


def web(candela, source, node, linker):
    for each in modelsOf(source):
        checkWeb(candela, node, linker, *each)
    webHost(candela, source, node, linker)


def arenaOf(folder, name):
    text = pathlib.Path(f"{folder}/{name}.h").read_text()
    return int(re.search(r"_ARENA_BYTES \(\(size_t\)(\d+)\)", text)[1])


def limits(candela, source, qemu):
    m4 = boardsOf(qemu, "256K")[0][0]
    rows = f"{HERE}/rows.cdl"
    with tempfile.TemporaryDirectory() as folder:
        package(candela, rows, folder, *m4.arguments)
        free = arenaOf(folder, "rows")
    # What the memory of the values between needs is beyond the limit: rows are computed in bands, to the same bits.
    for limit in (100 << 10, 72 << 10):
        expect(limit < free, f"the arena is {free} B without a limit")
        with tempfile.TemporaryDirectory() as folder:
            said = package(candela, rows, folder, *m4.arguments, "--arena-limit", f"{limit >> 10}K", "--map", "--json", f"{folder}/report.json")
            expect(arenaOf(folder, "rows") <= limit, said)
            expect("bands of rows" in said, said)
            objects = [f"{folder}/rows.o", f"{folder}/rows_weights.o"]
            compiled(m4, f"{folder}/test", folder, objects)
            expect("equal to the bit" in call([*m4.runner, f"{folder}/test"]), "rows: other integers in bands")
            with open(f"{folder}/report.json") as file:
                report = json.load(file)
            values = report["map"]["values"]
            expect(max(value["offset"] + value["bytes"] for value in values) <= report["arena_bytes"] <= limit, "a value leaves the arena")
            for a in values:
                for b in values:
                    apart = a["offset"] + a["bytes"] <= b["offset"] or b["offset"] + b["bytes"] <= a["offset"]
                    later = a["last"] < b["first"] or b["last"] < a["first"]
                    expect(a is b or apart or later or a["last"] == b["first"] or b["last"] == a["first"], f"{a} and {b} meet")
            expect(sum(each["bytes"] for each in report["map"]["weights"]) > 0, "no weights in the map")
            sizes = [int(line.split()[0]) for line in call(["arm-none-eabi-size", *objects]).splitlines()[1:]]
            expect(abs(report["code_bytes"] - sizes[0]) <= 64, f"{report['code_bytes']} B of code, and size says {sizes[0]}")
            print(said.splitlines()[0])
    with tempfile.TemporaryDirectory() as folder:
        def refusal(*options):
            said = call([candela, "package", rows, "-o", f"{folder}/no", *m4.arguments, *options], status=2)
            expect(not os.path.exists(f"{folder}/no"), "a package is left where there is none")
            return said
        said = refusal("--arena-limit", "20K")
        least = re.search(r"--arena-limit 20480: the least that does is (\d+) \(.*\): \d+ B of values at .*, \d+ B", said)
        expect(least, said)
        package(candela, rows, f"{folder}/least", *m4.arguments, "--arena-limit", least[1])
        said = refusal("--flash-limit", "1000")
        least = re.search(r"--flash-limit 1000: the least that does is (\d+): \d+ B of code, \d+ B of weights", said)
        expect(least, said)
        package(candela, rows, f"{folder}/small", *m4.arguments, "--flash-limit", least[1])
        for text in ("lots", "-1", "1.5K", "0x100", "K"):
            said = refusal(f"--arena-limit={text}")
            expect(f"--arena-limit {text}: a number of bytes: 65536, 64K, 1M" in said, said)
        said = call([candela, "package", rows, "-o", f"{folder}/no", "--target", "wasm32-unknown-unknown", "--flash-limit", "1M"], status=2)
        expect("--flash-limit 1048576: wasm32-unknown-unknown has no flash" in said, said)


def codes(candela, source, qemu):
    with tempfile.TemporaryDirectory() as folder:
        package(candela, f"{HERE}/state.cdl", folder, *X86, "--state", "kept=next")
        objects = [f"{folder}/state.o", f"{folder}/state_weights.o"]
        call(["cc", *STRICT, "-no-pie", "-I", folder, "-o", f"{folder}/errors", "-xc", f"{HERE}/errors.c.in", "-xnone", *objects])
        print(call([f"{folder}/errors"]), end="")
        call(["cc", *STRICT, "-no-pie", "-o", f"{folder}/test", f"{folder}/main.c", *objects, "-lm"])
        # Nehalem: SSE4.2 is all it has. An illegal instruction would end with a signal. Haswell: AVX2 without AVX-512.
        expect("error 5" in call([qemu, "-cpu", "Nehalem", f"{folder}/test"], status=1), "Nehalem is not told")
        call([qemu, "-cpu", "Haswell", f"{folder}/test"])
        package(candela, f"{HERE}/state.cdl", folder, *X86, "--cpu", "x86-64-v4", "--state", "kept=next")
        call(["cc", *STRICT, "-no-pie", "-o", f"{folder}/test", f"{folder}/main.c", *objects, "-lm"])
        expect("error 5" in call([qemu, "-cpu", "Haswell", f"{folder}/test"], status=1), "Haswell is not told of AVX-512")


def builds(candela, source):
    with tempfile.TemporaryDirectory() as folder:
        objects = []
        for name, model, arguments in modelsOf(source)[:2]:
            package(candela, model, f"{folder}/{name}", *X86, "--pic", *arguments)
            objects += [f"{folder}/{name}/{name}.o", f"{folder}/{name}/{name}_weights.o"]
        include = ["-I", f"{folder}/digits", "-I", f"{folder}/digits_int8"]
        call(["cc", *STRICT, "-Wno-unused-variable", "-Wno-unused-const-variable", *include, "-o", f"{folder}/two", "-xc", f"{HERE}/two.c.in", "-xnone", *objects])
        print(call([f"{folder}/two"]), end="")
        # Nothing of C's library is needed but memcpy and memset: a shared library without it links.
        call(["cc", "-shared", "-nostdlib", "-o", f"{folder}/both.so", *objects])
        # The header is C++ too.
        with open(f"{folder}/header.cpp", "w") as file:
            file.write('#include "digits.h"\nint main() { digits_model model; return digits_open(&model, nullptr, 0, nullptr, 0) == DIGITS_OK; }\n')
        call(["c++", "-Wall", "-Werror", *include, "-o", f"{folder}/header", f"{folder}/header.cpp", *objects[:2]])
        call([f"{folder}/header"])
        call(["make", "-f", f"{folder}/digits/digits.mk", f"{folder}/digits/digits_test"])
        call([f"{folder}/digits/digits_test"])
        call(["cmake", "-S", f"{folder}/digits_int8", "-B", f"{folder}/build"])
        call(["cmake", "--build", f"{folder}/build"])
        call(["ctest", "--test-dir", f"{folder}/build"])


def figures(candela, source):
    with tempfile.TemporaryDirectory() as folder:
        for name, model, arguments in modelsOf(source)[:2]:
            report = f"{folder}/report.json"
            package(candela, model, folder, *X86, *arguments, "--json", report)
            with open(report) as file:
                facts = json.load(file)
            objects = [f"{folder}/{name}.o", f"{folder}/{name}_weights.o"]
            defines = {"NAME": name, "HEADER": f'"{name}.h"', "DATA": f'"{name}_test_data.h"', "ARENA": facts["arena_bytes"],
                       "WEIGHTS": facts["weights_bytes"], "TURNS": 20000}
            call(["cc", "-O1", "-std=c99", "-no-pie", "-I", folder, *[f"-D{key}={value}" for key, value in defines.items()],
                  "-o", f"{folder}/clock", "-xc", f"{HERE}/clock.c.in", "-xnone", *objects])
            call(["cc", *STRICT, "-no-pie", "-o", f"{folder}/test", f"{folder}/main.c", *objects, "-lm"])
            ahead, here, starts = [], [], []
            for _ in range(3):  # in turn, so that both meet the same machine
                ahead.append(float(call([f"{folder}/clock"])) / 1e3)
                call([candela, "bench", model, "--dim", "N=1", "--backend", "cpu", "--isa", "x86-64-v3", "--threads", "1",
                      "--repeat", "2000", "--json", report])
                with open(report) as file:
                    here.append(1e3 * json.load(file)["latency_ms"]["min"])
            for _ in range(20):
                begin = time.perf_counter()
                call([f"{folder}/test"])
                starts.append(1e3 * (time.perf_counter() - begin))
            ratio = min(ahead) / min(here)
            print(f"{name}: a run takes {min(ahead):.2f} us as object code, {min(here):.2f} us in this process ({ratio:.3f}); "
                  f"from exec to the first answer {min(starts):.2f} ms")
            expect(ratio <= 1.03, f"{name}: object code is {ratio:.3f} times as slow as the same kernels in this process")
            expect(min(starts) <= 5, f"{name}: {min(starts):.2f} ms from exec to the first answer")


if __name__ == "__main__":
    {"models": models, "arm": arm, "riscv": riscv, "cortex": cortex, "board": board, "web": web, "limits": limits, "codes": codes, "builds": builds, "figures": figures}[sys.argv[1]](*sys.argv[2:])
