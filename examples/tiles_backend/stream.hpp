// The command stream: what the compiler writes, a blob stores and the engine runs. The engine knows
// nothing else of a
// Program: no instruction, no view, no attribute.
#pragma once

#include <candela/backend.hpp>
#include <candela/numerics.h>

namespace tiles {

constexpr const char* kMadeBy = "tiles 0.1.0"; // the backend and its version

constexpr int kSide = 16;             // the array multiplies kSide rows by kSide columns
constexpr int kLanes = kSide * kSide; // of a register, which is one tile in local memory
constexpr int kDepth = 256;           // terms that the array sums in one go
// It sums in f32, which is exact for so many products of 8-bit integers less their zero points.
static_assert(255 * 255 * kDepth <= 1 << 24);
constexpr uint32_t kRegisterBytes = kLanes * 4;
constexpr uint32_t kPanelBytes = kSide * kDepth * 4; // local memory: two panels, then the registers

/// Commands of a tile. Lanes hold f32, or i32 for every integer type and bool.
enum class Opcode : uint16_t {
  LOAD,       // to = tensor[index]
  STORE,      // tensor[index] = in[0]
  SPLAT,      // to = low, in every lane
  MULTIPLY,   // to = product[index]
  ARITHMETIC, // to = kind.fn(in...): BINARY, UNARY, COMPARE, SELECT or CONVERT
  RESCALE,    // to = RESCALE on in[0..3] or in[0..5], clamped to low .. high
  COUNT
};

struct Command {
  Opcode op = Opcode::LOAD;
  uint16_t kind = 0, fn = 0;
  uint8_t elem = 0, from = 0; // of the result, and of the operands
  uint8_t to = 0, inputs = 0, saturate = 0, pad = 0;
  uint8_t in[6] = {}, left[2] = {};
  uint32_t index = 0;
  int32_t low = 0, high = 0;
};
static_assert(sizeof(Command) == 32);

/// Where elements lie in main memory: at offset + sum(index[d] * strides[d]) + sum(loop variable l
/// * loops[l]).
struct Tensor {
  uint32_t buffer; // of the image, or kOwn
  uint32_t elem;
  int64_t offset, loops[CDL_MAX_LOOP_NESTING], strides[CDL_MAX_RANK];
};
constexpr uint32_t kOwn = UINT32_MAX; // the constants that the executable holds itself

/// A convolution of x[b, c, h, w]; a matrix product is one of a window of 1. The weights are walked
/// by batch, panel of kSide columns, column in the panel, channel, kernel row and column.
struct Product {
  Tensor x, w; // strides of x: b, c, h, w
  int64_t channels, columns, kernel[2], extent[2], stride[2], dilation[2], pad[2];
  int64_t zero; // of x; padding holds it

  int64_t panels() const { return (columns + kSide - 1) / kSide; }
};

/// The commands first .. first + count - 1, for every tile of a space of dims. A tile is up to
/// `width` neighbours along the last dim in up to kLanes / width rows; the rows are those of all
/// other dims in order, cut where `span` rows end.
struct Job {
  uint32_t instr; // that it does, from which its loop variables and its record in a profile come
  uint32_t first, count, rank;
  int64_t dims[CDL_MAX_RANK], width, span;
};

struct Stream {
  std::vector<Job> jobs; // in the order of their instructions
  std::vector<Command> commands;
  std::vector<Tensor> tensors;
  std::vector<Product> products;
  std::vector<char> own;  // constants, each from a multiple of 64 on
  uint64_t registers = 1; // that any job needs at once

  uint64_t localBytes() const { return 2 * kPanelBytes + registers * kRegisterBytes; }
};

/// 0: not a type that lanes hold.
inline int64_t elemBytes(uint32_t elem) {
  if (elem == CDL_F32 || elem == CDL_I32) return 4;
  return elem == CDL_I8 || elem == CDL_U8 || elem == CDL_BOOL ? 1 : 0;
}

/// The integers of a type.
struct Range {
  int64_t low, high;
};
inline Range rangeOf(uint32_t elem) {
  const int64_t half = int64_t(1) << (8 * elemBytes(elem) - 1);
  return elem == CDL_I8 || elem == CDL_I32 ? Range{-half, half - 1} : Range{0, 2 * half - 1};
}

} // namespace tiles
