#pragma once

#include <gmock/gmock.h>

#include "core/compiler/lowering/partition/partition.h"
#include "tests/unit/compiler/capabilities/tables.h"

/// What tests of partitions share.
namespace candela::lowering::partition {

// Takes every type that the required rows have, natively; the host takes every required function of
// every type.
inline capabilities::Target
accelerator(std::initializer_list<unsigned> profiles = {CDL_PROFILE_BASE, CDL_PROFILE_FP32},
            uint8_t support = CDL_SUPPORT_NATIVE) {
  auto target = capabilities::Table::required(profiles, support).target("acme");
  EXPECT_TRUE(target.isOk()) << target.status().message();
  return std::move(target).value();
}
inline capabilities::Target host() {
  capabilities::Table table = capabilities::Table::all();
  std::set<std::pair<uint16_t, uint16_t>> kinds;
  for (const capabilities::RequiredRow& row : capabilities::requiredRows())
    kinds.insert({row.kind, row.fn});
  for (auto [kind, fn] : kinds) table.add(kind, fn, {}, CDL_CLASS_AFFINE);
  auto target = table.target("host", true);
  EXPECT_TRUE(target.isOk()) << target.status().message();
  return std::move(target).value();
}

inline graph::Value* add(graph::Graph& graph, graph::OpKind kind,
                         std::vector<graph::Value*> operands, graph::Attrs attrs = {}) {
  auto node = graph.addNode(kind, std::move(operands), std::move(attrs));
  EXPECT_TRUE(node.isOk()) << node.status().message();
  return (*node)->result();
}

inline void expectValid(const graph::Graph& graph, const Partitioning& partitioning) {
  std::map<const graph::Node*, size_t> partOf;
  for (size_t p = 0; p < partitioning.parts.size(); ++p)
    for (const graph::Node* node : partitioning.parts[p].nodes) {
      EXPECT_TRUE(partOf.emplace(node, p).second) << node->userName() << " appears twice";
      EXPECT_EQ(partitioning.targetOf.at(node), partitioning.parts[p].target);
    }
  EXPECT_EQ(partOf.size(), graph.nodeCount());
  // Parts run one after the other: every value that crosses a border comes from an earlier part.
  for (const auto& node : graph.nodes())
    for (const graph::Value* operand : node->operands()) {
      if (!operand || !operand->producer || operand->isConstant()) continue;
      EXPECT_LE(partOf.at(operand->producer), partOf.at(node.get())) << node->userName();
    }
}

} // namespace candela::lowering::partition
