#pragma once

#include <gtest/gtest.h>

#include <random>

#include "core/compiler/graph/graph.h"

namespace candela::testing {

struct Network {
  graph::Graph graph;
  std::vector<Tensor> inputs;
};

/// Small convolution networks from a seed: branches, residuals, channels of every number, pools,
/// concatenations, sums over space, transposes in between.
class NetworkMaker {
public:
  /// `space`: height and width of the input, or up to 3 more.
  explicit NetworkMaker(uint64_t seed, int64_t space = 5) : rng_(seed), space_(space) {}

  Network make() {
    const Shape shape{1 + pick(2), channels(), space_ + pick(4), space_ + pick(4)};
    out_.inputs = {*randomTensor(Elem::f32_, shape, rng_())};
    pool_ = {out_.graph.addInput("x", graph::TensorType(Elem::f32_, shape))};
    for (int steps = 3 + pick(8); steps-- > 0;) pool_.push_back(step(any()));
    out_.graph.addOutput(pool_.back(), "last");
    if (Value* other = any(); other->producer && other != pool_.back())
      out_.graph.addOutput(other, "other");
    out_.graph.eraseDead();
    return std::move(out_);
  }

private:
  using Value = graph::Value;
  using Kind = graph::OpKind;

  int64_t pick(int64_t count) {
    return static_cast<int64_t>(rng_() % static_cast<uint64_t>(count));
  }
  int64_t channels() { return std::vector<int64_t>{3, 4, 6, 8, 8, 12}[pick(6)]; }
  Value* any() { return pick(3) ? pool_.back() : pool_[pick(static_cast<int64_t>(pool_.size()))]; }

  Value* op(Kind kind, std::vector<Value*> operands, graph::Attrs attrs = {}) {
    auto node = out_.graph.addNode(kind, std::move(operands), std::move(attrs));
    if (!node) ADD_FAILURE() << node.status().message();
    return (*node)->result();
  }
  Value* constant(const Shape& shape) {
    return out_.graph.addConstant(*randomTensor(Elem::f32_, shape, rng_()));
  }

  Value* step(Value* x) {
    const Shape dims = x->type.shape();
    const int64_t pad = pick(3) ? 1 : 0;
    const bool canShrink = dims[2] > 3 && dims[3] > 3;
    const std::vector<int64_t> strides(2, canShrink && !pick(4) ? 2 : 1),
        pads(4, canShrink ? pad : 1);
    switch (pick(10)) {
    case 0: return op(Kind::Relu, {x});
    case 1: return op(Kind::Mul, {x, constant({dims[1], 1, 1})});
    case 2: return op(Kind::Add, {x, partner(x)});
    case 3:
      return op(Kind::MaxPool, {x},
                {{"kernel_shape", Shape{3, 3}}, {"pads", pads}, {"strides", strides}});
    case 4:
      return op(Kind::AveragePool, {x},
                {{"kernel_shape", Shape{3, 3}}, {"pads", pads}, {"strides", strides}});
    case 5: return op(Kind::Concat, {x, partner(x)}, {{"axis", int64_t(1)}});
    case 6:
      if (pick(2)) return op(Kind::Mul, {x, op(Kind::Sigmoid, {op(Kind::GlobalAveragePool, {x})})});
      return op(Kind::Transpose, {x}, {{"perm", Shape{0, 1, 3, 2}}});
    case 7: return conv(x, dims[1], dims[1], 3, strides, pads);
    default: return conv(x, channels(), 1, pick(2) ? 3 : 1, strides, pads);
    }
  }
  Value* conv(Value* x, int64_t outs, int64_t group, int64_t kernel, Shape strides, Shape pads) {
    const int64_t ins = x->type.dim(1);
    std::vector<Value*> operands{x, constant({outs, ins / group, kernel, kernel})};
    if (pick(2)) operands.push_back(constant({outs}));
    return op(Kind::Conv, operands,
              {{"strides", std::move(strides)}, {"pads", std::move(pads)}, {"group", group}});
  }
  /// Of the same shape.
  Value* partner(const Value* x) {
    for (Value* other : pool_)
      if (other != x && other->type.shape() == x->type.shape() && pick(2)) return other;
    return pick(2) ? const_cast<Value*>(x) : constant(x->type.shape());
  }

  std::mt19937_64 rng_;
  int64_t space_;
  Network out_;
  std::vector<Value*> pool_;
};

} // namespace candela::testing
