#!/usr/bin/env python3
"""Networks on several cores of gem16 that share one memory: how many times as fast as one core, and what limits them.

usage: benchmarks/npu/npu_cores.py [--candela FILE] [--models DIR] [--report FILE] [--witness]

ResNet-50 and MobileNetV2 of int8 (build/models, which the fixture of the tests writes) at batch 1 and 4, on four cores with the memory of
one and with four times its width, by fast time. ResNet-50 at batch 4 must be at least 3.2 times as fast with the wide one. Energies of layers
and busy cycles of cores must sum to the totals. Writes benchmarks/results/npu_cores.json.

--witness  runs digits and MobileNetV2 with values on 3 cores, verified, and writes nothing

Exit status: 0 as it should be, 1 not.
"""
import argparse
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402

SCHEMA = "candela.npu_cores.v1"
CORES, LEAST = 4, 3.2
WIDE = {"same": 64, "wide": 64 * CORES}
TIMEOUT_SECONDS = 600


def configuration(folder, cores, width):
    """A file with gem16, so many cores and that width of the memory."""
    text = (ROOT / "simulator/configs/gem16.toml").read_text().replace("width_bits = 64", f"width_bits = {width}")
    path = pathlib.Path(folder) / f"gem16_{cores}_{width}.toml"
    path.write_text(text + (f"\n[cores]\ncount = {cores}\n" if cores > 1 else ""))
    return path


def simulate(candela, model, npu, batch, *more):
    return nightly_report.answer([str(candela), "simulate", str(model), "--npu", str(npu), "--dim", f"N={batch}", "--random", "1", *more],
                                 TIMEOUT_SECONDS)


def problems_of(report):
    """Sums that are not the totals."""
    problems = []
    for engine, cycles in report["time"]["busy"].items():
        if cycles != sum(core["busy"][engine] for core in report["time"]["cores"]):
            problems.append(f"busy cycles of {engine} are not those of all cores")
    if report["cycles"] != sum(layer["cycles"] for layer in report["layers"]):
        problems.append("the cycles of layers do not sum to the program's")
    energy = sum(layer["energy_nj"] for layer in report["layers"])
    if abs(energy - report["energy"]["nj"]) > 1e-6 * energy:
        problems.append("the energies of layers do not sum to the program's")
    return problems


def measure(candela, model, batch, folder):
    one = simulate(candela, model, configuration(folder, 1, 64), batch, "--fidelity", "fast")
    result = {"model": model.stem, "batch": batch, "cycles": one["cycles"], "dram_bytes": one["dram_bytes"]["all"], "on": {}, "problems": []}
    for name, width in WIDE.items():
        several = simulate(candela, model, configuration(folder, CORES, width), batch, "--fidelity", "fast")
        speed = one["cycles"] / several["cycles"]
        result["problems"] += problems_of(several)
        result["on"][name] = {"cores": CORES, "width_bits": width, "cycles": several["cycles"], "speed": round(speed, 3),
                              "dram_bytes": several["dram_bytes"]["all"], "report": several["cores"]}
        print(f"{model.stem} N={batch}, {CORES} cores, {width} bits: {several['cycles']} cycles, {speed:.2f} times as fast; {several['cores']['limit']}",
              flush=True)
        if name == "wide" and batch == 4 and model.stem.startswith("resnet50") and speed < LEAST:
            result["problems"].append(f"{speed:.2f} times as fast, at least {LEAST} are wanted")
    return result


def witness(candela, models, folder):
    npu = configuration(folder, 3, 64)
    for model, batch in ((ROOT / "examples/digits/digits_int8.onnx", 4), (models / "mbv2_int8.onnx", 1)):
        report = simulate(candela, model, npu, batch, "--verify", "--fidelity", "fast")
        problems = problems_of(report) + ([] if report["verified"] else ["values differ"])
        if problems:
            sys.exit(f"npu_cores: {model.stem}: {'; '.join(problems)}")
        print(f"{model.stem} N={batch} on 3 cores: verified, {report['cycles']} cycles")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candela", default=ROOT / "build/bin/candela", type=pathlib.Path)
    parser.add_argument("--models", default=ROOT / "build/models", type=pathlib.Path)
    parser.add_argument("--report", default=ROOT / "benchmarks/results/npu_cores.json", type=pathlib.Path)
    parser.add_argument("--witness", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.witness:
            return witness(arguments.candela, arguments.models, folder)
        results = [measure(arguments.candela, arguments.models / f"{name}.onnx", batch, folder)
                   for name in ("resnet50_int8", "mbv2_int8") for batch in (4, 1)]
    bad = [f"{each['model']} N={each['batch']}: {problem}" for each in results for problem in each["problems"]]
    nightly_report.write(arguments.report, {"schema": SCHEMA, "generated_at": nightly_report.now(), "machine": nightly_report.machine(),
                                            "passed": sum(not each["problems"] for each in results), "total": len(results),
                                            "results": results})
    if bad:
        sys.exit("npu_cores: " + "; ".join(bad))
    return None


if __name__ == "__main__":
    main()
