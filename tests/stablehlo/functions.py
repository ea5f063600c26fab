"""Functions of JAX: the table that the tests of StableHLO run. Needs jax.

FUNCTIONS[name] is what is traced, and its arguments: numpy arrays of fixed seeds.
"""
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

FUNCTIONS = {}
# Of halves, which a device without them does not round to between two steps (docs/reference/precision.md): how far its results are
# from those of one that does, as a share of the largest value.
HALVES = {"constants": 2.0**-10, "bf16_product": 2.0**-7}


def f32(*shape, seed=0, low=-2.0, high=2.0):
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape).astype(np.float32)


def i32(*shape, seed=0, low=-9, high=10, dtype=np.int32):
    return np.random.default_rng([seed, *shape]).integers(low, high, shape).astype(dtype)


def case(name, *arguments):
    def add(function):
        FUNCTIONS[name] = (function, arguments)
        return function
    return add


# ---- Element by element
X, Y = f32(3, 4), f32(3, 4, seed=1)
case("arithmetic", X, Y)(lambda x, y: (x + y, x - y, x * y, x / y, -x, jnp.abs(x), jnp.maximum(x, y), jnp.minimum(x, y), jnp.sign(x)))
case("rounding", X * 3)(lambda x: (jnp.floor(x), jnp.ceil(x), jnp.round(x), lax.round(x), jnp.trunc(x)))
case("halves", np.float32([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997]))(lambda x: (jnp.round(x), lax.round(x)))
case("remainders", X, Y)(lambda x, y: (jnp.mod(x, y), lax.rem(x, y), jnp.floor_divide(x, y), jnp.fmod(x, y)))
case("exponentials", X)(lambda x: (jnp.exp(x), jnp.expm1(x), jnp.log(jnp.abs(x)), jnp.log1p(jnp.abs(x)), jnp.exp2(x)))
case("tiny_exponentials", np.float32([1e-7, -1e-7, 1e-4, 0, 3e-3]))(lambda x: (jnp.expm1(x) * 1e4, jnp.log1p(x) * 1e4))
case("roots", np.abs(X) + 0.1, Y)(lambda x, y: (jnp.sqrt(x), lax.rsqrt(x), jnp.cbrt(y), jnp.power(x, y), x ** 3))
case("trigonometry", X / 3, Y)(lambda x, y: (jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.arcsin(x), jnp.arccos(x), jnp.arctan(x), jnp.arctan2(x, y)))
case("hyperbolic", X / 3)(lambda x: (jnp.sinh(x), jnp.cosh(x), jnp.tanh(x), jnp.arcsinh(x), jnp.arccosh(x + 2), jnp.arctanh(x)))
case("error_functions", X / 2.1)(lambda x: (lax.erf(x), lax.erfc(x), lax.erf_inv(x)))
case("activations", X)(lambda x: (jax.nn.relu(x), jax.nn.gelu(x), jax.nn.gelu(x, approximate=False), jax.nn.silu(x), jax.nn.softplus(x), jax.nn.elu(x), jax.nn.sigmoid(x), jax.nn.log_sigmoid(x), jax.nn.relu6(x), jax.nn.leaky_relu(x), jax.nn.hard_swish(x)))
case("softmaxes", X)(lambda x: (jax.nn.softmax(x), jax.nn.log_softmax(x, axis=0), jax.nn.logsumexp(x)))
case("clipping", X)(lambda x: (jnp.clip(x, 0, 1), jnp.clip(x, -0.5, None), lax.clamp(-1.0, x, X * 0 + 1)))
case("special_values", np.float32([np.nan, np.inf, -np.inf, 0, 1]))(lambda x: (jnp.isnan(x), jnp.isinf(x), jnp.isfinite(x), jnp.nan_to_num(x, posinf=7, neginf=-7)))
case("precision", X)(lambda x: (lax.reduce_precision(x, 5, 10), lax.reduce_precision(x, 8, 7), x.astype(jnp.bfloat16).astype(jnp.float32)))
case("comparisons", X, Y)(lambda x, y: (x < y, x <= y, x > y, x >= y, x == y, x != y, jnp.where(x > y, x, 0.0)))
case("logic", X > 0, Y > 0)(lambda x, y: (x & y, x | y, x ^ y, ~x, x == y, x < y, x.astype(jnp.float32)))

# ---- Integers
I, J = i32(3, 4), i32(3, 4, seed=2, low=1, high=5)
case("integers", I, J)(lambda x, y: (x + y, x * y, x // y, x % y, lax.div(x, y), lax.rem(x, y), jnp.abs(x), jnp.sign(x), jnp.maximum(x, y), -x, jnp.clip(x, -3, 3)))
case("bits", I, J)(lambda x, y: (x & y, x | y, x ^ y, ~x, x << y, x >> y, lax.shift_right_logical(x, y), lax.population_count(x), lax.clz(x)))
case("bits_u8", i32(9, low=0, high=255, dtype=np.uint8), i32(9, seed=3, low=0, high=9, dtype=np.uint8))(
    lambda x, y: (x & y, x << y, x >> y, lax.population_count(x), lax.clz(x), x + y))
case("bitcast", X)(lambda x: (lax.bitcast_convert_type(x, jnp.int32), lax.bitcast_convert_type(x, jnp.uint32) >> 3))
case("conversions", X * 5, I)(lambda x, i: (x.astype(jnp.int32), x.astype(jnp.int8), i.astype(jnp.float32), i.astype(jnp.int16), i.astype(bool), (x > 0).astype(jnp.int32)))

# ---- Shapes
case("broadcasting", f32(3, 1), f32(4))(lambda x, y: (x + y, jnp.broadcast_to(x, (2, 3, 4)), jnp.broadcast_to(y[:, None], (4, 3))))
case("reshaping", f32(2, 3, 4))(lambda x: (x.reshape(6, 4), x.reshape(-1), x.transpose(2, 0, 1), jnp.swapaxes(x, 0, 1), x[:, None], jnp.squeeze(x[:1])))
case("slicing", f32(6, 7))(lambda x: (x[1:5:2], x[:, ::3], x[::-1], x[-2:, :-1], jnp.flip(x)))
case("concatenating", X, Y)(lambda x, y: (jnp.concatenate([x, y]), jnp.stack([x, y], 1), jnp.tile(x, (2, 1)), jnp.repeat(x, 2, axis=1)))
case("padding", X)(lambda x: (lax.pad(x, 7.0, ((1, 2, 0), (0, 1, 2))), lax.pad(x, 0.0, ((-1, 1, 1), (2, -3, 0))), jnp.pad(x, 1)))
case("padding_modes", X)(lambda x: (jnp.pad(x, 1, mode="edge"), jnp.pad(x, 1, mode="reflect"), jnp.pad(x, 1, mode="wrap")))
case("triangles", f32(5, 5))(lambda x: (jnp.tril(x), jnp.triu(x, 1), jnp.eye(4), jnp.diag(x[0])))
case("ranges", np.float32(2))(lambda x: (jnp.arange(7) * x, jnp.linspace(0.0, x, 5), jnp.meshgrid(jnp.arange(3), jnp.arange(2))))
case("rolling", X, np.int32(5))(lambda x, n: (jnp.roll(x, 1, axis=1), jnp.roll(x, n, axis=0)))
case("constants", f32(12, 10))(lambda x: (x + f32(12, 10, seed=7), jnp.where(np.arange(120).reshape(12, 10) % 3 == 0, x, 1.0), x.astype(jnp.float16) * np.float16(0.3)))

# ---- Sums of products
case("matmul", f32(5, 6), f32(6, 7))(lambda x, y: x @ y)
case("matvec", f32(5, 6), f32(6))(lambda x, y: (x @ y, y @ x.T, jnp.dot(y, y), jnp.outer(y, y)))
case("batched_matmul", f32(2, 3, 4), f32(2, 4, 5))(lambda x, y: x @ y)
case("attention_scores", f32(2, 3, 4, 5), f32(2, 7, 4, 5))(lambda q, k: jnp.einsum("bqhd,bkhd->bhqk", q, k))
case("einsums", f32(2, 3, 4), f32(4, 3, 5))(lambda x, y: (jnp.einsum("abc,cbd->ad", x, y), jnp.einsum("abc,cbd->dba", x, y), jnp.tensordot(x, y, 1)))
case("batch_last", f32(3, 4, 2), f32(4, 5, 2))(lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((2,), (2,)))))
case("int8_product", i32(4, 6, dtype=np.int8), i32(6, 5, dtype=np.int8))(lambda x, y: lax.dot(x, y, preferred_element_type=jnp.int32))
case("int32_product", i32(4, 6), i32(6, 5))(lambda x, y: x @ y)
case("bf16_product", f32(4, 6), f32(6, 5))(lambda x, y: lax.dot(x.astype(jnp.bfloat16), y.astype(jnp.bfloat16), preferred_element_type=jnp.float32))


# ---- Convolutions
def conv(name, x, w, **options):
    FUNCTIONS[name] = (lambda x, w: lax.conv_general_dilated(x, w, **options), (x, w))


NHWC = ("NHWC", "HWIO", "NHWC")
conv("conv_nchw", f32(2, 3, 8, 9), f32(4, 3, 3, 3), window_strides=(1, 1), padding="SAME")
conv("conv_nhwc", f32(2, 8, 9, 3), f32(3, 3, 3, 4), window_strides=(2, 2), padding="SAME", dimension_numbers=NHWC)
conv("conv_dilated", f32(1, 9, 9, 3), f32(3, 3, 3, 4), window_strides=(1, 1), padding="VALID", rhs_dilation=(2, 3), dimension_numbers=NHWC)
conv("conv_depthwise", f32(1, 8, 8, 6), f32(3, 3, 1, 12), window_strides=(1, 1), padding="SAME", feature_group_count=6, dimension_numbers=NHWC)
conv("conv_grouped", f32(1, 8, 8, 6), f32(3, 3, 2, 9), window_strides=(1, 2), padding=((2, 1), (0, 3)), feature_group_count=3, dimension_numbers=NHWC)
conv("conv_transposed", f32(1, 5, 6, 3), f32(3, 3, 3, 4), window_strides=(1, 1), padding=((2, 1), (2, 1)), lhs_dilation=(2, 2), dimension_numbers=NHWC)
conv("conv_transposed_groups", f32(1, 4, 5, 5), f32(6, 2, 3, 3), window_strides=(1, 1), padding=((2, 2), (1, 2)), lhs_dilation=(2, 3), feature_group_count=2)
conv("conv_both_dilated", f32(1, 2, 6, 6), f32(3, 2, 3, 3), window_strides=(2, 2), padding=((1, 1), (3, 4)), lhs_dilation=(2, 3), rhs_dilation=(2, 1))
conv("conv_batch_groups", f32(4, 3, 9), f32(6, 3, 3), window_strides=(1,), padding=[(2, 1)], batch_group_count=2)
conv("conv_1d", f32(2, 9, 3), f32(4, 3, 5), window_strides=(2,), padding="SAME", dimension_numbers=("NWC", "WIO", "NWC"))
conv("conv_3d", f32(1, 2, 5, 5, 5), f32(3, 2, 2, 3, 3), window_strides=(1, 2, 1), padding="SAME")
conv("conv_odd_layout", f32(8, 2, 3, 9), f32(3, 4, 3, 3), window_strides=(1, 1), padding="SAME", dimension_numbers=("HNCW", "IOHW", "WNHC"))
FUNCTIONS["conv_transpose"] = (lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"), (f32(1, 5, 6, 3), f32(3, 3, 3, 4)))
FUNCTIONS["conv_weight_gradient"] = (
    jax.grad(lambda w, x: (lax.conv_general_dilated(x, w, (2, 2), "SAME") ** 2).sum()), (f32(4, 3, 3, 3), f32(2, 3, 8, 8)))
FUNCTIONS["conv_input_gradient"] = (
    jax.grad(lambda x, w: (lax.conv_general_dilated(x, w, (2, 2), "SAME", feature_group_count=3) ** 2).sum()), (f32(2, 3, 8, 8), f32(6, 1, 3, 3)))

# ---- Reductions and windows
case("reductions", f32(3, 4, 5))(lambda x: (x.sum(0), x.mean((1, 2)), x.max(), x.min(2), x.prod(1), jnp.var(x, 0), jnp.std(x), jnp.any(x > 1.9, 1), jnp.all(x > -3)))
case("reduced_integers", i32(3, 4))(lambda x: (x.sum(), x.max(0), x.min(1), x.prod(1)))
case("bit_reductions", i32(3, 5))(lambda x: (lax.reduce_and(x, (1,)), lax.reduce_or(x, (0,)), lax.reduce_xor(x, (0, 1)), lax.reduce_xor(x > 0, (1,))))
case("extremes", np.round(f32(4, 5) * 2))(lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.argmax(x), lax.argmax(x, 0, jnp.int32)))
case("starting_value", X)(lambda x: (jnp.max(x, 1, initial=1.5), jnp.sum(x, 0, initial=3.0)))
case("max_pool", f32(1, 9, 8, 3))(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 2, 1), (1, 2, 2, 1), "SAME"))
case("min_pool", f32(1, 9, 8, 3))(lambda x: lax.reduce_window(x, jnp.inf, lax.min, (1, 2, 2, 1), (1, 2, 1, 1), "VALID"))
case("sum_pool", f32(1, 9, 8, 3))(lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 2, 1), "SAME"))
case("pool_all_dims", f32(5, 6, 4, 3))(lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 3, 2, 2), (1, 2, 1, 1), "VALID"))
case("pool_dilated", f32(1, 3, 9, 9))(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 2), (1, 1, 1, 2), "VALID", window_dilation=(1, 1, 2, 3)))
case("pool_base_dilated", f32(6))(lambda x: lax.reduce_window(x, 0.0, lax.add, (3,), (1,), ((1, 2),), base_dilation=(2,)))
case("pool_integers", i32(2, 7))(lambda x: lax.reduce_window(x, np.int32(-100), lax.max, (1, 3), (1, 2), "SAME"))
case("pool_started", f32(2, 7))(lambda x: lax.reduce_window(x, 0.5, lax.max, (1, 3), (1, 2), "VALID"))
case("cumulative", f32(4, 5))(lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1), lax.cummin(x, 0, reverse=True), lax.cumsum(x, 0, reverse=True)))
FUNCTIONS["max_pool_gradient"] = (
    jax.grad(lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2).sum()), (f32(2, 8, 8, 3),))
FUNCTIONS["overlapping_gradient"] = (
    jax.grad(lambda x: (lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") ** 2).sum()), (f32(1, 7, 8, 2),))

# ---- Indices
K = i32(3, 2, low=0, high=10)
case("take", f32(10, 4), K)(lambda x, k: (jnp.take(x, k, axis=0), x[k], x[k[:, 0]]))
case("take_outside", f32(10, 4), np.int32([0, 12, -1, -20]))(lambda x, k: (jnp.take(x, k, axis=0), jnp.take(x, k, axis=0, mode="clip"), jnp.take(x, k, axis=0, mode="wrap")))
case("index_pairs", f32(10, 4, 5), i32(3, low=0, high=10), i32(3, low=0, high=5))(lambda x, k, l: (x[k, :, l], x[:, :, l], x[k, 1], x[k][:, 0]))
case("along_axis", f32(6, 4), i32(6, 2, low=0, high=4))(lambda x, k: (jnp.take_along_axis(x, k, 1), jnp.take_along_axis(x, jnp.argsort(x, 0), 0)))
case("mapped_index", f32(5, 6), i32(5, low=0, high=6))(lambda x, k: jax.vmap(lambda r, i: r[i])(x, k))
case("mapped_slice", f32(5, 6), i32(5, low=0, high=6))(lambda x, k: jax.vmap(lambda r, i: lax.dynamic_slice(r, (i,), (3,)))(x, k))
case("dynamic_slices", f32(6, 7), np.int32(2), np.int32(9))(lambda x, i, j: (x[i], lax.dynamic_slice(x, (i, j), (3, 4)), lax.dynamic_slice_in_dim(x, j, 2)))
case("updates", f32(6, 7), f32(2, 3), np.int32(3))(lambda x, u, i: (lax.dynamic_update_slice(x, u, (i, i)), x.at[i].set(1.0), lax.dynamic_update_slice(x, u, (1, 9))))
case("embedding", i32(2, 5, low=0, high=11), f32(11, 6))(lambda k, t: t[k] * 2)
case("one_hot", i32(5, low=-1, high=6))(lambda k: jax.nn.one_hot(k, 5))
case("at_set", f32(10, 4), np.int32([1, 5, 12]), f32(3, 4))(lambda x, k, v: (x.at[k].set(v), x.at[2:5].set(v[:, :1]), x.at[:, 1].set(0.0), x.at[3, 2].set(9.0)))
case("at_add", f32(10, 4), np.int32([1, 1, -1]), f32(3, 4))(lambda x, k, v: (x.at[k].add(v), x.at[k].multiply(v), x.at[k].max(v), x.at[k].min(v), x.at[k, 2].add(1.0)))
case("segment_sum", f32(8, 3), i32(8, low=0, high=5))(lambda x, k: jax.ops.segment_sum(x, k, 4))
case("mapped_scatter", f32(5, 6), i32(5, low=0, high=6))(lambda x, k: jax.vmap(lambda r, i: r.at[i].set(7.0))(x, k))
FUNCTIONS["gather_gradient"] = (jax.grad(lambda x, k: (x[k] ** 2).sum()), (f32(10, 4), K))
case("diagonal", f32(4, 4))(lambda x: (jnp.diagonal(x), jnp.trace(x), x.at[jnp.arange(4), jnp.arange(4)].set(0.0)))

# ---- Order
case("sorting", np.round(f32(5, 6) * 3))(lambda x: (jnp.sort(x), jnp.sort(x, 0), jnp.argsort(x), jnp.sort(x, descending=True), jnp.argsort(x, 0, descending=True)))
case("sorting_integers", i32(4, 7))(lambda x: (jnp.sort(x), jnp.argsort(x), jnp.sort(x > 0)))
case("sorting_keys", np.round(f32(9) * 2), np.round(f32(9, seed=4) * 2), i32(9))(lambda x, y, z: (lax.sort((x, y, z), num_keys=2), lax.sort((x, z), num_keys=1)))
case("top_k", f32(4, 9))(lambda x: lax.top_k(x, 3))
case("median", f32(5, 7))(lambda x: (jnp.median(x), jnp.median(x, 1)))
case("searchsorted", np.sort(f32(9)), f32(4, seed=5))(lambda x, v: jnp.searchsorted(x, v))

# ---- Control flow
case("scan", f32(7, 4))(lambda x: lax.scan(lambda c, t: (c * 0.5 + t, c.sum()), jnp.zeros(4), x))
case("scan_reverse", f32(7, 4))(lambda x: lax.scan(lambda c, t: (jnp.tanh(c + t), c), jnp.ones(4), x, reverse=True))
case("fori_loop", f32(4))(lambda x: lax.fori_loop(0, 5, lambda k, a: a * 0.9 + k, x))
case("dynamic_loop", f32(4), np.int32(6))(lambda x, n: lax.fori_loop(0, n, lambda k, a: a * 0.9 + k, x))
case("while_loop", np.abs(f32(4)))(lambda x: lax.while_loop(lambda a: a.sum() < 100, lambda a: a * 2 + 1, x))
case("nested_loops", f32(3, 4))(lambda x: lax.fori_loop(0, 3, lambda i, a: lax.fori_loop(0, i + 1, lambda j, b: b + j * 0.5, a), x))
case("cond", np.bool_(True), f32(4))(lambda p, x: lax.cond(p, lambda a: a + 1, lambda a: a * 2, x))
case("switch", np.int32(1), f32(4))(lambda p, x: (lax.switch(p, [lambda a: a + 1, lambda a: a * 2, lambda a: -a], x), lax.switch(p + 7, [jnp.sin, jnp.cos], x)))
case("map", f32(5, 3))(lambda x: lax.map(lambda r: jnp.cumsum(r) / (1 + jnp.abs(r)), x))
case("associative_scan", f32(8, 2))(lambda x: lax.associative_scan(jnp.multiply, x))
case("checkpointed", X)(jax.grad(lambda x: jax.checkpoint(lambda v: jnp.sin(jnp.cos(v)))(x).sum()))
case("random", np.uint32([3, 7]))(lambda key: (jax.random.uniform(jax.random.wrap_key_data(key), (4,)), jax.random.normal(jax.random.wrap_key_data(key), (5,))))

# ---- What networks are made of
case("layer_norm", f32(3, 8), f32(8), f32(8, seed=1))(lambda x, g, b: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * g + b)
case("batch_norm", f32(2, 5, 5, 3), f32(3, low=0.5), f32(3, seed=1), f32(3, seed=2), f32(3, seed=3, low=0.1))(
    lambda x, g, b, m, v: jax.nn.standardize(x, axis=(0, 1, 2)) + (x - m) / jnp.sqrt(v + 1e-3) * g + b)
case("cross_entropy", f32(6, 10), i32(6, low=0, high=10))(lambda x, y: -jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1).mean())
case("attention", f32(1, 6, 2, 4), f32(1, 6, 2, 4, seed=1), f32(1, 6, 2, 4, seed=2))(lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True))
case("resize", f32(1, 5, 6, 2))(lambda x: (jax.image.resize(x, (1, 10, 9, 2), "bilinear"), jax.image.resize(x, (1, 10, 12, 2), "nearest")))
case("optimizer_step", f32(4, 3), f32(4, 3, seed=1))(lambda w, g: w - 0.1 * g / (jnp.sqrt((g * g)) + 1e-8))


def text(function, arguments):
    """What JAX prints for the function, with constants of any size."""
    return jax.jit(function, keep_unused=True).lower(*arguments).as_text()


def generic_text(function, arguments):
    """The same in the form that MLIR has for all operations alike."""
    lowered = jax.jit(function, keep_unused=True).lower(*arguments)
    return lowered.compiler_ir("stablehlo").operation.get_asm(print_generic_op_form=True)


def feeds(arguments):
    """By the names that the text gives them."""
    return {f"arg{i}": np.asarray(value) for i, value in enumerate(jax.tree.leaves(arguments))}


def answers(function, arguments, program):
    """The results as numpy arrays, by the names that Candela gives them."""
    notes = re.findall(r'jax\.result_info = "([^"]*)"', program)
    names = [re.sub("[^A-Za-z0-9]+", "_", note).strip("_") for note in notes]
    values = [np.asarray(value) for value in jax.tree.leaves(jax.jit(function)(*arguments))]
    assert len(names) == len(values)
    return dict(zip(names, values))
