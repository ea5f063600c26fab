#include <algorithm>

#include "core/compiler/export/tosa/ops.h"

namespace candela::exporter::tosa {
namespace {

/// [batch, m, k] and [batch, k, n] of operands whose other dims broadcast.
struct Factors {
  Value a, b;
  Shape dims; ///< of the product
};

Factors factorsOf(FunctionWriter& w, Value a, Value b) {
  const bool isRow = a.rank() == 1, isColumn = b.rank() == 1;
  if (isRow) a = w.reshape(a, {1, a.dim(0)});
  if (isColumn) b = w.reshape(b, {b.dim(0), 1});
  const Shape aBatch(a.dims.begin(), a.dims.end() - 2), bBatch(b.dims.begin(), b.dims.end() - 2);
  const Shape batch = graph::broadcastShapes(aBatch, bBatch).value_or(Shape{});
  const int64_t count = elementCount(batch).value_or(0);
  const auto flat = [&](const Value& x) {
    Shape whole = batch;
    whole.insert(whole.end(), x.dims.end() - 2, x.dims.end());
    return w.reshape(w.expand(x, whole), {count, x.dim(x.rank() - 2), x.dim(x.rank() - 1)});
  };
  Shape dims = batch;
  if (!isRow) dims.push_back(a.dim(a.rank() - 2));
  if (!isColumn) dims.push_back(b.dim(b.rank() - 1));
  return {flat(a), flat(b), dims};
}

/// A constant of one integer, 0 where it is absent.
int64_t zeroPoint(const graph::Value* value) {
  if (!value) return 0;
  if (!value->isConstant()) refuse("a zero point that is no constant");
  const std::vector<int64_t> known = need(value->tensor()).toInts();
  if (std::ranges::any_of(known, [&](int64_t each) { return each != known[0]; }))
    refuse("zero points by channel");
  return known.empty() ? 0 : known[0];
}

} // namespace

Value product(FunctionWriter& w, const Value& a, const Value& b) {
  if (!isFloat(a.elem)) refuse("TOSA has no product of {}", elemName(a.elem));
  const Factors factors = factorsOf(w, w.widened(a), w.widened(b));
  const Value y = w.make("matmul", {factors.a, factors.b}, factors.a.elem,
                         {factors.a.dim(0), factors.a.dim(1), factors.b.dim(2)});
  return w.cast(w.reshape(y, factors.dims), a.elem);
}

Value transposed(FunctionWriter& w, const Value& x) {
  std::vector<int64_t> perm;
  for (int64_t d = 0; d < x.rank(); ++d) perm.push_back(d);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return w.transpose(x, perm);
}

void writeMatmul(FunctionWriter& w, const graph::Node& node) {
  w.bind(node.result(), product(w, w.of(node.operand(0)), w.of(node.operand(1))));
}

void writeMatmulInteger(FunctionWriter& w, const graph::Node& node) {
  const Factors factors = factorsOf(w, w.of(node.operand(0)), w.of(node.operand(1)));
  if (factors.a.elem != Elem::i8_ || factors.b.elem != Elem::i8_)
    refuse("TOSA has no product of {} and {}", elemName(factors.a.elem), elemName(factors.b.elem));
  const std::string zeros =
      fmt::format("quantization_info = #tosa.matmul_quant<a_zp = {}, b_zp = {}>",
                  zeroPoint(node.operand(2)), zeroPoint(node.operand(3)));
  const Value y = w.make("matmul", {factors.a, factors.b}, Elem::i32_,
                         {factors.a.dim(0), factors.a.dim(1), factors.b.dim(2)}, zeros);
  w.bind(node.result(), w.reshape(y, factors.dims));
}

void writeGemm(FunctionWriter& w, const graph::Node& node) {
  const Values in = w.operandsOf(node);
  const Elem elem = in[0].elem;
  const Value a = node.intAttr("transA") != 0 ? transposed(w, in[0]) : in[0];
  const Value b = node.intAttr("transB") != 0 ? transposed(w, in[1]) : in[1];
  Value y = product(w, a, b);
  const double alpha = node.floatAttr("alpha"), beta = node.floatAttr("beta");
  if (alpha != 1) y = w.mul(w.number(alpha, elem), y);
  if (in.size() > 2 && !in[2].isAbsent()) {
    const Value c = beta == 1 ? in[2] : w.mul(w.number(beta, elem), in[2]);
    y = w.op("add", {c, y});
  }
  w.bind(node.result(), y);
}

/// Halves are computed in f32, where scores do not overflow.
void writeAttention(FunctionWriter& w, const graph::Node& node) {
  Values in = w.operandsOf(node);
  const Elem elem = in[0].elem;
  for (Value& operand : in)
    if (!operand.isAbsent()) operand = w.cast(operand, Elem::f32_);
  Value scores = product(w, in[0], transposed(w, in[1]));
  scores = w.mul(w.number(node.floatAttr("scale"), scores.elem), scores);
  if (in.size() > 3 && !in[3].isAbsent()) scores = w.op("add", {in[3], scores});
  const Value y = product(w, softmax(w, scores, scores.rank() - 1), in[2]);
  w.bind(node.result(), w.cast(y, elem));
}

namespace {

/// Channels last, and back.
Value channelsLast(FunctionWriter& w, const Value& x) {
  std::vector<int64_t> perm = {0};
  for (int64_t d = 2; d < x.rank(); ++d) perm.push_back(d);
  perm.push_back(1);
  return w.transpose(x, perm);
}

Value channelsFirst(FunctionWriter& w, const Value& x) {
  std::vector<int64_t> perm = {0, x.rank() - 1};
  for (int64_t d = 1; d + 1 < x.rank(); ++d) perm.push_back(d);
  return w.transpose(x, perm);
}

/// One spatial dim becomes two, the second of which is 1.
Value asImage(FunctionWriter& w, const Value& x) {
  if (x.rank() != 3) return x;
  return w.reshape(x, {x.dim(0), x.dim(1), x.dim(2), 1});
}

/// A convolution of one group, in the dims of TOSA.
struct Window {
  std::vector<int64_t> strides, dilations, pads; ///< pads: before and behind, dim by dim
};

Window windowOf(const graph::Node& node, size_t spatial) {
  Window window{node.intsAttr("strides", spatial, 1), node.intsAttr("dilations", spatial, 1), {}};
  const std::vector<int64_t> pads = node.intsAttr("pads", 2 * spatial, 0);
  for (size_t d = 0; d < spatial; ++d) {
    window.pads.push_back(pads[d]);
    window.pads.push_back(pads[d + spatial]);
  }
  if (spatial == 1) {
    window.strides.push_back(1);
    window.dilations.push_back(1);
    window.pads.insert(window.pads.end(), {0, 0});
  }
  return window;
}

struct Convolution {
  Value x, w, b; ///< channels first; two or three spatial dims
  Window window;
  int64_t group = 1;
  Elem sum;
  Shape dims; ///< of the result
  std::string zeros;
};

std::string attributesOf(const Convolution& c) {
  return fmt::format("dilation = {}, pad = {}, stride = {}{}", arrayText(c.window.dilations),
                     arrayText(c.window.pads), arrayText(c.window.strides), c.zeros);
}

/// Every channel has kernels of its own: [o, 1, kernel..] is [kernel.., c, o / c].
Value depthwise(FunctionWriter& w, const Convolution& c) {
  const int64_t channels = c.x.dim(1), each = c.w.dim(0) / channels;
  const Value apart = w.reshape(c.w, {channels, each, c.w.dim(2), c.w.dim(3)});
  const Value kernels = w.transpose(apart, {2, 3, 0, 1});
  const Value y = w.make("depthwise_conv2d", {channelsLast(w, c.x), kernels, c.b}, c.sum,
                         {c.dims[0], c.dims[2], c.dims[3], c.dims[1]}, attributesOf(c));
  return channelsFirst(w, y);
}

Value convolved(FunctionWriter& w, const Convolution& c) {
  const size_t spatial = c.dims.size() - 2;
  if (c.group == c.x.dim(1) && c.w.dim(1) == 1 && spatial == 2 && c.group > 1)
    return depthwise(w, c);
  const int64_t outputs = c.dims[1] / c.group, inputs = c.x.dim(1) / c.group;
  Values groups;
  for (int64_t g = 0; g < c.group; ++g) {
    const auto part = [&](const Value& value, int64_t axis, int64_t count) {
      std::vector<int64_t> start(value.dims.size(), 0);
      Shape size = value.dims;
      start[static_cast<size_t>(axis)] = g * count;
      size[static_cast<size_t>(axis)] = count;
      return w.slice(value, start, size);
    };
    Shape dims = {c.dims[0]};
    dims.insert(dims.end(), c.dims.begin() + 2, c.dims.end());
    dims.push_back(outputs);
    groups.push_back(w.make(spatial == 2 ? "conv2d" : "conv3d",
                            {channelsLast(w, part(c.x, 1, inputs)),
                             channelsLast(w, part(c.w, 0, outputs)), part(c.b, 0, outputs)},
                            c.sum, dims, attributesOf(c)));
  }
  const int64_t last = static_cast<int64_t>(c.dims.size()) - 1;
  return channelsFirst(w, groups.size() == 1 ? groups[0] : w.concat(groups, last));
}

Convolution convolutionOf(FunctionWriter& w, const graph::Node& node) {
  const Value x = w.widened(w.of(node.operand(0))), kernels = w.widened(w.of(node.operand(1)));
  const graph::TensorType& type = node.result()->type;
  const Elem sum = isFloat(x.elem) ? x.elem : type.elem;
  const auto spatial = static_cast<size_t>(x.rank() - 2);
  if (spatial > 3) refuse("TOSA has no convolution over {} dims", spatial);
  Convolution c{.x = asImage(w, x),
                .w = asImage(w, kernels),
                .b = {},
                .window = windowOf(node, spatial),
                .group = node.intAttr("group"),
                .sum = sum,
                .dims = type.dims,
                .zeros = ""};
  if (spatial == 1) c.dims.push_back(1);
  const Value zero = w.number(0, sum);
  c.b = node.operand(2) ? w.cast(w.of(node.operand(2)), sum) : w.expand(zero, {type.dim(1)});
  return c;
}

} // namespace

void writeConv(FunctionWriter& w, const graph::Node& node) {
  const Value y = w.cast(convolved(w, convolutionOf(w, node)), node.result()->type.elem);
  w.bind(node.result(), w.reshape(y, node.result()->type.dims));
}

void writeConvInteger(FunctionWriter& w, const graph::Node& node) {
  Convolution c = convolutionOf(w, node);
  if (c.x.elem != Elem::i8_ || c.w.elem != Elem::i8_)
    refuse("TOSA has no convolution of {} with {}", elemName(c.x.elem), elemName(c.w.elem));
  c.zeros = fmt::format(", quantization_info = #tosa.conv_quant<input_zp = {}, weight_zp = {}>",
                        zeroPoint(node.operand(3)), zeroPoint(node.operand(4)));
  w.bind(node.result(), w.reshape(convolved(w, c), node.result()->type.dims));
}

void writeConvTranspose(FunctionWriter& w, const graph::Node& node) {
  const Value x = asImage(w, w.of(node.operand(0))), kernels = asImage(w, w.of(node.operand(1)));
  if (x.rank() != 4) refuse("TOSA has no transposed convolution over 3 dims");
  const Window window = windowOf(node, static_cast<size_t>(node.result()->type.rank() - 2));
  if (window.dilations != std::vector<int64_t>{1, 1} || node.intAttr("group") != 1)
    refuse("TOSA has no transposed convolution with dilations or groups");
  Shape dims = node.result()->type.dims;
  if (dims.size() == 3) dims.push_back(1);
  const Value zero = w.number(0, x.elem);
  const Value bias = node.operand(2) ? w.of(node.operand(2)) : w.expand(zero, {dims[1]});
  std::vector<int64_t> room;
  for (const int64_t pad : window.pads) room.push_back(-pad);
  const Shape shape = {dims[0], dims[2], dims[3], dims[1]};
  const Value y =
      w.make("transpose_conv2d", {channelsLast(w, x), w.transpose(kernels, {1, 2, 3, 0}), bias},
             x.elem, shape,
             fmt::format("out_pad = {}, out_shape = {}, stride = {}", arrayText(room),
                         arrayText(shape), arrayText(window.strides)));
  w.bind(node.result(), w.reshape(channelsFirst(w, y), node.result()->type.dims));
}

namespace {

/// What the last window needs behind the input, or leaves over there.
int64_t behindOf(int64_t extent, int64_t before, int64_t kernel, int64_t stride, int64_t count) {
  return (count - 1) * stride + kernel - extent - before;
}

} // namespace

void writePool(FunctionWriter& w, const graph::Node& node) {
  Value x = asImage(w, w.widened(w.of(node.operand(0))));
  if (node.results().size() > 1) refuse("TOSA has no places of maxima");
  if (x.rank() != 4) refuse("TOSA pools over two dims alone");
  const graph::TensorType& type = node.result()->type;
  const size_t spatial = static_cast<size_t>(type.rank() - 2);
  Window window = windowOf(node, spatial);
  if (window.dilations != std::vector<int64_t>{1, 1}) refuse("TOSA has no pooling with dilations");
  std::vector<int64_t> kernel = node.intsAttr("kernel_shape");
  Shape dims = type.dims;
  if (spatial == 1) {
    kernel.push_back(1);
    dims.push_back(1);
  }
  const bool isMean = node.kind == graph::OpKind::AveragePool;
  if (isMean && node.intAttr("count_include_pad") != 0) {
    if (node.intAttr("ceil_mode") != 0) refuse("a mean that counts its padding, rounded up");
    x = w.pad(x, {0, 0, window.pads[0], window.pads[2]}, {0, 0, window.pads[1], window.pads[3]});
    window.pads.assign(4, 0);
  }
  for (size_t d = 0; d < 2; ++d) {
    const int64_t behind =
        behindOf(x.dims[d + 2], window.pads[2 * d], kernel[d], window.strides[d], dims[d + 2]);
    window.pads[2 * d + 1] = std::max<int64_t>(0, behind);
  }
  const std::string more = isMean ? "acc_type = f32, " : "";
  const Value y =
      w.make(isMean ? "avg_pool2d" : "max_pool2d", {channelsLast(w, x)}, x.elem,
             {dims[0], dims[2], dims[3], dims[1]},
             fmt::format("{}kernel = {}, pad = {}, stride = {}", more, arrayText(kernel),
                         arrayText(window.pads), arrayText(window.strides)));
  w.bind(node.result(), w.cast(w.reshape(channelsFirst(w, y), type.dims), type.elem));
}

void writeGlobalAveragePool(FunctionWriter& w, const graph::Node& node) {
  const Value x = w.widened(w.of(node.operand(0)));
  std::vector<int64_t> axes;
  double share = 1;
  for (int64_t d = 2; d < x.rank(); ++d) {
    axes.push_back(d);
    share /= static_cast<double>(x.dim(d));
  }
  w.bind(node.result(), w.cast(scaledSum(w, x, axes, share), node.result()->type.elem));
}

} // namespace candela::exporter::tosa
