// Which devices a graph of halves is widened for.
#include <gtest/gtest.h>

#include "core/compiler/driver/precision.h"
#include "tests/unit/compiler/capabilities/tables.h"

namespace candela::driver {
namespace {

using capabilities::Table;

/// A device of f32 that converts from and to f16.
Table converting() {
  Table table = Table::required({CDL_PROFILE_BASE, CDL_PROFILE_FP32});
  table.add(CDL_KIND_CONVERT, CDL_CONVERT_TRUNC, {CDL_F16, CDL_F32});
  table.add(CDL_KIND_CONVERT, CDL_CONVERT_TRUNC, {CDL_F32, CDL_F16});
  table.add(CDL_KIND_COPY, 0, {CDL_F16, CDL_F16});
  return table;
}

/// The type in which the device has a node of the kind computed: of y = exp(x . w) of f16.
Elem computedIn(Table table, graph::OpKind kind = graph::OpKind::Exp) {
  const capabilities::Target target = table.target().orAbort();
  const capabilities::Target* const devices[] = {&target};
  graph::Graph graph;
  graph::Value* x = graph.addInput("x", {Elem::f16_, {4, 4}});
  graph::Value* w = graph.addInput("w", {Elem::f16_, {4, 4}});
  const graph::Node* product = graph.addNode(graph::OpKind::Matmul, {x, w}).orAbort();
  graph.addOutput(graph.addNode(graph::OpKind::Exp, {product->result()}).orAbort()->result(), "y");
  EXPECT_TRUE(setPrecision(graph, devices, Precision::model).isOk());
  for (const auto& node : graph.nodes())
    if (node->kind == kind) return node->result()->type.elem;
  return Elem::none;
}

TEST(Widening, IsForDevicesThatConvertAndDoNotCompute) {
  EXPECT_EQ(computedIn(converting()), Elem::f32_);
  EXPECT_EQ(computedIn(Table::required({CDL_PROFILE_BASE, CDL_PROFILE_FP32})), Elem::f16_);
  EXPECT_EQ(computedIn(Table::all()), Elem::f16_);
}

TEST(Widening, LeavesHalvesToADeviceWithARowOfThem) {
  Table table = converting();
  table.add(CDL_KIND_UNARY, CDL_UNARY_EXP, {CDL_F16, CDL_F16});
  EXPECT_EQ(computedIn(table), Elem::f16_);
}

TEST(Widening, LeavesProductsToADeviceWithRowsOfThemAlone) {
  Table table = converting();
  table.add(CDL_KIND_MATMUL, 0, {CDL_F16, CDL_F16, CDL_F16});
  EXPECT_EQ(computedIn(table), Elem::f32_);
  EXPECT_EQ(computedIn(table, graph::OpKind::Matmul), Elem::f16_);
  EXPECT_EQ(computedIn(converting(), graph::OpKind::Matmul), Elem::f32_);
}

} // namespace
} // namespace candela::driver
