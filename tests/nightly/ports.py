#!/usr/bin/env python3
"""Runs the ports of examples/ on everything that a port has to do right.

usage: tests/nightly/ports.py [--build DIR] [--port NAME=PLUGIN]... [--jobs N] [--report FILE]

For each port: builds it outside of the tree against the installed build (unless --port names its plugin), then
`candela conform --size full`, digits and the six benchmark models against the answers of ONNX Runtime. Writes
benchmarks/results/ports.json.

Needs a whole build in build/, with build/bin/candela-gen-models.

Exit status: 0 all is right, 1 not so, 2 nothing to run.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.ports_nightly.v1"
PORTS = ("hello_backend", "tiles_backend")
# Output and the largest difference, as in tests/models/CMakeLists.txt.
MODELS = {"mbv2": ("out", 1.16e-3), "mbv2_int8": ("out", 0.1001), "resnet50": ("out", 0.35),
          "resnet50_int8": ("out", 0.1001), "bert4": ("out", 7e-4), "bert4_int8": ("out", 0.142)}
TIMEOUT_SECONDS = 3600


def report_of(command, folder):
    """What the command said in JSON; its exit status is the report's business."""
    file = pathlib.Path(folder) / "report.json"
    file.unlink(missing_ok=True)
    subprocess.run([*command, "--json", file], timeout=TIMEOUT_SECONDS, stdout=subprocess.DEVNULL)
    return json.loads(file.read_text())


def run(*command):
    subprocess.run(command, check=True, timeout=TIMEOUT_SECONDS, stdout=subprocess.DEVNULL)


def build_port(build, name, folder):
    """The plugin, of a project that sees the installation alone."""
    prefix, out = folder / "sdk", folder / name
    if not prefix.exists():
        run("cmake", "--install", build, "--prefix", prefix)
    run("cmake", "-S", prefix / "share/candela/examples" / name, "-B", out, "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", out)
    plugin, = (out / "lib/candela").glob("*.so")
    return plugin


def model_run(candela, plugin, model, output, expected, bound, options, folder):
    report = report_of([candela, "run", model, "--backend", plugin, *options, "--expect", f"{output}={expected}",
                        "--rtol", "0", "--atol", str(bound)], folder)
    wrong = {m["name"]: m["max_abs"] for m in report["mismatches"]}
    return {"model": model.stem, "right": not wrong, "placement": report["placement"],
            "latency_ms": report["latency_ms"]["min"], **({"mismatches": wrong} if wrong else {})}


def port_run(build, name, plugin, jobs, folder):
    candela, models = build / "bin/candela", build / "models"
    suite = report_of([candela, "conform", "--backend", plugin, "--size", "full", "--jobs", str(jobs)], folder)
    conform = {key: suite[key] for key in ("suite_version", "total", "passed", "native", "failed", "problems")}
    for outcome in ("unsupported", "emulated", "xfail"):
        conform[outcome] = len(suite[outcome])
    digits, expected = ROOT / "examples/digits", ROOT / "tests/models/expected"
    runs = [model_run(candela, plugin, digits / "digits.onnx", "scores", digits / "expected_scores.npy", 5.8e-3,
                      ["--input", f"images={digits / 'test_images.npy'}"], folder)]
    for model, (output, bound) in MODELS.items():
        runs.append(model_run(candela, plugin, models / f"{model}.onnx", output, expected / f"{model}_seed1.npy", bound,
                              ["--dim", "N=1", "--random", "1"], folder))
    return {"port": name, "conform": conform, "models": runs}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--port", action="append", default=[], help="NAME=PLUGIN: these alone, and not built")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/ports.json")
    arguments = parser.parse_args()
    plugins = dict(port.split("=", 1) for port in arguments.port)
    try:
        run(arguments.build / "bin/candela-gen-models", arguments.build / "models")
        with tempfile.TemporaryDirectory(prefix="candela_ports_") as folder:
            folder = pathlib.Path(folder)
            ports = [port_run(arguments.build, name, plugins.get(name) or build_port(arguments.build, name, folder),
                              arguments.jobs, folder) for name in plugins or PORTS]
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        print(f"ports: {error}", file=sys.stderr)
        return 2
    nightly_report.write(arguments.report, {"schema": SCHEMA, "date": nightly_report.now(), "cores": os.cpu_count(),
                                            "ports": ports})
    good = True
    for port in ports:
        suite, wrong = port["conform"], [run["model"] for run in port["models"] if not run["right"]]
        good &= not suite["failed"] and not suite["problems"] and not wrong
        print(f"{port['port']:14} {suite['passed']}/{suite['total']} passed, {len(suite['failed'])} failed; "
              f"{len(port['models']) - len(wrong)} of {len(port['models'])} models right {' '.join(wrong)}")
    print(f"report {arguments.report}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
