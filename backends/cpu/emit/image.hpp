// Activations and weights of convolutions as the emitters see them: row-major, or in blocks of 16
// channels with the channel of a block innermost.
#pragma once

#include "contraction.hpp"

#include <optional>

namespace cpu {

/// An image x[N,C,H,W], row-major, with channels last, or in blocks. Steps are in elements. Element
/// (n, c, h, w) lies at n * batch + c / 16 * block + c % 16 * lane + h * row + w * column.
struct ImageView {
  Operand view;
  bool isBlocked = false;
  int64_t n = 0, c = 0, h = 0, w = 0;
  int64_t batch = 0, block = 0, lane = 0, row = 0, column = 0;

  /// The plane of it in a grid of `group` channels per group, panels of 16 channels, rows and
  /// columns `rowStep`, `columnStep` apart.
  Plane plane(int64_t group, int64_t rowStep = 1, int64_t columnStep = 1) const;
  /// The axis of a sum over `channels`, a multiple of 16 of them in a blocked image; b moves by
  /// `weightStep` per channel.
  std::vector<SumAxis> channelAxes(int64_t channels, int64_t weightStep) const;
};

/// The panels of `run` in an image of `outs` channels per group, with the dims [batch, group,
/// panel, lane, row, column] that the caller says.
Operand panelsOf(const ImageView& image, const PanelRun& run, int64_t outs,
                 const std::vector<int64_t>& dims);

/// What ends a convolution: an expression, or none, and the images that it reads.
struct ImageEpilogue {
  const cdl_expr_t* expr = nullptr;
  std::vector<std::optional<ImageView>> views; // by index of the instruction's inputs

  /// The epilogue of the sums `acc` into y, in a pass of its own; `viewOf` gives an image the dims
  /// of `acc`.
  void apply(Lowering& lowering, const Operand& acc, const ImageView& y,
             const std::function<Operand(const ImageView&)>& viewOf) const;
};

/// The view as an image; nullopt: a layout that the emitters do not know. Reads views that
/// broadcast too (a bias over n, h and w).
std::optional<ImageView> imageOf(const Operand& view);

/// The image with the border that its buffer's halo gives it; nullopt when that is too narrow or
/// holds something else.
std::optional<ImageView> insideHalo(const ImageView& x, const int64_t begin[2],
                                    const int64_t end[2], uint64_t value);

/// The image with a border of `value` (bits of an element) around h and w: itself where there is
/// none or where the buffer's halo is one, else a copy in scratch. (h, w) of the result count the
/// border; its element (0, 0) is the border's first.
ImageView bordered(Lowering& lowering, const ImageView& x, const int64_t begin[2],
                   const int64_t end[2], uint64_t value);

/// A transposed convolution of x into y.
bool emitConvTransposed(Lowering& lowering, const Operand& w, const Conv2d& conv,
                        const ImageEpilogue& epilogue, const ImageView& x, const ImageView& y,
                        std::string& why);

} // namespace cpu
