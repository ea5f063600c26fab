#include <cmath>

#include "core/reference/kinds.h"

namespace candela::reference {

/// y = (x - mean[c]) / sqrt(var[c] + epsilon) * scale[c] + bias[c]. In training form mean and var
/// are the batch's own (var of the population), and the running ones move: running = given *
/// momentum + batch * (1 - momentum).
void referenceBatchNorm(const graph::Node& node, Operands in, Results out) {
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
      out[0].real[i] =
          (x.real[i] - mean) / std::sqrt(var + epsilon) * in[1]->real[c] + in[2]->real[c];
    });
    const bool training = node.intAttr("training_mode");
    if (out.size() > 1)
      out[1].real[c] = training ? in[3]->real[c] * momentum + mean * (1 - momentum) : mean;
    if (out.size() > 2)
      out[2].real[c] = training ? in[4]->real[c] * momentum + var * (1 - momentum) : var;
  }
}

void rowNorm(const Array& x, int64_t count, bool centres, double epsilon, const Array* scale,
             const Array* bias, Array& y) {
  for (int64_t row = 0; row < x.count(); row += count) {
    double mean = 0, squares = 0;
    for (int64_t i = row; centres && i < row + count; ++i) mean += x.real[i];
    mean /= static_cast<double>(count);
    for (int64_t i = row; i < row + count; ++i) squares += (x.real[i] - mean) * (x.real[i] - mean);
    const double spread = std::sqrt(squares / static_cast<double>(count) + epsilon);
    for (int64_t i = 0; i < count; ++i)
      y.real[row + i] = (x.real[row + i] - mean) / spread * (scale ? scale->real[i] : 1) +
                        (bias ? bias->real[i] : 0);
  }
}

/// Of layer_norm and rms_norm, which has no bias.
void referenceLayerNorm(const graph::Node& node, Operands in, Results out) {
  const Shape& dims = in[0]->dims;
  const int64_t count = product(dims, axisOf(node.intAttr("axis"), dims), dims.size());
  const bool centres = node.kind == graph::OpKind::LayerNorm;
  rowNorm(*in[0], count, centres, node.floatAttr("epsilon"), in[1], centres ? in[2] : nullptr,
          out[0]);
}
void referenceRmsNorm(const graph::Node& node, Operands in, Results out) {
  referenceLayerNorm(node, in, out);
}

void softmax(std::span<double> line, bool logarithm) {
  double max = -INFINITY, sum = 0;
  for (const double v : line) max = binary(CDL_BINARY_MAX, max, v);
  for (const double v : line) sum += std::exp(v - max);
  for (double& v : line) v = logarithm ? v - max - std::log(sum) : std::exp(v - max) / sum;
}

void softmax(const Array& x, size_t axis, bool logarithm, Array& y) {
  const Around around(x.dims, axis);
  std::vector<double> line(static_cast<size_t>(around.count));
  for (int64_t l = 0; l < around.outer * around.inner; ++l) {
    for (size_t k = 0; k < line.size(); ++k)
      line[k] = x.real[around.at(l, static_cast<int64_t>(k))];
    softmax(line, logarithm);
    for (size_t k = 0; k < line.size(); ++k)
      y.real[around.at(l, static_cast<int64_t>(k))] = line[k];
  }
}

void referenceSoftmax(const graph::Node& node, Operands in, Results out) {
  softmax(*in[0], axisOf(node.intAttr("axis"), in[0]->dims), false, out[0]);
}

} // namespace candela::reference
