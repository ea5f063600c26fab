// Gather, scatter and sort: what was read at a place is added back there, what was written there is
// read.
#include <algorithm>
#include <limits>

#include "core/compiler/differentiate/rules.h"

namespace candela::differentiate {
namespace {

/// Slices of dim 1 of x [o, n, i]; zero where a place is outside.
Term taken(const Term& x, const Term& index) {
  return make(OpKind::Take, {x, index}, {{"mode", std::string("zero")}});
}

Term put(const Term& x, const Term& index, const Term& updates, const char* fn) {
  return make(OpKind::Put, {x, index, updates}, {{"fn", std::string(fn)}});
}

/// The places of a dim of `extent` that indices mean: those outside are clamped.
Term clamped(const Term& index, int64_t extent) {
  return make(OpKind::Clip,
              {index, index.number(0), index.number(static_cast<double>(extent - 1))});
}

/// The type that counts up to `count`.
Elem placeElem(int64_t count) {
  return count <= std::numeric_limits<int32_t>::max() ? Elem::i32_ : Elem::i64_;
}

/// Of updates that set: 1 for the last one at its place, which is the one that stayed.
Term stayed(const Term& index, int64_t extent) {
  Writer& writer = index.writer();
  const int64_t count = index.count();
  const Term number = constant(writer, range(0, count), {1, count, 1}, Elem::i32_);
  const Term none = full(writer, -1, {1, extent, 1}, Elem::i32_);
  return equal(taken(put(none, index, number, "set"), index), number);
}

void putSetRule(const Step& step) {
  const Term x = step.x(0);
  const Term index = step.x(1);
  const Term dy = step.dy();
  step.give(0, [&] { return put(dy, index, zerosLike(step.x(2)), "set"); });
  step.give(2, [&] { return where(stayed(index, x.dim(1)), taken(dy, index)); });
}

void putExtremeRule(const Step& step) {
  const Term x = step.x(0);
  const Term index = step.x(1);
  const Term updates = step.x(2);
  const Term y = step.y();
  const Term isX = equal(x, y);
  const Term isUpdate = equal(updates, taken(y, index));
  const Term equals = putAdd(indicator(isX, x.elem()), index, indicator(isUpdate, x.elem()));
  const Term each = step.dy() / maximum(equals, 1);
  step.give(0, [&] { return where(isX, each); });
  step.give(2, [&] { return where(isUpdate, taken(each, index)); });
}

/// Whether the indices are known and no two are equal.
bool areDistinct(const Value& index) {
  if (!index.isConstant()) return false;
  std::vector<int64_t> places = need(index.tensor()).toInts();
  std::ranges::sort(places);
  return std::ranges::adjacent_find(places) == places.end();
}

void putMulRule(const Step& step) {
  const Term x = step.x(0);
  const Term index = step.x(1);
  const Term updates = step.x(2);
  const Term dy = step.dy();
  step.give(0, [&] {
    const Term ones = full(step.writer(), 1, x.shape(), x.elem());
    return dy * put(ones, index, updates, "mul");
  });
  step.give(2, [&] {
    if (!areDistinct(*index.value()))
      step.refuse("with fn mul and places that may repeat, updates have none");
    return taken(dy * x, index);
  });
}

} // namespace

void gatherRule(const Step& step) {
  step.give(0, [&] {
    const Term x = step.x(0);
    const Term dy = step.dy();
    const Shape shape = x.shape();
    const std::span<const int64_t> dims(shape);
    const int axis = graph::wrapAxis(step.node.intAttr("axis"), static_cast<int>(x.rank()));
    const int64_t outer = elementCount(dims.first(axis)).value_or(0), extent = dims[axis],
                  inner = elementCount(dims.subspan(axis + 1)).value_or(0);
    const Term index = step.x(1).reshape({step.x(1).count()});
    if (dy.count() == 0) return zerosLike(x);
    const Term fromEnd = index + static_cast<double>(extent);
    const Term place = clamped(select(less(index, 0), fromEnd, index), extent);
    const Term zeros = full(step.writer(), 0, {outer, extent, inner}, x.elem());
    return putAdd(zeros, place, dy.reshape({outer, index.count(), inner})).reshape(shape);
  });
}

void takeRule(const Step& step) {
  step.give(0, [&] {
    const Term x = step.x(0);
    const Term index = step.x(1);
    if (step.y().count() == 0) return zerosLike(x);
    const bool isClamped = step.node.stringAttr("mode") == "clamp";
    return putAdd(zerosLike(x), isClamped ? clamped(index, x.dim(1)) : index, step.dy());
  });
}

void putRule(const Step& step) {
  const std::string fn = step.node.stringAttr("fn");
  if (step.x(2).count() == 0) return step.give(0, [&] { return step.dy(); });
  if (fn == "set") return putSetRule(step);
  if (fn == "mul") return putMulRule(step);
  if (fn != "add") return putExtremeRule(step);
  step.give(0, [&] { return step.dy(); });
  step.give(2, [&] { return taken(step.dy(), step.x(1)); });
}

void sortRule(const Step& step) {
  step.give(0, [&] {
    const Term x = step.x(0);
    const Term dy = step.dy();
    if (dy.count() == 0) return zerosLike(x);
    const Shape shape = x.shape();
    const std::span<const int64_t> dims(shape);
    const int axis = graph::wrapAxis(step.node.intAttr("axis"), static_cast<int>(x.rank()));
    const int64_t outer = elementCount(dims.first(axis)).value_or(0), count = dims[axis],
                  inner = elementCount(dims.subspan(axis + 1)).value_or(0);
    const Elem elem = placeElem(x.count());
    std::vector<int64_t> firsts; // of each line, where it begins in x
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) firsts.push_back(o * count * inner + i);
    const int64_t k = dy.dim(axis);
    const Term along = step.y(1).cast(elem).reshape({outer, k, inner});
    const Term places = along * static_cast<double>(inner) +
                        constant(step.writer(), firsts, {outer, 1, inner}, elem);
    const Term zeros = full(step.writer(), 0, {1, x.count(), 1}, x.elem());
    return putAdd(zeros, places.reshape({dy.count()}), dy.reshape({1, dy.count(), 1}))
        .reshape(shape);
  });
}

} // namespace candela::differentiate
