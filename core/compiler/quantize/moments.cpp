#include "core/compiler/quantize/moments.h"

#include <algorithm>
#include <cmath>

namespace candela::quantize {
namespace {

using import::onnx_io::Node;

/// Attributes of one spatial dim, with what ONNX has in their place where they are absent.
int64_t spatial(const Node& conv, const char* name, size_t dim, int64_t otherwise) {
  const auto values = attributeOf<std::vector<int64_t>>(conv, name, {});
  return dim < values.size() ? values[dim] : otherwise;
}

TermReader::Window windowOf(const Node& conv, size_t dim, int64_t in, int64_t out, int64_t kernel) {
  TermReader::Window window{in, out, kernel, 1, 1, 0};
  window.stride = spatial(conv, "strides", dim, 1);
  window.dilation = spatial(conv, "dilations", dim, 1);
  window.padBefore = spatial(conv, "pads", dim, 0);
  const auto autoPad = attributeOf<std::string>(conv, "auto_pad", "NOTSET");
  if (autoPad == "VALID") window.padBefore = 0;
  if (autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER") {
    const int64_t span = (kernel - 1) * window.dilation + 1,
                  pads = std::max<int64_t>(0, (out - 1) * window.stride + span - in);
    window.padBefore = autoPad == "SAME_UPPER" ? pads / 2 : pads - pads / 2;
  }
  return window;
}

/// Sums of this many rows are added to a row of the matrix while it is near.
constexpr int64_t kRowsAtOnce = 16;

} // namespace

Result<TermReader> TermReader::of(const Network& network, int node) {
  const Node& product = network.node(node);
  const auto no = [](const char* why) { return failure(Code::unsupported, "{}", why); };
  const Tensor& weights = *network.constant(product.inputs[1]);
  const std::optional<WeightView> view = viewOf(product, weights);
  if (!view || weights.count() == 0) return no("its weights differ by batch");
  const auto input = network.types.find(product.inputs[0]),
             output = network.types.find(product.outputs[0]);
  if (input == network.types.end() || output == network.types.end() ||
      input->second.elem != Elem::f32_)
    return no("its input is no f32 value of the run");
  if (attributeOf<int64_t>(product, "transA", 0)) return no("its input is transposed");
  TermReader reader;
  reader.view = *view;
  const Shape in = input->second.shape(), out = output->second.shape();
  if (in.size() < 2) return no("its input is a vector");
  const int64_t outputs = *elementCount(out);
  reader.sums = outputs / view->outputChannels();
  if (product.opType == "Conv")
    for (size_t d = 2; d < in.size(); ++d)
      reader.windows.push_back(windowOf(product, d - 2, in[d], out[d], weights.dims[d]));
  return reader;
}

int64_t TermReader::elementOf(int64_t position, int64_t tap) const {
  int64_t element = 0, size = 1;
  for (size_t d = windows.size(); d-- > 0;) {
    const Window& window = windows[d];
    const int64_t at = position % window.out * window.stride +
                       tap % window.kernel * window.dilation - window.padBefore;
    if (at < 0 || at >= window.in) return -1;
    element += at * size;
    size *= window.in;
    position /= window.out;
    tap /= window.kernel;
  }
  return element;
}

void TermReader::read(const Tensor& input, int64_t sum, int64_t group, double* terms) const {
  const float* values = input.as<float>();
  if (windows.empty()) {
    for (int64_t i = 0; i < view.terms(); ++i)
      terms[i] = static_cast<double>(values[sum * view.terms() + i]);
    return;
  }
  int64_t positions = 1, plane = 1;
  for (const Window& window : windows) {
    positions *= window.out;
    plane *= window.in;
  }
  const int64_t channels = view.inputChannels(),
                first = (sum / positions * channels + group * view.inputs.count) * plane;
  for (int64_t tap = 0; tap < view.taps.count; ++tap) {
    const int64_t element = elementOf(sum % positions, tap);
    for (int64_t channel = 0; channel < view.inputs.count; ++channel)
      terms[channel * view.taps.count + tap] =
          element < 0 ? 0 : static_cast<double>(values[first + channel * plane + element]);
  }
}

Moments::Moments(TermReader reader) : reader_(std::move(reader)) {
  groups_.assign(static_cast<size_t>(reader_.view.groups.count),
                 std::vector<double>(static_cast<size_t>(terms() * terms()), 0));
}

void Moments::add(const Tensor& input, int64_t runs) {
  const int64_t most = std::max<int64_t>(1, kMostSums / runs), taken = std::min(most, reader_.sums);
  const auto count = static_cast<size_t>(terms());
  std::vector<double> rows(count * kRowsAtOnce);
  for (int64_t group = 0; group < reader_.view.groups.count; ++group) {
    std::vector<double>& matrix = ofGroup(group);
    for (int64_t first = 0; first < taken; first += kRowsAtOnce) {
      const auto near = static_cast<size_t>(std::min(kRowsAtOnce, taken - first));
      for (size_t row = 0; row < near; ++row)
        reader_.read(input, (first + static_cast<int64_t>(row)) * reader_.sums / taken, group,
                     &rows[row * count]);
      for (size_t i = 0; i < count; ++i)
        for (size_t row = 0; row < near; ++row) {
          const double* x = &rows[row * count];
          if (x[i] == 0) continue; // as behind a Relu
          double* line = &matrix[i * count];
          for (size_t j = 0; j <= i; ++j) line[j] += x[i] * x[j];
        }
    }
  }
}

void Moments::finish() {
  const auto count = static_cast<size_t>(terms());
  for (std::vector<double>& matrix : groups_)
    for (size_t i = 0; i < count; ++i)
      for (size_t j = 0; j < i; ++j) matrix[j * count + i] = matrix[i * count + j];
}

bool Moments::isFinite() const {
  return std::ranges::all_of(groups_, [](const std::vector<double>& matrix) {
    return std::ranges::all_of(matrix, [](double value) { return std::isfinite(value); });
  });
}

} // namespace candela::quantize
