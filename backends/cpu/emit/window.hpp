// Windows that stay within one channel: pooling and depthwise convolution. Lanes are neighbouring
// channels of a blocked layout, or neighbouring results of a row-major one.
#pragma once

#include "image.hpp"

namespace cpu {

/// A pool, or a sum of products with weights of each channel, over a grid of results.
struct Window {
  enum class Fn : uint8_t { MAX, AVERAGE, PRODUCT } fn = Fn::MAX; // PRODUCT: sum of x * weight
  int64_t kernel[2] = {1, 1}, stride[2] = {1, 1}, dilation[2] = {1, 1};
  // of results; channels: blocks of `lanes` when they are the lanes
  int64_t batch = 1, channels = 1, rows = 1, columns = 1;
  int lanes = 1;      // channels per block, 1 when lanes are columns
  int mostLanes = 64; // that placeImages() may choose
  // `panel` steps through channels, `row` and `column` through results (x: times the stride)
  Plane x, y;
  int64_t xRow = 0, xColumn = 0; // x: bytes between neighbouring rows and columns of its own
  Plane weights;                 // PRODUCT: `panel` per channel; taps are `lane`-dense: [kh][kw]
  int64_t weightTap = 0;         // bytes between taps
  std::optional<Plane> divisor;  // AVERAGE: f32 of row and column
  const cdl_expr_t* epilogue = nullptr;
  std::vector<std::optional<Plane>> views;
};

void emitWindow(Lowering& lowering, const Window& window);

/// Fills in the window's grid and planes by x, y and what the epilogue reads as images, all of one
/// layout.
void placeImages(Window& window, const ImageView& x, const ImageView& y,
                 const std::vector<std::optional<ImageView>>& views);

} // namespace cpu
