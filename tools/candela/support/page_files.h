#pragma once

#include <string_view>

/// The files that the build puts into the command.
namespace candela::tool {

extern const std::string_view kPageTemplate;      ///< page.html
extern const std::string_view kPageStyle;         ///< page.css
extern const std::string_view kPageScript;        ///< page.js
extern const std::string_view kMemoryFigureStyle; ///< memory_figure.css
extern const std::string_view kPlacementStyle;    ///< placement.css

} // namespace candela::tool
