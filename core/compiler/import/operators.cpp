#include <algorithm>
#include <map>

#include "core/compiler/import/import.h"
#include "core/compiler/import/opset_history.h"
#include "core/compiler/import/term.h"

namespace candela::import {
namespace {

const std::map<std::string, OperatorImporter, std::less<>>& importers() {
  static const std::map<std::string, OperatorImporter, std::less<>> table = [] {
    std::map<std::string, OperatorImporter, std::less<>> made;
    for (const graph::OpInfo& record : graph::allOps())
      if (!record.onnx.empty()) made[std::string(record.onnx)].record = &record;
#define FAMILY(family)                                                                             \
  for (const Operator& op : family##Operators()) made[std::string(op.name)].adapter = &op;
#include "core/compiler/import/operators/families.inc"
#undef FAMILY
    return made;
  }();
  return table;
}

Status checkCount(size_t have, size_t least, size_t most, const char* what) {
  if (have >= least && have <= most) return Status::ok();
  if (least == most) return badModel("has {} {}, expected {}", have, what, least);
  if (most == SIZE_MAX) return badModel("has {} {}, expected at least {}", have, what, least);
  return badModel("has {} {}, expected {} to {}", have, what, least, most);
}

/// Operands and attributes have the record's names and meaning in every opset that is imported.
Status importByRecord(NodeContext& context, const graph::OpInfo& record) {
  Attrs attrs;
  for (const graph::AttrInfo& info : record.attrs) {
    const std::string name(info.name);
    if (!context.has(name)) continue;
    switch (info.type) {
    case graph::AttrType::Int: attrs[name] = attrOf<int64_t>(context, name, 0); break;
    case graph::AttrType::Float: attrs[name] = attrOf<float>(context, name, 0); break;
    case graph::AttrType::Ints:
      attrs[name] = attrOf<std::vector<int64_t>>(context, name, {});
      break;
    case graph::AttrType::String: attrs[name] = attrOf<std::string>(context, name, ""); break;
    default:
      CDL_CHECK(false, "record {} has an attribute '{}' that needs an adapter", record.name, name);
    }
  }
  return context.set(context.build.addAll(record.kind, context.inputs(), std::move(attrs), 1));
}

} // namespace

std::vector<std::string> importedNames() {
  std::vector<std::string> names;
  for (const auto& [name, importer] : importers()) names.push_back(name);
  return names;
}

OperatorImporter findImporter(const onnx_io::Node& node) {
  const auto found = node.overload.empty() ? importers().find(qualified(node.domain, node.opType))
                                           : importers().end();
  return found == importers().end() ? OperatorImporter() : found->second;
}

Status OperatorImporter::checkArity(const onnx_io::Node& node) const {
  size_t least = 0, most = 0, outputs = 1;
  if (adapter) {
    least = adapter->minInputs;
    most = adapter->maxInputs < 0 ? SIZE_MAX : adapter->maxInputs;
    outputs = adapter->maxOutputs;
  } else {
    for (const graph::OperandInfo& operand : record->operands) {
      if (!operand.optional) ++least;
      most = operand.variadic ? SIZE_MAX : most + 1;
    }
  }
  // Trailing inputs may be left out by an empty name.
  size_t inputs = node.inputs.size();
  while (inputs > 0 && node.inputs[inputs - 1].empty()) --inputs;
  CDL_TRY(checkCount(inputs, least, most, "inputs"));
  for (size_t i = 0; i < least; ++i)
    if (node.inputs[i].empty()) return badModel("input {} is missing", i);
  return checkCount(node.outputs.size(), 1, outputs, "outputs");
}

namespace {
Status unknownAttribute(const onnx_io::Node& node, const std::string& name, int64_t opset) {
  return badModel("attribute '{}' is unknown to {} in opset {}{}", name, node.opType, opset,
                  node.domain.empty() ? knownText(node.opType, name, opset) : "");
}
} // namespace

Status OperatorImporter::checkAttributes(const onnx_io::Node& node, int64_t opset) const {
  for (const auto& [name, value] : node.attributes)
    if ((!adapter && !record->attr(name)) ||
        (node.domain.empty() && lacksAttribute(node.opType, name, opset)))
      return unknownAttribute(node, name, opset);
  return Status::ok();
}

Status OperatorImporter::import(NodeContext& context) const {
  try {
    const Status status = adapter ? adapter->import(context) : importByRecord(context, *record);
    const std::string* unused =
        status || !context.trims().empty() ? context.unusedAttribute() : nullptr;
    if (unused) return unknownAttribute(context.node, *unused, context.opset);
    CDL_TRY(status);
  } catch (const Failure& failure) {
    return failure.status;
  }
  for (size_t i = 0; i < context.outputs().size(); ++i)
    if (context.wants(i) && !context.outputs()[i])
      return failure(Code::unsupported, "output {} ('{}') is not supported", i,
                     context.node.outputs[i]);
  return Status::ok();
}

} // namespace candela::import
