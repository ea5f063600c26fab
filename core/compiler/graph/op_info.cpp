#include "core/compiler/graph/op_info.h"

#include <algorithm>

#include "core/support/status.h"

namespace candela::graph {
namespace {

#define CANDELA_OP_TABLES
#include "core/compiler/graph/generated/ops.inc"

constexpr OperandInfo kConstantResults[] = {
    {"y", "[..]", (1u << kElemCount) - 2, "", false, false}};
constexpr OpInfo kConstant = {.kind = OpKind::Constant,
                              .name = "constant",
                              .summary = "a tensor that is known now",
                              .source = "ONNX Constant 23",
                              .results = kConstantResults};

} // namespace

const AttrInfo* OpInfo::attr(std::string_view wanted) const {
  const auto found = std::ranges::find(attrs, wanted, &AttrInfo::name);
  return found == attrs.end() ? nullptr : &*found;
}

std::span<const OpInfo> allOps() { return kOpTable; }

const OpInfo& opInfo(OpKind kind) {
  if (kind == OpKind::Constant) return kConstant;
  const size_t index = static_cast<size_t>(kind) - 1; // the table has the order of the enum
  CDL_CHECK(index < std::size(kOpTable), "op {}", index);
  return kOpTable[index];
}

std::optional<OpKind> parseOp(std::string_view name) {
  if (name == kConstant.name) return OpKind::Constant;
  const auto found = std::ranges::find(kOpTable, name, &OpInfo::name);
  return found == std::end(kOpTable) ? std::nullopt : std::optional(found->kind);
}

} // namespace candela::graph
