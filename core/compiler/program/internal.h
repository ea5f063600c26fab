#pragma once

#include "core/compiler/program/program.h"

/// What the files of this room share; not for other rooms.
namespace candela::program {

// ---- The parts of verify(): the records of the image, which cdl_image_check() holds, and what
// only a Program must be

/// What verify() was looking at when it failed: kNone, or an index.
struct Suspect {
  uint32_t buffer = kNone, instr = kNone;
};
Status verify(const Program& program, Suspect& suspect);

/// A record of the image and a part of it, as in cdl_check_t; no section: the Program as a whole.
struct Place {
  std::string_view section;
  uint32_t index = 0; ///< from 1
  const char* part = nullptr;
  uint32_t partIndex = UINT32_MAX;
};
/// toImage() for a Program that was not verified. Failure: bad_model, something has no place in its
/// record, with `place`. Not `hashed`: the hashes are zero.
Result<Bytes> writeImage(const Program& program, bool hashed, Place& place);

/// The element types that the kind and the steps ask for, of an instruction whose records are
/// right.
Status verifyTypes(const Instr& instr);
/// No element is overwritten by the instruction that reads it, but in its own place. The image was
/// checked.
Status verifyAliasing(const Program& program, const Instr& instr);
/// That loops and groups nest as the text does. In verify_bands.cpp.
Status verifyRegions(const Program& program);
/// verifyBands() of every group.
Status verifyAllBands(const Program& program, Suspect& suspect);

// ---- What printer and parser must agree on

inline constexpr std::string_view kRoles[] = {"temp",  "input", "output",
                                              "inout", "state", "constant"};
inline constexpr std::string_view kPadContents[] = {"undefined", "zero", "zero_point"};
/// How layouts of logical rank 4 spell their dims; others use numbers.
inline constexpr std::string_view kDimLetters = "nchw";

/// The product of the factors of the same dim that stand further inside: the N of `c/N`. Wraps on a
/// layout that was not verified.
uint64_t innerFactor(const std::vector<Layout::Step>& steps, size_t index);

} // namespace candela::program
