#include "core/compiler/capabilities/refusal.h"

#include <algorithm>

#include "core/support/elem.h"

namespace candela::capabilities {

std::string_view reasonName(uint16_t reason) {
  switch (reason) {
#define CANDELA_REASON(name, id, text)                                                             \
  case id: return #name;
    CDL_REASONS(CANDELA_REASON)
#undef CANDELA_REASON
  default: return "";
  }
}

std::string_view cureOf(uint16_t reason) {
  switch (reason) {
  case CDL_REASON_NO_ROW:
    return "declare a row of this kind and function, or leave it to its decomposition";
  case CDL_REASON_DTYPE: return "declare a row with these element types";
  case CDL_REASON_RANK: return "widen the row's limit on the rank";
  case CDL_REASON_DIM: return "widen the row's limit on the dims";
  case CDL_REASON_ATTRIBUTE: return "widen what the row takes";
  case CDL_REASON_NOT_CONSTANT: return "take the operand from memory and drop the row's is_const";
  case CDL_REASON_LAYOUT: return "declare a row with these layouts";
  case CDL_REASON_OPERAND_CLASS: return "walk such strides and raise the row's operand class";
  case CDL_REASON_MEMORY: return "declare a larger space, or run with smaller dims";
  case CDL_REASON_PROFILE: return "claim the profile of this type, or name the type in a row";
  case CDL_REASON_DYNAMIC_SHAPE:
    return "bind it ahead by --dim or --shape where the data does not decide it";
  case CDL_REASON_BARRED:
    return "say the limit as atoms of the row, so that it is known before compiling";
  case CDL_REASON_HOST_ONLY: return "declare a row of the kind to take it from the host";
  case CDL_REASON_VENDOR:
    return "see the backend's documentation, or give the node to another backend";
  default: return "";
  }
}

std::string refusalText(uint16_t reason, std::string_view detail) {
  return cureOf(reason).empty()
             ? std::string(detail)
             : fmt::format("{}: {} [{}]", detail, cureOf(reason), reasonName(reason));
}

std::string tooLarge(const InstrDesc& desc, std::span<const Target::SpaceInfo> spaces) {
  uint64_t largest = 0;
  for (const Target::SpaceInfo& info : spaces) {
    if (info.space.capacity_bytes == 0) return ""; // without a limit
    largest = std::max(largest, info.space.capacity_bytes);
  }
  for (size_t i = 0; i < desc.operands.size() && largest; ++i) {
    const OperandDesc& operand = desc.operands[i];
    // Views of other classes name more elements than there are in memory.
    if (operand.cls != OperandClass::dense) continue;
    const uint64_t bytes =
        elemBytes(operand.elem, static_cast<uint64_t>(elementCount(operand.dims).value_or(0)));
    if (bytes > largest)
      return fmt::format("operand {} takes {} bytes, the largest memory holds {}", i, bytes,
                         largest);
  }
  return "";
}

} // namespace candela::capabilities
