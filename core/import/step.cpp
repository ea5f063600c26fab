#include "core/import/step.h"

#include <algorithm>

namespace candela::import {
namespace {

const char* typeText(const onnx_io::Attribute& attribute) {
  constexpr const char* kNames[] = {"an int",  "a float",        "a string",         "a tensor",
                                    "a graph", "a list of ints", "a list of floats", "a list of strings"};
  return kNames[attribute.index()];
}

} // namespace

template <typename T> Result<std::optional<T>> Step::get(const std::string& name, const char* type) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return std::optional<T>();
  used_.insert(name);
  if (const T* value = std::get_if<T>(&found->second)) return std::optional<T>(*value);
  if (const auto* unsupported = std::get_if<onnx_io::UnsupportedAttribute>(&found->second))
    return failure(Code::unsupported, "attribute '{}' is {}", name, unsupported->what);
  return badModel("attribute '{}' is {}, expected {}", name, typeText(found->second), type);
}

Result<std::optional<int64_t>> Step::maybeInt(const std::string& name) { return get<int64_t>(name, "an int"); }
Result<std::optional<std::string>> Step::maybeString(const std::string& name) {
  return get<std::string>(name, "a string");
}
Result<std::optional<std::vector<int64_t>>> Step::maybeInts(const std::string& name) {
  return get<std::vector<int64_t>>(name, "a list of ints");
}
Result<std::optional<std::vector<float>>> Step::maybeFloats(const std::string& name) {
  return get<std::vector<float>>(name, "a list of floats");
}
Result<std::optional<Tensor>> Step::maybeTensor(const std::string& name) { return get<Tensor>(name, "a tensor"); }

Result<std::optional<double>> Step::maybeFloat(const std::string& name) {
  CDL_ASSIGN(const std::optional<float> value, get<float>(name, "a float"));
  return value ? std::optional<double>(*value) : std::nullopt;
}

Result<int64_t> Step::intAttr(const std::string& name, int64_t fallback) {
  CDL_ASSIGN(const auto value, maybeInt(name));
  return value.value_or(fallback);
}

Result<bool> Step::flagAttr(const std::string& name, bool fallback) {
  CDL_ASSIGN(const int64_t value, intAttr(name, fallback));
  if (value != 0 && value != 1) return badModel("attribute '{}' is {}, expected 0 or 1", name, value);
  return value == 1;
}

Result<double> Step::floatAttr(const std::string& name, double fallback) {
  CDL_ASSIGN(const auto value, maybeFloat(name));
  return value.value_or(fallback);
}

Result<std::string> Step::stringAttr(const std::string& name, const std::string& fallback) {
  CDL_ASSIGN(const auto value, maybeString(name));
  return value.value_or(fallback);
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
  return opset < since ? maybeInts(name) : knownInts(index, name.c_str());
}

Result<std::vector<int64_t>> Step::neededInts(const std::string& name, size_t index, int since) {
  CDL_ASSIGN(auto ints, intsAttrOrInput(name, index, since));
  if (!ints) return badModel("{} '{}' is missing", opset < since ? "attribute" : "input", name);
  return *std::move(ints);
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
