#!/usr/bin/env python3
"""Measures language models with int4 weights beside ONNX Runtime and llama.cpp, alternating in one run, one and two threads.

usage: llm_speed.py [--candela FILE] [--size 0.1b|0.5b]... [--rounds N] [--report FILE]

Of each model of examples/llm: decode, a token at a time with a cache of 512 places, and a prompt of 128 tokens; ONNX Runtime by the
same file, with accuracy level 4 on both sides and past and present in one buffer; llama.cpp, where it is installed, by the same
integers in Q4_0 (gguf_model.py), with a cache of as many places. Whether that is the same model is checked: its logits after the
prompt are near those of ONNX Runtime. Of a chain of 24 products of 2048 x 2048, without llama.cpp: one row and 128. The machine's
memory is measured in the same rounds by a triad a = b + s * c over 400 MB in the threads of the round, and decode is said in bytes
of weights and scales a second against it.

Writes benchmarks/results/llm.json. Needs a build in build/, and Python with the packages of tests/models/requirements.txt and
tests/onnx/requirements.txt; for llama.cpp also those of requirements.txt beside this file. On a machine that does nothing else.

Exit status: 0 measured, 1 llama.cpp computes something else.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
sys.path.insert(0, str(ROOT / "examples/llm"))
import llama_cpp_peer  # noqa: E402
import nightly_report  # noqa: E402
from make_model import SIZES  # noqa: E402

MAKE_MODEL = ROOT / "examples/llm/make_model.py"
LENGTH, DECODED, PROMPT = 512, 32, 128
CHAIN_LAYERS, CHAIN_WIDTH = 24, 2048
LOGITS_APART = 0.1  # of llama.cpp's from ONNX Runtime's, as a relative L2 norm
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
        """Milliseconds, the next token and its logits, of `ids`, with which `length` places are filled."""
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
        outputs = binding.copy_outputs_to_cpu()[len(self.caches):]
        return ms, outputs[0], outputs[2]

    def generate(self, prompt):
        self.run(prompt, prompt.shape[1])
        prompt_ms, token, logits = self.run(prompt, prompt.shape[1])
        times, tokens = [], [int(token[0, 0])]
        for i in range(DECODED):
            ms, token, _ = self.run(token, prompt.shape[1] + 1 + i)
            times.append(ms)
            tokens.append(int(token[0, 0]))
        return {"prompt_ms": prompt_ms, "token_ms": sorted(times)[len(times) // 2], "tokens": tokens, "logits": logits[0]}


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


def llama_cpp_generates(path, prompt, threads):
    peer = llama_cpp_peer.LlamaCpp(path, LENGTH, threads)
    try:
        return peer.generate(prompt[0].tolist(), DECODED)
    finally:
        peer.close()


def beside_onnxruntime(got, wanted):
    """Whether llama.cpp runs the same model. Tokens part where two logits are nearly the same, and all behind them are others."""
    apart = float(np.linalg.norm(got["logits"] - wanted["logits"]) / np.linalg.norm(wanted["logits"]))
    same = [ours == theirs for ours, theirs in zip(got["tokens"], wanted["tokens"])]
    return {"logits_relative_l2": apart, "tokens": len(same), "tokens_alike": [*same, False].index(False),
            "passed": apart <= LOGITS_APART}


def write_models(folder, size):
    """The ONNX model, and llama.cpp's where it is measured."""
    model = str(folder / f"{size}.onnx")
    subprocess.run([sys.executable, MAKE_MODEL, model, "--size", size, "--capacity", str(LENGTH)], check=True)
    if llama_cpp_peer.MISSING:
        return model, None
    llama_cpp_peer.gguf_model.write(model, folder / f"{size}.gguf", SIZES[size])
    return model, folder / f"{size}.gguf"


def weight_bytes(path, size):
    """Of what a token reads of the weights: the file less the table of embeddings."""
    return os.path.getsize(path) - SIZES[size].vocabulary * SIZES[size].hidden * 4


def measure_model(args, folder, triad, models, size, threads, prompt):
    model, gguf = models
    ours, theirs, llamas, bandwidth = [], [], [], []
    for _ in range(args.rounds):
        bandwidth.append(triad.measure(threads))
        ours.append(candela_generates(args, model, folder, threads))
        theirs.append(Onnxruntime(model, threads).generate(prompt))
        if gguf:
            llamas.append(llama_cpp_generates(gguf, prompt, threads))
    packed = weight_bytes(model, size)
    rate = packed / best(ours, "token_ms") / 1e6
    entry = {"size": size, "threads": threads, "capacity": LENGTH, "triad_gb_s": max(bandwidth),
             "weight_bytes": packed, "weights_gb_s": rate, "of_triad": rate / max(bandwidth)}
    for key in ("prompt_ms", "token_ms"):
        entry["candela_" + key], entry["onnxruntime_" + key] = best(ours, key), best(theirs, key)
        if gguf:
            entry["llama_cpp_" + key] = best(llamas, key)
    if gguf:
        entry |= {"llama_cpp_weight_bytes": weight_bytes(gguf, size), "llama_cpp_check": beside_onnxruntime(llamas[0], theirs[0])}
    return entry


def peers_of(entry, key, digits):
    names = {"ONNX Runtime": f"onnxruntime_{key}", "llama.cpp": f"llama_cpp_{key}"}
    return ", ".join(f"{name} {entry[field]:.{digits}f}" for name, field in names.items() if field in entry)


def line_of(entry):
    text = (f"{entry['size']}, {entry['threads']} threads: "
            f"token {entry['candela_token_ms']:.2f} ms ({peers_of(entry, 'token_ms', 2)}), "
            f"{100 * entry['of_triad']:.0f} % of the triad's {entry['triad_gb_s']:.1f} GB/s; "
            f"prompt of {PROMPT} {entry['candela_prompt_ms']:.0f} ms ({peers_of(entry, 'prompt_ms', 0)})")
    if check := entry.get("llama_cpp_check"):
        text += (f"; llama.cpp {'right' if check['passed'] else 'WRONG'}: logits {check['logits_relative_l2']:.2g} apart, "
                 f"{check['tokens_alike']} of {check['tokens']} tokens alike")
    return text


def measure_models(args, folder, report):
    triad = Triad(folder)
    prompt = np.random.default_rng(2).integers(0, 32000, (1, PROMPT)).astype(np.int64)
    np.save(folder / "prompt.npy", prompt)
    np.save(folder / "length.npy", np.array([PROMPT - 1], np.int32))
    for size in args.size or ["0.1b", "0.5b"]:
        models = write_models(folder, size)
        for threads in (1, 2):
            entry = measure_model(args, folder, triad, models, size, threads, prompt)
            report["models"].append(entry)
            print(line_of(entry), flush=True)


def measure_chains(args, folder, report):
    for rows in (1, 128):
        for threads in (1, 2):
            rounds = [measure_chain(args, folder, rows, threads) for _ in range(args.rounds)]
            entry = {"rows": rows, "threads": threads, "candela_ms": best(rounds, "candela_ms"),
                     "onnxruntime_ms": best(rounds, "onnxruntime_ms")}
            report["chain"].append(entry)
            print(f"chain, {rows} rows, {threads} threads: {entry['candela_ms']:.2f} ms (ONNX Runtime "
                  f"{entry['onnxruntime_ms']:.2f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", default=str(ROOT / "build/bin/candela"))
    parser.add_argument("--size", action="append", choices=["0.1b", "0.5b"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--report", default=str(ROOT / "benchmarks/results/llm.json"))
    args = parser.parse_args()
    report = {"schema": "candela.llm/1", "date": nightly_report.now(), "machine": nightly_report.machine(),
              "versions": {"onnxruntime": ort.__version__}, "llama_cpp": llama_cpp_peer.about(), "accuracy_level": 4,
              "rounds": args.rounds, "models": [], "chain": []}
    if llama_cpp_peer.MISSING:
        print(llama_cpp_peer.MISSING, file=sys.stderr)
    with tempfile.TemporaryDirectory() as name:
        measure_models(args, pathlib.Path(name), report)
        measure_chains(args, pathlib.Path(name), report)
    nightly_report.write(pathlib.Path(args.report), report)
    return 0 if all(entry.get("llama_cpp_check", {}).get("passed", True) for entry in report["models"]) else 1


if __name__ == "__main__":
    sys.exit(main())
