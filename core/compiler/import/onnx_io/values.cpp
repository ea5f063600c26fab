#include "core/compiler/import/onnx_io/values.h"

#include <onnx/onnx-data_pb.h>

#include "core/compiler/import/onnx_io/messages.h"

namespace candela::import::onnx_io {
namespace {

using onnx::OptionalProto, onnx::SequenceProto;

Result<std::vector<Tensor>> tensorsOf(SequenceProto& proto, const std::string& path) {
  if (proto.sparse_tensor_values_size() + proto.sequence_values_size() + proto.map_values_size() +
          proto.optional_values_size() >
      0)
    return failure(Code::unsupported, "a sequence of something else than tensors");
  std::vector<Tensor> tensors;
  for (onnx::TensorProto& item : *proto.mutable_tensor_values()) {
    CDL_ASSIGN(Tensor tensor, tensorOf(item, path).context(fmt::format("item {}", tensors.size())));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<Optional> optionalOf(OptionalProto& proto, const std::string& path) {
  // Not by elem_type: writers disagree about its numbers.
  if (proto.has_tensor_value()) {
    CDL_ASSIGN(Tensor tensor, tensorOf(*proto.mutable_tensor_value(), path));
    return Optional{Optional::Kind::tensor, {std::move(tensor)}};
  }
  if (proto.has_sequence_value()) {
    CDL_ASSIGN(std::vector<Tensor> tensors, tensorsOf(*proto.mutable_sequence_value(), path));
    return Optional{Optional::Kind::list, std::move(tensors)};
  }
  if (proto.has_sparse_tensor_value() || proto.has_map_value() || proto.has_optional_value())
    return failure(Code::unsupported, "an optional of something else than a tensor or a sequence");
  return Optional();
}

} // namespace

Result<Tensor> readTensor(const std::string& path) {
  CDL_ASSIGN(const Bytes bytes, mapProtobuf(path));
  onnx::TensorProto proto;
  CDL_TRY(parseFile(bytes, proto, "ONNX tensor").context(path));
  return tensorOf(proto, path).context(path);
}

Result<std::vector<Tensor>> readSequence(const std::string& path) {
  CDL_ASSIGN(const Bytes bytes, mapProtobuf(path));
  SequenceProto proto;
  CDL_TRY(parseFile(bytes, proto, "ONNX sequence").context(path));
  return tensorsOf(proto, path).context(path);
}

Result<Optional> readOptional(const std::string& path) {
  CDL_ASSIGN(const Bytes bytes, mapProtobuf(path));
  OptionalProto proto;
  CDL_TRY(parseFile(bytes, proto, "ONNX optional").context(path));
  return optionalOf(proto, path).context(path);
}

} // namespace candela::import::onnx_io
