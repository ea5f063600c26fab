#!/usr/bin/env python3
"""Writes a model of examples/llm as a GGUF file in Q4_0, so that llama.cpp multiplies by the integers of the ONNX file.

usage: gguf_model.py ONNX GGUF --size 0.1b|0.5b|tiny

The ONNX file is read back, since its integers and scales are those that the others run: what is compared is how fast the
same model is, not whose rounding is better. Three things differ. Scales are rounded to f16, the only kind that a block of
Q4_0 has. Within a block the 32 integers have other places: here neighbours share a byte, there those 16 apart do. Rows of q
and k are in another order, because llama.cpp turns neighbours within a head by an angle, GroupQueryAttention those half a
head apart; its own converter moves them so. Norms and the table of embeddings stay f32. There is no vocabulary: tokens are
numbers.

Needs the packages of examples/llm/requirements.txt and of requirements.txt beside this file.
"""
import argparse
import pathlib
import sys

import gguf
import numpy as np
import onnx
from onnx import numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/llm"))
from make_model import EPSILON, ROTARY_BASE, SIZES  # noqa: E402

BLOCK = 32
Q4_0 = gguf.GGMLQuantizationType.Q4_0
PRODUCTS = {"attn_q": "attention.q", "attn_k": "attention.k", "attn_v": "attention.v", "attn_output": "attention.o",
            "ffn_gate": "mlp.gate", "ffn_up": "mlp.up", "ffn_down": "mlp.down"}
NORMS = {"attn_norm": "norm1", "ffn_norm": "norm2"}


def rows_of(weights, scales):
    """The rows of a product as bytes of Q4_0 blocks: a scale, then 16 bytes of integers around 8, as MatMulNBits has them."""
    columns, blocks, _ = weights.shape
    integers = np.stack([weights & 15, weights >> 4], axis=-1).reshape(columns, blocks, BLOCK)
    packed = integers[..., :BLOCK // 2] | integers[..., BLOCK // 2:] << 4
    halves = scales.reshape(columns, blocks, 1).astype("<f2").view(np.uint8)
    return np.concatenate([halves, packed], axis=-1).reshape(columns, -1)


def neighbours(rows, heads):
    """The rows of q or k, in whose heads the value half a head on becomes the next one."""
    return rows.reshape(heads, 2, len(rows) // heads // 2, -1).swapaxes(1, 2).reshape(rows.shape)


def describe(writer, shape, capacity):
    """What llama.cpp has to know of the model besides its tensors."""
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_0)
    writer.add_vocab_size(shape.vocabulary)
    writer.add_context_length(capacity)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.groups)
    writer.add_rope_dimension_count(shape.head)
    writer.add_rope_freq_base(ROTARY_BASE)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_tokenizer_model("no_vocab")


def add_product(writer, name, constants, source, heads=None):
    rows = rows_of(constants[source + ".weight"], constants[source + ".scale"])
    if heads:
        rows = neighbours(rows, heads)
    writer.add_tensor(name + ".weight", rows, raw_dtype=Q4_0)


def add_layer(writer, shape, constants, layer):
    turned = {"attn_q": shape.heads, "attn_k": shape.groups}
    for name, source in NORMS.items():
        writer.add_tensor(f"blk.{layer}.{name}.weight", constants[f"layer{layer}.{source}.scale"])
    for name, source in PRODUCTS.items():
        add_product(writer, f"blk.{layer}.{name}", constants, f"layer{layer}.{source}", turned.get(name))


def write(source, path, shape):
    graph = onnx.load(source).graph
    constants = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    writer = gguf.GGUFWriter(path, "llama")
    describe(writer, shape, capacity=len(constants["cosine"]))
    writer.add_tensor("token_embd.weight", constants["embedding"])
    for layer in range(shape.layers):
        add_layer(writer, shape, constants, layer)
    writer.add_tensor("output_norm.weight", constants["norm.scale"])
    add_product(writer, "output", constants, "logits")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("onnx")
    parser.add_argument("gguf")
    parser.add_argument("--size", choices=SIZES, required=True)
    args = parser.parse_args()
    write(args.onnx, args.gguf, SIZES[args.size])


if __name__ == "__main__":
    main()
