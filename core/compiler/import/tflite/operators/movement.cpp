// Elements that only move.
#include <algorithm>

#include "core/compiler/import/tflite/step.h"

namespace candela::import::tflite {
namespace {

/// As many -1 as ONNX allows; else the shape is an operand.
void writeReshape(Step& step) {
  const Name x = step.moved(0);
  if (step.has(1) && !step.input(1).content)
    return step.finishMoved(0, 0,
                            step.add("Reshape", {x, step.longs(1)}, {{"allowzero", int64_t(1)}}));
  Ints dims;
  if (step.has(1)) {
    dims = step.ints(1, "the shape");
  } else if (const auto* shape = step.options<schema::ReshapeOptions>().new_shape()) {
    dims.assign(shape->begin(), shape->end());
    if (dims == Ints{0}) dims.clear(); // as old writers say "a scalar"
  } else {
    reject("it has no shape");
  }
  if (std::ranges::count(dims, -1) > 1) reject("its shape has several -1");
  step.finishMoved(0, 0, step.reshape(x, dims));
}

void writeTranspose(Step& step) {
  step.finishMoved(0, 0, step.transpose(step.moved(0), step.ints(1, "the permutation")));
}

/// Without axes: every dim of 1 that the shape in the file has.
void writeSqueeze(Step& step) {
  const auto* axes = step.options<schema::SqueezeOptions>().squeeze_dims();
  Ints gone;
  if (axes) gone.assign(axes->begin(), axes->end());
  if (gone.empty())
    for (int64_t i = 0; i < step.input(0).rank(); ++i)
      if (step.input(0).dims[static_cast<size_t>(i)] == 1) gone.push_back(i);
  const Name x = step.moved(0);
  step.finishMoved(0, 0, gone.empty() ? x : step.squeeze(x, gone));
}

void writeExpandDims(Step& step) {
  step.finishMoved(0, 0, step.unsqueeze(step.moved(0), {step.integer(1, "the axis")}));
}

void writeConcatenation(Step& step) {
  const auto& options = step.options<schema::ConcatenationOptions>();
  bool isStored = options.fused_activation_function() == schema::ActivationFunctionType_NONE;
  for (size_t i = 0; i < step.inputCount(); ++i) isStored &= step.isAlike(i, 0);
  std::vector<Name> pieces;
  for (size_t i = 0; i < step.inputCount(); ++i)
    pieces.push_back(isStored ? step.stored(i) : step.real(i));
  const Name y = step.add("Concat", std::move(pieces), {{"axis", int64_t(options.axis())}});
  if (isStored) return step.setStored(0, y);
  step.set(0, step.activate(y, options.fused_activation_function()));
}

void writePack(Step& step) {
  const int64_t axis = step.options<schema::PackOptions>().axis();
  bool isStored = true;
  for (size_t i = 0; i < step.inputCount(); ++i) isStored &= step.isAlike(i, 0);
  std::vector<Name> pieces;
  for (size_t i = 0; i < step.inputCount(); ++i)
    pieces.push_back(step.unsqueeze(isStored ? step.stored(i) : step.real(i), {axis}));
  const Name y = step.add("Concat", std::move(pieces), {{"axis", axis}});
  if (isStored) return step.setStored(0, y);
  step.set(0, y);
}

/// Pieces of the operand, each of which may be quantized in its own way.
void finishPieces(Step& step, size_t input, const std::vector<Name>& pieces, bool isStored) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (isStored)
      step.finishMoved(input, i, pieces[i]);
    else
      step.set(i, pieces[i]);
  }
}

bool isStoredInAll(Step& step, size_t input) {
  bool isStored = true;
  for (size_t i = 0; i < step.outputCount(); ++i)
    if (step.wants(i)) isStored &= step.isAlike(input, i);
  return isStored;
}

void writeUnpack(Step& step) {
  const auto& options = step.options<schema::UnpackOptions>();
  if (options.num() < 0 || static_cast<size_t>(options.num()) != step.outputCount())
    reject("num is {}, but it has {} outputs", options.num(), step.outputCount());
  const bool isStored = isStoredInAll(step, 0);
  const int64_t axis = options.axis();
  const int64_t count = options.num();
  const Name x = isStored ? step.stored(0) : step.real(0);
  std::vector<Name> pieces =
      step.addAll("Split", {x}, step.outputCount(), {{"axis", axis}, {"num_outputs", count}});
  for (Name& piece : pieces) piece = step.squeeze(piece, {axis});
  finishPieces(step, 0, pieces, isStored);
}

void writeSplit(Step& step) {
  const auto& options = step.options<schema::SplitOptions>();
  if (options.num_splits() < 1 || static_cast<size_t>(options.num_splits()) != step.outputCount())
    reject("num_splits is {}, but it has {} outputs", options.num_splits(), step.outputCount());
  const bool isStored = isStoredInAll(step, 1);
  const int64_t count = options.num_splits();
  const std::vector<Name> pieces =
      step.addAll("Split", {isStored ? step.stored(1) : step.real(1)}, step.outputCount(),
                  {{"axis", step.integer(0, "the axis")}, {"num_outputs", count}});
  finishPieces(step, 1, pieces, isStored);
}

/// One size may be -1: what is left.
void writeSplitV(Step& step) {
  Ints sizes = step.ints(1, "sizes");
  const int64_t axis = step.axis(step.integer(2, "the axis"), step.input(0).rank());
  if (sizes.size() != step.outputCount())
    reject("it has {} sizes and {} outputs", sizes.size(), step.outputCount());
  if (const auto open = std::ranges::find(sizes, -1); open != sizes.end()) {
    int64_t rest = step.dim(0, axis);
    for (const int64_t size : sizes) rest -= std::max<int64_t>(size, 0);
    *open = rest;
  }
  const bool isStored = isStoredInAll(step, 0);
  const std::vector<Name> pieces =
      step.addAll("Split", {isStored ? step.stored(0) : step.real(0), step.constant(sizes)},
                  step.outputCount(), {{"axis", axis}});
  finishPieces(step, 0, pieces, isStored);
}

/// Sizes of -1 go to the end.
void writeSlice(Step& step) {
  const Name x = step.moved(0);
  const int64_t rank = step.input(0).rank();
  Ints axes;
  for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  const Name begin = step.longs(1);
  Name end;
  if (step.input(1).content && step.input(2).content) {
    const Ints first = step.ints(1, "begins"), size = step.ints(2, "sizes");
    if (first.size() != axes.size() || size.size() != axes.size())
      reject("it has {} begins and {} sizes for {} dims", first.size(), size.size(), rank);
    Ints last;
    for (size_t i = 0; i < size.size(); ++i)
      last.push_back(size[i] < 0 ? INT64_MAX : first[i] + size[i]);
    end = step.constant(last);
  } else {
    const Name size = step.longs(2);
    const Name isOpen = step.add("Less", {size, step.number(0, Elem::i64_)});
    const Name sum = step.add("Add", {begin, size});
    const Name far = step.constant(Tensor::scalarI64(int64_t(1) << 40));
    end = step.add("Where", {isOpen, far, sum});
  }
  step.finishMoved(0, 0, step.add("Slice", {x, begin, end, step.constant(axes)}));
}

void writePadded(Step& step, const Name& value, const Name& x, bool isStored) {
  // [rank, 2] in the file, all begins before all ends in ONNX.
  const Name widths = step.longs(1);
  const Name pads = step.reshape(step.transpose(widths, {1, 0}), {-1});
  const Name y = step.add("Pad", {x, pads, value}, {{"mode", std::string("constant")}});
  if (isStored) return step.setStored(0, y);
  step.set(0, y);
}

/// With zeros, which quantized ones store as their zero point.
void writePad(Step& step) {
  const bool isStored = step.isAlike(0, 0);
  const TensorInfo& x = step.input(0);
  const Elem elem = isStored ? x.elem : Elem::f32_;
  const double zero =
      isStored && x.isQuantized() ? static_cast<double>(x.quantization.zeros[0]) : 0;
  writePadded(step, step.number(zero, elem), isStored ? step.stored(0) : step.real(0), isStored);
}

void writePadV2(Step& step) {
  const bool isStored = step.isAlike(0, 0) && step.isAlike(2, 0);
  const Name value = isStored ? step.stored(2) : step.real(2);
  writePadded(step, step.reshape(value, {}), isStored ? step.stored(0) : step.real(0), isStored);
}

/// Places of a dim with its ends mirrored: REFLECT leaves out the element at the end itself.
Ints mirrored(int64_t extent, int64_t front, int64_t back, bool skipsEnd) {
  const int64_t skipped = skipsEnd ? 1 : 0;
  if (front < 0 || back < 0 || front > extent - skipped || back > extent - skipped)
    reject("pads {} and {} are wider than {} elements", front, back, extent);
  if (extent > kMostPlaces) refuse("{} elements to be mirrored", extent);
  Ints places;
  for (int64_t i = front; i > 0; --i) places.push_back(i - 1 + skipped);
  for (int64_t i = 0; i < extent; ++i) places.push_back(i);
  for (int64_t i = 0; i < back; ++i) places.push_back(extent - 1 - skipped - i);
  return places;
}

void writeMirrorPad(Step& step) {
  const bool skipsEnd =
      step.options<schema::MirrorPadOptions>().mode() == schema::MirrorPadMode_REFLECT;
  const Ints pads = step.ints(1, "pads");
  const int64_t rank = step.input(0).rank();
  if (static_cast<int64_t>(pads.size()) != 2 * rank)
    reject("it has {} pads for {} dims", pads.size(), rank);
  Name y = step.moved(0);
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t front = pads[static_cast<size_t>(2 * axis)],
                  back = pads[static_cast<size_t>(2 * axis + 1)];
    if (front == 0 && back == 0) continue;
    const Ints places = mirrored(step.dim(0, axis), front, back, skipsEnd);
    y = step.add("Gather", {y, step.constant(places)}, {{"axis", axis}});
  }
  step.finishMoved(0, 0, y);
}

void writeTile(Step& step) {
  step.finishMoved(0, 0, step.add("Tile", {step.moved(0), step.longs(1)}));
}

void writeBroadcastTo(Step& step) {
  step.finishMoved(0, 0, step.add("Expand", {step.moved(0), step.longs(1)}));
}

void writeReverse(Step& step) {
  Ints starts, ends, axes, strides;
  for (const int64_t axis : step.ints(1, "axes")) {
    starts.push_back(-1);
    ends.push_back(INT64_MIN + 1);
    axes.push_back(axis);
    strides.push_back(-1);
  }
  step.finishMoved(0, 0,
                   step.add("Slice", {step.moved(0), step.constant(starts), step.constant(ends),
                                      step.constant(axes), step.constant(strides)}));
}

void writeReverseSequence(Step& step) {
  const auto& options = step.options<schema::ReverseSequenceOptions>();
  const int64_t time = options.seq_dim();
  const int64_t batch = options.batch_dim();
  const bool isPlain = (time == 0 && batch == 1) || (time == 1 && batch == 0);
  if (!isPlain) refuse("dims {} and {}, expected 0 and 1", time, batch);
  step.finishMoved(0, 0,
                   step.add("ReverseSequence", {step.moved(0), step.longs(1)},
                            {{"time_axis", time}, {"batch_axis", batch}}));
}

constexpr Operator kMovement[] = {
    {schema::BuiltinOperator_BROADCAST_TO, 2, 2, 1, writeBroadcastTo},
    {schema::BuiltinOperator_CONCATENATION, 1, -1, 1, writeConcatenation},
    {schema::BuiltinOperator_EXPAND_DIMS, 2, 2, 1, writeExpandDims,
     "the axis has to be a constant"},
    {schema::BuiltinOperator_MIRROR_PAD, 2, 2, 1, writeMirrorPad,
     "pads and what is padded have to be known"},
    {schema::BuiltinOperator_PACK, 1, -1, 1, writePack},
    {schema::BuiltinOperator_PAD, 2, 2, 1, writePad},
    {schema::BuiltinOperator_PADV2, 3, 3, 1, writePadV2},
    {schema::BuiltinOperator_RESHAPE, 1, 2, 1, writeReshape},
    {schema::BuiltinOperator_REVERSE_SEQUENCE, 2, 2, 1, writeReverseSequence, "dims 0 and 1 alone"},
    {schema::BuiltinOperator_REVERSE_V2, 2, 2, 1, writeReverse, "the axes have to be constants"},
    {schema::BuiltinOperator_SLICE, 3, 3, 1, writeSlice},
    {schema::BuiltinOperator_SPLIT, 2, 2, -1, writeSplit, "the axis has to be a constant"},
    {schema::BuiltinOperator_SPLIT_V, 3, 3, -1, writeSplitV,
     "sizes and the axis have to be constants"},
    {schema::BuiltinOperator_SQUEEZE, 1, 1, 1, writeSqueeze},
    {schema::BuiltinOperator_TILE, 2, 2, 1, writeTile},
    {schema::BuiltinOperator_TRANSPOSE, 2, 2, 1, writeTranspose,
     "the permutation has to be a constant"},
    {schema::BuiltinOperator_UNPACK, 1, 1, -1, writeUnpack},
};

} // namespace

std::span<const Operator> movementOperators() { return kMovement; }

} // namespace candela::import::tflite
