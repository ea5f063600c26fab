#!/usr/bin/env python3
"""make_model.py KIND FILE: an ONNX model with nodes of the domain com.acme. KIND is one of KINDS below.
Written byte by byte: the tests need no ONNX for Python."""
import struct
import sys


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while True:
        out.append(n & 127 | (128 if n > 127 else 0))
        n >>= 7
        if not n:
            return bytes(out)


def field(number, value):
    """A varint, or bytes, texts and messages with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def fixed32(number, value):
    return varint(number << 3 | 5) + struct.pack("<f", value)


def tensor(values):
    return field(1, len(values)) + field(2, 1) + field(9, struct.pack(f"<{len(values)}f", *values))


def attribute(name, value):
    body = field(1, name)
    if isinstance(value, float):
        return body + fixed32(2, value) + field(20, 1)
    if isinstance(value, int):
        return body + field(3, value) + field(20, 2)
    if isinstance(value, str):
        return body + field(4, value) + field(20, 3)
    if isinstance(value, tuple):  # a list: of numbers, real ones or texts
        first = value[0]
        kind, number, one = (6, 7, fixed32) if isinstance(first, float) else (7, 8, field) if isinstance(first, int) else (8, 9, field)
        return body + b"".join(one(number, v) for v in value) + field(20, kind)
    return body + field(5, tensor(value)) + field(20, 4)


def node(op, name, inputs, outputs, domain="com.acme", **attributes):
    body = b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs)
    body += field(3, name) + field(4, op) + b"".join(field(5, attribute(k, v)) for k, v in attributes.items())
    return body + field(7, domain)


def port(name, dims):
    shape = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


TABLE = [1.0, 2.0, 3.0, 4.0]
# The nodes, and the outputs with their dims. x is f32[N,4], b f32[4].
KINDS = {
    "blend": ([node("Blend", "Blend_0", ["x"], ["y"], gain=0.5, table=TABLE)], {"y": ["N", 4]}),
    "bias": ([node("Blend", "Blend_0", ["x", "b"], ["y"], gain=0.5, table=TABLE)], {"y": ["N", 4]}),
    "relu": ([node("Blend", "Blend_0", ["x"], ["y"], mode="relu", table=TABLE)], {"y": ["N", 4]}),
    "halves": ([node("Halves", "Halves_0", ["x"], ["u", "v"]), node("Add", "Add_1", ["u", "v"], ["y"], domain="")],
               {"y": [None, 4]}),
    "unknown": ([node("Swirl", "Swirl_0", ["x"], ["y"]), node("Other", "Other_1", ["x"], ["z"], domain="org.other")],
                {"y": ["N", 4], "z": ["N", 4]}),
    "tell": ([node("Tell", "Tell_0", ["x", "", "c"], ["y", "z"], an_int=-2, a_float=0.25, a_text="plain", a_tensor=TABLE,
                   ints=(1, 1 << 40), floats=(0.5, -1.5), texts=("one", "two"))], {"y": ["N", 4]}),
    "wrong": ([node("Blend", "Blend_0", ["x"], ["y"], table=TABLE[:3])], {"y": ["N", 4]}),
    "mode": ([node("Blend", "Blend_0", ["x"], ["y"], mode="softly", table=TABLE)], {"y": ["N", 4]}),
}


def main():
    kind, path = sys.argv[1:]
    nodes, outputs = KINDS[kind]
    graph = b"".join(field(1, n) for n in nodes) + field(2, "custom")
    graph += field(5, tensor([7.5, 8.5]) + field(8, "c"))
    graph += field(11, port("x", ["N", 4])) + (field(11, port("b", [4])) if kind == "bias" else b"")
    graph += b"".join(field(12, port(name, ["M" if d is None else d for d in dims])) for name, dims in outputs.items())
    model = field(1, 8) + field(7, graph)
    for domain, version in {"": 17, "com.acme": 3, "org.other": 1}.items():
        model += field(8, field(1, domain) + field(2, version))
    with open(path, "wb") as out:
        out.write(model)


if __name__ == "__main__":
    main()
