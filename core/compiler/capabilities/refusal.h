#pragma once

#include <span>
#include <string>

#include "core/compiler/capabilities/target.h"

/// What a refusal says to those who can do something about it.
namespace candela::capabilities {

/// "dtype"; empty when unknown.
std::string_view reasonName(uint16_t reason);
/// What to change, for every reason but `none`, which has nothing to fix.
std::string_view cureOf(uint16_t reason);
/// "rank of operand 0 5, expected <= 4 (row 7): widen the limit of the row [rank]"
std::string refusalText(uint16_t reason, std::string_view detail);

/// What is wrong when a dense operand fits no memory of the device; empty when all fit.
std::string tooLarge(const InstrDesc& desc, std::span<const Target::SpaceInfo> spaces);

} // namespace candela::capabilities
