// Softmax and the norms, from their own results or computed again.
#include "core/compiler/differentiate/rules.h"

namespace candela::differentiate {
namespace {

Term mean(const Term& x, const std::vector<int64_t>& axes) {
  return reduce(OpKind::ReduceMean, x, axes);
}

/// x without its mean, where it has one, over its spread.
struct Normalized {
  Term value, inverse; ///< inverse: 1 / sqrt(variance + epsilon), a dim of 1 where reduced
  std::vector<int64_t> axes;
  bool isCentred;

  /// What comes back through the norm to x.
  Term back(const Term& dy) const {
    const Term along = dy - value * mean(dy * value, axes);
    return inverse * (isCentred ? along - mean(dy, axes) : along);
  }
};

Normalized normalized(const Term& x, const std::vector<int64_t>& axes, double epsilon,
                      bool isCentred) {
  const Term centred = isCentred ? x - mean(x, axes) : x;
  const Term inverse = reciprocal(sqrt(mean(centred * centred, axes) + epsilon));
  return {centred * inverse, inverse, axes, isCentred};
}

/// LayerNorm and RMSNorm: `axis` and what is behind it is a row.
void rowNormRule(const Step& step, bool isCentred) {
  const Term x = step.x(0);
  const Term dy = step.dy();
  const int64_t axis = graph::wrapAxis(step.node.intAttr("axis"), static_cast<int>(x.rank()));
  const Normalized norm =
      normalized(x, range(axis, x.rank()), step.node.floatAttr("epsilon"), isCentred);
  step.give(0, [&] { return norm.back(step.hasOperand(1) ? dy * step.x(1) : dy); });
  step.give(1, [&] { return dy * norm.value; });
  step.give(2, [&] { return dy; });
}

/// A value of channels as it broadcasts to x [n, c, spatial..].
Term ofChannels(const Term& value, const Term& x) {
  Shape shape(static_cast<size_t>(x.rank()), 1);
  shape[1] = x.dim(1);
  return value.cast(x.elem()).reshape(shape);
}

/// All axes but the channels'.
std::vector<int64_t> besideChannels(const Term& x) {
  std::vector<int64_t> axes = range(0, x.rank());
  axes.erase(axes.begin() + 1);
  return axes;
}

/// What comes back to a value of channels, in its own type.
void giveChannels(const Step& step, size_t i, const std::function<Term()>& make) {
  step.give(i, [&] {
    const Term dy = make();
    return sum(dy, besideChannels(dy), false).cast(step.x(i).elem());
  });
}

/// With given mean and variance.
void inferenceNormRule(const Step& step) {
  const Term x = step.x(0);
  const Term dy = step.dy();
  const Term scale = ofChannels(step.x(1), x);
  const Term mean = ofChannels(step.x(3), x);
  const Term inverse = reciprocal(sqrt(ofChannels(step.x(4), x) + step.node.floatAttr("epsilon")));
  step.give(0, [&] { return dy * (scale * inverse); });
  giveChannels(step, 1, [&] { return dy * ((x - mean) * inverse); });
  giveChannels(step, 2, [&] { return dy; });
  giveChannels(step, 3, [&] { return -(dy * (scale * inverse)); });
  giveChannels(step, 4,
               [&] { return dy * (x - mean) * (scale * (inverse * inverse * inverse) * -0.5); });
  // The running values are those that were given.
  for (const size_t running : {size_t{1}, size_t{2}})
    if (step.has(running)) step.give(running + 2, [&] { return step.dy(running); });
}

/// What comes back to x from the batch's mean and variance, which the running values hold a part
/// of.
std::optional<Term> fromRunning(const Step& step, const Term& x) {
  const double part = 1 - step.node.floatAttr("momentum");
  const std::vector<int64_t> axes = besideChannels(x);
  const double count = static_cast<double>(x.count()) / static_cast<double>(x.dim(1));
  std::optional<Term> all;
  if (step.has(1)) all = (ofChannels(step.dy(1), x) * (part / count)).expand(x.shape());
  if (step.has(2)) {
    const Term moved = (x - mean(x, axes)) * (ofChannels(step.dy(2), x) * (2 * part / count));
    all = all ? *all + moved : moved;
  }
  return all;
}

/// With the batch's own mean and variance.
void trainingNormRule(const Step& step) {
  const Term x = step.x(0);
  const Term dy = step.dy();
  const Normalized norm = normalized(x, besideChannels(x), step.node.floatAttr("epsilon"), true);
  step.give(0, [&] {
    const Term direct = norm.back(dy * ofChannels(step.x(1), x));
    const std::optional<Term> running = fromRunning(step, x);
    return running ? direct + *running : direct;
  });
  giveChannels(step, 1, [&] { return dy * norm.value; });
  giveChannels(step, 2, [&] { return dy; });
  const double momentum = step.node.floatAttr("momentum");
  for (const size_t running : {size_t{1}, size_t{2}})
    if (step.has(running)) step.give(running + 2, [&] { return step.dy(running) * momentum; });
}

} // namespace

void batchNormRule(const Step& step) {
  if (step.node.intAttr("training_mode")) return trainingNormRule(step);
  inferenceNormRule(step);
}

void softmaxRule(const Step& step) {
  step.give(0, [&] {
    const Term y = step.y();
    const Term dy = step.dy();
    return y * (dy - sum(dy * y, {step.node.intAttr("axis")}));
  });
}

void layerNormRule(const Step& step) { rowNormRule(step, true); }
void rmsNormRule(const Step& step) { rowNormRule(step, false); }

} // namespace candela::differentiate
