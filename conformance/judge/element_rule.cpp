#include "conformance/judge/element_rule.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "candela/cdl_rows.inc"
#include "core/compiler/capabilities/rows.h"
#include "core/compiler/graph/op_info.h"
#include "core/support/float_bits.h"

namespace candela::conformance::judge {
namespace {

/// Units in the last place of the function's row that has this result type, else of any of its
/// rows; nothing where spec/primitives.toml has no row.
std::optional<double> rowUlp(uint16_t kind, uint16_t fn, Elem result) {
  struct Row {
    uint16_t kind, fn;
    uint8_t elems[5];
    uint8_t count;
    double ulp;
  };
  static constexpr Row rows[] = {
#define CDL_X(profile, kind, fn, count, e0, e1, e2, e3, e4, cls, tenths)                           \
  {kind, fn, {e0, e1, e2, e3, e4}, count, tenths / 10.0},
      CDL_REQUIRED_ROWS(CDL_X)
#undef CDL_X
  };
  std::optional<double> any;
  for (const Row& row : rows) {
    if (row.kind != kind || row.fn != fn) continue;
    if (row.elems[row.count - 1] == static_cast<uint8_t>(result)) return row.ulp;
    any = row.ulp;
  }
  return any;
}

} // namespace

double unitOf(Elem elem) {
  switch (elem) {
  case Elem::f16_: return 0x1p-11;
  case Elem::bf16_: return 0x1p-8;
  case Elem::f64_: return 0x1p-53;
  case Elem::f8e4m3_: return 0x1p-4;
  case Elem::f8e5m2_: return 0x1p-3;
  default: return 0x1p-24;
  }
}

double leastOf(Elem elem) {
  const double least = toReal(elem, 1);
  return std::isfinite(least) ? least : 0;
}

double leastNormalOf(Elem elem) { return leastOf(elem) / unitOf(elem) / 2; }

double ulpAt(Elem elem, double value) {
  const double least = leastOf(elem);
  const double size = std::max(std::abs(value), least);
  return std::max(std::ldexp(2 * unitOf(elem), std::ilogb(size)), least);
}

double functionUnits(uint16_t kind, uint16_t fn, Elem elem, double size) {
  const bool isHalf = elemBits(elem) <= 16; // computed in f32 wherever that can be
  if (capabilities::isRequiredFn(kind, fn) || isHalf) return isHalf ? 3 : 4;
  // By way of exp and log what is lost is as much as the logarithm is long.
  return 16 * (1 + (size > 0 ? std::abs(std::log(size)) / 8 : 0));
}

ElementRule elementRule(uint16_t kind, uint16_t fn, Elem elem) {
  if (const std::optional<double> ulp = rowUlp(kind, fn, elem))
    return *ulp > 0.5 ? ElementRule{ElementRule::Kind::ulp, *ulp} : ElementRule{};
  for (const graph::OpInfo& info : graph::allOps())
    if (info.instrKind == kind && info.instrFn == fn &&
        info.tolerance != graph::Tolerance::Function)
      return {};
  return {ElementRule::Kind::units};
}

} // namespace candela::conformance::judge
