#include "core/graph/op_info.h"

#include <map>

#include "core/support/status.h"

namespace candela::graph {
namespace {

#define CANDELA_OP_TABLES
#undef CANDELA_OPS
#undef CANDELA_COMPOSITES
#undef CANDELA_INFERENCES
#include "core/graph/generated/ops.inc"

constexpr OperandInfo kConstantResults[] = {{"y", "[..]", (1u << kElemCount) - 2, "", false, false}};
constexpr OpInfo kConstant = {.kind = OpKind::Constant,
                              .name = "constant",
                              .summary = "a tensor that is known now",
                              .source = "ONNX Constant 23",
                              .results = kConstantResults};

} // namespace

const AttrInfo* OpInfo::attr(std::string_view wanted) const {
  for (const AttrInfo& info : attrs)
    if (info.name == wanted) return &info;
  return nullptr;
}

std::span<const OpInfo> allOps() { return kOpTable; }

const OpInfo& opInfo(OpKind kind) {
  if (kind == OpKind::Constant) return kConstant;
  const size_t index = static_cast<size_t>(kind) - 1; // the table has the order of the enum
  CDL_CHECK(index < std::size(kOpTable), "op {}", index);
  return kOpTable[index];
}

std::optional<OpKind> parseOp(std::string_view name) {
  static const std::map<std::string_view, OpKind> byName = [] {
    std::map<std::string_view, OpKind> out{{kConstant.name, OpKind::Constant}};
    for (const OpInfo& info : kOpTable) out[info.name] = info.kind;
    return out;
  }();
  const auto found = byName.find(name);
  if (found == byName.end()) return std::nullopt;
  return found->second;
}

} // namespace candela::graph
