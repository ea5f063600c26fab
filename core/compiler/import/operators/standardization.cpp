#include <algorithm>

#include "core/compiler/import/term.h"

/// Normalizations by statistics of groups of elements, as formulas.
namespace candela::import {
namespace {

/// (x - mean) / sqrt(variance + epsilon) of x[n, c, ..] over each of `groups` groups of channels,
/// times scale, plus bias, one value each for every channel, or for every group.
Status standardize(NodeContext& context, int64_t groups, bool perGroup) {
  const Term x = termOf(context, 0), wide = widened(x);
  const double epsilon = attrOf<float>(context, "epsilon", 1e-5f);
  const int64_t channels = x.dim(1);
  int64_t inner = groups ? channels / groups : 0;
  Shape along(x.shape().size() - 1, 1);
  along[0] = channels;
  const auto channelwise = [&](size_t input) {
    const Term given = widened(termOf(context, input));
    if (given.shape() != Shape{perGroup ? groups : channels})
      need(badModel("input {} is {}, expected {} values", input, given.text(),
                    perGroup ? groups : channels));
    return (perGroup ? given.unsqueeze(1).expand({groups, inner}) : given).reshape(along);
  };
  const Term scale = channelwise(1), bias = channelwise(2);
  int64_t row = inner;
  for (int64_t d = 2; d < x.rank(); ++d) row *= x.dim(d);
  const Term rows = wide.reshape({x.dim(0) * groups, row});
  const Term y = make(OpKind::LayerNorm, {rows}, {{"axis", int64_t(1)}, {"epsilon", epsilon}})
                     .reshape(x.shape());
  return context.set((y * scale + bias).cast(x.elem()));
}

Status needChannels(const Term& x, int64_t least) {
  if (x.rank() >= least) return Status::ok();
  return badModel("input {} has rank {}, expected at least {}", x.text(), x.rank(), least);
}

Status importInstanceNormalization(NodeContext& context) {
  const Term x = termOf(context, 0);
  need(needChannels(x, 3));
  return standardize(context, x.dim(1), false);
}

/// One scale for each group before opset 21, for each channel since.
Status importGroupNormalization(NodeContext& context) {
  const Term x = termOf(context, 0);
  need(needChannels(x, 2));
  const auto groups = need(context.maybe<int64_t>("num_groups"));
  if (!groups) return badModel("attribute 'num_groups' is missing");
  if (*groups < 1 || x.dim(1) % *groups != 0)
    return badModel("num_groups is {} but the input has {} channels", *groups, x.dim(1));
  // sums have at least 24 bits everywhere
  if (context.opset >= 21) need(context.maybe<int64_t>("stash_type"));
  return standardize(context, *groups, context.opset < 21);
}

/// (x - mean) / (deviation + 1e-9)
Status importMeanVarianceNormalization(NodeContext& context) {
  const Term x = termOf(context, 0), wide = widened(x);
  const auto axes =
      need(resolveAxes(attrOf<std::vector<int64_t>>(context, "axes", {0, 2, 3}), x.rank()));
  const Term centred = wide - reduce(OpKind::ReduceMean, wide, axes);
  return context.set((centred / (sqrt(reduce(OpKind::ReduceMean, centred * centred, axes)) + 1e-9))
                         .cast(x.elem()));
}

/// x / (bias + alpha * mean of squares over `size` neighbouring channels, those outside being 0) ^
/// beta
Status importLrn(NodeContext& context) {
  const Term x = termOf(context, 0), wide = widened(x);
  need(needChannels(x, 2));
  const auto size = need(context.maybe<int64_t>("size"));
  if (!size || *size < 1)
    return badModel("attribute 'size' is {}, expected at least 1", size.value_or(0));
  const double alpha = attrOf<float>(context, "alpha", 1e-4f),
               beta = attrOf<float>(context, "beta", 0.75f);
  const double bias = attrOf<float>(context, "bias", 1);
  // Neighbours beyond the first or last channel add nothing.
  const int64_t channels = x.dim(1), far = std::max<int64_t>(channels - 1, 0);
  const int64_t before = std::min((*size - 1) / 2, far), behind = std::min(*size / 2, far);
  int64_t inner = 1;
  for (int64_t d = 2; d < x.rank(); ++d) inner *= x.dim(d);
  const int64_t window = before + behind + 1;
  const Term squares = (wide * wide).reshape({x.dim(0), 1, channels, inner});
  const Term means = make(OpKind::AveragePool, {squares},
                          {{"kernel_shape", Shape{window, 1}},
                           {"pads", Shape{before, 0, behind, 0}},
                           {"count_include_pad", int64_t(1)}});
  const double factor = alpha * static_cast<double>(window) / static_cast<double>(*size);
  return context.set((wide / pow(means.reshape(x.shape()) * factor + bias, beta)).cast(x.elem()));
}

constexpr Operator kStandardizationOperators[] = {
    {"GroupNormalization", 3, 3, 1, importGroupNormalization},
    {"InstanceNormalization", 3, 3, 1, importInstanceNormalization},
    {"LRN", 1, 1, 1, importLrn},
    {"MeanVarianceNormalization", 1, 1, 1, importMeanVarianceNormalization},
};

} // namespace

std::span<const Operator> standardizationOperators() { return kStandardizationOperators; }

} // namespace candela::import
