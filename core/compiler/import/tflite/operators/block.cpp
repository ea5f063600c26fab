// Blocks of elements that become channels or batches, and back.
#include <algorithm>

#include "core/compiler/import/tflite/step.h"
#include "core/compiler/import/tflite/window.h"

namespace candela::import::tflite {
namespace {

void writeBlocks(Step& step, const char* op, int64_t size) {
  needRank(step, 0, 4);
  extents("block_size", {size});
  const Name x = channelsFirst(step, step.moved(0), 4);
  step.finishMoved(0, 0, channelsLast(step, step.add(op, {x}, {{"blocksize", size}}), 4));
}
void writeDepthToSpace(Step& step) {
  writeBlocks(step, "DepthToSpace", step.options<schema::DepthToSpaceOptions>().block_size());
}
void writeSpaceToDepth(Step& step) {
  writeBlocks(step, "SpaceToDepth", step.options<schema::SpaceToDepthOptions>().block_size());
}

/// Blocks of dims 1, 2, ... and two numbers for each: pads, or crops.
struct Batches {
  Ints block, margins;
  size_t spatial() const { return block.size(); }
  int64_t product() const {
    int64_t all = 1;
    for (const int64_t size : block) all *= size;
    return all;
  }
};

Batches batchesOf(Step& step, const char* what) {
  Batches batches{extents("a block", step.ints(1, "blocks")), step.ints(2, what)};
  const auto spatial = static_cast<int64_t>(batches.spatial());
  if (spatial < 1 || spatial >= step.input(0).rank() ||
      batches.margins.size() != 2 * batches.spatial())
    reject("it has {} blocks and {} {} for {} dims", spatial, batches.margins.size(), what,
           step.input(0).rank());
  for (const int64_t size : batches.block)
    if (size > 1 << 16) reject("a block of {}", size);
  for (const int64_t margin : batches.margins)
    if (margin < 0 || margin > 1 << 20) reject("{} of {}", what, margin);
  return batches;
}

/// The dims behind the blocks, which have to be known.
Ints restOf(Step& step, const Batches& batches) {
  Ints rest;
  for (int64_t i = static_cast<int64_t>(batches.spatial()) + 1; i < step.input(0).rank(); ++i)
    rest.push_back(step.dim(0, i));
  return rest;
}

/// [n, h, w, c], padded, seen as [n, h/b, b, w/b, b, c], becomes [b, b, n, h/b, w/b, c].
void writeSpaceToBatch(Step& step) {
  const Batches batches = batchesOf(step, "pads");
  const TensorInfo& x = step.input(0);
  const bool isStored = step.isAlike(0, 0);
  const int64_t spatial = static_cast<int64_t>(batches.spatial()), rank = x.rank();
  Ints split = {-1}, whole = {-1}, perm;
  Ints pads(static_cast<size_t>(2 * rank), 0);
  for (int64_t i = 0; i < spatial; ++i) {
    const auto at = static_cast<size_t>(i);
    pads[at + 1] = batches.margins[2 * at];
    pads[at + 1 + static_cast<size_t>(rank)] = batches.margins[2 * at + 1];
    const int64_t extent =
        step.dim(0, i + 1) + batches.margins[2 * at] + batches.margins[2 * at + 1];
    if (extent % batches.block[at] != 0)
      reject("{} elements are no whole number of blocks of {}", extent, batches.block[at]);
    split.push_back(extent / batches.block[at]);
    split.push_back(batches.block[at]);
    whole.push_back(extent / batches.block[at]);
    perm.push_back(2 * i + 2);
  }
  perm.push_back(0);
  for (int64_t i = 0; i < spatial; ++i) perm.push_back(2 * i + 1);
  for (int64_t i = 2 * spatial + 1; i < rank + spatial; ++i) perm.push_back(i);
  for (const int64_t dim : restOf(step, batches)) {
    split.push_back(dim);
    whole.push_back(dim);
  }
  Name y = isStored ? step.stored(0) : step.real(0);
  if (std::ranges::any_of(pads, [](int64_t pad) { return pad != 0; })) {
    const double zero =
        isStored && x.isQuantized() ? static_cast<double>(x.quantization.zeros[0]) : 0;
    y = step.add("Pad",
                 {y, step.constant(pads), step.number(zero, isStored ? x.elem : Elem::f32_)});
  }
  y = step.reshape(step.transpose(step.reshape(y, split), perm), whole);
  step.finishMoved(0, 0, y);
}

/// [b, b, n, h, w, c] becomes [n, h, b, w, b, c], cropped.
void writeBatchToSpace(Step& step) {
  const Batches batches = batchesOf(step, "crops");
  const int64_t spatial = static_cast<int64_t>(batches.spatial()), rank = step.input(0).rank();
  Ints split = batches.block, whole = {-1}, perm = {spatial};
  Ints starts, ends, axes;
  split.push_back(-1);
  for (int64_t i = 0; i < spatial; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t extent = step.dim(0, i + 1);
    split.push_back(extent);
    whole.push_back(extent * batches.block[at]);
    perm.push_back(spatial + 1 + i);
    perm.push_back(i);
    starts.push_back(batches.margins[2 * at]);
    ends.push_back(extent * batches.block[at] - batches.margins[2 * at + 1]);
    axes.push_back(i + 1);
    if (starts.back() > ends.back())
      reject("crops {} and {} are wider than {} elements", batches.margins[2 * at],
             batches.margins[2 * at + 1], extent * batches.block[at]);
  }
  for (int64_t i = 2 * spatial + 1; i < rank + spatial; ++i) perm.push_back(i);
  for (const int64_t dim : restOf(step, batches)) {
    split.push_back(dim);
    whole.push_back(dim);
  }
  Name y = step.reshape(step.transpose(step.reshape(step.moved(0), split), perm), whole);
  y = step.add("Slice", {y, step.constant(starts), step.constant(ends), step.constant(axes)});
  step.finishMoved(0, 0, y);
}

constexpr std::string_view kBlockLimits = "all but the batch has to be known";

constexpr Operator kBlock[] = {
    {schema::BuiltinOperator_BATCH_TO_SPACE_ND, 3, 3, 1, writeBatchToSpace, kBlockLimits},
    {schema::BuiltinOperator_DEPTH_TO_SPACE, 1, 1, 1, writeDepthToSpace},
    {schema::BuiltinOperator_SPACE_TO_BATCH_ND, 3, 3, 1, writeSpaceToBatch, kBlockLimits},
    {schema::BuiltinOperator_SPACE_TO_DEPTH, 1, 1, 1, writeSpaceToDepth},
};

} // namespace

std::span<const Operator> blockOperators() { return kBlock; }

} // namespace candela::import::tflite
