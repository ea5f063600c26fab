#pragma once

#include "core/reference/interpreter/order.h"
#include "core/support/tensor.h"

/// The interpreter's memory, which tells what a Program does wrong with it.
namespace candela::reference::interpreter {

/// Memory that knows of each byte through which buffer it was written, if at all.
class Memory {
public:
  /// TEMP buffers of one space share a block when `inPlaceArena` and they are placed; all others
  /// have one each.
  static Result<Memory> create(const program::Program& program, bool inPlaceArena);
  /// From here on accesses in no order are failures.
  void watch();
  /// The instruction whose accesses follow.
  void begin(uint32_t instr) {
    if (order_) order_->begin(instr);
  }

  /// Fills a whole buffer. The sizes agree.
  void fill(uint32_t buffer, const Bytes& bytes);
  /// Where an element begins: block and byte.
  struct Place {
    uint32_t block;
    uint64_t byte;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  Place place(uint32_t buffer, Elem elem, int64_t element) const;
  /// Failure: a byte of it was never written.
  Result<uint64_t> load(uint32_t buffer, Elem elem, int64_t element);
  Status store(uint32_t buffer, Elem elem, int64_t element, uint64_t bits);
  /// The whole content. Failure: a byte was never written.
  Result<Bytes> content(uint32_t buffer) const;

private:
  struct Block {
    std::vector<uint8_t> data;
    std::vector<uint32_t> writer;      ///< the buffer; kNone: nothing wrote it
    std::vector<Order::Trace> touched; ///< by the byte, where accesses are watched
  };
  /// What is wrong with reading the byte through the buffer.
  Status checkWritten(uint32_t buffer, Elem elem, int64_t element, const Block& block,
                      uint64_t byte) const;
  Status unordered(const char* doing, uint32_t buffer, int64_t element, uint32_t other) const;
  Status checkInside(uint32_t buffer, Elem elem, int64_t element) const;

  const program::Program* program_ = nullptr;
  std::vector<Block> blocks_;
  std::vector<Place> where_; ///< of each buffer
  std::optional<Order> order_;
};

} // namespace candela::reference::interpreter
