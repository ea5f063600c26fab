// Walks over several views at once, cut into boxes that one descriptor can say: a run of neighbours
// and up to three dims of even steps. First dims that every operand steps through evenly become
// one; then the innermost ones that a descriptor holds are a box, and the others are counted
// through.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace npu_sim {

/// The elements that an instruction goes over: each dim has a stride in bytes for every operand.
struct Walk {
  struct Dim {
    int64_t extent = 1;
    std::array<int64_t, 3> strides{};
  };
  std::vector<Dim> dims; ///< the order is free
  int operands = 2;
  /// the operand whose smallest strides lie inside; -1: the last one, which is written
  int inner = -1;
};

/// What a descriptor can hold.
struct BoxLimits {
  int dims = 3;                         ///< beside the run
  int64_t extent = 65536;               ///< of the run and of each dim
  std::array<int64_t, 3> low{}, high{}; ///< strides by operand
  std::array<bool, 3> runMayRepeat{};   ///< the operand may have a stride of 0 along the run
};

struct Box {
  int64_t run = 1; ///< elements
  std::array<int64_t, 3> extents{1, 1, 1};
  std::array<std::array<int64_t, 3>, 3> strides{}; ///< by operand and dim, the innermost first
  std::array<int64_t, 3> offsets{};                ///< bytes by operand
  /// the operand has one element for the whole run
  std::array<bool, 3> repeats{};
};

/// Calls `emit` for boxes that cover the walk once. `bytes`: of one element, by operand; along the
/// run every operand steps by that, or by 0. Fewer dims are joined where `isLegal` says no; boxes
/// of one run are not asked for.
void forEachBox(const Walk& walk, const std::array<int64_t, 3>& bytes, const BoxLimits& limits,
                const std::function<bool(const Box&)>& isLegal,
                const std::function<void(const Box&)>& emit);

/// Whether every dim steps over what lies within those of smaller strides, so that no byte of the
/// operand is touched twice.
bool stepsOver(const Box& box, int operand, int64_t bytes);

/// The bytes from the lowest to behind the highest that the box touches of an operand, relative to
/// where it begins.
std::array<int64_t, 2> extentOf(const Box& box, int operand, int64_t bytes);

} // namespace npu_sim
