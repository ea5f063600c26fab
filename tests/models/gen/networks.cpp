//===- networks.cpp - ResNet-50, MobileNetV2 and a 4-layer BERT encoder ---===//
//
// Each as float32 and as int8 in QuantizeLinear/DequantizeLinear form. The statement order fixes
// the names of values and the streams of weights: what depends on order is written as separate
// statements or as a braced list.
//
//===----------------------------------------------------------------------===//
#include "tests/models/gen/networks.h"

#include <cmath>

namespace candela::gen {
namespace {

constexpr int64_t kClasses = 1000;
constexpr float kSqrt2 = 1.41421356237309504880f;

enum class Activation { none, relu, relu6 };

struct Image {
  Value value;
  int64_t channels;
  int64_t size; ///< Height and width.
};

struct ConvShape {
  int64_t channels;
  int64_t kernel;
  int64_t stride = 1;
  int64_t groups = 1;
};

/// The layers that the networks share, float or quantized.
class Layers {
public:
  Layers(ModelBuilder& builder, bool quantized) : b_(builder), quantized_(quantized) {}

  /// Quantizes and dequantizes where the network is quantized, else returns `x`.
  Value boundary(const Value& x, float scale, uint8_t zeroPoint) {
    return quantized_ ? b_.quantizeDequantize(x, scale, zeroPoint) : x;
  }

  Image conv(const Image& x, const ConvShape& shape, Activation activation);

  /// GlobalAveragePool, Flatten and the fully connected layer.
  void classifier(const Image& x);

  /// x · W + bias over the last axis.
  Value linear(const Value& x, int64_t rows, int64_t in, int64_t out);

private:
  Value int8Matrix(const std::vector<float>& weights, int64_t in, int64_t out);

  ModelBuilder& b_;
  bool quantized_;
};

Image Layers::conv(const Image& x, const ConvShape& shape, Activation activation) {
  const int64_t pad = shape.kernel / 2;
  const int64_t size = (x.size + 2 * pad - shape.kernel) / shape.stride + 1;
  const int64_t channels = shape.channels;
  const int64_t fanIn = x.channels / shape.groups * shape.kernel * shape.kernel;
  const Shape weightShape{channels, x.channels / shape.groups, shape.kernel, shape.kernel};
  const std::vector<float> weights =
      b_.random(channels * fanIn, std::sqrt(2.0 / static_cast<double>(fanIn)));
  const std::vector<float> bias = b_.random(channels, 0.01);
  const std::vector<Attribute> attributes{{"group", shape.groups},
                                          {"kernel_shape", Shape{shape.kernel, shape.kernel}},
                                          {"pads", Shape{pad, pad, pad, pad}},
                                          {"strides", Shape{shape.stride, shape.stride}}};
  b_.countFlops(2 * channels * size * size * fanIn);

  Value y;
  if (!quantized_) {
    y = b_.op("Conv", {x.value, b_.init(weightShape, weights), b_.init({channels}, bias)},
              attributes);
  } else {
    const QuantizedWeights q = quantizeWeights(weights, channels);
    std::vector<float> biasScales(channels);
    std::vector<int32_t> biasValues(channels);
    for (int64_t c = 0; c < channels; ++c) {
      biasScales[c] = q.scales[c] * x.value.scale;
      biasValues[c] = static_cast<int32_t>(std::nearbyint(bias[c] / biasScales[c]));
    }
    const Attribute axis{"axis", int64_t{0}};
    const Value scales = b_.init({channels}, q.scales);
    const Value w = b_.op("DequantizeLinear",
                          {b_.init(weightShape, q.values), scales,
                           b_.init({channels}, std::vector<int8_t>(channels, 0))},
                          {axis});
    const Value biasScale = b_.init({channels}, biasScales);
    const Value biasValue = b_.op("DequantizeLinear",
                                  {b_.init({channels}, biasValues), biasScale,
                                   b_.init({channels}, std::vector<int32_t>(channels, 0))},
                                  {axis});
    y = b_.op("Conv", {x.value, w, biasValue}, attributes);
  }

  if (activation == Activation::relu) y = b_.op("Relu", {y});
  // Quantized, the range 0..6 of the uint8 result clips by itself.
  if (activation == Activation::relu6 && !quantized_)
    y = b_.op("Clip", {y, b_.scalar(0), b_.scalar(6)});
  y = boundary(y, activation == Activation::relu6 ? 6.0f / 255.0f : 0.05f,
               activation == Activation::none ? 128 : 0);
  return {y, channels, size};
}

Value Layers::int8Matrix(const std::vector<float>& weights, int64_t in, int64_t out) {
  const QuantizedWeights q = quantizeWeights(weights, 1);
  return b_.op("DequantizeLinear", {b_.init({in, out}, q.values), b_.init({}, q.scales),
                                    b_.init({}, std::vector<int8_t>{0})});
}

void Layers::classifier(const Image& x) {
  Value y = boundary(b_.op("GlobalAveragePool", {x.value}), 0.05f, 0);
  y = boundary(b_.op("Flatten", {y}), 0.05f, 0);
  const std::vector<float> weights = b_.random(x.channels * kClasses, 0.02);
  b_.countFlops(2 * x.channels * kClasses);
  if (quantized_) {
    const Value w = int8Matrix(weights, x.channels, kClasses);
    boundary(b_.op("MatMul", {y, w}), 0.1f, 128);
  } else {
    b_.op("Gemm", {y, b_.init({x.channels, kClasses}, weights),
                   b_.init({kClasses}, std::vector<float>(kClasses, 0.0f))});
  }
}

Value Layers::linear(const Value& x, int64_t rows, int64_t in, int64_t out) {
  const std::vector<float> weights = b_.random(in * out, 0.02);
  b_.countFlops(2 * rows * in * out);
  const Value w = quantized_ ? int8Matrix(weights, in, out) : b_.init({in, out}, weights);
  const Value product = b_.op("MatMul", {boundary(x, 0.03f, 128), w});
  return b_.op("Add", {product, b_.init({out}, std::vector<float>(out, 0.0f))});
}

onnx::ModelProto buildResnet50(ModelBuilder& b, const std::string& name, bool quantized) {
  struct Stage {
    int64_t blocks, channels;
  };
  constexpr Stage kStages[] = {{3, 64}, {4, 128}, {6, 256}, {3, 512}};

  Layers layers(b, quantized);
  Image x{layers.boundary({"x"}, 0.05f, 128), 3, 224};
  Image y = layers.conv(x, {.channels = 64, .kernel = 7, .stride = 2}, Activation::relu);
  y.value =
      b.op("MaxPool", {y.value},
           {{"kernel_shape", Shape{3, 3}}, {"pads", Shape{1, 1, 1, 1}}, {"strides", Shape{2, 2}}});
  y.value = layers.boundary(y.value, 0.05f, 0);
  y.size = 56;
  for (const Stage& stage : kStages) {
    for (int64_t block = 0; block < stage.blocks; ++block) {
      const int64_t stride = block == 0 && &stage != kStages ? 2 : 1;
      const int64_t wide = 4 * stage.channels;
      Image a = layers.conv(y, {.channels = stage.channels, .kernel = 1}, Activation::relu);
      a = layers.conv(a, {.channels = stage.channels, .kernel = 3, .stride = stride},
                      Activation::relu);
      a = layers.conv(a, {.channels = wide, .kernel = 1}, Activation::none);
      if (block == 0)
        y = layers.conv(y, {.channels = wide, .kernel = 1, .stride = stride}, Activation::none);
      a.value = b.op("Relu", {b.op("Add", {a.value, y.value})});
      a.value = layers.boundary(a.value, 0.05f, 0);
      y = a;
    }
  }
  layers.classifier(y);
  return b.finish(name, {3, 224, 224}, {kClasses});
}

onnx::ModelProto buildMobilenetV2(ModelBuilder& b, const std::string& name, bool quantized) {
  struct Stage {
    int64_t expansion, channels, blocks, stride;
  };
  constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

  Layers layers(b, quantized);
  Image x{layers.boundary({"x"}, 0.05f, 128), 3, 224};
  Image y = layers.conv(x, {.channels = 32, .kernel = 3, .stride = 2}, Activation::relu6);
  for (const Stage& stage : kStages) {
    for (int64_t block = 0; block < stage.blocks; ++block) {
      const int64_t stride = block == 0 ? stage.stride : 1;
      const int64_t middle = y.channels * stage.expansion;
      Image a = y;
      if (stage.expansion != 1)
        a = layers.conv(a, {.channels = middle, .kernel = 1}, Activation::relu6);
      a = layers.conv(a, {.channels = middle, .kernel = 3, .stride = stride, .groups = middle},
                      Activation::relu6);
      a = layers.conv(a, {.channels = stage.channels, .kernel = 1}, Activation::none);
      if (stride == 1 && y.channels == stage.channels)
        a.value = layers.boundary(b.op("Add", {a.value, y.value}), 0.05f, 128);
      y = a;
    }
  }
  y = layers.conv(y, {.channels = 1280, .kernel = 1}, Activation::relu6);
  layers.classifier(y);
  return b.finish(name, {3, 224, 224}, {kClasses});
}

onnx::ModelProto buildBert(ModelBuilder& b, const std::string& name, bool quantized) {
  constexpr int64_t kLayers = 4, kWidth = 768, kHeads = 12, kLength = 128, kInner = 3072;
  constexpr int64_t kHeadWidth = kWidth / kHeads;

  Layers layers(b, quantized);
  auto linear = [&](const Value& x, int64_t in, int64_t out) {
    return layers.linear(x, kLength, in, out);
  };
  auto normalize = [&](const Value& x) {
    return b.op("LayerNormalization",
                {x, b.init({kWidth}, std::vector<float>(kWidth, 1.0f)),
                 b.init({kWidth}, std::vector<float>(kWidth, 0.0f))},
                {{"axis", int64_t{-1}}, {"epsilon", 1e-5f}});
  };
  auto transpose = [&](const Value& x, const Shape& order) {
    return b.op("Transpose", {x}, {{"perm", order}});
  };

  Value y{"x"};
  const Value splitShape = b.init({4}, Shape{0, kLength, kHeads, kHeadWidth});
  const Value joinShape = b.init({3}, Shape{0, kLength, kWidth});
  const Value scoreScale = b.scalar(std::sqrt(static_cast<float>(kHeadWidth)));
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    Value query = b.op("Reshape", {linear(y, kWidth, kWidth), splitShape});
    Value key = b.op("Reshape", {linear(y, kWidth, kWidth), splitShape});
    Value value = b.op("Reshape", {linear(y, kWidth, kWidth), splitShape});
    query = transpose(query, {0, 2, 1, 3});
    key = transpose(key, {0, 2, 3, 1});
    value = transpose(value, {0, 2, 1, 3});
    Value scores = b.op("Div", {b.op("MatMul", {query, key}), scoreScale});
    scores = b.op("Softmax", {scores}, {{"axis", int64_t{-1}}});
    b.countFlops(4 * kLength * kLength * kWidth);
    Value mixed = transpose(b.op("MatMul", {scores, value}), {0, 2, 1, 3});
    mixed = b.op("Reshape", {mixed, joinShape});
    y = normalize(b.op("Add", {y, linear(mixed, kWidth, kWidth)}));

    // The exact GELU, spelled out: (f · (1 + erf(f / √2))) · ½.
    const Value f = linear(y, kWidth, kInner);
    Value gate = b.op("Erf", {b.op("Div", {f, b.scalar(kSqrt2)})});
    gate = b.op("Add", {gate, b.scalar(1.0f)});
    gate = b.op("Mul", {b.op("Mul", {f, gate}), b.scalar(0.5f)});
    y = normalize(b.op("Add", {y, linear(gate, kInner, kWidth)}));
  }
  return b.finish(name, {kLength, kWidth}, {kLength, kWidth});
}

template <auto Build, bool Quantized>
onnx::ModelProto build(ModelBuilder& builder, const std::string& name) {
  return Build(builder, name, Quantized);
}

constexpr Network kNetworks[] = {
    {"resnet50", "ResNet-50, float32", build<buildResnet50, false>},
    {"resnet50_int8", "ResNet-50, int8", build<buildResnet50, true>},
    {"mbv2", "MobileNetV2, float32", build<buildMobilenetV2, false>},
    {"mbv2_int8", "MobileNetV2, int8", build<buildMobilenetV2, true>},
    {"bert4", "4-layer BERT encoder, 128 tokens, float32", build<buildBert, false>},
    {"bert4_int8", "4-layer BERT encoder, 128 tokens, int8", build<buildBert, true>},
    {"text_map", "small text detector as Paddle exports it, float32", buildTextMap},
    {"text_line", "small text reader as Paddle exports it, float32", buildTextLine},
};

} // namespace

std::span<const Network> networks() { return kNetworks; }

} // namespace candela::gen
