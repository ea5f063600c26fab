"""Candela: compile ONNX models for accelerators and run them.

    import candela, numpy

    session = candela.compile("digits.onnx", backend="cpu")
    scores = session(numpy.load("images.npy"))

`help(candela.compile)` and docs/python.md say more. Arrays come by the buffer protocol or DLPack, so that those of NumPy,
PyTorch and others fit; results are ndarrays where NumPy is there and has the type, else candela.Tensor.
"""

from __future__ import annotations

import atexit
import os

from candela import _native
from candela._native import Device, Future, Port, Session, Tensor, Trainer, from_dlpack, set_threads, threads
from candela.errors import (BadModelError, CancelledError, DeviceLostError, Error, FileError, IncompatibleError,
                            InternalError, InvalidArgumentError, NotFoundError, OutOfMemoryError, RefusedError,
                            TimedOutError, UnsupportedError)

TYPE_CHECKING = False  # that of typing, whose import takes a fifth of this one's time
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from candela.backend import Backend
    from candela.tool import bench, conform, estimate, inspect, quantize, simulate

__all__ = ["Backend", "BadModelError", "CancelledError", "Device", "DeviceLostError", "Error", "FileError", "Future",
           "IncompatibleError", "InternalError", "InvalidArgumentError", "Model", "NotFoundError", "OutOfMemoryError",
           "Port", "RefusedError", "Session", "Tensor", "TimedOutError", "Trainer", "UnsupportedError", "backends", "bench",
           "compile", "conform", "devices", "estimate", "from_dlpack", "grad", "inspect", "load", "quantize", "set_threads",
           "simulate", "threads", "trainer"]
_LATER = {"Backend": "candela.backend",
          **dict.fromkeys(("bench", "conform", "estimate", "inspect", "quantize", "simulate"), "candela.tool")}
__version__ = _native.version()

atexit.register(_native._end)


class Model:
    """A model that was not compiled yet: a file, or its content. `load` makes it, `compile` takes it."""

    def __init__(self, name: str, content: bytes | None = None):
        self.name = name
        self.content = content

    @property
    def is_bundle(self) -> bool:
        """Whether it was compiled before: a bundle (.cdb)."""
        return self.name.endswith(".cdb")

    def compile(self, backend=None, **options) -> Session:
        """The same as candela.compile of it."""
        return compile(self, backend, **options)

    def __repr__(self):
        return f"<candela.Model {self.name!r}>"


def load(source, name: str | None = None) -> Model:
    """A Model: of the path of a model's file (.onnx, .pb, .tflite, .mlir), of a .cdl or .cdb file, of bytes with its content, or of an onnx.ModelProto.

    `name` stands for the path of bytes: its ending says what they are ("model.onnx" without it), messages begin with it,
    and files that a model keeps beside itself are looked for there. What is wrong with the model is told when it is
    compiled.
    """
    if isinstance(source, Model):
        return source
    if isinstance(source, (bytes, bytearray, memoryview)):
        return Model(name or "model.onnx", bytes(source))
    if hasattr(source, "SerializeToString"):
        return Model(name or "model.onnx", source.SerializeToString())
    path = os.fsdecode(source)
    if not os.path.exists(path):
        raise NotFoundError(f"{path}: cannot open: No such file or directory")
    return Model(path)


def compile(model, backend: str | os.PathLike | Iterable[str | os.PathLike] | None = None, *,
            dims: Mapping[str, int] | None = None, shapes: Mapping[str, Sequence[int]] | None = None,
            options: Mapping[str, Any] | None = None, states: Mapping[str, str] | None = None,
            devices: Sequence[Device] | None = None, partition: str | None = None,
            pin_file: str | os.PathLike | None = None, require_native: bool = False, to_primitives: bool = False,
            keep_values: bool = False, bind_at_run: bool = True, rematerialize: bool = False,
            progress: Callable[[str, float], None] | None = None, capacity: int = 256, in_flight: int = 2,
            name: str | None = None) -> Session:
    """Compiles a model and returns a Session that runs it.

    model           what `load` takes or gave. A bundle is compiled already: it takes no options but the last ones
    backend         a name, path or list of them, the first one first: "cpu", "acme:1", ["./libacme.so", "soft"].
                    Without it: "soft", the portable executor of the host
    dims            {"N": 1}: symbolic dims
    shapes          {"images": (1, 3, 224, 224)}: of inputs
    options         {"threads": 2} or {"cpu.threads": 2}: of backends
    states          {"past": "present"}: the output `present` of a run is the input `past` of the next one
    devices         open candela.Device, in the place of `backend`
    partition       "preference", "cost" or "pipeline": by what nodes get their backends
    pin_file        a file of lines PATTERN = BACKEND: which nodes have to be where
    require_native  fail with the list of nodes when anything is emulated or on the host
    to_primitives   lower every op to the 13 primitives
    keep_values     every node's results become outputs too
    bind_at_run     dims that nothing binds are those of each run's inputs; else they are an error
    rematerialize   compute cheap values again where that lowers the peak of memory
    progress        called with a stage and 0..1 of it, now and then, until this returns
    capacity        requests of `submit` that are not done, 1 to 2**20
    in_flight       of them at the same time, 1 to 256
    name            as of `load`

    Raises candela.Error, of the class of what is wrong, with the text of the tool.
    """
    model = load(model, name)
    chosen = _options(backend, devices, dims, shapes, options, partition, pin_file)
    chosen.states = _pairs(states)
    chosen.require_native = require_native
    chosen.to_primitives = to_primitives
    chosen.keep_values = keep_values
    chosen.bind_at_run = bind_at_run
    chosen.rematerialize = rematerialize
    if not model.is_bundle:
        session = _native.compile(model.content, model.name, chosen, progress, capacity, in_flight)
        pairs = list((states or {}).items())
    else:
        if chosen.are_set() or backend:
            raise InvalidArgumentError(f"{model.name}: a bundle is compiled already: it takes no options")
        session = _native.load(model.content, model.name, capacity, in_flight)
        pairs = [(state["input"], state["output"]) for state in session.report().get("states", [])]
    session._name_states([source for source, _ in pairs], [target for _, target in pairs])
    return session


def grad(model, wrt: str | Sequence[str] | None = None, of: str | None = None,
         backend: str | os.PathLike | Iterable[str | os.PathLike] | None = None, *,
         dims: Mapping[str, int] | None = None, shapes: Mapping[str, Sequence[int]] | None = None,
         options: Mapping[str, Any] | None = None, devices: Sequence[Device] | None = None,
         partition: str | None = None, pin_file: str | os.PathLike | None = None, require_native: bool = False,
         rematerialize: bool = False, progress: Callable[[str, float], None] | None = None, capacity: int = 256,
         in_flight: int = 2, name: str | None = None) -> Session:
    """Compiles a model whose outputs are one of its own and the gradients of that, and returns a Session.

    wrt  a name or names of inputs or, of files of models, initializers, of floats; without it: all such inputs. Each
         has an output d_NAME
    of   the output that is differentiated; without it: the only one of floats. Where it has more than one element there
         is an input d_OUTPUT of its type too: the gradients are those of sum(output * d_output)

    All else is as for `compile`; every dim has to be bound.
    """
    model = load(model, name)
    if model.is_bundle:
        raise InvalidArgumentError(f"{model.name}: a bundle is compiled already: it has no gradients")
    chosen = _options(backend, devices, dims, shapes, options, partition, pin_file)
    chosen.require_native = require_native
    chosen.rematerialize = rematerialize
    names = [wrt] if isinstance(wrt, str) else list(wrt or ())
    return _native.compile_gradients(model.content, model.name, of or "", names, chosen, progress, capacity, in_flight)


def trainer(model, backend: str | os.PathLike | Iterable[str | os.PathLike] | None = None, *,
            loss: str = "cross_entropy", output: str | None = None, optimizer: str = "adam", momentum: float = 0.9,
            weight_decay: float = 0.0, clip_norm: float = 0.0, freeze: Iterable[str] = (), seed: int | None = None,
            dims: Mapping[str, int] | None = None, shapes: Mapping[str, Sequence[int]] | None = None,
            options: Mapping[str, Any] | None = None, devices: Sequence[Device] | None = None,
            partition: str | None = None, pin_file: str | os.PathLike | None = None, require_native: bool = False,
            rematerialize: bool = False, progress: Callable[[str, float], None] | None = None,
            name: str | None = None) -> Trainer:
    """Compiles a step of training of an ONNX model, and returns a Trainer that runs it.

    loss          "cross_entropy" of scores [batch, classes, ..] and labels as integers, or "mse"
    output        the output that the loss is of; without it: the only one
    optimizer     "sgd", "momentum", "adam" or "adamw"
    momentum      of "momentum", 0 to 1: how much of the last step goes on
    weight_decay  how fast parameters shrink by themselves
    clip_norm     the longest that all gradients together may be; 0: no limit
    freeze        globs of parameters, or of nodes that read them, that stay as they are
    seed          begin with random parameters; without it: with those of the model
    dims, shapes  say the batch

    All else is as for `compile`.
    """
    model = load(model, name)
    if model.is_bundle:
        raise InvalidArgumentError(f"{model.name}: a bundle is compiled already: it is not trained")
    chosen = _options(backend, devices, dims, shapes, options, partition, pin_file)
    chosen.require_native = require_native
    chosen.rematerialize = rematerialize
    training = _native.Training()
    training.loss = loss
    training.output = output or ""
    training.optimizer = optimizer
    training.momentum = momentum
    training.weight_decay = weight_decay
    training.clip_norm = clip_norm
    training.freeze = [freeze] if isinstance(freeze, str) else list(freeze)
    training.is_random = seed is not None
    training.seed = seed or 0
    return _native.trainer(model.content, model.name, training, chosen, progress)


def __getattr__(name: str) -> Any:
    """What needs more than a run does is imported when it is asked for."""
    if name not in _LATER:
        raise AttributeError(f"module 'candela' has no attribute '{name}'")
    import importlib
    return getattr(importlib.import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


def devices(paths: Iterable[str | os.PathLike] = ()) -> list[dict[str, Any]]:
    """Every device that can be opened: a list of dicts of id, backend, version, description, index, origin.

    `paths` adds plugins by path. A plugin that cannot be loaded is not among them: `backends` says why.
    """
    return _native.devices([os.fsdecode(path) for path in paths])["devices"]


def backends(paths: Iterable[str | os.PathLike] = ()) -> list[dict[str, Any]]:
    """Every backend that can be found: a list of dicts of name, version, origin, description, error, devices, options."""
    return _native.backends([os.fsdecode(path) for path in paths])["backends"]


def _options(backend, devices, dims, shapes, options, partition, pin_file):
    """What every compilation is asked."""
    devices = list(devices or ())
    if backend and devices:
        raise InvalidArgumentError(f"backend '{_joined(backend)}' and {len(devices)} open devices: one of them")
    chosen = _native.Options()
    chosen.backends = _joined(backend)
    chosen.dims = _pairs(dims)
    chosen.shapes = [f"{key}={_shape_text(shape)}" for key, shape in (shapes or {}).items()]
    chosen.options = _pairs(options)
    chosen.partition = partition or ""
    chosen.pin_file = os.fsdecode(pin_file or "")
    chosen.set_devices(devices)
    return chosen


def _joined(backend):
    """Backends as candela.h wants them."""
    if backend is None:
        return "soft"
    if isinstance(backend, (str, os.PathLike)):
        return os.fsdecode(backend)
    return ",".join(os.fsdecode(each) for each in backend)


def _pairs(mapping):
    return [f"{key}={value}" for key, value in (mapping or {}).items()]


def _shape_text(shape):
    return "x".join(str(dim) for dim in shape) or "scalar"
