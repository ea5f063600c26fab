// Shapes, what is made of them, and slices with masks.
#include <algorithm>

#include "core/compiler/import/tflite/step.h"

namespace candela::import::tflite {
namespace {

void writeShape(Step& step) {
  step.set(0, step.cast(step.add("Shape", {step.stored(0)}), step.output(0).elem));
}

void writeRank(Step& step) {
  const auto rank = static_cast<double>(step.input(0).rank());
  step.set(0, step.number(rank, step.output(0).elem));
}

void writeFill(Step& step) {
  step.finishMoved(
      1, 0,
      step.add("Expand", {step.isAlike(1, 0) ? step.stored(1) : step.real(1), step.longs(0)}));
}

void writeZerosLike(Step& step) {
  const TensorInfo& x = step.input(0);
  const Elem elem = x.isQuantized() ? Elem::f32_ : x.elem;
  const Name shape = step.add("Shape", {step.stored(0)});
  step.set(0, step.add("Expand", {step.number(0, elem), shape}));
}

void writeRange(Step& step) {
  step.set(0, step.add("Range", {step.stored(0), step.stored(1), step.stored(2)}));
}

/// The shape that both broadcast to: that of a sum.
void writeBroadcastArgs(Step& step) {
  const Name a = step.add("ConstantOfShape", {step.longs(0)});
  const Name b = step.add("ConstantOfShape", {step.longs(1)});
  const Name shape = step.add("Shape", {step.add("Add", {a, b})});
  step.set(0, step.cast(shape, step.output(0).elem));
}

/// A slice as its masks have it: dims of the operand in order, then what becomes of them.
struct StridedSlice {
  Ints begins, ends, strides, axes;
  Ints added, removed; ///< dims of 1 of the result; dims of the result with those
};

struct Masks {
  int begin, end, ellipsis, added, removed;
  static bool has(int mask, size_t i) { return (mask >> i & 1) != 0; }
};

constexpr int64_t kFar = int64_t(1) << 40; // beyond any extent
constexpr size_t kMostEntries = 16;

/// Entries in the order of the file; `rank` is the operand's.
StridedSlice resolve(const Masks& masks, const Ints& begin, const Ints& end, const Ints& stride,
                     int64_t rank) {
  StridedSlice slice;
  int64_t own = 0; // entries that stand for a dim of the operand
  for (size_t i = 0; i < begin.size(); ++i)
    if (!Masks::has(masks.ellipsis, i) && !Masks::has(masks.added, i)) ++own;
  if (own > rank) reject("it has {} entries for {} dims", own, rank);
  int64_t dim = 0, place = 0; // of the operand; of the result before any dim goes
  for (size_t i = 0; i < begin.size(); ++i) {
    if (Masks::has(masks.ellipsis, i)) {
      dim += rank - own;
      place += rank - own;
      continue;
    }
    if (Masks::has(masks.added, i)) {
      slice.added.push_back(place++);
      continue;
    }
    const int64_t step = stride[i];
    if (step == 0) reject("stride {} is 0", i);
    const bool isBack = step < 0, isOne = Masks::has(masks.removed, i);
    int64_t first = begin[i];
    int64_t last = end[i];
    if (Masks::has(masks.begin, i)) first = isBack ? kFar : 0;
    if (Masks::has(masks.end, i)) last = isBack ? -kFar : kFar;
    if (isOne) last = first == -1 ? kFar : first + 1;
    slice.begins.push_back(first);
    slice.ends.push_back(last);
    slice.strides.push_back(isOne ? 1 : step);
    slice.axes.push_back(dim++);
    if (isOne) slice.removed.push_back(place);
    ++place;
  }
  return slice;
}

/// Begins and ends that only a run knows: of plain slices, whose masks are those of ends.
void writeDynamicSlice(Step& step, const Masks& masks) {
  if (masks.ellipsis || masks.added || masks.begin)
    refuse("begins or ends that are no constants, with masks");
  Ints strides = step.ints(3, "strides");
  if (strides.size() > kMostEntries)
    reject("it has {} strides, more than {}", strides.size(), kMostEntries);
  const int64_t count = static_cast<int64_t>(strides.size());
  Ints axes, removed, limits;
  std::vector<uint8_t> isOpen, isOne;
  for (int64_t i = 0; i < count; ++i) {
    int64_t& stride = strides[static_cast<size_t>(i)];
    if (stride == 0) reject("stride {} is 0", i);
    axes.push_back(i);
    limits.push_back(stride < 0 ? -kFar : kFar);
    isOpen.push_back(Masks::has(masks.end, static_cast<size_t>(i)));
    isOne.push_back(Masks::has(masks.removed, static_cast<size_t>(i)));
    if (!isOne.back()) continue;
    removed.push_back(i);
    stride = 1; // of one element, whatever it says
  }
  const Name begin = step.longs(1);
  const Name far = step.constant(Tensor::scalarI64(kFar));
  const auto bools = [&](const std::vector<uint8_t>& values) {
    return step.constant(Tensor::of<uint8_t>(Elem::bool_, {count}, values));
  };
  const Name next = step.add("Add", {begin, step.number(1, Elem::i64_)});
  const Name isLast = step.add("Equal", {next, step.number(0, Elem::i64_)});
  const Name behind = step.add("Where", {isLast, far, next});
  Name end = step.add("Where", {bools(isOpen), step.constant(limits), step.longs(2)});
  end = step.add("Where", {bools(isOne), behind, end});
  Name y =
      step.add("Slice", {step.moved(0), begin, end, step.constant(axes), step.constant(strides)});
  if (!removed.empty()) y = step.squeeze(y, removed);
  step.finishMoved(0, 0, y);
}

void writeStridedSlice(Step& step) {
  const auto& options = step.options<schema::StridedSliceOptions>();
  if (options.offset()) refuse("ends that are offsets are not supported");
  const Masks masks{options.begin_mask(), options.end_mask(), options.ellipsis_mask(),
                    options.new_axis_mask(), options.shrink_axis_mask()};
  if (!step.input(1).content || !step.input(2).content) return writeDynamicSlice(step, masks);
  const Ints begin = step.ints(1, "begins"), end = step.ints(2, "ends");
  const Ints stride = step.ints(3, "strides");
  if (begin.size() != end.size() || begin.size() != stride.size() || begin.size() > kMostEntries)
    reject("it has {} begins, {} ends and {} strides", begin.size(), end.size(), stride.size());
  const StridedSlice slice = resolve(masks, begin, end, stride, step.input(0).rank());
  Name y = step.moved(0);
  if (!slice.axes.empty())
    y = step.add("Slice", {y, step.constant(slice.begins), step.constant(slice.ends),
                           step.constant(slice.axes), step.constant(slice.strides)});
  if (!slice.added.empty()) y = step.unsqueeze(y, slice.added);
  if (!slice.removed.empty()) y = step.squeeze(y, slice.removed);
  step.finishMoved(0, 0, y);
}

constexpr Operator kShape[] = {
    {schema::BuiltinOperator_BROADCAST_ARGS, 2, 2, 1, writeBroadcastArgs},
    {schema::BuiltinOperator_FILL, 2, 2, 1, writeFill},
    {schema::BuiltinOperator_RANGE, 3, 3, 1, writeRange},
    {schema::BuiltinOperator_RANK, 1, 1, 1, writeRank},
    {schema::BuiltinOperator_SHAPE, 1, 1, 1, writeShape},
    {schema::BuiltinOperator_STRIDED_SLICE, 4, 4, 1, writeStridedSlice,
     "begins and ends that are no constants: without masks of begins, ellipses and new axes"},
    {schema::BuiltinOperator_ZEROS_LIKE, 1, 1, 1, writeZerosLike},
};

} // namespace

std::span<const Operator> shapeOperators() { return kShape; }

} // namespace candela::import::tflite
