"""The tool of the same installation as functions: inspect, bench, quantize, simulate, estimate, conform.

    report = candela.bench("digits.onnx", backend="cpu", dims={"N": 1})
    print(report.latency_ms["median"])
    pandas.DataFrame(report.rows())

Each runs `candela COMMAND ... --json -` in a process of its own and returns what that says, as a dataclass. A model is what
candela.load takes. Options are those of the command, `candela bench --help`, with _ for -: True for one without a value, a list
for several values, a dict for NAME=VALUE; arrays become files. Beside their own names, dims, shapes, options and inputs are
those of candela.compile.

`progress`, a function, gets each line that the tool writes meanwhile. Errors are candela.Error with the tool's text. Ctrl-C, and
every other exception here, stops the tool with all of its processes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from typing import Any, Callable, ClassVar

import candela

# Names of candela.compile, and those of the tool.
_SAME = {"dims": "dim", "shapes": "shape", "options": "option", "inputs": "input"}
_SECONDS_TO_STOP = 5
_BAD_INPUT = 2  # the tool's exit status for bad usage or input; 1: the work failed


@dataclasses.dataclass(frozen=True)
class Report:
    """What a command of the tool answered. `report` is all of it, a dict by the schema that it names."""

    report: dict[str, Any] = dataclasses.field(repr=False)
    succeeded: bool
    """Whether the tool ended with 0: nothing failed, no goal was missed."""

    ROWS: ClassVar[tuple[str, ...]] = ()
    """The lists of the report that are its rows; the first that there is counts."""

    def rows(self) -> list[dict[str, Any]]:
        """A dict for each line of its table, as pandas.DataFrame takes them."""
        for name in self.ROWS:
            if self.report.get(name):
                return list(self.report[name])
        return []

    @classmethod
    def of(cls, report: dict[str, Any], succeeded: bool):
        fields = [field.name for field in dataclasses.fields(cls) if field.name not in ("report", "succeeded")]
        return cls(report=report, succeeded=succeeded, **{name: report.get(name) for name in fields})


@dataclasses.dataclass(frozen=True)
class Inspection(Report):
    """What is in a file. Rows: operators, or what else the file has most of."""

    file: str
    kind: str
    """ONNX model, graph, program, bundle, image, plugin, report or tensor."""

    ROWS = ("nodes_by_op", "instructions", "devices", "layers", "ops", "cases", "inputs")


@dataclasses.dataclass(frozen=True)
class Benchmark(Report):
    """How fast a model is. Rows: instructions, the slowest first."""

    model: str
    backends: list[str]
    compile_ms: float
    latency_ms: dict[str, float]
    """min, median, p99 and the number of runs."""
    gflops: float
    arena_bytes: int
    placement: dict[str, int]

    ROWS = ("ops",)


@dataclasses.dataclass(frozen=True)
class Quantization(Report):
    """A float model made one of integers. Rows: layers."""

    model: str
    output: str | None
    """The file that was written."""
    samples: int
    snr_db: float | None
    weight_bytes_before: int
    weight_bytes: int

    ROWS = ("layers",)


@dataclasses.dataclass(frozen=True)
class Simulation(Report):
    """A model on the simulated NPU. Rows: layers."""

    model: str
    npu: str
    cycles: int | None
    time_ms: float | None
    mac_utilization: float | None
    energy: dict[str, Any] | None
    dram_bytes: dict[str, int] | None

    ROWS = ("layers",)


@dataclasses.dataclass(frozen=True)
class Estimate(Report):
    """What a model takes on a device by what that says of itself. Rows: layers."""

    model: str
    npu: str
    """The device: as its file or its plugin calls it."""
    source: str
    """Where the costs of instructions are from."""
    cycles: int
    time_ms: float | None
    """None: the device has no clock, and `clock_mhz` was not given."""
    mac_utilization: float
    dram_bytes: dict[str, int]

    ROWS = ("layers",)


@dataclasses.dataclass(frozen=True)
class Conformance(Report):
    """What the conformance suite found. Rows: cases. `succeeded` is whether none failed."""

    backend: str
    size: str | None
    total: int
    passed: int
    failed: list[dict[str, Any]]
    unsupported: list[dict[str, Any]]
    conformant: bool

    ROWS = ("cases",)


def inspect(file, *, progress: Callable[[str], None] | None = None, **options) -> Inspection:
    """What is in a model, bundle, image, plugin, report or tensor."""
    return _answer(Inspection, "inspect", file, progress, options)


def bench(model, *, progress: Callable[[str], None] | None = None, **options) -> Benchmark:
    """Measures latency, memory, and the time of each instruction."""
    return _answer(Benchmark, "bench", model, progress, options)


def quantize(model, *, progress: Callable[[str], None] | None = None, **options) -> Quantization:
    """Makes a float model one of integers, by running it on `data`: an array, {input: array}, or paths."""
    return _answer(Quantization, "quantize", model, progress, options)


def simulate(model, *, progress: Callable[[str], None] | None = None, **options) -> Simulation:
    """Runs a model on the simulated NPU: cycles, bytes, energy."""
    return _answer(Simulation, "simulate", model, progress, options)


def estimate(model, *, progress: Callable[[str], None] | None = None, **options) -> Estimate:
    """Plans a model for a device and runs nothing: `backend`, a plugin, or `device`, a file that describes one."""
    return _answer(Estimate, "estimate", model, progress, options)


def conform(backend, *, progress: Callable[[str], None] | None = None, **options) -> Conformance:
    """Runs the conformance suite on a backend, by name or by the path of its plugin."""
    return _answer(Conformance, "conform", None, progress, {"backend": backend, **options})


def executable() -> str:
    """The path of the program `candela`. Raises NotFoundError where this installation has none."""
    path = os.path.join(os.path.dirname(os.path.abspath(candela.__file__)), "bin", "candela")
    if not os.access(path, os.X_OK):
        raise candela.NotFoundError(f"{path}: no such program: the tool is no part of this installation")
    return path


def _answer(kind, command, model, progress, options):
    with contextlib.ExitStack() as stack:
        files = _Files(stack)
        arguments = [executable(), command, *([] if model is None else [files.model(model)])]
        for name, value in options.items():
            arguments += _flags("--" + _SAME.get(name, name).replace("_", "-"), value, files)
        return _run(kind, [*arguments, "--json", "-"], progress or (lambda line: None))


class _Files:
    """Files of what is no file yet, as long as a command runs."""

    def __init__(self, stack):
        self._stack = stack
        self._folder = None

    def new(self, name):
        if self._folder is None:
            self._folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="candela_"))
        return os.path.join(self._folder, f"{len(os.listdir(self._folder))}_{name}")

    def model(self, model):
        loaded = model if isinstance(model, (str, os.PathLike)) else candela.load(model)
        if not isinstance(loaded, candela.Model):
            return os.fsdecode(loaded)
        if loaded.content is None:
            return loaded.name
        path = self.new(os.path.basename(loaded.name))
        with open(path, "wb") as file:
            file.write(loaded.content)
        return path

    def array(self, array):
        import numpy
        path = self.new("array.npy")
        numpy.save(path, numpy.asarray(array))
        return path


def _flags(flag, value, files):
    """An option as the tool takes it."""
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    if flag == "--backend" and not isinstance(value, (str, os.PathLike)):
        return [flag, ",".join(os.fsdecode(each) for each in value)]
    if isinstance(value, dict):
        return [text for name, each in value.items() for text in (flag, f"{name}={_text(each, files)}")]
    if isinstance(value, (list, tuple)):
        return [text for each in value for text in (flag, _text(each, files))]
    return [flag, _text(value, files)]


def _text(value, files):
    if isinstance(value, (str, os.PathLike)):
        return os.fsdecode(value)
    if isinstance(value, (list, tuple)):
        return "x".join(str(dim) for dim in value) or "scalar"
    if hasattr(value, "__array__") and getattr(value, "shape", ()) != ():
        return files.array(value)
    return str(value)


def _run(kind, arguments, progress):
    child = _Child(arguments)
    said = []
    try:
        child.start()
        for line in iter(child.lines.get, None):
            said.append(line)
            progress(line)
    except BaseException:
        child.stop()
        raise
    if child.failure is not None:
        raise child.failure
    report = _report(child.answer)
    if report is None:
        raise _error("\n".join(said), child.status)
    return kind.of(report, child.status == 0)


def _report(answer):
    """None where the tool ended before it had written a whole one."""
    try:
        report = json.loads(answer)
    except json.JSONDecodeError:
        return None
    return report if isinstance(report, dict) else None


class _Child:
    """The tool in a group of processes of its own. Threads that Ctrl-C does not interrupt start it and read what it writes."""

    def __init__(self, arguments):
        self.lines = queue.SimpleQueue()
        """What it writes on its stream of errors, ended by None; then answer and status, or failure, are known."""
        self.answer = ""
        self.status = None
        self.failure = None
        """What was raised where the program could not be started or read."""
        self._arguments = arguments
        self._process = None
        self._started = threading.Event()

    def start(self):
        threading.Thread(target=self._work, daemon=True).start()

    def stop(self):
        if not self._started.wait(_SECONDS_TO_STOP) or self._process is None:
            return
        for kill in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, kill)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_SECONDS_TO_STOP)
                return

    def _work(self):
        try:
            self._run()
        except BaseException as failure:
            self.failure = failure
        finally:
            self._started.set()
            self.lines.put(None)

    def _run(self):
        with subprocess.Popen(self._arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, encoding="utf-8", errors="replace", start_new_session=True) as self._process:
            self._started.set()
            reader = threading.Thread(target=self._read_lines, daemon=True)
            reader.start()
            self.answer = self._process.stdout.read()
            reader.join()
        self.status = self._process.returncode

    def _read_lines(self):
        for line in self._process.stderr:
            self.lines.put(line.rstrip("\n"))


def _error(said, status):
    text = said.partition("error: ")[2] or said or "it gave no whole answer"
    if status < 0:
        return candela.InternalError(f"candela ended by signal {-status}: {text}")
    return (candela.InvalidArgumentError if status == _BAD_INPUT else candela.Error)(text)
