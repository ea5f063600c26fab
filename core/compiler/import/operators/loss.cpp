#include <limits>

#include "core/compiler/import/term.h"

/// Losses of classifiers: labels are known at run time only.
namespace candela::import {
namespace {

/// -x[n, label[n, d..], d..], weighed by the label's class and reduced; a label that is to be
/// ignored weighs nothing.
Term negativeLogLikelihood(NodeContext& context, const Term& x) {
  const Term labels = termOf(context, 1);
  Shape expected = x.shape();
  if (expected.size() < 2)
    need(badModel("input {} has rank {}, expected at least 2", x.text(), expected.size()));
  const int64_t images = x.dim(0), classes = x.dim(1);
  expected.erase(expected.begin() + 1);
  if (labels.shape() != expected)
    need(badModel("labels {} do not fit input {}", labels.text(), x.text()));
  const std::string reduction = attrOf<std::string>(context, "reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    need(badModel("reduction '{}' is not none, sum or mean", reduction));
  std::optional<Term> ignored;
  if (const auto index = need(context.maybe<int64_t>("ignore_index")))
    ignored =
        equal(labels.cast(Elem::i64_), constant(context.build, std::vector<int64_t>{*index}, {}));
  const auto orIgnored = [&](double value, const Term& term) {
    return ignored ? select(*ignored, value, term) : term;
  };
  const Term known = orIgnored(0, labels);

  // n * classes * places + label * places + d
  const Elem elem = x.count() <= std::numeric_limits<int32_t>::max() ? Elem::i32_ : Elem::i64_;
  int64_t places = 1;
  for (size_t d = 2; d < x.shape().size(); ++d) places *= x.dim(static_cast<int64_t>(d));
  const Term label = known.cast(elem).reshape({images, places});
  const auto number = [&](int64_t value) {
    return constant(context.build, std::vector<int64_t>{value}, {}, elem);
  };
  const Term rows = (iota(context.build, images, elem) * number(classes)).reshape({images, 1});
  const Term index =
      (rows + label) * number(places) + iota(context.build, places, elem).reshape({1, places});
  Term loss = -takeFlat(x, index).reshape(labels.shape());

  std::optional<Term> weights;
  if (context.input(2)) {
    const Term given = termOf(context, 2).cast(x.elem());
    if (given.shape() != Shape{classes})
      need(badModel("weights {} are not one for each of {} classes", given.text(), classes));
    weights = takeFlat(given, known.cast(elem));
    loss = loss * *weights;
  }
  loss = orIgnored(0, loss);
  if (reduction == "none") return loss;
  const auto all = [&](OpKind kind, const Term& term) {
    return reduce(kind, term.reshape({term.count()}), {0}, false);
  };
  if (reduction == "mean" && !weights && !ignored) return all(OpKind::ReduceMean, loss);
  const Term sum = all(OpKind::ReduceSum, loss);
  if (reduction == "sum") return sum;
  const Term ones = weights ? *weights : full(context.build, 1, labels.shape(), x.elem());
  return sum / all(OpKind::ReduceSum, orIgnored(0, ones));
}

Status importNegativeLogLikelihoodLoss(NodeContext& context) {
  const Term x = termOf(context, 0);
  return context.set(negativeLogLikelihood(context, widened(x)).cast(x.elem()));
}

Status importSoftmaxCrossEntropyLoss(NodeContext& context) {
  const Term scores = termOf(context, 0);
  if (scores.rank() < 2)
    return badModel("input {} has rank {}, expected at least 2", scores.text(), scores.rank());
  const Term logs = logSoftmax(widened(scores), 1);
  if (context.wants(1)) context.set(1, logs.cast(scores.elem()).value());
  return context.set(negativeLogLikelihood(context, logs).cast(scores.elem()));
}

constexpr Operator kLossOperators[] = {
    {"NegativeLogLikelihoodLoss", 2, 3, 1, importNegativeLogLikelihoodLoss},
    {"SoftmaxCrossEntropyLoss", 2, 3, 2, importSoftmaxCrossEntropyLoss},
};

} // namespace

std::span<const Operator> lossOperators() { return kLossOperators; }

} // namespace candela::import
