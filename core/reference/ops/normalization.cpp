#include <cmath>

#include "core/reference/index.h"

namespace candela::reference {

/// y = (x - mean[c]) / sqrt(var[c] + epsilon) * scale[c] + bias[c]. In training form mean and var
/// are the batch's own (var of the population), and the running ones move: running = given *
/// momentum + batch * (1 - momentum).
Status referenceBatchNorm(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  const Array& x = *in[0];
  const int64_t images = x.dims[0], channels = x.dims[1], plane = product(x.dims, 2, x.dims.size());
  const double epsilon = node.floatAttr("epsilon"), momentum = node.floatAttr("momentum");
  for (int64_t c = 0; c < channels; ++c) {
    const auto overChannel = [&](auto body) {
      for (int64_t n = 0; n < images; ++n)
        for (int64_t i = 0; i < plane; ++i) body((n * channels + c) * plane + i);
    };
    double mean = in[3]->real[c], var = in[4]->real[c];
    if (node.intAttr("training_mode")) {
      const double count = static_cast<double>(images * plane);
      mean = var = 0;
      overChannel([&](int64_t i) { mean += x.real[i]; });
      mean /= count;
      overChannel([&](int64_t i) { var += (x.real[i] - mean) * (x.real[i] - mean); });
      var /= count;
    }
    overChannel([&](int64_t i) {
      out[0].real[i] = (x.real[i] - mean) / std::sqrt(var + epsilon) * in[1]->real[c] + in[2]->real[c];
    });
    const bool training = node.intAttr("training_mode");
    if (out.size() > 1) out[1].real[c] = training ? in[3]->real[c] * momentum + mean * (1 - momentum) : mean;
    if (out.size() > 2) out[2].real[c] = training ? in[4]->real[c] * momentum + var * (1 - momentum) : var;
  }
  return Status::ok();
}

/// y = exp(x - max) / sum(exp(x - max)) along the axis.
Status referenceSoftmax(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  const Array& x = *in[0];
  const int64_t given = node.intAttr("axis"), rank = static_cast<int64_t>(x.dims.size());
  const size_t axis = static_cast<size_t>(given < 0 ? given + rank : given);
  const int64_t outer = product(x.dims, 0, axis), count = x.dims[axis],
                inner = product(x.dims, axis + 1, x.dims.size());
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      const auto at = [&](int64_t k) { return (o * count + k) * inner + i; };
      double max = -INFINITY, sum = 0;
      for (int64_t k = 0; k < count; ++k) max = x.real[at(k)] > max || std::isnan(x.real[at(k)]) ? x.real[at(k)] : max;
      for (int64_t k = 0; k < count; ++k) sum += std::exp(x.real[at(k)] - max);
      for (int64_t k = 0; k < count; ++k) out[0].real[at(k)] = std::exp(x.real[at(k)] - max) / sum;
    }
  return Status::ok();
}

namespace {

Status rowNorm(const graph::Node& node, std::span<const Array* const> in, Array& y, bool centres) {
  const Array &x = *in[0], *scale = in[1], *bias = centres ? in[2] : nullptr;
  const int64_t rank = static_cast<int64_t>(x.dims.size()), axis = node.intAttr("axis");
  const int64_t count = product(x.dims, static_cast<size_t>(axis < 0 ? axis + rank : axis), x.dims.size());
  for (int64_t row = 0; row < y.count(); row += count) {
    double mean = 0, squares = 0;
    for (int64_t i = row; centres && i < row + count; ++i) mean += x.real[i];
    mean /= static_cast<double>(count);
    for (int64_t i = row; i < row + count; ++i) squares += (x.real[i] - mean) * (x.real[i] - mean);
    const double spread = std::sqrt(squares / static_cast<double>(count) + node.floatAttr("epsilon"));
    for (int64_t i = 0; i < count; ++i)
      y.real[row + i] = (x.real[row + i] - mean) / spread * (scale ? scale->real[i] : 1) + (bias ? bias->real[i] : 0);
  }
  return Status::ok();
}

} // namespace

Status referenceLayerNorm(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  return rowNorm(node, in, out[0], true);
}
Status referenceRmsNorm(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  return rowNorm(node, in, out[0], false);
}

} // namespace candela::reference
