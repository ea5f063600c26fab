"""Whole networks of JAX, from a seed: a perceptron, a convolutional network with batch norms, a block of a transformer, and a
recurrent network that scans. NETWORKS[name] is what is traced, and its arguments; weights are constants of the text."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


class Weights:
    """Arrays of one seed, drawn one after the other."""

    def __init__(self, seed):
        self.source = np.random.default_rng(seed)

    def __call__(self, *shape):
        fan_in = max(1, int(np.prod(shape[:-1])))
        return (self.source.standard_normal(shape) / np.sqrt(fan_in)).astype(np.float32)

    def positive(self, *shape):
        return self.source.uniform(0.5, 2, shape).astype(np.float32)


def perceptron():
    weights = Weights(1)
    layers = [(weights(a, b), weights(b)) for a, b in ((64, 128), (128, 96), (96, 10))]

    def network(x):
        for i, (w, b) in enumerate(layers):
            x = x @ w + b
            x = jax.nn.relu(x) if i + 1 < len(layers) else jax.nn.log_softmax(x)
        return x
    return network, (Weights(2)(4, 64),)


def convolutional():
    weights = Weights(3)

    def norm(channels):
        return weights.positive(channels), weights(channels), weights(channels), weights.positive(channels)

    first, depthwise, pointwise, last = weights(3, 3, 3, 16), weights(3, 3, 1, 16), weights(1, 1, 16, 32), weights(32, 10)
    norms = [norm(16), norm(16), norm(32)]

    def normed(x, i):
        scale, offset, mean, variance = norms[i]
        return (x - mean) * lax.rsqrt(variance + 1e-3) * scale + offset

    def conv(x, w, stride=1, groups=1):
        return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
                                        feature_group_count=groups)

    def network(x):
        x = jax.nn.relu(normed(conv(x, first, 2), 0))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = jax.nn.relu6(normed(conv(x, depthwise, 1, 16), 1))
        x = jax.nn.silu(normed(conv(x, pointwise), 2))
        x = lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") / 9
        return {"logits": x.mean((1, 2)) @ last, "features": x}
    return network, (Weights(4)(2, 32, 32, 3) * 5,)


def transformer():
    weights = Weights(5)
    tokens, width, heads = 16, 32, 4
    table, places = weights(50, width) * 5, weights(tokens, width)
    q, k, v, o = (weights(width, width) for _ in range(4))
    wide, narrow, scale, offset = weights(width, 64), weights(64, width), weights.positive(width), weights(width)

    def norm(x):
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * scale + offset

    def split(x):
        return x.reshape(*x.shape[:-1], heads, width // heads)

    def network(ids):
        x = jnp.asarray(table)[ids] + places
        y = norm(x)
        scores = jnp.einsum("bqhd,bkhd->bhqk", split(y @ q), split(y @ k)) / np.sqrt(width // heads)
        scores = jnp.where(jnp.tril(jnp.ones((tokens, tokens), bool)), scores, -1e9)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), split(y @ v))
        x = x + mixed.reshape(x.shape) @ o
        x = x + jax.nn.gelu(norm(x) @ wide, approximate=False) @ narrow
        logits = norm(x) @ table.T
        return logits, jnp.argmax(logits, -1)
    return network, (np.random.default_rng(6).integers(0, 50, (2, tokens)).astype(np.int32),)


def recurrent():
    weights = Weights(7)
    size = 24
    inside, outside, bias, readout = weights(12, 3 * size), weights(size, 3 * size), weights(3 * size), weights(size, 5)

    def cell(h, x):
        a, b = x @ inside + bias, h @ outside
        reset = jax.nn.sigmoid(a[:, :size] + b[:, :size])
        update = jax.nn.sigmoid(a[:, size:2 * size] + b[:, size:2 * size])
        new = jnp.tanh(a[:, 2 * size:] + reset * b[:, 2 * size:])
        h = update * h + (1 - update) * new
        return h, h @ readout

    def network(x):
        return lax.scan(cell, jnp.zeros((x.shape[1], size)), x)
    return network, (Weights(8)(20, 3, 12) * 3,)


NETWORKS = {build.__name__: build() for build in (perceptron, convolutional, transformer, recurrent)}
