#!/usr/bin/env python3
"""Runs language models with int4 weights (examples/llm) greedily and compares the tokens.

usage: tests/nightly/language_models.py [--candela FILE] [--report FILE]

Of models of two layers and three seeds, by accuracy level 0 and 4: cpu, soft and template say what the oracle says, 32 tokens after a
prompt of 9. Logits of the first token are within 1e-3 of the oracle's, and within 1e-2 of ONNX Runtime's, which rounds activations in
its own way at level 4. 1,000 steps on cpu grow the process by at most 1 MB after the first 100 and compile nothing.

Writes benchmarks/results/language_models.json. Needs a build in build/, and Python with the packages of tests/models/requirements.txt
and tests/onnx/requirements.txt.

Exit status: 0 all agree, 1 some do not, 2 bad usage or nothing to run.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime as ort

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

STATES = ["ids=next_id", "seqlens_k=next_seqlens", "past_*=present_*"]
PROMPT, STEPS = 9, 32


def run(candela, folder, model, backend, steps, *more):
    states = [word for state in STATES for word in ("--state", state)]
    command = [candela, "run", model, "--backend", backend, "--input", f"ids={folder}/ids.npy", "--input",
               f"seqlens_k={folder}/length.npy", *states, "--steps", str(steps), "--json", "-", *more]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def first_logits(candela, folder, model, backend):
    """Of the prompt, whose caches are zeros."""
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    feeds = {"ids": np.load(f"{folder}/ids.npy"), "seqlens_k": np.load(f"{folder}/length.npy")}
    inputs = []
    for given in session.get_inputs():
        if given.name.startswith("past"):
            feeds[given.name] = np.zeros(given.shape, np.float32)
        np.save(f"{folder}/{given.name}.npy", feeds[given.name])
        inputs += ["--input", f"{given.name}={folder}/{given.name}.npy"]
    if backend == "onnxruntime":
        return session.run(["logits"], feeds)[0]
    subprocess.run([candela, "run", model, "--backend", backend, *inputs, "--output", f"{folder}/out"], check=True, capture_output=True)
    return np.load(f"{folder}/out/logits.npy")


def apart(got, wanted):
    return float(np.abs(got - wanted).max() / np.abs(wanted).max())


def compare(candela, folder, model):
    wanted = run(candela, folder, model, "reference", STEPS)["steps"]["states"]["next_id"]
    problems = []
    for backend in ("cpu", "soft", "template"):
        if (said := run(candela, folder, model, backend, STEPS)["steps"]["states"]["next_id"]) != wanted:
            problems.append(f"{backend} says {said}, the oracle {wanted}")
    logits = first_logits(candela, folder, model, "reference")
    for name, bound in (("cpu", 1e-3), ("onnxruntime", 1e-2)):
        if (far := apart(first_logits(candela, folder, model, name), logits)) > bound:
            problems.append(f"logits of {name} are {far:.2g} of the largest apart, allowed {bound}")
    return {"tokens": wanted, "problems": problems, "passed": not problems}


def grown_kb(candela, folder, model, steps):
    """Peak memory of a process of so many steps."""
    code = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, "
            "stderr=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    states = [word for state in STATES for word in ("--state", state)]
    command = [sys.executable, "-c", code, candela, "run", model, "--backend", "cpu", "--shape", "ids=1x1", *states, "--steps", str(steps)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/language_models.json")
    arguments = parser.parse_args()
    if not arguments.candela.is_file():
        print(f"language_models: {arguments.candela} is missing; build it first", file=sys.stderr)
        return 2
    report = {"schema": "candela.language_models/1", "date": nightly_report.now(), "machine": nightly_report.machine(),
              "versions": {"onnxruntime": ort.__version__}, "results": []}
    with tempfile.TemporaryDirectory(prefix="candela_llm_") as folder:
        np.save(f"{folder}/ids.npy", np.random.default_rng(5).integers(0, 256, (1, PROMPT)).astype(np.int64))
        np.save(f"{folder}/length.npy", np.array([PROMPT - 1], np.int32))
        for seed in (1, 2, 3):
            for level in (0, 4):
                model = f"{folder}/model.onnx"
                subprocess.run([sys.executable, ROOT / "examples/llm/make_model.py", model, "--seed", str(seed), "--accuracy-level",
                                str(level), "--capacity", "64"], check=True, capture_output=True)
                result = {"seed": seed, "accuracy_level": level, **compare(arguments.candela, folder, model)}
                report["results"].append(result)
                print(f"seed {seed}, accuracy level {level}: {'; '.join(result['problems']) or 'alike'}", flush=True)
        subprocess.run([sys.executable, ROOT / "examples/llm/make_model.py", model, "--capacity", "1100"], check=True, capture_output=True)
        few, many = (grown_kb(arguments.candela, folder, model, steps) for steps in (100, 1000))
        report["results"].append({"grown_kb": many - few, "passed": many - few <= 1024})
        print(f"1,000 steps take {many - few} KB more than 100")
    passed = sum(result["passed"] for result in report["results"])
    report |= {"passed": passed, "total": len(report["results"])}
    nightly_report.write(arguments.report, report)
    return 0 if passed == len(report["results"]) else 1


if __name__ == "__main__":
    sys.exit(main())
