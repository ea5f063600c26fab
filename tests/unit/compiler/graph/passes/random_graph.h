#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/compiler/graph/text.h"
#include "core/reference/reference.h"

/// Seeded graphs full of what passes look for, and how to compare what they compute.
namespace candela::testing {

struct RandomGraph {
  graph::Graph graph;
  std::vector<Tensor> inputs;
};

class GraphMaker {
public:
  explicit GraphMaker(uint64_t seed) : rng_(seed) {}

  /// Elementwise ops, movement, reductions, convolutions and batch norms, with identities,
  /// duplicates and constants among them.
  RandomGraph makeMixed(int steps) {
    addInputs();
    for (int i = 0; i < steps; ++i) pool_.push_back(mixedStep());
    return finish();
  }
  /// Only what is one instruction of a target: chains that can be fused. Every value is a small
  /// integer, so that it does not matter where an expression rounds.
  RandomGraph makeElementwise(int steps) {
    integers_ = true;
    addInputs();
    for (int i = 0; i < steps; ++i) pool_.push_back(elementwiseStep());
    return finish();
  }

private:
  using Value = graph::Value;
  using Kind = graph::OpKind;

  int pick(int count) { return static_cast<int>(rng_() % static_cast<uint64_t>(count)); }
  /// Newer values more often, so that chains get long.
  Value* any() { return pick(2) ? pool_.back() : pool_[pick(static_cast<int>(pool_.size()))]; }

  Value* op(Kind kind, std::vector<Value*> operands, graph::Attrs attrs = {}) {
    auto node = out_.graph.addNode(kind, std::move(operands), std::move(attrs),
                                   {fmt::format("node_{}", ++names_)});
    if (!node) ADD_FAILURE() << node.status().message();
    return (*node)->result();
  }
  Value* constant(Tensor tensor) { return out_.graph.addConstant(std::move(tensor)); }
  Value* splat(const Shape& dims, float value) {
    return constant(
        Tensor::of<float>(Elem::f32_, dims, std::vector<float>(*elementCount(dims), value)));
  }
  Tensor numbers(const Shape& dims) {
    if (!integers_) return *randomTensor(Elem::f32_, dims, rng_());
    std::vector<float> values(*elementCount(dims));
    for (float& value : values) value = static_cast<float>(pick(17) - 8);
    return Tensor::of<float>(Elem::f32_, dims, values);
  }
  Value* randomConstant(const Shape& dims) { return constant(numbers(dims)); }

  void addInputs() {
    for (const Shape& dims : {Shape{2, 3, 4}, Shape{4}, Shape{1, 2, 4, 3}}) {
      pool_.push_back(out_.graph.addInput(fmt::format("x{}", pool_.size()), {Elem::f32_, dims}));
      out_.inputs.push_back(numbers(dims));
    }
  }

  RandomGraph finish() {
    std::vector<Value*> outputs{pool_.back()};
    for (int i = 0; i < 3; ++i) {
      Value* value = any();
      if (value->producer && !value->isConstant() &&
          std::find(outputs.begin(), outputs.end(), value) == outputs.end())
        outputs.push_back(value);
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      out_.graph.addOutput(outputs[i], fmt::format("out {}", i));
    return std::move(out_);
  }

  /// A constant that broadcasts to the shape: neutral elements more often than not.
  Value* partner(const Shape& dims) {
    const float values[] = {0.0f, -0.0f, 1.0f, integers_ ? 2.0f : 0.5f};
    switch (pick(4)) {
    case 0: return splat({}, values[pick(4)]);
    case 1: return splat(dims, values[pick(4)]);
    case 2: return randomConstant(dims);
    default: return randomConstant({dims.empty() ? 1 : dims.back()});
    }
  }

  Value* binary(Value* x) {
    static constexpr Kind kKinds[] = {Kind::Add, Kind::Sub, Kind::Mul, Kind::Min, Kind::Max};
    const Kind kind = kKinds[pick(5)];
    Value* y = any();
    if (!(y->type == x->type) || (integers_ && kind == Kind::Mul)) y = partner(x->type.shape());
    return pick(2) ? op(kind, {x, y}) : op(kind, {y, x});
  }

  Value* elementwiseStep() {
    Value* x = any();
    static constexpr Kind kUnary[] = {Kind::Neg, Kind::Abs, Kind::Floor};
    switch (pick(7)) {
    case 0: return op(kUnary[pick(3)], {x});
    case 1:
      return op(Kind::Select,
                {op(Kind::Less, {x, partner(x->type.shape())}), x, partner(x->type.shape())});
    case 2:
      return op(Kind::Cast,
                {
                    op(Kind::Cast, {x}, {{"to", Elem::i32_}}),
                },
                {{"to", Elem::f32_}});
    default: return binary(x);
    }
  }

  std::vector<int64_t> permutation(int rank) {
    std::vector<int64_t> perm(rank);
    for (int i = 0; i < rank; ++i) perm[i] = i;
    std::shuffle(perm.begin(), perm.end(), rng_);
    return perm;
  }

  Value* movement(Value* x) {
    const Shape dims = x->type.shape();
    const int rank = x->type.rank();
    const Shape flat{*elementCount(dims)};
    switch (pick(7)) {
    case 0: return op(Kind::Reshape, {x}, {{"shape", dims}});
    case 1:
      return op(Kind::Reshape, {op(Kind::Reshape, {x}, {{"shape", flat}})}, {{"shape", dims}});
    case 2: return op(Kind::Transpose, {x}, {{"perm", permutation(rank)}});
    case 3: return op(Kind::Expand, {x}, {{"shape", dims}});
    case 4: {
      Shape counts = dims;
      if (rank && counts[0] > 1 && pick(2)) --counts[0];
      return op(Kind::Slice, {x},
                {{"starts", Shape(rank, 0)}, {"counts", counts}, {"steps", Shape(rank, 1)}});
    }
    case 5: {
      Shape lo(rank, 0);
      if (rank && flat[0] < 200 && pick(2)) lo[pick(rank)] = 1;
      return op(Kind::Pad, {x}, {{"lo", lo}, {"hi", Shape(rank, 0)}});
    }
    default:
      return rank && flat[0] < 200 ? op(Kind::Concat, {x, x}, {{"axis", int64_t{0}}})
                                   : op(Kind::Neg, {x});
    }
  }

  Value* batchNorm(Value* x) {
    const int64_t c = x->type.dim(1);
    std::vector<float> var(c);
    for (float& v : var) v = 0.5f + static_cast<float>(pick(100)) / 50;
    return op(Kind::BatchNorm,
              {x, randomConstant({c}), randomConstant({c}), randomConstant({c}),
               constant(Tensor::of<float>(Elem::f32_, {c}, var))},
              {{"epsilon", 1e-3}});
  }

  Value* contraction(Value* x) {
    const int64_t count = x->type.count(), bias = pick(2);
    if (count % 4) return op(Kind::Relu, {x});
    if (pick(2)) {
      Value* rows = op(Kind::Reshape, {x}, {{"shape", Shape{count / 4, 4}}});
      const bool transposed = pick(2);
      std::vector<Value*> operands{rows, randomConstant(transposed ? Shape{3, 4} : Shape{4, 3})};
      if (bias) operands.push_back(randomConstant(pick(2) ? Shape{3} : Shape{1, 1}));
      Value* y = op(Kind::Gemm, operands,
                    {{"transB", int64_t{transposed}}, {"alpha", 0.5}, {"beta", 2.0}});
      return batchNorm(y);
    }
    Value* image = op(Kind::Reshape, {x}, {{"shape", Shape{1, 2, count / 4, 2}}});
    std::vector<Value*> operands{image, randomConstant({4, 1, 1, 2})};
    if (bias) operands.push_back(randomConstant({4}));
    return batchNorm(
        op(Kind::Conv, operands, {{"group", int64_t{2}}, {"pads", Shape{0, 1, 0, 0}}}));
  }

  Value* number(float value) { return splat({}, value); }

  /// GELU or a norm in small steps, or nearly so.
  Value* spelledOut(Value* x) {
    if (pick(2)) {
      Value* gate = op(Kind::Erf, {op(Kind::Div, {x, number(pick(4) ? 1.41421354f : 2.0f)})});
      gate = op(Kind::Add, {gate, number(1)});
      return pick(2) ? op(Kind::Mul, {op(Kind::Mul, {x, gate}), number(0.5f)})
                     : op(Kind::Mul, {gate, op(Kind::Mul, {number(0.5f), x})});
    }
    const int rank = x->type.rank();
    if (rank == 0) return op(Kind::Abs, {x});
    if (rank == 3 && pick(2)) {
      Value* scores = op(Kind::Matmul, {x, op(Kind::Transpose, {x}, {{"perm", Shape{0, 2, 1}}})});
      if (pick(2)) scores = op(Kind::Mul, {scores, number(0.5f)});
      if (pick(2)) scores = op(Kind::Add, {scores, randomConstant({scores->type.dim(-1)})});
      return op(Kind::Matmul,
                {op(Kind::Softmax, {scores}, {{"axis", int64_t{pick(4) ? 2 : 1}}}), x});
    }
    const graph::Attrs rows{{"axes", Shape{pick(4) ? rank - 1 : 0}}};
    Value* n = pick(2) ? x : op(Kind::Sub, {x, op(Kind::ReduceMean, {x}, rows)});
    Value* square = pick(2) ? op(Kind::Mul, {n, n}) : op(Kind::Pow, {n, number(2)});
    Value* spread =
        op(Kind::Sqrt, {op(Kind::Add, {op(Kind::ReduceMean, {square}, rows), number(0.5f)})});
    Value* y =
        pick(2) ? op(Kind::Div, {n, spread}) : op(Kind::Mul, {n, op(Kind::Reciprocal, {spread})});
    if (pick(2)) y = op(Kind::Mul, {y, randomConstant({x->type.dim(-1)})});
    return pick(2) ? op(Kind::Add, {y, randomConstant({x->type.dim(-1)})}) : y;
  }

  /// Quantized and back, in steps of a power of two: float arithmetic on such values is exact.
  Value* inSteps(Value* x) {
    const bool isSigned = pick(2);
    const auto zero = static_cast<uint8_t>(pick(3) ? (isSigned ? 0 : 128) : pick(100));
    Value* scale = number(std::ldexp(1.0f, -3 - pick(3)));
    Value* point = constant(Tensor::of<uint8_t>(isSigned ? Elem::i8_ : Elem::u8_, {}, {zero}));
    return op(Kind::Dequantize, {op(Kind::Quantize, {x, scale, point}), scale, point});
  }
  Value* weights(const Shape& dims) {
    Value* scale = number(std::ldexp(1.0f, -4));
    return op(Kind::Dequantize,
              {constant(*randomTensor(pick(2) ? Elem::i8_ : Elem::u8_, dims, rng_())), scale});
  }

  Value* quantizedStep(Value* x) {
    const int64_t count = x->type.count();
    Value *d = inSteps(x), *y = d;
    switch (pick(8)) {
    case 0: y = op(Kind::Add, {d, inSteps(op(Kind::Neg, {x}))}); break;
    case 1: y = op(Kind::Mul, {d, inSteps(op(Kind::Abs, {x}))}); break;
    case 2: y = op(Kind::Sigmoid, {d}); break;
    case 3: y = movement(d); break;
    case 4:
      if (x->type.rank() && x->type.dim(-1) == 4)
        y = op(Kind::ReduceMean, {d}, {{"axes", Shape{-1}}});
      break;
    default:
      if (count % 4 || count == 0) break;
      if (pick(2)) {
        Value* image = op(Kind::Reshape, {d}, {{"shape", Shape{1, 2, count / 4, 2}}});
        y = op(Kind::Conv, {image, weights({4, 1, 1, 2}), splat({4}, 2.5f)},
               {{"group", int64_t{2}}, {"pads", Shape{0, 1, 0, 0}}});
      } else {
        y = op(Kind::Matmul,
               {op(Kind::Reshape, {d}, {{"shape", Shape{count / 4, 4}}}), weights({4, 3})});
        if (pick(2)) y = op(Kind::Add, {y, splat({3}, -1.5f)});
      }
    }
    if (pick(2)) y = op(Kind::Relu, {y});
    return pick(4) ? inSteps(y) : y;
  }

  /// What arithmetic can say shorter.
  Value* roundabout(Value* x) {
    switch (pick(8)) {
    case 0: return op(Kind::Sub, {x, op(Kind::Neg, {x})});
    case 1: return op(Kind::Div, {x, number(pick(2) ? 4.0f : 3.0f)});
    case 2: return op(Kind::Mul, {op(Kind::Mul, {x, number(0.75f)}), number(-1.5f)});
    case 3: return op(Kind::Pow, {op(Kind::Abs, {x}), number(pick(2) ? 1.0f : 2.0f)});
    case 4:
      return op(Kind::Relu, {op(Kind::Clip, {x, number(-1), number(pick(2) ? 0.5f : -0.25f)})});
    case 5:
      return op(Kind::Clip, {op(Kind::Relu, {x}), number(pick(2) ? 0.25f : -2.0f), number(0.5f)});
    case 6:
      return op(Kind::Reciprocal,
                {op(Kind::Add, {op(Kind::Exp, {op(Kind::Neg, {x})}), number(1)})});
    default: {
      const int rank = x->type.rank();
      if (rank == 0) return op(Kind::Neg, {op(Kind::Neg, {x})});
      const graph::Attrs axes{{"axes", Shape{pick(rank)}}};
      Value* e = op(Kind::Exp, {pick(2) ? op(Kind::Sub, {x, op(Kind::ReduceMax, {x}, axes)}) : x});
      return op(Kind::Div, {e, op(Kind::ReduceSum, {e}, axes)});
    }
    }
  }

  /// A border before a window.
  Value* bordered(Value* x) {
    const int64_t count = x->type.count();
    if (count % 4 || count == 0 || count > 400) return op(Kind::Abs, {x});
    Value* image = op(Kind::Reshape, {x}, {{"shape", Shape{1, 2, count / 4, 2}}});
    const graph::Attrs border{{"lo", Shape{0, pick(8) == 0, 1, 0}},
                              {"hi", Shape{0, 0, 1, pick(3)}}};
    const bool conv = pick(2);
    Value* padded = op(Kind::Pad, {image, number(conv || pick(3) == 0 ? 0 : -INFINITY)}, border);
    if (!conv) return op(Kind::MaxPool, {padded}, {{"kernel_shape", Shape{2, 2}}});
    const Shape kernel{4, padded->type.dim(1), 2, 2};
    Value* y = op(Kind::Conv, {padded, randomConstant(kernel)}, {{"pads", Shape{1, 0, 0, 0}}});
    return op(pick(2) ? Kind::Mul : Kind::Add,
              {y, randomConstant(pick(2) ? Shape{4, 1, 1} : Shape{1})});
  }

  /// Between two transposes, as networks are that came from channels-last ones.
  Value* transposed(Value* x) {
    const int rank = x->type.rank();
    if (rank < 2) return op(Kind::Abs, {x});
    const auto perm = permutation(rank);
    std::vector<int64_t> back(perm.size());
    for (int i = 0; i < rank; ++i) back[perm[i]] = i;
    Value* y = op(Kind::Transpose, {x}, {{"perm", perm}});
    switch (pick(5)) {
    case 0: y = op(Kind::Add, {y, randomConstant({y->type.dim(-1)})}); break;
    case 1: y = op(Kind::Mul, {op(Kind::Sigmoid, {y}), y}); break;
    case 2: y = op(Kind::Concat, {y, op(Kind::Neg, {y})}, {{"axis", int64_t{pick(rank)}}}); break;
    case 3: y = op(Kind::ReduceMax, {y}, {{"axes", Shape{pick(rank)}}}); break;
    default: y = op(Kind::Clip, {y, number(-1), number(1)});
    }
    return pick(4) ? op(Kind::Transpose, {y}, {{"perm", back}}) : y;
  }

  Value* mixedStep() {
    Value* x = any();
    switch (pick(23)) {
    case 17:
    case 18: return roundabout(x);
    case 19:
    case 20: return bordered(x);
    case 21:
    case 22: return transposed(x);
    case 11: return spelledOut(x);
    case 12:
    case 13: return quantizedStep(x);
    case 0:
    case 1:
    case 2: return movement(x);
    case 3: return contraction(x);
    case 4: return x->type.rank() >= 2 ? batchNorm(x) : op(Kind::Tanh, {x});
    case 5:
      return op(Kind::Clip, {op(Kind::Clip, {x, splat({}, -0.5f), nullptr}), splat({}, -0.75f),
                             splat({}, 0.5f)});
    case 6: return op(Kind::Relu, {op(Kind::Relu, {x})});
    case 7: {
      const Elem middle = pick(2) ? Elem::f16_ : Elem::f64_;
      return op(Kind::Cast, {op(Kind::Cast, {x}, {{"to", middle}})}, {{"to", Elem::f32_}});
    }
    case 8: return op(Kind::Add, {op(Kind::Sigmoid, {x}), op(Kind::Sigmoid, {x})});
    case 9: return op(Kind::Mul, {x, op(Kind::Neg, {randomConstant(x->type.shape())})});
    case 10:
      return x->type.rank() ? op(Kind::ReduceSum, {x}, {{"axes", Shape{0}}}) : op(Kind::Abs, {x});
    default: return elementwiseStep();
    }
  }

  std::mt19937_64 rng_;
  RandomGraph out_;
  std::vector<Value*> pool_;
  int names_ = 0;
  bool integers_ = false;
};

/// Equal numbers, NaN like NaN; with a tolerance relative to the larger magnitude, at least 1.
inline void expectSame(const std::vector<Tensor>& expected, const std::vector<Tensor>& got,
                       double tolerance) {
  ASSERT_EQ(expected.size(), got.size());
  for (size_t t = 0; t < expected.size(); ++t) {
    ASSERT_EQ(expected[t].typeText(), got[t].typeText());
    const auto a = reference::fromTensor(expected[t]), b = reference::fromTensor(got[t]);
    ASSERT_TRUE(a.isOk() && b.isOk());
    ASSERT_EQ(a->whole, b->whole);
    for (size_t i = 0; i < a->real.size(); ++i) {
      const double x = a->real[i], y = b->real[i];
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      ASSERT_LE(std::abs(x - y), tolerance * std::max({1.0, std::abs(x), std::abs(y)}))
          << "output " << t << " element " << i;
    }
  }
}

inline std::string textOf(const graph::Graph& graph) {
  auto text = graph::print(graph);
  return text ? *text : text.status().message();
}

/// Names, types and order of what the model's user sees.
inline std::string interfaceOf(const graph::Graph& graph) {
  std::string text;
  for (const graph::Value* input : graph.inputs())
    text += fmt::format("{}: {}, ", input->name, input->type.text());
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    text += fmt::format("{}: {}, ", graph.outputNames()[i], graph.outputs()[i]->type.text());
  return text;
}

} // namespace candela::testing
