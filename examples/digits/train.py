#!/usr/bin/env python3
"""Trains the digits example and writes digits.onnx and the images and labels beside itself.

Data: scikit-learn's copy of the UCI optical digits, 1,797 images of 8x8 pixels, split once with a fixed seed
into 1,437 images to train on and 360 that no step of the training sees. The network, its schedule and the
seeds are fixed; nothing is chosen by looking at the 360. Versions: requirements.txt.
"""
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

HERE = pathlib.Path(__file__).resolve().parent
SEED = 0
TEST_IMAGES = 360
CHANNELS = (20, 32, 64)
CLASSES = 10
EPOCHS = 60
BATCH = 64
PEAK_RATE = 4e-3
WEIGHT_DECAY = 1e-2
EPSILON = 1e-5  # of the batch normalization
MOMENTUM = 0.9  # of its running statistics


def load_split():
    """Images as f32[n,1,8,8] in 0..1, labels as i64[n]; classes are equally frequent in both parts."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[:, None, :, :]
    labels = digits.target.astype(np.int64)
    return train_test_split(images, labels, test_size=TEST_IMAGES, random_state=SEED, stratify=labels)


def init_parameters(rng):
    c1, c2, c3 = CHANNELS

    def conv(cin, cout):
        return {
            "w": rng.normal(0, np.sqrt(2 / (9 * cin)), (cout, cin, 3, 3)).astype(np.float32),
            "b": np.zeros(cout, np.float32),
        }

    def norm(c):
        return {"scale": np.ones(c, np.float32), "bias": np.zeros(c, np.float32)}

    flat = c3 * 4 * 4
    params = {
        "conv0": conv(1, c1),
        "bn1": norm(c1),
        "conv3": conv(c1, c2),
        "bn4": norm(c2),
        "conv7": conv(c2, c3),
        "gemm10": {
            "w": rng.normal(0, np.sqrt(1 / flat), (flat, CLASSES)).astype(np.float32),
            "b": np.zeros(CLASSES, np.float32),
        },
    }
    stats = {
        name: {"mean": np.zeros(c, np.float32), "var": np.ones(c, np.float32)}
        for name, c in (("bn1", c1), ("bn4", c2))
    }
    return params, stats


def conv2d(p, x):
    y = jax.lax.conv_general_dilated(
        x, p["w"], (1, 1), ((1, 1), (1, 1)), dimension_numbers=("NCHW", "OIHW", "NCHW")
    )
    return y + p["b"][None, :, None, None]


def batch_norm(p, running, x, training):
    if training:
        mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
        running = {
            "mean": MOMENTUM * running["mean"] + (1 - MOMENTUM) * mean,
            "var": MOMENTUM * running["var"] + (1 - MOMENTUM) * var,
        }
    else:
        mean, var = running["mean"], running["var"]
    scale = p["scale"] / jnp.sqrt(var + EPSILON)
    y = (x - mean[None, :, None, None]) * scale[None, :, None, None]
    return y + p["bias"][None, :, None, None], running


def forward(params, stats, x, training):
    new_stats = {}
    for conv_name, bn_name in (("conv0", "bn1"), ("conv3", "bn4")):
        x = conv2d(params[conv_name], x)
        x, new_stats[bn_name] = batch_norm(params[bn_name], stats[bn_name], x, training)
        x = jax.nn.relu(x)
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    x = jax.nn.relu(conv2d(params["conv7"], x))
    x = x.reshape(x.shape[0], -1)
    return x @ params["gemm10"]["w"] + params["gemm10"]["b"], new_stats


def shifted(images, rng):
    """The same images, each moved by at most one pixel in each direction, zeros moved in."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    out = np.empty_like(images)
    for i, (dy, dx) in enumerate(rng.integers(0, 3, (len(images), 2))):
        out[i] = padded[i, :, dy : dy + 8, dx : dx + 8]
    return out


def train(images, labels):
    rng = np.random.default_rng(SEED)
    params, stats = init_parameters(rng)
    first = jax.tree.map(jnp.zeros_like, params)
    second = jax.tree.map(jnp.zeros_like, params)

    @jax.jit
    def step(params, stats, first, second, t, rate, x, y):
        """One step of Adam with decoupled weight decay on everything of rank two and more."""

        def loss(params):
            scores, new_stats = forward(params, stats, x, True)
            picked = jnp.take_along_axis(jax.nn.log_softmax(scores), y[:, None], axis=1)
            return -picked.mean(), new_stats

        (value, stats_out), grads = jax.value_and_grad(loss, has_aux=True)(params)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, grads)

        def update(p, m, v):
            move = (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
            return p - rate * (move + (WEIGHT_DECAY * p if p.ndim > 1 else 0))

        return jax.tree.map(update, params, first, second), stats_out, first, second, value

    batches = len(images) // BATCH
    total = EPOCHS * batches
    t = 0
    for epoch in range(EPOCHS):
        order = rng.permutation(len(images))
        moved = shifted(images, rng)
        for i in range(batches):
            pick = order[i * BATCH : (i + 1) * BATCH]
            rate = PEAK_RATE * 0.5 * (1 + np.cos(np.pi * t / total))
            t += 1
            params, stats, first, second, value = step(
                params, stats, first, second, float(t), rate, moved[pick], labels[pick]
            )
        if (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1:3}  loss {float(value):.4f}", flush=True)
    return params, stats


def export(params, stats, path):
    """Writes the network node by node; the batch normalizations stay nodes of their own."""
    nodes, tensors = [], []

    def tensor(name, values):
        tensors.append(numpy_helper.from_array(np.asarray(values, np.float32), name))
        return name

    def node(op, inputs, output=None, **attributes):
        name = f"{op}_{len(nodes)}"
        output = output or f"{name}_out"
        nodes.append(helper.make_node(op, inputs, [output], name=name, **attributes))
        return output

    def conv(x, key):
        name = f"Conv_{len(nodes)}"
        p = params[key]
        inputs = [x, tensor(f"{name}_weight", p["w"]), tensor(f"{name}_bias", p["b"])]
        return node("Conv", inputs, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1])

    def norm(x, key):
        name = f"BatchNormalization_{len(nodes)}"
        p, s = params[key], stats[key]
        values = (("scale", p["scale"]), ("bias", p["bias"]), ("mean", s["mean"]), ("var", s["var"]))
        inputs = [x] + [tensor(f"{name}_{what}", v) for what, v in values]
        return node("BatchNormalization", inputs, epsilon=EPSILON)

    x = "images"
    for conv_key, bn_key in (("conv0", "bn1"), ("conv3", "bn4")):
        x = node("Relu", [norm(conv(x, conv_key), bn_key)])
    x = node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = node("Relu", [conv(x, "conv7")])
    x = node("Flatten", [x], axis=1)
    name, p = f"Gemm_{len(nodes)}", params["gemm10"]
    node("Gemm", [x, tensor(f"{name}_weight", p["w"]), tensor(f"{name}_bias", p["b"])], output="scores")

    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", CLASSES])],
        tensors,
        doc_string="Scores of the digits 0 to 9 for 8x8 grey images scaled to 0..1.",
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.producer_name = "candela examples/digits/train.py"
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    return len(nodes), sum(int(np.prod(t.dims)) for t in tensors)


def main():
    train_images, test_images, train_labels, test_labels = load_split()
    params, stats = train(train_images, train_labels)
    scores, _ = forward(params, stats, test_images, False)
    hits = int((np.asarray(scores).argmax(1) == test_labels).sum())
    nodes, parameters = export(params, stats, HERE / "digits.onnx")
    np.save(HERE / "test_images.npy", np.ascontiguousarray(test_images))
    np.save(HERE / "test_labels.npy", test_labels)
    np.save(HERE / "train_images.npy", np.round(train_images * 16).astype(np.uint8))
    np.save(HERE / "train_labels.npy", train_labels)
    print(f"digits.onnx  {nodes} nodes, {parameters} parameters")
    print(f"accuracy  {100 * hits / len(test_labels):.2f} %  ({hits} of {len(test_labels)})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
