// Sums of products.
#include <algorithm>
#include <numeric>

#include "core/compiler/import/stablehlo/places.h"

namespace candela::import::stablehlo {
namespace {

bool isByte(Elem elem) { return elem == Elem::i8_ || elem == Elem::u8_; }

/// Whether integers of 8 bits are added up in 32.
bool isByteProduct(Step& step) {
  return isByte(step.type(0).elem) && isByte(step.type(1).elem) && step.output().elem == Elem::i32_;
}

/// An operand in the type that its products are added up in.
Part summed(Step& step, size_t input, bool areBytes) {
  Part x = step.part(input);
  const Elem from = step.type(input).elem, to = step.output().elem;
  if (from == Elem::bool_ || to == Elem::bool_) refuse("products of bools");
  if (from != to && !areBytes) x.name = step.cast(x.name, to);
  return x;
}

int64_t extentOf(const Shape& dims, const Ints& axes) {
  int64_t count = 1;
  for (const int64_t axis : axes) count *= dims[static_cast<size_t>(axis)];
  return count;
}

Ints restOf(size_t rank, const Ints& a, const Ints& b) {
  Ints rest;
  for (int64_t i = 0; i < static_cast<int64_t>(rank); ++i)
    if (std::ranges::count(a, i) == 0 && std::ranges::count(b, i) == 0) rest.push_back(i);
  return rest;
}

Ints chained(std::initializer_list<Ints> lists) {
  Ints all;
  for (const Ints& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

/// Of one side of a product: its dims by what becomes of them.
struct Side {
  Ints batch, contracted, free;
};

struct DotDims {
  Side left, right;
};

Ints dimsAt(Step& step, const char* pretty, size_t side, const char* generic) {
  if (const Attribute* found = step.find(pretty)) {
    if (found->kind != Attribute::Kind::list || found->list.size() != 2 ||
        found->list[side].kind != Attribute::Kind::list)
      reject("{} are no two lists", pretty);
    return integersOf(found->list[side], pretty);
  }
  const Attribute* numbers = step.find("dot_dimension_numbers");
  const Attribute* found = numbers ? numbers->find(generic) : nullptr;
  return found ? integersOf(*found, generic) : Ints();
}

DotDims dotDims(Step& step) {
  DotDims all;
  if (step.op().name == "stablehlo.dot") {
    const auto rank = static_cast<int64_t>(step.type(0).rank());
    if (rank < 1 || step.type(1).rank() < 1) reject("operands are scalars");
    all.left.contracted = {rank - 1};
    all.right.contracted = {0};
  } else {
    all.left.batch = dimsAt(step, "batching_dims", 0, "lhs_batching_dimensions");
    all.right.batch = dimsAt(step, "batching_dims", 1, "rhs_batching_dimensions");
    all.left.contracted = dimsAt(step, "contracting_dims", 0, "lhs_contracting_dimensions");
    all.right.contracted = dimsAt(step, "contracting_dims", 1, "rhs_contracting_dimensions");
  }
  size_t input = 0;
  for (Side* side : {&all.left, &all.right}) {
    const Type& type = step.type(input++);
    step.checkAxes(chained({side->batch, side->contracted}), type.rank(), "dim");
    side->free = restOf(type.rank(), side->batch, side->contracted);
  }
  const auto checkPairs = [&](const Ints& left, const Ints& right) {
    if (left.size() != right.size()) reject("{} dims meet {}", left.size(), right.size());
    for (size_t i = 0; i < left.size(); ++i) {
      const int64_t a = step.type(0).dims[static_cast<size_t>(left[i])];
      const int64_t b = step.type(1).dims[static_cast<size_t>(right[i])];
      if (a != b) reject("dim {} of {} meets dim {} of {}", left[i], a, right[i], b);
    }
  };
  checkPairs(all.left.batch, all.right.batch);
  checkPairs(all.left.contracted, all.right.contracted);
  return all;
}

Shape pickDims(const Shape& dims, const Ints& axes) {
  Shape picked;
  for (const int64_t axis : axes) picked.push_back(dims[static_cast<size_t>(axis)]);
  return picked;
}

/// Batches, then rows and columns, whatever the dims were.
void writeDot(Step& step) {
  const DotDims dims = dotDims(step);
  const bool areBytes = isByteProduct(step);
  const char* op = areBytes ? "MatMulInteger" : "MatMul";
  Part a = summed(step, 0, areBytes), b = summed(step, 1, areBytes);
  const Shape batch = pickDims(a.dims, dims.left.batch);
  const Shape rows = pickDims(a.dims, dims.left.free), columns = pickDims(b.dims, dims.right.free);
  const int64_t depth = extentOf(a.dims, dims.left.contracted);
  const int64_t width = extentOf(b.dims, dims.right.free);
  const int64_t height = extentOf(a.dims, dims.left.free);
  const Shape result = chained({batch, rows, columns});
  step.expectDims(result);
  a = step.transpose(a, chained({dims.left.batch, dims.left.free, dims.left.contracted}));
  b = step.transpose(b, chained({dims.right.batch, dims.right.contracted, dims.right.free}));
  // A matrix that all rows are multiplied by leaves their dims as they are.
  const bool isMatrix = batch.empty() && !rows.empty() && dims.left.contracted.size() == 1;
  if (isMatrix) {
    b = step.reshape(b, {depth, width});
    return step.setPart(
        step.reshape({step.add(op, {a.name, b.name}), chained({rows, {width}})}, result));
  }
  a = step.reshape(a, chained({batch, {height, depth}}));
  b = step.reshape(b, chained({batch, {depth, width}}));
  const Part y{step.add(op, {a.name, b.name}), chained({batch, {height, width}})};
  step.setPart(step.reshape(y, result));
}

/// Which dim of a tensor is what.
struct Layout {
  int64_t first = -1, second = -1; ///< batch and feature, or output and input feature
  Ints spatial;

  /// Of a transpose to first, second, spatial.
  Ints perm() const { return chained({{first, second}, spatial}); }
};

Layout layoutOf(const Attribute& list, const char* first, const char* second, size_t rank) {
  Layout layout;
  if (list.kind != Attribute::Kind::list || list.list.size() != rank || rank < 2)
    reject("dimension numbers of {} dims for rank {}", list.list.size(), rank);
  layout.spatial.assign(rank - 2, -1);
  for (size_t i = 0; i < rank; ++i) {
    const Attribute& one = list.list[i];
    const auto at = static_cast<int64_t>(i);
    if (one.kind == Attribute::Kind::word && one.text == first) layout.first = at;
    if (one.kind == Attribute::Kind::word && one.text == second) layout.second = at;
    if (one.kind != Attribute::Kind::integer) continue;
    if (one.integer < 0 || one.integer >= static_cast<int64_t>(rank) - 2)
      reject("dimension numbers have a spatial dim {}", one.integer);
    layout.spatial[static_cast<size_t>(one.integer)] = at;
  }
  const Ints all = layout.perm();
  if (std::ranges::count_if(all, [](int64_t at) { return at < 0; }) > 0)
    reject("dimension numbers do not name each dim once");
  return layout;
}

struct Convolution {
  Layout input, kernel, result;
  Ints strides, inputDilation, kernelDilation, low, high;
  Ints reversed; ///< spatial dims
  int64_t groups, batchGroups;
};

/// Of the window in the short form, else an attribute.
Ints windowInts(Step& step, const char* pretty, const char* generic, size_t count,
                int64_t otherwise) {
  const Attribute* window = step.find("window");
  const Attribute* found = window ? window->find(pretty) : nullptr;
  Ints all = step.ints(generic, Ints(count, otherwise));
  if (found) all = integersOf(*found, pretty);
  if (all.size() != count) reject("{} of {} dims, expected {}", generic, all.size(), count);
  for (const int64_t value : all)
    if (value < otherwise || value > kMostExtent) reject("{} is {}", generic, value);
  return all;
}

void readPadding(Step& step, Convolution& how, size_t count) {
  std::vector<std::pair<int64_t, int64_t>> pads = step.pairs("padding", count);
  const Attribute* window = step.find("window");
  const Attribute* found = window ? window->find("pad") : nullptr;
  if (found && found->list.size() != count)
    reject("pad of {} dims, expected {}", found->list.size(), count);
  for (size_t i = 0; found && i < count; ++i) {
    const Ints pair = integersOf(found->list[i], "pad");
    if (pair.size() != 2) reject("pad {} is no pair", i);
    pads[i] = {pair[0], pair[1]};
  }
  for (const auto& [low, high] : pads) {
    for (const int64_t pad : {low, high})
      if (pad < -kMostExtent || pad > kMostExtent) reject("padding is {}", pad);
    how.low.push_back(low);
    how.high.push_back(high);
  }
}

Convolution readConvolution(Step& step) {
  const Attribute* numbers =
      step.find(step.find("dim_numbers") ? "dim_numbers" : "dimension_numbers");
  if (!numbers || numbers->list.size() != 3) reject("dimension numbers are no three lists");
  const size_t rank = step.type(0).rank();
  if (rank < 3 || rank > 5) refuse("a convolution of rank {} is not supported", rank);
  if (step.type(1).rank() != rank)
    reject("its kernel is {}, its input {}", step.type(1).text(), step.type(0).text());
  Convolution how;
  how.input = layoutOf(numbers->list[0], "b", "f", rank);
  how.kernel = layoutOf(numbers->list[1], "o", "i", rank);
  how.result = layoutOf(numbers->list[2], "b", "f", rank);
  const size_t spatial = rank - 2;
  how.strides = windowInts(step, "stride", "window_strides", spatial, 1);
  how.inputDilation = windowInts(step, "lhs_dilate", "lhs_dilation", spatial, 1);
  how.kernelDilation = windowInts(step, "rhs_dilate", "rhs_dilation", spatial, 1);
  const Ints reversal = windowInts(step, "reverse", "window_reversal", spatial, 0);
  for (size_t i = 0; i < spatial; ++i)
    if (reversal[i] != 0) how.reversed.push_back(static_cast<int64_t>(i) + 2);
  readPadding(step, how, spatial);
  how.groups = step.integer("feature_group_count", 1);
  how.batchGroups = step.integer("batch_group_count", 1);
  return how;
}

/// The dims of the result, first batch and features.
Shape convolutionDims(const Convolution& how, const Shape& x, const Shape& w) {
  if (how.groups < 1 || how.batchGroups < 1 || (how.groups > 1 && how.batchGroups > 1))
    reject("groups are {} of features and {} of batches", how.groups, how.batchGroups);
  if (w[1] < 1 || x[1] != w[1] * how.groups)
    reject("its input has {} features, its kernel {} for each of {} groups", x[1], w[1],
           how.groups);
  if (w[0] % how.groups != 0 || w[0] % how.batchGroups != 0 || x[0] % how.batchGroups != 0)
    reject("{} features and {} batches in groups of {}", w[0], x[0],
           std::max(how.groups, how.batchGroups));
  Shape dims = {x[0] / how.batchGroups, w[0]};
  for (size_t i = 0; i < how.strides.size(); ++i) {
    const int64_t taps = w[i + 2];
    if (taps < 1 || x[i + 2] < 1) reject("a window of {} over {}", taps, x[i + 2]);
    const int64_t extent = (x[i + 2] - 1) * how.inputDilation[i] + 1 + how.low[i] + how.high[i];
    const int64_t window = (taps - 1) * how.kernelDilation[i] + 1;
    dims.push_back(extent < window ? 0 : (extent - window) / how.strides[i] + 1);
  }
  return dims;
}

/// Groups of batches become groups of features, as each of them has a kernel of its own.
Part groupBatches(Step& step, const Part& x, int64_t groups) {
  Shape apart = {groups, x.dims[0] / groups};
  apart.insert(apart.end(), x.dims.begin() + 1, x.dims.end());
  Ints perm(apart.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[0], perm[1]);
  Shape joined = x.dims;
  joined[0] /= groups;
  joined[1] *= groups;
  return step.reshape(step.transpose(step.reshape(x, apart), perm), joined);
}

/// A kernel of the convolution as one of ConvTranspose: turned around, with its features swapped.
Part transposedKernel(Step& step, const Part& w, int64_t groups) {
  Ints spatial(w.dims.size() - 2);
  std::iota(spatial.begin(), spatial.end(), 2);
  const Part turned = step.reverse(w, spatial);
  Shape apart = {groups, w.dims[0] / groups};
  apart.insert(apart.end(), w.dims.begin() + 1, w.dims.end());
  Ints perm(apart.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[1], perm[2]);
  Shape joined = w.dims;
  joined[0] = w.dims[1] * groups;
  joined[1] = w.dims[0] / groups;
  return step.reshape(step.transpose(step.reshape(turned, apart), perm), joined);
}

/// What ConvTranspose gives where the input is dilated; nullopt where it has no such window.
std::optional<Name> writeTransposed(Step& step, const Convolution& how, const Part& x,
                                    const Part& w) {
  Ints front, back, further;
  for (size_t i = 0; i < how.strides.size(); ++i) {
    const int64_t reach = (w.dims[i + 2] - 1) * how.kernelDilation[i];
    const int64_t left = reach - how.high[i];
    if (how.strides[i] != 1 || reach < how.low[i] || -left >= how.inputDilation[i]) return {};
    front.push_back(reach - how.low[i]);
    back.push_back(std::max<int64_t>(0, left));
    further.push_back(std::max<int64_t>(0, -left));
  }
  const Part kernel = transposedKernel(step, w, how.groups);
  return step.add("ConvTranspose", {x.name, kernel.name},
                  {{"strides", how.inputDilation},
                   {"dilations", how.kernelDilation},
                   {"pads", chained({front, back})},
                   {"output_padding", further},
                   {"group", how.groups}});
}

/// Conv of an input whose dilation and negative padding are done before.
Name writeConv(Step& step, const Convolution& how, Part x, const Part& w, bool areBytes) {
  Ints low(x.dims.size(), 0), high = low, interior = low;
  Ints front, back;
  for (size_t i = 0; i < how.strides.size(); ++i) {
    interior[i + 2] = how.inputDilation[i] - 1;
    low[i + 2] = std::min<int64_t>(0, how.low[i]);
    high[i + 2] = std::min<int64_t>(0, how.high[i]);
    front.push_back(std::max<int64_t>(0, how.low[i]));
    back.push_back(std::max<int64_t>(0, how.high[i]));
  }
  const Elem elem = areBytes ? step.type(0).elem : step.output().elem;
  const bool isPadded =
      std::ranges::count(interior, 0) + std::ranges::count(low, 0) + std::ranges::count(high, 0) !=
      std::ssize(low) * 3;
  if (isPadded) x = step.pad(x, step.number(0, elem), low, high, interior);
  for (const int64_t extent : x.dims)
    if (extent > kMostExtent) refuse("its input is dilated to {}", typeText(elem, x.dims));
  return step.add(areBytes ? "ConvInteger" : "Conv", {x.name, w.name},
                  {{"strides", how.strides},
                   {"dilations", how.kernelDilation},
                   {"pads", chained({front, back})},
                   {"group", how.groups}});
}

void writeConvolution(Step& step) {
  Convolution how = readConvolution(step);
  const bool areBytes = isByteProduct(step);
  if (!areBytes && !isFloat(step.output().elem))
    refuse("its result is {}, of {}", step.output().text(), step.type(0).text());
  Part x = step.transpose(summed(step, 0, areBytes), how.input.perm());
  Part w = step.transpose(summed(step, 1, areBytes), how.kernel.perm());
  const Shape dims = convolutionDims(how, x.dims, w.dims);
  if (std::ranges::count(dims, 0) > 0)
    refuse("its result {} has no elements", step.output().text());
  w = step.reverse(w, how.reversed);
  if (how.batchGroups > 1) {
    x = groupBatches(step, x, how.batchGroups);
    how.groups = how.batchGroups;
  }
  const bool isDilated = std::ranges::count(how.inputDilation, 1) != std::ssize(how.inputDilation);
  std::optional<Name> y;
  if (isDilated && !areBytes) y = writeTransposed(step, how, x, w);
  if (!y) y = writeConv(step, how, x, w, areBytes);
  // The result's dim i comes from where its layout says.
  const Ints to = how.result.perm();
  Ints perm(to.size());
  for (size_t i = 0; i < to.size(); ++i) perm[static_cast<size_t>(to[i])] = static_cast<int64_t>(i);
  step.setPart(step.transpose({*y, dims}, perm));
}

constexpr Operator kProduct[] = {
    {"stablehlo.convolution", 2, 2, 0, writeConvolution,
     "1 to 3 spatial dims; floats, or int8 into i32"},
    {"stablehlo.dot", 2, 2, 0, writeDot},
    {"stablehlo.dot_general", 2, 2, 0, writeDot},
};

} // namespace

std::span<const Operator> productOperators() { return kProduct; }

} // namespace candela::import::stablehlo
