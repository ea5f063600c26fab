#include <flatbuffers/flexbuffers.h>

#include "core/compiler/import/tflite/step.h"

namespace candela::import::tflite {
namespace {

constexpr size_t kMostBytes = 64 * 1024;          // of options that are looked into
constexpr size_t kMostElements = 16 * kMostBytes; // of all that is copied out of them

/// Entries may share what they point to: how many elements and letters were copied is bounded.
class Reader {
public:
  /// nullopt: of a kind that attributes have not.
  std::optional<onnx_io::Attribute> attributeOf(flexbuffers::Reference value) {
    if (value.IsBool()) return static_cast<int64_t>(value.AsBool());
    if (value.IsIntOrUint()) return value.AsInt64();
    if (value.IsFloat()) return value.AsFloat();
    if (value.IsString()) {
      if (!take(value.AsString().size())) return std::nullopt;
      return value.AsString().str();
    }
    if (value.IsTypedVector()) return listOf(value.AsTypedVector());
    if (value.IsVector()) return listOf(value.AsVector());
    return std::nullopt;
  }

  std::string keyOf(flexbuffers::Reference key) {
    const flexbuffers::String text = key.AsString();
    return take(text.size()) ? text.str() : "";
  }

  bool isPast() const { return taken_ > kMostElements; }

private:
  bool take(size_t elements) {
    taken_ += elements;
    return !isPast();
  }

  template <typename Vector> std::optional<onnx_io::Attribute> listOf(const Vector& vector) {
    const size_t size = vector.size();
    if (!take(size)) return std::nullopt;
    std::vector<int64_t> ints;
    std::vector<float> floats;
    for (size_t i = 0; i < size; ++i) {
      if (vector[i].IsIntOrUint()) ints.push_back(vector[i].AsInt64());
      if (vector[i].IsNumeric()) floats.push_back(vector[i].AsFloat());
    }
    if (ints.size() == size) return ints;
    if (floats.size() == size) return floats;
    return std::nullopt;
  }

  size_t taken_ = 0;
};

/// nullopt: no flexbuffer of a map, or one with too much in it. Behind its `size` bytes there is a
/// zero: the verifier lets keys pass that end with the buffer.
std::optional<Attributes> attributesOf(const uint8_t* bytes, size_t size) {
  if (size > kMostBytes || !flexbuffers::VerifyBuffer(bytes, size, nullptr)) return std::nullopt;
  const flexbuffers::Reference root = flexbuffers::GetRoot(bytes, size);
  if (!root.IsMap()) return std::nullopt;
  const flexbuffers::Map map = root.AsMap();
  Reader reader;
  Attributes attributes;
  for (size_t i = 0; i < map.size(); ++i) {
    const auto value = reader.attributeOf(map.Values()[i]);
    const std::string key = reader.keyOf(map.Keys()[i]);
    if (reader.isPast()) return std::nullopt;
    if (value) attributes[key] = *value;
  }
  return attributes;
}

} // namespace

Attributes customAttributes(const schema::Operator& op) {
  const auto* bytes = op.custom_options();
  if (!bytes || bytes->size() == 0) return {};
  std::vector<uint8_t> copy(bytes->begin(), bytes->end()); // aligned
  copy.push_back(0);
  if (auto attributes = attributesOf(copy.data(), bytes->size())) return *std::move(attributes);
  return {{"custom_options", std::string(bytes->begin(), bytes->end())}};
}

} // namespace candela::import::tflite
