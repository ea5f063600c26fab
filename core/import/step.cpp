#include "core/import/step.h"

#include <algorithm>
#include <numeric>

namespace candela::import {
namespace {

const char* typeText(const onnx_io::Attribute& attribute) {
  constexpr const char* kNames[] = {"an int",  "a float",        "a string",         "a tensor",
                                    "a graph", "a list of ints", "a list of floats", "a list of strings"};
  return kNames[attribute.index()];
}

} // namespace

Status Step::wrongType(const std::string& name, const onnx_io::Attribute& wanted) const {
  const onnx_io::Attribute& given = node.attributes.at(name);
  if (const auto* unsupported = std::get_if<onnx_io::UnsupportedAttribute>(&given))
    return failure(Code::unsupported, "attribute '{}' is {}", name, unsupported->what);
  return badModel("attribute '{}' is {}, expected {}", name, typeText(given), typeText(wanted));
}

Result<bool> Step::flagAttr(const std::string& name, bool fallback) {
  CDL_ASSIGN(const int64_t value, attr<int64_t>(name, fallback));
  if (value != 0 && value != 1) return badModel("attribute '{}' is {}, expected 0 or 1", name, value);
  return value == 1;
}

const std::string* Step::unusedAttribute() const {
  for (const auto& [name, value] : node.attributes)
    if (!used_.count(name)) return &name;
  return nullptr;
}

Result<std::optional<std::vector<int64_t>>> Step::knownInts(size_t index, const char* what) const {
  const Value* value = input(index);
  if (!value) return std::optional<std::vector<int64_t>>();
  if (isFloat(value->type.elem)) return badModel("{} is {}, expected integers", what, value->type.text());
  if (value->type.rank() > 1) return badModel("{} has rank {}, expected at most 1", what, value->type.rank());
  auto ints = Builder::knownInts(value);
  if (!ints)
    return failure(Code::unsupported, "{} ('{}') is not known when the model is imported", what, node.inputs[index]);
  return ints;
}

Result<std::optional<std::vector<int64_t>>> Step::intsAttrOrInput(const std::string& name, size_t index, int since) {
  return opset < since ? maybe<std::vector<int64_t>>(name) : knownInts(index, name.c_str());
}

Result<std::vector<int64_t>> Step::neededInts(const std::string& name, size_t index, int since) {
  CDL_ASSIGN(auto ints, intsAttrOrInput(name, index, since));
  if (!ints) return badModel("{} '{}' is missing", opset < since ? "attribute" : "input", name);
  return *std::move(ints);
}

Result<Value*> Step::scalarAttrOrInput(const std::string& name, size_t index, int since) {
  Value* value = input(index);
  if (opset < since) {
    CDL_ASSIGN(const auto number, maybe<float>(name));
    return number ? build.scalar(*number, input(0)->type.elem) : nullptr;
  }
  // Writers that give a vector of one mean a scalar.
  return value && value->type.shape() == Shape{1} ? build.reshape(value, {}) : value;
}

Status needExact(const Step& step) {
  for (const Value* input : step.inputs())
    if (input && !input->type.isExact())
      return failure(Code::unsupported, "its input has a shape that depends on data");
  return Status::ok();
}

std::vector<int64_t> allAxes(const Step& step) {
  std::vector<int64_t> axes(step.input(0)->type.dims.size());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Result<int64_t> resolveAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) return badModel("axis {} is out of range for rank {}", axis, rank);
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
