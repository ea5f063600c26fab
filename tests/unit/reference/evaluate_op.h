#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/reference/reference.h"

namespace candela::reference {

using graph::Attrs;
using graph::OpKind;
using Ints = std::vector<int64_t>;

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// A tensor of any element type from plain numbers.
inline Tensor tensor(Elem elem, Shape dims, const std::vector<double>& values) {
  Array array(elem, std::move(dims));
  EXPECT_EQ(static_cast<size_t>(array.count()), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (isFloat(elem))
      array.real[i] = values[i];
    else
      array.whole[i] = static_cast<__int128>(values[i]);
  }
  return toTensor(array).value();
}
inline Tensor f32(Shape dims, const std::vector<double>& values) {
  return tensor(Elem::f32_, std::move(dims), values);
}
inline Tensor i32(Shape dims, const std::vector<double>& values) {
  return tensor(Elem::i32_, std::move(dims), values);
}

/// The elements as plain numbers.
inline std::vector<double> numbers(const Tensor& tensor) {
  const Array array = fromTensor(tensor).value();
  if (isFloat(tensor.elem)) return array.real;
  std::vector<double> out;
  for (const __int128 value : array.whole) out.push_back(static_cast<double>(value));
  return out;
}

/// All results of one node on these operands; one without a type is absent.
inline Result<std::vector<Tensor>> evaluateOp(OpKind kind, const std::vector<Tensor>& operands,
                                              Attrs attrs = {}, int results = 1) {
  graph::Graph graph;
  std::vector<graph::Value*> values;
  for (const Tensor& operand : operands)
    values.push_back(operand.elem == Elem::none
                         ? nullptr
                         : graph.addInput("x", graph::TensorType(operand.elem, operand.dims)));
  const auto node = graph.addNode(kind, values, std::move(attrs), {}, nullptr, results);
  if (!node) return node.status();
  return evaluate(**node, operands);
}

/// The only result's elements; empty, with a test failure, when the op fails.
inline std::vector<double> op(OpKind kind, const std::vector<Tensor>& operands, Attrs attrs = {}) {
  const auto results = evaluateOp(kind, operands, std::move(attrs));
  EXPECT_TRUE(results) << results.status().message();
  return results ? numbers((*results)[0]) : std::vector<double>{};
}

/// Equal elements, NaN to NaN; zeros by sign too.
MATCHER_P(Numbers, expected, "") {
  if (arg.size() != expected.size()) return false;
  for (size_t i = 0; i < expected.size(); ++i) {
    const bool nan = std::isnan(arg[i]) && std::isnan(expected[i]);
    if (!nan && (arg[i] != expected[i] || std::signbit(arg[i]) != std::signbit(expected[i]))) {
      *result_listener << "element " << i << " is " << arg[i];
      return false;
    }
  }
  return true;
}
inline auto are(std::vector<double> expected) { return Numbers(std::move(expected)); }
/// f32 neighbours: what a literal of eight digits pins down.
inline auto near(const std::vector<double>& expected) {
  std::vector<testing::Matcher<double>> out;
  for (const double value : expected)
    out.push_back(testing::DoubleNear(value, std::fabs(value) * 1e-7 + 1e-12));
  return testing::ElementsAreArray(out);
}

} // namespace candela::reference
