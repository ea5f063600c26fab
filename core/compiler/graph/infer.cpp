#include <algorithm>

#include "core/compiler/graph/checks.h"

namespace candela::graph {
namespace {

/// The record of operand i: the last one stands for all that follow when it is variadic.
const OperandInfo& operandInfo(const OpInfo& info, size_t i) {
  return info.operands[std::min(i, info.operands.size() - 1)];
}

std::string elemNames(uint32_t mask) {
  std::string out;
  for (unsigned i = 1; i < kElemCount; ++i)
    if (mask >> i & 1)
      out += (out.empty() ? "" : " ") + std::string(elemName(static_cast<Elem>(i)));
  return out;
}

Status checkOperands(const Node& node) {
  const OpInfo& info = node.info();
  const size_t most = info.operands.size();
  const bool variadic = most > 0 && info.operands.back().variadic;
  const size_t count = std::max(most, node.operands().size());
  if (node.operands().size() > most && !variadic)
    return badModel("{}: {} operands, expected at most {}", nodeText(node), node.operands().size(),
                    most);
  for (size_t i = 0; i < count; ++i) {
    const OperandInfo& record = operandInfo(info, i);
    const Value* operand = node.operand(i);
    if (!operand) {
      if (record.optional) continue;
      return badModel("{}: operand {} is missing", nodeText(node), record.name);
    }
    const Elem elem = operand->type.elem;
    if (!record.accepts(elem))
      return badModel("{}: operand {} is {}, expected one of {}", nodeText(node), record.name,
                      elemName(elem), elemNames(record.elems));
    const Value* model = node.operandNamed(record.like);
    if (model && model->type.elem != elem)
      return badModel("{}: operand {} is {} but {} is {}", nodeText(node), record.name,
                      elemName(elem), record.like, elemName(model->type.elem));
  }
  return Status::ok();
}

Result<std::vector<TensorType>> inferOp(const Node& node) {
  switch (node.kind) {
  case OpKind::Constant: break;
#define CANDELA_OP(Kind, Rule)                                                                     \
  case OpKind::Kind: return infer##Rule(node);
    CANDELA_INFERENCES(CANDELA_OP)
#undef CANDELA_OP
  }
  CDL_CHECK(false, "no inference for {}", opName(node.kind));
}

/// A constant's type is given; the payload must fill it.
Result<std::vector<TensorType>> inferConstant(const Node& node) {
  if (!node.payload || node.results().size() != 1)
    return badModel("{}: no content", nodeText(node));
  const TensorType& type = node.result()->type;
  CDL_TRY(checkType(type, node.result()->name));
  if (node.payload->elem() != type.elem || node.payload->count() != type.physicalCount())
    return badModel("{}: content of {} {} elements for {}", nodeText(node), node.payload->count(),
                    elemName(node.payload->elem()), type.text());
  return std::vector<TensorType>{type};
}

} // namespace

Status checkType(const TensorType& type, std::string_view what) {
  if (!isValidElem(static_cast<unsigned>(type.elem)))
    return badModel("'{}' has no element type", what);
  if (!elementCount(type.shape()))
    return badModel("'{}': impossible shape {}", what, shapeText(type.shape()));
  if (type.layout.steps.size() > CDL_MAX_RANK)
    return badModel("'{}': layout of {} steps, at most {}", what, type.layout.steps.size(),
                    CDL_MAX_RANK);
  const size_t physical = type.layout.isRowMajor() ? type.dims.size() : type.layout.steps.size();
  if (type.halo && (type.halo->lo.size() != physical || type.halo->hi.size() != physical))
    return badModel("'{}': halo of {} and {} widths, expected {}", what, type.halo->lo.size(),
                    type.halo->hi.size(), physical);
  if (type.layout.isRowMajor()) return Status::ok();
  std::vector<int> whole(type.rank(),
                         0); // how often a dim has the step that takes what its factors leave over
  for (const Layout::Step& step : type.layout.steps) {
    if (step.dim >= type.rank())
      return badModel("'{}': layout names d{} of rank {}", what, step.dim, type.rank());
    if (step.factor == 0 && whole[step.dim]++ > 0)
      return badModel("'{}': layout names d{} twice", what, step.dim);
    if (step.factor != 0 && whole[step.dim] == 0)
      return badModel("'{}': layout has a factor of d{} outside of it", what, step.dim);
  }
  for (int i = 0; i < type.rank(); ++i)
    if (!whole[i]) return badModel("'{}': layout leaves out d{}", what, i);
  return Status::ok();
}

bool agrees(const TensorType& declared, const TensorType& inferred) {
  return declared.elem == inferred.elem && declared.dims == inferred.dims;
}

Result<std::vector<TensorType>> inferTypes(const Node& node) {
  if (node.kind == OpKind::Constant) return inferConstant(node);
  CDL_TRY(checkOperands(node));
  CDL_TRY(checkAttributes(node));
  CDL_ASSIGN(std::vector<TensorType> types, inferOp(node));
  const auto& results = node.info().results;
  CDL_CHECK(types.size() == results.size() || node.info().has(kTraitRegion), "{} infers {} types",
            opName(node.kind), types.size());
  for (size_t i = 0; i < types.size(); ++i)
    if (!elementCount(types[i].shape()))
      return badModel("{}: result {} would have the impossible shape {}", nodeText(node),
                      results[std::min(i, results.size() - 1)].name, shapeText(types[i].shape()));
  return types;
}

} // namespace candela::graph
