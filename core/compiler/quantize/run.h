#pragma once

#include <functional>

#include "core/compiler/driver/pipeline.h"
#include "core/compiler/quantize/network.h"
#include "core/compiler/quantize/profile.h"

namespace candela::quantize {

/// Where models run while they are quantized, and at which shapes.
struct RunConditions {
  /// none: the portable host executor
  std::vector<std::shared_ptr<runtime::plugin::Device>> devices;
  std::map<std::string, int64_t> dims;
  std::map<std::string, Shape> shapes;
};
/// 0..1 of what is done.
using OnProgress = std::function<void(double)>;

/// Learns the types of all values of the main graph. Failure: that of import.
Status setTypes(Network& network, const RunConditions& options);

/// A model that was compiled so that these values of it come out.
class Observed {
public:
  static Result<Observed> compile(const import::onnx_io::Model& model,
                                  const std::vector<std::string>& values,
                                  const RunConditions& options);
  /// Inputs in the order of Network::ports(); outputs in that of `values`.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) const {
    return session_->run(inputs);
  }
  const runtime::bundle::Bundle& bundle() const { return session_->bundle(); }

private:
  std::unique_ptr<runtime::session::Session> session_;
};

/// Runs the float model on all samples and watches the values.
Result<Profile> profileModel(const Network& network, const std::set<std::string>& values,
                             const Samples& samples, const RunConditions& options, bool perChannel,
                             const OnProgress& progress);

/// Decibels where nothing differs.
inline constexpr double kExactSnr = 200;
/// How near one model's values are to another's.
struct Nearness {
  double signal = 0, noise = 0, largest = 0; ///< sums of squares; the largest difference
  /// Two tensors of f32 and one shape; others say nothing. NaN and infinities are equal, and no
  /// signal, or infinitely far from all else.
  void add(const Tensor& want, const Tensor& got);
  /// In decibels, from -kExactSnr to kExactSnr.
  double snr() const;
};
/// Value by value, the float model's against what the quantized one has in its place.
struct Comparison {
  std::map<std::string, Nearness> values;
  int64_t samples = 0;
  /// Of the first output against labels, one for each sample: right ones of each model.
  int64_t floatRight = 0, quantizedRight = 0, labelled = 0;
};
Result<Comparison> compareModels(const Network& network, const import::onnx_io::Model& quantized,
                                 const std::map<std::string, std::string>& names,
                                 const Samples& samples, int64_t mostRuns,
                                 const std::vector<int64_t>& labels, const RunConditions& options,
                                 const OnProgress& progress);

} // namespace candela::quantize
