#pragma once

#include "conformance/family.h"
#include "conformance/trial_builder.h"
#include "core/support/text/scan.h"

namespace candela::conformance::tiers::primitives {

/// What an address says of a GATHER or a SCATTER: row "clamp_f32_i32", shape "2x5x3k4" ([2,5,3] and
/// 4 indices), and a view, which is the result's where it begins with "to_".
struct Indexed {
  std::vector<std::string> row;
  Elem elem, index;
  Shape dims;
  int64_t count;
  std::string view;
  bool isOutput;

  explicit Indexed(const Choice& choice)
      : row(text::split(choice.at("row"), '_')), view(choice.at("view")) {
    const std::vector<std::string> shape = text::split(choice.at("shape"), 'k');
    elem = *parseElem(row[1]);
    index = *parseElem(row[2]);
    dims = shapeOf(shape[0]);
    count = shapeOf(shape[1])[0];
    isOutput = view.starts_with("to_");
  }
  std::string outputView() const { return isOutput ? view.substr(3) : "dense"; }
};

} // namespace candela::conformance::tiers::primitives
