#ifndef CANDELA_CORE_PROGRAM_VERIFY_INTERNAL_H
#define CANDELA_CORE_PROGRAM_VERIFY_INTERNAL_H

#include "core/program/program.h"

/// The parts of verify(); none names the instruction, verify() puts that in front.
namespace candela::program {

/// What verify() was looking at when it failed: kNone, or an index.
struct Suspect {
  uint32_t buffer = kNone, instr = kNone;
};
Status verify(const Program& program, Suspect& suspect);

/// Attributes that the kind takes, with types, counts and ranges.
Status verifyAttrs(const Instr& instr);
/// Shapes and element types as the kind asks. Views, attributes and the expr's indices were
/// checked.
Status verifyKind(const Instr& instr);
/// Steps, their types, and the views that they read.
Status verifyExpr(const Instr& instr);

/// The value has no bits beyond those of the element type.
bool fitsElem(uint64_t bits, Elem elem);

/// Whether a function of UNARY, BINARY or COMPARE takes elements of this type.
bool unaryTakes(uint16_t fn, Elem elem);
bool binaryTakes(uint16_t fn, Elem elem);
inline bool isNumber(Elem elem) { return elem != Elem::bool_ && !isStorageOnly(elem); }

} // namespace candela::program

#endif
