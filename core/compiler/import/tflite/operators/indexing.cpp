// Elements that are found, or put, where integers say.
#include <algorithm>

#include "core/compiler/import/tflite/step.h"

namespace candela::import::tflite {
namespace {

/// With batch dims: of each batch its own, along the first dim behind them.
void writeGather(Step& step) {
  const auto& options = step.options<schema::GatherOptions>();
  const Name x = step.moved(0);
  const Name index = step.longs(1);
  const int64_t rank = step.input(0).rank();
  const int64_t axis = step.axis(options.axis(), rank);
  int64_t batches = options.batch_dims();
  if (batches < 0) batches += step.input(1).rank();
  if (batches == 0) return step.finishMoved(0, 0, step.add("Gather", {x, index}, {{"axis", axis}}));
  if (axis != batches || batches < 0)
    refuse("axis {} behind {} batch dims is not supported", axis, batches);
  const Name places = step.unsqueeze(index, {-1});
  step.finishMoved(0, 0, step.add("GatherND", {x, places}, {{"batch_dims", batches}}));
}

void writeGatherNd(Step& step) {
  step.finishMoved(0, 0, step.add("GatherND", {step.moved(0), step.longs(1)}));
}

void writeEmbeddingLookup(Step& step) {
  step.finishMoved(1, 0,
                   step.add("Gather",
                            {step.isAlike(1, 0) ? step.stored(1) : step.real(1), step.longs(0)},
                            {{"axis", int64_t(0)}}));
}

/// Into zeros; what meets at one place is added up.
void writeScatterNd(Step& step) {
  const TensorInfo& updates = step.input(1);
  const Name zero = step.number(0, updates.isQuantized() ? Elem::f32_ : updates.elem);
  const Name base = step.add("Expand", {zero, step.longs(2)});
  step.set(0, step.add("ScatterND", {base, step.longs(0), step.real(1)},
                       {{"reduction", std::string("add")}}));
}

void writeSparseToDense(Step& step) {
  const int64_t rank = step.input(0).rank();
  Name index = step.longs(0);
  if (rank < 2) index = step.reshape(index, {-1, 1});
  if (rank == 0) index = step.reshape(index, {1, 1});
  const Name base = step.add("Expand", {step.reshape(step.stored(3), {}), step.longs(1)});
  Name values = step.stored(2);
  if (step.input(2).rank() == 0)
    values = step.add("Expand", {values, step.constant(Ints{rank == 0 ? 1 : step.dim(0, 0)})});
  step.setStored(0, step.add("ScatterND", {base, index, values}));
}

/// What no class is, a negative number too, has no 1 anywhere.
void writeOneHot(Step& step) {
  const Name depth = step.longs(1);
  const Name index = step.longs(0);
  const Name isNone = step.add("Less", {index, step.number(0, Elem::i64_)});
  const Name place = step.add("Where", {isNone, step.reshape(depth, {}), index});
  const Name off = step.reshape(step.stored(3), {1});
  const Name on = step.reshape(step.stored(2), {1});
  const Name values = step.add("Concat", {off, on}, {{"axis", int64_t(0)}});
  step.setStored(0, step.add("OneHot", {place, step.reshape(depth, {1}), values},
                             {{"axis", int64_t(step.options<schema::OneHotOptions>().axis())}}));
}

void writeWhere(Step& step) {
  step.set(0, step.transpose(step.add("NonZero", {step.stored(0)}), {1, 0}));
}

void writeUnique(Step& step) {
  const std::vector<Name> found =
      step.addAll("Unique", {step.stored(0)}, 3, {{"sorted", int64_t(0)}});
  step.setStored(0, found[0]);
  if (step.wants(1)) step.setStored(1, step.cast(found[2], step.output(1).elem));
}

/// An update at places that begin where operand 2 says, moved so that it lies inside.
void writeDynamicUpdateSlice(Step& step) {
  const Shape whole = step.shape(0), part = step.shape(1);
  if (whole.size() != part.size() || whole.empty())
    reject("an update of rank {} of a tensor of rank {}", part.size(), whole.size());
  const auto rank = static_cast<int64_t>(whole.size());
  Ints most, places;
  int64_t count = 1;
  for (size_t i = 0; i < whole.size(); ++i) {
    if (part[i] > whole[i]) reject("an update of {} in a dim of {}", part[i], whole[i]);
    most.push_back(whole[i] - part[i]);
    count *= part[i];
  }
  if (count * rank > kMostPlaces) refuse("an update of {} elements", count);
  for (int64_t k = 0; k < count; ++k) {
    Ints place(whole.size());
    int64_t rest = k;
    for (size_t i = whole.size(); i > 0; --i) {
      place[i - 1] = rest % part[i - 1];
      rest /= part[i - 1];
    }
    places.insert(places.end(), place.begin(), place.end());
  }
  Shape dims = part;
  dims.push_back(rank);
  const Name least = step.number(0, Elem::i64_);
  const Name start =
      step.add("Min", {step.add("Max", {step.longs(2), least}), step.constant(most)});
  const Name index =
      step.add("Add", {step.constant(Tensor::of<int64_t>(Elem::i64_, dims, places)), start});
  const bool isStored = step.isAlike(0, 0) && step.isAlike(1, 0);
  const auto operand = [&](size_t i) { return isStored ? step.stored(i) : step.real(i); };
  const Name y = step.add("ScatterND", {operand(0), index, operand(1)});
  if (isStored) return step.setStored(0, y);
  step.set(0, y);
}

/// Where row and column are one.
Name diagonal(Step& step, int64_t size) {
  constexpr int64_t kMostSize = 4096;
  if (size > kMostSize) refuse("a diagonal of {}", size);
  std::vector<uint8_t> isOn(static_cast<size_t>(size * size), 0);
  for (int64_t i = 0; i < size; ++i) isOn[static_cast<size_t>(i * size + i)] = 1;
  return step.constant(Tensor::of<uint8_t>(Elem::bool_, {size, size}, isOn));
}

void writeMatrixDiag(Step& step) {
  const Name on = diagonal(step, step.dim(0, -1));
  const Name zero = step.number(0, step.input(0).elem);
  step.setStored(0, step.add("Where", {on, step.unsqueeze(step.stored(0), {-1}), zero}));
}

void writeMatrixSetDiag(Step& step) {
  const int64_t rows = step.dim(0, -2);
  const int64_t columns = step.dim(0, -1);
  if (rows != columns) refuse("a matrix of {} rows and {} columns", rows, columns);
  const Name values = step.unsqueeze(step.stored(1), {-1});
  step.setStored(0, step.add("Where", {diagonal(step, rows), values, step.stored(0)}));
}

/// How many of the boundaries are not larger.
void writeBucketize(Step& step) {
  const auto* boundaries = step.options<schema::BucketizeOptions>().boundaries();
  std::vector<float> limits;
  if (boundaries) limits.assign(boundaries->begin(), boundaries->end());
  const Name x = step.unsqueeze(step.cast(step.real(0), Elem::f32_), {-1});
  const auto count = static_cast<int64_t>(limits.size());
  const Name all = step.constant(Tensor::of<float>(Elem::f32_, {count}, limits));
  const Name isPast = step.cast(step.add("GreaterOrEqual", {x, all}), Elem::i32_);
  step.set(0, step.add("ReduceSum", {isPast, step.constant(Ints{-1})}, {{"keepdims", int64_t(0)}}));
}

void writeRandom(Step& step, const char* op) {
  const auto& options = step.options<schema::RandomOptions>();
  Attributes attributes = {{"shape", step.ints(0, "extents")},
                           {"dtype", int64_t(elemToOnnx(step.output(0).elem))}};
  if (options.seed() != 0 || options.seed2() != 0)
    attributes["seed"] = static_cast<float>(options.seed() ^ (options.seed2() << 12));
  step.setStored(0, step.add(op, {}, std::move(attributes)));
}
void writeRandomUniform(Step& step) { writeRandom(step, "RandomUniform"); }
void writeRandomNormal(Step& step) { writeRandom(step, "RandomNormal"); }

constexpr std::string_view kRandomLimits =
    "the extents have to be constants; the numbers are those of `--seed`";

constexpr Operator kIndexing[] = {
    {schema::BuiltinOperator_BUCKETIZE, 1, 1, 1, writeBucketize},
    {schema::BuiltinOperator_DYNAMIC_UPDATE_SLICE, 3, 3, 1, writeDynamicUpdateSlice,
     "shapes have to be known"},
    {schema::BuiltinOperator_EMBEDDING_LOOKUP, 2, 2, 1, writeEmbeddingLookup},
    {schema::BuiltinOperator_GATHER, 2, 2, 1, writeGather, "behind batch dims the next one alone"},
    {schema::BuiltinOperator_GATHER_ND, 2, 2, 1, writeGatherNd},
    {schema::BuiltinOperator_MATRIX_DIAG, 1, 1, 1, writeMatrixDiag, "extents have to be known"},
    {schema::BuiltinOperator_MATRIX_SET_DIAG, 2, 2, 1, writeMatrixSetDiag,
     "square matrices of known extents"},
    {schema::BuiltinOperator_ONE_HOT, 4, 4, 1, writeOneHot},
    {schema::BuiltinOperator_RANDOM_STANDARD_NORMAL, 1, 1, 1, writeRandomNormal, kRandomLimits},
    {schema::BuiltinOperator_RANDOM_UNIFORM, 1, 1, 1, writeRandomUniform, kRandomLimits},
    {schema::BuiltinOperator_SCATTER_ND, 3, 3, 1, writeScatterNd},
    {schema::BuiltinOperator_SPARSE_TO_DENSE, 4, 4, 1, writeSparseToDense},
    {schema::BuiltinOperator_UNIQUE, 1, 1, 2, writeUnique},
    {schema::BuiltinOperator_WHERE, 1, 1, 1, writeWhere},
};

} // namespace

std::span<const Operator> indexingOperators() { return kIndexing; }

} // namespace candela::import::tflite
