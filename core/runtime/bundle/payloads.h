#pragma once

#include <bundle.pb.h>

#include <cstdio>
#include <map>

#include "core/runtime/bundle/flow_bundle.h"

/// The parts of a bundle's file.
namespace candela::runtime::bundle {

/// The messages of bundle.proto.
namespace proto = candela::bundle;

inline uint64_t align64(uint64_t x) { return (x + 63) / 64 * 64; }

/// Payloads in file order, and where they go.
class PayloadWriter {
public:
  void add(proto::Blob* blob, const Bytes& bytes) {
    const auto [known, isNew] = places_.try_emplace({bytes.data(), bytes.size()}, end_);
    blob->set_offset(known->second);
    blob->set_size(bytes.size());
    if (!isNew) return;
    pieces_.push_back(bytes);
    end_ = align64(end_ + bytes.size());
  }
  bool write(std::FILE* file) const {
    static const char kZero[64] = {};
    for (const Bytes& piece : pieces_) {
      const uint64_t padding = align64(piece.size()) - piece.size();
      if (piece.size() && std::fwrite(piece.data(), 1, piece.size(), file) != piece.size())
        return false;
      if (padding && std::fwrite(kZero, 1, padding, file) != padding) return false;
    }
    return true;
  }

private:
  std::vector<Bytes> pieces_;
  std::map<std::pair<const void*, uint64_t>, uint64_t> places_; ///< what units share stands once
  uint64_t end_ = 0;
};

inline Result<Bytes> take(const Bytes& payloads, const proto::Blob& blob) {
  if (blob.offset() > payloads.size() || blob.size() > payloads.size() - blob.offset())
    return badModel("payload of {} bytes at {} leaves the file", blob.size(), blob.offset());
  return payloads.slice(blob.offset(), blob.size());
}

void fill(proto::Manifest& out, PayloadWriter& payloads, const Bundle& in);
Result<Bundle> read(const proto::Manifest& in, const Bytes& payloads);

void fillFlow(proto::Flow& out, PayloadWriter& payloads, const FlowBundle& in);
Result<std::shared_ptr<const FlowBundle>> readFlow(const proto::Flow& in, const Bytes& payloads);

} // namespace candela::runtime::bundle
