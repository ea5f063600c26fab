"""Candela behind the interface `onnx.backend.base` of the ONNX project, which its test runner and other tools drive.

    import candela.onnx_backend as backend

    outputs = backend.run_model(onnx.load("digits.onnx"), [images], backend="cpu")

Functions and classes are those of the interface: prepare, run_model, run_node, supports_device. A device is "CPU", where
`backend` says which of Candela's backends compute, "soft" without it, or one of their names. Needs the package onnx.
"""

from __future__ import annotations

import functools

import numpy
import onnx
import onnx.backend.base
import onnx.helper
import onnx.shape_inference

import candela

__all__ = ["Backend", "BackendRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]

_IR_VERSION = 8  # of the models of single nodes: what every package of onnx since 1.10 reads


class BackendRep(onnx.backend.base.BackendRep):
    """A compiled model."""

    def __init__(self, session: candela.Session):
        self.session = session

    def run(self, inputs, **options):
        """Outputs in the model's order, as a tuple. `inputs`: arrays in its order, or by name."""
        by_name = isinstance(inputs, dict)
        results = self.session.run(inputs if by_name else list(inputs), **options)
        return tuple(results.values() if by_name else results)


class Backend(onnx.backend.base.Backend):
    """The interface. A subclass may say which backends `CPU` stands for."""

    backends = "soft"

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether it is "CPU", or a backend that can be found."""
        name = device.partition(":")[0]
        return name == "CPU" or name in _names_of_backends()

    @classmethod
    def is_compatible(cls, model, device: str = "CPU", **options) -> bool:
        """Whether the model compiles for that device."""
        try:
            cls.prepare(model, device, **options)
        except candela.Error:
            return False
        return True

    @classmethod
    def prepare(cls, model, device: str = "CPU", **options) -> BackendRep:
        """Compiles a model. `options` are those of candela.compile; those of the interface that it has not are left."""
        if not cls.supports_device(device):
            raise candela.NotFoundError(f"no device '{device}': CPU, or a backend of candela.backends()")
        backend = options.pop("backend", cls.backends) if device.startswith("CPU") else device
        for tolerance in ("rtol", "atol"):  # of the test runner
            options.pop(tolerance, None)
        return BackendRep(candela.compile(model, backend, **options))

    @classmethod
    def run_model(cls, model, inputs, device: str = "CPU", **options):
        """Compiles a model and runs it once."""
        return cls.prepare(model, device, **options).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device: str = "CPU", outputs_info=None, **options):
        """Runs one node. `opset_version`: the newest that this package of onnx knows, without it."""
        opset = options.pop("opset_version", onnx.defs.onnx_opset_version())
        model = _model_of(node, list(inputs), outputs_info, opset)
        return cls.run_model(model, inputs, device, **options)


@functools.lru_cache
def _names_of_backends():
    """Once: each look loads every plugin, and a test runner asks for each test."""
    return frozenset(each["name"] for each in candela.backends())


def _model_of(node, inputs, outputs_info, opset):
    """A model of one node, with the types of these inputs."""
    names = [name for name in node.input if name]
    if len(names) != len(inputs):
        raise candela.InvalidArgumentError(f"{len(inputs)} inputs were given, the node has {len(names)}")
    graph = onnx.helper.make_graph(
        [node], node.name or node.op_type,
        [_value(name, array.dtype, array.shape) for name, array in zip(names, map(numpy.asarray, inputs))],
        [_value(name, *info) for name, info in zip(node.output, outputs_info or [])])
    model = onnx.helper.make_model(graph, ir_version=_IR_VERSION,
                                   opset_imports=[onnx.helper.make_opsetid(node.domain, opset)])
    if outputs_info is None:
        graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name)
        model.graph.CopyFrom(graph)
        model = onnx.shape_inference.infer_shapes(model)
    return model


def _value(name, dtype, shape):
    return onnx.helper.make_tensor_value_info(name, _tensor_type(numpy.dtype(dtype)), shape)


def _tensor_type(dtype):
    if hasattr(onnx.helper, "np_dtype_to_tensor_dtype"):
        return onnx.helper.np_dtype_to_tensor_dtype(dtype)
    return onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[dtype]  # before onnx 1.13


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
