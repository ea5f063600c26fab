#include "core/compiler/program/passes/join_movement/through.h"

#include <optional>

namespace candela::program::passes::join_movement {

namespace {

/// A step of `stride` elements as so many steps along one of `dims`, which has room for `extent` of
/// them behind what is used of it; the finest such dim that is coarse enough.
struct Along {
  size_t dim;
  int64_t steps;
};
std::optional<Along> along(int64_t stride, int64_t extent, const std::vector<int64_t>& dims,
                           const std::vector<int64_t>& strides, const std::vector<int64_t>& used) {
  std::optional<Along> best;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (strides[d] <= 0 || stride < strides[d] || stride % strides[d] != 0) continue;
    const int64_t steps = stride / strides[d];
    if (used[d] + (extent - 1) * steps >= dims[d]) continue;
    if (!best || strides[d] > strides[best->dim]) best = Along{d, steps};
  }
  return best;
}

} // namespace

CopyWalk walkOf(const Instr& copy) {
  const View &from = copy.inputs[0], &to = copy.outputs[0];
  CopyWalk walk;
  walk.from.offset = from.offset;
  walk.to.offset = to.offset;
  for (size_t d = 0; d < from.dims.size(); ++d) {
    if (from.dims[d] == 1) continue;
    if (!walk.dims.empty() && walk.from.strides.back() == from.strides[d] * from.dims[d] &&
        walk.to.strides.back() == to.strides[d] * to.dims[d]) {
      walk.dims.back() *= from.dims[d];
      walk.from.strides.back() = from.strides[d];
      walk.to.strides.back() = to.strides[d];
      continue;
    }
    walk.dims.push_back(from.dims[d]);
    walk.from.strides.push_back(from.strides[d]);
    walk.to.strides.push_back(to.strides[d]);
  }
  return walk;
}

std::optional<View> through(const View& view, const CopyWalk& walk, const CopySide& own,
                            const CopySide& other, uint32_t otherBuffer) {
  View there = view;
  there.buffer = otherBuffer;
  there.offset = other.offset;
  // Where the view begins, dim by dim of the copy, the coarsest first.
  std::vector<int64_t> used(walk.dims.size(), 0);
  int64_t rest = view.offset - own.offset;
  for (size_t n = 0; n < walk.dims.size() && rest > 0; ++n) {
    size_t coarsest = walk.dims.size();
    for (size_t d = 0; d < walk.dims.size(); ++d)
      if (own.strides[d] > 0 && own.strides[d] <= rest && used[d] == 0 &&
          (coarsest == walk.dims.size() || own.strides[d] > own.strides[coarsest]))
        coarsest = d;
    if (coarsest == walk.dims.size()) return std::nullopt;
    used[coarsest] = rest / own.strides[coarsest];
    if (used[coarsest] >= walk.dims[coarsest]) return std::nullopt;
    rest -= used[coarsest] * own.strides[coarsest];
    there.offset += used[coarsest] * other.strides[coarsest];
  }
  if (rest != 0) return std::nullopt;
  int64_t inner = 1;
  for (size_t d = view.dims.size(); d-- > 0;) {
    if (view.dims[d] == 1) { // no step along it: as in a dense view
      there.strides[d] = inner;
      continue;
    }
    if (view.strides[d] != 0) {
      const auto found = along(view.strides[d], view.dims[d], walk.dims, own.strides, used);
      if (!found) return std::nullopt;
      used[found->dim] += (view.dims[d] - 1) * found->steps;
      there.strides[d] = found->steps * other.strides[found->dim];
    }
    inner = there.strides[d] * view.dims[d];
  }
  return there;
}

std::optional<std::vector<int64_t>> over(const View& operand, const View& result,
                                         const CopyWalk& walk, const CopySide& own) {
  std::vector<int64_t> strides, used(result.dims.size(), 0);
  for (size_t d = 0; d < walk.dims.size(); ++d) {
    const auto found = along(own.strides[d], walk.dims[d], result.dims, result.strides, used);
    if (!found) return std::nullopt;
    used[found->dim] += (walk.dims[d] - 1) * found->steps;
    strides.push_back(found->steps * operand.strides[found->dim]);
  }
  return strides;
}

} // namespace candela::program::passes::join_movement
