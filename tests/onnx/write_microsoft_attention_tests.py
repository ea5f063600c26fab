#!/usr/bin/env python3
"""Writes node tests of the com.microsoft operators of transformers as folders, with ONNX Runtime's answers.

usage: write_microsoft_attention_tests.py DIR

Each case becomes DIR/<name>/model.onnx with test_data_set_0/{input,output}_<i>.pb, for `candela conform --tier onnx
--onnx-data DIR`. Every case draws its numbers from a generator that its name seeds. Needs the packages onnx and
onnxruntime. Exit status: 0 written, 1 ONNX Runtime refused a case, 2 bad usage.
"""
import itertools
import pathlib
import sys
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

MICROSOFT = "com.microsoft"


class Case:
    """One node on inputs x0, x1, ..; those in `constants` are initializers."""

    def __init__(self, op, label):
        self.op = op
        self.name = f"test_{op}_{label}".lower()
        self.random = np.random.default_rng(zlib.crc32(self.name.encode()))
        self.inputs, self.constants = [], set()

    def floats(self, *shape, dtype=np.float32):
        return self.random.standard_normal(shape).astype(dtype)

    def add(self, *values):
        self.inputs += values
        return self

    def constant(self, *values):
        for value in values:
            self.constants.add(len(self.inputs))
            self.inputs.append(value)
        return self

    def model(self, types, domain, attributes):
        names = [f"x{i}" if value is not None else "" for i, value in enumerate(self.inputs)]
        while names and not names[-1]:
            names.pop()
        node = helper.make_node(self.op, names, [f"y{i}" if t else "" for i, t in enumerate(types)], domain=domain,
                                **attributes)
        inputs, initializers = [], []
        for i, (name, value) in enumerate(zip(names, self.inputs)):
            if value is None:
                continue
            if i in self.constants:
                initializers.append(numpy_helper.from_array(value, name))
            else:
                kind = helper.np_dtype_to_tensor_dtype(value.dtype)
                inputs.append(helper.make_tensor_value_info(name, kind, value.shape))
        outputs = [helper.make_tensor_value_info(f"y{i}", t, None) for i, t in enumerate(types) if t]
        graph = helper.make_graph([node], self.name, inputs, outputs, initializers)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def write(self, target, types, domain=MICROSOFT, **attributes):
        """`types`: of the outputs, 0 for one that is not asked for."""
        model = self.model(types, domain, attributes)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        feeds = {f"x{i}": value for i, value in enumerate(self.inputs) if value is not None and i not in self.constants}
        results = session.run(None, feeds)
        data = target / self.name / "test_data_set_0"
        data.mkdir(parents=True)
        (target / self.name / "model.onnx").write_bytes(model.SerializeToString())
        for what, values, infos in (("input", feeds.values(), model.graph.input),
                                    ("output", results, model.graph.output)):
            for i, (value, info) in enumerate(zip(values, infos)):
                (data / f"{what}_{i}.pb").write_bytes(numpy_helper.from_array(value, info.name).SerializeToString())


F32, F16, I32 = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.INT32


def ints(*values):
    return np.array(values, np.int32)


def skip_norms(target):
    for op, beta in (("SkipLayerNormalization", True), ("SkipSimplifiedLayerNormalization", False)):
        shapes = {"rank3": ((2, 3, 8), (2, 3, 8)), "rank2": ((5, 8), (5, 8)), "one_row": ((1, 1, 6), (1, 1, 6)),
                  "skip_of_one_batch": ((3, 2, 8), (1, 2, 8)), "skip_of_rank2": ((3, 2, 8), (2, 8))}
        for label, (shape, skip) in shapes.items():
            for bias in (False, True):
                case = Case(op, f"{label}{'_bias' if bias else ''}")
                width = shape[-1]
                case.add(case.floats(*shape), case.floats(*skip), case.floats(width))
                if beta:
                    case.add(case.floats(width) if not bias or label == "rank3" else None)
                if bias:
                    case.add(case.floats(width))
                case.write(target, [F32, 0, 0, F32] if bias else [F32], epsilon=1e-5 if bias else 1e-3)
        case = Case(op, "f16")
        case.add(*(case.floats(*s, dtype=np.float16) for s in ((2, 3, 16), (2, 3, 16), (16,))))
        case.write(target, [F16, 0, 0, F16])
    for axis in (-1, 1):
        case = Case("SimplifiedLayerNormalization", f"axis_{axis}".replace("-", "minus_"))
        case.add(case.floats(2, 3, 8), case.floats(*((8,) if axis == -1 else (3, 8))))
        case.write(target, [F32], domain="", axis=axis, epsilon=1e-4)


def embeddings(target):
    for label, segments, mask, places in itertools.product(("",), (0, 1), (0, 1), (0, 1, 2)):
        case = Case("EmbedLayerNormalization", f"segments{segments}_mask{mask}_places{places}")
        words = case.random.integers(0, 9, (2, 4)).astype(np.int32)
        case.add(words, case.random.integers(0, 2, (2, 4)).astype(np.int32) if segments else None, case.floats(9, 8),
                 case.floats(6, 8), case.floats(2, 8) if segments else None, case.floats(8), case.floats(8),
                 np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32) if mask else None)
        if places:
            case.add(case.random.integers(0, 6, (2 if places == 1 else 1, 4)).astype(np.int32))
        case.write(target, [F32, I32, F32], epsilon=1e-6)


def rotary(target):
    for interleaved, at, form in itertools.product((0, 1), ("first", "each"), ("rank3", "rank4", "part")):
        case = Case("RotaryEmbedding", f"{form}_{at}{'_interleaved' if interleaved else ''}")
        size = 4 if form == "part" else 8
        x = case.floats(2, 3, 5, 8) if form == "rank4" else case.floats(2, 5, 24)
        places = np.array([2], np.int64) if at == "first" else case.random.integers(0, 12, (2, 5))
        case.add(x, places, case.floats(12, size // 2), case.floats(12, size // 2))
        more = {"num_heads": 3, "rotary_embedding_dim": 4} if form == "part" else {}
        case.write(target, [F32], interleaved=interleaved, **more)


def multi_head(target):
    batch, queries, heads, size = 2, 3, 2, 4
    width = heads * size

    def case_of(label, keys=queries, value_size=size, dtype=np.float32):
        case = Case("MultiHeadAttention", label)
        return case.add(case.floats(batch, queries, width, dtype=dtype), case.floats(batch, keys, width, dtype=dtype),
                        case.floats(batch, keys, heads * value_size, dtype=dtype))

    case_of("self").write(target, [F32], num_heads=heads)
    case_of("scores").write(target, [F32, F32, F32, F32], num_heads=heads)
    case_of("cross", keys=5).write(target, [F32], num_heads=heads)
    case_of("scale").write(target, [F32], num_heads=heads, scale=0.3)
    case_of("wide_values", value_size=6).write(target, [F32], num_heads=heads)
    case_of("causal").write(target, [F32, 0, 0, F32], num_heads=heads, unidirectional=1)
    case_of("causal_cross", keys=5).write(target, [F32, 0, 0, F32], num_heads=heads, unidirectional=1)
    case_of("f16", dtype=np.float16).write(target, [F16], num_heads=heads)
    for label, value_size in (("bias", size), ("bias_wide_values", 6)):
        case = case_of(label, value_size=value_size)
        case.add(case.floats(2 * width + heads * value_size)).write(target, [F32, F32, F32], num_heads=heads)
    masks = {"key_ends": ints(2, 3), "keys": np.array([[1, 0, 1], [0, 1, 1]], np.int32),
             "queries_keys": np.array([[[1, 0, 1]] * 3, [[1, 1, 0], [0, 1, 1], [1, 1, 1]]], np.int32),
             "key_ends_and_starts": ints(2, 3, 0, 3, 6, 0, 2, 5)}
    for label, mask in masks.items():
        for causal in (0, 1):
            case = case_of(f"mask_{label}{'_causal' if causal else ''}")
            case.add(None, mask).write(target, [F32], num_heads=heads, unidirectional=causal, mask_filter_value=-50.0)
    for label, shape in (("full", (batch, heads, 3, 3)), ("one_head", (batch, 1, 3, 3)), ("one_batch", (1, heads, 3, 3))):
        case = case_of(f"bias_of_scores_{label}")
        case.add(None, None, case.floats(*shape)).write(target, [F32], num_heads=heads)
    for label, mask, causal in (("plain", None, 0), ("causal", None, 1), ("mask", np.array([[1] * 7, [1] * 5 + [0] * 2],
                                                                                           np.int32), 0)):
        case = case_of(f"past_{label}")
        case.add(case.floats(3 * width), mask, case.floats(1, heads, 3, 7) if causal else None,
                 case.floats(batch, heads, 4, size), case.floats(batch, heads, 4, size))
        case.write(target, [F32, F32, F32], num_heads=heads, unidirectional=causal)
    case = Case("MultiHeadAttention", "projected")
    case.add(case.floats(batch, queries, width), case.floats(batch, heads, 5, size), case.floats(batch, heads, 5, size),
             case.floats(3 * width)).write(target, [F32], num_heads=heads)
    for label, scores in (("", False), ("_scores", True)):
        case = Case("MultiHeadAttention", f"cache_of_one_size{label}")
        case.add(*(case.floats(batch, 1, width) for _ in range(3)), None, None, None,
                 *(case.floats(batch, heads, 8, size) for _ in range(2)))
        (case.constant if scores else case.add)(ints(4))
        case.write(target, [F32, F32, F32] + [F32] * scores, num_heads=heads)


def merged(target):
    batch, count, heads, size, depth = 2, 3, 2, 4, 6
    width = heads * size

    def case_of(label, value_width=width):
        case = Case("Attention", label)
        total = 2 * width + value_width
        return case.add(case.floats(batch, count, depth)).constant(case.floats(depth, total)).add(case.floats(total))

    case_of("plain").write(target, [F32, F32], num_heads=heads)
    case_of("causal").write(target, [F32], num_heads=heads, unidirectional=1)
    case_of("scale").write(target, [F32], num_heads=heads, scale=0.7)
    case_of("wide_values", 12).write(target, [F32], num_heads=heads, qkv_hidden_sizes=[8, 8, 12])
    masks = {"ends": ints(2, 3), "ends_and_starts": ints(3, 3, 1, 0), "keys": np.array([[1, 0, 1], [0, 1, 1]], np.int32),
             "queries_keys": np.array([[[1, 0, 1]] * 3, [[1, 1, 0], [0, 1, 1], [1, 1, 1]]], np.int32)}
    for label, mask in masks.items():
        for causal in (0, 1):
            case = case_of(f"mask_{label}{'_causal' if causal else ''}")
            case.add(mask).write(target, [F32], num_heads=heads, unidirectional=causal, mask_filter_value=-50.0)
    case = case_of("bias_of_scores")
    case.add(None, None, case.floats(1, heads, 3, 3)).write(target, [F32], num_heads=heads)
    for causal in (0, 1):
        case = case_of(f"past{'_causal' if causal else ''}")
        case.add(None, case.floats(2, batch, heads, 4, size))
        case.write(target, [F32, F32], num_heads=heads, unidirectional=causal)


def grouped(target):
    heads, groups, size = 4, 2, 16

    def past_of(case, batch, lengths, capacity, dtype=np.float32):
        """A cache that holds nothing behind each batch's keys, as ONNX Runtime leaves it."""
        for _ in range(2):
            cache = case.floats(batch, groups, capacity, size, dtype=dtype)
            for b, length in enumerate(lengths):
                cache[b, :, length:] = 0
            case.add(cache)

    def case_of(label, batch=2, queries=3, past=None, capacity=None, packed=False, total=None, dtype=np.float32):
        """`past`: how many keys each batch has; the cache holds `capacity` of them."""
        case = Case("GroupQueryAttention", label)
        if packed:
            case.add(case.floats(batch, queries, (heads + 2 * groups) * size, dtype=dtype), None, None)
        else:
            case.add(case.floats(batch, queries, heads * size, dtype=dtype))
            case.add(*(case.floats(batch, queries, groups * size, dtype=dtype) for _ in range(2)))
        past = past or [0] * batch
        if capacity:
            past_of(case, batch, past, capacity, dtype)
        else:
            case.add(None, None)
        ends = [p + queries for p in past]
        return case.add(ints(*(e - 1 for e in ends))).constant(ints(total or max(ends)))

    def rotated(case, pairs=size // 2, dtype=np.float32):
        return case.add(case.floats(16, pairs, dtype=dtype), case.floats(16, pairs, dtype=dtype))

    base = {"num_heads": heads, "kv_num_heads": groups}
    all_outputs = [F32, F32, F32]
    for packed in (False, True):
        form = "_packed" if packed else ""
        case_of(f"prompt{form}", packed=packed).write(target, all_outputs, **base)
        case_of(f"prompt_into_cache{form}", packed=packed, capacity=9).write(target, all_outputs, **base)
        case_of(f"token{form}", queries=1, past=[5, 5], capacity=5, packed=packed).write(target, all_outputs, **base)
        case_of(f"token_ragged{form}", queries=1, past=[5, 3], capacity=5, packed=packed).write(target, all_outputs, **base)
        case_of(f"token_into_cache{form}", queries=1, past=[5, 3], capacity=9, packed=packed).write(target, all_outputs,
                                                                                                   **base)
        case_of(f"token_of_known_capacity{form}", queries=1, past=[5, 3], capacity=9, total=9, packed=packed).write(
            target, all_outputs, **base)
        case_of(f"more_tokens{form}", batch=1, past=[5], capacity=5, packed=packed).write(target, all_outputs, **base)
    for interleaved in (0, 1):
        turn = {"do_rotary": 1, "rotary_interleaved": interleaved}
        form = "_interleaved" if interleaved else ""
        rotated(case_of(f"prompt_rotary{form}")).write(target, all_outputs, **base, **turn)
        rotated(case_of(f"prompt_rotary_packed{form}", packed=True)).write(target, all_outputs, **base, **turn)
        rotated(case_of(f"token_rotary{form}", queries=1, past=[5, 3], capacity=9)).write(target, all_outputs, **base,
                                                                                         **turn)
        rotated(case_of(f"token_rotary_packed{form}", queries=1, past=[5, 5], capacity=5, packed=True)).write(
            target, all_outputs, **base, **turn)
        rotated(case_of(f"more_tokens_rotary{form}", batch=1, past=[5], capacity=8)).write(target, all_outputs, **base,
                                                                                          **turn)
        case = rotated(case_of(f"token_rotary_places{form}", queries=1, past=[5, 3], capacity=9))
        case.add(np.array([[6], [2]], np.int64)).write(target, all_outputs, **base, **turn)
        case = rotated(case_of(f"prompt_rotary_places{form}", batch=1))
        case.add(np.array([[4, 5, 6]], np.int64)).write(target, all_outputs, **base, **turn)
    for window in (1, 2, 4, 20):
        case_of(f"prompt_window_{window}", queries=6).write(target, all_outputs, **base, local_window_size=window)
        case_of(f"token_window_{window}", queries=1, past=[5, 3], capacity=9).write(target, all_outputs, **base,
                                                                                   local_window_size=window)
    case_of("softcap").write(target, all_outputs, **base, softcap=0.8)
    case_of("scale").write(target, all_outputs, **base, scale=0.25)
    case_of("both_ways").write(target, all_outputs, **base, causal=0)
    case_of("smooth").write(target, all_outputs, **base, smooth_softmax=1)
    case_of("token_smooth", queries=1, past=[5, 3], capacity=9).write(target, all_outputs, **base, smooth_softmax=1,
                                                                     softcap=2.0)
    for label, shape in (("full", (2, heads, 3, 3)), ("one_head", (2, 1, 3, 3)), ("one_batch", (1, heads, 3, 3))):
        case = case_of(f"bias_{label}")
        case.add(None, None, None, case.floats(*shape)).write(target, all_outputs, **base)
    case = case_of("sink")
    case.add(None, None, None, None, case.floats(heads)).write(target, all_outputs, **base)
    case = case_of("token_sink_bias", queries=1, past=[5, 3], capacity=9)
    case.add(None, None, None, case.floats(2, heads, 1, 6), case.floats(heads)).write(target, all_outputs, **base)
    for scores in (1, 2):
        case_of(f"scores_{scores}").write(target, all_outputs + [F32], **base, qk_output=scores)
        case_of(f"token_scores_{scores}", queries=1, past=[5, 5], capacity=9).write(
            target, all_outputs + [F32], **base, qk_output=scores, softcap=1.5)
    rotated(case_of("f16", dtype=np.float16), dtype=np.float16).write(target, [F16] * 3, **base, do_rotary=1)


def packed_weights(target):
    for bits, block, depth in itertools.product((4, 8), (16, 32, 64, 128, 256), (32, 50, 300)):
        for zero in ("none", "packed", "float") if bits == 4 else ("none", "packed"):
            rows, blocks = 6, -(-depth // block)
            case = Case("MatMulNBits", f"{bits}_bits_block_{block}_depth_{depth}_zero_{zero}")
            add = case.add if block == 64 else case.constant
            case.add(case.floats(2, 3, depth))
            add(case.random.integers(0, 256, (rows, blocks, block * bits // 8)).astype(np.uint8),
                case.floats(rows, blocks) * 0.1)
            if zero == "packed":
                add(case.random.integers(0, 256, (rows, -(-blocks * bits // 8))).astype(np.uint8))
            elif zero == "float":
                add(case.random.uniform(0, 15, (rows, blocks)).astype(np.float32))
            else:
                case.add(None)
            if block == 16:
                case.add(None)
                case.constant(case.floats(rows))
            case.write(target, [F32], bits=bits, block_size=block, N=rows, K=depth)


def table_of(case, kind, rows, depth, bits):
    """Numbers of a table as GatherBlockQuantized stores them: bytes of several, or a type of ONNX."""
    if kind == "bytes":
        return case.random.integers(0, 256, (rows, -(-depth * bits // 8))).astype(np.uint8)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    low, high = (-8, 8) if kind == onnx.TensorProto.INT4 else (0, 16)
    return case.random.integers(low, high, (rows, depth)).astype(dtype)


def gathered_tables(target):
    rows, depth = 7, 64
    places = np.array([[3, -1, 0], [6, 2, -7]], np.int64)
    kinds = {"bytes2": ("bytes", 2), "bytes4": ("bytes", 4), "bytes8": ("bytes", 8),
             "int4": (onnx.TensorProto.INT4, 4), "uint4": (onnx.TensorProto.UINT4, 4)}
    for (label, (kind, bits)), block, zero in itertools.product(kinds.items(), (16, 32), (False, True)):
        case = Case("GatherBlockQuantized", f"{label}_block_{block}{'_zero' if zero else ''}")
        case.constant(table_of(case, kind, rows, depth, bits))
        case.add(places if block == 16 else places[0].astype(np.int32))
        case.constant(case.floats(rows, depth // block))
        if zero:
            case.constant(table_of(case, kind, rows, depth // block, bits))
        case.write(target, [F32], bits=bits, block_size=block, gather_axis=0, quantize_axis=1)
    case = Case("GatherBlockQuantized", "along_the_last")
    case.constant(table_of(case, onnx.TensorProto.UINT4, 32, 6, 4)).add(np.array([5, -2, 0], np.int64))
    case.constant(case.floats(2, 6), table_of(case, onnx.TensorProto.UINT4, 2, 6, 4))
    case.write(target, [F32], bits=4, block_size=16, gather_axis=1, quantize_axis=0)
    case = Case("GatherBlockQuantized", "f16")
    case.constant(table_of(case, "bytes", rows, depth, 4)).add(places)
    case.constant(case.floats(rows, 2, dtype=np.float16)).write(target, [F16], bits=4, block_size=32)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    target = pathlib.Path(sys.argv[1])
    if target.exists() and any(target.iterdir()):
        sys.exit(f"{target}: is not empty")
    onnxruntime.set_default_logger_severity(4)
    for group in (skip_norms, embeddings, rotary, multi_head, merged, grouped, packed_weights, gathered_tables):
        group(target)
    print(f"{len(list(target.iterdir()))} cases by ONNX Runtime {onnxruntime.__version__} in {target}")


if __name__ == "__main__":
    main()
