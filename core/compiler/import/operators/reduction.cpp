#include <cmath>

#include "core/compiler/import/term.h"

/// Operators that fold axes of a tensor, and formulas around them.
namespace candela::import {
namespace {

/// Over the axes that the operator names. Without any: all, or none when noop_with_empty_axes says
/// so, which leaves the other steps of a formula. axesSince: the opset that made `axes` an operand.
template <typename Formula>
Status importOverAxes(NodeContext& context, int axesSince, Formula formula) {
  const Term x = termOf(context, 0);
  const auto given = need(context.intsAttrOrInput("axes", 1, axesSince));
  const bool keep = need(context.flagAttr("keepdims", true));
  const bool noop =
      context.opset >= axesSince && need(context.flagAttr("noop_with_empty_axes", false));
  if (context.opset < axesSince && context.input(1))
    return badModel("input 'axes' needs opset {}, the model has {}", axesSince, context.opset);
  std::vector<int64_t> axes;
  if (given && !given->empty())
    axes = need(resolveAxes(*given, x.rank()));
  else if (!noop)
    axes = allAxes(context);
  return context.set(formula(x, axes, keep));
}

/// Bools are the numbers 0 and 1.
template <OpKind kind, int axesSince> Status importReduce(NodeContext& context) {
  return importOverAxes(
      context, axesSince, [](const Term& x, const std::vector<int64_t>& axes, bool keep) {
        if (axes.empty()) return x;
        return reduce(kind, x.elem() == Elem::bool_ ? x.cast(Elem::u8_) : x, axes, keep)
            .cast(x.elem());
      });
}

using Fold = Term(const Term& x, const std::vector<int64_t>& axes, bool keep);

/// A formula on reals; whole numbers go by way of f64 and back toward zero.
template <Fold formula> Status importRealFold(NodeContext& context) {
  return importOverAxes(
      context, 18, [](const Term& x, const std::vector<int64_t>& axes, bool keep) {
        return formula(isFloat(x.elem()) ? widened(x) : x.cast(Elem::f64_), axes, keep)
            .cast(x.elem());
      });
}

Status importReduceL1(NodeContext& context) {
  return importOverAxes(context, 18,
                        [](const Term& x, const std::vector<int64_t>& axes, bool keep) {
                          return reduce(OpKind::ReduceSum, abs(x), axes, keep);
                        });
}
Status importReduceSumSquare(NodeContext& context) {
  return importOverAxes(context, 18,
                        [](const Term& x, const std::vector<int64_t>& axes, bool keep) {
                          const Term wide = widened(x);
                          return reduce(OpKind::ReduceSum, wide * wide, axes, keep).cast(x.elem());
                        });
}

Term l2(const Term& x, const std::vector<int64_t>& axes, bool keep) {
  return sqrt(reduce(OpKind::ReduceSum, x * x, axes, keep));
}
Term logSum(const Term& x, const std::vector<int64_t>& axes, bool keep) {
  return log(reduce(OpKind::ReduceSum, x, axes, keep));
}
/// Shifted by the maximum, where it is a number, so that nothing overflows.
Term logSumExp(const Term& x, const std::vector<int64_t>& axes, bool keep) {
  const Term most = reduce(OpKind::ReduceMax, x, axes),
             shift = select(less(abs(most), INFINITY), most, 0);
  const Term sum = log(reduce(OpKind::ReduceSum, exp(x - shift), axes, keep));
  return sum + shift.reshape(sum.shape());
}

/// The place of the extreme along `axis`, whose dim is 1 then.
Term extreme(const Term& x, const char* fn, int64_t axis, bool last) {
  return make(OpKind::ArgReduce, {x},
              {{"fn", std::string(fn)}, {"axis", axis}, {"select_last", int64_t(last)}});
}

Status importExtreme(NodeContext& context, const char* fn) {
  const Term x = termOf(context, 0);
  const int64_t axis = need(resolveAxis(attrOf<int64_t>(context, "axis", 0), x.rank()));
  const bool last = context.opset >= 12 && need(context.flagAttr("select_last_index", false));
  const Term place = extreme(x, fn, axis, last).cast(Elem::i64_);
  return context.set(need(context.flagAttr("keepdims", true)) ? place : place.squeeze(axis));
}
Status importArgMax(NodeContext& context) { return importExtreme(context, "max"); }
Status importArgMin(NodeContext& context) { return importExtreme(context, "min"); }

/// 1 at the first maximum, else 0; before opset 13 over everything from the axis on.
Status importHardmax(NodeContext& context) {
  const Term x = termOf(context, 0);
  const bool flattens = context.opset < 13;
  int64_t axis = need(resolveAxis(attrOf<int64_t>(context, "axis", flattens ? 1 : -1), x.rank()));
  if (x.count() == 0) return context.set(x);
  const Term lines = flattens ? Term(context.build, context.build.flatten(x.value(), axis)) : x;
  if (flattens) axis = 1;
  Shape line(lines.shape().size(), 1);
  line[axis] = lines.dim(axis);
  const Term places = iota(context.build, line[axis], Elem::i32_).reshape(line);
  return context.set(
      equal(places, extreme(lines, "max", axis, false)).cast(x.elem()).reshape(x.shape()));
}

constexpr Operator kReductionOperators[] = {
    {"ArgMax", 1, 1, 1, importArgMax},
    {"ArgMin", 1, 1, 1, importArgMin},
    {"Hardmax", 1, 1, 1, importHardmax},
    {"ReduceL1", 1, 2, 1, importReduceL1},
    {"ReduceL2", 1, 2, 1, importRealFold<l2>},
    {"ReduceLogSum", 1, 2, 1, importRealFold<logSum>},
    {"ReduceLogSumExp", 1, 2, 1, importRealFold<logSumExp>},
    {"ReduceMax", 1, 2, 1, importReduce<OpKind::ReduceMax, 18>},
    {"ReduceMean", 1, 2, 1, importReduce<OpKind::ReduceMean, 18>},
    {"ReduceMin", 1, 2, 1, importReduce<OpKind::ReduceMin, 18>},
    {"ReduceProd", 1, 2, 1, importReduce<OpKind::ReduceProd, 18>},
    {"ReduceSum", 1, 2, 1, importReduce<OpKind::ReduceSum, 13>},
    {"ReduceSumSquare", 1, 2, 1, importReduceSumSquare},
};

} // namespace

std::span<const Operator> reductionOperators() { return kReductionOperators; }

} // namespace candela::import
