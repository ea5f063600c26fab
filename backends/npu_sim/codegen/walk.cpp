#include "walk.hpp"

#include <algorithm>

namespace npu_sim {

namespace {

using Dim = Walk::Dim;

/// The dims without those of 1; neighbours that every operand steps through evenly are one.
std::vector<Dim> joined(const Walk& walk) {
  std::vector<Dim> dims;
  for (const Dim& dim : walk.dims)
    if (dim.extent != 1) dims.push_back(dim);
  const auto by = static_cast<size_t>(walk.inner < 0 ? walk.operands - 1 : walk.inner);
  std::stable_sort(dims.begin(), dims.end(), [&](const Dim& a, const Dim& b) {
    return std::abs(a.strides[by]) > std::abs(b.strides[by]);
  });
  for (size_t d = dims.size(); d-- > 1;) {
    bool joins = true;
    for (int o = 0; o < walk.operands; ++o)
      joins &= dims[d - 1].strides[static_cast<size_t>(o)] ==
               dims[d].strides[static_cast<size_t>(o)] * dims[d].extent;
    if (!joins) continue;
    dims[d].extent *= dims[d - 1].extent;
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(d - 1));
  }
  return dims;
}

class Boxes {
public:
  Boxes(const Walk& walk, const std::array<int64_t, 3>& bytes, const BoxLimits& limits,
        const std::function<bool(const Box&)>& isLegal, const std::function<void(const Box&)>& emit)
      : operands_(walk.operands), bytes_(bytes), limits_(limits), isLegal_(isLegal), emit_(emit),
        dims_(joined(walk)) {
    for (const Dim& dim : dims_) hasElements_ &= dim.extent > 0;
    for (const Dim& dim : walk.dims) hasElements_ &= dim.extent > 0;
  }

  void run() {
    if (!hasElements_) return;
    Box box;
    // The run: a dim along which every operand goes element by element.
    for (size_t d = dims_.size(); d-- > 0;) {
      if (!isRun(dims_[d])) continue;
      run_ = dims_[d];
      dims_.erase(dims_.begin() + static_cast<std::ptrdiff_t>(d));
      for (int o = 0; o < operands_; ++o)
        box.repeats[static_cast<size_t>(o)] = run_.strides[static_cast<size_t>(o)] == 0;
      break;
    }
    cut(box);
  }

private:
  bool isRun(const Dim& dim) const {
    for (int o = 0; o < operands_; ++o) {
      const auto at = static_cast<size_t>(o);
      if (dim.strides[at] != bytes_[at] && !(dim.strides[at] == 0 && limits_.runMayRepeat[at]))
        return false;
    }
    return true;
  }
  bool fits(const Dim& dim) const {
    for (int o = 0; o < operands_; ++o) {
      const auto at = static_cast<size_t>(o);
      if (dim.strides[at] < limits_.low[at] || dim.strides[at] > limits_.high[at]) return false;
    }
    return true;
  }

  /// Cuts a run that is too long for one box into several that follow each other, and a rest.
  void cut(const Box& box) {
    const int64_t most = limits_.extent, whole = run_.extent / most * most;
    Box part = box;
    if (run_.extent <= most || whole / most > most) return cutEvenly(box);
    Dim pieces;
    pieces.extent = whole / most;
    for (int o = 0; o < operands_; ++o)
      pieces.strides[static_cast<size_t>(o)] = most * run_.strides[static_cast<size_t>(o)];
    std::vector<Dim> dims = dims_;
    dims.push_back(pieces);
    part.run = most;
    level(part, dims, limits_.dims);
    if (whole == run_.extent) return;
    part.run = run_.extent - whole;
    for (int o = 0; o < operands_; ++o)
      part.offsets[static_cast<size_t>(o)] += whole * run_.strides[static_cast<size_t>(o)];
    level(part, dims_, limits_.dims);
  }

  void cutEvenly(const Box& box) {
    for (int64_t begin = 0; begin < run_.extent; begin += limits_.extent) {
      Box part = box;
      part.run = std::min(limits_.extent, run_.extent - begin);
      for (int o = 0; o < operands_; ++o)
        part.offsets[static_cast<size_t>(o)] += begin * run_.strides[static_cast<size_t>(o)];
      level(part, dims_, limits_.dims);
    }
  }

  /// The innermost dims that fit become those of boxes; the others are counted through.
  void level(const Box& start, const std::vector<Dim>& dims, int most) {
    for (size_t d = 0; d < dims.size(); ++d) { // longer than a descriptor says: in parts
      if (!fits(dims[d]) || dims[d].extent <= limits_.extent) continue;
      for (int64_t begin = 0; begin < dims[d].extent; begin += limits_.extent) {
        std::vector<Dim> shorter = dims;
        shorter[d].extent = std::min(limits_.extent, dims[d].extent - begin);
        Box moved = start;
        for (int o = 0; o < operands_; ++o)
          moved.offsets[static_cast<size_t>(o)] += begin * dims[d].strides[static_cast<size_t>(o)];
        level(moved, shorter, most);
      }
      return;
    }
    std::vector<Dim> outer;
    Box box = start;
    int taken = 0;
    for (size_t d = dims.size(); d-- > 0;) {
      if (taken == most || !fits(dims[d])) {
        outer.insert(outer.begin(), dims[d]);
        continue;
      }
      box.extents[static_cast<size_t>(taken)] = dims[d].extent;
      for (int o = 0; o < operands_; ++o)
        box.strides[static_cast<size_t>(o)][static_cast<size_t>(taken)] =
            dims[d].strides[static_cast<size_t>(o)];
      ++taken;
    }
    if (taken > 0 && !isLegal_(box)) return level(start, dims, taken - 1);
    count(box, outer, 0);
  }

  void count(const Box& box, const std::vector<Dim>& outer, size_t d) {
    if (d == outer.size()) return emit_(box);
    for (int64_t i = 0; i < outer[d].extent; ++i) {
      Box moved = box;
      for (int o = 0; o < operands_; ++o)
        moved.offsets[static_cast<size_t>(o)] += i * outer[d].strides[static_cast<size_t>(o)];
      count(moved, outer, d + 1);
    }
  }

  int operands_;
  const std::array<int64_t, 3>& bytes_;
  const BoxLimits& limits_;
  const std::function<bool(const Box&)>& isLegal_;
  const std::function<void(const Box&)>& emit_;
  std::vector<Dim> dims_;
  Dim run_;
  bool hasElements_ = true;
};

} // namespace

void forEachBox(const Walk& walk, const std::array<int64_t, 3>& bytes, const BoxLimits& limits,
                const std::function<bool(const Box&)>& isLegal,
                const std::function<void(const Box&)>& emit) {
  Boxes(walk, bytes, limits, isLegal, emit).run();
}

bool stepsOver(const Box& box, int operand, int64_t bytes) {
  std::array<std::array<int64_t, 2>, 3> dims; // stride, extent
  for (size_t d = 0; d < 3; ++d)
    dims[d] = {std::abs(box.strides[static_cast<size_t>(operand)][d]), box.extents[d]};
  std::sort(dims.begin(), dims.end());
  int64_t within = box.run * bytes;
  for (const auto& [stride, extent] : dims) {
    if (extent == 1) continue;
    if (stride < within) return false;
    within += stride * (extent - 1);
  }
  return true;
}

std::array<int64_t, 2> extentOf(const Box& box, int operand, int64_t bytes) {
  const auto o = static_cast<size_t>(operand);
  int64_t low = 0, high = box.repeats[o] ? bytes : box.run * bytes;
  for (size_t d = 0; d < 3; ++d) {
    const int64_t step = (box.extents[d] - 1) * box.strides[o][d];
    (step < 0 ? low : high) += step;
  }
  return {low, high};
}

} // namespace npu_sim
