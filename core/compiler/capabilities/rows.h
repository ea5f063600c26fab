#pragma once

#include <span>

#include "core/support/elem.h"
#include "core/support/kinds.h"
#include "core/support/status.h"

/// What spec/primitives.toml says, as tables: names for messages, defaults, required rows.
namespace candela::capabilities {

using candela::instrText;
/// The function of this name, which there is.
uint16_t fnOf(uint16_t kind, std::string_view name);
/// "row_strided" of CDL_CLASS_ROW_STRIDED.
const char* classText(unsigned cls);
/// "strides", or "attribute 99".
std::string attrText(uint16_t attr);
/// True when the kind has no decomposition: at every level of lowering it may stay, as a step of
/// the host.
inline bool isHostOp(uint16_t kind) { return kind == CDL_KIND_SORT; }
/// True when the kind is one of the 13 primitives and the function is not an optional one.
bool isRequiredFn(uint16_t kind, uint16_t fn);
/// Default values of an integer attribute; empty when it has none.
std::span<const int64_t> attrDefault(uint16_t attr);

/// One line of CDL_REQUIRED_ROWS or of CDL_REQUIRED_ROWS_BESIDE.
struct RequiredRow {
  unsigned profile;
  unsigned beside; ///< the profile that is claimed too where the row is required; itself: any
  uint16_t kind, fn;
  uint8_t elemCount;
  uint8_t elems[6];
  uint8_t operandClass;
  /// Whether who claims these profiles (a mask) must have the row.
  bool isRequiredBy(uint32_t profiles) const {
    return (profiles >> profile & 1) && (profiles >> beside & 1);
  }
  /// "binary.add f32,f32,f32"
  std::string text() const;
};
std::span<const RequiredRow> requiredRows();
const char* profileText(unsigned profile);
inline constexpr unsigned kProfileCount = 9;
/// The profiles (a mask) of which one at least is claimed beside this one; 0: it needs none.
uint32_t profilesBeside(unsigned profile);
/// True when the element type belongs to one of the profiles in the mask.
bool profilesCover(uint32_t profiles, Elem elem);

} // namespace candela::capabilities
