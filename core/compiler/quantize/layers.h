#pragma once

#include "core/compiler/quantize/run.h"

/// Layer by layer: where a quantized model leaves its float one.
namespace candela::quantize {

/// What the quantized model has in place of values of the float one: behind the QuantizeLinear and
/// the DequantizeLinear of the value, whoever wrote them and however they are named, else the value
/// of the same name. Values without one are absent.
std::map<std::string, std::string> counterparts(const Network& network,
                                                const import::onnx_io::Model& quantized);

/// What came out of a node of the float model, and what the quantized one had there. Decibels, as
/// Nearness::snr() has them.
struct LayerError {
  std::string node, op, value, counterpart;
  double snr = 0;
  double inputSnr = 0; ///< of its worst operand
  double largest = 0;  ///< difference
  /// What the layer itself loses. More than kRounding at its operands counts as that: where the
  /// first value is rounded, something has to be lost.
  double step() const { return std::min(inputSnr, kRounding) - std::min(snr, kRounding); }
  static constexpr double kRounding = 60;
};

struct LayerErrors {
  std::vector<LayerError> layers;     ///< in the order of the float model
  std::vector<std::string> unmatched; ///< its values that the quantized one has not
  /// The layer with the largest step; null where no layer loses anything.
  const LayerError* worst() const;
};

/// Runs both once. Failure: invalid_argument where an input of one has no data or no value of the
/// float model has a counterpart.
Result<LayerErrors> compareLayers(const Network& network, const import::onnx_io::Model& quantized,
                                  const std::map<std::string, Tensor>& inputs,
                                  const RunConditions& options);

} // namespace candela::quantize
