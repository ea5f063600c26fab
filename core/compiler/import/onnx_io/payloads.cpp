#include "core/compiler/import/onnx_io/payloads.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/unknown_field_set.h>
#include <onnx/onnx_pb.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string_view>

#include "core/support/mapped_file.h"

namespace candela::import::onnx_io {
namespace {

/// The field that stands where elements were left out. The format's last number: a file that uses
/// it loses it.
constexpr int kPlaceField = (1 << 29) - 1;
constexpr size_t kLeast = 1024; ///< bytes of a tensor that is worth the trouble
constexpr int kMostDepth = 100; ///< as protobuf has it

enum WireType { kVarint = 0, kFixed64 = 1, kDelimited = 2, kFixed32 = 5 };

/// The messages on the way to a tensor.
enum class Kind { model, graph, node, attribute, function, tensor, other };

Kind childOf(Kind kind, uint64_t field) {
  switch (kind) {
  case Kind::model:
    if (field == 7) return Kind::graph;
    return field == 25 ? Kind::function : Kind::other;
  case Kind::graph:
    if (field == 1) return Kind::node;
    return field == 5 ? Kind::tensor : Kind::other;
  case Kind::node: return field == 5 ? Kind::attribute : Kind::other;
  case Kind::attribute:
    if (field == 5) return Kind::tensor;
    return field == 6 ? Kind::graph : Kind::other;
  case Kind::function:
    if (field == 7) return Kind::node;
    return field == 11 ? Kind::attribute : Kind::other;
  default: return Kind::other;
  }
}

/// float_data, int32_data, int64_data, raw_data, double_data and uint64_data, where they are one
/// piece.
bool isElements(uint64_t field) { return (field >= 4 && field <= 11 && field != 6 && field != 8); }

void appendVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

std::optional<uint64_t> takeVarint(std::string_view text, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && at < text.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(text[at++]);
    value |= uint64_t(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

/// Copies a message without the elements of its tensors, which it gives to `leave`; false where the
/// message is malformed or holds what ONNX does not use.
class Copier {
public:
  explicit Copier(std::function<uint64_t(std::string_view)> leave) : leave_(std::move(leave)) {}

  bool copy(std::string_view message, Kind kind, int depth, std::string& out) {
    if (depth > kMostDepth) return false;
    for (size_t at = 0; at < message.size();) {
      const size_t start = at;
      const auto tag = takeVarint(message, at);
      if (!tag) return false;
      const uint64_t field = *tag >> 3;
      if (field == 0) return false;
      std::optional<uint64_t> size;
      switch (*tag & 7) {
      case kVarint:
        size = takeVarint(message, at) ? std::optional<uint64_t>(0) : std::nullopt;
        break;
      case kFixed64: size = 8; break;
      case kFixed32: size = 4; break;
      case kDelimited: size = takeVarint(message, at); break;
      default: break;
      }
      if (!size || *size > message.size() - at) return false;
      const std::string_view content = message.substr(at, *size);
      at += *size;
      const std::string_view whole = message.substr(start, at - start);
      const bool delimited = (*tag & 7) == kDelimited;
      const Kind child = delimited ? childOf(kind, field) : Kind::other;
      if (child != Kind::other) {
        std::string inner;
        if (!copy(content, child, depth + 1, inner)) return false;
        appendVarint(out, *tag);
        appendVarint(out, inner.size());
        out += inner;
      } else if (kind == Kind::tensor && field == kPlaceField) {
        continue;
      } else if (kind == Kind::tensor && isElements(field) && message.size() >= kLeast) {
        // every piece of such a field, for their order matters
        appendVarint(out, uint64_t(kPlaceField) << 3 | kVarint);
        appendVarint(out, leave_(whole));
      } else {
        out += whole;
      }
    }
    return true;
  }

private:
  std::function<uint64_t(std::string_view)> leave_;
};

/// The whole pages of a mapped file may be dropped: who needs them again has them read again.
void dropPages(const std::byte* data, uint64_t size) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + size) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

} // namespace

Payloads::Payloads(Bytes file) : file_(std::move(file)), rest_(file_) {
  const std::string_view text(reinterpret_cast<const char*>(file_.data()), file_.size());
  auto rest = std::make_shared<std::string>();
  Copier copier([&](std::string_view field) {
    spans_.push_back({static_cast<uint64_t>(field.data() - text.data()), field.size()});
    return spans_.size() - 1;
  });
  if (copier.copy(text, Kind::model, 0, *rest))
    rest_ = Bytes::wrap(rest->data(), rest->size(), rest);
  else
    spans_.clear();
}

Status Payloads::restore(onnx::TensorProto& proto) const {
  std::vector<Span> spans; // apart, for merging changes the unknown fields
  const auto& places = proto.unknown_fields();
  for (int i = 0; i < places.field_count(); ++i) {
    const auto& place = places.field(i);
    const bool isPlace = place.number() == kPlaceField &&
                         place.type() == google::protobuf::UnknownField::TYPE_VARINT;
    if (isPlace && place.varint() < spans_.size()) spans.push_back(spans_[place.varint()]);
  }
  for (const Span span : spans) {
    google::protobuf::io::CodedInputStream stream(
        reinterpret_cast<const uint8_t*>(file_.data()) + span.offset, static_cast<int>(span.size));
    if (!proto.MergePartialFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
      return badModel("malformed elements");
    if (isMapped(file_)) dropPages(file_.data() + span.offset, span.size);
  }
  return Status::ok();
}

} // namespace candela::import::onnx_io
