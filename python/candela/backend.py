"""Prototypes of backends: a class whose methods are primitives.

    class Acme(candela.Backend):
        name = "acme"

        def matmul(self, a, b):
            return a @ b

    session = candela.compile(model, backend=Acme.plugin("build"))

The plugin works in this process, where the class is the one that is here, and in the tool, which imports the file that the
class is in: `candela conform --backend build/libcandela_acme.so`. From there a port goes on in C++, with the same primitives
(docs/porting_guide).
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys

from candela.errors import UnsupportedError

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_SHARED = os.path.join(_PACKAGE, "plugin", "python_backend.so")
_KINDS = ("copy", "fill", "convert", "binary", "compare", "select", "gather", "scatter", "reduce", "matmul", "unary",
          "rescale", "table")
_here: dict[str, type[Backend]] = {}  # classes of this process by the real path of their plugin


class Backend:
    """What a device computes. A subclass has methods named as primitives (docs/reference/primitives.md).

    A method gets arrays of NumPy, operands in their order, and returns the result, which is copied. Kinds with functions get
    the function's name first: `binary("add", a, b)`. Attributes come by name. So the methods are

        copy(x)  fill(value)  convert(fn, x, to)  binary(fn, a, b)  compare(fn, a, b)  select(cond, a, b)
        gather(fn, x, index)  scatter(fn, y, index, updates)  reduce(fn, x)  matmul(a, b)  unary(fn, x)  ...

    A kind without a method is emulated by the host, and so are element types that no profile in `profiles` asks for.
    """

    name = "prototype"
    version = "0.1.0"
    description = "a prototype in Python"
    profiles = ("FP32",)
    """FP32 asks for float32 alone; BASE for int32, uint8 and bool; FP16, INT8 and others for theirs. What FP8,
    INT4W and MX ask for, beside a float profile, the host computes: NumPy has no such types."""

    @classmethod
    def plugin(cls, folder: str | os.PathLike = ".") -> str:
        """Writes the plugin libcandela_NAME.so into a folder, and returns its path, for `compile` and for the tool."""
        if not os.path.exists(_SHARED):
            raise UnsupportedError(f"{_SHARED}: no such file: this installation has no backends in Python")
        lines = [sys.executable, _PACKAGE, _source_of(cls), cls.__qualname__, *sys.path]
        path = os.path.join(os.path.abspath(folder), f"libcandela_{cls.name}.so")
        with open(path + ".python", "w") as file:
            file.write("\n".join(lines) + "\n")
        shutil.copyfile(_SHARED, path + ".new")
        os.replace(path + ".new", path)  # one that is loaded stays as it is
        _here[os.path.realpath(path)] = cls
        return path

    @classmethod
    def _methods(cls):
        return [kind for kind in _KINDS if hasattr(cls, kind)]

    def _call(self, kind, y, operands, attributes, accumulate):
        import numpy
        if kind == "scatter":
            operands.insert(1, y.copy())
        if kind == "convert":
            attributes["to"] = y.dtype
        with numpy.errstate(all="ignore"):  # a device has no warnings: infinities and NaN are results
            result = numpy.asarray(getattr(self, kind)(*operands, **attributes))
        if result.shape != y.shape and kind != "fill":
            raise ValueError(f"{kind} gave an array of shape {result.shape}, expected {y.shape}")
        if accumulate:
            y += result
        else:
            numpy.copyto(y, result, casting="same_kind")


def _source_of(cls):
    """The file that its first method is written in."""
    methods = cls._methods()
    if not methods:
        raise UnsupportedError(f"{cls.__qualname__} has no method that is named as a primitive: {', '.join(_KINDS)}")
    return os.path.abspath(getattr(cls, methods[0]).__code__.co_filename)


def _load(path):
    """The class that a plugin stands for: that of this process, or the one in the file that it was written for."""
    real = os.path.realpath(path)
    if real not in _here:
        with open(path + ".python") as file:
            _, _, source, name, *_ = file.read().splitlines()
        spec = importlib.util.spec_from_file_location("candela_backend_" + name.lower(), source)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found = module
        for part in name.split("."):
            found = getattr(found, part)
        _here[real] = found
    return _here[real]


class _Memory:
    """Memory of an operand, as NumPy asks for it."""

    def __init__(self, interface):
        self.__array_interface__ = interface


_TYPES = {"f32": "<f4", "f16": "<f2", "f64": "<f8", "i8": "|i1", "u8": "|u1", "i16": "<i2", "u16": "<u2", "i32": "<i4",
          "u32": "<u4", "i64": "<i8", "u64": "<u8", "bool": "|b1"}


def _array_at(address, shape, strides, element):
    import numpy
    return numpy.asarray(_Memory({"version": 3, "data": (address, False), "shape": shape, "strides": strides,
                                  "typestr": _TYPES[element]}))
