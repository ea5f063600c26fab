#!/usr/bin/env python3
"""Exports ONNX's node tests to ONNX, and runs what was written in ONNX Runtime and on our own backend.

usage: tests/nightly/export_onnx.py [--candela FILE] [--data DIR] [--optimized] [--cases PART] [--report FILE]

Each case of the newest `onnx` package is imported and written again by `candela export`, with the operands that shapes
follow from as constants where the import asks for that; a case of which nothing is left to compute then does not count.
`onnx.checker` has to accept each file, ONNX Runtime and `candela conform` have to give the outputs that the case
announces; where it draws at random, what our own run of the case itself gives. Where ONNX Runtime has no kernel for a
type, ONNX's own evaluator runs the file, and the report counts that apart. A run passes where no file is refused by the
checker, no file gives other outputs, and at least as many cases are written and run by ONNX Runtime as FEWEST says.
Writes benchmarks/results/export_onnx.json.

Exit status: 0 all passed, 1 some did not, 2 bad usage or nothing to run.
"""
import argparse
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.export_onnx.v1"
FEWEST = 900
RTOL, ATOL = 1e-3, 1e-5
RANDOM = {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
          "RandomUniformLike"}
# Cases that our own backend fails in what was written and passes as they are.
KNOWN = {"onnx:test_dft_inverse": "results beside 0, of which the suite wants 1e-7 where it does not know a DFT",
         "onnx:test_dft_inverse_opset19": "results beside 0, of which the suite wants 1e-7 where it does not know a DFT"}
NO_KERNEL = ("NOT_IMPLEMENTED", "Could not find an implementation")


def values_of(folder, kind, infos):
    """The tensors of a data set by the names of the model; None where one is no tensor."""
    import onnx
    from onnx import numpy_helper
    values = {}
    for i, info in enumerate(infos):
        path = folder / "test_data_set_0" / f"{kind}_{i}.pb"
        if info.type.WhichOneof("value") != "tensor_type" or not path.is_file():
            return None
        tensor = onnx.TensorProto()
        tensor.ParseFromString(path.read_bytes())
        values[info.name] = numpy_helper.to_array(tensor)
    return values


def freeze(model, values, names):
    """A copy in which the inputs of these names are constants."""
    import onnx
    from onnx import numpy_helper
    frozen = onnx.ModelProto()
    frozen.CopyFrom(model)
    kept = [info for info in model.graph.input if info.name not in names]
    frozen.graph.initializer.extend(numpy_helper.from_array(values[name], name) for name in sorted(names))
    del frozen.graph.input[:]
    frozen.graph.input.extend(kept)
    return frozen


def export(candela, source, target, flags):
    done = subprocess.run([candela, "export", source, "-o", target, *flags], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120)
    return done.returncode, done.stderr.strip()


def import_and_write(candela, case, target, flags, model, values):
    """Exports; what the import has to know becomes constant, as it says so: first what it names, in the end all
    integers. The exit status, the text, and the names of the constants."""
    inputs = {info.name for info in model.graph.input}
    code, text = export(candela, case / "model.onnx", target, flags)
    frozen = set()
    while code == 2:
        more = (set(re.findall(r"\('([^']*)'\)", text)) & inputs) - frozen
        more = more or {name for name in inputs - frozen if values[name].dtype.kind in "iub"}
        if not more:
            break
        frozen |= more
        source = target.parent / "frozen.onnx"
        onnx_save(freeze(model, values, frozen), source)
        code, text = export(candela, source, target, flags)
        source.unlink()
    return code, text, sorted(frozen)


def onnx_save(model, path):
    path.write_bytes(model.SerializeToString())


def announce_own(candela, case, target, infos):
    """The numbers of random operators are ours to choose: what our own run of the case gives is expected."""
    import numpy as np
    from onnx import numpy_helper
    folder = target / "own"
    inputs = [f"--input={info.name}={case / 'test_data_set_0' / f'input_{i}.pb'}" for i, info in enumerate(infos[0])]
    subprocess.run([candela, "run", case / "model.onnx", *inputs, "--output", folder], check=True,
                   stdout=subprocess.DEVNULL)
    for i, info in enumerate(infos[1]):
        tensor = numpy_helper.from_array(np.load(folder / f"{info.name}.npy"), info.name)
        (target / "test_data_set_0" / f"output_{i}.pb").write_bytes(tensor.SerializeToString())
    shutil.rmtree(folder)


def write_case(candela, case, folder, flags):
    """Exports one case as a case of its own; its record."""
    import onnx
    model = onnx.load(case / "model.onnx")
    values = values_of(case, "input", model.graph.input)
    expected = values_of(case, "output", model.graph.output)
    record = {"case": case.name}
    if values is None or expected is None:
        return record | {"state": "no tensors", "why": "an input or an output is no tensor"}
    folder.mkdir(parents=True)
    target = folder / "model.onnx"
    code, text, frozen = import_and_write(candela, case, target, flags, model, values)
    if frozen:
        record["constants"] = frozen
    if code != 0:
        shutil.rmtree(folder)
        state = "refused" if code == 1 else "not imported"
        return record | {"state": state, "why": " ".join(text.split())[-400:]}
    written = onnx.load(target)
    if values and not written.graph.input:
        shutil.rmtree(folder)
        return record | {"state": "constant", "why": "everything that it computes had to be known"}
    data = folder / "test_data_set_0"
    data.mkdir()
    names = [each.name for each in model.graph.input]
    for i, info in enumerate(written.graph.input):
        shutil.copy(case / "test_data_set_0" / f"input_{names.index(info.name)}.pb", data / f"input_{i}.pb")
    for i in range(len(written.graph.output)):
        shutil.copy(case / "test_data_set_0" / f"output_{i}.pb", data / f"output_{i}.pb")
    if RANDOM & {node.op_type for node in model.graph.node}:
        announce_own(candela, case, folder, (model.graph.input, model.graph.output))
    return record | {"state": "written"}


def differs(given, wanted):
    """What is wrong with an array, or None."""
    import numpy as np
    if given.dtype == np.uint8 and wanted.dtype.itemsize == 1 and wanted.dtype.kind not in "iub":
        given = given.view(wanted.dtype)  # ONNX Runtime gives small floats as their bits
    if given.dtype != wanted.dtype or given.shape != wanted.shape:
        return f"{given.dtype}{list(given.shape)} in place of {wanted.dtype}{list(wanted.shape)}"
    if wanted.dtype.kind in "iub":
        count = int(np.count_nonzero(given != wanted))
        return f"{count} of {wanted.size} elements differ" if count else None
    a, b = given.astype(np.float64), wanted.astype(np.float64)
    rtol = RTOL if wanted.dtype.itemsize > 2 else 1e-2
    near = np.isclose(a, b, rtol=rtol, atol=ATOL, equal_nan=True)
    return None if near.all() else f"{int((~near).sum())} of {wanted.size} elements differ"


def outputs_of_runtime(path, inputs):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def run_case(folder):
    """What the checker, ONNX Runtime, or ONNX's own evaluator in its place say of a written file."""
    import onnx
    from onnx.reference import ReferenceEvaluator
    path = folder / "model.onnx"
    model = onnx.load(path)
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:  # noqa: BLE001: whatever it says is the finding
        return {"state": "malformed", "why": str(error)[:400]}
    inputs = values_of(folder, "input", model.graph.input)
    expected = values_of(folder, "output", model.graph.output)
    by = "onnxruntime"
    try:
        outputs = outputs_of_runtime(path, inputs)
    except Exception as error:  # noqa: BLE001
        why = str(error)
        by = "onnx.reference"
        try:
            outputs = ReferenceEvaluator(model).run(None, inputs)
        except Exception as second:  # noqa: BLE001
            return {"state": "not run", "why": f"{why[:200]}; {second}"[:400]}
        kernel = why[:160] if any(part in why for part in NO_KERNEL) else why[:400]
        result = {"by": by, "kernel": kernel}
    else:
        result = {"by": by}
    for given, (name, wanted) in zip(outputs, expected.items()):
        problem = differs(given, wanted)
        if problem:
            return result | {"state": "differs", "why": f"{name}: {problem}"}
    return result | {"state": "passed"}


def child(folder, names, out):
    with open(out, "a", encoding="utf-8") as lines:
        for name in names:
            lines.write(json.dumps({"case": name} | run_case(folder / name)) + "\n")
            lines.flush()


def run_all(folder, names):
    """Of each case, its record: of those that end the process that runs them too."""
    out = folder.parent / "runs.jsonl"
    out.write_text("")
    done = {}
    while len(done) < len(names):
        left = [name for name in names if name not in done]
        (folder.parent / "names.json").write_text(json.dumps(left))
        ended = subprocess.run([sys.executable, __file__, "--child", str(folder)], stderr=subprocess.DEVNULL)
        done = {record["case"]: record for record in map(json.loads, out.read_text().splitlines())}
        left = [name for name in names if name not in done]
        if left:
            done[left[0]] = {"case": left[0], "state": "not run", "why": f"the process ended with {ended.returncode}"}
            with open(out, "a", encoding="utf-8") as lines:
                lines.write(json.dumps(done[left[0]]) + "\n")
    return done


def conform(candela, folder):
    """The names of the cases that our own backend fails in what was written."""
    report = folder.parent / "conform.json"
    subprocess.run([candela, "conform", "--tier", "onnx", "--backend", "soft", "--onnx-data", folder, "--json", report],
                   stdout=subprocess.DEVNULL, timeout=3600)
    said = json.loads(report.read_text())
    return {"total": said["total"], "passed": said["passed"],
            "failed": [record["case"] for record in said["failed"] if record["case"] not in KNOWN],
            "known": KNOWN,
            "unsupported": [record["case"] for record in said["unsupported"]]}


def counted(records):
    return dict(collections.Counter(record["state"] for record in records))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--data", type=pathlib.Path, help="folders that tests/onnx/write_node_tests.py wrote before")
    parser.add_argument("--optimized", action="store_true", help="export with --optimized")
    parser.add_argument("--cases", default="", help="those alone whose names have this part")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for what is written")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/export_onnx.json")
    parser.add_argument("--child", type=pathlib.Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        names = json.loads((arguments.child.parent / "names.json").read_text())
        child(arguments.child, names, arguments.child.parent / "runs.jsonl")
        return 0
    if not arguments.candela.is_file():
        print(f"export_onnx: {arguments.candela} is missing; build it first", file=sys.stderr)
        return 2
    import onnx
    import onnxruntime
    flags = ["--optimized"] if arguments.optimized else []
    with tempfile.TemporaryDirectory(prefix="candela_export_") as temporary:
        work = arguments.keep or pathlib.Path(temporary)
        data = arguments.data or work / "data"
        if not arguments.data:
            subprocess.run([sys.executable, "-B", str(ROOT / "tests/onnx/write_node_tests.py"), str(data)], check=True)
        cases = sorted(path for path in data.iterdir() if arguments.cases in path.name)
        written = work / "written"
        shutil.rmtree(written, ignore_errors=True)
        records = {case.name: write_case(arguments.candela, case, written / case.name, flags) for case in cases}
        names = [name for name, record in records.items() if record["state"] == "written"]
        if not names:
            print("export_onnx: no case was written", file=sys.stderr)
            return 2
        runs = run_all(written, names)
        ours = conform(arguments.candela, written)
    by_runtime = [name for name in names if runs[name]["state"] == "passed" and runs[name]["by"] == "onnxruntime"]
    bad = [run for run in runs.values() if run["state"] in ("malformed", "differs")]
    report = {"schema": SCHEMA, "date": nightly_report.now(), "optimized": arguments.optimized,
              "versions": {"onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__},
              "cases": len(cases), "exports": counted(records.values()), "runs": counted(runs.values()),
              "passed_in_onnxruntime": len(by_runtime), "fewest": FEWEST, "ours": ours,
              "without_kernel": sorted(n for n in names if runs[n].get("by") == "onnx.reference"),
              "not_written": [r for r in records.values() if r["state"] != "written"],
              "not_passed": [r for r in runs.values() if r["state"] != "passed"]}
    nightly_report.write(arguments.report, report)
    print(f"{len(names)} of {len(cases)} cases written, {len(by_runtime)} of them with the announced outputs in ONNX "
          f"Runtime, {report['runs']}; ours: {ours['passed']}/{ours['total']}")
    print(f"report {arguments.report}")
    enough = bool(arguments.cases) or len(by_runtime) >= FEWEST
    return 0 if enough and not bad and not ours["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
