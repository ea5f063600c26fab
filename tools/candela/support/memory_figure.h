#pragma once

#include "tools/candela/support/page.h"
#include "tools/candela/support/planned.h"

namespace candela::tool {

/// An arena over time, as SVG in the style of memory_figure.css: instructions to the right, bytes
/// upwards, a rectangle for the life of each buffer in the colour of what computes it, the bytes
/// that are live as a line, the peak marked. Rectangles tell of themselves when pointed at. Empty
/// for a space without TEMP buffers.
std::string memoryFigure(const PlannedPart& part, const program::report::MemoryMap& map);

/// To a page: a figure and a table of what lives at the peak for each space of the part, and what
/// moves most. `label` tells parts of one page apart; it may be empty.
void addMemory(Page& page, const PlannedPart& part, const std::string& label);

} // namespace candela::tool
