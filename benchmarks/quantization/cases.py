"""The float models that are quantized, each with data that calibrates it and other data that it is judged by."""
import dataclasses
import pathlib
import sys
from collections.abc import Callable

import numpy as np
import onnx
import onnx.version_converter

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts/lib"))
sys.path.insert(0, str(ROOT / "tests/nightly"))
import light_models  # noqa: E402
import nightly_models  # noqa: E402
import written_text  # noqa: E402

SEED = 1
CALIBRATING, JUDGED = 0, 1  # parts of a seed
LINES_SEED, PAGES_SEED = 101, 102
LIGHT_JUDGED = 16  # images: the ratio of a few answers of a softmax says little
OPSET = 13  # the least with which quantize_static gives each channel a step of its own
LIGHT = sorted(path.stem for path in light_models.DATA.glob("light_*.onnx"))
TRAINED = ("ocr_recognition", "ocr_detection")


@dataclasses.dataclass
class Case:
    path: pathlib.Path
    input: str
    calibration: np.ndarray
    test: np.ndarray
    score: Callable | None = None  # of the first output for all of `test`: a share of 1
    seeds: tuple = ()  # of `calibration` and of `test`


def digits():
    folder = ROOT / "examples/digits"
    train = (np.load(folder / "train_images.npy") / 16).astype(np.float32)
    labels = np.load(folder / "test_labels.npy")
    return Case(folder / "digits.onnx", "images", train[:256], np.load(folder / "test_images.npy"),
                lambda scores: float((scores.argmax(1) == labels).mean()))


def noise(shape, count):
    return np.random.default_rng(SEED).normal(0, 1, (count, *shape)).astype(np.float32)


def generated(path, count):
    """A model of random weights, and random data."""
    value = onnx.load(path, load_external_data=False).graph.input[0]
    shape = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim][1:]
    random = np.random.default_rng(SEED)
    calibration = random.normal(0, 1, (count, *shape)).astype(np.float32)
    return Case(path, value.name, calibration, random.normal(0, 1, (4, *shape)).astype(np.float32), seeds=(SEED, SEED))


def raised(model):
    """At the opset that quantize_static asks for."""
    given = {value.name for value in model.graph.input}
    for tensor in model.graph.initializer:  # which the converter knows as inputs alone
        if tensor.name not in given:
            model.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    converted = onnx.version_converter.convert_version(model, OPSET)
    names = {tensor.name for tensor in converted.graph.initializer}
    inputs = [value for value in converted.graph.input if value.name not in names]
    del converted.graph.input[:]
    converted.graph.input.extend(inputs)
    converted.ir_version = 8
    return converted


def light(name, count, folder):
    """One of the onnx package's networks with the weights of tests/nightly/light_models.py."""
    network = light_models.Network(light_models.DATA / f"light_{name}.onnx")
    network.weigh()
    path = folder / f"{name}.onnx"
    network.write(path)
    onnx.save(raised(onnx.load(path)), path)
    images = [light_models.image(str(i), network.image_shape) for i in range(count + LIGHT_JUDGED)]
    return Case(path, network.input.name, np.concatenate(images[LIGHT_JUDGED:]), np.concatenate(images[:LIGHT_JUDGED]))


def trained(name, lines, pages, folder):
    """A model that reads or finds text; `lines` and `pages` count (calibrating, judged) pictures."""
    original = onnx.load(nightly_models.trained()[name][0])
    signs = {entry.key: entry.value for entry in original.metadata_props}.get("character", "").split("\n")
    path = folder / f"{name}.onnx"
    onnx.save(raised(original), path)
    if name == "ocr_recognition":
        seeds = [LINES_SEED, CALIBRATING], [LINES_SEED, JUDGED]
        calibration, _ = written_text.lines(seeds[0], lines[0])
        test, texts = written_text.lines(seeds[1], lines[1])
        return Case(path, "x", calibration, test,
                    lambda scores: written_text.character_accuracy(scores, texts, ["", *signs, " "]), seeds)
    seeds = [PAGES_SEED, CALIBRATING], [PAGES_SEED, JUDGED]
    calibration, _ = written_text.pages(seeds[0], pages[0])
    test, boxes = written_text.pages(seeds[1], pages[1])
    return Case(path, "x", calibration, test, lambda found: written_text.mean_overlap(found, boxes), seeds)
