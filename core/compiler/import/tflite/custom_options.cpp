#include <flatbuffers/flexbuffers.h>

#include "core/compiler/import/tflite/step.h"

namespace candela::import::tflite {
namespace {

/// nullopt: of a kind that attributes have not.
std::optional<onnx_io::Attribute> attributeOf(flexbuffers::Reference value) {
  if (value.IsBool()) return static_cast<int64_t>(value.AsBool());
  if (value.IsIntOrUint()) return value.AsInt64();
  if (value.IsFloat()) return value.AsFloat();
  if (value.IsString()) return value.AsString().str();
  if (!value.IsTypedVector() && !value.IsVector()) return std::nullopt;
  std::vector<int64_t> ints;
  std::vector<float> floats;
  const auto read = [&](const auto& vector) {
    for (size_t i = 0; i < vector.size(); ++i) {
      if (vector[i].IsIntOrUint()) ints.push_back(vector[i].AsInt64());
      if (vector[i].IsNumeric()) floats.push_back(vector[i].AsFloat());
    }
    return vector.size();
  };
  const size_t size = value.IsTypedVector() ? read(value.AsTypedVector()) : read(value.AsVector());
  if (ints.size() == size) return ints;
  if (floats.size() == size) return floats;
  return std::nullopt;
}

} // namespace

Attributes customAttributes(const schema::Operator& op) {
  Attributes attributes;
  const auto* bytes = op.custom_options();
  if (!bytes || bytes->size() == 0) return attributes;
  const std::vector<uint8_t> copy(bytes->begin(), bytes->end()); // aligned
  if (flexbuffers::VerifyBuffer(copy.data(), copy.size(), nullptr)) {
    const flexbuffers::Reference root = flexbuffers::GetRoot(copy.data(), copy.size());
    if (root.IsMap()) {
      const flexbuffers::Map map = root.AsMap();
      for (size_t i = 0; i < map.size(); ++i) {
        const auto value = attributeOf(map.Values()[i]);
        if (value) attributes[map.Keys()[i].AsString().str()] = *value;
      }
      return attributes;
    }
  }
  attributes["custom_options"] = std::string(copy.begin(), copy.end());
  return attributes;
}

} // namespace candela::import::tflite
