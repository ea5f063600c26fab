#pragma once

#include <memory>
#include <string>

#include "core/support/tensor.h"

namespace candela::runtime::plugin {

/// Keeps what a plugin writes. Not to be moved while a slot has its writer.
class Collector {
public:
  /// A write that would make it more than `most` bytes fails, and so does one that there is no
  /// memory for.
  explicit Collector(uint64_t most = UINT64_MAX) : most_(most) {}
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  const cdl_writer_t* writer() const { return &writer_; }
  const std::string& text() const { return *text_; }
  /// What was written, for as long as somebody has it.
  Bytes bytes() const { return Bytes::wrap(text_->data(), text_->size(), text_); }

private:
  int write(const void* data, uint64_t size) noexcept;

  const uint64_t most_;
  std::shared_ptr<std::string> text_ = std::make_shared<std::string>();
  cdl_writer_t writer_{this, [](void* collector, const void* data, uint64_t size) {
                         return static_cast<Collector*>(collector)->write(data, size);
                       }};
};

} // namespace candela::runtime::plugin
