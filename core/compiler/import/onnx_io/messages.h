#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <onnx/onnx_pb.h>

#include <climits>

#include "core/compiler/import/onnx_io/model.h"
#include "core/support/file.h"

/// What the readers of this room share.
namespace candela::import::onnx_io {

/// Whether protobuf may parse so much. Failure: bad_model, naming the file.
inline Status checkSize(const Bytes& content, const std::string& path) {
  if (content.size() <= INT_MAX) return Status::ok();
  return badModel(
      "{}: {} bytes, larger than 2 GB, protobuf's limit; store its tensors as external data", path,
      content.size());
}

/// Maps a file that protobuf may parse.
inline Result<Bytes> mapProtobuf(const std::string& path) {
  CDL_ASSIGN(Bytes bytes, mapFile(path));
  CDL_TRY(checkSize(bytes, path));
  return bytes;
}

/// Parses a whole mapped file. Failure: bad_model, without the file's name.
template <typename Message>
Status parseFile(const Bytes& bytes, Message& message, const char* what) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetTotalBytesLimit(INT_MAX);
  if (!message.ParsePartialFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    return badModel("no {}: malformed, truncated or too deeply nested protobuf", what);
  return Status::ok();
}

/// A message in any of its storage forms, whose bytes it may take; external data lies beside the
/// file `path`. Failures name neither.
Result<Tensor> tensorOf(onnx::TensorProto& proto, const std::string& path);

} // namespace candela::import::onnx_io
