#include "core/reference/interpreter/memory.h"

namespace candela::reference::interpreter {

using program::Buffer, program::Program, program::Role;

namespace {

constexpr uint8_t kPoison = 0xa5;
constexpr uint64_t kMostBytes = uint64_t(1) << 33;

} // namespace

Result<Memory> Memory::create(const Program& program, bool inPlaceArena) {
  Memory memory;
  memory.program_ = &program;
  uint64_t total = 0;
  std::vector<uint64_t> sizes;
  std::vector<uint32_t> arenas(program.spaces.size(), program::kNone);
  const auto addBlock = [&](uint64_t bytes) {
    total += bytes;
    sizes.push_back(bytes);
    return static_cast<uint32_t>(sizes.size() - 1);
  };
  for (const Buffer& buffer : program.buffers) {
    if (!inPlaceArena || buffer.role != Role::temp || buffer.offset == CDL_UNPLACED) {
      memory.where_.push_back({addBlock(buffer.bytes), 0});
    } else {
      uint32_t& arena = arenas[buffer.space];
      if (arena == program::kNone) arena = addBlock(program.arenaBytes(buffer.space));
      memory.where_.push_back({arena, buffer.offset});
    }
    if (total > kMostBytes)
      return failure(Code::out_of_memory, "the program needs more than the interpreter's {} bytes",
                     kMostBytes);
  }
  for (uint64_t bytes : sizes)
    memory.blocks_.push_back(
        {std::vector<uint8_t>(bytes, kPoison), std::vector<uint32_t>(bytes, program::kNone), {}});
  return memory;
}

void Memory::watch() {
  order_.emplace(*program_);
  for (uint32_t b = 0; b < where_.size(); ++b) {
    Block& block = blocks_[where_[b].block];
    const Role role = program_->buffers[b].role;
    if (role != Role::constant && role != Role::input) block.touched.resize(block.data.size());
  }
}

Status Memory::unordered(const char* doing, uint32_t buffer, int64_t element,
                         uint32_t other) const {
  return badModel("{} element {} of buffer '{}' in no order with {}, which no wait leads to", doing,
                  element, program_->buffers[buffer].name, program_->instrName(other));
}

Status Memory::checkWritten(uint32_t buffer, Elem elem, int64_t element, const Block& block,
                            uint64_t byte) const {
  for (uint64_t i = 0; i < (elemBits(elem) + 7u) / 8; ++i) {
    const uint32_t writer = block.writer[byte + i];
    if (writer == buffer) continue;
    const std::string& name = program_->buffers[buffer].name;
    if (writer == program::kNone)
      return badModel("reads element {} of buffer '{}', which nothing wrote", element, name);
    return badModel("reads element {} of buffer '{}', in whose place buffer '{}' was written",
                    element, name, program_->buffers[writer].name);
  }
  return Status::ok();
}

void Memory::fill(uint32_t buffer, const Bytes& bytes) {
  Block& block = blocks_[where_[buffer].block];
  for (uint64_t i = 0; i < bytes.size(); ++i) {
    block.data[where_[buffer].byte + i] = static_cast<uint8_t>(bytes.data()[i]);
    block.writer[where_[buffer].byte + i] = buffer;
  }
}

Memory::Place Memory::place(uint32_t buffer, Elem elem, int64_t element) const {
  return {where_[buffer].block,
          where_[buffer].byte + static_cast<uint64_t>(element) * elemBits(elem) / 8};
}

Status Memory::checkInside(uint32_t buffer, Elem elem, int64_t element) const {
  const Buffer& b = program_->buffers[buffer];
  const auto held = static_cast<int64_t>(b.bytes * 8 / elemBits(elem));
  if (element >= 0 && element < held) return Status::ok();
  return badModel("element {} is outside of buffer '{}' of {} elements", element, b.name, held);
}

Result<uint64_t> Memory::load(uint32_t buffer, Elem elem, int64_t element) {
  CDL_TRY(checkInside(buffer, elem, element));
  const auto [index, byte] = place(buffer, elem, element);
  Block& block = blocks_[index];
  CDL_TRY(checkWritten(buffer, elem, element, block, byte));
  for (uint64_t i = 0; !block.touched.empty() && i < (elemBits(elem) + 7u) / 8; ++i)
    if (const uint32_t other = order_->read(block.touched[byte + i]); other != program::kNone)
      return unordered("reads", buffer, element, other);
  const auto* data = reinterpret_cast<const std::byte*>(block.data.data() + byte);
  return loadElement(elem, data, element % elemsPerByte(elem));
}

Status Memory::store(uint32_t buffer, Elem elem, int64_t element, uint64_t bits) {
  CDL_TRY(checkInside(buffer, elem, element));
  const Buffer& b = program_->buffers[buffer];
  if (b.role == Role::constant || b.role == Role::input)
    return badModel("writes element {} of {} '{}'", element,
                    b.role == Role::input ? "input" : "constant", b.name);
  const auto [index, byte] = place(buffer, elem, element);
  Block& block = blocks_[index];
  const auto within = element % elemsPerByte(elem);
  // in order, so that nothing is left behind the last one of packed elements
  if (within == 0) block.data[byte] = 0;
  storeElement(elem, reinterpret_cast<std::byte*>(block.data.data() + byte), within, bits);
  for (uint64_t i = 0; i < (elemBits(elem) + 7u) / 8; ++i) {
    block.writer[byte + i] = buffer;
    const uint32_t other =
        !block.touched.empty() ? order_->write(block.touched[byte + i]) : program::kNone;
    if (other != program::kNone) return unordered("writes", buffer, element, other);
  }
  return Status::ok();
}

Result<Bytes> Memory::content(uint32_t buffer) const {
  const Buffer& b = program_->buffers[buffer];
  const Block& block = blocks_[where_[buffer].block];
  for (uint64_t i = 0; i < b.bytes; ++i)
    if (block.writer[where_[buffer].byte + i] == program::kNone)
      return badModel("nothing wrote byte {} of buffer '{}'", i, b.name);
  return Bytes::copyOf(block.data.data() + where_[buffer].byte, b.bytes);
}

} // namespace candela::reference::interpreter
