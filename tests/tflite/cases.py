"""One model for each builtin operator, and more where types and attributes make a difference."""
from tflite_model import Case, Tensor, flexbuffer

CASES = []


def f(*shape, **more):
    return Tensor(shape, **more)


def q(*shape, type="i8", scale=1 / 32, zero=3, **more):
    """Quantized."""
    if type == "u8":
        zero = 128 + zero
    if type == "i16":
        zero, scale = 0, scale / 16
    return Tensor(shape, type, scale, zero, **more)


def ints(*values, type="i32"):
    """A constant of one dim."""
    return Tensor((len(values),), type, values=list(values), const=True)


def scalar(value, type="i32"):
    return Tensor((), type, values=[value], const=True)


def case(name, op, inputs, outputs, options=None, **more):
    if options is not None and not isinstance(options, tuple):
        raise ValueError(name)
    CASES.append(Case(name, op, inputs, outputs, options, **more))


# ---- Element by element
for op in ("ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "HARD_SWISH", "LOGISTIC", "NEG", "RELU", "RELU6", "RELU_0_TO_1",
           "RELU_N1_TO_1", "ROUND", "SIGN", "SIN", "SQUARE", "TANH", "LOG_SOFTMAX", "L2_NORMALIZATION"):
    options = ("L2NormOptions", {}) if op == "L2_NORMALIZATION" else None
    case(op.lower(), op, [f(2, 3, 4)], [f()], options)
case("l2_normalization_short", "L2_NORMALIZATION", [f(3, 3, values=[1e-4, 0, 0, 0, 1e-8, 0, 0, 0, 0])], [f()], ("L2NormOptions", {}))
for op in ("LOG", "RSQRT", "SQRT"):
    case(op.lower(), op, [f(2, 3, 4, low=1, high=6)], [f()])
for approximate in (False, True):
    case(f"gelu_{'tanh' if approximate else 'erf'}", "GELU", [f(2, 5)], [f()], ("GeluOptions", {"approximate": approximate}))
case("leaky_relu", "LEAKY_RELU", [f(2, 5)], [f()], ("LeakyReluOptions", {"alpha": 0.25}))
case("prelu", "PRELU", [f(2, 3, 4), f(1, 1, 4, const=True)], [f()])
case("softmax", "SOFTMAX", [f(3, 5)], [f()], ("SoftmaxOptions", {"beta": 1}))
case("softmax_beta", "SOFTMAX", [f(2, 3, 4)], [f()], ("SoftmaxOptions", {"beta": 0.5}))
# The reference kernel leaves out the last channel of each window, which TensorFlow and the optimized one count.
case("lrn", "LOCAL_RESPONSE_NORMALIZATION", [f(1, 2, 2, 6)], [f()],
     ("LocalResponseNormalizationOptions", {"radius": 2, "bias": 1.5, "alpha": 0.25, "beta": 0.75}), optimized=True)
ACTIVATED = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions"}
for op, table in ACTIVATED.items():
    for activation in ("NONE", "RELU", "RELU6", "RELU_N1_TO_1"):
        case(f"{op.lower()}_{activation.lower()}", op, [f(2, 3, 4), f(3, 1, low=1, high=5)], [f()],
             (table, {"fused_activation_function": activation}))
    case(f"{op.lower()}_i32", op, [Tensor((2, 5), "i32"), Tensor((5,), "i32", low=1, high=9)], [Tensor((), "i32")], (table, {}))
for op in ("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD"):
    case(op.lower(), op, [f(2, 3, 4), f(3, 1, low=1, high=5)], [f()])
    case(f"{op.lower()}_i32", op, [Tensor((2, 5), "i32"), Tensor((5,), "i32", low=-9, high=-1)], [Tensor((), "i32")])
case("pow", "POW", [f(2, 5, low=1), f(2, 5)], [f()])
case("atan2", "ATAN2", [f(4, 5), f(4, 5)], [f()])
case("add_n", "ADD_N", [f(2, 3), f(2, 3), f(2, 3)], [f()])
case("bitwise_xor", "BITWISE_XOR", [Tensor((2, 5), "i32"), Tensor((2, 5), "i32")], [Tensor((), "i32")])
case("right_shift", "RIGHT_SHIFT", [Tensor((2, 5), "i32"), Tensor((2, 5), "i32", low=0, high=5)], [Tensor((), "i32")])
case("right_shift_u8", "RIGHT_SHIFT", [Tensor((2, 5), "u8"), Tensor((2, 5), "u8", low=0, high=5)], [Tensor((), "u8")])

# ---- Comparisons and logic
for op in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"):
    case(op.lower(), op, [f(4, 5, low=-1, high=1), f(4, 5, low=-1, high=1)], [Tensor((), "bool")])
    case(f"{op.lower()}_i32", op, [Tensor((4, 5), "i32", low=-2, high=3), Tensor((5,), "i32", low=-2, high=3)], [Tensor((), "bool")])
    case(f"{op.lower()}_i8", op, [q(4, 5), q(4, 5)], [Tensor((), "bool")])
case("logical_and", "LOGICAL_AND", [Tensor((2, 5), "bool"), Tensor((5,), "bool")], [Tensor((), "bool")])
case("logical_or", "LOGICAL_OR", [Tensor((2, 5), "bool"), Tensor((5,), "bool")], [Tensor((), "bool")])
case("logical_not", "LOGICAL_NOT", [Tensor((2, 5), "bool")], [Tensor((), "bool")])
case("select_rows", "SELECT", [Tensor((3,), "bool"), f(3, 4), f(3, 4)], [f()])
case("select", "SELECT", [Tensor((3, 4), "bool"), f(3, 4), f(3, 4)], [f()])
case("select_v2", "SELECT_V2", [Tensor((3, 1), "bool"), f(3, 4), f(4)], [f()])
case("select_v2_i8", "SELECT_V2", [Tensor((3, 1), "bool"), q(3, 4), q(3, 4)], [q()])

# ---- Windows and products
for padding in ("SAME", "VALID"):
    pool = {"padding": padding, "stride_w": 2, "stride_h": 1, "filter_width": 3, "filter_height": 2}
    for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
        case(f"{op.lower()}_{padding.lower()}", op, [f(1, 4, 5, 2)], [f()], ("Pool2DOptions", pool))
    for type in ("i8", "u8", "i16"):
        for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
            case(f"{op.lower()}_{padding.lower()}_{type}", op, [q(1, 4, 5, 2, type=type)], [q(type=type)],
                 ("Pool2DOptions", pool), steps=1 if op[0] == "A" else 0)
    conv = {"padding": padding, "stride_w": 2, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1,
            "fused_activation_function": "RELU"}
    case(f"conv_2d_{padding.lower()}", "CONV_2D", [f(1, 5, 6, 3), f(4, 3, 2, 3, const=True), f(4, const=True)], [f()],
         ("Conv2DOptions", conv))
    case(f"depthwise_conv_2d_{padding.lower()}", "DEPTHWISE_CONV_2D",
         [f(1, 5, 6, 3), f(1, 3, 2, 6, const=True), f(6, const=True)], [f()],
         ("DepthwiseConv2DOptions", {**conv, "depth_multiplier": 2}))
    case(f"transpose_conv_{padding.lower()}", "TRANSPOSE_CONV",
         [ints(1, 8, 6, 2) if padding == "SAME" else ints(1, 9, 7, 2), f(2, 3, 3, 3, const=True), f(1, 4, 3, 3)], [f()],
         ("TransposeConvOptions", {"padding": padding, "stride_w": 2, "stride_h": 2}))
    case(f"conv_3d_{padding.lower()}", "CONV_3D", [f(1, 3, 4, 4, 2), f(2, 2, 3, 2, 3, const=True), f(3, const=True)], [f()],
         ("Conv3DOptions", {"padding": padding, "stride_d": 1, "stride_w": 2, "stride_h": 1}))
    case(f"conv_3d_transpose_{padding.lower()}", "CONV_3D_TRANSPOSE",
         [ints(1, 4, 4, 8, 2) if padding == "SAME" else ints(1, 5, 5, 9, 2), f(2, 2, 3, 2, 3, const=True), f(1, 4, 4, 4, 3)], [f()],
         ("Conv3DOptions", {"padding": padding, "stride_d": 1, "stride_w": 2, "stride_h": 1}))
case("conv_2d_dilated", "CONV_2D", [f(1, 7, 8, 2), f(3, 3, 3, 2, const=True), f(3, const=True)], [f()],
     ("Conv2DOptions", {"padding": "SAME", "stride_w": 1, "stride_h": 1, "dilation_w_factor": 2, "dilation_h_factor": 3}))
case("conv_2d_groups", "CONV_2D", [f(1, 4, 4, 4), f(6, 3, 3, 2, const=True), f(6, const=True)], [f()],
     ("Conv2DOptions", {"padding": "SAME", "stride_w": 1, "stride_h": 1}))
CHANNELS = [1 / 64, 1 / 50, 1 / 100, 1 / 77]
PLAIN = {"padding": "SAME", "stride_w": 1, "stride_h": 1}


def bias(count, scales, type="i32"):
    return Tensor((count,), type, scales, 0, const=True, low=-400, high=400)


for type in ("i8", "i16"):
    x_scale = 1 / 32 if type == "i8" else 1 / 512
    wide = "i32" if type == "i8" else "i64"
    for activation in ("NONE", "RELU6"):
        name = f"{type}_{activation.lower()}"
        case(f"conv_2d_{name}", "CONV_2D",
             [q(1, 5, 5, 3, type=type), Tensor((4, 3, 3, 3), "i8", CHANNELS, 0, const=True),
              bias(4, [x_scale * s for s in CHANNELS], wide)], [q(type=type, scale=1 / 9)],
             ("Conv2DOptions", {**PLAIN, "fused_activation_function": activation}), steps=1)
        case(f"depthwise_conv_2d_{name}", "DEPTHWISE_CONV_2D",
             [q(1, 5, 5, 4, type=type), Tensor((1, 3, 3, 4), "i8", CHANNELS, 0, 3, const=True),
              bias(4, [x_scale * s for s in CHANNELS], wide)], [q(type=type, scale=1 / 9)],
             ("DepthwiseConv2DOptions", {**PLAIN, "depth_multiplier": 1, "fused_activation_function": activation}), steps=1)
        case(f"fully_connected_{name}", "FULLY_CONNECTED",
             [q(3, 8, type=type), Tensor((4, 8), "i8", 1 / 64, 0, const=True), bias(4, x_scale / 64, wide)],
             [q(type=type, scale=1 / 16)], ("FullyConnectedOptions", {"fused_activation_function": activation}), steps=1)
    case(f"transpose_conv_{type}", "TRANSPOSE_CONV",
         [ints(1, 8, 6, 4), Tensor((4, 3, 3, 3), "i8", CHANNELS, 0, const=True), q(1, 4, 3, 3, type=type)],
         [q(type=type, scale=1 / 9)], ("TransposeConvOptions", {"padding": "SAME", "stride_w": 2, "stride_h": 2}), steps=1)
    case(f"batch_matmul_{type}", "BATCH_MATMUL", [q(2, 3, 8, type=type), q(2, 8, 4, type=type)], [q(type=type, scale=1 / 4)],
         ("BatchMatMulOptions", {}), steps=1)
case("conv_2d_u8", "CONV_2D", [q(1, 5, 5, 3, type="u8"), Tensor((4, 3, 3, 3), "u8", 1 / 64, 120, const=True),
                              bias(4, 1 / 32 / 64)], [q(type="u8", scale=1 / 9)], ("Conv2DOptions", PLAIN), steps=1)
case("depthwise_conv_2d_u8", "DEPTHWISE_CONV_2D",
     [q(1, 5, 5, 3, type="u8"), Tensor((1, 3, 3, 6), "u8", 1 / 64, 120, const=True), bias(6, 1 / 32 / 64)],
     [q(type="u8", scale=1 / 9)], ("DepthwiseConv2DOptions", {**PLAIN, "depth_multiplier": 2}), steps=1)
case("fully_connected_u8", "FULLY_CONNECTED",
     [q(3, 8, type="u8"), Tensor((4, 8), "u8", 1 / 64, 120, const=True), bias(4, 1 / 32 / 64)],
     [q(type="u8", scale=1 / 16)], ("FullyConnectedOptions", {}), steps=1)
case("fully_connected_i4", "FULLY_CONNECTED",
     [q(3, 8), Tensor((4, 8), "i4", 1 / 8, 0, const=True), bias(4, 1 / 32 / 8)],
     [q(scale=1 / 4)], ("FullyConnectedOptions", {}), steps=1)
case("conv_2d_i4", "CONV_2D", [q(1, 5, 5, 3), Tensor((4, 3, 3, 3), "i4", [1 / 8, 1 / 7, 1 / 9, 1 / 10], 0, const=True),
                              bias(4, [s / 32 for s in (1 / 8, 1 / 7, 1 / 9, 1 / 10)])], [q(scale=1 / 2)],
     ("Conv2DOptions", PLAIN), steps=1)
case("fully_connected", "FULLY_CONNECTED", [f(3, 8), f(4, 8, const=True), f(4, const=True)], [f()], ("FullyConnectedOptions", {}))
case("fully_connected_flat", "FULLY_CONNECTED", [f(3, 2, 4), f(4, 8, const=True)], [f()],
     ("FullyConnectedOptions", {"fused_activation_function": "RELU"}))
case("fully_connected_rows", "FULLY_CONNECTED", [f(3, 2, 8), f(4, 8, const=True), f(4, const=True)], [f()],
     ("FullyConnectedOptions", {"keep_num_dims": True}))
case("batch_matmul", "BATCH_MATMUL", [f(2, 3, 4), f(2, 4, 5)], [f()], ("BatchMatMulOptions", {}))
case("batch_matmul_adjoint", "BATCH_MATMUL", [f(2, 4, 3), f(2, 5, 4)], [f()],
     ("BatchMatMulOptions", {"adj_x": True, "adj_y": True}))

# ---- Reductions
for op in ("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"):
    for keep in (False, True):
        case(f"{op.lower()}{'_keep' if keep else ''}", op, [f(2, 3, 4), ints(0, -1)], [f()], ("ReducerOptions", {"keep_dims": keep}))
    case(f"{op.lower()}_i32", op, [Tensor((2, 3, 4), "i32", low=-4, high=5), ints(1)], [Tensor((), "i32")], ("ReducerOptions", {}))
for type in ("i8", "u8", "i16"):
    case(f"mean_{type}", "MEAN", [q(2, 3, 4, type=type), ints(1)], [q(type=type, scale=1 / 60)], ("ReducerOptions", {}), steps=1)
    case(f"mean_images_{type}", "MEAN", [q(1, 4, 4, 3, type=type), ints(1, 2)], [q(type=type)], ("ReducerOptions", {}), steps=1)
    case(f"reduce_max_{type}", "REDUCE_MAX", [q(2, 3, 4, type=type), ints(1)], [q(type=type)], ("ReducerOptions", {}))
# The reference kernel of ai-edge-litert 2.3.0 gives no sums of int8.
case("sum_i8", "SUM", [q(2, 3, 4, low=-30, high=30), ints(1)], [q(scale=1 / 20)], ("ReducerOptions", {}), steps=1, optimized=True)
for op in ("REDUCE_ANY", "REDUCE_ALL"):
    case(op.lower(), op, [Tensor((4, 3), "bool"), ints(1)], [Tensor((), "bool")], ("ReducerOptions", {}))
for exclusive in (False, True):
    case(f"cumsum{'_exclusive' if exclusive else ''}", "CUMSUM", [f(2, 5), scalar(1)], [f()],
         ("CumsumOptions", {"exclusive": exclusive, "reverse": exclusive}))
for op, table in (("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")):
    case(op.lower(), op, [f(3, 5), scalar(-1)], [Tensor((), "i32")], (table, {"output_type": "INT32"}))
    case(f"{op.lower()}_i8", op, [q(3, 5), scalar(0)], [Tensor((), "i64")], (table, {"output_type": "INT64"}))
case("topk_v2", "TOPK_V2", [f(3, 6), scalar(3)], [f(), Tensor((), "i32")])
case("topk_v2_i8", "TOPK_V2", [q(3, 6), scalar(2)], [q(), Tensor((), "i32")])

# ---- Movement
case("reshape", "RESHAPE", [f(2, 3, 4), ints(4, -1)], [f()])
case("reshape_attribute", "RESHAPE", [f(2, 3, 4)], [f()], ("ReshapeOptions", {"new_shape": [6, 4]}))
case("reshape_i8", "RESHAPE", [q(2, 3, 4), ints(4, -1)], [q()])
case("transpose", "TRANSPOSE", [f(2, 3, 4), ints(2, 0, 1)], [f()])
case("squeeze", "SQUEEZE", [f(1, 3, 1, 4)], [f()], ("SqueezeOptions", {"squeeze_dims": [0, 2]}))
case("squeeze_all", "SQUEEZE", [f(1, 3, 1, 4)], [f()], ("SqueezeOptions", {}))
case("expand_dims", "EXPAND_DIMS", [f(3, 4), scalar(-2)], [f()])
case("concatenation", "CONCATENATION", [f(2, 3), f(2, 4)], [f()], ("ConcatenationOptions", {"axis": -1}))
case("concatenation_i8", "CONCATENATION", [q(2, 3), q(2, 4)], [q()], ("ConcatenationOptions", {"axis": 1}))
case("concatenation_u8", "CONCATENATION", [q(2, 3, type="u8"), q(2, 4, type="u8", scale=1 / 16, zero=9)],
     [q(type="u8", scale=1 / 16)], ("ConcatenationOptions", {"axis": 1}), steps=1)
case("pack", "PACK", [f(2, 3), f(2, 3)], [f()], ("PackOptions", {"values_count": 2, "axis": 1}))
case("unpack", "UNPACK", [f(2, 3, 2)], [f(), f(), f()], ("UnpackOptions", {"num": 3, "axis": 1}))
case("split", "SPLIT", [scalar(1), f(2, 6)], [f(), f(), f()], ("SplitOptions", {"num_splits": 3}))
case("split_i8", "SPLIT", [scalar(1), q(2, 6)], [q(), q()], ("SplitOptions", {"num_splits": 2}))
case("split_v", "SPLIT_V", [f(2, 6), ints(2, -1, 1), scalar(1)], [f(), f(), f()], ("SplitVOptions", {"num_splits": 3}))
case("slice", "SLICE", [f(3, 4, 5), ints(1, 0, 2), ints(2, -1, 2)], [f()])
STRIDED = (("plain", (0, 1, 0), (2, 3, 4), (1, 1, 2), {}), ("back", (-1, 3, -1), (-4, 0, -5), (-1, -2, -1), {}),
           ("masks", (1, 1, 1), (2, 2, 2), (1, 1, 1), {"begin_mask": 1, "end_mask": 4, "shrink_axis_mask": 2}),
           ("new_axis", (0, 0, 1), (3, 0, 3), (1, 1, 1), {"new_axis_mask": 2}),
           ("ellipsis", (1, 0, 2), (2, 0, 3), (1, 1, 1), {"ellipsis_mask": 2, "shrink_axis_mask": 4}),
           ("last", (-1, 0, 0), (0, 4, 5), (1, 1, 1), {"shrink_axis_mask": 1}))
for name, begin, end, stride, masks in STRIDED:
    case(f"strided_slice_{name}", "STRIDED_SLICE", [f(3, 4, 5), ints(*begin), ints(*end), ints(*stride)], [f()],
         ("StridedSliceOptions", masks))
# Begins that a run gives: open ends of both directions, and one element where the stride says nothing.
case("strided_slice_given", "STRIDED_SLICE",
     [f(3, 4, 5), Tensor((3,), "i32", values=[2, 1, 3]), ints(0, 0, 0), ints(-1, 1, -2)], [f()],
     ("StridedSliceOptions", {"end_mask": 7}))
case("strided_slice_given_one", "STRIDED_SLICE",
     [f(3, 4, 5), Tensor((3,), "i32", values=[1, 1, 3]), ints(0, 4, 0), ints(1, 1, -1)], [f()],
     ("StridedSliceOptions", {"end_mask": 4, "shrink_axis_mask": 1}))
PADS = Tensor((3, 2), "i32", values=[0, 1, 2, 0, 1, 1], const=True)
case("pad", "PAD", [f(2, 3, 4), PADS], [f()])
case("pad_i8", "PAD", [q(2, 3, 4), PADS], [q()])
case("padv2", "PADV2", [f(2, 3, 4), PADS, scalar(2.5, "f32")], [f()])
for mode in ("REFLECT", "SYMMETRIC"):
    case(f"mirror_pad_{mode.lower()}", "MIRROR_PAD", [f(2, 3, 4), PADS], [f()], ("MirrorPadOptions", {"mode": mode}))
case("tile", "TILE", [f(2, 3), ints(2, 3)], [f()])
case("broadcast_to", "BROADCAST_TO", [f(3, 1), ints(2, 3, 4)], [f()], version=2)
case("reverse_v2", "REVERSE_V2", [f(2, 3, 4), ints(1)], [f()])
case("reverse_sequence", "REVERSE_SEQUENCE", [f(4, 3, 2), ints(2, 4, 1)], [f()], ("ReverseSequenceOptions", {"seq_dim": 0, "batch_dim": 1}))
case("space_to_depth", "SPACE_TO_DEPTH", [f(1, 4, 6, 3)], [f()], ("SpaceToDepthOptions", {"block_size": 2}))
case("depth_to_space", "DEPTH_TO_SPACE", [f(1, 2, 3, 12)], [f()], ("DepthToSpaceOptions", {"block_size": 2}))
TWO = Tensor((2, 2), "i32", values=[0, 2, 1, 1], const=True)
case("space_to_batch_nd", "SPACE_TO_BATCH_ND", [f(2, 4, 4, 3), ints(2, 3), TWO], [f()])
case("space_to_batch_nd_i8", "SPACE_TO_BATCH_ND", [q(2, 4, 4, 3), ints(2, 3), TWO], [q()])
case("batch_to_space_nd", "BATCH_TO_SPACE_ND", [f(12, 3, 2, 3), ints(2, 3), TWO], [f()])

# ---- Shapes
case("shape", "SHAPE", [f(2, 3, 4)], [Tensor((), "i32")], ("ShapeOptions", {"out_type": "INT32"}))
case("rank", "RANK", [f(2, 3, 4)], [Tensor((), "i32")])
case("fill", "FILL", [ints(2, 3), f(low=1)], [f()])
case("zeros_like", "ZEROS_LIKE", [f(2, 3)], [f()])
case("range", "RANGE", [scalar(2), scalar(9), scalar(3)], [Tensor((), "i32")])
case("broadcast_args", "BROADCAST_ARGS", [ints(3, 1), ints(2, 1, 4)], [Tensor((), "i32")])

# ---- Indices
case("gather", "GATHER", [f(4, 3), Tensor((2, 2), "i32", low=0, high=3)], [f()], ("GatherOptions", {"axis": 0}))
case("gather_axis_i8", "GATHER", [q(3, 4), Tensor((3,), "i32", low=0, high=3)], [q()], ("GatherOptions", {"axis": 1}))
case("gather_batch", "GATHER", [f(2, 4, 3), Tensor((2, 2), "i32", low=0, high=3)], [f()], ("GatherOptions", {"axis": 1, "batch_dims": 1}))
case("gather_nd", "GATHER_ND", [f(3, 4, 2), Tensor((5, 2), "i32", low=0, high=2)], [f()])
case("scatter_nd", "SCATTER_ND", [Tensor((4, 1), "i32", low=0, high=5), f(4, 3), ints(6, 3)], [f()])
case("sparse_to_dense_i8", "SPARSE_TO_DENSE", [ints(1, 3), ints(5), q(2), q(const=True, values=[7])], [q()])
case("sparse_to_dense", "SPARSE_TO_DENSE", [ints(1, 3), ints(5), f(2), scalar(0.5, "f32")], [f()])
case("one_hot", "ONE_HOT", [Tensor((4,), "i32", values=[0, 2, 5, -1]), scalar(4), scalar(2.0, "f32"), scalar(-1.0, "f32")], [f()],
     ("OneHotOptions", {"axis": -1}))
case("where", "WHERE", [Tensor((3, 4), "bool")], [Tensor((), "i64")])
case("unique", "UNIQUE", [Tensor((7,), "i32", values=[3, 1, 3, 2, 1, 5, 2])], [Tensor((), "i32"), Tensor((), "i32")],
     ("UniqueOptions", {"idx_out_type": "INT32"}))
case("embedding_lookup", "EMBEDDING_LOOKUP", [Tensor((3,), "i32", low=0, high=4), f(5, 3, const=True)], [f()])
case("dynamic_update_slice", "DYNAMIC_UPDATE_SLICE", [f(4, 5), f(2, 3), Tensor((2,), "i32", values=[1, 4])], [f()])
case("matrix_diag", "MATRIX_DIAG", [f(2, 3)], [f()])
case("matrix_set_diag", "MATRIX_SET_DIAG", [f(2, 3, 3), f(2, 3)], [f()])
case("bucketize", "BUCKETIZE", [f(3, 4)], [Tensor((), "i32")], ("BucketizeOptions", {"boundaries": [-2, 0, 1.5]}))
case("segment_sum", "SEGMENT_SUM", [f(5, 3), ints(0, 0, 1, 2, 2)], [f()])
for op in ("SUM", "PROD", "MAX", "MIN"):
    case(f"unsorted_segment_{op.lower()}", f"UNSORTED_SEGMENT_{op}", [f(5, 3), ints(2, 0, -1, 2, 0), scalar(3)], [f()])

# ---- Boxes
BOXES = Tensor((8, 4), "f32", values=[0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, -0.1, 1, 0.9, 0, 10, 1, 11, 0, 10.1, 1, 11.1, 1, 101, 0, 100,
                                      5, 5, 6, 7, 0, 0.5, 1, 1.5])
SCORES = Tensor((8,), "f32", values=[0.9, 0.75, 0.6, 0.95, 0.5, 0.3, 0.8, 0.55])
for least in (0.0, 0.4):
    thresholds = [scalar(6), scalar(0.5, "f32"), scalar(least, "f32")]
    case(f"nms_v4_{least}", "NON_MAX_SUPPRESSION_V4", [BOXES, SCORES, *thresholds], [Tensor((), "i32"), Tensor((), "i32")])
    case(f"nms_v5_{least}", "NON_MAX_SUPPRESSION_V5", [BOXES, SCORES, *thresholds, scalar(0.0, "f32")],
         [Tensor((), "i32"), f(), Tensor((), "i32")])
# As many as there are: LiteRT leaves unset what is behind the last one.
ANCHORS = Tensor((5, 4), "f32", values=[0.5, 0.5, 1, 1, 0.5, 0.55, 1, 1, 0.2, 0.2, 0.5, 0.25, 0.8, 0.3, 0.25, 0.5, 0.5, 1.5, 1, 1], const=True)
CODES = Tensor((1, 5, 4), "f32", values=[0, 0, 0, 0, 0.5, 0, 0.25, 0, 0, 1, 0, 0, 2, 0, 0, 0.5, 0, 0, 0, 0])
CLASSES = Tensor((1, 5, 3), "f32", values=[0.1, 0.9, 0.2, 0, 0.8, 0.3, 0.2, 0.1, 0.7, 0.9, 0.05, 0.1, 0, 0.4, 0.6])
case("detection_post_process", "CUSTOM", [CODES, CLASSES, ANCHORS], [f(), f(), f(), f()],
     custom=("TFLite_Detection_PostProcess", flexbuffer({
         "max_detections": 3, "max_classes_per_detection": 1, "num_classes": 2, "nms_score_threshold": 0.25, "nms_iou_threshold": 0.5,
         "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0})))

# ---- Images
for align, half in ((False, False), (True, False), (False, True)):
    name = "aligned" if align else "half" if half else "plain"
    flags = {"align_corners": align, "half_pixel_centers": half}
    for size in ((7, 5), (3, 2)):
        case(f"resize_bilinear_{name}_{size[0]}", "RESIZE_BILINEAR", [f(1, 4, 3, 2), ints(*size)], [f()], ("ResizeBilinearOptions", flags))
        case(f"resize_nearest_{name}_{size[0]}", "RESIZE_NEAREST_NEIGHBOR", [f(1, 4, 3, 2), ints(*size)], [f()],
             ("ResizeNearestNeighborOptions", flags))
    case(f"resize_bilinear_{name}_i8", "RESIZE_BILINEAR", [q(1, 4, 3, 2), ints(7, 5)], [q()], ("ResizeBilinearOptions", flags), steps=1)
    case(f"resize_nearest_{name}_i8", "RESIZE_NEAREST_NEIGHBOR", [q(1, 4, 3, 2), ints(7, 5)], [q()], ("ResizeNearestNeighborOptions", flags))

# ---- Types
case("cast_to_i32", "CAST", [f(3, 4)], [Tensor((), "i32")], ("CastOptions", {"in_data_type": "FLOAT32", "out_data_type": "INT32"}))
case("cast_to_f32", "CAST", [Tensor((3, 4), "i64")], [f()], ("CastOptions", {"in_data_type": "INT64", "out_data_type": "FLOAT32"}))
case("cast_to_bool", "CAST", [Tensor((3, 4), "i32", low=-1, high=1)], [Tensor((), "bool")], ("CastOptions", {"in_data_type": "INT32", "out_data_type": "BOOL"}))
case("bitcast", "BITCAST", [f(3, 4)], [Tensor((), "i32")])
case("dequantize_f16", "DEQUANTIZE", [Tensor((3, 4), "f16", const=True)], [f()])
for type in ("i8", "u8", "i16"):
    case(f"quantize_{type}", "QUANTIZE", [f(3, 4)], [q(type=type)], steps=1)
    case(f"dequantize_{type}", "DEQUANTIZE", [q(3, 4, type=type)], [f()])
case("requantize_i8", "QUANTIZE", [q(3, 8)], [q(scale=1 / 40, zero=-9)], steps=1)
case("requantize_u8_i8", "QUANTIZE", [q(3, 8, type="u8")], [q()], steps=1)
case("requantize_i8_i16", "QUANTIZE", [q(3, 8)], [q(type="i16")], steps=1)
case("fake_quant", "FAKE_QUANT", [f(3, 4)], [f()], ("FakeQuantOptions", {"min": -2, "max": 3, "num_bits": 8}), tolerance=1e-4)

# ---- Quantized, element by element
for type in ("i8", "u8", "i16"):
    for op, table in (("ADD", "AddOptions"), ("SUB", "SubOptions"), ("MUL", "MulOptions")):
        case(f"{op.lower()}_{type}", op, [q(4, 8, type=type), q(4, 8, type=type, scale=1 / 20, zero=-5)],
             [q(type=type, scale=1 / 16)], (table, {"fused_activation_function": "RELU"} if op == "ADD" else {}), steps=1)
    for op in ("LOGISTIC", "TANH"):
        zero, scale = {"i8": (-128, 1 / 256), "u8": (0, 1 / 256), "i16": (0, 1 / 32768)}[type]
        if op == "TANH":
            zero, scale = {"i8": (0, 1 / 128), "u8": (128, 1 / 128), "i16": (0, 1 / 32768)}[type]
        x = q(4, 8, type=type) if type != "i16" else Tensor((4, 8), "i16", 1 / 4096, 0, low=-30000, high=30000)
        case(f"{op.lower()}_{type}", op, [x], [Tensor((), type, scale, zero)], steps=1)
    if type != "i16":
        case(f"softmax_{type}", "SOFTMAX", [q(4, 8, type=type, scale=1 / 16)], [Tensor((), type, 1 / 256, -128 if type == "i8" else 0)],
             ("SoftmaxOptions", {"beta": 1}), steps=1)
        case(f"relu6_{type}", "RELU6", [q(4, 8, type=type)], [q(type=type, scale=1 / 24)], steps=1)
        case(f"maximum_{type}", "MAXIMUM", [q(4, 8, type=type), q(4, 8, type=type)], [q(type=type)])
        case(f"leaky_relu_{type}", "LEAKY_RELU", [q(4, 8, type=type)], [q(type=type)], ("LeakyReluOptions", {"alpha": 0.25}), steps=1)
        case(f"hard_swish_{type}", "HARD_SWISH", [q(4, 8, type=type)], [q(type=type)], steps=1)
        case(f"prelu_{type}", "PRELU", [q(4, 8, type=type), q(8, type=type, const=True)], [q(type=type, scale=1 / 8)], steps=1)
for op in ("ABS", "RELU", "ELU", "EXP", "LOG_SOFTMAX", "L2_NORMALIZATION", "NEG", "RSQRT", "SQUARED_DIFFERENCE", "GELU"):
    inputs = [q(4, 8, zero=0 if op == "NEG" else 3)] if op != "SQUARED_DIFFERENCE" else [q(4, 8), q(4, 8)]
    out = {"LOG_SOFTMAX": Tensor((), "i8", 1 / 16, 127), "L2_NORMALIZATION": Tensor((), "i8", 1 / 128, 0), "NEG": q(zero=0), "EXP": q(scale=1 / 2, zero=-100),
           "RSQRT": q(scale=1 / 20, zero=-100), "SQUARED_DIFFERENCE": q(scale=1 / 2, zero=-100)}.get(op, q(scale=1 / 24))
    if op == "RSQRT":
        inputs = [Tensor((4, 8), "i8", 1 / 32, -128, low=-100, high=127)]
    table = {"L2_NORMALIZATION": ("L2NormOptions", {}), "GELU": ("GeluOptions", {})}.get(op)
    case(f"{op.lower()}_i8", op, inputs, [out], table, steps=1)
