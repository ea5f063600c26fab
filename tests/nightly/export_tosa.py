#!/usr/bin/env python3
"""Exports ONNX's node tests to TOSA, and runs what was written through MLIR's own lowering.

usage: tests/nightly/export_tosa.py [--candela FILE] [--data DIR] [--cases PART] [--report FILE]

Each case of the newest `onnx` package is written by `candela export`, with constants as tests/nightly/export_onnx.py
makes them. `mlir-opt-19` has to accept each text; its passes from TOSA to Linalg to LLVM and `mlir-cpu-runner-19` then
compute it, on the inputs of the case, and the outputs have to be those that the case announces. A text that the passes
of MLIR do not lower is counted apart, with what they say. A run passes where every text is accepted, none gives other
outputs but those that KNOWN names, and at least as many are accepted and run as FEWEST says. Writes
benchmarks/results/export_tosa.json.

Needs mlir-opt-19 and mlir-cpu-runner-19 (Debian's mlir-19-tools) and a C compiler.

Exit status: 0 all passed, 1 some did not, 2 bad usage or nothing to run.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/lib"), str(ROOT / "tests/nightly")]
import export_onnx as cases  # noqa: E402
import nightly_report  # noqa: E402

SCHEMA = "candela.export_tosa.v1"
FEWEST = {"accepted": 400, "passed": 200}
# Cases that MLIR 19 lowers otherwise than TOSA says.
LOWEST = "its reduce_max begins with the lowest finite number, so that the maximum of a row of -inf is that"
KNOWN = {r"fullymasked|nan_robustness|structural_empty|mode3_softmax_precision": LOWEST}
OPT, RUNNER = "mlir-opt-19", "mlir-cpu-runner-19"
LOWERING = (
    "builtin.module(func.func(tosa-optional-decompositions),canonicalize,"
    "func.func(tosa-infer-shapes,tosa-make-broadcastable,tosa-to-linalg-named),canonicalize,"
    "func.func(tosa-layerwise-constant-fold,tosa-make-broadcastable),"
    "func.func(tosa-to-linalg,tosa-to-tensor,tosa-to-arith{include-apply-rescale=true},tosa-to-scf),canonicalize,"
    "one-shot-bufferize{bufferize-function-boundaries=true function-boundary-type-conversion=identity-layout-map},"
    "func.func(convert-linalg-to-loops),expand-strided-metadata,lower-affine,convert-scf-to-cf,"
    "convert-math-to-llvm,convert-math-to-libm,arith-expand,convert-arith-to-llvm,finalize-memref-to-llvm,"
    "convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)")
TYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "int8": "i8", "int16": "i16", "int32": "i32",
         "int64": "i64", "bool": "i1"}
BITS = {"f32": 32, "f16": 16, "bf16": 16, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "i1": 8}
# Appends the elements of each memref that it is called with to the file that CANDELA_OUTPUTS names; and the one function
# of MLIR's own support library that lowered texts call.
SUPPORT = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
struct unranked { int64_t rank; void *descriptor; };
static void write_from(FILE *file, const char *data, int64_t size, int64_t rank, const int64_t *sizes,
                       const int64_t *strides) {
  if (rank == 0) { fwrite(data, size, 1, file); return; }
  for (int64_t i = 0; i < sizes[0]; ++i)
    write_from(file, data + i * strides[0] * size, size, rank - 1, sizes + 1, strides + 1);
}
void memrefCopy(int64_t size, struct unranked *from, struct unranked *to);
static void copy_all(int64_t size, int64_t rank, const char *from, const int64_t *sizes, const int64_t *steps, char *to,
                     const int64_t *to_steps) {
  if (rank == 0) { for (int64_t i = 0; i < size; ++i) to[i] = from[i]; return; }
  for (int64_t i = 0; i < sizes[0]; ++i)
    copy_all(size, rank - 1, from + i * steps[0] * size, sizes + 1, steps + 1, to + i * to_steps[0] * size, to_steps + 1);
}
void memrefCopy(int64_t size, struct unranked *from, struct unranked *to) {
  char **source = from->descriptor, **target = to->descriptor;
  const int64_t *numbers = (const int64_t *)(source + 2), *to_numbers = (const int64_t *)(target + 2);
  const int64_t rank = from->rank;
  copy_all(size, rank, source[1] + numbers[0] * size, numbers + 1, numbers + 1 + rank, target[1] + to_numbers[0] * size,
           to_numbers + 1 + rank);
}
static void append(struct unranked *m, int64_t size) {
  FILE *file = fopen(getenv("CANDELA_OUTPUTS"), "ab");
  if (!file) abort();
  char **pointers = m->descriptor;
  const int64_t *numbers = (const int64_t *)(pointers + 2);
  write_from(file, pointers[1] + numbers[0] * size, size, m->rank, numbers + 1, numbers + 1 + m->rank);
  fclose(file);
}
"""


def build_support(folder):
    source = SUPPORT + "".join(f"void _mlir_ciface_candela_write_{name}(struct unranked *m) {{ append(m, {bits // 8}); }}\n"
                               for name, bits in BITS.items())
    (folder / "support.c").write_text(source)
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-o", folder / "support.so",
                    folder / "support.c"], check=True)
    return folder / "support.so"


def type_of(array):
    return f"tensor<{''.join(f'{dim}x' for dim in array.shape)}{TYPES[str(array.dtype)]}>"


def literal(array):
    """The content of a dense constant: truth values as nested lists, all else as bytes."""
    if array.size == 0:
        return ""
    if str(array.dtype) == "bool":
        return json.dumps(array.tolist())
    return f'"0x{array.tobytes().hex().upper()}"'


def with_entry(text, inputs, expected):
    """The module with a function that calls it and writes its results."""
    body, names = [], []
    for i, array in enumerate(inputs):
        body.append(f"    %in{i} = arith.constant dense<{literal(array)}> : {type_of(array)}")
        names.append(f"%in{i}")
    types = [type_of(array) for array in expected]
    several = f":{len(types)}" if len(types) > 1 else ""
    body.append(f"    %r{several} = func.call @main({', '.join(names)}) : ({', '.join(map(type_of, inputs))}) -> "
                f"({', '.join(types)})")
    for i, shape in enumerate(types):
        elem = TYPES[str(expected[i].dtype)]
        buffer = shape.replace("tensor", "memref", 1)
        result = f"%r#{i}" if several else "%r"
        body += [f"    %m{i} = bufferization.to_memref {result} : {buffer}",
                 f"    %u{i} = memref.cast %m{i} : {buffer} to memref<*x{elem}>",
                 f"    func.call @candela_write_{elem}(%u{i}) : (memref<*x{elem}>) -> ()"]
    writers = "".join(f"  func.func private @candela_write_{elem}(memref<*x{elem}>) attributes {{llvm.emit_c_interface}}\n"
                      for elem in sorted({TYPES[str(array.dtype)] for array in expected}))
    end = text.rindex("}")
    return f"{text[:end]}{writers}  func.func @entry() {{\n" + "\n".join(body) + "\n    return\n  }\n}\n"


def last_line(text):
    lines = [line for line in text.splitlines() if "error:" in line]
    return (lines[0].split("error:", 1)[1].strip() if lines else text.strip())[:200]


def run_text(text, inputs, expected, support, folder):
    """Lowers and runs a module; what came of it."""
    import numpy as np
    source, lowered, out = folder / "run.mlir", folder / "lowered.mlir", folder / "outputs"
    source.write_text(with_entry(text, inputs, expected))
    done = subprocess.run([OPT, source, f"--pass-pipeline={LOWERING}", "-o", lowered], text=True,
                          stderr=subprocess.PIPE, timeout=120)
    if done.returncode != 0:
        return {"state": "not lowered", "why": last_line(done.stderr)}
    out.unlink(missing_ok=True)
    done = subprocess.run([RUNNER, lowered, "-e", "entry", "--entry-point-result=void", f"--shared-libs={support}"],
                          text=True, stderr=subprocess.PIPE, timeout=300, env=os.environ | {"CANDELA_OUTPUTS": str(out)})
    if done.returncode != 0:
        return {"state": "not lowered", "why": f"{RUNNER}: {last_line(done.stderr)}"}
    data, at = (out.read_bytes() if out.is_file() else b""), 0
    for i, wanted in enumerate(expected):
        size = wanted.nbytes
        given = np.frombuffer(data[at:at + size], dtype=wanted.dtype)
        at += size
        if given.size != wanted.size:
            return {"state": "differs", "why": f"output {i}: {given.size} elements in place of {wanted.size}"}
        problem = cases.differs(given.reshape(wanted.shape), wanted)
        if problem:
            return {"state": "differs", "why": f"output {i}: {problem}"}
    return {"state": "passed"}


def run_case(candela, case, folder, support):
    import onnx
    model = onnx.load(case / "model.onnx")
    values = cases.values_of(case, "input", model.graph.input)
    expected = cases.values_of(case, "output", model.graph.output)
    record = {"case": case.name}
    if values is None or expected is None:
        return record | {"state": "no tensors", "why": "an input or an output is no tensor"}
    if cases.RANDOM & {node.op_type for node in model.graph.node}:
        return record | {"state": "random", "why": "its numbers are drawn"}
    target = folder / "model.tosa.mlir"
    code, text, frozen = cases.import_and_write(candela, case, target, [], model, values)
    if frozen:
        record["constants"] = frozen
    if code != 0:
        state = "refused" if code == 1 else "not imported"
        return record | {"state": state, "why": " ".join(text.split("\n", 1)[-1].split())[-300:]}
    text = target.read_text()
    names = re.findall(r'%arg\d+: [^{]*\{candela\.name = "([^"]*)"\}', text.split("->")[0])
    if values and not names:
        return record | {"state": "constant", "why": "everything that it computes had to be known"}
    checked = subprocess.run([OPT, target, "--verify-diagnostics", "-o", "/dev/null"], text=True,
                             stderr=subprocess.PIPE, timeout=120)
    if checked.returncode != 0:
        return record | {"state": "not accepted", "why": last_line(checked.stderr)}
    return record | run_text(text, [values[name] for name in names], list(expected.values()), support, folder)


def reason(record):
    """A refusal without the names of the case."""
    return re.sub(r"'[^']*'", "'...'", record["why"])[:120]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--data", type=pathlib.Path, help="folders that tests/onnx/write_node_tests.py wrote before")
    parser.add_argument("--cases", default="", help="those alone whose names have this part")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/export_tosa.json")
    arguments = parser.parse_args()
    missing = [name for name in (OPT, RUNNER) if not shutil.which(name)]
    if missing or not arguments.candela.is_file():
        print(f"export_tosa: {', '.join(missing) or arguments.candela} is missing", file=sys.stderr)
        return 2
    import onnx
    with tempfile.TemporaryDirectory(prefix="candela_export_") as temporary:
        work = pathlib.Path(temporary)
        data = arguments.data or work / "data"
        if not arguments.data:
            subprocess.run([sys.executable, "-B", str(ROOT / "tests/onnx/write_node_tests.py"), str(data)], check=True)
        support = build_support(work)
        found = sorted(path for path in data.iterdir() if arguments.cases in path.name)
        def in_own_folder(case):
            folder = work / "run" / case.name
            folder.mkdir(parents=True)
            record = run_case(arguments.candela, case, folder, support)
            shutil.rmtree(folder)
            return record

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
            records = list(threads.map(in_own_folder, found))
    counts = collections.Counter(record["state"] for record in records)
    accepted = sum(counts[state] for state in ("passed", "differs", "not lowered"))
    reasons = collections.Counter(reason(r) for r in records if r["state"] == "refused")
    version = subprocess.run([OPT, "--version"], text=True, stdout=subprocess.PIPE).stdout
    report = {"schema": SCHEMA, "date": nightly_report.now(),
              "versions": {"onnx": onnx.__version__, "mlir": re.search(r"version (\S+)", version)[1]},
              "cases": len(found), "states": dict(counts), "accepted": accepted, "passed": counts["passed"],
              "fewest": FEWEST, "known": KNOWN, "refused_by_reason": dict(reasons.most_common()),
              "not_passed": [record for record in records if record["state"] != "passed"]}
    nightly_report.write(arguments.report, report)
    print(f"{accepted} of {len(found)} cases written and accepted by {OPT}, {counts['passed']} of them with the "
          f"announced outputs: {dict(counts)}")
    print(f"report {arguments.report}")
    bad = [r["case"] for r in records if r["state"] in ("differs", "not accepted") and not any(re.search(part, r["case"]) for part in KNOWN)]
    enough = bool(arguments.cases) or (accepted >= FEWEST["accepted"] and counts["passed"] >= FEWEST["passed"])
    return 0 if enough and not bad else 1


if __name__ == "__main__":
    sys.exit(main())
