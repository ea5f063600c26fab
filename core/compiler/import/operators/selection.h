#pragma once

#include "core/compiler/import/term.h"

/// What is true of a mask, in order: for operators whose result is as long as what they select.
namespace candela::import {

/// The type for numbers from -1 to `count`.
inline Elem placeElem(int64_t count) { return count < INT32_MAX ? Elem::i32_ : Elem::i64_; }

/// Integers summed up along an axis, each with all before it.
Term runningSum(const Term& x, int64_t axis);

/// Puts each update of a line where its place says, into a line of `count` zeros; places outside
/// are skipped.
Term putLine(int64_t count, const Term& place, const Term& updates, const char* fn = "set");

/// Where a mask of one dim is true.
struct Selected {
  Term places; ///< as many as the mask has elements: behind the first `count` they are 0
  Term number; ///< of each element that is true: its place in `places`; -1 where it is false
  Term count;  ///< an i64 scalar
};
Selected selected(const Term& mask);

} // namespace candela::import
