//===- text.cpp - Networks that find and read text, in small --------------===//
//
// The structures of PaddleOCR's detection and recognition as Paddle exports them: opset 12, sizes
// written `?`, normalization and bias beside the products, hard swish and layer norm spelled out,
// shapes that go through int32. Channels are no multiples of 16.
//
//===----------------------------------------------------------------------===//
#include "tests/models/gen/networks.h"

#include <cmath>

namespace candela::gen {
namespace {

constexpr int64_t kOpset = 12;

struct Kernel {
  int64_t height, width, down = 1, across = 1; ///< `down`, `across`: strides
  int64_t groups = 1;
};

class TextLayers {
public:
  explicit TextLayers(ModelBuilder& builder) : b(builder) {}

  Value conv(const Value& x, int64_t in, int64_t out, const Kernel& k) {
    const int64_t fanIn = in / k.groups * k.height * k.width;
    const Value w = weights({out, in / k.groups, k.height, k.width}, fanIn);
    return b.op("Conv", {x, w},
                {{"dilations", Shape{1, 1}},
                 {"group", k.groups},
                 {"kernel_shape", Shape{k.height, k.width}},
                 {"pads", Shape{k.height / 2, k.width / 2, k.height / 2, k.width / 2}},
                 {"strides", Shape{k.down, k.across}}});
  }
  Value up(const Value& x, int64_t in, int64_t out) {
    const Value w = weights({in, out, 2, 2}, in);
    return b.op("ConvTranspose", {x, w}, {{"kernel_shape", Shape{2, 2}}, {"strides", Shape{2, 2}}});
  }
  Value normalized(const Value& x, int64_t channels) {
    std::vector<float> scale = b.random(channels, 0.1), variance = b.random(channels, 0.1);
    for (float& value : scale) value += 1.0f;
    for (float& value : variance) value += 1.0f;
    const Value gamma = b.init({channels}, scale),
                beta = b.init({channels}, b.random(channels, 0.1));
    const Value mean = b.init({channels}, b.random(channels, 0.1)),
                spread = b.init({channels}, variance);
    return b.op("BatchNormalization", {x, gamma, beta, mean, spread},
                {{"epsilon", 1e-5f}, {"momentum", 0.9f}});
  }
  Value biased(const Value& x, int64_t channels) {
    return b.op("Add", {x, b.init({1, channels, 1, 1}, b.random(channels, 0.1))});
  }
  Value hardSwish(const Value& x) {
    Value gate = b.op("Add", {x, one(3)});
    gate = b.op("Clip", {gate, b.scalar(0), b.scalar(6)});
    return b.op("Div", {b.op("Mul", {x, gate}), one(6)});
  }
  Value swish(const Value& x) {
    const Value gate = b.op("Sigmoid", {b.op("Mul", {x, one(1)})});
    return b.op("Mul", {x, gate});
  }
  /// The channels that matter, by what is in all of the image.
  Value excited(const Value& x, int64_t channels) {
    Value gate = b.op("GlobalAveragePool", {x});
    gate = b.op("Relu", {biased(conv(gate, channels, channels / 4, {1, 1}), channels / 4)});
    gate = biased(conv(gate, channels / 4, channels, {1, 1}), channels);
    gate = b.op("HardSigmoid", {gate}, {{"alpha", 0.2f}, {"beta", 0.5f}});
    return b.op("Mul", {x, gate});
  }
  Value separable(const Value& x, int64_t in, int64_t out, Kernel k) {
    k.groups = in;
    const Value y = hardSwish(normalized(conv(x, in, in, k), in));
    return hardSwish(normalized(conv(y, in, out, {1, 1}), out));
  }
  Value larger(const Value& x, float factor) {
    const Value scales = b.init({4}, std::vector<float>{1, 1, factor, factor});
    return b.op("Resize", {x, b.init({0}, std::vector<float>{}), scales},
                {{"coordinate_transformation_mode", std::string("asymmetric")},
                 {"mode", std::string("nearest")},
                 {"nearest_mode", std::string("floor")}});
  }
  Value linear(const Value& x, int64_t in, int64_t out) {
    const Value y = b.op("MatMul", {x, weights({in, out}, in)});
    return b.op("Add", {y, b.init({out}, b.random(out, 0.1))});
  }
  Value layerNorm(const Value& x, int64_t width) {
    const Value mean = b.op("ReduceMean", {x}, {{"axes", Shape{-1}}});
    const Value centred = b.op("Sub", {x, mean});
    const Value square = b.op("Pow", {centred, b.scalar(2)});
    const Value variance = b.op("ReduceMean", {square}, {{"axes", Shape{-1}}});
    const Value spread = b.op("Sqrt", {b.op("Add", {variance, b.scalar(1e-5f)})});
    const Value y =
        b.op("Mul", {b.op("Div", {centred, spread}), b.init({width}, b.random(width, 1))});
    return b.op("Add", {y, b.init({width}, b.random(width, 0.1))});
  }
  /// Every position of x[N, length, width] with every other one, by some heads.
  Value attended(const Value& x, int64_t width, int64_t heads) {
    const int64_t part = width / heads;
    const Value dims =
        b.op("Cast", {b.op("Shape", {x})}, {{"to", int64_t{onnx::TensorProto::INT32}}});
    const Value length = b.op("Slice", {dims, index(1), index(2), index(0), index(1)});
    const auto joined = [&](const std::vector<int32_t>& behind) {
      std::vector<Value> parts{asIndex(b.init({1}, std::vector<int32_t>{0})), asIndex(length)};
      for (const int32_t extent : behind)
        parts.push_back(asIndex(b.init({1}, std::vector<int32_t>{extent})));
      return b.op("Concat", parts, {{"axis", int64_t{0}}});
    };
    Value all = linear(x, width, 3 * width);
    all = b.op("Reshape",
               {all, joined({3, static_cast<int32_t>(heads), static_cast<int32_t>(part)})});
    all = b.op("Transpose", {all}, {{"perm", Shape{2, 0, 3, 1, 4}}});
    const auto one = [&](int64_t which) {
      const Value slice = b.op("Slice", {all, index(which), index(which + 1), index(0), index(1)});
      return b.op("Squeeze", {slice}, {{"axes", Shape{0}}});
    };
    const Value query = b.op("Mul", {one(0), this->one(1 / std::sqrt(static_cast<float>(part)))});
    const Value key = b.op("Transpose", {one(1)}, {{"perm", Shape{0, 1, 3, 2}}});
    const Value value = one(2);
    Value scores = b.op("MatMul", {query, key});
    scores = b.op("Softmax", {scores}, {{"axis", int64_t{3}}});
    const Value mixed =
        b.op("Transpose", {b.op("MatMul", {scores, value})}, {{"perm", Shape{0, 2, 1, 3}}});
    return linear(b.op("Reshape", {mixed, joined({static_cast<int32_t>(width)})}), width, width);
  }
  /// x[N, C, 1, W] as [N, W, C], by way of a shape that is made of x's own.
  Value rows(const Value& x) {
    const Value front = b.op("Slice", {b.op("Shape", {x}), index(0), index(2), index(0)});
    const Value dims = b.op("Concat", {front, index(-1)}, {{"axis", int64_t{0}}});
    return b.op("Transpose", {b.op("Reshape", {x, dims})}, {{"perm", Shape{0, 2, 1}}});
  }

private:
  Value weights(const Shape& shape, int64_t fanIn) {
    int64_t count = 1;
    for (const int64_t dim : shape) count *= dim;
    return b.init(shape, b.random(count, std::sqrt(2.0 / static_cast<double>(fanIn))));
  }
  Value one(float value) { return b.init({1}, std::vector<float>{value}); }
  Value index(int64_t value) { return b.init({1}, std::vector<int64_t>{value}); }
  Value asIndex(const Value& x) {
    return b.op("Cast", {x}, {{"to", int64_t{onnx::TensorProto::INT64}}});
  }

  ModelBuilder& b;
};

} // namespace

onnx::ModelProto buildTextMap(ModelBuilder& b, const std::string& name) {
  TextLayers t(b);
  const Value half = t.hardSwish(t.normalized(t.conv({"x"}, 3, 12, {3, 3, 2, 2}), 12));
  const Value quarter = t.separable(half, 12, 20, {3, 3, 2, 2});
  const Value eighth = t.excited(t.separable(quarter, 20, 40, {5, 5, 2, 2}), 40);

  Value low = t.conv(eighth, 40, 24, {1, 1});
  Value high = t.conv(quarter, 20, 24, {1, 1});
  low = b.op("Add", {low, t.excited(low, 24)});
  high = b.op("Add", {b.op("Add", {high, t.excited(high, 24)}), t.larger(low, 2)});
  const Value coarse = t.larger(t.conv(low, 24, 6, {3, 3}), 2), fine = t.conv(high, 24, 6, {3, 3});
  Value y = b.op("Concat", {coarse, fine}, {{"axis", int64_t{1}}});

  y = b.op("Relu", {t.normalized(t.conv(y, 12, 6, {3, 3}), 6)});
  y = b.op("Relu", {t.normalized(t.biased(t.up(y, 6, 6), 6), 6)});
  b.op("Sigmoid", {t.biased(t.up(y, 6, 1), 1)});
  return b.finish(name, {3, -1, -1}, {1, -1, -1}, kOpset);
}

onnx::ModelProto buildTextLine(ModelBuilder& b, const std::string& name) {
  constexpr int64_t kWidth = 40, kSigns = 37;
  TextLayers t(b);
  Value y = t.hardSwish(t.normalized(t.conv({"x"}, 3, 8, {3, 3, 2, 2}), 8));
  y = t.separable(y, 8, 24, {3, 3, 2, 1});
  y = t.separable(y, 24, 24, {5, 5, 2, 1});
  y = t.excited(t.separable(y, 24, kWidth, {5, 5, 2, 1}), kWidth);
  y = b.op("AveragePool", {y},
           {{"ceil_mode", int64_t{0}},
            {"count_include_pad", int64_t{0}},
            {"kernel_shape", Shape{3, 2}},
            {"pads", Shape{0, 0, 0, 0}},
            {"strides", Shape{3, 2}}});
  y = t.swish(t.normalized(t.conv(y, kWidth, kWidth, {1, 3}), kWidth));
  y = t.rows(y);
  y = b.op("Add", {y, t.attended(t.layerNorm(y, kWidth), kWidth, 8)});
  const Value inner = t.swish(t.linear(t.layerNorm(y, kWidth), kWidth, 2 * kWidth));
  y = t.layerNorm(b.op("Add", {y, t.linear(inner, 2 * kWidth, kWidth)}), kWidth);
  b.op("Softmax", {t.linear(y, kWidth, kSigns)}, {{"axis", int64_t{2}}});
  return b.finish(name, {3, 48, -1}, {-1, kSigns}, kOpset);
}

} // namespace candela::gen
