#!/usr/bin/env python3
"""Measures language models with int4 weights beside ONNX Runtime, alternating in one run, one and two threads.

usage: llm_speed.py [--candela FILE] [--size 0.1b|0.5b]... [--rounds N] [--report FILE]

Of each model of examples/llm: decode, a token at a time with a cache of 512 places, and a prompt of 128 tokens; ONNX Runtime by the
same file, with accuracy level 4 on both sides and past and present in one buffer. Of a chain of 24 products of 2048 x 2048: one row
and 128. The machine's memory is measured in the same rounds by a triad a = b + s * c over 400 MB in the threads of the round, and
decode is said in bytes of weights and scales a second against it.

Writes benchmarks/results/llm.json. Needs a build in build/, and Python with the packages of tests/models/requirements.txt and
tests/onnx/requirements.txt. On a machine that does nothing else.
"""
import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

MAKE_MODEL = ROOT / "examples/llm/make_model.py"
LENGTH, DECODED, PROMPT = 512, 32, 128
CHAIN_LAYERS, CHAIN_WIDTH = 24, 2048
STATES = ["ids=next_id", "seqlens_k=next_seqlens", "past_*=present_*"]
TRIAD = r"""
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>
int main(int argc, char** argv) {
  const int threads = argc > 1 ? argv[1][0] - '0' : 1;
  const size_t count = 33u << 20;
  std::vector<float> a(count, 1), b(count, 2), c(count, 3);
  double best = 0;
  for (int round = 0; round < 8; ++round) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        for (size_t i = count * t / threads; i < count * (t + 1) / threads; ++i) a[i] = b[i] + 3 * c[i];
      });
    for (std::thread& thread : all) thread.join();
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = best > count * 12 / s ? best : count * 12 / s;
  }
  std::printf("%f %f\n", best / 1e9, a[count / 2]);
}
"""


class Triad:
    def __init__(self, folder):
        source, self.program = folder / "triad.cpp", folder / "triad"
        source.write_text(TRIAD)
        subprocess.run(["c++", "-O3", "-march=native", "-pthread", source, "-o", self.program], check=True)

    def measure(self, threads):
        return float(subprocess.run([self.program, str(threads)], check=True, capture_output=True, text=True).stdout.split()[0])


def session_of(path, threads):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


class Onnxruntime:
    """A model of examples/llm with its caches in one buffer for past and present."""

    def __init__(self, path, threads):
        self.session = session_of(path, threads)
        self.caches = {i.name: ort.OrtValue.ortvalue_from_numpy(np.zeros(i.shape, np.float32))
                       for i in self.session.get_inputs() if i.name.startswith("past")}

    def run(self, ids, length):
        """Milliseconds, and the next token, of `ids`, with which `length` places are filled."""
        binding = self.session.io_binding()
        binding.bind_cpu_input("ids", ids)
        binding.bind_cpu_input("seqlens_k", np.array([length - 1], np.int32))
        for name, cache in self.caches.items():
            binding.bind_ortvalue_input(name, cache)
            binding.bind_ortvalue_output(name.replace("past", "present"), cache)
        for name in ("next_id", "next_seqlens", "logits"):
            binding.bind_output(name)
        start = time.perf_counter()
        self.session.run_with_iobinding(binding)
        ms = (time.perf_counter() - start) * 1e3
        return ms, binding.copy_outputs_to_cpu()[len(self.caches)]

    def generate(self, prompt):
        self.run(prompt, prompt.shape[1])
        prompt_ms, token = self.run(prompt, prompt.shape[1])
        times = []
        for i in range(DECODED):
            ms, token = self.run(token, prompt.shape[1] + 1 + i)
            times.append(ms)
        return {"prompt_ms": prompt_ms, "token_ms": sorted(times)[len(times) // 2]}


def candela(args, command, model, *more):
    command = [args.candela, command, model, "--backend", "cpu", *map(str, more), "--json", "-"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def candela_generates(args, model, folder, threads):
    states = [word for state in STATES for word in ("--state", state)]
    report = candela(args, "run", model, "--threads", threads, "--input", f"ids={folder}/prompt.npy", "--input",
                     f"seqlens_k={folder}/length.npy", *states, "--steps", DECODED)
    return {"prompt_ms": report["prompt"]["ms"], "token_ms": report["steps"]["latency_ms"]["median"]}


def write_chain(path, rows):
    from onnx import TensorProto, helper, numpy_helper, save
    random, value, nodes, constants = np.random.default_rng(0), "x", [], []
    shape = (CHAIN_WIDTH, CHAIN_WIDTH // 32, 16)
    for i in range(CHAIN_LAYERS):
        constants += [numpy_helper.from_array(random.integers(0, 256, shape, dtype=np.uint8), f"w{i}"),
                      numpy_helper.from_array((random.random(CHAIN_WIDTH**2 // 32) * 0.01 / 8).astype(np.float32), f"s{i}")]
        nodes.append(helper.make_node("MatMulNBits", [value, f"w{i}", f"s{i}"], [f"y{i}"], domain="com.microsoft", K=CHAIN_WIDTH,
                                      N=CHAIN_WIDTH, bits=4, block_size=32, accuracy_level=4))
        value = f"y{i}"
    info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, CHAIN_WIDTH])
    graph = helper.make_graph(nodes, "chain", [info("x")], [info(value)], constants)
    save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20),
                                                                 helper.make_opsetid("com.microsoft", 1)]), path)


def measure_chain(args, folder, rows, threads):
    path = f"{folder}/chain{rows}.onnx"
    if not pathlib.Path(path).exists():
        write_chain(path, rows)
    session, x = session_of(path, threads), np.random.default_rng(1).standard_normal((rows, CHAIN_WIDTH), dtype=np.float32)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        session.run(None, {"x": x})
        times.append((time.perf_counter() - start) * 1e3)
    ours = candela(args, "bench", path, "--threads", threads, "--seconds", 1)["latency_ms"]["min"]
    return {"onnxruntime_ms": min(times), "candela_ms": ours}


def best(rounds, key):
    return min(each[key] for each in rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", default=str(ROOT / "build/bin/candela"))
    parser.add_argument("--size", action="append", choices=["0.1b", "0.5b"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--report", default=str(ROOT / "benchmarks/results/llm.json"))
    args = parser.parse_args()
    report = {"schema": "candela.llm/1", "date": nightly_report.now(), "machine": nightly_report.machine(),
              "versions": {"onnxruntime": ort.__version__}, "accuracy_level": 4, "rounds": args.rounds, "models": [], "chain": []}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        triad = Triad(folder)
        prompt = np.random.default_rng(2).integers(0, 32000, (1, PROMPT)).astype(np.int64)
        np.save(folder / "prompt.npy", prompt)
        np.save(folder / "length.npy", np.array([PROMPT - 1], np.int32))
        for size in args.size or ["0.1b", "0.5b"]:
            model = str(folder / f"{size}.onnx")
            subprocess.run([sys.executable, MAKE_MODEL, model, "--size", size, "--capacity", str(LENGTH)], check=True)
            packed = os.path.getsize(model) - 32000 * {"0.1b": 768, "0.5b": 1024}[size] * 4  # less the embedding
            for threads in (1, 2):
                ours, theirs, bandwidth = [], [], []
                for _ in range(args.rounds):
                    bandwidth.append(triad.measure(threads))
                    ours.append(candela_generates(args, model, folder, threads))
                    theirs.append(Onnxruntime(model, threads).generate(prompt))
                rate = packed / best(ours, "token_ms") / 1e6
                entry = {"size": size, "threads": threads, "capacity": LENGTH, "triad_gb_s": max(bandwidth),
                         "weight_bytes": packed, "weights_gb_s": rate, "of_triad": rate / max(bandwidth)}
                for key in ("prompt_ms", "token_ms"):
                    entry["candela_" + key], entry["onnxruntime_" + key] = best(ours, key), best(theirs, key)
                report["models"].append(entry)
                print(f"{size}, {threads} threads: token {entry['candela_token_ms']:.2f} ms (ONNX Runtime "
                      f"{entry['onnxruntime_token_ms']:.2f}), {100 * entry['of_triad']:.0f} % of the triad's {max(bandwidth):.1f} GB/s; "
                      f"prompt of {PROMPT} {entry['candela_prompt_ms']:.0f} ms ({entry['onnxruntime_prompt_ms']:.0f})", flush=True)
        for rows in (1, 128):
            for threads in (1, 2):
                rounds = [measure_chain(args, folder, rows, threads) for _ in range(args.rounds)]
                entry = {"rows": rows, "threads": threads, "candela_ms": best(rounds, "candela_ms"),
                         "onnxruntime_ms": best(rounds, "onnxruntime_ms")}
                report["chain"].append(entry)
                print(f"chain, {rows} rows, {threads} threads: {entry['candela_ms']:.2f} ms (ONNX Runtime "
                      f"{entry['onnxruntime_ms']:.2f})", flush=True)
    nightly_report.write(pathlib.Path(args.report), report)


if __name__ == "__main__":
    main()
