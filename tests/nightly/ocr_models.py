#!/usr/bin/env python3
"""Reads text with three trained models and compares Candela with ONNX Runtime, run live: answers and time.

usage: tests/nightly/ocr_models.py [--candela FILE] [--cache DIR] [--wheel FILE] [--model NAME]... [--backend B]...
                                     [--rounds 3] [--seconds 2] [--report FILE]

Detection, direction and recognition of PaddleOCR, as scripts/fetch_models gets them, each at two sizes of its input. The
pictures are drawn here: pages of several lines, single lines upright and turned by 180 degrees; what becomes of them
before the model is what the wheel of the models does. That the models see text is checked first: detection finds
every line and little else, direction tells what is turned, recognition reads what was written.

A case, one backend of reference, soft, template (also with --to-primitives) and cpu, passes where every value differs from
ONNX Runtime's by at most 1e-3 of the largest. On the backend cpu, each model must also be compiled, from file to bundle,
within 2.5 s of processor time, and take at most twice ONNX Runtime's time, both on one thread, measured in turns, the
best of some rounds; the ratio in the report is ONNX Runtime's time / Candela's, above 1 where Candela is faster.

Writes benchmarks/results/ocr_models.json. Needs a build in build/, and Python with the packages of
tests/models/requirements.txt and benchmarks/requirements.txt.

Exit status: 0 all is as it should be, 1 something is not, 2 bad usage or nothing to run.
"""
import argparse
import json
import pathlib
import platform
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort
import PIL
from PIL import Image, ImageDraw, ImageFont

from onnxruntime_equality import ROOT, Unusable
import nightly_report  # beside it, in lib

SCHEMA = "candela.ocr_models.v1"
TOLERANCE = 1e-3
COMPILE_MS = 2500
SLOWER = 2
TIMEOUT_SECONDS = 1200
RUNS = (("reference", False), ("soft", False), ("template", False), ("template", True), ("cpu", False))
INPUT = "x"

PAPER, INK = (238, 233, 220), (28, 34, 62)
LINES = ("One model comes in,", "thirteen primitives go out", "Candela 2026", "7,350 lines by candlelight")


# --- Pictures ---------------------------------------------------------------------------------------------------------


def page(height, width, texts):
    """A page with a line of text in each part of its height, and the boxes around the lines: left, top, right, bottom."""
    image = Image.new("RGB", (width, height), PAPER)
    draw, boxes = ImageDraw.Draw(image), []
    for i, text in enumerate(texts):
        size = (20, 34, 26, 42)[i % 4]
        at = (width * (1 + i % 3) // 16, height * (2 * i + 1) // (2 * len(texts)))
        font = ImageFont.load_default(size)
        draw.text(at, text, font=font, fill=INK, anchor="lm")
        boxes.append(draw.textbbox(at, text, font=font, anchor="lm"))
    return image, boxes


def one_line(text, height, turned=False):
    font = ImageFont.load_default(height * 2 // 3)
    image = Image.new("RGB", (round(font.getlength(text)) + height // 3, height), PAPER)
    ImageDraw.Draw(image).text((height // 6, height / 2), text, font=font, fill=INK, anchor="lm")
    return image.rotate(180) if turned else image


def normalised(image):
    """Blue, green, red in [-1, 1], channels first, as the wheel makes them."""
    return ((np.asarray(image, np.float32)[..., ::-1] / 255 - 0.5) / 0.5).transpose(2, 0, 1)


def batch(images, height, width):
    """The images made as high as the model wants them, and filled up with zeros to its width."""
    made = np.zeros((len(images), 3, height, width), np.float32)
    for row, image in zip(made, images):
        wide = min(width, -(-image.width * height // image.height))
        row[..., :wide] = normalised(image.resize((wide, height), Image.Resampling.BILINEAR))
    return made


# --- Models: the cases of each, as (input, what is wrong with an answer to it) ------------------------------------------


def detection(_session):
    for height, width in ((736, 992), (416, 576)):
        image, boxes = page(height, width, LINES)

        def judge(answer, boxes=boxes):
            found, inside = answer[0, 0] > 0.3, np.zeros(answer.shape[2:], bool)
            for text, (left, top, right, bottom) in zip(LINES, boxes):
                if found[int(top):int(bottom), int(left):int(right)].mean() < 0.25:
                    return f"'{text}' is not found"
                inside[max(0, int(top) - 8):int(bottom) + 8, max(0, int(left) - 8):int(right) + 8] = True
            return None if (found & ~inside).mean() < 0.002 else "text is found where none is"

        yield normalised(image)[None], judge


def direction(_session):
    for count, height, width in ((6, 48, 192), (1, 64, 256)):
        turned = [bool(i % 2) for i in range(count)]
        images = [one_line(text, height + 4, turn) for text, turn in zip((*LINES, *LINES), turned)]

        def judge(answer, turned=turned):
            return None if [bool(a.argmax()) for a in answer] == turned else "a direction is wrong"

        yield batch(images, height, width), judge


def recognition(session):
    signs = ["", *session.get_modelmeta().custom_metadata_map["character"].split("\n"), " "]
    for texts in (LINES[2:3], LINES):
        images = [one_line(text, 48) for text in texts]

        def judge(answer, texts=texts):
            for text, row in zip(texts, answer.argmax(-1)):
                read = "".join(signs[sign] for sign, before in zip(row, [0, *row]) if sign not in (0, before)).strip()
                if read != text:
                    return f"'{text}' is read as '{read}'"
            return None

        yield batch(images, 48, int(48 * max(320 / 48, *(image.width / 48 for image in images)))), judge


MODELS = {"ocr_detection": detection, "ocr_direction": direction, "ocr_recognition": recognition}


# --- Runs -------------------------------------------------------------------------------------------------------------


def models(arguments):
    """The path of each model, by name."""
    command = [sys.executable, "-B", str(ROOT / "scripts/fetch_models")]
    command += ["--cache", str(arguments.cache)] if arguments.cache else []
    command += ["--wheel", str(arguments.wheel)] if arguments.wheel else []
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Unusable(f"the models are missing\n{done.stderr.strip()}")
    return dict(line.split("\t") for line in done.stdout.splitlines())


def session_of(model):
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def candela(arguments, command, model, backend, picture, *more):
    """The tool's JSON, or a string that says why there is none."""
    line = [str(arguments.candela), command, model, "--backend", backend, "--input", f"{INPUT}={picture}", "--json", "-", *more]
    line += ["--threads", "1"] if command == "bench" else []
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        return f"no answer after {TIMEOUT_SECONDS} s"
    if done.returncode != 0:
        return f"exit status {done.returncode}: {(done.stderr.strip() or 'nothing on stderr').splitlines()[-1]}"
    return json.loads(done.stdout)


def compare(got, expected):
    """How far `got` is, with `reason` where it is too far."""
    if got.shape != expected.shape or got.dtype != expected.dtype or not np.isfinite(got).all():
        return {"reason": f"{got.dtype}{list(got.shape)}, or values that are not finite; expected {list(expected.shape)}"}
    far = float(np.abs(got.astype(np.float64) - expected).max()) / float(np.abs(expected).max())
    return {"max_of_largest": far} | ({} if far <= TOLERANCE else {"reason": f"differs by {far:.3g} of the largest value"})


def answer_case(arguments, model, backend, to_primitives, picture, expected, judge, folder):
    name, values = expected
    answer = candela(arguments, "run", model, backend, picture, "--output", str(folder),
                     *(["--to-primitives"] if to_primitives else []))
    if isinstance(answer, str):
        return {"reason": answer}, None
    got = np.load(folder / f"{name.replace('/', '_')}.npy")
    case = compare(got, values)
    wrong = None if "reason" in case else judge(got)
    return case | ({"reason": wrong} if wrong else {}), answer.get("candela_version")


def shortest(session, feeds, seconds):
    """Of at least three runs, in ms."""
    session.run(None, feeds)
    best, count, end = float("inf"), 0, time.perf_counter() + seconds
    while count < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        session.run(None, feeds)
        best, count = min(best, time.perf_counter() - start), count + 1
    return best * 1e3


def processor_ms(command):
    """How long a program that ends well kept processors busy."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_SECONDS)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1e3


def time_case(arguments, model, session, feeds, picture):
    """Compilation and latency on the backend cpu beside ONNX Runtime's, with `reason` where one is too slow."""
    shape = "x".join(map(str, feeds[INPUT].shape))
    compile_it = [str(arguments.candela), "compile", model, "--backend", "cpu", "--shape", f"{INPUT}={shape}",
                  "--output", str(picture.with_suffix(".cdb"))]
    ours = theirs = compiling = float("inf")
    for _ in range(arguments.rounds):
        report = candela(arguments, "bench", model, "cpu", picture, "--seconds", str(arguments.seconds))
        if isinstance(report, str):
            return {"reason": report}
        ours = min(ours, report["latency_ms"]["min"])
        theirs = min(theirs, shortest(session, feeds, arguments.seconds))
        compiling = min(compiling, processor_ms(compile_it))
    timed = {"compile_ms": round(compiling, 1), "candela_ms": round(ours, 4), "onnxruntime_ms": round(theirs, 4),
             "vs_onnxruntime": round(theirs / ours, 3)}
    if compiling > COMPILE_MS:
        timed["reason"] = f"compiled in {compiling:.0f} ms, at most {COMPILE_MS} are allowed"
    elif ours > SLOWER * theirs:
        timed["reason"] = f"takes {ours:.3g} ms, ONNX Runtime {theirs:.3g}"
    return timed


def run_model(arguments, name, model):
    """One record for each run, and the version that the tool names itself by."""
    session = session_of(model)
    output = session.get_outputs()[0].name
    wanted = [run for run in RUNS if not arguments.backend or run[0] in arguments.backend]
    for values, judge in MODELS[name](session):
        feeds = {INPUT: values}
        expected = session.run([output], feeds)[0]
        about = {"model": name, "input": list(values.shape)}
        wrong = judge(expected)
        if wrong:
            yield about | {"engine": "onnxruntime", "passed": False, "reason": wrong}, None
        with tempfile.TemporaryDirectory(prefix="candela_ocr_") as directory:
            folder = pathlib.Path(directory)
            np.save(folder / "x.npy", values)
            for backend, to_primitives in wanted:
                case, version = answer_case(arguments, model, backend, to_primitives, folder / "x.npy", (output, expected),
                                            judge, folder)
                if backend == "cpu" and "reason" not in case:
                    case |= time_case(arguments, model, session, feeds, folder / "x.npy")
                yield about | {"backend": backend, "to_primitives": to_primitives, "passed": "reason" not in case} | case, version


def write_report(path, cases, version):
    report = {
        "schema": SCHEMA,
        "date": nightly_report.now(),
        "versions": {"candela": version, "onnxruntime": ort.__version__, "numpy": np.__version__,
                     "pillow": PIL.__version__, "python": platform.python_version()},
        "machine": nightly_report.machine(),
        "tolerance": TOLERANCE,
        "compile_ms_allowed": COMPILE_MS,
        "passed": sum(case["passed"] for case in cases),
        "total": len(cases),
        "cases": cases,
    }
    nightly_report.write(path, report)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--cache", type=pathlib.Path, help="where scripts/fetch_models keeps the models")
    parser.add_argument("--wheel", type=pathlib.Path, help="a copy of the models' wheel, where there is no network")
    parser.add_argument("--model", action="append", choices=MODELS, help="one of the three; may be given again")
    parser.add_argument("--backend", action="append", choices=sorted({run[0] for run in RUNS}), help="may be given again")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2, help="per engine and round")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/ocr_models.json")
    arguments = parser.parse_args()

    cases, version = [], None
    try:
        if not arguments.candela.is_file():
            raise Unusable(f"{arguments.candela} is missing; build it first")
        paths = models(arguments)
        for name in arguments.model or MODELS:
            for case, said in run_model(arguments, name, paths[name]):
                version = version or said
                cases.append(case)
                what = case.get("backend", "onnxruntime") + (" primitives" if case.get("to_primitives") else "")
                text = case.get("reason") or f"{case['max_of_largest']:.2g} of the largest value"
                if "candela_ms" in case:
                    text += (f"; compiled in {case['compile_ms']:.0f} ms, {case['candela_ms']:.3g} ms, "
                             f"ONNX Runtime {case['onnxruntime_ms']:.3g} ms, ratio {case['vs_onnxruntime']:.2f}")
                print(f"{name:16}{'x'.join(map(str, case['input'])):14}{what:20} {'ok' if case['passed'] else 'FAILED'}  {text}",
                      flush=True)
        write_report(arguments.report, cases, version)
    except (Unusable, OSError, subprocess.SubprocessError) as error:
        print(f"ocr_models: {error}", file=sys.stderr)
        return 2
    passed = sum(case["passed"] for case in cases)
    print(f"{passed} of {len(cases)} passed beside ONNX Runtime {ort.__version__}; report {arguments.report}")
    return 0 if passed == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
