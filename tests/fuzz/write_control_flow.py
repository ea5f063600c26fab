#!/usr/bin/env python3
"""Writes random ONNX models with control flow as node tests: a model, inputs, and what two others say it answers.

usage: write_control_flow.py DIR [--seed N] [--count N] [--small BYTES]

If, Loop and Scan, nested and with captured values, around arithmetic, shapes that depend on data, sequences and
optionals, in opsets 11 to 21. Model i of seed N is the same whatever the count, and lies in DIR/cf_<N>_<i>/ as
`candela conform --tier onnx --onnx-data DIR` reads it. The answers are those of ONNX's reference evaluator, with a
Loop and a Scan that are whole; a model that it or ONNX Runtime cannot run, or on which the two differ, is dropped and
counted. --small: only models of at most so many
bytes. Needs the packages of tests/onnx/requirements.txt and tests/models/requirements.txt.

Nothing here hangs on a rounding: what decides a shape, a branch or a number of rounds is an integer, a bool or a
multiple of 1/8 of small size (`exact`), which every order of arithmetic gives alike.
"""
import argparse
import collections
import json
import os
import pathlib
import pickle
import random
import signal
import sys
import warnings

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

NUMPY = {"f": np.float32, "i": np.int64, "b": np.bool_}
PROTO = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL}
LAST = np.iinfo(np.int64).max
MAX_DEPTH = 3
TIMEOUT_SECONDS = 20


def no_rounds(body, count):
    """What outputs of no round are: empty, of the type that the body declares. Failure: it declares no shape."""
    empty = []
    for info in body.proto_.output[len(body.output_names) - count:]:
        tensor = info.type.tensor_type
        if not tensor.HasField("shape") or not all(d.HasField("dim_value") for d in tensor.shape.dim):
            raise ValueError("no round, and no declared shape")
        dims = [d.dim_value for d in tensor.shape.dim]
        empty.append(np.zeros([0, *dims], helper.tensor_dtype_to_np_dtype(tensor.elem_type)))
    return empty


class Loop(OpRun):
    """The package's own takes an absent condition for false, and knows no outputs of rounds that are scalars."""

    op_domain = ""

    def need_context(self):
        return True

    def _run(self, limit, condition=None, *carried, context=None, body=None, attributes=None, bindings=None):
        names, carried = self.body.input_names, list(carried)
        rounds, going = 0, condition is None or bool(np.asarray(condition).item())
        limit = None if limit is None else int(np.asarray(limit).item())
        scans = [[] for _ in range(len(self.body.output_names) - 1 - len(carried))]
        while going and (limit is None or rounds < limit):
            given = [np.array(rounds, np.int64), np.array(True), *carried]
            outputs = self._run_body({**(context or {}), **dict(zip(names, given))}, bindings=bindings)
            going, carried = bool(np.asarray(outputs[0]).item()), outputs[1:1 + len(carried)]
            for scan, value in zip(scans, outputs[1 + len(carried):]):
                scan.append(value)
            rounds += 1
        scanned = [np.stack(scan) for scan in scans] if rounds else no_rounds(self.body, len(scans))
        return tuple([*carried, *scanned])


class Scan(OpRun):
    """The package's own knows neither axes nor directions."""

    op_domain = ""

    def need_context(self):
        return True

    def _run(self, *operands, context=None, body=None, num_scan_inputs=None, scan_input_axes=None,
             scan_input_directions=None, scan_output_axes=None, scan_output_directions=None, attributes=None,
             bindings=None):
        names, states = self.body.input_names, list(operands[:len(operands) - self.num_scan_inputs])
        inputs = operands[len(states):]
        axes = self.scan_input_axes or [0] * len(inputs)
        slices = [np.moveaxis(value, axis, 0) for value, axis in zip(inputs, axes)]
        slices = [v[::-1] if d else v for v, d in zip(slices, self.scan_input_directions or [0] * len(inputs))]
        scans = [[] for _ in range(len(self.body.output_names) - len(states))]
        for given in zip(*slices):
            given = [*states, *(np.asarray(v) for v in given)]
            outputs = self._run_body({**(context or {}), **dict(zip(names, given))}, bindings=bindings)
            states = outputs[:len(states)]
            for scan, value in zip(scans, outputs[len(states):]):
                scan.append(value)
        stacked = [np.stack(scan) for scan in scans] if len(slices[0]) else no_rounds(self.body, len(scans))
        stacked = [v[::-1] if d else v for v, d in zip(stacked, self.scan_output_directions or [0] * len(scans))]
        stacked = [np.moveaxis(v, 0, axis) for v, axis in zip(stacked, self.scan_output_axes or [0] * len(scans))]
        return tuple([*states, *stacked])


class Value:
    """A name and what is known of it. shape: ints, and strings for dims that only a run knows; None: not even a rank.
    exact: a float that is a small multiple of 1/8. Of a sequence, elem and shape are its items'."""

    def __init__(self, name, elem, shape, exact=True, kind="tensor"):
        self.name, self.elem, self.kind, self.exact = name, elem, kind, exact
        self.shape = None if shape is None else tuple(shape)

    def is_static(self):
        return self.shape is not None and all(isinstance(d, int) for d in self.shape)

    def is_scalar(self):
        return self.kind == "tensor" and self.shape == ()


class Block:
    """The nodes of one graph on their way, and the values that they may read: its own and those around it."""

    def __init__(self, model, parent, steps):
        self.model, self.parent, self.rng, self.steps = model, parent, model.rng, steps
        self.depth = parent.depth + 1 if parent else 0
        self.nodes, self.initializers, self.values = [], [], []

    # --- names, constants, nodes ---

    def name(self):
        """Sibling bodies of some models use the same names, as exporters do."""
        counts = self.model.counts
        if not self.model.shares_names:
            counts["all"] += 1
            return f"v{counts['all']}"
        self.local = getattr(self, "local", 0) + 1
        return f"v{self.depth}_{self.local}"

    def constant(self, array):
        array, name = np.asarray(array), self.name()
        if self.rng.random() < 0.5:
            self.initializers.append(numpy_helper.from_array(array, name))
        else:
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def node(self, op, inputs, **attributes):
        return self.nodes_of(op, inputs, 1, **attributes)[0]

    def nodes_of(self, op, inputs, outputs, **attributes):
        inputs = [i.name if isinstance(i, Value) else i for i in inputs]
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names

    def keep(self, name, elem, shape, exact=True, kind="tensor"):
        value = Value(name, elem, shape, exact or elem != "f", kind)
        self.values.append(value)
        return value

    def dim(self):
        self.model.counts["dims"] += 1
        return f"d{self.model.counts['dims']}"

    def with_axes(self, op, since, inputs, axes, **attributes):
        """What took its axes as an attribute before opset `since`."""
        if self.model.opset < since:
            return self.node(op, inputs, axes=axes, **attributes)
        return self.node(op, [*inputs, self.ints(*axes)], **attributes)

    # --- choosing ---

    def visible(self):
        return self.values + (self.parent.visible() if self.parent else [])

    def pick(self, accepts, kind="tensor"):
        own = [v for v in self.values if v.kind == kind and accepts(v)]
        if own and self.rng.random() < 0.6:
            return self.rng.choice(own)
        found = [v for v in self.visible() if v.kind == kind and accepts(v)]
        return self.rng.choice(found) if found else None

    def pick_ranked(self, elem=None, rank=1):
        return self.pick(lambda v: v.shape is not None and len(v.shape) >= rank and elem in (None, v.elem))

    def partner(self, value):
        """Something that stands beside the value in an elementwise operator."""
        found = self.pick(lambda v: v.elem == value.elem and v.shape in (value.shape, ()))
        if found and self.rng.random() < 0.7:
            return found
        name = self.constant(self.model.array(value.elem, ()))
        return Value(name, value.elem, ())

    def wider(self, a, b):
        return a.shape if b.shape == () else b.shape

    # --- scalars that decide ---

    def scalar_int(self):
        found = self.pick(lambda v: v.elem == "i" and v.is_scalar())
        if found and self.rng.random() < 0.8:
            return found.name
        source = self.pick(lambda v: v.elem in "ib" or (v.elem == "f" and v.exact))
        if not source:
            return self.constant(np.int64(self.rng.randrange(20)))
        name = source.name
        if source.elem == "b":
            name = self.node("Cast", [name], to=TensorProto.INT64)
        name = self.node("ReduceSum", [name], keepdims=0)
        return self.node("Cast", [name], to=TensorProto.INT64) if source.elem == "f" else name

    def below(self, count, least=0):
        """A scalar of least..least+count-1 that a run decides."""
        name = self.node("Mod", [self.scalar_int(), self.constant(np.int64(count))])
        return self.node("Add", [name, self.constant(np.int64(least))]) if least else name

    def one(self, scalar):
        return self.node("Reshape", [scalar, self.ints(1)])

    def condition(self, constant=0.15):
        if self.rng.random() < constant:
            return self.constant(np.bool_(self.rng.random() < 0.5))
        found = self.pick(lambda v: v.elem == "b" and v.is_scalar())
        if found and self.rng.random() < 0.5:
            return found.name
        return self.node("Less", [self.below(4), self.constant(np.int64(2))])

    def trips(self):
        """How often a Loop runs at most, and for what a run decides 0 to 4 times."""
        chance = self.rng.random()
        if chance < 0.3:
            return self.constant(np.int64(self.rng.choice([0, 1, 2, 3, 5])))
        if chance < 0.4:
            return self.constant(np.array([self.rng.choice([0, 1, 3])], np.int64))
        inputs = [v for v in self.visible() if v.name in self.model.counters]
        if inputs and chance < 0.7:
            return self.rng.choice(inputs).name
        return self.below(5)

    # --- values of a given type ---

    def tamed(self, value):
        """What is carried round a loop neither grows nor loses digits."""
        if value.elem == "f":
            low, high = self.constant(np.float32(-8)), self.constant(np.float32(8))
            return Value(self.node("Clip", [value, low, high]), "f", value.shape, value.exact)
        if value.elem == "i":
            modulus = self.constant(np.int64(self.rng.choice([11, 1009, 2**40 + 15])))
            return Value(self.node("Mod", [value, modulus]), "i", value.shape)
        return Value(self.node(self.rng.choice(["Identity", "Not"]), [value]), "b", value.shape)

    def make(self, elem, shape, exact):
        """A value of this type that this block makes itself."""
        def fits(v):
            return v.elem == elem and v.shape == shape and (v.exact or not exact)
        found = self.pick(fits)
        if found and self.rng.random() < 0.9:
            return self.tamed(found)
        if all(isinstance(d, int) for d in shape):
            scalar = self.pick(lambda v: v.elem == elem and v.is_scalar() and (v.exact or not exact))
            if not scalar:
                return Value(self.node("Identity", [self.constant(self.model.array(elem, shape))]), elem, shape)
            return self.tamed(Value(self.node("Expand", [scalar, self.ints(*shape)]), elem, shape, scalar.exact))
        return self.tamed(found) if found else None

    # --- steps: each adds some nodes and the value that they make, or does nothing where there is nothing to take ---

    def unary(self):
        value = self.pick(lambda v: True)
        if not value:
            return
        if value.elem == "f":
            op = self.rng.choice(["Neg", "Abs", "Floor", "Relu", "Identity", "Tanh", "Sigmoid"])
        else:
            op = self.rng.choice(["Neg", "Abs", "Identity"] if value.elem == "i" else ["Not", "Identity"])
        self.keep(self.node(op, [value]), value.elem, value.shape, value.exact and op not in ("Tanh", "Sigmoid"))

    def binary(self):
        value = self.pick(lambda v: v.shape is not None)
        if not value:
            return
        other = self.partner(value)
        ops = {"f": ["Add", "Sub", "Mul", "Max", "Min"], "i": ["Add", "Sub", "Mul"], "b": ["And", "Or", "Xor"]}
        op = self.rng.choice(ops[value.elem])
        pair = [value, other] if self.rng.random() < 0.5 else [other, value]
        exact = value.exact and other.exact and op != "Mul"
        self.keep(self.node(op, pair), value.elem, self.wider(value, other), exact)

    def compare(self):
        value = self.pick(lambda v: v.shape is not None and v.elem != "b" and v.exact)
        if not value:
            return
        other = self.partner(value)
        if other.exact:
            op = self.rng.choice(["Less", "Greater", "Equal"])
            self.keep(self.node(op, [value, other]), "b", self.wider(value, other))

    def where(self):
        choice = self.pick(lambda v: v.elem == "b" and v.shape is not None)
        value = choice and self.pick(lambda v: v.elem != "b" and v.shape is not None and
                                     (v.shape == choice.shape or () in (v.shape, choice.shape)))
        if not value:
            return
        shape = value.shape or choice.shape
        other = self.pick(lambda v: v.elem == value.elem and v.shape in (shape, ())) or value
        exact = value.exact and other.exact
        self.keep(self.node("Where", [choice, value, other]), value.elem, shape, exact)

    def cast(self):
        value = self.pick(lambda v: v.elem in "ib" or v.exact)
        if not value:
            return
        if value.elem == "i":
            small = self.node("Mod", [value, self.constant(np.int64(9))])
            self.keep(self.node("Cast", [small], to=TensorProto.FLOAT), "f", value.shape)
        else:
            to = "i" if value.elem == "f" else self.rng.choice("fi")
            self.keep(self.node("Cast", [value], to=PROTO[to]), to, value.shape)

    def reduce(self):
        value = self.pick(lambda v: v.elem != "b")
        if not value:
            return
        if not value.shape or self.rng.random() < 0.4:
            self.keep(self.node("ReduceSum", [value], keepdims=0), value.elem, (), value.exact)
            return
        axis, keep = self.rng.randrange(len(value.shape)), self.rng.randrange(2)
        shape = value.shape[:axis] + ((1,) if keep else ()) + value.shape[axis + 1:]
        full = isinstance(value.shape[axis], int) and value.shape[axis] > 0
        op = self.rng.choice(["ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean"] if full else ["ReduceSum"])
        if op == "ReduceMean" and value.elem == "i":
            op = "ReduceSum"
        result = self.with_axes(op, 13 if op == "ReduceSum" else 18, [value], [axis], keepdims=keep)
        self.keep(result, value.elem, shape, value.exact and op != "ReduceMean")

    def matmul(self):
        a = self.pick(lambda v: v.elem == "f" and v.shape is not None and len(v.shape) == 2)
        b = a and self.pick(lambda v: v.elem == "f" and v.shape is not None and len(v.shape) == 2 and
                            v.shape[0] == a.shape[1])
        if b:
            self.keep(self.node("MatMul", [a, b]), "f", (a.shape[0], b.shape[1]), False)

    def cumsum(self):
        value = self.pick_ranked("f")
        if value:
            axis = self.constant(np.int64(self.rng.randrange(len(value.shape))))
            self.keep(self.node("CumSum", [value, axis], reverse=self.rng.randrange(2)), "f", value.shape, value.exact)

    def shape_of(self):
        value = self.pick(lambda v: True)
        if value and (value.shape is None or self.rng.random() < 0.3):
            self.keep(self.node("Size", [value]), "i", ())
        elif value:
            self.keep(self.node("Shape", [value]), "i", (len(value.shape),))

    def flatten(self):
        value = self.pick(lambda v: True)
        if not value:
            return
        if value.shape and self.rng.random() < 0.4:
            axis = self.rng.randrange(len(value.shape) + 1)
            sides = value.shape[:axis], value.shape[axis:]
            shape = [int(np.prod(s)) if all(isinstance(d, int) for d in s) else self.dim() for s in sides]
            self.keep(self.node("Flatten", [value], axis=axis), value.elem, shape, value.exact)
        else:
            count = int(np.prod(value.shape)) if value.is_static() else self.dim()
            self.keep(self.node("Reshape", [value, self.ints(-1)]), value.elem, (count,), value.exact)

    def reshape_computed(self):
        """To [last dim, the others], both taken from the value's own shape."""
        value = self.pick_ranked(rank=2)
        if not value or not value.is_static() or 0 in value.shape:
            return
        shape = self.node("Shape", [value])
        last = self.node("Gather", [shape, self.ints(len(value.shape) - 1)], axis=0)
        rest = self.node("Div", [self.one(self.node("Size", [value])), last])
        target = self.node("Concat", [last, rest], axis=0)
        count = int(np.prod(value.shape[:-1]))
        self.keep(self.node("Reshape", [value, target]), value.elem, (value.shape[-1], count), value.exact)

    def expand(self):
        like = self.pick_ranked()
        value = self.pick(lambda v: v.is_scalar())
        if like and value:
            result = self.node("Expand", [value, self.node("Shape", [like])])
            self.keep(result, value.elem, like.shape, value.exact)

    def concat(self):
        a = self.pick_ranked()
        axis = a and self.rng.randrange(len(a.shape))

        def fits(v):
            return (v.elem == a.elem and v.shape is not None and len(v.shape) == len(a.shape) and
                    all(d == e for i, (d, e) in enumerate(zip(a.shape, v.shape)) if i != axis))
        b = a and self.pick(fits)
        if b:
            dims = a.shape[axis], b.shape[axis]
            total = sum(dims) if all(isinstance(d, int) for d in dims) else self.dim()
            if isinstance(total, int) and total > 40:
                return
            shape = a.shape[:axis] + (total,) + a.shape[axis + 1:]
            self.keep(self.node("Concat", [a, b], axis=axis), a.elem, shape, a.exact and b.exact)

    def slice(self):
        value = self.pick_ranked()
        if not value:
            return
        axis, negative = self.rng.randrange(len(value.shape)), self.rng.random() < 0.3
        start = self.one(self.below(3)) if self.rng.random() < 0.7 else self.ints(self.rng.randrange(2))
        if negative:
            start = self.node("Sub", [self.ints(-1), start])
        end = self.ints(-LAST if negative else LAST)
        steps = [self.ints(-1)] if negative else []
        result = self.node("Slice", [value, start, end, self.ints(axis), *steps])
        shape = value.shape[:axis] + (self.dim(),) + value.shape[axis + 1:]
        self.keep(result, value.elem, shape, value.exact)

    def gather(self):
        value = self.pick_ranked()
        axes = [i for i, d in enumerate(value.shape) if isinstance(d, int) and d > 0] if value else []
        if not axes:
            return
        axis = self.rng.choice(axes)
        shape = value.shape[:axis] + value.shape[axis + 1:]
        result = self.node("Gather", [value, self.below(value.shape[axis])], axis=axis)
        self.keep(result, value.elem, shape, value.exact)

    def transpose(self):
        value = self.pick_ranked(rank=2)
        if value:
            order = self.rng.sample(range(len(value.shape)), len(value.shape))
            result = self.node("Transpose", [value], perm=order)
            self.keep(result, value.elem, [value.shape[i] for i in order], value.exact)

    def unsqueeze(self):
        value = self.pick(lambda v: v.shape is not None and len(v.shape) < 3)
        if not value:
            return
        if 1 in value.shape:
            axis = value.shape.index(1)
            shape = value.shape[:axis] + value.shape[axis + 1:]
            self.keep(self.with_axes("Squeeze", 13, [value], [axis]), value.elem, shape, value.exact)
        else:
            axis = self.rng.randrange(len(value.shape) + 1)
            shape = value.shape[:axis] + (1,) + value.shape[axis:]
            self.keep(self.with_axes("Unsqueeze", 13, [value], [axis]), value.elem, shape, value.exact)

    def non_zero(self):
        value = self.pick(lambda v: v.shape and v.exact)
        if value:
            self.keep(self.node("NonZero", [value]), "i", (len(value.shape), self.dim()))

    def compress(self):
        choice = self.pick(lambda v: v.elem == "b" and v.shape is not None and len(v.shape) == 1)
        value = choice and self.pick(lambda v: v.shape is not None and choice.shape[0] in v.shape)
        if value:
            axis = value.shape.index(choice.shape[0])
            shape = value.shape[:axis] + (self.dim(),) + value.shape[axis + 1:]
            self.keep(self.node("Compress", [value, choice], axis=axis), value.elem, shape, value.exact)

    def top_k(self):
        value = self.pick(lambda v: v.elem in "fi" and v.exact and v.shape and isinstance(v.shape[-1], int) and
                          v.shape[-1] > 1)
        if value:
            count = self.one(self.below(value.shape[-1], least=1))
            top, where = self.nodes_of("TopK", [value, count], 2, axis=-1, largest=self.rng.randrange(2))
            shape = value.shape[:-1] + (self.dim(),)
            self.keep(top, value.elem, shape)
            self.keep(where, "i", shape)

    def arange(self):
        start, step = self.constant(np.int64(self.rng.randrange(-2, 2))), self.constant(np.int64(1))
        self.keep(self.node("Range", [start, self.below(5, least=1), step]), "i", (self.dim(),))

    def filled(self):
        elem = self.rng.choice("fi")
        value = numpy_helper.from_array(self.model.array(elem, (1,)))
        result = self.node("ConstantOfShape", [self.one(self.below(4))], value=value)
        self.keep(result, elem, (self.dim(),))

    def gather_found(self):
        """What NonZero finds, looked up: the commonest use of it."""
        value = self.pick(lambda v: v.elem in "fi" and v.exact and v.shape is not None and len(v.shape) == 1)
        if value:
            found = self.node("Reshape", [self.node("NonZero", [value]), self.ints(-1)])
            self.keep(self.node("Gather", [value, found], axis=0), value.elem, (self.dim(),))

    # --- sequences and optionals ---

    def sequence(self):
        """A new one: of given items, empty, or of the parts of a tensor."""
        item = self.pick(lambda v: True)
        chance = self.rng.random()
        if not item:
            return
        if chance < 0.4:
            other = self.pick(lambda v: v.elem == item.elem and v.shape == item.shape and v.shape is not None)
            items = [item] + ([other] if other else [])
            result = self.node("SequenceConstruct", items)
            self.keep(result, item.elem, item.shape, all(v.exact for v in items), "seq")
        elif chance < 0.7 or not item.is_static() or not item.shape or item.shape[0] == 0:
            self.keep(self.node("SequenceEmpty", [], dtype=PROTO[item.elem]), item.elem, item.shape, item.exact, "seq")
        else:
            result = self.node("SplitToSequence", [item], axis=0, keepdims=1)
            self.keep(result, item.elem, (1,) + item.shape[1:], item.exact, "seq")

    def sequence_insert(self):
        sequence = self.pick(lambda v: True, "seq")
        item = sequence and self.pick(lambda v: v.elem == sequence.elem and v.shape == sequence.shape)
        if item:
            at = [self.node("Mod", [self.scalar_int(), self.node("Add", [self.node("SequenceLength", [sequence]),
                                                                         self.constant(np.int64(1))])])]
            result = self.node("SequenceInsert", [sequence, item, *(at if self.rng.random() < 0.4 else [])])
            self.keep(result, item.elem, item.shape, sequence.exact and item.exact, "seq")

    def sequence_use(self):
        sequence = self.pick(lambda v: True, "seq")
        if not sequence:
            return
        chance = self.rng.random()
        if chance < 0.3 or not sequence.is_static():
            self.keep(self.node("SequenceLength", [sequence]), "i", ())
        elif chance < 0.6:
            self.keep(self.taken(sequence), sequence.elem, sequence.shape, sequence.exact)
        elif chance < 0.9:
            self.keep(*self.joined(sequence))
        else:
            last = self.constant(np.int64(-1))
            whole = self.filled_up(sequence)
            self.keep(self.node("SequenceErase", [whole, last]), sequence.elem, sequence.shape, sequence.exact, "seq")

    def filled_up(self, sequence):
        """The sequence with something in it."""
        extra = self.constant(self.model.array(sequence.elem, sequence.shape))
        return self.node("SequenceInsert", [sequence, extra])

    def taken(self, sequence):
        whole = self.filled_up(sequence)
        at = self.node("Mod", [self.scalar_int(), self.node("SequenceLength", [whole])])
        return self.node("SequenceAt", [whole, at])

    def joined(self, sequence):
        whole = self.filled_up(sequence)
        if self.rng.random() < 0.5 or not sequence.shape:
            shape = (self.dim(),) + sequence.shape
            name = self.node("ConcatFromSequence", [whole], axis=0, new_axis=1)
        else:
            shape = (self.dim(),) + sequence.shape[1:]
            name = self.node("ConcatFromSequence", [whole], axis=0)
        return name, sequence.elem, shape, sequence.exact

    def sequence_map(self):
        sequence = self.pick(lambda v: v.elem == "f", "seq")
        if not sequence or self.model.opset < 17:
            return
        body = Block(self.model, self, 1)
        item = Value(body.name(), "f", sequence.shape, sequence.exact)
        body.values.append(item)
        body.run()
        result = body.make("f", (), False) if self.rng.random() < 0.5 else body.tamed(item)
        graph = body.graph([item], [result])
        name = self.node("SequenceMap", [sequence], body=graph)
        self.keep(name, "f", result.shape, result.exact, "seq")

    def optional(self):
        """One that a run fills or leaves empty, asked and read where it is full."""
        value = self.pick(lambda v: v.is_static())
        if not value or self.model.opset < 16:
            return
        element = helper.make_tensor_type_proto(PROTO[value.elem], None)
        kind = helper.make_optional_type_proto(element)
        full, empty = Block(self.model, self, 0), Block(self.model, self, 0)
        sides = [full.node("Optional", [full.tamed(value)]), empty.node("Optional", [], type=element)]
        graphs = [helper.make_graph(block.nodes, block.name(), [], [helper.make_value_info(name, kind)],
                                    block.initializers) for block, name in zip((full, empty), sides)]
        self.rng.shuffle(graphs)
        choice = self.condition(0)
        made = self.node("If", [choice], then_branch=graphs[0], else_branch=graphs[1])
        has = self.node("OptionalHasElement", [made])
        self.keep(has, "b", ())
        read, other = Block(self.model, self, 0), Block(self.model, self, 0)
        element = Value(read.node("OptionalGetElement", [made]), value.elem, value.shape)
        graph = read.graph([], [element])
        instead = other.graph([], [other.make(value.elem, value.shape, False)])
        self.keep(self.node("If", [has], then_branch=graph, else_branch=instead), value.elem, value.shape, False)
        self.model.tally["Optional"] += 1

    # --- control flow ---

    def info(self, value, open_shape, whole=False):
        """The declaration of a graph's input or output: with a shape (always where it is `whole`), with a rank, or with
        neither."""
        shape = None
        if value.shape is not None and not open_shape and (whole or self.rng.random() < 0.6):
            known = whole or self.rng.random() < 0.7
            shape = [d if isinstance(d, int) and known else None for d in value.shape]
        tensor = helper.make_tensor_type_proto(PROTO[value.elem], shape)
        kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(PROTO[value.elem], None))
        return helper.make_value_info(value.name, kind if value.kind == "seq" else tensor)

    def graph(self, inputs, outputs, open_inputs=(), scans=()):
        made = [o for n in self.nodes for o in n.output]
        results = []
        for value in outputs:  # what a body gives is made in it, and by one output only
            name = value.name
            if name not in made or name in [r.name for r in results]:
                name = self.node("Identity", [name])
            results.append(Value(name, value.elem, value.shape, value.exact, value.kind))
        return helper.make_graph(self.nodes, f"g{self.depth}", [self.info(v, v.name in open_inputs) for v in inputs],
                                 [self.info(v, False, whole=original in scans)
                                  for v, original in zip(results, outputs)], self.initializers)

    def body(self):
        return Block(self.model, self, self.rng.randint(1, max(2, 5 - 2 * self.depth)))

    def branch(self):
        """If, of one to three results: alike in both branches, of other dims, of another rank, or sequences."""
        choice = self.condition()
        sides = [self.body(), self.body()]
        for side in sides:
            side.run()
        results, targets = [], []
        for _ in range(self.rng.randint(1, 3)):
            mode, elem = self.rng.random(), self.rng.choice("ffiib")
            shape = self.rng.choice([(), (2,), (3,), (2, 3)])
            if mode < 0.5:
                like = self.pick(lambda v: v.shape is not None)
                if like and self.rng.random() < 0.6:
                    elem, shape = like.elem, like.shape
                pair = [side.make(elem, shape, False) for side in sides]
                joined = shape
            elif mode < 0.75:
                shapes = self.rng.sample([(1,), (2,), (4,), (0,)], 2)
                pair = [side.make(elem, s, False) for side, s in zip(sides, shapes)]
                joined = (self.dim(),)
            elif mode < 0.88:
                shapes = self.rng.sample([(), (3,), (2, 2), (1, 2, 3)], 2)
                pair = [side.make(elem, s, False) for side, s in zip(sides, shapes)]
                joined = None
            elif self.model.opset >= 13:
                pair = [self.some_sequence(side, elem) for side in sides]
                joined = (2,)
            else:
                continue
            if None in pair:
                continue
            targets.append(pair)
            results.append((elem, joined, all(v.exact for v in pair), pair[0].kind))
        if not targets:
            return
        graphs = [side.graph([], [pair[i] for pair in targets]) for i, side in enumerate(sides)]
        names = self.nodes_of("If", [choice], len(targets), then_branch=graphs[0], else_branch=graphs[1])
        for name, (elem, shape, exact, kind) in zip(names, results):
            self.keep(name, elem, shape, exact, kind)
        self.model.tally["If"] += 1

    def some_sequence(self, side, elem):
        items = [side.make(elem, (2,), False) for _ in range(self.rng.randint(1, 3))]
        name = side.node("SequenceConstruct", items)
        return Value(name, elem, (2,), all(v.exact for v in items), "seq")

    def loop(self):
        body = self.body()
        trips = self.trips() if self.rng.random() < 0.85 else ""
        start = "" if self.rng.random() < 0.3 else self.condition(0.6)
        counter, going = Value(body.name(), "i", ()), Value(body.name(), "b", ())
        body.values += [counter, going]
        carried = self.carried(body, allow_growth=True)
        body.run()
        outputs, initial, formal, growing = [], [], [], set()
        for outer, inner, grows in carried:
            if grows == "seq":
                item = body.make(outer.elem, outer.shape, outer.exact)
                at = [body.constant(np.int64(0))] if self.rng.random() < 0.2 else []
                result = body.node("SequenceInsert", [inner, item, *at])
                outputs.append(Value(result, outer.elem, outer.shape, outer.exact, "seq"))
            elif grows:
                row = body.make(outer.elem, (self.rng.choice([0, 1, 2]),) + outer.shape[1:], outer.exact)
                if row is None:
                    return
                pair = [inner, row] if self.rng.random() < 0.7 else [row, inner]
                outputs.append(Value(body.node("Concat", pair, axis=0), outer.elem, inner.shape, outer.exact))
                growing.add(inner.name)
            else:
                made = body.make(outer.elem, outer.shape, outer.exact)
                outputs.append(made if made else inner)
            initial.append(outer)
            formal.append(inner)
        chance = self.rng.random()
        if not trips or chance < 0.25:
            end = body.node("Less", [counter, body.constant(np.int64(self.rng.randrange(4)))])
            if chance < 0.3:
                end = body.node("And", [end, body.condition(0)])
        elif chance < 0.6:
            end = body.condition(0)
        elif chance < 0.8:
            end = body.node("Identity", [going])
        else:
            end = body.constant(np.bool_(self.rng.random() < 0.9))
        scans = self.scanned(body)
        all_outputs = [Value(end, "b", ())] + outputs + scans
        graph = body.graph(formal, all_outputs, growing, scans)
        for value in (going, counter):  # ONNX Runtime wants their shapes
            graph.input.insert(0, helper.make_tensor_value_info(value.name, PROTO[value.elem], []))
        names = self.nodes_of("Loop", [trips, start] + initial, len(outputs) + len(scans), body=graph)
        for name, (outer, inner, grows), result in zip(names, carried, outputs):
            if grows == "seq":
                self.keep(name, outer.elem, outer.shape, outer.exact, "seq")
            else:
                shape = (self.dim(),) + outer.shape[1:] if grows else outer.shape
                self.keep(name, outer.elem, shape, outer.exact)
        for name, value in zip(names[len(outputs):], scans):
            self.keep(name, value.elem, (self.dim(),) + value.shape, value.exact)
        self.model.tally["Loop"] += 1

    def carried(self, body, allow_growth):
        """(the value outside, the body's input, whether its first dim grows) of each value that goes round."""
        found, seen = [], set()
        for _ in range(self.rng.randint(1, 3)):
            chance = self.rng.random()
            if allow_growth and chance < 0.2 and self.model.opset >= 13:
                outer = self.pick(lambda v: v.shape is not None and all(isinstance(d, int) for d in v.shape), "seq")
                grows = "seq"
            elif allow_growth and chance < 0.4:
                outer, grows = self.pick(lambda v: v.shape and all(isinstance(d, int) for d in v.shape[1:])), True
            else:
                outer, grows = self.pick(lambda v: v.shape is not None), False
            if not outer or outer.name in seen:
                continue
            seen.add(outer.name)
            shape = (self.dim(),) + outer.shape[1:] if grows is True else outer.shape
            inner = Value(body.name(), outer.elem, shape, outer.exact, outer.kind)
            body.values.append(inner)
            found.append((outer, inner, grows))
        if not found:
            outer = Value(self.constant(self.model.array("f", ())), "f", ())
            inner = Value(body.name(), "f", ())
            body.values.append(inner)
            found.append((outer, inner, False))
        return found

    def scanned(self, body):
        """What a body gives in each round: the same dims every time."""
        scans = []
        for _ in range(self.rng.randint(0, 2)):
            elem, shape = self.rng.choice("ffib"), self.rng.choice([(), (), (2,), (1, 3)])
            like = self.pick(lambda v: v.is_static())
            if like and self.rng.random() < 0.5:
                elem, shape = like.elem, like.shape
            scans.append(body.make(elem, shape, False))
        return scans

    def scan(self):
        first = self.pick(lambda v: v.shape)
        if not first:
            return
        axis = self.rng.randrange(len(first.shape))
        length = first.shape[axis]
        taken = [(first, axis)]
        other = self.pick(lambda v: v.shape and length in v.shape)
        if other and self.rng.random() < 0.5:
            taken.append((other, other.shape.index(length)))
        body = self.body()
        states = self.carried(body, allow_growth=False)
        slices = []
        for value, at in taken:
            inner = Value(body.name(), value.elem, value.shape[:at] + value.shape[at + 1:], value.exact)
            body.values.append(inner)
            slices.append(inner)
        body.run()
        outputs = []
        for outer, inner, _ in states:
            made = body.make(outer.elem, outer.shape, outer.exact)
            outputs.append(made if made else inner)
        scans = self.scanned(body)
        graph = body.graph([inner for _, inner, _ in states] + slices, outputs + scans, scans=scans)
        attributes = {"num_scan_inputs": len(taken)}
        axes = [at - len(v.shape) if self.rng.random() < 0.3 else at for v, at in taken]
        if any(axes) or self.rng.random() < 0.3:
            attributes["scan_input_axes"] = axes
        if self.rng.random() < 0.4:
            attributes["scan_input_directions"] = [self.rng.randrange(2) for _ in taken]
        out_axes = [self.rng.randrange(len(v.shape) + 1) if self.rng.random() < 0.4 else 0 for v in scans]
        if any(out_axes):
            attributes["scan_output_axes"] = out_axes
        if scans and self.rng.random() < 0.4:
            attributes["scan_output_directions"] = [self.rng.randrange(2) for _ in scans]
        names = self.nodes_of("Scan", [outer for outer, _, _ in states] + [v for v, _ in taken],
                              len(outputs) + len(scans), body=graph, **attributes)
        for name, (outer, _, _) in zip(names, states):
            self.keep(name, outer.elem, outer.shape, outer.exact)
        for name, value, at in zip(names[len(outputs):], scans, out_axes):
            self.keep(name, value.elem, value.shape[:at] + (length,) + value.shape[at:], value.exact)
        self.model.tally["Scan"] += 1

    STEPS = [(unary, 3), (binary, 6), (compare, 3), (where, 2), (cast, 2), (reduce, 3), (matmul, 1), (cumsum, 1),
             (shape_of, 2), (flatten, 2), (reshape_computed, 1), (expand, 1), (concat, 2), (slice, 3), (gather, 3),
             (transpose, 1), (unsqueeze, 2), (non_zero, 1), (compress, 2), (top_k, 1), (arange, 1), (filled, 1),
             (gather_found, 1), (sequence, 2), (sequence_insert, 2), (sequence_use, 3), (sequence_map, 1),
             (optional, 1)]
    FLOW = [(branch, 5), (loop, 6), (scan, 3)]

    def run(self):
        for _ in range(self.steps):
            steps = self.STEPS + (self.FLOW if self.depth < MAX_DEPTH else [])
            self.rng.choices([s for s, _ in steps], [w for _, w in steps])[0](self)


class Model:
    """A random model of a seed and a number, with its inputs."""

    def __init__(self, seed, index):
        self.rng = random.Random(f"{seed}/{index}")
        self.numbers = np.random.default_rng([seed, index])
        self.opset = self.rng.randint(11, 21)
        self.shares_names = self.rng.random() < 0.4
        self.counts, self.tally = collections.Counter(), collections.Counter()
        self.counters, self.feeds = set(), {}
        top = Block(self, None, self.rng.randint(5, 10))
        inputs = [self.input(top, name) for name in "xyz"] + self.extra_inputs(top)
        top.run()
        for step in self.rng.sample([Block.branch, Block.loop, Block.scan], 2):
            step(top)
            top.steps = 2
            top.run()
        self.proto = self.finish(top, inputs)

    def array(self, elem, shape):
        if elem == "f":
            return (self.numbers.integers(-24, 25, shape) / 8).astype(np.float32)
        if elem == "b":
            return np.asarray(self.numbers.integers(0, 2, shape), np.bool_)
        large = self.rng.random() < 0.1
        return np.asarray(self.numbers.integers(-9, 10, shape) + (2**53 + 1 if large else 0), np.int64)

    def input(self, top, name):
        elem = {"x": "f", "y": "i", "z": self.rng.choice("fib")}[name]
        shape = self.rng.choice([(2, 3), (3,), (4,), (3, 2), (1, 4), (2, 1, 3), (5,)])
        self.feeds[name] = self.array(elem, shape)
        declared = [f"{name}{i}" if self.rng.random() < 0.2 else d for i, d in enumerate(shape)]
        top.keep(name, elem, shape)
        return helper.make_tensor_value_info(name, PROTO[elem], declared)

    def extra_inputs(self, top):
        infos = []
        if self.rng.random() < 0.7:
            self.feeds["n"] = np.array(self.rng.randrange(5), np.int64)
            self.counters.add("n")
            top.keep("n", "i", ())
            infos.append(helper.make_tensor_value_info("n", TensorProto.INT64, []))
        if self.rng.random() < 0.6:
            self.feeds["c"] = np.array(self.rng.randrange(2), np.bool_)
            top.keep("c", "b", ())
            infos.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
        if self.rng.random() < 0.3:
            self.feeds["s"] = [self.array("f", (2,)) for _ in range(self.rng.randrange(1, 4))]
            top.keep("s", "f", (2,), kind="seq")
            infos.append(helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [2]))
        return infos

    def finish(self, top, inputs):
        names = {i.name for i in inputs}
        made = [v for v in top.values if v.name not in names]
        last = {o for n in top.nodes if n.op_type in ("If", "Loop", "Scan") for o in n.output}
        flow = [v for v in made if v.name in last]
        chosen = self.rng.sample(flow, min(4, len(flow)))
        chosen += [v for v in made[-3:] if v not in chosen]
        outputs = [top.info(v, self.rng.random() < 0.5) for v in chosen]
        graph = helper.make_graph(top.nodes, "control_flow", inputs, outputs, top.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)],
                                 ir_version=10, producer_name="write_control_flow")


def differ(a, b):
    """Whether two answers are not the same value of the same type."""
    if isinstance(a, (list, tuple)) or isinstance(b, (list, tuple)):
        if not isinstance(a, (list, tuple)) or not isinstance(b, (list, tuple)) or len(a) != len(b):
            return True
        return any(differ(x, y) for x, y in zip(a, b))
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return True
    if a.dtype == np.float32:
        return not np.allclose(a, b, rtol=1e-4, atol=1e-6) or not np.isfinite(a).all()
    return not np.array_equal(a, b)


def judged(model):
    """What `judge` says of it, in a process of its own: some models crash ONNX Runtime."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(TIMEOUT_SECONDS)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(pickle.dumps(judge(model)))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    status = os.waitpid(child, 0)[1]
    if status == 0:
        return pickle.loads(said)
    return None, f"onnxruntime or the reference evaluator: ended by signal {status & 127}"


def judge(model):
    """The answer that both give, or why there is none."""
    data = model.proto.SerializeToString()
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        theirs = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, model.feeds)
    except Exception as error:  # whatever it says of a model that it cannot run
        return None, "onnxruntime: " + str(error).splitlines()[0]
    try:
        answer = ReferenceEvaluator(model.proto, new_ops=[Loop, Scan]).run(None, model.feeds)
    except Exception as error:
        return None, f"reference evaluator: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    if any(differ(a, b) for a, b in zip(answer, theirs)):
        return None, "the two differ"
    return answer, None


def write(folder, model, answer):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.proto.SerializeToString())
    graph = model.proto.graph
    for what, infos, values in (("input", graph.input, [model.feeds[i.name] for i in graph.input]),
                                ("output", graph.output, answer)):
        for i, (info, value) in enumerate(zip(infos, values)):
            if info.type.HasField("sequence_type"):
                message = numpy_helper.from_list([np.asarray(v) for v in value], info.name, onnx.SequenceProto.TENSOR)
            else:
                message = numpy_helper.from_array(np.asarray(value), info.name)
            (data / f"{what}_{i}.pb").write_bytes(message.SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("target", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300, help="how many models are kept")
    parser.add_argument("--small", type=int, default=1 << 30, help="keep models of at most so many bytes")
    parser.add_argument("--json", type=pathlib.Path, help="write what was kept and dropped there")
    arguments = parser.parse_args()
    if arguments.target.exists() and any(arguments.target.iterdir()):
        sys.exit(f"{arguments.target}: is not empty")
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    kept, dropped, tally, index = 0, collections.Counter(), collections.Counter(), 0
    while kept < arguments.count and index < 20 * arguments.count:
        model = Model(arguments.seed, index)
        index += 1
        if len(model.proto.SerializeToString()) > arguments.small:
            continue
        answer, reason = judged(model)
        if reason:
            dropped[reason] += 1
            continue
        write(arguments.target / f"cf_{arguments.seed}_{index - 1}", model, answer)
        tally += model.tally
        kept += 1
    record = {"seed": arguments.seed, "kept": kept, "dropped": sum(dropped.values()), "operators": dict(tally)}
    print(json.dumps(record))
    for reason, count in dropped.most_common(12):
        print(f"  {count:4} dropped: {reason[:200]}")
    if arguments.json:
        arguments.json.write_text(json.dumps(record | {"reasons": dict(dropped)}, indent=2) + "\n")
    return 0 if kept == arguments.count else 1


if __name__ == "__main__":
    sys.exit(main())
