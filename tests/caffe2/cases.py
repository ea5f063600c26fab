"""One net for each operator, and more where arguments make a difference, with what numpy computes for it."""
import numpy as np

CASES = []
FLOAT = np.float32


class Case:
    """The first operands are inputs of the net; `constants` of them, from the end, are filled by the init net."""

    def __init__(self, name, type, operands, expected, constants=0, **arguments):
        self.name, self.type, self.operands, self.arguments = name, type, operands, arguments
        self.constants = constants
        self.expected = expected if isinstance(expected, list) else [expected]


def case(name, type, operands, expected, constants=0, **arguments):
    CASES.append(Case(name, type, operands, expected, constants, **arguments))


random = np.random.default_rng(20251129)


def f(*shape, low=-2.0, high=2.0):
    return random.uniform(low, high, shape).astype(FLOAT)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# ---- Element by element
X, Y = f(2, 3, 4), f(2, 3, 4)
POSITIVE = f(2, 3, 4, low=0.5, high=3.0)
SINGLE = {"Abs": np.abs, "Ceil": np.ceil, "Cos": np.cos, "Exp": np.exp, "Floor": np.floor, "Negative": np.negative,
          "Relu": lambda x: np.maximum(x, 0), "Sigmoid": sigmoid, "Sign": np.sign, "Sin": np.sin, "Tan": np.tan, "Tanh": np.tanh,
          "Softplus": lambda x: np.log1p(np.exp(x)), "Softsign": lambda x: x / (1 + np.abs(x)), "Sqr": np.square,
          "Cube": lambda x: x * x * x, "Copy": np.array, "Alias": np.array, "StopGradient": np.array,
          "EnsureCPUOutput": np.array, "Swish": lambda x: x * sigmoid(x)}
for type, function in SINGLE.items():
    case(type.lower(), type, [X], function(X))
for type, function in {"Log": np.log, "Sqrt": np.sqrt, "Rsqrt": lambda x: 1 / np.sqrt(x)}.items():
    case(type.lower(), type, [POSITIVE], function(POSITIVE))
for type, function in {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}.items():
    other = f(3, low=0.5, high=2.0)
    case(type.lower(), type, [X, POSITIVE], function(X, POSITIVE))
    case(f"{type.lower()}_axis", type, [X, other], function(X, other.reshape(3, 1)), constants=1, broadcast=1, axis=1)
    last_dim = f(4, low=1.0)
    case(f"{type.lower()}_suffix", type, [X, last_dim], function(X, last_dim), broadcast=1)
for type, function in {"Max": np.maximum, "Min": np.minimum, "Sum": np.add}.items():
    case(f"{type.lower()}_of_three", type, [X, Y, POSITIVE], function(function(X, Y), POSITIVE))
case("mean", "Mean", [X, Y], (X + Y) / 2)
case("clip", "Clip", [X], np.clip(X, -0.5, 1), min=-0.5, max=1.0)
case("clip_open", "Clip", [X], np.maximum(X, 0), min=0.0)
case("leaky_relu", "LeakyRelu", [X], np.where(X > 0, X, X * FLOAT(0.1)), alpha=0.1)
case("elu", "Elu", [X], np.where(X > 0, X, np.exp(X) - 1))
case("selu", "Selu", [X], np.where(X > 0, X, (np.exp(X) - 1) * 1.5) * 1.25, alpha=1.5, scale=1.25)
SLOPE = f(3)
IMAGES = f(2, 3, 4, 5)
case("prelu", "PRelu", [IMAGES, SLOPE], np.where(IMAGES > 0, IMAGES, IMAGES * SLOPE.reshape(3, 1, 1)), constants=1)
case("prelu_one", "PRelu", [IMAGES, SLOPE[:1]], np.where(IMAGES > 0, IMAGES, IMAGES * SLOPE[0]), constants=1)
case("scale", "Scale", [X], X * 3, scale=3.0)
case("pow", "Pow", [POSITIVE], POSITIVE ** FLOAT(1.5), exponent=1.5)
case("pow_of_two", "Pow", [POSITIVE, X], POSITIVE ** X)
case("logit", "Logit", [sigmoid(X)], X)
case("gelu_tanh", "Gelu", [X], 0.5 * X * (1 + np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X ** 3))), fast_gelu=1)
NANS = np.where(X > 1, FLOAT("nan"), X)
case("replace_nan", "ReplaceNaN", [NANS], np.where(np.isnan(NANS), FLOAT(7), NANS), value=7.0)
case("dropout", "Dropout", [X], X, is_test=1, ratio=0.5)

# ---- Comparisons and logic
A, B = np.array([[1, 2, 3]], np.int32), np.array([[3, 2, 1]], np.int32)
for type, function in {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater,
                       "GE": np.greater_equal}.items():
    case(type.lower(), type, [A, B], function(A, B))
P, Q = np.array([True, True, False, False]), np.array([True, False, True, False])
for type, function in {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}.items():
    case(type.lower(), type, [P, Q], function(P, Q))
case("not", "Not", [P], ~P)
case("where", "Where", [X > 0, X, Y], np.where(X > 0, X, Y))
case("where_rows", "Where", [np.array([True, False]), X, Y], np.stack([X[0], Y[1]]), broadcast_on_rows=1)


# ---- Windows and products
def windows(x, kernel, stride, pad, dilation=(1, 1), fill=0.0, more=(0, 0)):
    """[N, C, oH, oW, kH, kW] of images; `more` rows and columns of padding behind."""
    (top, left), (bottom, right) = pad[:2], pad[2:]
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom + more[0]), (left, right + more[1])), constant_values=fill)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    view = np.lib.stride_tricks.sliding_window_view(x, spans, axis=(2, 3))
    return view[:, :, ::stride[0], ::stride[1], ::dilation[0], ::dilation[1]]


def convolved(x, w, b, stride=(1, 1), pad=(0, 0, 0, 0), dilation=(1, 1), group=1):
    view = windows(x, w.shape[2:], stride, pad, dilation)
    channels, outputs = x.shape[1] // group, w.shape[0] // group
    parts = [np.einsum("nchwij,ocij->nohw", view[:, g * channels:(g + 1) * channels].astype(np.float64),
                       w[g * outputs:(g + 1) * outputs].astype(np.float64)) for g in range(group)]
    return (np.concatenate(parts, 1) + b.reshape(-1, 1, 1)).astype(FLOAT)


def last(x):
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


W, BIAS = f(4, 3, 3, 2), f(4)
case("conv", "Conv", [IMAGES, W, BIAS], convolved(IMAGES, W, BIAS), constants=2, kernel_h=3, kernel_w=2)
SQUARE = f(4, 3, 3, 3)
case("conv_stride_pad", "Conv", [IMAGES, SQUARE, BIAS], convolved(IMAGES, SQUARE, BIAS, (2, 2), (1, 1, 1, 1)), constants=2,
     kernel=3, stride=2, pad=1)
case("conv_sides", "Conv", [IMAGES, SQUARE], convolved(IMAGES, SQUARE, 0 * BIAS, (1, 2), (1, 0, 2, 1)), constants=1,
     kernels=[3, 3], stride_h=1, stride_w=2, pad_t=1, pad_l=0, pad_b=2, pad_r=1)
case("conv_dilation", "Conv", [IMAGES, f(2, 3, 2, 2), f(2)], None, constants=2, kernel=2, dilation=2)
CASES[-1].expected = [convolved(IMAGES, CASES[-1].operands[1], CASES[-1].operands[2], dilation=(2, 2))]
case("conv_same", "Conv", [IMAGES, SQUARE, BIAS], convolved(IMAGES, SQUARE, BIAS, (2, 2), (0, 1, 1, 1)), constants=2, kernel=3,
     stride=2, legacy_pad=2)
GROUPS = f(2, 4, 5, 5)
GROUPED = f(6, 2, 3, 3)
case("conv_groups", "Conv", [GROUPS, GROUPED, f(6)], None, constants=2, kernel=3, group=2)
CASES[-1].expected = [convolved(GROUPS, GROUPED, CASES[-1].operands[2], group=2)]
case("conv_nhwc", "Conv", [last(IMAGES), last(SQUARE), BIAS], last(convolved(IMAGES, SQUARE, BIAS, pad=(1, 1, 1, 1))), constants=2,
     kernel=3, pad=1, order="NHWC")
case("conv_relu", "ConvRelu", [IMAGES, SQUARE, BIAS], np.maximum(convolved(IMAGES, SQUARE, BIAS), 0), constants=2, kernel=3)


def transposed(x, w, b, stride, pad, adjust):
    n, c, h, width = x.shape
    kernel = w.shape[2:]
    y = np.zeros((n, w.shape[1], (h - 1) * stride + kernel[0] + adjust, (width - 1) * stride + kernel[1] + adjust))
    for i in range(h):
        for j in range(width):
            y[:, :, i * stride:i * stride + kernel[0], j * stride:j * stride + kernel[1]] += np.einsum(
                "nc,cokl->nokl", x[:, :, i, j], w)
    y = y[:, :, pad:y.shape[2] - pad, pad:y.shape[3] - pad]
    return (y + b.reshape(-1, 1, 1)).astype(FLOAT)


UP, UP_BIAS = f(3, 2, 3, 3), f(2)
case("conv_transpose", "ConvTranspose", [IMAGES, UP, UP_BIAS], transposed(IMAGES, UP, UP_BIAS, 2, 1, 1), constants=2, kernel=3,
     stride=2, pad=1, adj=1)
LARGE = f(1, 2, 7, 7)
case("max_pool", "MaxPool", [LARGE], windows(LARGE, (3, 3), (2, 2), (0, 0, 0, 0)).max((4, 5)), kernel=3, stride=2)
case("max_pool_caffe", "MaxPool", [LARGE[:, :, :6, :6]],
     windows(LARGE[:, :, :6, :6], (3, 3), (2, 2), (0, 0, 0, 0), fill=-9, more=(1, 1)).max((4, 5)), kernel=3, stride=2, legacy_pad=3)
case("average_pool", "AveragePool", [LARGE], windows(LARGE, (3, 3), (2, 2), (0, 0, 0, 0)).mean((4, 5)), kernel=3, stride=2)
COUNTS = windows(np.ones_like(LARGE), (3, 3), (2, 2), (1, 1, 1, 1)).sum((4, 5))
case("average_pool_pad", "AveragePool", [LARGE], windows(LARGE, (3, 3), (2, 2), (1, 1, 1, 1)).sum((4, 5)) / COUNTS, kernel=3,
     stride=2, pad=1)
case("average_pool_global", "AveragePool", [LARGE], LARGE.mean((2, 3), keepdims=True), global_pooling=1)
case("max_pool_nhwc", "MaxPool", [last(LARGE)], last(windows(LARGE, (2, 2), (2, 2), (0, 0, 0, 0)).max((4, 5))), kernel=2, stride=2,
     order="NHWC")
case("resize_nearest", "ResizeNearest", [LARGE], LARGE.repeat(2, 2).repeat(3, 3), height_scale=2.0, width_scale=3.0)
ROWS, FULL, FULL_BIAS = f(5, 6), f(4, 6), f(4)
case("fc", "FC", [ROWS, FULL, FULL_BIAS], ROWS @ FULL.T + FULL_BIAS, constants=2)
case("fc_images", "FC", [f(2, 3, 2, 1), FULL, FULL_BIAS], None, constants=2)
CASES[-1].expected = [CASES[-1].operands[0].reshape(2, 6) @ FULL.T + FULL_BIAS]
DEEP = f(2, 3, 6)
case("fc_axis", "FC", [DEEP, FULL, FULL_BIAS], DEEP @ FULL.T + FULL_BIAS, constants=2, axis=2)
case("fc_transposed", "FCTransposed", [ROWS, np.ascontiguousarray(FULL.T), FULL_BIAS], ROWS @ FULL.T + FULL_BIAS, constants=2)
case("matmul", "MatMul", [f(3, 4), f(5, 4)], None, trans_b=1)
CASES[-1].expected = [CASES[-1].operands[0] @ CASES[-1].operands[1].T]
case("batch_matmul", "BatchMatMul", [f(2, 4, 3), f(2, 4, 5)], None, trans_a=1)
CASES[-1].expected = [np.swapaxes(CASES[-1].operands[0], 1, 2) @ CASES[-1].operands[1]]
case("dot_product", "DotProduct", [X, Y], (X * Y).reshape(2, -1).sum(1))


# ---- Norms
def soft(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


case("softmax", "Softmax", [X], soft(X.reshape(2, 12)).reshape(X.shape))
case("softmax_axis", "Softmax", [X], soft(X), axis=2)
case("log_softmax", "LogSoftmax", [ROWS], np.log(soft(ROWS)))
STATISTICS = [f(3), f(3), f(3), f(3, low=0.5)]
column = [each.reshape(3, 1, 1) for each in STATISTICS]
case("spatial_bn", "SpatialBN", [IMAGES, *STATISTICS],
     (IMAGES - column[2]) / np.sqrt(column[3] + FLOAT(1e-3)) * column[0] + column[1], constants=4, epsilon=1e-3, is_test=1)
SQUARES = np.pad(IMAGES ** 2, ((0, 0), (1, 1), (0, 0), (0, 0)))
NEAR = sum(SQUARES[:, i:i + 3] for i in range(3))
case("lrn", "LRN", [IMAGES], IMAGES / (2 + 0.5 / 3 * NEAR) ** 0.75, size=3, alpha=0.5, beta=0.75, bias=2.0)
CENTERED = X.reshape(2, 12) - X.reshape(2, 12).mean(1, keepdims=True)
NORMED = (CENTERED / np.sqrt((CENTERED ** 2).mean(1, keepdims=True) + 1e-5)).reshape(X.shape)
case("layer_norm", "LayerNorm", [X], NORMED)
GAMMA, BETA = f(3, 4), f(3, 4)
case("layer_norm_affine", "LayerNorm", [X, GAMMA, BETA], NORMED * GAMMA + BETA, constants=2, elementwise_affine=1)
MEAN, VARIANCE = IMAGES.mean((2, 3), keepdims=True), IMAGES.var((2, 3), keepdims=True)
case("instance_norm", "InstanceNorm", [IMAGES, STATISTICS[0], STATISTICS[1]],
     (IMAGES - MEAN) / np.sqrt(VARIANCE + 1e-5) * column[0] + column[1], constants=2)
case("normalize", "Normalize", [X], X / np.sqrt((X ** 2).sum(-1, keepdims=True)))
GROUP = GROUPS.reshape(2, 2, -1)
GROUP = ((GROUP - GROUP.mean(2, keepdims=True)) / np.sqrt(GROUP.var(2, keepdims=True) + 1e-5)).reshape(GROUPS.shape)
case("group_norm", "GroupNorm", [GROUPS, f(4), f(4)], None, constants=2, group=2)
CASES[-1].expected = [GROUP * CASES[-1].operands[1].reshape(4, 1, 1) + CASES[-1].operands[2].reshape(4, 1, 1)]

# ---- What moves elements
case("concat", "Concat", [X, Y], np.concatenate([X, Y], 1))
case("concat_nhwc", "Concat", [IMAGES, IMAGES], np.concatenate([IMAGES, IMAGES], 3), order="NHWC")
case("concat_add_axis", "Concat", [X, Y], np.stack([X, Y], 1), axis=1, add_axis=1)
case("split", "Split", [X], [X[:, :1], X[:, 1:]], axis=1, split=[1, 2])
case("split_even", "Split", [X], [X[:, :, :2], X[:, :, 2:]], axis=2)
case("split_drops_axis", "Split", [X], [X[0], X[1]], axis=0, add_axis=1)
case("reshape", "Reshape", [X], [X.reshape(2, 12)], shape=[0, -1])
case("flatten", "Flatten", [X], X.reshape(2, 12))
case("flatten_axis", "Flatten", [X], X.reshape(6, 4), axis=2)
case("flatten_to_vec", "FlattenToVec", [X], X.reshape(-1))
case("transpose", "Transpose", [X], X.transpose(), )
case("transpose_axes", "Transpose", [X], X.transpose(0, 2, 1), axes=[0, 2, 1])
case("nchw_to_nhwc", "NCHW2NHWC", [IMAGES], last(IMAGES))
case("nhwc_to_nchw", "NHWC2NCHW", [last(IMAGES)], IMAGES)
case("squeeze", "Squeeze", [X.reshape(2, 1, 12)], X.reshape(2, 12), dims=[1])
case("expand_dims", "ExpandDims", [X], X.reshape(1, 2, 3, 1, 4), dims=[0, 3])
SHUFFLED = GROUPS.reshape(2, 2, 2, 5, 5).transpose(0, 2, 1, 3, 4).reshape(GROUPS.shape)
case("channel_shuffle", "ChannelShuffle", [GROUPS], SHUFFLED, group=2)
case("pad_image", "PadImage", [IMAGES], np.pad(IMAGES, ((0, 0), (0, 0), (1, 0), (2, 1)), constant_values=3), pad_t=1, pad_l=2, pad_b=0,
     pad_r=1, value=3.0)
case("pad_image_reflect", "PadImage", [IMAGES], np.pad(IMAGES, ((0, 0), (0, 0), (2, 2), (2, 2)), "reflect"), pad=2, mode="reflect")
case("slice", "Slice", [X], X[0:1, 1:3], starts=[0, 1], ends=[1, -1])
case("slice_negative", "Slice", [X], X[:, :, :3], starts=[0, 0, 0], ends=[-1, -1, -2])
case("tile", "Tile", [X], np.tile(X, (1, 3, 1)), tiles=3, axis=1)
case("cast", "Cast", [np.array([1, -2], np.int32)], np.array([1, -2], FLOAT), to=1)
case("cast_by_name", "Cast", [f(3)], None, to="int32")
CASES[-1].expected = [CASES[-1].operands[0].astype(np.int32)]

# ---- Reductions
for type, function in {"ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max, "ReduceMin": np.min}.items():
    case(type.lower(), type, [X], function(X, axis=1, keepdims=True), axes=[1])
case("reduce_sum_all", "ReduceSum", [X], np.array(X.sum()), keepdims=0)
case("reduce_l1", "ReduceL1", [X], np.abs(X).sum(2), axes=[2], keepdims=0)
case("reduce_l2", "ReduceL2", [X], np.sqrt((X ** 2).sum((0, 1))), axes=[0, 1], keepdims=0)
case("reduce_back_sum", "ReduceBackSum", [X], X.sum((1, 2)), num_reduce_dim=2)
case("reduce_back_mean", "ReduceBackMean", [X], X.mean(2))
case("reduce_back_max", "ReduceBackMax", [X], X.max(2))
case("reduce_front_sum", "ReduceFrontSum", [X], X.sum(0))
case("reduce_front_mean", "ReduceFrontMean", [X], X.mean((0, 1)), num_reduce_dim=2)
case("reduce_front_max", "ReduceFrontMax", [X], X.max(0))
case("averaged_loss", "AveragedLoss", [X], np.array(X.mean()))
case("sum_elements", "SumElements", [X], np.array(X.sum()))
case("sum_elements_average", "SumElements", [X], np.array(X.mean()), average=1)
case("arg_max", "ArgMax", [X], X.argmax(2)[..., None].astype(np.int64))
case("arg_min", "ArgMin", [X], X.argmin(1).astype(np.int64), axis=1, keepdims=0)
ORDER = np.argsort(-ROWS, 1)[:, :2]
case("top_k", "TopK", [ROWS], [np.take_along_axis(ROWS, ORDER, 1), ORDER.astype(np.int64)], k=2)

# ---- Rows by their numbers
TABLE = f(6, 2, 3)
INDICES, LENGTHS = np.array([5, 0, 3, 3, 1], np.int64), np.array([2, 0, 3], np.int32)
PICKED = TABLE[INDICES]


def segments(rows):
    ends = np.cumsum(LENGTHS)
    return np.stack([rows[end - length:end].sum(0) for end, length in zip(ends, LENGTHS)])


WEIGHTS = f(5)
MEANS = segments(PICKED) / np.maximum(LENGTHS, 1).reshape(-1, 1, 1)
case("gather", "Gather", [TABLE, INDICES], PICKED)
case("batch_gather", "BatchGather", [X, np.array([2, 0], np.int32)], X[:, [2, 0]])
case("lengths_sum", "LengthsSum", [PICKED, LENGTHS], segments(PICKED))
case("lengths_mean", "LengthsMean", [PICKED, LENGTHS], MEANS)
case("sparse_lengths_sum", "SparseLengthsSum", [TABLE, INDICES, LENGTHS], segments(PICKED))
case("sparse_lengths_mean", "SparseLengthsMean", [TABLE, INDICES, LENGTHS], MEANS)
case("sparse_lengths_weighted_sum", "SparseLengthsWeightedSum", [TABLE, WEIGHTS, INDICES, LENGTHS],
     segments(PICKED * WEIGHTS.reshape(-1, 1, 1)))
case("lengths_range_fill", "LengthsRangeFill", [LENGTHS], np.array([0, 1, 0, 1, 2], np.int32), constants=1)
case("sparse_to_dense", "SparseToDense", [np.array([2, 0, 2], np.int32), f(3, 2), np.zeros((4, 1), FLOAT)], None)
DENSE = np.zeros((4, 2), FLOAT)
np.add.at(DENSE, CASES[-1].operands[0], CASES[-1].operands[1])
CASES[-1].expected = [DENSE]
case("batch_one_hot", "BatchOneHot", [np.array([[5, 2], [1, 3]], np.int64), np.array([2, 1], np.int32), np.array([5, 1, 3], np.int64)],
     np.array([[1, 0, 0], [0, 1, 1]], np.int64), constants=2)
case("shape", "Shape", [X], np.array([2, 3, 4], np.int64))
case("shape_axes", "Shape", [X], np.array([4, 2], np.int64), axes=[2, 0])
case("size", "Size", [X], np.array(24, np.int64))
case("constant_fill", "ConstantFill", [X], np.full(X.shape, 3, np.int64), value=3.0, dtype=10)
