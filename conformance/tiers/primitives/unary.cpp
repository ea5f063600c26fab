// UNARY: every function on every float type, and those of integers.
#include "conformance/tiers/primitives/elementwise.h"
#include "conformance/tiers/primitives/families.h"
#include "conformance/tiers/primitives/values.h"
#include "core/support/text/expr.h"

namespace candela::conformance::tiers::primitives {
namespace {

constexpr uint16_t kKind = CDL_KIND_UNARY;

/// Beyond it a period is shorter than what the last digit says.
bool isPeriodic(uint16_t fn) {
  return fn == CDL_UNARY_SIN || fn == CDL_UNARY_COS || fn == CDL_UNARY_TAN;
}

Call callOf(const Choice& choice) {
  const auto [fn, elem] = fnAndElem(kKind, choice.at("row"));
  const std::string& data = choice.at("data");
  TrialBuilder::Fill fill = data == "specials" ? pairs(elem, false) : dataOf(elem, data);
  if (isPeriodic(fn) && elem != Elem::f16_)
    fill = below(elem == Elem::f64_ ? 0x1p49 : 0x1p20, elem, std::move(fill));
  return {kKind, fn, {elem}, elem, {std::move(fill)}, {}};
}

/// The rows of every function on every type.
struct Rows {
  std::vector<std::string> required;
  std::vector<std::string> optional; ///< floats that a device may compute with
  std::vector<std::string> further;  ///< f64 and integers
  std::vector<std::string> halves;   ///< 16 bits: every number is tried
  std::vector<std::string> wide;
};
Rows allRows() {
  Rows rows;
  rows.required = requiredTexts(kKind, [](const auto& row) { return rowText(row); });
  for (const Elem elem : arithmeticElems())
    for (uint16_t fn = 0; cdl_fn_known(kKind, fn); ++fn) {
      if (!text::hasMeaning(kKind, fn, elem)) continue;
      const std::string row = rowText(kKind, fn, elem);
      (isFloat(elem) && elem != Elem::f64_ ? rows.optional : rows.further).push_back(row);
      if (elemBits(elem) == 16) rows.halves.push_back(row);
      if (elemBits(elem) > 16) rows.wide.push_back(row);
    }
  return rows;
}

} // namespace

const std::vector<std::string>& unaryViews() {
  static const std::vector<std::string> views = {
      "dense,dense",        "offset,dense",     "dense,offset",   "broadcast,dense",
      "broadcast_in,dense", "splat,dense",      "rows,dense",     "dense,rows",
      "transposed,dense",   "dense,transposed", "negative,dense", "dense,negative",
      "strided,dense",      "dense,strided",    "overlap,dense",  "reversed,rotated",
      "rotated,reversed",   "strided,strided",  "dense,in0",      "strided,in0",
      "negative,in0"};
  return views;
}

std::vector<Case> unaryCases(const Selection& selection) {
  const Rows rows = allRows();
  const std::vector<std::string> dense = {"dense,dense"};
  return elementwiseCases(
      "primitives:unary/",
      {{.rows = rows.required,
        .shapes = manyShapes(),
        .views = unaryViews(),
        .data = {"calm", "wide", "corners", "specials"},
        .typicalViews = dense,
        .typicalData = {"specials", "wide"},
        .oneIn = 24,
        .oneInDense = 2,
        .budget = {0, 48}},
       {.rows = without(rows.optional, rows.required),
        .shapes = fewShapes(),
        .views = unaryViews(),
        .data = {"calm", "wide", "specials"},
        .typicalViews = dense,
        .typicalData = {"specials", "wide"},
        .oneIn = 12,
        .oneInDense = 3,
        .budget = {0, 16}},
       {.rows = without(rows.further, rows.required),
        .shapes = fewShapes(),
        .views = unaryViews(),
        .data = {"calm", "wide", "specials"},
        .typicalViews = dense,
        .typicalData = {"wide"},
        .oneIn = 32,
        .oneInDense = 6,
        .budget = {2, 5}},
       {.rows = rows.halves,
        .shapes = {everyShape(Elem::f16_)},
        .views = dense,
        .data = {"every"},
        .budget = {1, 5}},
       {.rows = rows.wide,
        .shapes = {everyShape(Elem::f32_)},
        .views = dense,
        .data = {"every"},
        .budget = {1, 6}},
       // The halves among the specials: whoever rounds shows how it breaks ties.
       {.rows = {"round_even_f32", "round_even_f16", "round_even_bf16", "round_even_f64"},
        .shapes = {"15x17"},
        .views = dense,
        .data = {"specials"},
        .budget = {0, 4}},
       inLoops(rows.required, {"dense,dense", "rows,strided", "dense,in0"}, {"calm"}, {1, 2}),
       witnesses({"neg_f32"}, {"scalar"}, {"dense,dense"}, {"calm"})},
      callOf, selection);
}

} // namespace candela::conformance::tiers::primitives
