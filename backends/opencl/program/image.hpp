// Images as the writers of kernels see them.
#pragma once

#include "text.hpp"

namespace program {

/// An image x[N,C,H,W]: row-major, with channels last, or in blocks of 16 channels. Steps are in
/// elements: (n, c, h, w) lies at n * batch + c / 16 * block + c % 16 * lane + h * row + w *
/// column.
struct Image {
  int64_t n = 0, c = 0, h = 0, w = 0;
  int64_t batch = 0, block = 0, lane = 0, row = 0, column = 0;

  bool isBlocked() const { return block != kLanes * lane; }
};

/// The view as an image; false: a layout that nobody here knows. Takes views that broadcast too.
bool imageOf(const Instruction& instr, const cdl_view_t& view, Image& image);

} // namespace program
