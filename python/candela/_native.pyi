"""The classes of the package, over the embedding API."""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, Protocol, Union

class SupportsDlpack(Protocol):
    def __dlpack__(self) -> Any: ...

class SupportsArray(Protocol):
    def __array__(self) -> Any: ...

# The buffer protocol (numpy.ndarray, array.array, memoryview) has no type before Python 3.12.
Array = Union["Tensor", SupportsDlpack, SupportsArray, memoryview, bytes, bytearray]
Inputs = Union[Mapping[str, Array], Sequence[Array], Array]
Outputs = Union[None, str, Sequence[str], Mapping[str, Array]]

class Port:
    """An input or output of a model."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str | None:
        """ "f32"; None where only a run knows."""
    @property
    def dtype(self) -> Any:
        """The numpy.dtype; None where only a run knows, or neither NumPy nor ml_dtypes has it."""
    @property
    def shape(self) -> tuple[int | None, ...] | None:
        """None for a dim, or for all of them, that only a run knows."""
    @property
    def is_state(self) -> bool: ...

class Device:
    """An open device, by "acme", "acme:1" or the path of a plugin. What uses it holds it."""

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None: ...
    @property
    def id(self) -> str: ...
    @property
    def properties(self) -> dict[str, Any]:
        """id, index, name, backend, version, profiles, host_mapped, compiles, capacity_bytes, alignment."""
    @property
    def memory(self) -> tuple[int, int]:
        """Bytes in use, and the most that ever were."""

class Tensor:
    """A dense row-major tensor of zeros on the host or, where there is one, on a device. One thread at a time.

    It has the buffer protocol and DLPack where the host sees its memory.
    """

    def __init__(self, shape: Sequence[int], dtype: Any = "float32", device: Device | None = None) -> None: ...
    @property
    def type(self) -> str: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def device(self) -> str:
        """ "host", or the id of its device."""
    @property
    def is_host(self) -> bool:
        """Whether the host sees its memory."""
    @property
    def address(self) -> int:
        """Of its first byte on the host; 0 where the host does not see it."""
    def write(self, array: Array) -> None:
        """Copies an array of the same type and shape into it."""
    def copy_to(self, other: Tensor) -> None:
        """Copies its bytes into a tensor of as many, on whatever device."""
    def numpy(self) -> Any:
        """An ndarray on the same memory where the host sees it, else a copy."""
    def free(self) -> None:
        """Gives its memory back, when the requests that use it are done. BufferError while a view looks at it."""
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any: ...
    def __dlpack__(self, **wish: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Future(Awaitable[Any]):
    """One run that was asked for. It goes on without this. Any thread."""

    def result(self, timeout: float | None = None) -> Any:
        """Waits, and returns what Session.run would, the same objects each time; or raises how it failed.

        TimedOutError where it is not done in `timeout` seconds, of which 0 and less only ask, or was not in the time that
        `submit` gave it.
        """
    def done(self) -> bool: ...
    def cancel(self) -> None:
        """Ends it with CancelledError, unless it is done."""
    def __await__(self) -> Generator[Any, None, Any]: ...

class Session:
    """A compiled model. Any number of threads may run it at once, without the interpreter's lock."""

    @property
    def inputs(self) -> list[Port]: ...
    @property
    def outputs(self) -> list[Port]: ...
    @property
    def closed(self) -> bool: ...
    def run(self, inputs: Inputs, outputs: Outputs = None) -> Any:
        """Runs once.

        inputs   a dict by name, a sequence in the model's order, or the array of a model with one input. A state that is
                 not given goes on from the run before
        outputs  names of those that are wanted; a dict of names to memory that is written to, on any device; None: all
                 that are no states

        A dict by name, or a list where the inputs are no dict: ndarrays, or the memory that was given.
        """
    def __call__(self, *inputs: Array, **named: Array) -> Any:
        """The same of inputs in order or by name: the array of a model with one output, else a tuple."""
    def submit(self, inputs: Inputs, outputs: Outputs = None, *, timeout: float | None = None,
               wait: bool = True) -> Future:
        """Asks for a run and returns at once.

        timeout  seconds in which it has to be done
        wait     for room among the requests that are not done; else TimedOutError where there is none

        Arrays stay as they are until it is done.
        """
    def report(self) -> dict[str, Any]:
        """What was compiled and where it goes, the schema candela.placement/1."""
    def stats(self) -> dict[str, Any]:
        """What requests did, the schema candela.session/1."""
    def profile(self, on: bool = True) -> None:
        """Whether traces of the runs to come hold every instruction."""
    def trace(self) -> list[Any] | dict[str, Any]:
        """Compiling and the newest run, as Chrome trace JSON for ui.perfetto.dev."""
    def save(self, path: Any) -> None:
        """Writes a bundle (.cdb), which `load` takes."""
    def close(self) -> None:
        """Cancels what is not done and gives everything back. Results stay."""
    def _name_states(self, inputs: Sequence[str], outputs: Sequence[str]) -> None: ...
    def __enter__(self) -> Session: ...
    def __exit__(self, *exception: Any) -> None: ...

class Trainer:
    """A step of training, compiled once; what it learns stays on the device. `candela.trainer` makes it."""

    @property
    def inputs(self) -> list[Port]:
        """What a step takes: the model's inputs, then "labels"."""
    @property
    def parameters(self) -> list[Port]: ...
    @property
    def closed(self) -> bool: ...
    def step(self, *batch: Array, learning_rate: float, **named: Array) -> float:
        """One step on a batch, in the order of `inputs` or by name: the loss before it.

        Classes are integers of any type. A loss that is no number leaves parameters that are none.
        """
    def read(self, name: str) -> Any:
        """What a parameter holds now: an ndarray."""
    def save(self, path: Any) -> None:
        """Writes the model as it was read, an .onnx file, with what was learned as its initializers."""
    def report(self) -> dict[str, Any]:
        """What was compiled and where it goes, the schema candela.placement/1."""
    def close(self) -> None:
        """Gives everything back."""
    def __enter__(self) -> Trainer: ...
    def __exit__(self, *exception: Any) -> None: ...

def from_dlpack(tensor: SupportsDlpack) -> Tensor:
    """A tensor on the memory of another library's, without a copy: CPU memory, dense, aligned to 16 bytes."""

def set_threads(count: int) -> None:
    """Threads of this process that compute what no backend takes, 1 to 4096; 0: as many as are usual."""

def threads() -> int: ...

# What candela/__init__.py lies over.

class Options:
    backends: str
    dims: list[str]
    shapes: list[str]
    options: list[str]
    states: list[str]
    require_native: bool
    to_primitives: bool
    keep_values: bool
    bind_at_run: bool
    rematerialize: bool
    partition: str
    pin_file: str
    def __init__(self) -> None: ...
    def are_set(self) -> bool: ...
    def set_devices(self, devices: Sequence[Device], /) -> None: ...

def compile(content: bytes | None, name: str, options: Options, progress: Callable[[str, float], None] | None,
            capacity: int, in_flight: int, /) -> Session: ...
class Training:
    loss: str
    output: str
    optimizer: str
    freeze: list[str]
    momentum: float
    weight_decay: float
    clip_norm: float
    is_random: bool
    seed: int
    def __init__(self) -> None: ...

def compile_gradients(content: bytes | None, name: str, of: str, wrt: Sequence[str], options: Options,
                      progress: Callable[[str, float], None] | None, capacity: int, in_flight: int, /) -> Session: ...
def trainer(content: bytes | None, name: str, training: Training, options: Options,
            progress: Callable[[str, float], None] | None, /) -> Trainer: ...
def load(content: bytes | None, name: str, capacity: int, in_flight: int, /) -> Session: ...
def devices(paths: Sequence[str], /) -> dict[str, Any]: ...
def backends(paths: Sequence[str], /) -> dict[str, Any]: ...
def version() -> str: ...
def _end() -> None: ...
