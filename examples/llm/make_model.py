#!/usr/bin/env python3
"""Writes a language model of Llama's shape with seeded weights: what it says means nothing, what it costs is real.

usage: make_model.py FILE [--size 0.1b|0.5b|tiny] [--layers N] [--capacity N] [--block N] [--accuracy-level N] [--seed N]

int4 weights in blocks (MatMulNBits), grouped heads with rotary places (GroupQueryAttention), RMSNorm, a gated feed-forward
part: the operators by which ONNX Runtime's own exporter writes such models. The model ends in ArgMax. Its caches have one
size, `capacity` places; what they hold is data:

  ids          i64 [1, tokens]     the prompt, then the token before
  seqlens_k    i32 [1]             places that are filled with these tokens, less 1
  past_k_I/past_v_I  f32 [1, groups, capacity, head]
  next_id      i64 [1, 1]          of the last token
  next_seqlens i32 [1]             seqlens_k + 1
  present_k_I/present_v_I          the caches with these tokens
  logits       f32 [1, vocabulary] of the last token

Needs the packages of requirements.txt. The same seed gives the same file.
"""
import argparse
import dataclasses
import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROTARY_BASE = 10000.0
EPSILON = 1e-5


@dataclasses.dataclass(frozen=True)
class Shape:
    hidden: int
    layers: int
    heads: int
    groups: int  # heads of keys and values
    feed_forward: int
    vocabulary: int

    @property
    def head(self):
        return self.hidden // self.heads


SIZES = {
    "tiny": Shape(hidden=64, layers=2, heads=4, groups=2, feed_forward=160, vocabulary=256),
    "0.1b": Shape(hidden=768, layers=12, heads=12, groups=4, feed_forward=2048, vocabulary=32000),
    "0.5b": Shape(hidden=1024, layers=24, heads=16, groups=4, feed_forward=5120, vocabulary=32000),
}


class Writer:
    def __init__(self, shape, args):
        self.shape, self.args = shape, args
        self.random = np.random.default_rng(args.seed)
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, op, operands, name, outputs=None, domain="", **attributes):
        outputs = outputs or [name]
        self.nodes.append(helper.make_node(op, operands, outputs, name=name, domain=domain, **attributes))
        return outputs[0]

    def product(self, x, name, columns, depth):
        """x . weights of 4 bits, which keep the size of what they multiply."""
        blocks = depth // self.args.block
        halves = self.random.integers(1, 16, (2, columns, blocks, self.args.block // 2), dtype=np.uint8)  # -7 .. 7 around 8
        weights = halves[0] | halves[1] << 4
        spread = 1 / (4.3 * math.sqrt(depth))  # 4.3: their standard deviation
        scales = (self.random.uniform(0.8, 1.2, columns * blocks) * spread).astype(np.float32)
        return self.node("MatMulNBits", [x, self.constant(name + ".weight", weights),
                                         self.constant(name + ".scale", scales)], name, domain="com.microsoft",
                         K=depth, N=columns, bits=4, block_size=self.args.block,
                         accuracy_level=self.args.accuracy_level)

    def norm(self, x, name):
        scale = self.random.uniform(0.9, 1.1, self.shape.hidden).astype(np.float32)
        return self.node("SimplifiedLayerNormalization", [x, self.constant(name + ".scale", scale)], name,
                         axis=-1, epsilon=EPSILON, stash_type=1)

    def attention(self, x, layer):
        shape, name = self.shape, f"layer{layer}.attention"
        width = shape.groups * shape.head
        q = self.product(x, name + ".q", shape.hidden, shape.hidden)
        k = self.product(x, name + ".k", width, shape.hidden)
        v = self.product(x, name + ".v", width, shape.hidden)
        past, present = [f"past_{w}_{layer}" for w in "kv"], [f"present_{w}_{layer}" for w in "kv"]
        for side, names in ((self.inputs, past), (self.outputs, present)):
            for cache in names:
                side.append(helper.make_tensor_value_info(
                    cache, TensorProto.FLOAT, [1, shape.groups, self.args.capacity, shape.head]))
        y = self.node("GroupQueryAttention", [q, k, v, *past, "seqlens_k", "total", "cosine", "sine"], name,
                      [name, *present], "com.microsoft", num_heads=shape.heads, kv_num_heads=shape.groups, do_rotary=1,
                      scale=1 / math.sqrt(shape.head))
        return self.product(y, name + ".o", shape.hidden, shape.hidden)

    def feed_forward(self, x, layer):
        shape, name = self.shape, f"layer{layer}.mlp"
        gate = self.product(x, name + ".gate", shape.feed_forward, shape.hidden)
        up = self.product(x, name + ".up", shape.feed_forward, shape.hidden)
        gated = self.node("Mul", [gate, self.node("Sigmoid", [gate], name + ".sigmoid")], name + ".silu")
        return self.product(self.node("Mul", [gated, up], name + ".gated"), name + ".down", shape.hidden, shape.feed_forward)

    def write(self):
        shape, args = self.shape, self.args
        self.inputs.append(helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "tokens"]))
        self.inputs.append(helper.make_tensor_value_info("seqlens_k", TensorProto.INT32, [1]))
        self.outputs.append(helper.make_tensor_value_info("next_id", TensorProto.INT64, [1, 1]))
        self.outputs.append(helper.make_tensor_value_info("next_seqlens", TensorProto.INT32, [1]))
        self.constant("total", np.array(args.capacity, np.int32))
        angles = np.outer(np.arange(args.capacity), ROTARY_BASE ** (-np.arange(0, shape.head, 2) / shape.head))
        self.constant("cosine", np.cos(angles).astype(np.float32))
        self.constant("sine", np.sin(angles).astype(np.float32))
        table = self.random.standard_normal((shape.vocabulary, shape.hidden), dtype=np.float32)
        x = self.node("Gather", [self.constant("embedding", table), "ids"], "embed")
        for layer in range(args.layers or shape.layers):
            x = self.node("Add", [x, self.attention(self.norm(x, f"layer{layer}.norm1"), layer)], f"layer{layer}.sum1")
            x = self.node("Add", [x, self.feed_forward(self.norm(x, f"layer{layer}.norm2"), layer)], f"layer{layer}.sum2")
        last = self.node("Gather", [x, self.constant("last", np.array(-1, np.int64))], "last_token", axis=1)
        logits = self.product(self.norm(last, "norm"), "logits", shape.vocabulary, shape.hidden)
        self.outputs.append(helper.make_tensor_value_info(logits, TensorProto.FLOAT, [1, shape.vocabulary]))
        self.node("ArgMax", [logits], "next_id", axis=-1, keepdims=1)
        self.node("Add", ["seqlens_k", self.constant("one", np.array([1], np.int32))], "next_seqlens")
        graph = helper.make_graph(self.nodes, "llm", self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="candela-examples"), args.file)
        weights = sum(math.prod(c.dims) * 2 for c in self.constants if c.name.endswith(".weight"))
        print(f"{args.file}: {(weights + table.size) / 1e9:.2f} billion weights")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--layers", type=int, help="fewer than the size has")
    parser.add_argument("--capacity", type=int, default=512, help="places of the caches (512)")
    parser.add_argument("--block", type=int, default=32, help="weights that share a scale (32)")
    parser.add_argument("--accuracy-level", type=int, default=4, help="of MatMulNBits: 4 rounds activations to int8 (4)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    Writer(SIZES[args.size], args).write()


if __name__ == "__main__":
    main()
