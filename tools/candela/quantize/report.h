#pragma once

#include "core/compiler/quantize/quantizer.h"
#include "tools/candela/support/console.h"

namespace candela::tool {

/// What `candela quantize` found beside the model that it wrote.
struct QuantizeReport {
  quantize::Pins pins;
  std::vector<quantize::Move> path;
  std::optional<quantize::Comparison> comparison;
  double profiledMs = 0, totalMs = 0;
};
struct QuantizeFiles {
  std::string model, output, html;
};

/// For the terminal, as JSON and as a page, where they are asked for.
void writeReport(const quantize::Quantizer& quantizer, const quantize::Quantized& made,
                 const QuantizeReport& report, const QuantizeFiles& files, Console& console);

} // namespace candela::tool
