#include "core/compiler/quantize/weights.h"

namespace candela::quantize {

using import::onnx_io::Node;

WeightAxes axesOf(const Node& product, const Tensor& weights) {
  const int rank = static_cast<int>(weights.dims.size());
  if (product.opType == "Conv") return {0, 1};
  if (product.opType == "Gemm" && attributeOf<int64_t>(product, "transB", 0)) return {0, 1};
  return {rank - 1, rank - 2};
}

StepOf::StepOf(const Shape& dims, int axis, int64_t block)
    : along_(dims[static_cast<size_t>(axis)]), block_(block) {
  for (size_t d = static_cast<size_t>(axis) + 1; d < dims.size(); ++d) inner_ *= dims[d];
  blocks_ = block_ ? (along_ + block_ - 1) / block_ : along_;
}

int64_t StepOf::operator()(int64_t element) const {
  const int64_t at = element / inner_ % along_;
  if (!block_) return at;
  return (element / (inner_ * along_) * blocks_ + at / block_) * inner_ + element % inner_;
}

namespace {

std::optional<WeightView> viewOfConv(const Node& conv, const Shape& dims) {
  const int64_t groups = attributeOf<int64_t>(conv, "group", 1);
  if (dims.size() < 3 || groups < 1 || dims[0] % groups != 0) return std::nullopt;
  WeightView view;
  view.taps = {1, 1};
  for (size_t d = 2; d < dims.size(); ++d) view.taps.count *= dims[d];
  view.inputs = {dims[1], view.taps.count};
  view.outputs = {dims[0] / groups, dims[1] * view.inputs.stride};
  view.groups = {groups, view.outputs.count * view.outputs.stride};
  return view;
}

} // namespace

std::optional<WeightView> viewOf(const Node& product, const Tensor& weights, int64_t taps) {
  const Shape& dims = weights.dims;
  if (product.opType == "Conv") return viewOfConv(product, dims);
  if (dims.size() != 2) return std::nullopt;
  const WeightAxes axes = axesOf(product, weights);
  const int64_t outputs = dims[static_cast<size_t>(axes.channel)],
                terms = dims[static_cast<size_t>(axes.sum)];
  if (taps < 1 || terms % taps != 0) return std::nullopt;
  const bool sumsLast = axes.sum == 1;
  const int64_t alongSum = sumsLast ? 1 : outputs;
  const int64_t alongChannel = sumsLast ? terms : 1;
  WeightView view;
  view.outputs = {outputs, alongChannel};
  view.inputs = {terms / taps, taps * alongSum};
  view.taps = {taps, alongSum};
  return view;
}

} // namespace candela::quantize
