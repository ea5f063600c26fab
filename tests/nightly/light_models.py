#!/usr/bin/env python3
"""Compares Candela with ONNX Runtime, run live, on the nine networks that the `onnx` package brings without weights.

usage: tests/nightly/light_models.py [--candela FILE] [--model NAME]... [--backend B]... [--report FILE]

AlexNet, DenseNet-121, Inception v1 and v2, ResNet-50, ShuffleNet, SqueezeNet, VGG-19 and ZFNet-512: the package's
graphs have the same constant in place of every weight. Here they get weights from a seed, of the size that keeps
activations where they are (He's), and the last layer is scaled so that the scores' standard deviation is 2. A case
passes where the scores before the softmax differ from ONNX Runtime's by at most 2e-4 of the largest, and the
probabilities behind it too. On cpu each also runs as ONNX Runtime's optimizer saves it, with operators of its own. It
proves something only where scores depend on class and image: their spread and what another image changes are in the
report, and must be 100 times that bound at least.

Writes benchmarks/results/light_models.json. Needs a build in build/, and Python with the packages of
tests/models/requirements.txt and tests/onnx/requirements.txt. One model at a time lies in a scratch folder: 600 MB.

Exit status: 0 all agree, 1 some do not, 2 bad usage or nothing to run.
"""
import argparse
import json
import pathlib
import platform
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

from onnxruntime_equality import ROOT, TOLERANCE, Unusable, compare
import nightly_report  # beside it, in lib

SCHEMA = "candela.light_models.v1"
SEED = 7
TELLING = 100 * TOLERANCE
TIMEOUT_SECONDS = 1200
DATA = pathlib.Path(onnx.__file__).parent / "backend/test/data/light"
THROUGH = ("Reshape", "Unsqueeze", "Identity")  # a weight on its way to the node that it belongs to
SCALING = ("BatchNormalization", "Mul", "Add")


def rng(name):
    return np.random.default_rng([SEED, zlib.crc32(name.encode())])


class Network:
    """One of the package's graphs; `weigh` gives it weights."""

    def __init__(self, path):
        self.model = onnx.load(path)
        self.graph = self.model.graph
        self.constants = {i.name: numpy_helper.to_array(i) for i in self.graph.initializer}
        self.readers, self.writer = {}, {}
        for node in self.graph.node:
            for index, name in enumerate(node.input):
                self.readers.setdefault(name, []).append((node, index))
            for name in node.output:
                self.writer[name] = node
        self.input = next(i for i in self.graph.input if i.name not in self.constants)
        self.image_shape = [dim.dim_value for dim in self.input.type.tensor_type.shape.dim]

    def role(self, name):
        node, index = self.readers[name][0]
        while node.op_type in THROUGH:
            node, index = self.readers[node.output[0]][0]
        return node, index

    def feeds_relu(self, node):
        """Whether a ReLU, behind scalings alone, halves what the node gives."""
        while True:
            readers = self.readers.get(node.output[0], [])
            if not readers or readers[0][0].op_type not in (*SCALING, "Relu"):
                return False
            node = readers[0][0]
            if node.op_type == "Relu":
                return True

    def values(self, name, shape):
        node, index = self.role(name)
        noise = rng(name).standard_normal(shape, dtype=np.float32)
        if node.op_type in ("Conv", "Gemm") and index == 1:
            transposed = any(a.name == "transB" and a.i for a in node.attribute)
            fan_in = np.prod(shape[1:]) if node.op_type == "Conv" or transposed else shape[-2]
            return noise * np.float32(np.sqrt((2 if self.feeds_relu(node) else 1) / fan_in))
        around_one = (node.op_type == "BatchNormalization" and index in (1, 4)) or node.op_type == "Mul"
        return np.float32(1) + np.float32(0.1) * np.clip(noise, -5, 5) if around_one else np.float32(0.1) * noise

    def weigh(self):
        weights, nodes = {}, []
        for node in self.graph.node:
            if node.op_type == "ConstantOfShape":
                weights[node.output[0]] = [int(d) for d in self.constants[node.input[0]]]
            else:
                nodes.append(node)
        for name, value in self.constants.items():
            if value.dtype == np.float32 and name in self.readers:
                weights[name] = value.shape
        del self.graph.node[:], self.graph.initializer[:]
        self.graph.node.extend(nodes)
        read = {name for node in nodes for name in node.input}
        for name, value in self.constants.items():
            if name in read and name not in weights:
                self.graph.initializer.append(numpy_helper.from_array(value, name))
        self.weights = {}
        for name, shape in weights.items():
            self.weights[name] = numpy_helper.from_array(self.values(name, tuple(shape)), name)
        inputs = [self.input]
        del self.graph.input[:]
        self.graph.input.extend(inputs)
        self.parameters = sum(int(np.prod(shape)) for shape in weights.values())

    def expose_scores(self):
        """The scores before the last softmax become an output, where there is one. Their name."""
        last = self.writer[self.graph.output[0].name]
        if last.op_type != "Softmax":
            return self.graph.output[0].name
        self.graph.output.append(onnx.helper.make_tensor_value_info(last.input[0], onnx.TensorProto.FLOAT, None))
        return last.input[0]

    def last_layer(self, scores):
        node = self.writer[scores]
        while node.op_type not in ("Conv", "Gemm"):
            node = self.writer[node.input[0]]
        return [self.origin(name) for name in node.input[1:]]

    def origin(self, name):
        while name not in self.weights:
            name = self.writer[name].input[0]
        return name

    def write(self, path):
        self.graph.initializer.extend(self.weights.values())
        path.write_bytes(self.model.SerializeToString())
        del self.graph.initializer[len(self.graph.initializer) - len(self.weights):]


def image(name, shape):
    """Smooth patches under noise, about as large as normalised pixels."""
    coarse = rng(name).standard_normal((*shape[:2], 8, 8), dtype=np.float32)
    smooth = np.kron(coarse, np.ones((1, 1, -(-shape[2] // 8), -(-shape[3] // 8)), np.float32))[..., :shape[2], :shape[3]]
    return smooth + np.float32(0.3) * rng(name + " noise").standard_normal(shape, dtype=np.float32)


def run_onnxruntime(path, network, *images):
    """For each image, the outputs by name."""
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return [dict(zip(names, session.run(names, {network.input.name: one}))) for one in images]


def optimize(path, optimized):
    """Writes what ONNX Runtime makes of the model, as far as that runs on any machine."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(optimized)
    options.log_severity_level = 3  # it warns that the file is its own
    ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    nodes = onnx.load(optimized, load_external_data=False).graph.node
    if not any(node.domain == "com.microsoft" for node in nodes):
        raise Unusable(f"ONNX Runtime {ort.__version__} fuses nothing in {path}")


def run_candela(arguments, model, network, picture, backend, directory):
    """The tool's JSON, or a string that says why there is none."""
    command = [str(arguments.candela), "run", str(model), "--backend", backend, "--input",
               f"{network.input.name}={picture}", "--output", str(directory), "--json", "-"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        return f"no answer after {TIMEOUT_SECONDS} s"
    if done.returncode != 0:
        return f"exit status {done.returncode}: {(done.stderr.strip() or 'nothing on stderr').splitlines()[-1]}"
    return json.loads(done.stdout)


def run_model(arguments, name, backends):
    """One record for each backend, and the version that the tool names itself by."""
    network = Network(DATA / f"light_{name}.onnx")
    network.weigh()
    scores = network.expose_scores()
    pictures = [image(which, network.image_shape) for which in ("first image", "second image")]
    with tempfile.TemporaryDirectory(prefix="candela_light_") as directory:
        folder = pathlib.Path(directory)
        model, picture = folder / "model.onnx", folder / "image.npy"
        np.save(picture, pictures[0])
        network.write(model)
        factor = np.float32(2 / run_onnxruntime(model, network, pictures[0])[0][scores].std())
        for weight in network.last_layer(scores):
            scaled = numpy_helper.to_array(network.weights[weight]) * factor
            network.weights[weight] = numpy_helper.from_array(scaled, weight)
        network.write(model)
        expected, other = run_onnxruntime(model, network, *pictures)
        largest = float(np.abs(expected[scores]).max())
        about = {"model": name, "parameters": network.parameters,
                 "spread": float(expected[scores].std()) / largest,
                 "other_image": float(np.abs(expected[scores] - other[scores]).max()) / largest}
        version = None
        forms = [(backend, "as exported", model) for backend in backends]
        if "cpu" in backends:
            forms.append(("cpu", "optimized", folder / "optimized.onnx"))
            optimize(model, forms[-1][2])
        for backend, form, path in forms:
            answer = run_candela(arguments, path, network, picture, backend, folder)
            case = about | {"backend": backend, "form": form, "passed": False, "outputs": []}
            if isinstance(answer, str):
                yield case | {"reason": answer}, version
                continue
            version = answer.get("candela_version")
            case["outputs"] = [compare(output, folder / f"{output.replace('/', '_')}.npy", values)
                               for output, values in expected.items()]
            failed = [f"{record['name']}: {record['reason']}" for record in case["outputs"] if not record["passed"]]
            if min(about["spread"], about["other_image"]) < TELLING:
                failed.append("the scores say nothing: they are the same for all classes or images")
            case["passed"] = not failed
            case |= {"reason": failed[0]} if failed else {}
            case |= {"placement": answer["placement"]} if "placement" in answer else {}
            yield case, version


def write_report(path, cases, version):
    report = {
        "schema": SCHEMA,
        "date": nightly_report.now(),
        "versions": {"candela": version, "onnxruntime": ort.__version__, "onnx": onnx.__version__,
                     "numpy": np.__version__, "python": platform.python_version()},
        "seed": SEED,
        "tolerance": TOLERANCE,
        "passed": sum(case["passed"] for case in cases),
        "total": len(cases),
        "cases": cases,
    }
    nightly_report.write(path, report)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--model", action="append", help="one of the nine; may be given again")
    parser.add_argument("--backend", action="append", help="instead of soft and cpu; may be given again")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/light_models.json")
    arguments = parser.parse_args()

    cases, version = [], None
    try:
        if not arguments.candela.is_file():
            raise Unusable(f"{arguments.candela} is missing; build it first")
        known = sorted(path.stem.removeprefix("light_") for path in DATA.glob("light_*.onnx"))
        if not known or not set(arguments.model or []) <= set(known):
            raise Unusable(f"{DATA} has the models {', '.join(known) or '(none)'}")
        for name in arguments.model or known:
            for case, said in run_model(arguments, name, arguments.backend or ("soft", "cpu")):
                version = version or said
                cases.append(case)
                worst = max((record.get("max_of_largest", 0) for record in case["outputs"]), default=0)
                said = case.get("reason") or f"{worst:.2g} of the largest value"
                print(f"{name:14} {case['backend']:6} {case['form']:11} {'ok' if case['passed'] else 'FAILED'}  {said}; "
                      f"spread {case['spread']:.2g}, another image {case['other_image']:.2g}", flush=True)
        write_report(arguments.report, cases, version)
    except (Unusable, OSError) as error:
        print(f"light_models: {error}", file=sys.stderr)
        return 2
    passed = sum(case["passed"] for case in cases)
    print(f"{passed} of {len(cases)} agree with ONNX Runtime {ort.__version__}; report {arguments.report}")
    return 0 if passed == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
