#include "core/compiler/import/operators/microsoft.h"

/// Operators on bytes that stand for reals, of the domain com.microsoft. Most are written over the
/// reals, between dequantize and quantize: their integer form is raised from that.
namespace candela::import {
namespace {

constexpr int kAxesAsAttribute = 13; ///< the newest opset of reductions with them
constexpr int kChecked = 22;         ///< the opset that attributes of windows are judged by

Elem byteOf(const Term& x) {
  if (x.elem() != Elem::i8_ && x.elem() != Elem::u8_)
    need(badModel("operand is {}, expected i8 or u8", x.text()));
  return x.elem();
}

/// The scale and the zero point at inputs i and i + 1, as the operands that dequantize takes behind
/// the bytes: of a tensor, or, where there may be several, one for each of `most` indices of an
/// axis.
std::vector<Term> gridOf(const NodeContext& context, size_t i, int64_t most = 1) {
  std::vector<Term> given = {inputOf(context, i)};
  if (given[0].elem() != Elem::f32_) need(badModel("scale is {}, expected f32", given[0].text()));
  if (context.input(i + 1)) given.push_back(termOf(context, i + 1));
  bool several = false;
  for (Term& p : given) {
    if (p.count() != 1 && (p.rank() != 1 || p.count() != most))
      need(badModel("scale or zero point of shape {}, expected {}", shapeText(p.shape()),
                    most == 1 ? "one value" : fmt::format("one value or {}", most)));
    several |= p.count() != 1;
  }
  for (Term& p : given) p = several ? p.reshape({p.count()}).expand({most}) : p.reshape({});
  return given;
}

/// For dequantize: the dim that several scales are for.
Attrs axisOf(const Term& scale, int64_t axis) {
  return scale.rank() > 0 ? Attrs{{"axis", axis}} : Attrs{};
}

/// The bytes of input x as reals, by the scale and the zero point at inputs i and i + 1.
Term real(const NodeContext& context, size_t x, size_t i) {
  std::vector<Term> operands = gridOf(context, i);
  operands.insert(operands.begin(), inputOf(context, x));
  byteOf(operands[0]);
  return make(OpKind::Dequantize, operands);
}
Term real(const NodeContext& context, size_t x) { return real(context, x, x + 1); }

/// In the steps of the scale and the zero point at inputs i and i + 1; without a zero point around
/// 0 in type `elem`.
Term quantized(const NodeContext& context, const Term& y, size_t i, Elem elem) {
  std::vector<Term> operands = gridOf(context, i);
  operands.insert(operands.begin(), y);
  if (operands.size() == 2) operands.push_back(y.number(0).cast(elem));
  byteOf(operands[2]);
  return make(OpKind::Quantize, operands);
}

/// f of the first operand, whose result has the scale and the zero point of inputs i and i + 1.
template <typename F> Status mapped(NodeContext& context, F f, size_t i = 3) {
  return context.set(quantized(context, f(real(context, 0)), i, termOf(context, 0).elem()));
}

template <OpKind kind> Status importBinary(NodeContext& context) {
  return context.set(quantized(context, make(kind, {real(context, 0), real(context, 3)}), 6,
                               termOf(context, 0).elem()));
}

/// By an operator of ONNX, with the step's attributes but its own.
Status mappedBy(NodeContext& context, const char* opType, int opset,
                std::initializer_list<const char*> own) {
  const Attributes attributes = attributesBut(context, own);
  return mapped(context, [&](const Term& x) {
    return apply(context, opType, opset, {x.value()}, attributes);
  });
}
Status importSigmoid(NodeContext& context) { return mappedBy(context, "Sigmoid", kChecked, {}); }
Status importMicrosoftLeakyRelu(NodeContext& context) {
  return mappedBy(context, "LeakyRelu", kChecked, {});
}
Status importReduceMean(NodeContext& context) {
  return mappedBy(context, "ReduceMean", kAxesAsAttribute, {});
}

/// As in the opset that the attribute names. The axis is -1 in each of them.
Status importMicrosoftSoftmax(NodeContext& context) {
  const auto opset = attrOf<int64_t>(context, "opset", 0);
  if (opset < 1) return badModel("attribute 'opset' is {}", opset);
  const auto axis = attrOf<int64_t>(context, "axis", -1);
  return mapped(context, [&](const Term& x) {
    return apply(context, "Softmax", opset < 13 ? 12 : 13, {x.value()}, {{"axis", axis}});
  });
}

/// The same of what works on windows: its channels may stand behind the spatial dims.
template <typename F> Status windowed(NodeContext& context, F f, size_t i = 3) {
  const bool last = need(context.flagAttr("channels_last", false));
  return mapped(
      context, [&](const Term& x) { return last ? channelsLast(f(channelsFirst(x))) : f(x); }, i);
}
Status importMicrosoftAveragePool(NodeContext& context) {
  const Attributes attributes = attributesBut(context, {"channels_last"});
  return windowed(context, [&](const Term& x) {
    return apply(context, "AveragePool", kChecked, {x.value()}, attributes);
  });
}
Status importGlobalAveragePool(NodeContext& context) {
  return windowed(context, [&](const Term& x) {
    return apply(context, "GlobalAveragePool", kChecked, {x.value()});
  });
}

/// Behind the scale and the zero point of the result come triples.
Status importConcat(NodeContext& context) {
  const auto axis = need(context.maybe<int64_t>("axis"));
  if (!axis) return badModel("attribute 'axis' is missing");
  const size_t count = context.inputs().size();
  if (count % 3 != 2)
    return badModel("has {} inputs, expected 2 and three for each operand", count);
  std::vector<Term> pieces;
  for (size_t i = 2; i < count; i += 3) pieces.push_back(real(context, i));
  return context.set(quantized(context, concat(pieces, *axis), 0, byteOf(inputOf(context, 1))));
}

/// Each side in the steps of the result before one is chosen, so that only bytes are.
Status importWhere(NodeContext& context) {
  const Term condition = termOf(context, 0);
  if (condition.elem() != Elem::bool_)
    return badModel("the condition is {}, expected bool", condition.text());
  const auto side = [&](size_t i) {
    return quantized(context, real(context, i), 7, termOf(context, i).elem());
  };
  return context.set(select(condition, side(1), side(4)));
}

/// Of 16 bits too, which ONNX's own have had since opset 21.
Status importMicrosoftQuantizeLinear(NodeContext& context) {
  return context.set(
      apply(context, "QuantizeLinear", kChecked, context.inputs(), attributesBut(context, {})));
}
Status importMicrosoftDequantizeLinear(NodeContext& context) {
  return context.set(
      apply(context, "DequantizeLinear", kChecked, context.inputs(), attributesBut(context, {})));
}

/// QLinearConv of ONNX, whose channels may stand behind the spatial dims.
Status importMicrosoftConv(NodeContext& context) {
  const Attributes attributes = attributesBut(context, {"channels_last"});
  const Term w = inputOf(context, 3);
  byteOf(w);
  std::vector<Term> grid = gridOf(context, 4, w.rank() > 0 ? w.dim(0) : 1);
  const Term scale = grid[0];
  grid.insert(grid.begin(), w);
  const Term realW = make(OpKind::Dequantize, grid, axisOf(scale, 0));
  Value* bias = nullptr;
  if (context.input(8)) {
    const Term unit = inputOf(context, 1).reshape({}) * scale;
    bias = make(OpKind::Dequantize, {termOf(context, 8), unit}, axisOf(scale, 0)).value();
  }
  return windowed(
      context,
      [&](const Term& x) {
        return apply(context, "Conv", kChecked, {x.value(), realW.value(), bias}, attributes);
      },
      6);
}

Status importNhwcMaxPool(NodeContext& context) {
  const Term x = termOf(context, 0);
  byteOf(x);
  return context.set(channelsLast(
      apply(context, "MaxPool", kChecked, {channelsFirst(x).value()}, attributesBut(context, {}))));
}

/// alpha * a . b and c, which counts in steps of these products; in real numbers where the result
/// has no scale.
Status importGemm(NodeContext& context) {
  const bool turnA = need(context.flagAttr("transA", false)),
             turnB = need(context.flagAttr("transB", false));
  const double alpha = attrOf<float>(context, "alpha", 1.0f);
  const Term a = real(context, 0), b = inputOf(context, 3);
  byteOf(b);
  if (a.rank() != 2 || b.rank() != 2)
    return badModel("operands {} and {} are no matrices", a.text(), b.text());
  const int64_t rows = a.dim(turnA ? 1 : 0);
  const int64_t columns = b.dim(turnB ? 0 : 1);
  std::vector<Term> grid = gridOf(context, 4, columns);
  const Term scale = grid[0];
  grid.insert(grid.begin(), b);
  std::vector<Term> operands = {a, make(OpKind::Dequantize, grid, axisOf(scale, turnB ? 0 : 1))};
  std::optional<Term> more;
  if (context.input(6)) {
    Term c = termOf(context, 6);
    if (c.elem() != Elem::i32_) return badModel("input 6 is {}, expected i32", c.text());
    const Shape all = {rows, columns};
    const auto shape = graph::broadcastShapes(c.shape(), all);
    if (!shape || *shape != all)
      return badModel("input 6 of shape {} does not broadcast to {}", shapeText(c.shape()),
                      shapeText(all));
    const Term unit = inputOf(context, 1).reshape({}) * scale;
    if (scale.rank() > 0 && (c.rank() == 0 || c.dim(-1) != columns))
      c = c.expand(c.rank() < 2 ? Shape{columns} : all);
    const Term realC =
        make(OpKind::Dequantize, {c, alpha == 1 ? unit : unit * alpha}, axisOf(scale, -1));
    // One row at most is part of the integer product.
    if (c.rank() == 2 && c.dim(0) != 1)
      more = realC;
    else
      operands.push_back(realC);
  }
  Term y = make(OpKind::Gemm, operands,
                {{"alpha", static_cast<double>(alpha)},
                 {"transA", int64_t(turnA)},
                 {"transB", int64_t(turnB)}});
  if (more) y = y + *more;
  return context.set(context.input(7) ? quantized(context, y, 7, a.elem()) : y);
}

/// What scales, zero points and a bias give of sums in integers. Scales and zero points of b: one,
/// one for each of its columns, or for those of each of its matrices.
Term scaledProduct(const NodeContext& context, const Term& a, const Term& aScale, Value* aZero,
                   size_t bScale, size_t bZero, size_t bias) {
  const Term b = termOf(context, 1);
  byteOf(b);
  const auto oneOf = [](const Term& p) { return p.count() == 1 ? p.reshape({}) : p; };
  if (aScale.count() != 1)
    throw Failure{
        failure(Code::unsupported, "the scale of input 0 has shape {}", shapeText(aScale.shape()))};
  const Term sums = apply(context, "MatMulInteger", kChecked,
                          {a.value(), b.value(), aZero, context.input(bZero)});
  const Term scale =
      oneOf(aScale).cast(Elem::f32_) * oneOf(inputOf(context, bScale)).cast(Elem::f32_);
  Term y = scale.rank() > 1 ? sums.cast(Elem::f32_) * scale
                            : make(OpKind::Dequantize, {sums, scale}, axisOf(scale, -1));
  if (context.input(bias)) y = y + termOf(context, bias).cast(Elem::f32_);
  if (y.shape() != sums.shape())
    need(badModel("scales or a bias of {} do not broadcast to {}", shapeText(y.shape()),
                  shapeText(sums.shape())));
  return y;
}

Status importMatMulIntegerToFloat(NodeContext& context) {
  const Term a = termOf(context, 0), aScale = inputOf(context, 2);
  byteOf(a);
  return context.set(
      scaledProduct(context, a, aScale, context.input(4), 3, 5, 6).cast(aScale.elem()));
}

Status importDynamicQuantizeMatMul(NodeContext& context) {
  const auto a = applyAll(context, "DynamicQuantizeLinear", kChecked, {context.input(0)}, {}, 3);
  return context.set(scaledProduct(context, a[0], a[1], a[2].value(), 2, 3, 4));
}

constexpr Operator kMicrosoftQuantizedOperators[] = {
    {"com.microsoft.DequantizeLinear", 2, 3, 1, importMicrosoftDequantizeLinear},
    {"com.microsoft.DynamicQuantizeMatMul", 3, 5, 1, importDynamicQuantizeMatMul},
    {"com.microsoft.MatMulIntegerToFloat", 4, 7, 1, importMatMulIntegerToFloat},
    {"com.microsoft.NhwcMaxPool", 1, 1, 1, importNhwcMaxPool},
    {"com.microsoft.QGemm", 6, 9, 1, importGemm},
    {"com.microsoft.QLinearAdd", 2, 8, 1, importBinary<OpKind::Add>},
    {"com.microsoft.QLinearAveragePool", 2, 5, 1, importMicrosoftAveragePool},
    {"com.microsoft.QLinearConcat", 5, -1, 1, importConcat},
    {"com.microsoft.QLinearConv", 8, 9, 1, importMicrosoftConv},
    {"com.microsoft.QLinearGlobalAveragePool", 2, 5, 1, importGlobalAveragePool},
    {"com.microsoft.QLinearLeakyRelu", 2, 5, 1, importMicrosoftLeakyRelu},
    {"com.microsoft.QLinearMul", 2, 8, 1, importBinary<OpKind::Mul>},
    {"com.microsoft.QLinearReduceMean", 2, 5, 1, importReduceMean},
    {"com.microsoft.QLinearSigmoid", 2, 5, 1, importSigmoid},
    {"com.microsoft.QLinearSoftmax", 2, 5, 1, importMicrosoftSoftmax},
    {"com.microsoft.QLinearWhere", 9, 9, 1, importWhere},
    {"com.microsoft.QuantizeLinear", 2, 3, 1, importMicrosoftQuantizeLinear},
};

} // namespace

std::span<const Operator> microsoft_quantizedOperators() { return kMicrosoftQuantizedOperators; }

} // namespace candela::import
