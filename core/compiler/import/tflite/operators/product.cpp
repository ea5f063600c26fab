// Convolutions and products of matrices.
#include <algorithm>
#include <limits>

#include "core/compiler/import/tflite/step.h"
#include "core/compiler/import/tflite/window.h"
#include "core/support/transpose.h"

namespace candela::import::tflite {
namespace {

/// A constant in another order of dims.
Name reorderedConstant(Step& step, const Tensor& x, const Ints& perm) {
  Result<Tensor> moved = transposed(x, perm);
  if (!moved) throw Refusal{moved.status()};
  return step.constant(*std::move(moved));
}

/// Weights in another order, dequantized behind that, so that their elements stay as the file has
/// them.
Name reordered(Step& step, size_t input, const Ints& perm) {
  const TensorInfo& info = step.input(input);
  if (info.rank() != static_cast<int64_t>(perm.size()))
    reject("input {} has rank {}, expected {}", input, info.rank(), perm.size());
  if (!info.refusal.empty()) step.stored(input); // which throws
  const Name moved = info.content ? reorderedConstant(step, *info.content, perm)
                                  : step.transpose(step.stored(input), perm);
  if (!info.isQuantized()) return moved;
  const std::vector<Name> of = step.writer().quantization(step.op().inputs[input]);
  Attributes attributes;
  if (info.quantization.scales.size() > 1)
    attributes["axis"] =
        static_cast<int64_t>(std::ranges::find(perm, info.quantization.axis) - perm.begin());
  return step.add("DequantizeLinear", {moved, of[0], of[1]}, std::move(attributes));
}

/// A bias of 64 bits in 32, where its values fit.
std::optional<Tensor> narrowed(const Tensor& bias) {
  std::vector<int32_t> values;
  for (const int64_t value : bias.toInts()) {
    if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max())
      return std::nullopt;
    values.push_back(static_cast<int32_t>(value));
  }
  return Tensor::of<int32_t>(Elem::i32_, bias.dims, values);
}

/// In steps of the product of both scales, whatever its own are; "" where there is none.
Name biasOf(Step& step, size_t bias, size_t x, size_t weights) {
  if (!step.has(bias)) return "";
  const TensorInfo& info = step.input(bias);
  if (isFloat(info.elem)) return step.real(bias);
  const std::vector<float>& scales = step.input(weights).quantization.scales;
  if (info.isQuantized() || !step.input(x).isQuantized() || scales.empty())
    reject("its bias is {}, but its operands are not quantized", elemName(info.elem));
  std::vector<float> steps;
  for (const float scale : scales) steps.push_back(step.input(x).quantization.scales[0] * scale);
  const auto count = static_cast<int64_t>(steps.size());
  Name stored = step.stored(bias);
  if (info.elem == Elem::i64_) {
    if (!info.content) refuse("a bias of i64 is no constant");
    const auto narrow = narrowed(*info.content);
    if (!narrow) refuse("a bias leaves 32 bits");
    stored = step.constant(*narrow);
  }
  const Shape dims = count == 1 ? Shape{} : Shape{count};
  Attributes attributes;
  if (count > 1) attributes["axis"] = int64_t(0);
  return step.add("DequantizeLinear",
                  {stored, step.constant(Tensor::of<float>(Elem::f32_, dims, steps))},
                  std::move(attributes));
}

Name convolved(Step& step, const char* op, const Name& x, const Name& weights, const Name& bias,
               Attributes attributes) {
  std::vector<Name> inputs = {x, weights};
  if (!bias.empty()) inputs.push_back(bias);
  return step.add(op, std::move(inputs), std::move(attributes));
}

/// Both convolutions: their options have the same names.
template <typename Options>
void writeGroups(Step& step, const Options& options, const Name& weights, int64_t group) {
  const Name x = channelsFirst(step, step.real(0), 4);
  const Name bias = biasOf(step, 2, 0, 1);
  const Name y =
      convolved(step, "Conv", x, weights, bias,
                {{"strides", extents("stride", {options.stride_h(), options.stride_w()})},
                 {"dilations",
                  extents("dilation", {options.dilation_h_factor(), options.dilation_w_factor()})},
                 {"group", group},
                 {"auto_pad", padText(options.padding())}});
  step.set(0, channelsLast(step, step.activate(y, options.fused_activation_function()), 4));
}

void writeConv2d(Step& step) {
  needRank(step, 0, 4);
  const Name weights = reordered(step, 1, {0, 3, 1, 2});
  const int64_t channels = step.dim(0, 3);
  const int64_t depth = step.dim(1, 3);
  if (channels == 0 || depth == 0 || channels % depth != 0)
    reject("its input has {} channels, its filter {}", channels, depth);
  writeGroups(step, step.options<schema::Conv2DOptions>(), weights, channels / depth);
}

/// Each channel has filters of its own: groups of one channel.
void writeDepthwiseConv2d(Step& step) {
  needRank(step, 0, 4);
  const Name weights = reordered(step, 1, {3, 0, 1, 2});
  const int64_t channels = step.dim(0, 3);
  const int64_t results = step.dim(1, 3);
  if (channels == 0 || results % channels != 0 || step.dim(1, 0) != 1)
    reject("its input has {} channels, its filter {}", channels, results);
  writeGroups(step, step.options<schema::DepthwiseConv2DOptions>(), weights, channels);
}

void writeConv3d(Step& step) {
  const auto& options = step.options<schema::Conv3DOptions>();
  needRank(step, 0, 5);
  const Name weights = reordered(step, 1, {4, 3, 0, 1, 2});
  const Name x = channelsFirst(step, step.real(0), 5);
  const Name bias = biasOf(step, 2, 0, 1);
  const Name y = convolved(
      step, "Conv", x, weights, bias,
      {{"strides", extents("stride", {options.stride_d(), options.stride_h(), options.stride_w()})},
       {"dilations", extents("dilation", {options.dilation_d_factor(), options.dilation_h_factor(),
                                          options.dilation_w_factor()})},
       {"auto_pad", padText(options.padding())}});
  step.set(0, channelsLast(step, step.activate(y, options.fused_activation_function()), 5));
}

/// Of all dims: a constant, or what the file says of the result's shape where a run makes operand
/// 0.
Ints resultExtents(Step& step) {
  return step.input(0).content ? step.ints(0, "extents of the result") : step.output(0).dims;
}

/// Pads that give the result the extents of operand 0: as many in front as the convolution that it
/// transposes has there.
Attributes transposedWindow(Step& step, const Ints& strides, const Ints& kernel,
                            schema::Padding padding) {
  padText(padding);
  const size_t spatial = strides.size();
  const Ints wanted = resultExtents(step);
  if (wanted.size() != spatial + 2)
    reject("its result has {} extents, expected {}", wanted.size(), spatial + 2);
  Ints front, back, further;
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t out = wanted[i + 1], in = step.dim(2, static_cast<int64_t>(i) + 1);
    const int64_t whole = (in - 1) * strides[i] + kernel[i];
    const int64_t total = std::max<int64_t>(
        0, ((out + strides[i] - 1) / strides[i] - 1) * strides[i] + kernel[i] - out);
    front.push_back(padding == schema::Padding_SAME ? total / 2 : 0);
    const int64_t left = whole - front[i] - out;
    back.push_back(std::max<int64_t>(0, left));
    further.push_back(std::max<int64_t>(0, -left));
    if (out < 1 || further[i] >= strides[i])
      reject("a result of {} is none of {} elements with stride {} and {} taps", out, in,
             strides[i], kernel[i]);
  }
  Ints pads = front;
  pads.insert(pads.end(), back.begin(), back.end());
  return {{"strides", strides}, {"pads", pads}, {"output_padding", further}};
}

void writeTransposeConv(Step& step) {
  const auto& options = step.options<schema::TransposeConvOptions>();
  needRank(step, 2, 4);
  const Name weights = reordered(step, 1, {3, 0, 1, 2});
  Attributes window =
      transposedWindow(step, extents("stride", {options.stride_h(), options.stride_w()}),
                       {step.dim(1, 1), step.dim(1, 2)}, options.padding());
  const Name x = channelsFirst(step, step.real(2), 4);
  const Name bias = biasOf(step, 3, 2, 1);
  const Name y = convolved(step, "ConvTranspose", x, weights, bias, std::move(window));
  step.set(0, channelsLast(step, step.activate(y, options.fused_activation_function()), 4));
}

void writeConv3dTranspose(Step& step) {
  const auto& options = step.options<schema::Conv3DOptions>();
  needRank(step, 2, 5);
  for (const int dilation :
       {options.dilation_d_factor(), options.dilation_h_factor(), options.dilation_w_factor()})
    if (dilation != 1) refuse("a dilation of {} is not supported", dilation);
  const Name weights = reordered(step, 1, {4, 3, 0, 1, 2});
  Attributes window = transposedWindow(
      step, extents("stride", {options.stride_d(), options.stride_h(), options.stride_w()}),
      {step.dim(1, 0), step.dim(1, 1), step.dim(1, 2)}, options.padding());
  const Name x = channelsFirst(step, step.real(2), 5);
  const Name bias = biasOf(step, 3, 2, 1);
  const Name y = convolved(step, "ConvTranspose", x, weights, bias, std::move(window));
  step.set(0, channelsLast(step, step.activate(y, options.fused_activation_function()), 5));
}

/// The dims of the result of a product of rows, at most one of them free.
Ints rowsShape(Step& step, bool keepsDims, int64_t units) {
  if (!keepsDims) return {-1, units};
  Ints dims = step.input(0).dims;
  dims.back() = units;
  if (std::ranges::count(dims, -1) > 1) refuse("several dims of its input are free");
  return dims;
}

void writeFullyConnected(Step& step) {
  const auto& options = step.options<schema::FullyConnectedOptions>();
  if (options.weights_format() != schema::FullyConnectedOptionsWeightsFormat_DEFAULT)
    refuse("shuffled weights are not supported");
  needRank(step, 1, 2);
  const int64_t units = step.dim(1, 0);
  const int64_t depth = step.dim(1, 1);
  if (options.keep_num_dims() && step.input(0).rank() < 1) reject("its input is a scalar");
  Name x = step.real(0);
  if (step.input(0).rank() != 2) x = step.reshape(x, {-1, depth});
  std::vector<Name> inputs = {x, step.real(1)};
  const Name bias = biasOf(step, 2, 0, 1);
  if (!bias.empty()) inputs.push_back(bias);
  Name y = step.add("Gemm", std::move(inputs), {{"transB", int64_t(1)}});
  y = step.activate(y, options.fused_activation_function());
  if (options.keep_num_dims() && step.input(0).rank() != 2)
    y = step.reshape(y, rowsShape(step, true, units));
  step.set(0, y);
}

Name turned(Step& step, size_t input, bool isTurned) {
  const int64_t rank = step.input(input).rank();
  if (rank < 2) reject("input {} has rank {}, expected at least 2", input, rank);
  if (!isTurned) return step.real(input);
  Ints perm;
  for (int64_t i = 0; i < rank; ++i) perm.push_back(i);
  std::swap(perm[static_cast<size_t>(rank) - 1], perm[static_cast<size_t>(rank) - 2]);
  if (step.input(input).content) return reordered(step, input, perm);
  return step.transpose(step.real(input), perm);
}

void writeBatchMatmul(Step& step) {
  const auto& options = step.options<schema::BatchMatMulOptions>();
  const Name a = turned(step, 0, options.adj_x());
  const Name b = turned(step, 1, options.adj_y());
  step.set(0, step.add("MatMul", {a, b}));
}

constexpr std::string_view kTransposedLimits = "the result's extents have to be known";

constexpr Operator kProduct[] = {
    {schema::BuiltinOperator_BATCH_MATMUL, 2, 2, 1, writeBatchMatmul},
    {schema::BuiltinOperator_CONV_2D, 2, 3, 1, writeConv2d},
    {schema::BuiltinOperator_CONV_3D, 2, 3, 1, writeConv3d},
    {schema::BuiltinOperator_CONV_3D_TRANSPOSE, 3, 4, 1, writeConv3dTranspose,
     "the result's extents have to be known; no dilations"},
    {schema::BuiltinOperator_DEPTHWISE_CONV_2D, 2, 3, 1, writeDepthwiseConv2d},
    {schema::BuiltinOperator_FULLY_CONNECTED, 2, 3, 1, writeFullyConnected, "no shuffled weights"},
    {schema::BuiltinOperator_TRANSPOSE_CONV, 3, 4, 1, writeTransposeConv, kTransposedLimits},
};

} // namespace

std::span<const Operator> productOperators() { return kProduct; }

} // namespace candela::import::tflite
