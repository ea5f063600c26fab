"""TensorFlow Lite models of one operator, written as text that flatc makes files of. Standard library only.

A tensor is a Tensor; numbers that a test gives no values for come from its name: the same ones every time.
"""
import dataclasses
import json
import random
import struct
import subprocess
import zlib
from pathlib import Path

FORMATS = {"f32": "f", "f16": "e", "f64": "d", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I",
           "i64": "q", "u64": "Q", "bool": "?"}
TYPES = {"f32": "FLOAT32", "f16": "FLOAT16", "f64": "FLOAT64", "i4": "INT4", "i8": "INT8", "u8": "UINT8", "i16": "INT16",
         "u16": "UINT16", "i32": "INT32", "u32": "UINT32", "i64": "INT64", "u64": "UINT64", "bool": "BOOL"}
RANGES = {"i4": (-8, 7), "i8": (-128, 127), "u8": (0, 255), "i16": (-2000, 2000), "i32": (-50, 50), "i64": (-50, 50),
          "u32": (0, 50), "u16": (0, 50), "u64": (0, 50)}


@dataclasses.dataclass
class Tensor:
    shape: tuple
    type: str = "f32"
    scale: object = None  # a number, or one for each index of dim `axis`
    zero: object = 0
    axis: int = 0
    values: list = None   # of a constant, or the input that a test gives; None: made up
    const: bool = False
    low: float = -4
    high: float = 4
    signature: tuple = None
    variable: bool = False

    def count(self):
        count = 1
        for dim in self.shape:
            count *= dim
        return count

    def fill(self, name):
        """Gives it values, if it has none."""
        if self.values is not None:
            return
        source = random.Random(zlib.crc32(name.encode()))
        if self.type == "bool":
            self.values = [source.random() < 0.5 for _ in range(self.count())]
        elif self.type[0] == "f":
            self.values = [source.randrange(int(self.low * 16), int(self.high * 16)) / 16 + 1 / 64
                           for _ in range(self.count())]
        else:
            low, high = RANGES[self.type]
            if self.low != -4 or self.high != 4:
                low, high = int(self.low), int(self.high)
            self.values = [source.randint(low, high) for _ in range(self.count())]

    def data(self):
        if self.type == "i4":
            pairs = self.values + [0] * (len(self.values) % 2)
            return bytes((low & 15) | (high & 15) << 4 for low, high in zip(pairs[::2], pairs[1::2]))
        return struct.pack(f"<{len(self.values)}{FORMATS[self.type]}", *self.values)


@dataclasses.dataclass
class Case:
    name: str
    op: str
    inputs: list          # of Tensor; None: left out
    outputs: list         # of Tensor, whose shapes expected.json knows
    options: tuple = None  # ("AddOptions", {...})
    steps: int = 0        # by how much integers may differ, in steps of the result
    tolerance: float = 1e-5
    custom: tuple = None   # (code, bytes)
    version: int = 1
    optimized: bool = False  # the answer is that of LiteRT's optimized kernel, not of its reference kernel

    def fed(self):
        """Inputs that a run gives, in order."""
        return [tensor for tensor in self.inputs if tensor is not None and not tensor.const and not tensor.variable]


def flexbuffer(entries):
    """A map of whole numbers and floats of 32 bits, by texts, as custom operators have their attributes."""
    data, at = bytearray(), {}
    for key in sorted(entries):
        at[key] = len(data)
        data += key.encode() + b"\0"
    data += bytes(-len(data) % 4)
    keys = len(data) + 4  # of the vector of keys, behind its length
    data += struct.pack("<I", len(entries))
    for key in sorted(entries):
        data += struct.pack("<I", len(data) - at[key])
    data += struct.pack("<III", len(data) - keys, 4, len(entries))
    values = len(data)
    for key in sorted(entries):
        value = entries[key]
        data += struct.pack("<f", value) if isinstance(value, float) else struct.pack("<i", value)
    wide, whole, real, mapped = 2, 1, 3, 9  # 4 bytes each; types of the format
    data += bytes((real if isinstance(entries[key], float) else whole) << 2 | wide for key in sorted(entries))
    data += bytes(-len(data) % 4)
    root = len(data)
    return bytes(data + struct.pack("<I", root - values) + bytes((mapped << 2 | wide, 4)))


def tensor_text(tensor, name, buffer):
    text = {"shape": list(tensor.shape), "type": TYPES[tensor.type], "buffer": buffer, "name": name}
    if tensor.signature:
        text["shape_signature"] = list(tensor.signature)
    if tensor.variable:
        text["is_variable"] = True
    if tensor.scale is not None:
        scales = tensor.scale if isinstance(tensor.scale, list) else [tensor.scale]
        zeros = tensor.zero if isinstance(tensor.zero, list) else [tensor.zero] * len(scales)
        text["quantization"] = {"scale": scales, "zero_point": zeros, "quantized_dimension": tensor.axis}
    return text


def model_text(case):
    """The model as flatc reads it."""
    tensors, buffers, inputs, fed = [], [{}], [], []
    for i, tensor in enumerate(case.inputs):
        if tensor is None:
            inputs.append(-1)
            continue
        tensor.fill(f"{case.name}/{i}")
        inputs.append(len(tensors))
        if not tensor.const and not tensor.variable:
            fed.append(len(tensors))
        if tensor.const:
            buffers.append({"data": list(tensor.data())})
        tensors.append(tensor_text(tensor, f"in{i}", len(buffers) - 1 if tensor.const else 0))
    outputs = []
    for i, tensor in enumerate(case.outputs):
        outputs.append(len(tensors))
        tensors.append(tensor_text(tensor, f"out{i}", 0))
    operator = {"opcode_index": 0, "inputs": inputs, "outputs": outputs}
    if case.options:
        operator["builtin_options_type"], operator["builtin_options"] = case.options
    code = {"builtin_code": case.op, "version": case.version}
    if case.custom:
        code["custom_code"], operator["custom_options"] = case.custom[0], list(case.custom[1])
    number = CODES[case.op]
    code["deprecated_builtin_code"] = min(number, 127)
    return {"version": 3, "operator_codes": [code], "buffers": buffers,
            "subgraphs": [{"tensors": tensors, "inputs": fed, "outputs": outputs, "operators": [operator]}]}


def read_codes(schema):
    """BuiltinOperator of the schema."""
    body = schema.read_text().split("enum BuiltinOperator", 1)[1].split("{", 1)[1].split("}", 1)[0]
    pairs = (entry.split("=") for entry in body.split(","))
    return {name.strip(): int(number) for name, number in pairs}


SCHEMA = Path(__file__).resolve().parents[2] / "core/compiler/import/tflite/schema.fbs"
CODES = read_codes(SCHEMA)


def write_models(texts, folder, flatc="flatc"):
    """Files named NAME.tflite of texts by name."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in texts.items():
        paths.append(folder / f"{name}.json")
        paths[-1].write_text(json.dumps(text))
    subprocess.run([flatc, "--binary", "-o", str(folder), str(SCHEMA), *map(str, paths)], check=True)


def write_npy(path, tensor_type, shape, values):
    kinds = {"f": "f", "i": "i", "u": "u", "b": "b"}
    size = struct.calcsize(FORMATS[tensor_type])
    order = "|" if size == 1 else "<"
    dims = "(" + "".join(f"{dim}, " for dim in shape) + ")"
    head = f"{{'descr': '{order}{kinds[tensor_type[0]]}{size}', 'fortran_order': False, 'shape': {dims}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    body = struct.pack(f"<{len(values)}{FORMATS[tensor_type]}", *values)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + body)
