#pragma once

#include <nlohmann/json.hpp>

#include "core/support/text/nesting.h"

namespace candela {

/// JSON of a text; is_discarded() where it is malformed, or nested deeper than any file of ours.
template <typename Json> Json parseJson(std::string_view text) {
  if (text::jsonLevels(text) > text::kMostLevels) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

} // namespace candela
