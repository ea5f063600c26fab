#pragma once

#include "core/support/kinds.h"
#include "core/support/payload.h"

/// The low-level IR: instructions on addressed memory. This form is for building and rewriting;
/// image.h turns it into the flat image that crosses the ABI and back, text.h into `.cdl` and back.
/// Indices count from 0 here; the image and the text of waits say so where they differ.
namespace candela::program {

inline constexpr uint32_t kNone = UINT32_MAX;

using candela::fnName, candela::isPrimitive, candela::kindName;

struct Space {
  std::string name;
  bool hostMapped = true, local = false;
  uint64_t capacityBytes = 0; ///< 0: unlimited
  uint32_t alignment = 64, banks = 0;
  bool forConstants = false; ///< holds constants and nothing else
};

enum class Role : uint8_t { temp, input, output, inout, state, constant };

/// A border around the content of a buffer, in elements per dim, that holds `fill` whenever the
/// content is read.
struct Halo {
  Elem elem = Elem::none;
  std::vector<uint32_t> lo, hi;
  uint64_t fill = 0; ///< bits of one element
};

struct Buffer {
  std::string name; ///< unique, without '%'
  uint32_t space = 0;
  uint64_t bytes = 0;
  uint64_t offset = CDL_UNPLACED; ///< temp: in the arena of its space; others: 0
  uint32_t alignment = 64;
  Role role = Role::temp;
  uint32_t constant = kNone; ///< index into Program::constants exactly when role is constant
  std::optional<Halo> halo;
};

/// As graph::Layout: (logical dim, factor), outer to inner. Empty steps: row-major.
struct Layout {
  struct Step {
    uint8_t dim = 0;
    uint32_t factor = 0;
    friend bool operator==(const Step&, const Step&) = default;
  };
  std::vector<Step> steps;
  uint8_t logicalRank = 0, padContent = 0;
  bool opaque = false;
  std::string name;
  bool isRowMajor() const { return steps.empty() && !opaque; }
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Part of a buffer, in elements: index i lies at offset + sum(i[d] * strides[d]) +
/// sum(ivStrides[l] * loop value l).
struct View {
  uint32_t buffer = kNone;
  Elem elem = Elem::none;
  Layout layout;
  int64_t offset = 0;
  std::vector<int64_t> dims, strides;
  int64_t ivStrides[CDL_MAX_LOOP_NESTING] = {0, 0};

  int64_t count() const;
  bool isDense() const; ///< row-major and contiguous
};
/// A dense view of a whole buffer.
View denseView(uint32_t buffer, Elem elem, std::vector<int64_t> dims);

struct Operand {
  enum class Source : uint8_t { none, acc, view, constant, step };
  Source source = Source::none;
  Elem elem = Elem::none;
  uint16_t index = 0;
};
struct Step {
  uint16_t kind = 0, fn = 0;
  Elem elem = Elem::none;
  bool saturate = false;
  std::vector<Operand> in;
  uint64_t imm = 0;
};
/// At most 32 steps; the last one is the value.
using Expr = std::vector<Step>;

struct Attr {
  uint16_t id = 0;  ///< CDL_ATTR_*
  uint8_t type = 1; ///< 1 int, 2 float, 3 ints, 4 bits
  std::vector<int64_t> values;
  static Attr ofInt(uint16_t id, int64_t value) { return {id, 1, {value}}; }
  static Attr ofInts(uint16_t id, std::vector<int64_t> values) {
    return {id, 3, std::move(values)};
  }
  static Attr ofFloat(uint16_t id, double value);
  static Attr ofBits(uint16_t id, uint64_t bits) { return {id, 4, {static_cast<int64_t>(bits)}}; }
  double asFloat() const;
};

/// The ONNX node and op that an instruction came from.
struct Origin {
  std::string node, op;
  friend bool operator==(const Origin&, const Origin&) = default;
};

struct Instr {
  uint16_t kind = 0, fn = 0, engine = 0;
  bool inout = false;                ///< outputs are read too
  std::vector<View> inputs, outputs; ///< expr views are inputs after the kind's own
  std::vector<Attr> attrs;
  Expr expr;
  uint32_t prologue = 0;       ///< of REDUCE: the first steps of expr, which compute its operand
  std::vector<uint32_t> waits; ///< earlier instructions of the same block
  uint32_t loop = kNone, group = kNone;
  std::vector<Origin> provenance;

  const Attr* attr(uint16_t id) const; ///< null when absent
  int64_t intAttr(uint16_t id, int64_t otherwise) const;
  /// How many of the inputs are operands of the kind; those after them are read by the epilogue
  /// alone. The lowest view that the epilogue names beyond the kind's obligatory operands is the
  /// first of those.
  size_t operandCount() const;
  /// The steps of the prologue, and those behind them: each an expression of its own.
  Expr prologueSteps() const { return {expr.begin(), expr.begin() + prologue}; }
  Expr epilogueSteps() const;
};

/// The element type that an instruction's own result has: that of the expr's accumulator, else of
/// the output. none: the expr never reads the accumulator.
Elem accumulatorElem(const Instr& instr);

/// instrs[first .. first + count) run `trip` times, with a full barrier at the back edge. Nested at
/// most twice; loops nest properly and inner loops stand after outer ones.
struct Loop {
  uint32_t first = 0, count = 0, parent = kNone;
  uint64_t trip = 0;
};
struct Group {
  uint32_t first = 0, count = 0, bandDim = 0, bands = 1;
};
struct Constant {
  std::string name;
  Payload payload; ///< data or splat
};

struct Program {
  std::string name = "main";
  uint32_t engines = 1;
  std::vector<Space> spaces{Space{"host"}};
  std::vector<Buffer> buffers;
  std::vector<Instr> instrs;
  std::vector<Loop> loops;
  std::vector<Group> groups;
  std::vector<Constant> constants;

  uint32_t addBuffer(Buffer buffer); ///< makes the name unique
  /// Shares equal payloads, materializes iota and random; returns the buffer.
  uint32_t addConstant(std::string name, Payload payload);
  /// Bytes of arena that the TEMP buffers of a space need once they are placed.
  uint64_t arenaBytes(uint32_t space = 0) const;
  /// The type that the views of a buffer give its content, results before operands: of one that
  /// covers all of it, else a row of the first one's elements, else bytes.
  std::pair<Elem, Shape> contentType(uint32_t buffer) const;
  /// "matmul [3] 'Conv_0'": how messages name an instruction; counted from 1 as in the image and
  /// the text.
  std::string instrName(uint32_t index) const;
};

/// Puts constants into the space that is for them, where there is one.
void placeConstants(Program& program);

/// Everything that must hold: indices, views inside buffers, operand shapes and types per kind
/// (spec/primitives.toml), expr typing, waits, loops, roles (constants and inputs are never
/// written). Failures name the instruction.
Status verify(const Program& program);

} // namespace candela::program
