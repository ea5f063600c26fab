#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/support/text/utf8.h"

/// Text of a file or of a plugin on its way to people. A terminal obeys control characters, and
/// hides or reorders what stands beside others of Unicode; a spreadsheet computes a cell.
namespace candela::text {

/// Whether a terminal shows something else than the character: controls (C0, DEL, C1), marks and
/// overrides of direction, separators of lines, and what has no width.
bool isHidden(uint32_t character);

/// With "\n", "\t", "\x1b", "\u202e" in the place of hidden characters, and "\xff" of bytes that
/// are no UTF-8.
std::string shownLine(std::string_view text);
/// The same of text that is made of lines: their ends, and tabs, stay.
std::string shownText(std::string_view text);

/// JSON that was written without hidden characters: \uXXXX stands for them. A reader gets what it
/// was before.
std::string shownJson(std::string_view json);

/// A cell of CSV as shownLine has it, quoted where it must be. Where a spreadsheet would take the
/// text for a formula an apostrophe stands in front; numbers stay numbers.
std::string csvCell(std::string_view text);
/// The same of a dialect without quotes.
std::string plainCell(std::string_view text);

} // namespace candela::text
