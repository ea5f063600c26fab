#!/usr/bin/env python3
"""Runs whole models in an unmodified ONNX Runtime with Candela as its provider, on several backends.

usage: tests/nightly/onnxruntime_provider.py [--build DIR] [--model NAME]... [--backend NAME]... [--port NAME=PLUGIN]...
                                             [--seconds 20] [--report FILE]

The backends are cpu, npu_sim, template and a port that is built outside of the tree (examples/hello_backend, unless --port
names a plugin). A session gets the model as it is, without ONNX Runtime's own optimizations, so that what `candela run`
answers is what the provider has to answer: to the bit where every node went to Candela, and within a bound where ONNX
Runtime computed some. On cpu no node may stay, and a run of the session may take at most 3 % and
20 us more than a run of the Python package `candela` in the same process, in turns, on one thread, the shortest of each.
Each model is then stored as EPContext, loaded again, and has to answer the same bits; and the program of
docs/tour/onnxruntime.md has to run. Writes benchmarks/results/onnxruntime_provider.json.

Needs a build in build/ with the Python package, and a Python of the version that it was built for with numpy, onnx and
onnxruntime 1.24 or later; a whole build unless --port is given.

Exit status: 0 all is as it should be, 1 something is not, 2 bad usage or nothing to run.
"""
import argparse
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/lib"), str(ROOT / "tests/models"), str(ROOT / "benchmarks"), str(ROOT / "tests/nightly")]
import nightly_report  # noqa: E402
import ports  # noqa: E402
from peers import machine  # noqa: E402
from random_input import random_input  # noqa: E402

SCHEMA = "candela.onnxruntime_provider/1"
PROVIDER = "CandelaExecutionProvider"
SEED = 1
DIMS = {"N": 1, "?": 96}  # of the models below: the batch, and the sides of pictures
MODELS = ("digits", "digits_int8", "resnet50", "resnet50_int8", "bert4", "bert4_int8", "text_line", "text_map")
BACKENDS = ("cpu", "npu_sim", "template")
TAKE_ALL = ("cpu",)  # what takes every operator in f32 and int8
PORT = "acme"
# Where ONNX Runtime computes some nodes: of the largest value. Integers may round to the step beside.
BOUNDS = {False: 2e-4, True: 2e-2}
SLOWER, SLOWER_MS = 1.03, 0.020
TIMEOUT_SECONDS = 1800


class Unusable(Exception):
    """There is nothing to run: a missing program, model or package."""


def path_of(arguments, model):
    folder = ROOT / "examples/digits" if model.startswith("digits") else arguments.build / "models"
    path = folder / f"{model}.onnx"
    if not path.is_file():
        raise Unusable(f"{path} is missing: candela-gen-models writes it")
    return path


def input_of(path):
    """The name and data of a model's input."""
    value = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"]).get_inputs()[0]
    shape = [dim if isinstance(dim, int) else DIMS.get(dim, DIMS["?"]) for dim in value.shape]
    return value.name, random_input(SEED, shape)


def session_of(path, options, configuration=()):
    settings = ort.SessionOptions()
    settings.log_severity_level = 3
    settings.intra_op_num_threads = 1
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    for key, value in configuration:
        settings.add_session_config_entry(key, value)
    for name, size in DIMS.items():
        settings.add_free_dimension_override_by_name(name, size)
    devices = [device for device in ort.get_ep_devices() if device.ep_name == PROVIDER]
    settings.add_provider_for_devices(devices, options)
    return ort.InferenceSession(str(path), sess_options=settings)


def nodes_of(session):
    """How many nodes each provider has, and in how many parts Candela has its own."""
    parts = session.get_provider_graph_assignment_info()
    ours = [len(part.get_nodes()) for part in parts if part.ep_name == PROVIDER]
    theirs = [len(part.get_nodes()) for part in parts if part.ep_name != PROVIDER]
    return {"candela": sum(ours), "parts": len(ours), "onnxruntime": sum(theirs)}


def answer_of_tool(arguments, path, plugin, name, data, folder):
    """What `candela run` answers; RuntimeError with its last words."""
    np.save(folder / "input.npy", data)
    command = [arguments.build / "bin/candela", "run", path, "--backend", plugin, "--input",
               f"{name}={folder / 'input.npy'}", "--output", folder, "--threads", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    if done.returncode != 0:
        raise RuntimeError(f"candela run: {done.stderr.strip().splitlines()[-1:]}")
    files = [file for file in folder.glob("*.npy") if file.name != "input.npy"]
    if len(files) != 1:
        raise RuntimeError(f"candela run wrote {len(files)} outputs, expected one")
    return np.load(files[0])


def took(call):
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1000


def latencies(arguments, path, session, name, data):
    """Shortest runs in milliseconds, of the package alone and of the session, which take turns run by run."""
    import candela
    alone = candela.compile(path, "cpu", shapes={name: data.shape})
    feeds = {name: data}
    best = {"candela_ms": float("inf"), "provider_ms": float("inf")}
    end = time.perf_counter() + arguments.seconds
    while time.perf_counter() < end:
        best["provider_ms"] = min(best["provider_ms"], took(lambda: session.run(None, feeds)))
        best["candela_ms"] = min(best["candela_ms"], took(lambda: alone.run(feeds)))
    return best


def stored_answer(path, options, name, data, folder):
    """The answer of the model that a session stored, loaded by another."""
    stored = folder / "stored_ctx.onnx"
    session_of(path, options, (("ep.context_enable", "1"), ("ep.context_embed_mode", "1"),
                               ("ep.context_file_path", str(stored))))
    return session_of(stored, options).run(None, {name: data})[0]


def problems_of(model, backend, case):
    problems = []
    if backend in TAKE_ALL and case["nodes"]["onnxruntime"]:
        problems.append(f"{case['nodes']['onnxruntime']} nodes stay with ONNX Runtime")
    if not case["nodes"]["onnxruntime"] and not case["same_bits"]:
        problems.append("the answer has not the bits of the tool's")
    bound = BOUNDS["int8" in model]
    if not case["max_of_largest"] <= bound:
        problems.append(f"the answer is {case['max_of_largest']:.2g} of the largest value from the tool's, at most {bound}")
    if case.get("stored_same_bits") is False:
        problems.append("the stored model answers something else")
    if "provider_ms" in case and case["provider_ms"] > case["candela_ms"] * SLOWER + SLOWER_MS:
        problems.append(f"{case['provider_ms']:.3f} ms, Candela alone takes {case['candela_ms']:.3f} ms")
    return problems


def run_case(arguments, model, backend, plugin):
    path = path_of(arguments, model)
    name, data = input_of(path)
    case = {"model": model, "backend": backend}
    options = {"backend": str(plugin), "threads": "1"}
    with tempfile.TemporaryDirectory(prefix="candela_provider_") as folder:
        folder = pathlib.Path(folder)
        try:
            begin = time.perf_counter()
            session = session_of(path, options)
            case["session_s"] = round(time.perf_counter() - begin, 2)
            case["nodes"] = nodes_of(session)
            answer = session.run(None, {name: data})[0]
            expected = answer_of_tool(arguments, path, str(plugin), name, data, folder)
            case["same_bits"] = answer.tobytes() == expected.tobytes()
            largest = float(np.abs(expected).max()) or 1.0
            case["max_of_largest"] = float(np.abs(answer.astype(np.float64) - expected).max()) / largest
            if case["nodes"]["candela"]:
                case["stored_same_bits"] = stored_answer(path, options, name, data, folder).tobytes() == answer.tobytes()
            if backend == "cpu":
                case |= latencies(arguments, path, session, name, data)
        except Exception as error:  # of ONNX Runtime, which has a class for each code
            return case | {"passed": False, "reason": str(error).splitlines()[0]}
    problems = problems_of(model, backend, case)
    case["passed"] = not problems
    return case | ({"reason": "; ".join(problems)} if problems else {})


def page_problem(arguments):
    """What happens to who follows docs/tour/onnxruntime.md; empty: it runs, and the stored model loads."""
    page = (ROOT / "docs/tour/onnxruntime.md").read_text()
    program = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)).replace("build/release", str(arguments.build))
    program += """
ort.InferenceSession("digits.onnx", sess_options=options)
assert os.path.isfile("digits_ctx.onnx"), "the page stored no model"
options = ort.SessionOptions()
options.add_provider_for_devices(devices, {"backend": "cpu"})
ort.InferenceSession("digits_ctx.onnx", sess_options=options)
"""
    with tempfile.TemporaryDirectory(prefix="candela_page_") as folder:
        shutil.copy(ROOT / "examples/digits/digits.onnx", folder)
        done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]


def plugins_of(arguments, folder):
    """{backend: what the option says}."""
    named = dict(pair.split("=", 1) for pair in arguments.port or [])
    if not named:
        named = {PORT: ports.build_port(arguments.build, "hello_backend", folder)}
    # A stored model names its backends, and names are looked for there.
    os.environ["CANDELA_PLUGIN_PATH"] = ":".join(str(pathlib.Path(path).resolve().parent) for path in named.values())
    plugins = {backend: backend for backend in BACKENDS} | {name: pathlib.Path(path).resolve() for name, path in named.items()}
    return {name: plugin for name, plugin in plugins.items() if name in (arguments.backend or plugins)}


def text_of(case):
    line = f"{case['model']:14} {case['backend']:9} "
    if "nodes" in case:
        line += f"{case['nodes']['candela']:4} nodes in {case['nodes']['parts']:2} parts, {case['nodes']['onnxruntime']:3} stay  "
    if "provider_ms" in case:
        line += f"{case['provider_ms']:9.3f} ms, alone {case['candela_ms']:9.3f} ms  "
    return line + (case.get("reason") or ("same bits" if case["same_bits"] else f"{case['max_of_largest']:.2g} apart"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--model", action="append", choices=MODELS, help="one model; may be given again")
    parser.add_argument("--backend", action="append", help="one backend; may be given again")
    parser.add_argument("--port", action="append", metavar="NAME=PLUGIN", help="instead of building examples/hello_backend")
    parser.add_argument("--seconds", type=float, default=20, help="of runs in turns for each latency")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/onnxruntime_provider.json")
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    sys.path.insert(0, str(arguments.build / "python"))
    try:
        library = arguments.build / "lib/libcandela_ort_ep.so"
        if not library.is_file():
            raise Unusable(f"{library} is missing; build it first")
        ort.register_execution_provider_library("candela", str(library))
        with tempfile.TemporaryDirectory(prefix="candela_port_") as folder:
            cases, plugins = [], plugins_of(arguments, pathlib.Path(folder))
            for model in arguments.model or MODELS:
                for backend, plugin in plugins.items():
                    cases.append(run_case(arguments, model, backend, plugin))
                    print(text_of(cases[-1]), flush=True)
        problem = page_problem(arguments)
        print(f"docs/tour/onnxruntime.md: {problem or 'runs'}")
        import candela
        passed = sum(case["passed"] for case in cases)
        nightly_report.write(arguments.report, {
            "schema": SCHEMA, "date": nightly_report.now(),
            "versions": {"candela": candela.__version__, "onnxruntime": ort.__version__, "python": platform.python_version()},
            "machine": machine(), "seed": SEED, "page": problem or "runs", "passed": passed, "total": len(cases), "cases": cases})
    except (Unusable, subprocess.CalledProcessError, ImportError, OSError) as error:
        print(f"onnxruntime_provider: {error}", file=sys.stderr)
        return 2
    print(f"{passed} of {len(cases)} cases passed")
    return 0 if passed == len(cases) and not problem else 1


if __name__ == "__main__":
    sys.exit(main())
