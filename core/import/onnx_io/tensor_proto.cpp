#include "core/import/onnx_io/tensor_proto.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "core/support/file.h"
#include "core/support/text/scan.h"

namespace candela::onnx_io {

namespace fs = std::filesystem;

ExternalData::ExternalData(const std::string& modelPath)
    : folder_(fs::path(modelPath).has_parent_path() ? fs::path(modelPath).parent_path().string() : ".") {}

Result<Bytes> ExternalData::map(const std::string& location) {
  if (const auto known = files_.find(location); known != files_.end()) return known->second;
  if (location.empty()) return badModel("external data without a location");
  if (std::any_of(location.begin(), location.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    return badModel("the location of external data is not printable");
  const fs::path relative(location);
  if (relative.is_absolute()) return badModel("external data '{}' has an absolute path", location);
  if (std::find(relative.begin(), relative.end(), "..") != relative.end())
    return badModel("external data '{}' leaves the model's folder with '..'", location);
  std::error_code error;
  const fs::path folder = fs::canonical(folder_, error);
  if (error) return failure(Code::io, "cannot resolve folder '{}': {}", folder_, error.message());
  const fs::path file = fs::canonical(folder / relative, error);
  if (error == std::errc::no_such_file_or_directory)
    return failure(Code::not_found, "external data '{}' does not exist in folder '{}'", location, folder_);
  if (error) return failure(Code::io, "cannot resolve external data '{}': {}", location, error.message());
  if (std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first != folder.end())
    return badModel("external data '{}' is a symbolic link out of the model's folder", location);
  // Opening a pipe would wait for its writer.
  if (!fs::is_regular_file(file, error)) return badModel("external data '{}' is not a regular file", location);
  CDL_ASSIGN(Bytes bytes, mapFile(file.string()));
  files_[location] = bytes;
  return bytes;
}

Result<Bytes> ExternalData::read(const std::string& location, uint64_t offset, std::optional<uint64_t> declared,
                                 uint64_t size) {
  CDL_ASSIGN(Bytes bytes, map(location));
  if (declared && *declared != size)
    return badModel("external data '{}' declares {} bytes but the tensor needs {}", location, *declared, size);
  if (offset > bytes.size() || size > bytes.size() - offset)
    return badModel("external data '{}' has {} bytes but the tensor needs {} from offset {}", location, bytes.size(),
                    size, offset);
  return bytes.slice(offset, size);
}

namespace {

using onnx::TensorProto;

Result<Elem> elemOf(const TensorProto& proto) {
  const int type = proto.data_type();
  if (const auto elem = elemFromOnnx(type)) return *elem;
  if (type == TensorProto::UNDEFINED) return badModel("no element type");
  if (onnx::TensorProto_DataType_IsValid(type)) {
    const auto name = onnx::TensorProto_DataType_Name(static_cast<onnx::TensorProto_DataType>(type));
    return failure(Code::unsupported, "element type {} ({}) is not supported", name, type);
  }
  return failure(Code::unsupported, "element type {} is not supported", type);
}

/// Bytes as they stand in a file, copied when they do not lie as the elements want them. A bool that is neither 0 nor 1
/// would mean different things to different readers.
Result<Tensor> fromBytes(Tensor tensor) {
  const uintptr_t alignment = std::max(1, elemBits(tensor.elem) / 8);
  if (!tensor.bytes.data() || reinterpret_cast<uintptr_t>(tensor.bytes.data()) % alignment != 0) {
    CDL_ASSIGN(Bytes bytes, Bytes::allocate(tensor.bytes.size()));
    if (bytes.size()) std::memcpy(bytes.mutableData(), tensor.bytes.data(), bytes.size());
    tensor.bytes = std::move(bytes);
  }
  if (tensor.elem != Elem::bool_) return tensor;
  for (int64_t i = 0, count = tensor.count(); i < count; ++i)
    if (tensor.as<uint8_t>()[i] > 1) return badModel("element {} of a bool tensor is {}", i, tensor.as<uint8_t>()[i]);
  return tensor;
}

Result<uint64_t> parseSize(const std::string& key, const std::string& text) {
  const auto value = text::parseNumber<uint64_t>(text);
  if (!value) return badModel("external data {} '{}' is no byte count", key, text);
  return *value;
}

Result<Bytes> externalBytes(const TensorProto& proto, ExternalData& external, uint64_t size) {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") { CDL_ASSIGN(offset, parseSize(entry.key(), entry.value())); }
    if (entry.key() == "length") { CDL_ASSIGN(length, parseSize(entry.key(), entry.value())); }
  }
  return external.read(location, offset, length, size);
}

Status wrongCount(const char* field, int64_t have, const Tensor& tensor, int64_t need) {
  return badModel("{} has {} values but {} needs {}", field, have, tensor.typeText(), need);
}

/// Fields whose values are the elements as they are.
template <typename T, typename Field> Result<Tensor> copyField(Tensor tensor, const char* name, const Field& field) {
  if (field.size() != tensor.count()) return wrongCount(name, field.size(), tensor, tensor.count());
  CDL_ASSIGN(tensor.bytes, Bytes::allocate(tensor.sizeBytes()));
  if (field.size()) std::memcpy(tensor.bytes.mutableData(), field.data(), field.size() * sizeof(T));
  return tensor;
}

/// Fields whose values are wider than the elements: each must fit.
template <typename Field> Result<Tensor> narrowField(Tensor tensor, const char* name, const Field& field) {
  const bool packed = elemBits(tensor.elem) == 4; // two elements in each value
  const int64_t need = packed ? (tensor.count() + 1) / 2 : tensor.count();
  if (field.size() != need) return wrongCount(name, field.size(), tensor, need);
  CDL_ASSIGN(tensor.bytes, Bytes::allocate(tensor.sizeBytes()));
  const int size = std::max(1, elemBits(tensor.elem) / 8);
  // Floats and packed pairs stand as their bits.
  const bool bits = packed || isFloat(tensor.elem);
  const IntegerRange range = bits ? IntegerRange{0, (__int128(1) << 8 * size) - 1} : integerRange(tensor.elem);
  for (int64_t i = 0; i < need; ++i) {
    const __int128 value = field.Get(static_cast<int>(i));
    // Writers that sign-extend packed signed pairs exist.
    if ((value < range.lowest || value > range.highest) && !(packed && value >= -128 && value < 0))
      return badModel("{} holds {} at {}, which is no {}", name, static_cast<int64_t>(value), i, elemName(tensor.elem));
    std::memcpy(tensor.bytes.mutableData() + i * size, &value, size);
  }
  return tensor;
}

} // namespace

Result<Tensor> takeTensor(TensorProto& proto, ExternalData& external) {
  if (proto.has_segment()) return failure(Code::unsupported, "a segment or a sequence, not a tensor");
  Tensor tensor;
  CDL_ASSIGN(tensor.elem, elemOf(proto));
  tensor.dims.assign(proto.dims().begin(), proto.dims().end());
  const auto count = elementCount(tensor.dims);
  if (!count) return badModel("impossible shape {}", shapeText(tensor.dims));
  const uint64_t size = elemBytes(tensor.elem, *count);

  if (proto.data_location() == TensorProto::EXTERNAL) {
    CDL_ASSIGN(tensor.bytes, externalBytes(proto, external, size));
    return fromBytes(std::move(tensor));
  }
  if (proto.has_raw_data()) {
    if (proto.raw_data().size() != size)
      return badModel("raw data has {} bytes but {} needs {}", proto.raw_data().size(), tensor.typeText(), size);
    std::shared_ptr<std::string> raw(proto.release_raw_data());
    tensor.bytes = Bytes::wrap(raw->data(), size, raw);
    return fromBytes(std::move(tensor));
  }
  switch (tensor.elem) {
  case Elem::f32_: return copyField<float>(std::move(tensor), "float_data", proto.float_data());
  case Elem::f64_: return copyField<double>(std::move(tensor), "double_data", proto.double_data());
  case Elem::i64_: return copyField<int64_t>(std::move(tensor), "int64_data", proto.int64_data());
  case Elem::u64_: return copyField<uint64_t>(std::move(tensor), "uint64_data", proto.uint64_data());
  case Elem::u32_: return narrowField(std::move(tensor), "uint64_data", proto.uint64_data());
  default: return narrowField(std::move(tensor), "int32_data", proto.int32_data());
  }
}

} // namespace candela::onnx_io
