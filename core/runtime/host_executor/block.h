// Block functions: one element-wise operation on dense blocks. Instructions and expression steps
// share them.
#pragma once

#include <cstdint>

namespace candela::runtime::host_executor {

/// One of CONVERT, BINARY, COMPARE, SELECT, UNARY for fixed element types. `run` reads n elements
/// of each input and writes n of the result; the result may be the same memory as an input, not
/// overlap it otherwise. Packed elements come and go as bytes. Plain data, usable from any thread.
struct BlockOp {
  using Function = void (*)(const BlockOp&, const void* const* in, void* out, int64_t n);
  Function run = nullptr;
  uint8_t fn = 0, from = 0, to = 0; // of CONVERT
  bool saturate = false;
  int32_t low = 0, high = 0; // limits of RESCALE
};

/// Finds the block function of (kind, fn) for these element types; false when there is none.
bool findBlockOp(uint16_t kind, uint16_t fn, const uint8_t* inElems, uint8_t outElem, bool saturate,
                 BlockOp& op);

/// RESCALE of one operand without a left shift: a, multiplier, shift, zero. `limits`: as in a
/// step's imm.
bool findRescale(uint8_t from, uint8_t to, uint64_t limits, BlockOp& op);
BlockOp::Function findBinary(uint16_t fn, uint8_t elem);
BlockOp::Function findUnary(uint16_t fn, uint8_t elem);
BlockOp::Function findConvert(uint8_t from, uint8_t to);

} // namespace candela::runtime::host_executor
