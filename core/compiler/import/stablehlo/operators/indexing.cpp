// Windows that are read, or written, where indices say.
#include <algorithm>
#include <numeric>

#include "core/compiler/import/stablehlo/join.h"
#include "core/compiler/import/stablehlo/places.h"

namespace candela::import::stablehlo {
namespace {

bool contains(const Ints& list, int64_t value) { return std::ranges::count(list, value) > 0; }

int64_t positionIn(const Ints& list, int64_t value) {
  const auto found = std::ranges::find(list, value);
  return found == list.end() ? -1 : found - list.begin();
}

/// The dimension numbers of a gather or scatter, by the same names.
struct IndexDims {
  Ints window;    ///< dims of the result, or the updates, that a window has
  Ints collapsed; ///< dims of the operand that it does not have
  Ints operandBatch, indexBatch;
  Ints map;           ///< the operand's dim of each index
  int64_t vector = 0; ///< the dim of the indices that an index lies along
};

Ints listAt(const Attribute& numbers, const char* key) {
  const Attribute* found = numbers.find(key);
  return found ? integersOf(*found, key) : Ints();
}

/// What indices say of each place: the dims that places are counted along, and where each begins.
class Places {
public:
  Places(Step& step, size_t input, const IndexDims& dims)
      : step_(step), value_(step.input(input)), vector_(static_cast<size_t>(dims.vector)) {
    if (!isInteger(value_.type.elem)) reject("indices are {}", value_.type.text());
    Part all = step.part(input);
    const auto rank = static_cast<int64_t>(all.dims.size());
    if (dims.vector < 0 || dims.vector > rank)
      reject("index_vector_dim is {} for rank {}", dims.vector, rank);
    if (dims.vector == rank) {
      Shape wide = all.dims;
      wide.push_back(1);
      all = step.reshape(all, wide);
    }
    Ints perm;
    for (int64_t i = 0; i < std::ssize(all.dims); ++i)
      if (i != dims.vector) perm.push_back(i);
    perm.push_back(dims.vector);
    all = step.transpose(all, perm);
    length_ = all.dims.back();
    if (length_ != std::ssize(dims.map))
      reject("{} integers to an index, but {} dims", length_, dims.map.size());
    all_ = {step.cast(all.name, Elem::i64_), all.dims};
    batch = Shape(all.dims.begin(), all.dims.end() - 1);
  }

  /// Of all places alike; nullopt where it is not known.
  std::optional<int64_t> known(int64_t k) const {
    if (!value_.constant || value_.type.elem == Elem::u64_) return {};
    if (value_.isSplat()) return value_.constant->toInts()[0];
    // As many elements may also lie along a dim of the places.
    const bool isAlongIndex = vector_ < value_.kept.size() && value_.kept[vector_] == length_;
    if (!isAlongIndex || value_.constant->count() != length_) return {};
    return value_.constant->toInts()[static_cast<size_t>(k)];
  }

  /// Integer k of each index, with `more` dims of 1 behind those of the places.
  Name column(int64_t k, size_t more) const {
    Ints begins(all_.dims.size(), 0), ends = all_.dims;
    begins.back() = k;
    ends.back() = k + 1;
    Shape dims = batch;
    dims.insert(dims.end(), more, 1);
    return step_.reshape(step_.slice(all_, begins, ends, Ints(ends.size(), 1)), dims).name;
  }

  /// The batch dim that a dim of the indices is.
  static int64_t batchOf(const IndexDims& dims, int64_t indexDim) {
    return indexDim < dims.vector ? indexDim : indexDim - 1;
  }

  Shape batch;

private:
  Step& step_;
  const Value& value_;
  size_t vector_; ///< the dim of the operand along which an index lies
  Part all_;
  int64_t length_ = 0;
};

/// How the dims of an operand take part.
struct DimPlan {
  Ints places;  ///< those that places are given of, in the order of the operand
  Ints windows; ///< of these, those that a window has several elements of, or may have
  Ints rest;    ///< those that are taken whole
};

void checkIndexDims(Step& step, const IndexDims& dims, const Places& places) {
  const size_t rank = step.type(0).rank();
  step.checkAxes(dims.map, rank, "indexed dim");
  Ints missing = dims.collapsed;
  missing.insert(missing.end(), dims.operandBatch.begin(), dims.operandBatch.end());
  step.checkAxes(missing, rank, "dim without a window");
  if (dims.operandBatch.size() != dims.indexBatch.size())
    reject("{} batching dims meet {}", dims.operandBatch.size(), dims.indexBatch.size());
  for (size_t i = 0; i < dims.indexBatch.size(); ++i) {
    const int64_t at = Places::batchOf(dims, dims.indexBatch[i]);
    if (dims.indexBatch[i] == dims.vector || at < 0 || at >= std::ssize(places.batch))
      reject("batching dim {} of the indices", dims.indexBatch[i]);
    const int64_t extent = step.type(0).dims[static_cast<size_t>(dims.operandBatch[i])];
    if (places.batch[static_cast<size_t>(at)] != extent)
      reject("batching dim {} of {} meets {}", dims.operandBatch[i], extent,
             places.batch[static_cast<size_t>(at)]);
  }
}

/// What the column of an operand's dim is made from.
struct ColumnContext {
  const IndexDims& dims;
  const Places& places;
  const DimPlan& plan;
  Shape grid; ///< all that indices are counted along: places, then elements of windows
};

/// Where a window begins along a dim, before it is moved inside.
Name beginOf(Step& step, const ColumnContext& context, int64_t axis) {
  const size_t more = context.plan.windows.size();
  const int64_t batch = positionIn(context.dims.operandBatch, axis);
  if (batch >= 0) {
    const int64_t at =
        Places::batchOf(context.dims, context.dims.indexBatch[static_cast<size_t>(batch)]);
    return countAlong(step, context.grid, static_cast<size_t>(at)).name;
  }
  const int64_t k = positionIn(context.dims.map, axis);
  if (k < 0) return step.constant(Tensor::scalarI64(0));
  if (const auto known = context.places.known(k)) return step.constant(Tensor::scalarI64(*known));
  return context.places.column(k, more);
}

/// The elements of a window behind where it begins.
Name spreadWindow(Step& step, const ColumnContext& context, int64_t axis, const Name& begin) {
  const int64_t window = positionIn(context.plan.windows, axis);
  if (window < 0) return begin;
  const size_t at = context.places.batch.size() + static_cast<size_t>(window);
  if (context.grid[at] == 1) return begin;
  return step.add("Add", {begin, countAlong(step, context.grid, at).name});
}

// ---- gather

IndexDims gatherDims(Step& step) {
  const Attribute* numbers = step.find("dimension_numbers");
  if (!numbers) reject("attribute dimension_numbers is missing");
  IndexDims dims;
  dims.window = listAt(*numbers, "offset_dims");
  dims.collapsed = listAt(*numbers, "collapsed_slice_dims");
  dims.operandBatch = listAt(*numbers, "operand_batching_dims");
  dims.indexBatch = listAt(*numbers, "start_indices_batching_dims");
  dims.map = listAt(*numbers, "start_index_map");
  if (const Attribute* vector = numbers->find("index_vector_dim")) dims.vector = vector->integer;
  return dims;
}

/// Dims that are neither indexed nor whole begin at 0: they are cut before.
Part cutOperand(Step& step, const IndexDims& dims, const Ints& sizes) {
  const Part x = step.part(0);
  Ints ends = x.dims;
  for (size_t i = 0; i < ends.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    if (!contains(dims.map, axis) && !contains(dims.operandBatch, axis)) ends[i] = sizes[i];
  }
  return step.slice(x, Ints(ends.size(), 0), ends, Ints(ends.size(), 1));
}

DimPlan gatherPlan(const IndexDims& dims, const Shape& operand, const Ints& sizes) {
  DimPlan plan;
  for (size_t i = 0; i < operand.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    const bool isBatch = contains(dims.operandBatch, axis);
    const bool isWhole = sizes[i] == operand[i] && !isBatch;
    (isWhole ? plan.rest : plan.places).push_back(axis);
    if (!isWhole && sizes[i] != 1) plan.windows.push_back(axis);
  }
  return plan;
}

/// What has been read, as dims of places, of windows, and whole ones, in the result's order.
Part arrangeGathered(Step& step, const Part& y, const Ints& operandDims, size_t batch,
                     const IndexDims& dims) {
  // operandDims: what each dim of y behind `batch` ones is of the operand.
  Ints kept; // dims of the operand in the result, in order
  for (int64_t axis = 0; axis < std::ssize(step.type(0).dims); ++axis)
    if (!contains(dims.collapsed, axis) && !contains(dims.operandBatch, axis)) kept.push_back(axis);
  Ints perm;
  int64_t nextBatch = 0;
  size_t nextKept = 0;
  for (int64_t at = 0; at < std::ssize(step.output().dims); ++at) {
    if (!contains(dims.window, at)) {
      if (nextBatch < static_cast<int64_t>(batch)) perm.push_back(nextBatch++);
      continue;
    }
    if (nextKept >= kept.size()) reject("offset_dims are more than the window has");
    const int64_t found = positionIn(operandDims, kept[nextKept++]);
    if (found >= 0)
      perm.push_back(static_cast<int64_t>(batch) + found); // others have an extent of 1
  }
  // Whole dims of extent 1 that are collapsed stay behind.
  for (int64_t i = 0; i < std::ssize(y.dims); ++i)
    if (!contains(perm, i)) perm.push_back(i);
  return step.transpose(y, perm);
}

void checkSizes(Step& step, const IndexDims& dims, const Ints& sizes) {
  const Shape& operand = step.type(0).dims;
  if (sizes.size() != operand.size())
    reject("slice_sizes of {} dims for rank {}", sizes.size(), operand.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    if (sizes[i] < 0 || sizes[i] > operand[i])
      reject("slice_sizes has {} in dim {}, which is {}", sizes[i], i, operand[i]);
    const bool isGone = contains(dims.collapsed, axis) || contains(dims.operandBatch, axis);
    if (isGone && sizes[i] != 1) reject("dim {} of slice size {} has no window", i, sizes[i]);
  }
}

void writeGather(Step& step) {
  const IndexDims dims = gatherDims(step);
  const Ints sizes = step.ints("slice_sizes");
  step.expectElem(step.type(0).elem);
  const Places places(step, 1, dims);
  checkIndexDims(step, dims, places);
  checkSizes(step, dims, sizes);
  step.checkAxes(dims.window, step.output().rank(), "offset dim");
  const Part x = cutOperand(step, dims, sizes);
  const DimPlan plan = gatherPlan(dims, x.dims, sizes);
  ColumnContext context{dims, places, plan, places.batch};
  for (const int64_t axis : plan.windows) context.grid.push_back(sizes[static_cast<size_t>(axis)]);
  std::vector<Name> columns;
  Ints first;
  for (const int64_t axis : plan.places) {
    const auto i = static_cast<size_t>(axis);
    Name begin = beginOf(step, context, axis);
    if (contains(dims.map, axis)) begin = inside(step, begin, x.dims[i] - sizes[i]);
    columns.push_back(spreadWindow(step, context, axis, begin));
    first.push_back(axis);
  }
  first.insert(first.end(), plan.rest.begin(), plan.rest.end());
  Shape result = context.grid;
  for (const int64_t axis : plan.rest) result.push_back(x.dims[static_cast<size_t>(axis)]);
  Ints operandDims = plan.windows;
  operandDims.insert(operandDims.end(), plan.rest.begin(), plan.rest.end());
  const Part ordered = step.transpose(x, first);
  Name y;
  if (columns.empty()) {
    y = step.add("Expand", {ordered.name, step.constant(result)});
  } else if (columns.size() == 1) {
    const Name index = step.add("Expand", {columns[0], step.constant(context.grid)});
    y = step.add("Gather", {ordered.name, index}, {{"axis", int64_t(0)}});
  } else {
    y = step.add("GatherND", {ordered.name, joinColumns(step, columns, context.grid)});
  }
  const Part arranged = arrangeGathered(step, {y, result}, operandDims, places.batch.size(), dims);
  if (elementCount(arranged.dims) != elementCount(step.output().dims))
    reject("its result is {}, but has {} elements", step.output().text(),
           *elementCount(arranged.dims));
  step.setPart(step.reshape(arranged, step.output().dims));
}

// ---- scatter

IndexDims scatterDims(Step& step) {
  const Attribute* numbers = step.find("scatter_dimension_numbers");
  if (!numbers) reject("attribute scatter_dimension_numbers is missing");
  IndexDims dims;
  dims.window = listAt(*numbers, "update_window_dims");
  dims.collapsed = listAt(*numbers, "inserted_window_dims");
  dims.operandBatch = listAt(*numbers, "input_batching_dims");
  dims.indexBatch = listAt(*numbers, "scatter_indices_batching_dims");
  dims.map = listAt(*numbers, "scatter_dims_to_operand_dims");
  if (const Attribute* vector = numbers->find("index_vector_dim")) dims.vector = vector->integer;
  return dims;
}

/// How much of each dim of the operand an update has.
Ints updateSizes(Step& step, const IndexDims& dims) {
  const Shape &operand = step.type(0).dims, &updates = step.type(2).dims;
  step.checkAxes(dims.window, updates.size(), "update_window_dims");
  Ints sizes(operand.size(), 1);
  size_t next = 0;
  for (size_t i = 0; i < operand.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    if (contains(dims.collapsed, axis) || contains(dims.operandBatch, axis)) continue;
    if (next >= dims.window.size()) reject("update_window_dims are fewer than the window has");
    sizes[i] = updates[static_cast<size_t>(dims.window[next++])];
    if (sizes[i] > operand[i])
      reject("updates of {} in dim {}, which is {}", sizes[i], i, operand[i]);
  }
  if (next != dims.window.size()) reject("update_window_dims are more than the window has");
  return sizes;
}

bool isKnownInside(const Places& places, int64_t k, int64_t most) {
  const auto known = places.known(k);
  return known && *known >= 0 && *known <= most;
}

DimPlan scatterPlan(const IndexDims& dims, const Places& places, const Shape& operand,
                    const Ints& sizes) {
  DimPlan plan;
  for (size_t i = 0; i < operand.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    const int64_t k = positionIn(dims.map, axis);
    const bool isGone = contains(dims.collapsed, axis) || contains(dims.operandBatch, axis);
    const bool isWhole =
        sizes[i] == operand[i] && !isGone && (k < 0 || isKnownInside(places, k, 0));
    (isWhole ? plan.rest : plan.places).push_back(axis);
    if (!isWhole && !isGone) plan.windows.push_back(axis);
  }
  return plan;
}

/// Updates with the dims of their places first, then those of windows, then whole ones.
Part arrangeUpdates(Step& step, const IndexDims& dims, const DimPlan& plan) {
  Ints kept; // the operand's dim of each window dim of the updates
  for (int64_t axis = 0; axis < std::ssize(step.type(0).dims); ++axis)
    if (!contains(dims.collapsed, axis) && !contains(dims.operandBatch, axis)) kept.push_back(axis);
  const Part updates = step.part(2);
  Ints perm;
  for (int64_t at = 0; at < std::ssize(updates.dims); ++at)
    if (!contains(dims.window, at)) perm.push_back(at);
  for (const Ints* axes : {&plan.windows, &plan.rest})
    for (const int64_t axis : *axes)
      perm.push_back(dims.window[static_cast<size_t>(positionIn(kept, axis))]);
  return step.transpose(updates, perm);
}

const char* scatterReduction(Join join) {
  switch (join) {
  case Join::second: return "none";
  case Join::add: return "add";
  case Join::multiply: return "mul";
  case Join::maximum: return "max";
  case Join::minimum: return "min";
  default: return nullptr;
  }
}

/// Where all of an update's window lies inside; "" where that is known.
Name insideOf(Step& step, const ColumnContext& context, const Shape& operand, const Ints& sizes) {
  Name all;
  for (size_t k = 0; k < context.dims.map.size(); ++k) {
    const auto i = static_cast<size_t>(context.dims.map[k]);
    const int64_t most = operand[i] - sizes[i];
    if (isKnownInside(context.places, static_cast<int64_t>(k), most)) continue;
    const Name begin = beginOf(step, context, context.dims.map[k]);
    const Name moved = inside(step, begin, most);
    const Name is = step.add("Equal", {begin, moved});
    all = all.empty() ? is : step.add("And", {all, is});
  }
  return all;
}

/// Updates that do not lie inside go into a row behind the operand's, which is cut off.
void writeScatter(Step& step) {
  if (step.inputCount() != 3) refuse("into {} operands", step.inputCount() / 2);
  const Elem elem = step.type(0).elem;
  const auto join = joinOf(step.op().regions[0], 0);
  const char* reduction = join ? scatterReduction(*join) : nullptr;
  if (!reduction) refuse("its region sets, adds, multiplies and takes no extreme");
  if (step.type(2).elem != elem)
    reject("updates of {} in {}", step.type(2).text(), step.type(0).text());
  const IndexDims dims = scatterDims(step);
  const Places places(step, 1, dims);
  checkIndexDims(step, dims, places);
  const Ints sizes = updateSizes(step, dims);
  const Shape operand = step.type(0).dims;
  const DimPlan plan = scatterPlan(dims, places, operand, sizes);
  step.expectDims(operand);
  if (plan.places.empty()) refuse("all of {} at once", step.type(0).text());
  ColumnContext context{dims, places, plan, places.batch};
  for (const int64_t axis : plan.windows) context.grid.push_back(sizes[static_cast<size_t>(axis)]);
  const Part updates = arrangeUpdates(step, dims, plan);
  Shape wanted = context.grid;
  for (const int64_t axis : plan.rest) wanted.push_back(operand[static_cast<size_t>(axis)]);
  if (updates.dims != wanted)
    reject("updates are {}, but have to be {}", typeText(elem, updates.dims),
           typeText(elem, wanted));
  const Name isInside = insideOf(step, context, operand, sizes);
  Ints perm = plan.places;
  perm.insert(perm.end(), plan.rest.begin(), plan.rest.end());
  Part x = step.transpose(step.part(0), perm);
  std::vector<Name> columns;
  for (const int64_t axis : plan.places) {
    const auto i = static_cast<size_t>(axis);
    Name begin = beginOf(step, context, axis);
    if (!isInside.empty()) begin = inside(step, begin, operand[i] - sizes[i]);
    Name column = spreadWindow(step, context, axis, begin);
    if (!isInside.empty() && columns.empty())
      column = step.add("Where", {isInside, column, step.constant(Tensor::scalarI64(operand[i]))});
    columns.push_back(column);
  }
  const Shape own = x.dims;
  const Ints none(own.size(), 0);
  Ints one = none;
  one[0] = 1;
  if (!isInside.empty()) x = step.pad(x, step.number(0, elem), none, one, none);
  const Name index = joinColumns(step, columns, context.grid);
  x.name =
      step.add("ScatterND", {x.name, index, updates.name}, {{"reduction", std::string(reduction)}});
  x = step.slice(x, none, own, Ints(own.size(), 1));
  Ints back(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  step.setPart(step.transpose(x, back));
}

constexpr Operator kIndexing[] = {
    {"stablehlo.gather", 2, 2, 0, writeGather},
    {"stablehlo.scatter", 3, -1, 1, writeScatter,
     "one operand; sets, adds, multiplies, takes the larger or smaller"},
};

} // namespace

std::span<const Operator> indexingOperators() { return kIndexing; }

} // namespace candela::import::stablehlo
