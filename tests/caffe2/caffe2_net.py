"""Nets of Caffe2 as bytes: what core/compiler/import/caffe2/net.proto says, written field by field. Standard library only."""
import struct


def varint(value):
    value &= (1 << 64) - 1  # negative integers take ten bytes
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def field(number, content):
    """A text, bytes or a message."""
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def argument(name, value):
    """By the type of the value: an integer, a number, a text, or a list of those."""
    head = field(1, name)
    if isinstance(value, (bool, int)):
        return head + varint(3 << 3) + varint(int(value))
    if isinstance(value, float):
        return head + varint(2 << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, (str, bytes)):
        return head + field(4, value)
    if all(isinstance(item, int) for item in value):
        return head + b"".join(varint(6 << 3) + varint(item) for item in value)
    return head + b"".join(varint(5 << 3 | 5) + struct.pack("<f", item) for item in value)


def op(type, inputs, outputs, **arguments):
    content = b"".join(field(1, name) for name in inputs) + b"".join(field(2, name) for name in outputs)
    content += field(4, type)
    return content + b"".join(field(5, argument(name, value)) for name, value in arguments.items())


def net(ops, inputs=(), outputs=(), name="net"):
    content = field(1, name) + b"".join(field(2, each) for each in ops)
    return content + b"".join(field(7, each) for each in inputs) + b"".join(field(8, each) for each in outputs)


def fill(name, array):
    """The operator that makes a constant."""
    types = {"float32": "GivenTensorFill", "int32": "GivenTensorIntFill", "int64": "GivenTensorInt64Fill",
             "bool": "GivenTensorBoolFill"}
    values = [float(x) for x in array.reshape(-1)] if array.dtype == "float32" else [int(x) for x in array.reshape(-1)]
    return op(types[str(array.dtype)], [], [name], shape=list(array.shape), values=values)


def quantized_fill(name, array, scale, zero):
    """Bytes, or the integers that sums of products begin with."""
    arguments = {"shape": list(array.shape), "Y_scale": float(scale), "Y_zero_point": zero}
    if array.dtype == "uint8":
        return op("Int8GivenTensorFill", [], [name], values=array.tobytes(), **arguments)
    return op("Int8GivenIntTensorFill", [], [name], values=[int(x) for x in array.reshape(-1)], **arguments)


TYPES = {"float32": 1, "int32": 2, "uint8": 6, "bool": 5, "int64": 10}


def value_info(inputs):
    """The object of value_info.json for arrays by name."""
    return {name: [TYPES[str(array.dtype)], list(array.shape)] for name, array in inputs.items()}
