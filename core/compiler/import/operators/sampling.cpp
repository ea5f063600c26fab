#include <algorithm>
#include <cmath>

#include "core/compiler/import/term.h"

/// Values of images between their elements, at places known at run time: one gather of all
/// neighbours, their weights, and a sum.
namespace candela::import {
namespace {

enum class SampleMode { nearest, linear, cubic };
enum class Padding { zeros, border, reflection };

struct SampleMethod {
  SampleMode mode = SampleMode::linear;
  Padding padding = Padding::zeros;
  bool alignCorners = true; ///< the border is the middle of the outermost element, not its edge
};

Term clip(const Term& x, double lo, double hi) { return min(max(x, lo), hi); }

/// Back and forth between the borders.
Term reflect(const Term& x, double lo, double hi) {
  if (!(hi > lo)) return clip(x, lo, lo);
  const double span = hi - lo;
  const Term from = x - lo, phase = from - floor(from / (2 * span)) * (2 * span);
  return lo + (span - abs(phase - span));
}

/// The neighbours of points along one axis: [batch, neighbours, points].
struct Neighbours {
  Term index;                  ///< i32, in range
  std::optional<Term> isThere; ///< padding with zeros: whether the neighbour is inside
  std::optional<Term> weight;  ///< absent: 1
};

/// Where the neighbours of a point lie, relative to the last place before it.
std::vector<double> neighbourOffsets(SampleMode mode) {
  switch (mode) {
  case SampleMode::cubic: return {-1, 0, 1, 2};
  case SampleMode::linear: return {0, 1};
  default: return {0};
  }
}

/// x: where the points lie, in elements: [batch, points].
Neighbours neighboursAlong(Term x, int64_t extent, const SampleMethod& method) {
  const double last = static_cast<double>(extent - 1);
  const double lo = method.alignCorners ? 0 : -0.5;
  const double hi = method.alignCorners ? last : last + 0.5;
  const bool isCubic = method.mode == SampleMode::cubic;
  if (method.mode == SampleMode::nearest) x = roundEven(x);
  if (method.padding == Padding::zeros) {
    x = clip(x, -4, last + 4); // as far out as no neighbour is inside
  } else {
    const Term inside = method.padding == Padding::border ? clip(x, 0, last) : reflect(x, lo, hi);
    x = select(logicalOr(less(x, lo), less(x.number(hi), x)), inside, x);
  }
  const std::vector<double> steps = neighbourOffsets(method.mode);
  const auto count = static_cast<int64_t>(steps.size());
  x = x.unsqueeze(1);
  Term place = floor(x) + constant(x.build(), steps, {1, count, 1}, x.elem());
  Neighbours result{place, {}, {}};
  const Term far = abs(x - place);
  if (method.mode == SampleMode::linear) result.weight = 1 - far;
  if (isCubic) {
    constexpr double a = -0.75;
    const Term near = ((far * (a + 2)) - (a + 3)) * far * far + 1;
    result.weight =
        select(less(far.number(1), far), ((far * a - 5 * a) * far + 8 * a) * far - 4 * a, near);
  }
  if (method.padding == Padding::zeros)
    result.isThere = logicalNot(logicalOr(less(place, 0), less(place.number(last), place)));
  if (method.padding == Padding::reflection && method.mode != SampleMode::nearest)
    place = reflect(place, lo, hi);
  result.index = clip(place, 0, last).cast(Elem::i32_);
  return result;
}

/// x of [batch, channels, spatial..] at points whose coordinates are one term of [batch, points]
/// for each spatial axis: [batch, channels, points].
Term sample(const Term& x, const std::vector<Term>& points, const SampleMethod& method) {
  const Shape dims = x.shape();
  const auto axes = static_cast<int64_t>(points.size());
  const int64_t batch = dims[0], channels = dims[1], count = points[0].dim(1);
  if (x.count() == 0 || count == 0) return full(x.build(), 0, {batch, channels, count}, x.elem());
  const int64_t size = x.count() / (batch * channels);
  if (batch * size > INT32_MAX)
    need(failure(Code::unsupported, "{} has more places than 32 bits can name", x.text()));

  std::optional<Term> index, isThere, weight;
  int64_t stride = size, each = 1;
  for (int64_t axis = 0; axis < axes; ++axis) {
    const int64_t extent = dims[axis + 2];
    stride /= extent;
    const Neighbours along = neighboursAlong(points[axis], extent, method);
    Shape form(static_cast<size_t>(axes) + 2, 1); // [batch, neighbours of each axis.., points]
    form[0] = batch;
    form[axis + 1] = along.index.dim(1);
    form.back() = count;
    each *= form[axis + 1];
    const Term part = along.index.reshape(form) * static_cast<double>(stride);
    index = index ? *index + part : part;
    if (along.isThere)
      isThere = isThere ? logicalAnd(*isThere, along.isThere->reshape(form))
                        : along.isThere->reshape(form);
    if (along.weight)
      weight = weight ? *weight * along.weight->reshape(form) : along.weight->reshape(form);
  }
  Shape first(static_cast<size_t>(axes) + 2, 1);
  first[0] = batch;
  if (batch > 1)
    index =
        *index + (iota(x.build(), batch, Elem::i32_) * static_cast<double>(size)).reshape(first);
  if (isThere) index = select(*isThere, *index, -1); // of which Take makes 0

  const Term values = method.mode == SampleMode::nearest ? x : x.cast(weightedElem(x.elem()));
  // Of one image every channel is gathered by itself; of several, whole rows of channels.
  const Term rows = batch == 1 ? values.reshape({channels, size, 1})
                               : values.reshape({batch, channels, size})
                                     .transpose({0, 2, 1})
                                     .reshape({1, batch * size, channels});
  Term taken = make(OpKind::Take, {rows, index->reshape({batch * each * count})},
                    {{"mode", std::string("zero")}});
  const bool isOne = batch == 1;
  taken = taken.reshape(isOne ? Shape{channels, each, count} : Shape{batch, each, count, channels});
  if (weight)
    taken = taken * weight->cast(taken.elem())
                        .reshape(isOne ? Shape{1, each, count} : Shape{batch, each, count, 1});
  taken = reduce(OpKind::ReduceSum, taken, {1}, false);
  taken = isOne ? taken.reshape({1, channels, count}) : taken.transpose({0, 2, 1});
  return isInteger(x.elem()) ? saturated(taken, x.elem()) : taken.cast(x.elem());
}

SampleMethod readSampleMethod(NodeContext& context) {
  const bool isOld = context.opset < 20;
  const std::string names[3] = {"nearest", isOld ? "bilinear" : "linear",
                                isOld ? "bicubic" : "cubic"};
  const std::string paddings[3] = {"zeros", "border", "reflection"};
  const auto choose = [&](const char* what, const std::string& otherwise,
                          const std::string(&all)[3]) {
    const std::string given = attrOf<std::string>(context, what, otherwise);
    const auto found = std::find(all, all + 3, given);
    if (found == all + 3) need(badModel("{} '{}' is not {}", what, given, fmt::join(all, ", ")));
    return static_cast<int>(found - all);
  };
  return {static_cast<SampleMode>(choose("mode", names[1], names)),
          static_cast<Padding>(choose("padding_mode", "zeros", paddings)),
          need(context.flagAttr("align_corners", false))};
}

Status importGridSample(NodeContext& context) {
  const SampleMethod method = readSampleMethod(context);
  const Term x = termOf(context, 0), grid = termOf(context, 1);
  const int64_t rank = x.rank() - 2;
  if (rank < 1 || rank > 3 || (context.opset < 20 && rank != 2))
    return badModel("input {} has {} spatial dims, expected {}", x.text(), rank,
                    context.opset < 20 ? "2" : "1 to 3");
  if (!isFloat(grid.elem()) || grid.rank() != x.rank() || grid.dim(0) != x.dim(0) ||
      grid.dim(-1) != rank)
    return badModel("grid {} does not fit input {}", grid.text(), x.text());
  const int64_t count = x.dim(0) == 0 ? 0 : grid.count() / (x.dim(0) * rank);
  std::vector<Term> points;
  for (int64_t axis = 0; axis < rank; ++axis) {
    // The last axis comes first; -1 and 1 are the borders.
    const Term place = grid.slice(-1, rank - 1 - axis, 1)
                           .reshape({x.dim(0), count})
                           .cast(weightedElem(grid.elem()));
    const auto extent = static_cast<double>(x.dim(axis + 2));
    points.push_back(method.alignCorners ? (place + 1) / 2 * (extent - 1)
                                         : ((place + 1) * extent - 1) / 2);
  }
  Shape shape = grid.shape();
  shape.pop_back();
  shape.insert(shape.begin() + 1, x.dim(1));
  return context.set(sample(x, points, method).reshape(shape));
}

/// A linear form of the places -1 to 1 along each axis.
Status importAffineGrid(NodeContext& context) {
  const bool alignCorners = need(context.flagAttr("align_corners", false));
  const auto size = need(context.neededInts("size", 1, 20));
  const Term theta = termOf(context, 0);
  const auto rank = static_cast<int64_t>(size.size()) - 2;
  if (rank < 2 || rank > 3) return badModel("a size of {} dims, expected 4 or 5", size.size());
  if (!isFloat(theta.elem()) || theta.shape() != Shape{size[0], rank, rank + 1})
    return badModel("theta {} for size [{}], expected {}", theta.text(), fmt::join(size, ","),
                    shapeText(Shape{size[0], rank, rank + 1}));
  const Elem wide = weightedElem(theta.elem());
  const auto column = [&](int64_t i) {
    Shape form(static_cast<size_t>(rank) + 2, 1);
    form.front() = size[0];
    form.back() = rank;
    return theta.cast(wide).slice(2, i, 1).reshape(form);
  };
  Term grid = column(rank);
  for (int64_t axis = rank - 1; axis >= 0; --axis) {
    const int64_t extent = size[axis + 2];
    if (extent < 0 || extent > int64_t(1) << 31)
      return badModel("size [{}] is out of range", fmt::join(size, ","));
    const auto count = static_cast<double>(extent);
    // From middle to middle, or from edge to edge.
    const double width = alignCorners ? 2 / std::max(1.0, count - 1) : 2 / count;
    const double corner = extent == 1 ? 0 : -1;
    const double first = alignCorners ? corner : width / 2 - 1;
    Shape form(static_cast<size_t>(rank) + 2, 1);
    form[axis + 1] = extent;
    grid =
        grid + (iota(context.build, extent, Elem::i32_).cast(wide) * width + first).reshape(form) *
                   column(rank - 1 - axis);
  }
  return context.set(grid.cast(theta.elem()));
}

/// How a window moves over the axes of an image; pads: all begins, then all ends.
struct WindowMoves {
  std::vector<int64_t> strides, pads, dilations;
};

/// Extents of what a window over the axes of x from 2 on gives.
Shape outputExtents(const Term& x, const Shape& kernel, const WindowMoves& moves) {
  Shape out;
  const auto rank = static_cast<int64_t>(kernel.size());
  for (int64_t i = 0; i < rank; ++i) {
    const __int128 room = static_cast<__int128>(x.dim(i + 2)) + moves.pads[i] +
                          moves.pads[i + rank] -
                          static_cast<__int128>(kernel[i] - 1) * moves.dilations[i] - 1;
    if (room < 0)
      need(badModel("a kernel of {} is larger than axis {} of {}", kernel[i], i + 2, x.text()));
    out.push_back(static_cast<int64_t>(room / moves.strides[i] + 1));
  }
  return out;
}

/// Coordinates of every place that the kernel's elements see, axis by axis: where they are without
/// an offset, and `moved` [images, taps, rank, count] from there.
std::vector<Term> sampledPoints(const Term& moved, const Shape& out, const Shape& kernel,
                                const WindowMoves& moves) {
  const int64_t images = moved.dim(0), taps = moved.dim(1), rank = moved.dim(2),
                count = moved.dim(3);
  std::vector<Term> points;
  for (int64_t i = 0; i < rank; ++i) {
    // every place's coordinate i
    const auto along = [&](const Shape& all, double first, double width) {
      Shape form(all.size(), 1);
      form[i] = all[i];
      return (iota(moved.build(), all[i], Elem::i32_).cast(moved.elem()) * width + first)
          .reshape(form)
          .expand(all);
    };
    const Term start =
        along(out, -static_cast<double>(moves.pads[i]), static_cast<double>(moves.strides[i]));
    const Term reach = along(kernel, 0, static_cast<double>(moves.dilations[i]));
    const Term place = reach.reshape({1, taps, 1}) + start.reshape({1, 1, count});
    points.push_back((moved.slice(2, i, 1).squeeze(2) + place).reshape({images, taps * count}));
  }
  return points;
}

/// A convolution whose kernel's elements each look somewhere else: what they see is sampled, then
/// it is a product.
Status importDeformConv(NodeContext& context) {
  const Term x = termOf(context, 0), w = termOf(context, 1), offset = termOf(context, 2);
  const Attrs attrs = need(convAttrs(context, w.value()->type));
  const auto ints = [&](const char* name) {
    return std::get<std::vector<int64_t>>(attrs.at(name));
  };
  const WindowMoves moves{ints("strides"), ints("pads"), ints("dilations")};
  const int64_t group = std::get<int64_t>(attrs.at("group")),
                offsetGroup = attrOf<int64_t>(context, "offset_group", 1);
  const int64_t batch = x.dim(0), channels = x.dim(1), outputs = w.dim(0), rank = x.rank() - 2;
  if (!isFloat(x.elem()) || w.elem() != x.elem() || offset.elem() != x.elem())
    return badModel("X is {}, W {} and offset {}", x.text(), w.text(), offset.text());
  if (group < 1 || channels % group != 0 || channels / group != w.dim(1) || outputs % group != 0)
    return badModel("{} channels and weight {} do not fit group {}", channels, w.text(), group);
  if (offsetGroup < 1 || channels % offsetGroup != 0)
    return badModel("{} channels do not fit offset_group {}", channels, offsetGroup);
  const Shape weightShape = w.shape();
  const Shape kernel(weightShape.begin() + 2, weightShape.end());
  const auto taps = elementCount(kernel);
  const int64_t axes = *taps * rank; // no product: the weight has as many elements at least
  Shape wanted{batch, 0};
  if (*taps == 0 || offsetGroup > INT32_MAX || axes > INT32_MAX)
    return badModel("weight {} has no kernel to move", w.text());
  wanted[1] = offsetGroup * axes;
  const Shape out = outputExtents(x, kernel, moves);
  wanted.insert(wanted.end(), out.begin(), out.end());
  if (offset.shape() != wanted)
    return badModel("offset {}, expected {}", offset.text(), shapeText(wanted));
  const int64_t count = elementCount(out).value_or(0);
  if (batch == 0 || outputs == 0 || count == 0 || channels == 0) return badModel("empty operands");

  const Elem wide = weightedElem(x.elem());
  const Term moved = offset.reshape({batch * offsetGroup, *taps, rank, count}).cast(wide);
  const std::vector<Term> points = sampledPoints(moved, out, kernel, moves);
  Shape images = x.shape();
  images[0] = batch * offsetGroup;
  images[1] = channels / offsetGroup;
  Term seen = sample(x.reshape(images), points, SampleMethod());
  if (context.input(4)) {
    const Term mask = termOf(context, 4);
    wanted[1] = offsetGroup * *taps;
    if (mask.elem() != x.elem() || mask.shape() != wanted)
      return badModel("mask {}, expected {}", mask.text(), shapeText(wanted));
    seen = seen * mask.reshape({batch * offsetGroup, 1, *taps * count});
  }
  const int64_t depth = channels / group * *taps;
  Term y = matmul(w.reshape({1, group, outputs / group, depth}),
                  seen.reshape({batch, group, depth, count}));
  Shape shape{batch, outputs};
  shape.insert(shape.end(), out.begin(), out.end());
  y = y.reshape(shape);
  if (!context.input(3)) return context.set(y);
  const Term bias = termOf(context, 3);
  if (bias.shape() != Shape{outputs})
    return badModel("bias {}, expected [{}]", bias.text(), outputs);
  Shape form(shape.size(), 1);
  form[1] = outputs;
  return context.set(y + bias.reshape(form));
}

constexpr Operator kSamplingOperators[] = {
    {"AffineGrid", 2, 2, 1, importAffineGrid},
    {"DeformConv", 3, 5, 1, importDeformConv},
    {"GridSample", 2, 2, 1, importGridSample},
};

} // namespace

std::span<const Operator> samplingOperators() { return kSamplingOperators; }

} // namespace candela::import
