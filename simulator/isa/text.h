#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/isa/isa.h"
#include "simulator/result.h"

namespace candela::npu {

/// The words of a line of assembly; what stands in double quotes is one word (\" \\ and \n inside).
/// A comment is none.
Result<std::vector<std::string>> wordsOf(std::string_view line);
/// A name as a word: in quotes where it needs them.
std::string quotedWord(const std::string& name);

/// Decimal or 0x, with a sign; up to 64 bits.
std::optional<int64_t> numberOf(std::string_view text);

/// The value of a field as text stands for it: a number, a member's name, d3, x2.
Result<int64_t> fieldValueOf(const FieldInfo& field, std::string_view text);
std::string fieldText(const FieldInfo& field, int64_t value);

} // namespace candela::npu
