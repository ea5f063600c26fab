#pragma once

#include <memory>
#include <span>

#include "core/compiler/program/program.h"

namespace candela::tool {

/// What the buffers of a Program hold while its instructions run one by one: before the first, and
/// after each one the buffers that it writes. In a file without a name that processes share, so
/// that who waits for one that died can read what it received.
class Tape {
public:
  struct Execution {
    uint32_t instr = 0; ///< of the Program
    int64_t loops[CDL_MAX_LOOP_NESTING] = {};
  };
  /// Throws Failure where there is no room.
  Tape(const program::Program& program, const cdl_image_t* image);

  const std::vector<Execution>& executions() const { return executions_; }
  /// False where all would be too much: then each buffer holds what was written last, wherever one
  /// asks.
  bool keepsAll() const { return keepsAll_; }

  /// What is not a constant.
  std::span<std::byte> initial(uint32_t buffer) const {
    return at(buffer, buffers_[buffer].initial);
  }
  /// What execution e receives; of one behind the last: what is there at the end.
  std::span<std::byte> before(size_t e, uint32_t buffer) const;
  /// Of a buffer that execution e writes.
  std::span<std::byte> after(size_t e, uint32_t buffer) const { return before(e + 1, buffer); }

private:
  struct Buffer {
    uint64_t bytes = 0, initial = 0;
    std::vector<std::pair<size_t, uint64_t>> writes; ///< execution, place in the file
  };
  std::span<std::byte> at(uint32_t buffer, uint64_t place) const {
    return {memory_.get() + place, static_cast<size_t>(buffers_[buffer].bytes)};
  }
  std::vector<Execution> executions_;
  std::vector<Buffer> buffers_;
  bool keepsAll_ = true;
  std::shared_ptr<std::byte> memory_;
};

} // namespace candela::tool
