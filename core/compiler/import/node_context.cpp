#include "core/compiler/import/node_context.h"

#include <algorithm>
#include <numeric>

namespace candela::import {
namespace {

const char* typeText(const onnx_io::Attribute& attribute) {
  constexpr const char* kNames[] = {"an int",           "a float",          "a string",
                                    "a tensor",         "a graph",          "a list of ints",
                                    "a list of floats", "a list of strings"};
  return kNames[attribute.index()];
}

} // namespace

Status NodeContext::wrongType(const std::string& name, const onnx_io::Attribute& wanted) const {
  const onnx_io::Attribute& given = node.attributes.at(name);
  if (const auto* unsupported = std::get_if<onnx_io::UnsupportedAttribute>(&given))
    return failure(Code::unsupported, "attribute '{}' is {}", name, unsupported->what);
  return badModel("attribute '{}' is {}, expected {}", name, typeText(given), typeText(wanted));
}

Result<bool> NodeContext::flagAttr(const std::string& name, bool fallback) {
  CDL_ASSIGN(const int64_t value, attr<int64_t>(name, fallback));
  if (value != 0 && value != 1)
    return badModel("attribute '{}' is {}, expected 0 or 1", name, value);
  return value == 1;
}

const std::string* NodeContext::unusedAttribute() const {
  for (const auto& [name, value] : node.attributes)
    if (!used_.count(name)) return &name;
  return nullptr;
}

std::vector<int64_t> allAxes(const NodeContext& context) {
  std::vector<int64_t> axes(context.input(0)->type.dims.size());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Result<int64_t> resolveAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return badModel("axis {} is out of range for rank {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

Result<std::vector<int64_t>> resolveAxes(const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<int64_t> resolved;
  for (int64_t axis : axes) {
    CDL_ASSIGN(const int64_t dim, resolveAxis(axis, rank));
    if (std::find(resolved.begin(), resolved.end(), dim) != resolved.end())
      return badModel("axis {} is named twice", axis);
    resolved.push_back(dim);
  }
  return resolved;
}

} // namespace candela::import
