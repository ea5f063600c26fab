#pragma once

#include "core/compiler/quantize/quantizer.h"

/// What a float model would be as integers, before anyone has run it on data.
namespace candela::quantize {

/// A profile that nobody measured: what an operator's results cannot leave where that is known (0
/// to 1 of a Sigmoid), else -6 to 8, without the negative half behind a Relu: not centred, as data
/// seldom is, so that asymmetric steps have a zero point that costs what it costs.
Profile assumedProfile(const Network& network, const std::set<std::string>& values);

/// The float model at `path` with assumed ranges of its activations and the true ones of its
/// weights, all else as `candela quantize --integer-functions` does it. Nothing is run. Failures:
/// those of Network::read, of import, and unsupported where the model has no such form.
Result<import::onnx_io::Model> assumedModel(const std::string& path, Scheme scheme,
                                            const RunConditions& shapes);

} // namespace candela::quantize
