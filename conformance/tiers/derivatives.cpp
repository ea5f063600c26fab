#include "conformance/tiers/derivatives.h"

#include <cmath>
#include <numbers>

namespace candela::conformance::tiers {
namespace {

using graph::OpKind;
using Numbers = std::vector<double>;

double square(double x) { return x * x; }
double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// Of functions of one number, at x.
std::optional<double> slopeAt(OpKind kind, double x) {
  switch (kind) {
  case OpKind::Neg: return -1;
  case OpKind::Abs: return x > 0 ? 1 : -1;
  case OpKind::Relu: return x > 0 ? 1 : 0;
  case OpKind::Sqrt: return 0.5 / std::sqrt(x);
  case OpKind::Reciprocal: return -1 / square(x);
  case OpKind::Exp: return std::exp(x);
  case OpKind::Expm1: return std::exp(x);
  case OpKind::Log: return 1 / x;
  case OpKind::Log1p: return 1 / (1 + x);
  case OpKind::Tanh: return 1 - square(std::tanh(x));
  case OpKind::Sigmoid: return logistic(x) * logistic(-x);
  case OpKind::Erf: return 2 / std::sqrt(std::numbers::pi) * std::exp(-square(x));
  case OpKind::Sin: return std::cos(x);
  case OpKind::Cos: return -std::sin(x);
  case OpKind::Tan: return 1 / square(std::cos(x));
  case OpKind::Asin: return 1 / std::sqrt(1 - square(x));
  case OpKind::Acos: return -1 / std::sqrt(1 - square(x));
  case OpKind::Atan: return 1 / (1 + square(x));
  case OpKind::Sinh: return std::cosh(x);
  case OpKind::Cosh: return std::sinh(x);
  case OpKind::Asinh: return 1 / std::sqrt(square(x) + 1);
  case OpKind::Acosh: return 1 / std::sqrt(square(x) - 1);
  case OpKind::Atanh: return 1 / (1 - square(x));
  case OpKind::Floor:
  case OpKind::Ceil:
  case OpKind::Trunc:
  case OpKind::RoundEven: return 0;
  default: return std::nullopt;
  }
}

struct TwoSlopes {
  double first, second;
};
/// Of functions of two numbers.
std::optional<TwoSlopes> slopesAt(OpKind kind, double a, double b) {
  switch (kind) {
  case OpKind::Add: return TwoSlopes{1, 1};
  case OpKind::Sub: return TwoSlopes{1, -1};
  case OpKind::Mul: return TwoSlopes{b, a};
  case OpKind::Div: return TwoSlopes{1 / b, -a / square(b)};
  case OpKind::Pow: return TwoSlopes{b * std::pow(a, b - 1), std::pow(a, b) * std::log(a)};
  default: return std::nullopt;
  }
}

Numbers numbersOf(const Tensor& tensor) {
  return {tensor.as<float>(), tensor.as<float>() + tensor.count()};
}

/// Which element of an operand broadcasting repeats at element `i` of a result.
int64_t sourceOf(int64_t i, const Shape& result, const Shape& operand) {
  int64_t at = 0;
  int64_t step = 1;
  for (size_t d = 0; d < result.size(); ++d) {
    const int64_t extent = result[result.size() - 1 - d];
    const int64_t index = i % extent;
    i /= extent;
    if (d >= operand.size()) continue;
    const int64_t own = operand[operand.size() - 1 - d];
    at += (own == 1 ? 0 : index) * step;
    step *= own;
  }
  return at;
}

/// Sums over what broadcasting repeated, in the order of the result.
std::vector<Numbers> ofTwo(const graph::Node& node, std::span<const Tensor> inputs,
                           const Numbers& weights) {
  const Shape result = node.result()->type.shape();
  const Numbers a = numbersOf(inputs[0]);
  const Numbers b = numbersOf(inputs[1]);
  std::vector<Numbers> sums{Numbers(a.size(), 0.0), Numbers(b.size(), 0.0)};
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto first = static_cast<size_t>(sourceOf(int64_t(i), result, inputs[0].dims));
    const auto second = static_cast<size_t>(sourceOf(int64_t(i), result, inputs[1].dims));
    const auto slopes = slopesAt(node.kind, a[first], b[second]);
    if (!slopes) return {};
    sums[0][first] += weights[i] * slopes->first;
    sums[1][second] += weights[i] * slopes->second;
  }
  return sums;
}

/// y = a . b of two matrices: the weights times the other one's transposed.
std::vector<Numbers> ofMatrices(std::span<const Tensor> inputs, const Numbers& weights) {
  const auto rows = static_cast<size_t>(inputs[0].dims[0]);
  const auto terms = static_cast<size_t>(inputs[0].dims[1]);
  const auto columns = static_cast<size_t>(inputs[1].dims[1]);
  const Numbers a = numbersOf(inputs[0]);
  const Numbers b = numbersOf(inputs[1]);
  std::vector<Numbers> sums{Numbers(a.size(), 0.0), Numbers(b.size(), 0.0)};
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c)
      for (size_t t = 0; t < terms; ++t) {
        sums[0][r * terms + t] += weights[r * columns + c] * b[t * columns + c];
        sums[1][t * columns + c] += weights[r * columns + c] * a[r * terms + t];
      }
  return sums;
}

} // namespace

std::vector<std::vector<double>> derivativesOf(const graph::Graph& graph,
                                               std::span<const Tensor> inputs,
                                               const judge::Weights& weights) {
  const graph::Node& node = *graph.outputs()[0]->producer;
  std::vector<std::vector<double>> none(inputs.size());
  for (const Tensor& input : inputs)
    if (input.elem != Elem::f32_) return none;
  const bool areOperands = inputs.size() == node.operands().size();
  if (inputs.size() == 1 && areOperands && slopeAt(node.kind, 1)) {
    Numbers made = numbersOf(inputs[0]);
    for (size_t i = 0; i < made.size(); ++i) made[i] = weights[0][i] * *slopeAt(node.kind, made[i]);
    return {made};
  }
  if (inputs.size() != 2 || !areOperands) return none;
  if (node.kind == OpKind::Matmul && inputs[0].dims.size() == 2 && inputs[1].dims.size() == 2)
    return ofMatrices(inputs, weights[0]);
  std::vector<Numbers> made = ofTwo(node, inputs, weights[0]);
  return made.empty() ? none : made;
}

} // namespace candela::conformance::tiers
