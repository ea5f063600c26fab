#include <cmath>

#include "core/compiler/lowering/decompose/shared.h"
#include "core/support/float_bits.h"

namespace candela::lowering::decompose {

Result<Values> lowerSoftmax(Lowering& l, const Node& node) {
  const Elem elem = node.operand(0)->type.elem;
  const int axis = graph::wrapAxis(node.intAttr("axis"), node.operand(0)->type.rank());
  Value x = l.cast(node.operand(0), l.wide(elem));
  Value e = l.unary(OpKind::Exp, l.sub(x, l.reduceAxis(x, axis, "max")));
  return Values{l.cast(l.div(e, l.reduceAxis(e, axis, "sum")), elem)};
}

namespace {

// Of [rows, elements of a row].
Value rowNorm(Lowering& l, const Node& node, bool centres) {
  const Elem elem = node.operand(0)->type.elem, inner = l.wide(elem);
  const Shape shape = node.operand(0)->type.shape();
  const auto axis = graph::wrapAxis(node.intAttr("axis"), node.operand(0)->type.rank());
  const int64_t count = *elementCount(std::span(shape).subspan(axis));
  Value x = l.reshape(l.cast(node.operand(0), inner), {*elementCount(shape) / count, count});
  if (centres) x = l.sub(x, meanDims(l, x, {false, true}));
  Value variance = meanDims(l, l.mul(x, x), {false, true});
  x = l.div(x, l.unary(OpKind::Sqrt, l.add(variance, l.scalar(inner, node.floatAttr("epsilon")))));
  if (node.operand(1)) x = l.mul(x, l.reshape(l.cast(node.operand(1), inner), {count}));
  if (node.operand(2)) x = l.add(x, l.reshape(l.cast(node.operand(2), inner), {count}));
  return l.reshape(l.cast(x, elem), shape);
}

} // namespace

Result<Values> lowerLayerNorm(Lowering& l, const Node& node) {
  return Values{rowNorm(l, node, true)};
}
Result<Values> lowerRmsNorm(Lowering& l, const Node& node) {
  return Values{rowNorm(l, node, false)};
}

namespace {

// scale / sqrt(var + epsilon), rounded once; null where one of the two is not known, or the type
// has not all digits of it.
Value knownFactor(Lowering& l, const Node& node, Elem elem) {
  const Value scale = node.operand(1), var = node.operand(4);
  if (!scale->isConstant() || !var->isConstant()) return nullptr;
  const auto scales = scale->tensor(), vars = var->tensor();
  auto factors = Tensor::zeros(elem, scale->type.shape());
  if (!scales || !vars || !factors) return nullptr;
  const auto at = [](const Tensor& tensor, int64_t i) {
    return toReal(tensor.elem, loadElement(tensor.elem, tensor.bytes.data(), i));
  };
  for (int64_t i = 0; i < factors->count(); ++i) {
    const double factor = at(*scales, i) / std::sqrt(at(*vars, i) + node.floatAttr("epsilon"));
    const uint64_t bits = fromReal(elem, factor);
    if (!(std::abs(toReal(elem, bits) - factor) <= std::ldexp(std::abs(factor), -digits(elem))))
      return nullptr;
    storeElement(elem, factors->bytes.mutableData(), i, bits);
  }
  return l.constant(std::move(factors).value());
}

} // namespace

// Computed in x's type, or f32 for halves where the target can. The mean goes first: what is left
// of x is exact where it is near the mean.
Result<Values> lowerBatchNorm(Lowering& l, const Node& node) {
  const Elem elem = node.operand(0)->type.elem, inner = l.wide(elem);
  const Shape dims = node.operand(0)->type.shape();
  const auto along = [&](Value v) { return alongAxis(l, v, 1, node.operand(0)->type.rank()); };
  const auto channel = [&](size_t i) { return along(l.cast(node.operand(i), inner)); };
  Value x = l.cast(node.operand(0), inner), mean = channel(3), var = channel(4);
  const bool training = node.intAttr("training_mode") != 0;
  Value centred;
  if (training) {
    std::vector<bool> reduced(dims.size(), true);
    reduced[1] = false;
    mean = along(meanDims(l, x, reduced));
    centred = l.sub(x, mean);
    var = along(meanDims(l, l.mul(centred, centred), reduced));
  } else {
    centred = l.sub(x, mean);
  }
  Value scaled = training ? nullptr : knownFactor(l, node, inner);
  if (scaled) {
    scaled = l.mul(centred, along(scaled));
  } else {
    Value spread = l.unary(OpKind::Sqrt, l.add(var, l.scalar(inner, node.floatAttr("epsilon"))));
    scaled = l.mul(l.div(centred, spread), channel(1));
  }
  Values values{l.cast(l.add(scaled, channel(2)), elem)};
  const double momentum = node.floatAttr("momentum");
  for (size_t i = 1; i < node.results().size(); ++i) {
    // running = running * momentum + batch's own * (1 - momentum)
    if (!training) {
      values.push_back(node.operand(i + 2));
      continue;
    }
    Value running = l.add(l.mul(channel(i + 2), l.scalar(inner, momentum)),
                          l.mul(i == 1 ? mean : var, l.scalar(inner, 1 - momentum)));
    values.push_back(l.cast(l.reshape(running, {dims[1]}), node.result(i)->type.elem));
  }
  return values;
}

} // namespace candela::lowering::decompose
