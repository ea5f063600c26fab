#pragma once

#include <span>

#include "core/compiler/graph/generated/ops.inc"
#include "core/support/elem.h"

namespace candela::graph {

/// The Graph's ops, from spec/ops/. `Constant` is built in: its payload is no attribute.
enum class OpKind : uint16_t {
  Constant,
#define CANDELA_OP(Kind, name) Kind,
  CANDELA_OPS(CANDELA_OP)
#undef CANDELA_OP
};

/// In the order of Attr's alternatives.
enum class AttrType : uint8_t { Int, Float, Ints, Floats, String, Elem, Bool };
enum class Tolerance : uint8_t { Exact, Rounded, Function, Contraction, Composite };

enum Trait : uint32_t {
  kTraitElementwise = 1, ///< one result element per operand element
  kTraitBroadcast = 2,   ///< operands broadcast multidirectionally
  kTraitCommutative = 4,
  kTraitMovement = 8, ///< moves elements, computes nothing
  kTraitReductionLike = 16,
  kTraitRowLocal = 32,
  kTraitContraction = 64, ///< multiply-accumulate: counts MACs
  kTraitWindow = 128,
  kTraitAlias = 256, ///< the result is the operand's bytes under another type
  kTraitComposite = 512,
  kTraitPrimitive = 1024, ///< one of the lowered forms that emit turns into instructions
  kTraitRegion = 2048,    ///< has a body, a Graph of its own
};

struct OperandInfo {
  std::string_view name, shape;
  uint32_t elems;        ///< mask of 1 << Elem; 0 with `like`
  std::string_view like; ///< the operand that has the same element type
  bool optional, variadic;
  bool accepts(Elem elem) const { return elems == 0 || (elems >> static_cast<unsigned>(elem) & 1); }
};
struct AttrInfo {
  std::string_view name;
  AttrType type;
  bool required;
  std::string_view defaultText; ///< as in the text form; empty: none
  std::string_view range;
};
struct ConstraintInfo {
  std::string_view id, text; ///< text with {named} holes
};

/// One record of spec/ops/.
struct OpInfo {
  OpKind kind;
  std::string_view name, summary, source;
  std::string_view onnx = {}; ///< the operator that maps onto it one to one, or empty
  std::span<const OperandInfo> operands = {}, results = {};
  std::span<const AttrInfo> attrs = {};
  std::span<const ConstraintInfo> constraints = {};
  uint32_t traits = 0;
  Tolerance tolerance = Tolerance::Exact;
  uint16_t instrKind = 0, instrFn = 0; ///< the instruction that does it, 0: a composite or an alias

  bool has(Trait trait) const { return traits & trait; }
  const AttrInfo* attr(std::string_view name) const;
};

/// Every record, without Constant.
std::span<const OpInfo> allOps();
/// Constant has a record too, with no operands.
const OpInfo& opInfo(OpKind kind);
std::optional<OpKind> parseOp(std::string_view name);
inline std::string_view opName(OpKind kind) { return opInfo(kind).name; }

} // namespace candela::graph
