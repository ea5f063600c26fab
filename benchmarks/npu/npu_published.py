#!/usr/bin/env python3
"""Sets the NPU model beside published figures of other machines.

usage: benchmarks/npu/npu_published.py [--candela FILE] [--models DIR] [--report FILE] [--only MACHINE,...]

published.toml beside this script has the figures: machine, workload, unit, source. Each is simulated on the configuration of
machines/ that is nearest to the machine, with ResNet-50 of build/models (which the fixture of the tests writes) or a stand-in
of published_networks.py, in the fidelities of its bands; the band "estimate" is of `candela estimate`, by the machine's own
numbers in examples/devices. `ratio` is the time of the model over the published time, whatever the unit: below 1 the model is
the faster one. The model's time is the same in every run, so a ratio that leaves its band says that the model, the compiler or
a configuration has changed; a band does not say how right the model is. Writes benchmarks/results/npu_published.json. Needs the
packages of tests/models/requirements.txt, and onnx.

--only  these machines; of others the report keeps what it has

Exit status: 0 as it should be, 1 not, 2 nothing to run.
"""
import argparse
import functools
import json
import pathlib
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "benchmarks/npu"
sys.path.insert(0, str(ROOT / "scripts/lib"))
import nightly_report  # noqa: E402
import published_networks  # noqa: E402

SCHEMA = "candela.npu_published.v1"
TIMEOUT_SECONDS = 600
SAID = ("machine", "workload", "published", "unit", "reason", "source", "network")
ESTIMATE = "estimate"  # of `candela estimate`, on the row's device of examples/devices
HIGHER_IS_FASTER = ("TOPS", "frames/s", "times as fast")


class Simulator:
    """Runs of the tool, each once."""

    def __init__(self, candela, models, folder):
        self.candela, self.models, self.folder = candela, models, folder

    @functools.cache
    def model(self, network):
        if network not in published_networks.NETWORKS:
            return self.models / f"{network}.onnx"
        path = self.folder / f"{network}.onnx"
        published_networks.NETWORKS[network]().save(path)
        return path

    @functools.cache
    def run(self, configuration, network, batch, fidelity):
        dims = [] if network in published_networks.NETWORKS else ["--dim", f"N={batch}"]
        if fidelity == ESTIMATE:
            return nightly_report.answer([str(self.candela), "estimate", str(self.model(network)), "--device", str(ROOT / configuration),
                                          *dims], TIMEOUT_SECONDS)
        return nightly_report.answer([str(self.candela), "simulate", str(self.model(network)), "--npu", str(ROOT / configuration),
                                      "--fidelity", fidelity, "--random", "1", *dims], TIMEOUT_SECONDS)


def file_of(configuration, fidelity):
    return f"{'examples/devices' if fidelity == ESTIMATE else 'benchmarks/npu/machines'}/{configuration}.toml"


def figure(row, report, base):
    """What the publication gives, of the model. The machine's clock is the row's, where the configuration has another one."""
    seconds = report["cycles"] / (1e6 * row.get("clock_mhz", report["clock_mhz"]))
    batch = row.get("batch", 1)
    match row["unit"]:
        case "TOPS":
            return 2 * report["macs"] / seconds / 1e12
        case "ms":
            return 1e3 * seconds
        case "frames/s":
            return batch / seconds
        case "M cycles/image":
            return report["cycles"] / batch / 1e6
        case "times as fast":
            return base["cycles"] / report["cycles"]
        case "times as long":
            return report["cycles"] / base["cycles"]
    raise ValueError(f"{row['workload']}: no such unit: {row['unit']}")


def judge(simulator, row, fidelity, band):
    name = row["device"] if fidelity == ESTIMATE else row["configuration"]
    configuration, network, batch = file_of(name, fidelity), row["network"], row.get("batch", 1)
    report = simulator.run(configuration, network, batch, fidelity)
    base = None
    if "base_configuration" in row or "base_network" in row:
        base_file = file_of(row.get("base_configuration", row["configuration"]), fidelity)
        base = simulator.run(base_file, row.get("base_network", network), batch, fidelity)
    model = figure(row, report, base)
    ratio = row["published"] / model if row["unit"] in HIGHER_IS_FASTER else model / row["published"]
    low, high = band
    problems = [] if low <= ratio <= high else [f"ratio {ratio:.3f}, not {low} to {high}"]
    if report["host_macs"]:
        problems.append(f"the host multiplies {report['host_macs']} times")
    case = {key: row[key] for key in SAID} | {"fidelity": fidelity, "model": round(model, 3), "ratio": round(ratio, 3), "band": band,
                                              "configuration": configuration, "cycles": report["cycles"]}
    if base:
        case["base_cycles"] = base["cycles"]
    return case | {"macs": report["macs"], "array_used": round(report["mac_utilization"], 4), "dram_bytes": report["dram_bytes"]["all"],
                   "problems": problems, "passed": not problems}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candela", type=pathlib.Path, default=ROOT / "build/bin/candela")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "build/models")
    parser.add_argument("--report", type=pathlib.Path, default=ROOT / "benchmarks/results/npu_published.json")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    published = tomllib.loads((HERE / "published.toml").read_text())
    chosen = arguments.only.split(",") if arguments.only else {row["machine"] for row in published["row"]}
    rows = [row for row in published["row"] if row["machine"] in chosen]
    if not rows:
        print(f"npu_published: no machine of published.toml is called {arguments.only}", file=sys.stderr)
        return 2
    models = {arguments.models / f"{row['network']}.onnx" for row in rows if row["network"] not in published_networks.NETWORKS}
    for path in (arguments.candela, *sorted(models)):
        if not path.exists():
            print(f"npu_published: {path} is missing", file=sys.stderr)
            return 2
    results = []
    with tempfile.TemporaryDirectory() as folder:
        simulator = Simulator(arguments.candela, arguments.models, pathlib.Path(folder))
        for row in rows:
            for fidelity, band in row["bands"].items():
                case = judge(simulator, row, fidelity, band)
                print(f"{case['machine']}, {case['workload']}, {fidelity}: {case['published']} {case['unit']}, model {case['model']}, "
                      f"ratio {case['ratio']}; {'; '.join(case['problems']) or 'passed'}", flush=True)
                results.append(case)
    if arguments.only and arguments.report.exists():
        before = json.loads(arguments.report.read_text())["results"]
        results += [case for case in before if case["machine"] not in chosen]
    report = {"schema": SCHEMA, "generated_at": nightly_report.now(), "machine": nightly_report.machine(),
              "not_run": published["not_run"], "results": results}
    return nightly_report.finish(arguments, report, None)


if __name__ == "__main__":
    sys.exit(main())
