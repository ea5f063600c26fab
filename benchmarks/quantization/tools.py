"""Both tools that quantize, and ONNX Runtime and Candela, which run what comes out."""
import dataclasses
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime as ort

CALIBRATORS = ("minmax", "entropy", "percentile")


# The seconds of one child and the peak of its memory, which getrusage has of a process that waits for no other.
MEASURE = """import resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], check=True)
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"""


@dataclasses.dataclass
class Cost:
    seconds: float
    megabytes: float
    said: str  # what the command printed last


def cost_of(command):
    done = subprocess.run([sys.executable, "-c", MEASURE, *map(str, command)], check=True, capture_output=True, text=True)
    *said, cost = done.stdout.splitlines()
    seconds, kilobytes = cost.split()
    return Cost(float(seconds), int(kilobytes) / 1024, said[-1] if said else "")


def quantize_by_onnxruntime(case, calibrator, result):
    """What the command takes; it says what the call of the library in it took."""
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "data.npy"
        np.save(data, case.calibration)
        script = pathlib.Path(__file__).with_name("quantize_static.py")
        return cost_of([sys.executable, script, case.path, case.input, data, calibrator, result])


def quantize_by_candela(candela, case, calibrator, result, *options):
    """What the command takes."""
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "data.npy"
        np.save(data, case.calibration)
        return cost_of([candela, "quantize", case.path, "--data", data, "--calibrate", calibrator, "-o", result,
                        "--compare", "0", *options])


def quantize_by_profile(candela, case, calibrator, result, profile):
    return cost_of([candela, "quantize", case.path, "--load-profile", profile, "--calibrate", calibrator, "-o", result,
                    "--compare", "0"])


def session(path, fuse=True):
    """Without `fuse` the model is taken at its word: reals between QuantizeLinear and DequantizeLinear."""
    options = ort.SessionOptions()
    if not fuse:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    # Else products of bytes saturate in 16 bits on machines without VNNI, whoever made the model.
    options.add_session_config_entry("session.x64quantprecision", "1")
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def run_onnxruntime(path, case, fuse=True):
    """Each output for all that the case is judged by, sample by sample."""
    model = session(path, fuse)
    runs = [model.run(None, {case.input: case.test[i:i + 1]}) for i in range(len(case.test))]
    return [np.concatenate(each) for each in zip(*runs)]


def run_by_name(path, feeds):
    """ONNX Runtime's outputs by name."""
    model = session(path)
    return dict(zip([output.name for output in model.get_outputs()], model.run(None, feeds)))


def run_candela(candela, path, feeds, *options):
    """Candela's outputs by name."""
    with tempfile.TemporaryDirectory() as folder:
        results, command = pathlib.Path(folder) / "results", [candela, "run", path, *options]
        for i, (name, value) in enumerate(feeds.items()):
            np.save(pathlib.Path(folder) / f"{i}.npy", value)
            command += ["--input", f"{name}={folder}/{i}.npy"]
        subprocess.run([*map(str, command), "--output", str(results)], check=True, capture_output=True)
        return {file.stem: np.load(file) for file in results.glob("*.npy")}


def answer_of_candela(candela, path, case, count, *options):
    """The one output for the first `count` samples, sample by sample."""
    runs = [run_candela(candela, path, {case.input: case.test[i:i + 1]}, *options) for i in range(count)]
    return np.concatenate([next(iter(run.values())) for run in runs])
