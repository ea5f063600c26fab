#!/usr/bin/env python3
"""Quantizes the same models on the same data with `candela quantize` and with ONNX Runtime's quantize_static, and runs
both results in ONNX Runtime.

usage: benchmarks/quantization/compare.py [--candela FILE] [--models DIR] [--model NAME]... [--report FILE]

Per model and calibrator: the signal-to-noise ratio of each output against the float model on data that calibrated
nothing, a score where there is a right answer, and the seconds and the memory of each tool's command, profiling and
writing included; of quantize_static also the seconds of the call, without the start of Python and its imports:

  digits            the share of test images that are recognized
  ocr_recognition   the share of characters read right, on lines of text that are drawn here
  ocr_detection     how well the boxes that are found are those of the lines of drawn pages (mean intersection over union)
  light_NAME        the onnx package's networks, and generated ones: their weights are random, so they have no score

Then the same file of `candela quantize` in ONNX Runtime and in Candela: digits, MobileNetV2, ResNet-50, a BERT encoder;
and that encoder with --integer-functions on every backend and instruction set.

digits is in the repository; scripts/fetch_models gets the OCR models; generated models are taken from --models, else
candela-gen-models writes them, beside candela. With --model the rows of other models stay in the
report as they are.

Needs Python with benchmarks/quantization/requirements.txt, and Debian's fonts-dejavu-core. Writes
benchmarks/results/quantization.json.
"""
import argparse
import dataclasses
import json
import pathlib
import platform
import sys
import tempfile

import numpy as np
import onnxruntime as ort

import cases
import equality
import tools
import nightly_models  # of scripts/lib, which cases.py found
import nightly_report

SCHEMA = "candela.quantization.v3"
GENERATED = ("mbv2", "resnet50", "bert4")
EQUALITY = ("digits", *GENERATED)
LONGER = {"resnet50": ("entropy", 64)}  # calibrator, samples: one more row, for what takes long
MODELS = ("digits", *cases.TRAINED, *cases.LIGHT, *GENERATED)


def snr(want, got):
    noise = float(((want.astype(np.float64) - got) ** 2).sum())
    return 200.0 if noise == 0 else 10 * np.log10(float((want.astype(np.float64) ** 2).sum()) / noise)


def quantize(arguments, case, calibrator, folder):
    """The models of both tools, and what they took."""
    paths = {tool: folder / f"{tool}_{calibrator}.onnx" for tool in ("candela", "onnxruntime")}
    ours = tools.quantize_by_candela(arguments.candela, case, calibrator, paths["candela"])
    theirs = tools.quantize_by_onnxruntime(case, calibrator, paths["onnxruntime"])
    return paths, {"candela_seconds": round(ours.seconds, 3), "candela_mb": round(ours.megabytes),
                   "onnxruntime_seconds": round(theirs.seconds, 3), "onnxruntime_mb": round(theirs.megabytes),
                   "onnxruntime_call_seconds": round(float(theirs.said), 3)}


def compare(arguments, name, case, calibrator, want):
    row = {"model": name, "calibrator": calibrator, "samples": len(case.calibration), "judged": len(case.test)}
    row |= {"seeds": case.seeds} if case.seeds else {}
    row |= {"float_score": round(case.score(want[0]), 5)} if case.score else {}
    with tempfile.TemporaryDirectory() as folder:
        paths, cost = quantize(arguments, case, calibrator, pathlib.Path(folder))
        row |= cost
        for tool, path in paths.items():
            got = tools.run_onnxruntime(path, case)
            row[f"{tool}_snr_db"] = [round(float(snr(a, b)), 2) for a, b in zip(want, got)]
            row |= {f"{tool}_score": round(case.score(got[0]), 5)} if case.score else {}
    return row


def compare_longer(arguments, name, case, want):
    """With more samples; and what is left of our seconds where a profile is there."""
    calibrator, count = LONGER[name]
    longer = dataclasses.replace(case, calibration=cases.noise(case.calibration.shape[1:], count))
    row = compare(arguments, name, longer, calibrator, want)
    with tempfile.TemporaryDirectory() as folder:
        profile, path = pathlib.Path(folder) / "profile.txt", pathlib.Path(folder) / "quantized.onnx"
        tools.quantize_by_candela(arguments.candela, longer, calibrator, path, "--dump-profile", profile)
        again = tools.quantize_by_profile(arguments.candela, longer, calibrator, path, profile)
        return row | {"candela_seconds_with_profile": round(again.seconds, 3)}


def compare_places(arguments, name, case):
    """Where our model runs: rows for the report's `equality` and `integer_functions`."""
    count = min(arguments.places, len(case.test))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "quantized.onnx"
        tools.quantize_by_candela(arguments.candela, case, "minmax", path)
        beside = {"model": name} | equality.beside_onnxruntime(arguments.candela, path, case, count)
        if name != "bert4":
            return beside, None
        tools.quantize_by_candela(arguments.candela, case, "minmax", path, "--integer-functions")
        return beside, {"model": name} | equality.across_backends(arguments.candela, path, case, 1)


def case_of(arguments, name, folder):
    if name == "digits":
        return cases.digits()
    if name in cases.LIGHT:
        return cases.light(name.removeprefix("light_"), arguments.samples, folder)
    if name in cases.TRAINED:
        return cases.trained(name, (arguments.lines, 200), (arguments.pages, 40), folder)
    made = nightly_models.generated(arguments.candela.parent.parent, arguments.models, folder)
    return cases.generated(made[name][0], arguments.samples)


def kept(arguments, names):
    """The report that is there, without what is measured again."""
    old = json.loads(arguments.report.read_text()) if arguments.model and arguments.report.is_file() else {}
    return {part: [row for row in old.get(part, []) if row["model"] not in names]
            for part in ("rows", "equality", "integer_functions")}


def measure(arguments, name, report):
    with tempfile.TemporaryDirectory() as folder:
        case = case_of(arguments, name, pathlib.Path(folder))
        want = tools.run_onnxruntime(case.path, case)
        for calibrator in arguments.calibrator or (tools.CALIBRATORS if case.score else ["minmax"]):
            report["rows"].append(compare(arguments, name, case, calibrator, want))
            print(json.dumps(report["rows"][-1]), flush=True)
        if name in LONGER:
            report["rows"].append(compare_longer(arguments, name, case, want))
            print(json.dumps(report["rows"][-1]), flush=True)
        if name not in EQUALITY:
            return
        beside, across = compare_places(arguments, name, case)
        report["equality"].append(beside)
        report["integer_functions"] += [across] if across else []
        print(json.dumps([beside, across]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candela", type=pathlib.Path, default=cases.ROOT / "build/bin/candela")
    parser.add_argument("--models", type=pathlib.Path, help="what candela-gen-models wrote")
    parser.add_argument("--model", action="append", choices=MODELS, metavar="NAME", help=", ".join(MODELS))
    parser.add_argument("--calibrator", action="append", choices=list(tools.CALIBRATORS),
                        help="all where there is a score, else minmax")
    parser.add_argument("--samples", type=int, default=8, help="that calibrate a model of random weights (8)")
    parser.add_argument("--lines", type=int, default=32, help="of text that calibrate recognition (32)")
    parser.add_argument("--pages", type=int, default=32, help="that calibrate detection (32)")
    parser.add_argument("--places", type=int, default=4, help="samples that run in Candela too (4)")
    parser.add_argument("--report", type=pathlib.Path, default=cases.ROOT / "benchmarks/results/quantization.json")
    arguments = parser.parse_args()
    names = arguments.model or MODELS
    report = {"schema": SCHEMA, "machine": nightly_report.machine(), "onnxruntime": ort.__version__,
              "python": platform.python_version(), **kept(arguments, names)}
    for name in names:
        measure(arguments, name, report)
        nightly_report.write(arguments.report, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
