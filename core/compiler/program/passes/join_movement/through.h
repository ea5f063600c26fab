#pragma once

#include "core/compiler/program/program.h"

/// Views through a copy. A copy gives each element of a buffer a place in another one; a view of
/// the first is a view of the second where strides can say so.
namespace candela::program::passes::join_movement {

/// One side of a copy of row-major views, in elements.
struct CopySide {
  std::vector<int64_t> strides;
  int64_t offset = 0;
};
struct CopyWalk {
  std::vector<int64_t> dims;
  CopySide from, to;
};
/// Without dims of extent 1; neighbours that both sides walk as one merge.
CopyWalk walkOf(const Instr& copy);

/// `view` of the side `own`, as a view of the buffer on the `other` side of the walk; nullopt where
/// no strides say it. Each element of `own` has one place.
std::optional<View> through(const View& view, const CopyWalk& walk, const CopySide& own,
                            const CopySide& other, uint32_t otherBuffer);

/// `strides` over `dims` of the elements that `result` walks densely or not, walked over the dims
/// of the copy of that result instead; nullopt where a dim of the copy is no part of a dim. `own`:
/// the result's side.
std::optional<std::vector<int64_t>> over(const View& operand, const View& result,
                                         const CopyWalk& walk, const CopySide& own);

} // namespace candela::program::passes::join_movement
