#pragma once

#include "core/compiler/quantize/equalize.h"
#include "core/compiler/quantize/quantizer.h"
#include "tools/candela/support/console.h"

namespace candela::tool {

/// An option that may pay or not: the signal to noise at the worst output, with it and all others
/// that were asked for, and with those others alone.
struct Improvement {
  std::string option;
  std::string did; ///< what it changed, as a person reads it
  struct Decibels {
    double with = 0, without = 0;
  };
  std::optional<Decibels> measured; ///< none without data or with --compare 0
};

/// What `candela quantize` found beside the model that it wrote.
struct QuantizeReport {
  quantize::Pins pins;
  std::vector<quantize::Move> path;
  std::optional<quantize::Comparison> comparison;
  std::optional<quantize::Equalization> equalization;
  std::vector<Improvement> improvements;
  double profiledMs = 0, totalMs = 0;
};
struct QuantizeFiles {
  std::string model, output, html;
};

/// For the terminal, as JSON and as a page, where they are asked for.
void writeReport(const quantize::Quantizer& quantizer, const quantize::Quantized& made,
                 const QuantizeReport& report, const QuantizeFiles& files, Console& console);

} // namespace candela::tool
