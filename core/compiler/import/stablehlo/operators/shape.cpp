// Constants, types and shapes.
#include <algorithm>
#include <numeric>

#include "core/compiler/import/stablehlo/broadcast.h"

namespace candela::import::stablehlo {
namespace {

void writeConstant(Step& step) {
  const Attribute* value = step.find("value");
  if (!value || value->kind != Attribute::Kind::elements) reject("its value is no dense<...>");
  if (value->type != step.output())
    reject("its value is {}, its result {}", value->type.text(), step.output().text());
  step.setConstant(value->elements);
}

/// 0, 1, 2, ... along one dim, and alike along the others.
void writeIota(Step& step) {
  const Type& type = step.output();
  const int64_t axis = step.integer(step.find("dim") ? "dim" : "iota_dimension");
  step.checkAxes({axis}, type.rank(), "dim");
  const int64_t count = type.dims[static_cast<size_t>(axis)];
  Shape kept(type.rank(), 1);
  kept[static_cast<size_t>(axis)] = count;
  const Tensor counted = countTo(step, count);
  Value value;
  value.type = type;
  value.kept = kept;
  value.counted = axis;
  if (type.elem == Elem::i64_) {
    value.constant = Tensor{Elem::i64_, kept, counted.bytes};
  } else {
    const Part all = step.reshape({step.constant(counted), {count}}, kept);
    value.name = step.cast(all.name, type.elem);
  }
  step.setValue(std::move(value));
}

/// With an extent of 1 where elements are alike.
void writeBroadcast(Step& step) {
  const Ints axes = step.ints(step.find("dims") ? "dims" : "broadcast_dimensions");
  const Type& type = step.output();
  Value& x = step.input(0);
  step.expectElem(x.type.elem);
  step.checkAxes(axes, type.rank(), "dim");
  if (axes.size() != x.type.rank())
    reject("{} dims for an operand of rank {}", axes.size(), x.type.rank());
  Value value;
  value.type = type;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t from = x.type.dims[i];
    const int64_t to = type.dims[static_cast<size_t>(axes[i])];
    if (from != to && from != 1) reject("dim {} of {} becomes one of {}", i, from, to);
    if (x.counted == static_cast<int64_t>(i) && from == to) value.counted = axes[i];
  }
  if (x.kept.empty() || x.isSplat()) {
    value.constant = x.constant;
    if (value.constant) value.constant->dims.clear();
    if (!value.constant) value.name = step.kept(0);
    return step.setValue(std::move(value));
  }
  value.kept.assign(type.rank(), 1);
  for (size_t i = 0; i < axes.size(); ++i) value.kept[static_cast<size_t>(axes[i])] = x.kept[i];
  Ints perm(axes.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::ranges::sort(perm, {}, [&](int64_t i) { return axes[static_cast<size_t>(i)]; });
  if (x.constant && std::ranges::is_sorted(perm)) {
    value.constant = Tensor{x.type.elem, value.kept, x.constant->bytes};
    return step.setValue(std::move(value));
  }
  const Part ordered = step.transpose({step.kept(0), x.kept}, perm);
  value.name = step.reshape(ordered, value.kept).name;
  step.setValue(std::move(value));
}

void writeReshape(Step& step) {
  const Type& type = step.output();
  Value& x = step.input(0);
  step.expectElem(x.type.elem);
  if (elementCount(x.type.dims) != elementCount(type.dims))
    reject("{} becomes {}, which has another number of elements", x.type.text(), type.text());
  const bool isElement = x.kept.empty();
  if (x.constant && (isElement || x.isWhole()))
    return step.setConstant({type.elem, isElement ? Shape{} : type.dims, x.constant->bytes});
  if (isElement) return step.setKept(step.kept(0), {});
  step.setPart(step.reshape(step.part(0), type.dims));
}

void writeTranspose(Step& step) {
  const Ints perm = step.ints(step.find("dims") ? "dims" : "permutation");
  Value& x = step.input(0);
  step.expectElem(x.type.elem);
  step.checkAxes(perm, x.type.rank(), "dim");
  if (perm.size() != x.type.rank())
    reject("{} dims for an operand of rank {}", perm.size(), x.type.rank());
  Shape dims;
  for (const int64_t axis : perm) dims.push_back(x.type.dims[static_cast<size_t>(axis)]);
  step.expectDims(dims);
  if (x.constant && x.kept.empty()) return step.setConstant(*x.constant);
  if (x.kept.empty()) return step.setKept(step.kept(0), {});
  const Part y = step.transpose({step.kept(0), x.kept}, perm);
  step.setKept(y.name, y.dims);
}

void writeConvert(Step& step) {
  const Value& x = step.input(0);
  const Elem from = x.type.elem, to = step.output().elem;
  step.expectDims(x.type.dims);
  if (from == to) return step.setValue(x);
  const bool isBool = to == Elem::bool_;
  if (from != Elem::u64_ &&
      foldIntegers(step, [&](const Ints& v) { return isBool ? int64_t(v[0] != 0) : v[0]; }))
    return;
  const Operands all = elementwiseOperands(step);
  Value value;
  value.type = step.output();
  value.kept = all.kept;
  if (!isBool) value.counted = x.counted;
  value.name = step.cast(all.names[0], to);
  step.setValue(std::move(value));
}

/// As many results as operands, which they are.
void writeSame(Step& step) {
  if (step.outputCount() != step.inputCount())
    reject("has {} operands and {} results", step.inputCount(), step.outputCount());
  for (size_t i = 0; i < step.inputCount(); ++i) step.setValue(step.input(i), i);
}

void writeDimensionSize(Step& step) {
  const int64_t axis = step.integer(step.find("dim") ? "dim" : "dimension");
  const Type& type = step.type(0);
  step.checkAxes({axis}, type.rank(), "dim");
  step.expectElem(Elem::i32_);
  step.expectDims({});
  const auto dim = static_cast<int32_t>(type.dims[static_cast<size_t>(axis)]);
  step.setConstant(Tensor::of<int32_t>(Elem::i32_, {}, {dim}));
}

constexpr Operator kShape[] = {
    {"sdy.sharding_constraint", 1, 1, 0, writeSame, "as its operand"},
    {"stablehlo.broadcast_in_dim", 1, 1, 0, writeBroadcast},
    {"stablehlo.constant", 0, 0, 0, writeConstant},
    {"stablehlo.convert", 1, 1, 0, writeConvert},
    {"stablehlo.get_dimension_size", 1, 1, 0, writeDimensionSize},
    {"stablehlo.iota", 0, 0, 0, writeIota},
    {"stablehlo.optimization_barrier", 0, -1, 0, writeSame},
    {"stablehlo.reshape", 1, 1, 0, writeReshape},
    {"stablehlo.transpose", 1, 1, 0, writeTranspose},
};

} // namespace

std::span<const Operator> shapeOperators() { return kShape; }

} // namespace candela::import::stablehlo
