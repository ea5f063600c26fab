#!/usr/bin/env python3
"""Candela beside ONNX Runtime, and OpenVINO where it is installed: latency at batch 1, alternating in one run.

usage: benchmarks/peers.py [--candela FILE] [--models DIR] [--only NAME]... [--threads 1,2] [--rounds 3] [--seconds 2]
                           [--backend B] [--precision bf16] [--option K=V]... [--report FILE]

Machines are shared and their clocks move, so that a latency alone says little: every round measures each engine for
some seconds, one after the other, and the best over the rounds counts. Ratios are peer / candela: above 1, Candela is
faster. Each of Candela's answers is checked first, against ONNX Runtime on the same input (random, seed 1):
  float models      within 2e-4 of the largest value
  int8 networks     of convolutions: at least 75 % of the values within one step of the output, all within two
  bert4_int8        within 4 % of the largest value, and 3 % as a relative L2 norm
  --precision bf16  within 5 % as a relative L2 norm
With --precision bf16 the float models are computed in bf16 by Candela and by OpenVINO, and Candela's f32 stands beside them.
Integer models are checked against ONNX Runtime without its graph optimizations, which change what is computed.

Needs a build in build/ (candela, candela-gen-models, the plugin), and Python with numpy and onnxruntime:
    python3 -m venv venv && venv/bin/pip install -r tests/models/requirements.txt -r benchmarks/requirements.txt
    venv/bin/python benchmarks/peers.py

Exit status: 0 all answers are right, 1 some are not, 2 bad usage or nothing to run.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort

try:
    import openvino
except ImportError:
    openvino = None

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/models"))
from random_input import random_input  # noqa: E402

SCHEMA = "candela.peers/1"
MODELS = ("resnet50", "resnet50_int8", "mbv2", "mbv2_int8", "bert4", "bert4_int8")
SEED = 1
TIMEOUT_SECONDS = 900


class Unusable(Exception):
    """There is nothing to measure: a missing program or model, or a tool that fails."""


# --- Engines: each has name, and best(seconds) -> the shortest latency in ms ------------------------------------------


def best_of(run, seconds):
    """The shortest of at least three runs, in ms."""
    shortest, count, end = float("inf"), 0, time.perf_counter() + seconds
    while count < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        shortest = min(shortest, time.perf_counter() - start)
        count += 1
    return shortest * 1e3


class OnnxRuntime:
    name = "onnxruntime"

    def __init__(self, model, feeds, threads, optimized=True):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        if not optimized:
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self.feeds = feeds

    def run(self):
        return self.session.run(None, self.feeds)

    def best(self, seconds):
        self.run()
        return best_of(self.run, seconds)


class OpenVino:
    name = "openvino"

    def __init__(self, model, feeds, threads, precision="f32"):
        core = openvino.Core()
        network = core.read_model(str(model))
        network.reshape({name: list(values.shape) for name, values in feeds.items()})
        settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
                    "INFERENCE_PRECISION_HINT": precision}
        self.request = core.compile_model(network, "CPU", settings).create_infer_request()
        self.feeds = feeds

    def best(self, seconds):
        self.request.infer(self.feeds)
        return best_of(lambda: self.request.infer(self.feeds), seconds)


def openvino_isa(model):
    """The instruction set that OpenVINO is held to: the environment's, else none, unless its own choice ends with an
    illegal instruction here, as its tiles do on some virtual machines."""
    if "ONEDNN_MAX_CPU_ISA" in os.environ:
        return os.environ["ONEDNN_MAX_CPU_ISA"]
    probe = [sys.executable, "-B", __file__, "--probe-openvino", str(model)]
    if not openvino or subprocess.run(probe, capture_output=True).returncode != -signal.SIGILL:
        return None
    os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE_FP16"
    return os.environ["ONEDNN_MAX_CPU_ISA"]


class Candela:
    def __init__(self, arguments, model, threads, dims=("--dim", "N=1"), precision="f32", name="candela"):
        self.tool, self.version, self.name = str(arguments.candela), None, name
        self.compile_ms = float("inf")
        self.rest = [str(model), "--backend", arguments.backend, "--threads", str(threads), *dims,
                     "--precision", precision, "--random", str(SEED), "--json", "-"]
        for option in arguments.option:
            self.rest += ["--option", option]

    def call(self, command, *more):
        try:
            done = subprocess.run([self.tool, command, *self.rest, *more], capture_output=True, text=True,
                                  timeout=TIMEOUT_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unusable(f"{self.tool} {command}: {error}") from error
        if done.returncode != 0:
            raise Unusable(done.stderr.strip() or f"{self.tool} {command}: exit status {done.returncode}")
        report = json.loads(done.stdout)
        self.version = report["candela_version"]
        self.compile_ms = min(self.compile_ms, report["compile_ms"])
        return report

    def output(self, name):
        with tempfile.TemporaryDirectory(prefix="candela_peers_") as folder:
            self.call("run", "--output", folder)
            return np.load(pathlib.Path(folder) / f"{name}.npy")

    def best(self, seconds):
        return self.call("bench", "--seconds", str(seconds))["latency_ms"]["min"]


# --- Answers ----------------------------------------------------------------------------------------------------------


def step_of(values):
    """The distance of neighbours on the grid of a quantized output."""
    distances = np.diff(np.unique(values))
    return float(distances[distances > 1e-4 * distances.max()].min())


def check(name, got, want, precision="f32"):
    """What was found, with `passed`."""
    if got.shape != want.shape or not np.isfinite(got).all():
        return {"passed": False, "reason": f"{got.dtype}{list(got.shape)}, or values that are not finite"}
    delta = np.abs(got.astype(np.float64) - want.astype(np.float64))
    largest = float(np.abs(want).max())
    found = {"max_of_largest": float(delta.max()) / largest}
    if precision != "f32":
        found["relative_l2"] = float(np.linalg.norm(delta) / np.linalg.norm(want.astype(np.float64)))
        return found | {"passed": found["relative_l2"] <= 0.05}
    if "int8" not in name:
        return found | {"passed": found["max_of_largest"] <= 2e-4}
    if "bert" in name:
        found["relative_l2"] = float(np.linalg.norm(got - want) / np.linalg.norm(want))
        return found | {"passed": found["max_of_largest"] <= 0.04 and found["relative_l2"] <= 0.03}
    steps = np.rint(delta / step_of(want))
    found |= {"within_one_step": float((steps <= 1).mean()), "max_steps": int(steps.max())}
    return found | {"passed": found["within_one_step"] >= 0.75 and found["max_steps"] <= 2}


# --- One run ----------------------------------------------------------------------------------------------------------


def locate(arguments, name):
    path = arguments.models / f"{name}.onnx"
    if not path.is_file():
        writer = arguments.candela.parent / "candela-gen-models"
        if not writer.is_file():
            raise Unusable(f"{path} is missing, and so is {writer}, which writes it")
        subprocess.run([writer, arguments.models, "--only", name], check=True, stdout=subprocess.DEVNULL)
    return path


def random_feeds(session):
    feeds, first = {}, 0
    for value in session.get_inputs():
        shape = [dim if isinstance(dim, int) else 1 for dim in value.shape]
        feeds[value.name] = random_input(SEED, shape, first)
        first += feeds[value.name].size
    return feeds


def measure(arguments, name, threads, report):
    model = locate(arguments, name)
    exact = OnnxRuntime(model, {}, 1, optimized="int8" not in name)
    exact.feeds = feeds = random_feeds(exact.session)
    precision = arguments.precision
    candela = Candela(arguments, model, threads, precision=precision)
    checked = check(name, candela.output(exact.session.get_outputs()[0].name), exact.run()[0], precision)
    del exact
    engines = [candela, OnnxRuntime(model, feeds, threads)]
    if precision != "f32":
        engines.append(Candela(arguments, model, threads, name="candela_f32"))
    if openvino:
        engines.append(OpenVino(model, feeds, threads, precision))
    best = {engine.name: float("inf") for engine in engines}
    for _ in range(arguments.rounds):
        for engine in engines:
            best[engine.name] = min(best[engine.name], engine.best(arguments.seconds))
    report["versions"]["candela"] = candela.version
    result = {"model": name, "precision": "int8" if "int8" in name else precision, "threads": threads}
    result |= {f"{engine}_ms": round(ms, 4) for engine, ms in best.items()}
    result |= {f"vs_{engine}": round(ms / best["candela"], 4) for engine, ms in best.items() if engine != "candela"}
    return result | {"compile_ms": round(candela.compile_ms, 1), "check": checked}


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    fields = {line.split(":")[0].strip(): line.split(":", 1)[1].strip() for line in lines if ":" in line}
    interesting = ("fma", "avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16")
    flags = fields.get("flags", "").split()
    return {"processor": fields.get("model name", platform.processor()), "cores": os.cpu_count(),
            "features": [flag for flag in interesting if flag in flags], "system": platform.platform()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build/models",
                        help="where the models are, or are to be written")
    parser.add_argument("--only", action="append", choices=MODELS, help="one model; may be given again")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2, help="per engine and round")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32", help="of the float models")
    parser.add_argument("--option", action="append", default=[], help="of the backend")
    parser.add_argument("--report", type=pathlib.Path, help="benchmarks/results/peers.json, or peers_bf16.json")
    parser.add_argument("--probe-openvino", type=pathlib.Path, metavar="MODEL", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.report:
        arguments.report = ROOT / f"benchmarks/results/peers{'' if arguments.precision == 'f32' else '_' + arguments.precision}.json"
    if arguments.probe_openvino:
        session = OnnxRuntime(arguments.probe_openvino, {}, 1).session
        OpenVino(arguments.probe_openvino, random_feeds(session), 1).best(0)
        return 0

    report = {
        "schema": SCHEMA,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "versions": {"candela": None, "onnxruntime": ort.__version__,
                     "openvino": openvino.__version__ if openvino else None, "numpy": np.__version__,
                     "python": platform.python_version()},
        "machine": machine(),
        "settings": {"rounds": arguments.rounds, "seconds": arguments.seconds, "backend": arguments.backend, "batch": 1,
                     "precision": arguments.precision, "options": arguments.option},
        "results": [],
    }
    try:
        if not arguments.candela.is_file():
            raise Unusable(f"{arguments.candela} is missing; build it first")
        report["settings"]["openvino_isa"] = openvino_isa(locate(arguments, "mbv2_int8"))
        floats = [name for name in MODELS if "int8" not in name]
        for name in arguments.only or (MODELS if arguments.precision == "f32" else floats):
            for threads in map(int, arguments.threads.split(",")):
                result = measure(arguments, name, threads, report)
                report["results"].append(result)
                times = "  ".join(f"{key[:-3]} {value:8.3f} ms" for key, value in result.items()
                                  if key.endswith("_ms") and key != "compile_ms")
                ratios = "  ".join(f"{key} {value:5.2f}" for key, value in result.items() if key.startswith("vs_"))
                print(f"{name:13}  threads {threads}  {times}  {ratios}  "
                      f"{'right' if result['check']['passed'] else 'WRONG: ' + json.dumps(result['check'])}", flush=True)
        arguments.report.parent.mkdir(parents=True, exist_ok=True)
        part = arguments.report.with_name(arguments.report.name + ".part")
        part.write_text(json.dumps(report, indent=2) + "\n")
        os.replace(part, arguments.report)
    except (Unusable, subprocess.CalledProcessError, OSError, ValueError) as error:
        print(f"peers: {error}", file=sys.stderr)
        return 2
    wrong = [result for result in report["results"] if not result["check"]["passed"]]
    print(f"report {arguments.report}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
