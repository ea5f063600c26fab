#pragma once

#include "tests/backends/cpu/network_parts.h"

namespace candela::testing {

/// What a network is made of, in shapes where panels and vectors have rests. Every step is
/// continuous and keeps numbers near 1, so that a rounding stays one.
class NetworkMaker : NetworkParts {
public:
  explicit NetworkMaker(uint64_t seed, bool quantized = false) : NetworkParts(seed, quantized) {}

  RandomGraph make(int steps) {
    const int64_t batch = pick(2) + 1, ins = channels(), height = 5 + pick(9), width = 5 + pick(9);
    value_ = image({batch, ins, height, width});
    for (int i = 0; i < steps; ++i) {
      value_ = boundary(value_);
      imageStep();
    }
    value_ = boundary(value_);
    if (pick(2)) value_ = op(Kind::GlobalAveragePool, {value_});
    const Shape dims = value_->type.shape();
    value_ = op(Kind::Reshape, {value_}, {{"shape", Shape{dims[0], dims[2] * dims[3], dims[1]}}});
    for (int i = 0; i < steps && !quantized_; ++i) rowStep();
    if (quantized_)
      value_ = boundary(op(Kind::Matmul, {boundary(value_), weights({dims[1], channels()}, 0.5)}));
    out_.graph.addOutput(value_, "y");
    return std::move(out_);
  }

private:
  int64_t channels() { return oneOf({1, 3, 8, 12, 16, 17, 32}); }
  /// Quantized and back, where the network is.
  Value* boundary(Value* x) {
    if (!quantized_) return x;
    const int64_t zero = oneOf({0, 77, 128});
    return throughBytes(x, isUnsigned_ ? Elem::u8_ : Elem::i8_, static_cast<uint8_t>(zero));
  }
  Value* weights(const Shape& dims, double size) {
    if (!quantized_ || dims.size() <= 1) return floatWeights(dims, size);
    const Elem elem = pick(4) ? Elem::i8_ : Elem::u8_;
    return byteWeights(dims, size, elem);
  }
  Value* activation(Value* x) {
    if (quantized_)
      return boundary(pick(2) ? op(Kind::Relu, {x}) : op(Kind::Sigmoid, {boundary(x)}));
    static constexpr Kind kKinds[] = {Kind::Relu, Kind::Tanh, Kind::Sigmoid, Kind::Erf};
    if (pick(6) == 0) return op(Kind::Clip, {x, weights({}, 0), nullptr});
    if (pick(4) == 0) return op(Kind::Mul, {x, op(Kind::Sigmoid, {x})});
    return op(kKinds[pick(4)], {x});
  }

  void imageStep() {
    const Shape x = value_->type.shape();
    const int64_t kernel = std::min<int64_t>(1 + 2 * pick(3), std::min(x[2], x[3]));
    const int64_t stride = 1 + pick(x[2] > 6 && x[3] > 6 ? 2 : 1), pad = pick(kernel / 2 + 1);
    const graph::Attrs window{{"kernel_shape", Shape{kernel, kernel}},
                              {"strides", Shape{stride, stride}},
                              {"pads", Shape{pad, pad, pad, pad}}};
    switch (pick(7)) {
    case 0: value_ = op(Kind::MaxPool, {value_}, window); return;
    case 1: value_ = op(Kind::AveragePool, {value_}, window); return;
    case 2: value_ = activation(value_); return;
    case 3: // a block with a way around it
      value_ = op(Kind::Add, {value_, activation(convolution(x[1], 1, 1, 0, x[1], 1))});
      return;
    case 4: { // depthwise
      value_ = activation(convolution(x[1], kernel, stride, pad, 1, x[1]));
      return;
    }
    case 5:
      value_ = op(Kind::Concat, {value_, activation(convolution(channels(), 1, 1, 0, x[1], 1))},
                  {{"axis", int64_t{1}}});
      break;
    default: value_ = convolution(channels(), kernel, stride, pad, x[1], 1); break;
    }
    if (value_->type.dim(1) > 64) value_ = convolution(16, 1, 1, 0, value_->type.dim(1), 1);
  }
  Value* convolution(int64_t outs, int64_t kernel, int64_t stride, int64_t pad, int64_t ins,
                     int64_t group) {
    const double size = 1.5 / std::sqrt(static_cast<double>(ins * kernel * kernel));
    std::vector<Value*> operands{value_, weights({outs, ins, kernel, kernel}, size)};
    if (pick(3)) operands.push_back(weights({outs}, 0.5));
    Value* y = op(Kind::Conv, operands,
                  {{"group", group},
                   {"strides", Shape{stride, stride}},
                   {"pads", Shape{pad, pad, pad, pad}}});
    return pick(2) ? activation(y) : y;
  }

  void rowStep() {
    const Shape x = value_->type.shape();
    switch (pick(6)) {
    case 0: value_ = op(Kind::Softmax, {value_}, {{"axis", pick(3)}}); return;
    case 1: { // normalisation, written out
      Value* mean = op(Kind::ReduceMean, {value_}, {{"axes", Shape{2}}});
      Value* centred = op(Kind::Sub, {value_, mean});
      Value* variance =
          op(Kind::ReduceMean, {op(Kind::Mul, {centred, centred})}, {{"axes", Shape{2}}});
      Value* spread =
          op(Kind::Sqrt,
             {op(Kind::Add,
                 {variance, out_.graph.addConstant(Tensor::of<float>(Elem::f32_, {}, {0.1f}))})});
      value_ = op(Kind::Div, {centred, spread});
      return;
    }
    case 2: { // attention of rows to each other
      Value* turned = op(Kind::Transpose, {value_}, {{"perm", Shape{0, 2, 1}}});
      Value* scores =
          op(Kind::Softmax, {op(Kind::Matmul, {value_, turned})}, {{"axis", int64_t{2}}});
      value_ = op(Kind::Matmul, {scores, value_});
      return;
    }
    case 3: {
      const int64_t most = pick(2) ? 2 : 1;
      value_ = op(most == 2 ? Kind::ReduceMax : Kind::ReduceMean, {value_}, {{"axes", Shape{1}}});
      return;
    }
    case 4: value_ = activation(value_); return;
    default: {
      const int64_t outs = channels();
      Value* before = value_;
      value_ = op(Kind::Matmul,
                  {value_, weights({x[2], outs}, 1.5 / std::sqrt(static_cast<double>(x[2])))});
      if (pick(2))
        value_ = op(Kind::Reshape, {value_}, {{"shape", Shape{1, x[0] * x[1], 1, outs}}});
      if (pick(2)) value_ = op(Kind::Add, {value_, weights({outs}, 0.5)});
      if (pick(3) == 0) value_ = op(Kind::Gelu, {value_});
      if (pick(2)) value_ = activation(value_);
      value_ = op(Kind::Reshape, {value_}, {{"shape", Shape{x[0], x[1], outs}}});
      if (outs == x[2] && pick(2)) value_ = op(Kind::Add, {value_, before});
      if (pick(4) == 0) value_ = op(Kind::Mul, {value_, weights({x[1], 1}, 1)});
    }
    }
  }

  /// all activations: only then is a function between them a table
  const bool isUnsigned_ = pick(3) != 0;
  Value* value_ = nullptr;
};

} // namespace candela::testing
