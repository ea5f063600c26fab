#include <cmath>

#include "core/compiler/import/term.h"

/// Elements by their places, which are known at run time at the earliest. Places become row numbers
/// of a tensor in two dims, for `take` and `put`, in i32 wherever the tensor is small enough. No
/// place reads or writes outside: `take` clamps, `put` skips.
namespace candela::import {
namespace {

/// The type for numbers up to `times` as large as a count of elements.
Elem placeElem(int64_t count, int64_t times = 1) {
  return count <= INT32_MAX / times ? Elem::i32_ : Elem::i64_;
}

int64_t product(const Shape& shape, size_t first, size_t last) {
  return need([&]() -> Result<int64_t> {
    const auto count = elementCount(std::span(shape).subspan(first, last - first));
    if (!count) return badModel("shape {} is impossibly large", shapeText(shape));
    return *count;
  }());
}

/// Number n along `axis` of `rank` dims is n * step.
Term ramp(Builder& build, int64_t count, int64_t step, int64_t axis, int64_t rank, Elem elem) {
  Shape shape(rank, 1);
  shape[axis] = count;
  return {build, build.constant(Payload::iota(elem, count, 0, step), shape)};
}

/// In elements; 0 of an empty tensor, whose dims may be of any size.
std::vector<int64_t> stridesOf(const Term& x) {
  return x.count() == 0 ? std::vector<int64_t>(x.rank(), 0) : denseStrides(x.shape());
}

void needIndices(const Term& index) {
  if (index.elem() != Elem::i32_ && index.elem() != Elem::i64_)
    need(badModel("indices are {}, expected i32 or i64", index.value()->type.text()));
}

/// Constant indices must lie in -extent..extent-1. True when they are known to.
bool checkKnown(const Term& index, const std::vector<int64_t>& extents) {
  const auto known = Builder::knownInts(index.value());
  for (size_t i = 0; known && i < known->size(); ++i) {
    const int64_t extent = extents[i % extents.size()];
    if ((*known)[i] < -extent || (*known)[i] >= extent)
      need(badModel("index {} is outside of a dim of {}", (*known)[i], extent));
  }
  return known.has_value();
}

/// What becomes of an index outside of its dim.
enum class Outside {
  never,   ///< there is none
  clamped, ///< of what is read
  skipped, ///< of what is written
};

/// What each index adds to the row, index * stride; negative ones count from the end. `extents` and
/// `strides` broadcast to the indices. One that is skipped adds -rows, so that the sum is below 0.
Term rowsOf(const Term& index, const Term& extents, const Term& strides, int64_t rows,
            Outside rule) {
  const Term whole = saturated(index, extents.elem());
  Term place = select(less(whole, 0), whole + extents, whole);
  if (rule == Outside::clamped) place = max(min(place, extents - 1), 0);
  const Term moved = place * strides;
  if (rule != Outside::skipped) return moved;
  const double outside = -static_cast<double>(rows);
  return select(less(place, 0), outside, select(less(place, extents), moved, outside));
}

Outside outsideOf(bool known, bool writes) {
  if (known) return Outside::never;
  return writes ? Outside::skipped : Outside::clamped;
}

/// x[rows, inner] at these rows. The result has the index's shape and then inner.
Term takeRows(const Term& x, const Term& index, const Shape& inner) {
  Shape shape = index.shape();
  shape.insert(shape.end(), inner.begin(), inner.end());
  const int64_t width = product(inner, 0, inner.size());
  if (product(shape, 0, shape.size()) == 0) return full(x.build(), 0, shape, x.elem());
  const Term lines = x.reshape({1, x.count() / width, width});
  return make(OpKind::Take, {lines, index.reshape({index.count()})},
              {{"mode", std::string("clamp")}})
      .reshape(shape);
}

/// x[outer, rows, inner] with the updates fn-ed into it. Of bool a sum is "or", a product "and".
Term putRows(const Term& x, const Shape& form, const Term& index, const Term& updates,
             std::string fn) {
  if (updates.count() == 0 || x.count() == 0) return x;
  if (x.elem() == Elem::bool_ && fn != "set") {
    if (fn == "add")
      fn = "max";
    else if (fn == "mul")
      fn = "min";
    return putRows(x.cast(Elem::u8_), form, index, updates.cast(Elem::u8_), fn).cast(Elem::bool_);
  }
  const Term rows = index.reshape({index.count()});
  return make(OpKind::Put,
              {x.reshape(form), rows, updates.reshape({form[0], index.count(), form[2]})},
              {{"fn", fn}})
      .reshape(x.shape());
}

void needLike(const char* what, const Term& x, const Term& other) {
  if (x.elem() != other.elem())
    need(badModel("{} are {} but the data {}", what, elemName(x.elem()), elemName(other.elem())));
}

/// What `reduction` names as a function of `put`.
std::string readReduction(NodeContext& context) {
  if (context.opset < 16 || context.node.opType == "Scatter") return "set";
  const std::string name = attrOf<std::string>(context, "reduction", "none");
  const bool isKnown = name == "none" || name == "add" || name == "mul" ||
                       (context.opset >= 18 && (name == "min" || name == "max"));
  if (!isKnown) need(badModel("reduction '{}' is unknown in opset {}", name, context.opset));
  return name == "none" ? "set" : name;
}

/// Slices of x along an axis.
Status importGather(NodeContext& context) {
  const Term x = termOf(context, 0), index = termOf(context, 1);
  needIndices(index);
  const int64_t axis = need(resolveAxis(attrOf<int64_t>(context, "axis", 0), x.rank()));
  checkKnown(index, {x.dim(axis)});
  return context.set(make(OpKind::Gather, {x, index}, {{"axis", axis}}));
}

// ---- One index per element

/// Where in x, as one line, each element of the index's shape lies: its own place but for one axis.
Term flatPlaces(NodeContext& context, const Term& x, const Term& index, bool writes) {
  needIndices(index);
  const int64_t axis = need(resolveAxis(attrOf<int64_t>(context, "axis", 0), x.rank()));
  if (index.rank() != x.rank())
    need(badModel("indices have rank {} but the data {}", index.rank(), x.rank()));
  for (int64_t d = 0; d < x.rank(); ++d)
    if (d != axis && index.dim(d) > x.dim(d))
      need(badModel("dim {} of the indices is {}, of the data only {}", d, index.dim(d), x.dim(d)));
  const bool known = checkKnown(index, {x.dim(axis)});
  const Elem elem = placeElem(x.count(), 2);
  const std::vector<int64_t> strides = stridesOf(x);
  const Term extent = constant(context.build, std::vector{x.dim(axis)}, {}, elem);
  const Term stride = constant(context.build, std::vector{strides[axis]}, {}, elem);
  Term sum = rowsOf(index, extent, stride, x.count(), outsideOf(known, writes));
  for (int64_t d = 0; d < x.rank(); ++d)
    if (d != axis && index.dim(d) > 1)
      sum = ramp(context.build, index.dim(d), strides[d], d, x.rank(), elem) + sum;
  return sum;
}

Status importGatherElements(NodeContext& context) {
  const Term x = termOf(context, 0), index = termOf(context, 1);
  return context.set(takeRows(x, flatPlaces(context, x, index, false), {}));
}

/// Scatter 9 and 11 are the same without a reduction.
Status importScatterElements(NodeContext& context) {
  const Term x = termOf(context, 0), index = termOf(context, 1), updates = termOf(context, 2);
  const std::string fn = readReduction(context);
  const Term rows = flatPlaces(context, x, index, true);
  needLike("updates", updates, x);
  if (updates.shape() != index.shape())
    return badModel("updates have shape {} but the indices {}", shapeText(updates.shape()),
                    shapeText(index.shape()));
  return context.set(putRows(x, {1, x.count(), 1}, rows, updates, fn));
}

// ---- One tuple of indices per slice

/// The rows that tuples along the last dim of `index` name among dims[batch..] of x.
Term tupleRows(const Term& x, const Term& index, int64_t batch, bool writes) {
  needIndices(index);
  Builder& build = x.build();
  if (x.rank() < 1 || index.rank() < 1)
    need(badModel("data of rank {} and indices of rank {}, expected at least 1", x.rank(),
                  index.rank()));
  const int64_t count = index.dim(-1), most = x.rank() - batch;
  if (count < 1 || count > most)
    need(badModel("{} indices for each place, expected 1 to {}", count, most));
  const Shape shape = x.shape(), extents(shape.begin() + batch, shape.begin() + batch + count);
  const bool known = checkKnown(index, extents);
  std::vector<int64_t> steps = stridesOf(x); // in rows
  const int64_t width = std::max<int64_t>(steps[batch + count - 1], 1), rows = x.count() / width;
  for (int64_t& step : steps) step /= width;
  const Elem elem = placeElem(rows, count + 1); // each of the indices may be outside
  const Shape within(steps.begin() + batch, steps.begin() + batch + count);
  const Term terms = rowsOf(index, constant(build, extents, {count}, elem),
                            constant(build, within, {count}, elem), rows, outsideOf(known, writes));
  Term sum = count == 1 ? terms.squeeze(-1) : reduce(OpKind::ReduceSum, terms, {-1}, false);
  for (int64_t d = 0; d < batch; ++d)
    if (shape[d] > 1) sum = sum + ramp(build, shape[d], steps[d], d, sum.rank(), elem);
  return sum;
}

Status importGatherNd(NodeContext& context) {
  const Term x = termOf(context, 0), index = termOf(context, 1);
  const int64_t batch = context.opset >= 12 ? attrOf<int64_t>(context, "batch_dims", 0) : 0;
  if (batch < 0 || batch >= std::min(x.rank(), index.rank()))
    return badModel("batch_dims is {} for ranks {} and {}", batch, x.rank(), index.rank());
  for (int64_t d = 0; d < batch; ++d)
    if (x.dim(d) != index.dim(d))
      return badModel("batch dim {} is {} and {}", d, x.dim(d), index.dim(d));
  const Term rows = tupleRows(x, index, batch, false);
  const Shape shape = x.shape();
  return context.set(takeRows(x, rows, {shape.begin() + batch + index.dim(-1), shape.end()}));
}

Status importScatterNd(NodeContext& context) {
  const Term x = termOf(context, 0), index = termOf(context, 1), updates = termOf(context, 2);
  const std::string fn = readReduction(context);
  const Term rows = tupleRows(x, index, 0, true);
  needLike("updates", updates, x);
  const Shape shape = x.shape();
  Shape expected = rows.shape();
  expected.insert(expected.end(), shape.begin() + index.dim(-1), shape.end());
  if (updates.shape() != expected)
    return badModel("updates have shape {}, expected {}", shapeText(updates.shape()),
                    shapeText(expected));
  const auto tuple = static_cast<size_t>(index.dim(-1));
  return context.set(putRows(x, {1, product(shape, 0, tuple), product(shape, tuple, shape.size())},
                             rows, updates, fn));
}

// ---- Sequences

/// update[b, .., i, ..] goes to place write_indices[b] + i of the axis.
Status importTensorScatter(NodeContext& context) {
  const Term x = termOf(context, 0), update = termOf(context, 1);
  const std::string mode = attrOf<std::string>(context, "mode", "linear");
  if (mode != "linear" && mode != "circular")
    return badModel("mode '{}' is not linear or circular", mode);
  const int64_t axis = need(resolveAxis(attrOf<int64_t>(context, "axis", -2), x.rank()));
  if (axis == 0) return badModel("axis 0 is the batch");
  needLike("updates", update, x);
  Shape expected = x.shape();
  const int64_t extent = expected[axis];
  if (update.rank() == x.rank()) expected[axis] = std::min(update.dim(axis), extent);
  if (update.shape() != expected)
    return badModel("update of shape {} does not fit a cache of shape {}",
                    shapeText(update.shape()), shapeText(x.shape()));
  const Shape shape = x.shape();
  const int64_t outer = product(shape, 0, axis), count = update.dim(axis),
                inner = product(shape, axis + 1, shape.size());
  if (update.count() == 0) return context.set(x);
  const Elem elem = placeElem(x.count(), 4);
  Term first = full(context.build, 0, {shape[0], 1, 1}, elem);
  if (context.input(2)) {
    const Term given = termOf(context, 2);
    needIndices(given);
    if (given.shape() != Shape{shape[0]})
      return badModel("write_indices have shape {}, expected [{}]", shapeText(given.shape()),
                      shape[0]);
    first = saturated(given, elem).reshape({shape[0], 1, 1});
  }
  if (mode == "circular") {
    first = first - first / extent * extent;
    first = select(less(first, 0), first + extent, first);
  } else { // beyond the end it stays there, and does not overflow
    first = min(first, extent);
  }
  Term place = first + ramp(context.build, count, 1, 2, 3, elem);
  if (mode == "circular") place = select(less(place, extent), place, place - extent);
  const int64_t lines = outer / shape[0];
  const Term line = ramp(context.build, shape[0], lines * extent, 0, 3, elem) +
                    ramp(context.build, lines, extent, 1, 3, elem);
  Term rows = place + line;
  if (mode == "linear") {
    const Term isOutside = logicalOr(less(place, 0), less(extent - 1, place));
    rows = select(isOutside, -1, rows);
  }
  return context.set(putRows(x, {1, outer * extent, inner}, rows, update, "set"));
}

/// y[.., t, ..] = x[.., len-1-t, ..] for t below the length of its sequence.
Status importReverseSequence(NodeContext& context) {
  const Term x = termOf(context, 0), given = termOf(context, 1);
  const int64_t batch = attrOf<int64_t>(context, "batch_axis", 1),
                time = attrOf<int64_t>(context, "time_axis", 0);
  if (x.rank() < 2) return badModel("input has rank {}, expected at least 2", x.rank());
  if (batch < 0 || batch > 1 || time != 1 - batch)
    return badModel("batch_axis {} and time_axis {}, expected 0 and 1 or 1 and 0", batch, time);
  needIndices(given);
  if (given.shape() != Shape{x.dim(batch)})
    return badModel("sequence_lens have shape {}, expected [{}]", shapeText(given.shape()),
                    x.dim(batch));
  const Shape shape = x.shape();
  const int64_t rows = product(shape, 0, 2);
  const Elem elem = placeElem(rows);
  const std::vector<int64_t> strides{shape[1], 1};
  const Term t = ramp(context.build, shape[time], 1, time, 2, elem);
  Shape across{1, 1};
  across[batch] = shape[batch];
  const Term length = max(min(saturated(given, elem), shape[time]), 0).reshape(across);
  const Term from = select(less(t, length), length - 1 - t, t);
  const Term index =
      from * strides[time] + ramp(context.build, shape[batch], strides[batch], batch, 2, elem);
  return context.set(takeRows(x, index, {shape.begin() + 2, shape.end()}));
}

// ---- Others

/// on where the place along the new axis is the index, else off. Negative ones count from the end
/// since opset 11.
Status importOneHot(NodeContext& context) {
  const Term index = termOf(context, 0), values = termOf(context, 2);
  const double depth = std::trunc(knownNumber(context, 1, "depth"));
  if (!(depth >= 0 && depth < INT32_MAX))
    return badModel("depth is {}, expected 0 to {}", depth, INT32_MAX - 1);
  const int64_t axis = need(resolveAxis(attrOf<int64_t>(context, "axis", -1), index.rank() + 1));
  if (values.shape() != Shape{2})
    return badModel("values have shape {}, expected [2]", shapeText(values.shape()));
  const Term hot = saturated(index, Elem::i32_);
  const Term place = context.opset < 11 ? hot : select(less(hot, 0), hot + depth, hot);
  const Term all =
      ramp(context.build, static_cast<int64_t>(depth), 1, axis, index.rank() + 1, Elem::i32_);
  return context.set(select(equal(all, place.unsqueeze(axis)), values.slice(0, 1, 1).reshape({}),
                            values.slice(0, 0, 1).reshape({})));
}

/// What MaxPool kept goes back to where it stood in an input of the least size; a larger
/// output_shape gets 0 behind it.
Status importMaxUnpool(NodeContext& context) {
  const Term x = termOf(context, 0), index = termOf(context, 1);
  if (x.rank() < 3) return badModel("input has rank {}, expected at least 3", x.rank());
  if (index.shape() != x.shape())
    return badModel("indices have shape {} but the input {}", shapeText(index.shape()),
                    shapeText(x.shape()));
  needIndices(index);
  const size_t spatial = x.rank() - 2;
  const auto kernel = perDim(context, "kernel_shape", spatial, 0, 1),
             strides = perDim(context, "strides", spatial, 1, 1),
             pads = perDim(context, "pads", 2 * spatial, 0, 0);
  Shape shape = x.shape();
  for (size_t i = 0; i < spatial; ++i) {
    int64_t& dim = shape[i + 2];
    const __int128 wanted =
        static_cast<__int128>(dim - 1) * strides[i] - pads[i] - pads[i + spatial] + kernel[i];
    if (wanted < 0 || wanted > INT32_MAX)
      return badModel("dim {} of {} becomes impossible", i + 2, shapeText(x.shape()));
    dim = static_cast<int64_t>(wanted);
  }
  const int64_t count = product(shape, 0, shape.size());
  const Term empty = full(context.build, 0, shape, x.elem());
  const Term y = putRows(empty, {1, count, 1}, saturated(index, placeElem(count)), x, "set");
  const auto wanted = need(context.knownInts(2, "output_shape"));
  if (!wanted) return context.set(y);
  std::vector<int64_t> lo(shape.size(), 0), hi(shape.size(), 0);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (wanted->size() != shape.size() || (*wanted)[i] < shape[i])
      return badModel("output_shape [{}] does not hold {}", fmt::join(*wanted, ","),
                      shapeText(shape));
    hi[i] = (*wanted)[i] - shape[i];
  }
  return context.set(y.pad(lo, hi));
}

/// Every element of every block is added where it came from; what lies in the padding is not.
Status importCol2Im(NodeContext& context) {
  const Term x = termOf(context, 0);
  const auto image = need(context.neededInts("image_shape", 1, 1)),
             block = need(context.neededInts("block_shape", 2, 1));
  const size_t rank = image.size();
  if (x.rank() != 3) return badModel("input has rank {}, expected 3", x.rank());
  if (rank < 1 || block.size() != rank)
    return badModel("image_shape has {} dims and block_shape {}", rank, block.size());
  if (rank > 4) return failure(Code::unsupported, "blocks of {} dims, at most 4", rank);
  const auto strides = perDim(context, "strides", rank, 1, 1),
             dilations = perDim(context, "dilations", rank, 1, 1),
             pads = perDim(context, "pads", 2 * rank, 0, 0);
  Shape counts;
  for (size_t i = 0; i < rank; ++i) {
    if (image[i] < 1 || image[i] > INT32_MAX || block[i] < 1 || block[i] > INT32_MAX)
      return badModel("a block of {} in an image of {}", block[i], image[i]);
    const int64_t span = image[i] + pads[i] + pads[i + rank] - dilations[i] * (block[i] - 1) - 1;
    if (span < 0) return badModel("a block of {} does not fit dim {} of {}", block[i], i, image[i]);
    counts.push_back(span / strides[i] + 1);
  }
  const int64_t size = product(image, 0, rank), elements = product(block, 0, rank),
                blocks = product(counts, 0, rank);
  if (x.dim(1) % elements != 0 || x.dim(2) != blocks)
    return badModel("input {} is not blocks of {} elements at {} places", x.value()->type.text(),
                    elements, blocks);
  Shape shape{x.dim(0), x.dim(1) / elements};
  shape.insert(shape.end(), image.begin(), image.end());
  const Term empty = full(context.build, 0, shape, x.elem());
  if (x.count() == 0) return context.set(empty);
  const auto all = static_cast<int64_t>(2 * rank); // dims of the block, then of its places
  const Elem elem = placeElem(size, all);
  const std::vector<int64_t> steps = denseStrides(image);
  std::optional<Term> rows;
  for (size_t i = 0; i < rank; ++i) {
    const Term inside = constant(context.build, std::vector{-pads[i]}, {}, Elem::i64_) +
                        ramp(context.build, block[i], dilations[i], 0, 2, Elem::i64_) +
                        ramp(context.build, counts[i], strides[i], 1, 2, Elem::i64_);
    const Term isOutside = logicalOr(less(inside, 0), less(image[i] - 1, inside));
    Shape place(all, 1);
    place[i] = block[i];
    place[i + rank] = counts[i];
    const Term row =
        select(isOutside, -static_cast<double>(size), inside * steps[i]).cast(elem).reshape(place);
    rows = rows ? *rows + row : row;
  }
  return context.set(putRows(empty, {x.dim(0) * (x.dim(1) / elements), size, 1}, *rows, x, "add"));
}

constexpr Operator kIndexingOperators[] = {
    {"Col2Im", 3, 3, 1, importCol2Im},
    {"Gather", 2, 2, 1, importGather},
    {"GatherElements", 2, 2, 1, importGatherElements},
    {"GatherND", 2, 2, 1, importGatherNd},
    {"MaxUnpool", 2, 3, 1, importMaxUnpool},
    {"OneHot", 3, 3, 1, importOneHot},
    {"ReverseSequence", 2, 2, 1, importReverseSequence},
    {"Scatter", 3, 3, 1, importScatterElements},
    {"ScatterElements", 3, 3, 1, importScatterElements},
    {"ScatterND", 3, 3, 1, importScatterNd},
    {"TensorScatter", 2, 3, 1, importTensorScatter},
};

} // namespace

std::span<const Operator> indexingOperators() { return kIndexingOperators; }

} // namespace candela::import
