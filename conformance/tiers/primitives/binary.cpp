// BINARY: every function and type that means something.
#include "conformance/tiers/primitives/elementwise.h"
#include "conformance/tiers/primitives/families.h"
#include "conformance/tiers/primitives/values.h"
#include "core/support/text/expr.h"
#include "core/support/text/scan.h"

namespace candela::conformance::tiers::primitives {
namespace {

constexpr uint16_t kKind = CDL_KIND_BINARY;

/// A remainder's quotient must be a number of the type, so its operands are never far apart.
bool isTame(const FnAndElem& row) { return row.fn == CDL_BINARY_REM && isFloat(row.elem); }

TrialBuilder::Fill fillOf(const FnAndElem& row, const std::string& data, bool slow) {
  if (data == "pairs") return isTame(row) ? tamePairs(row.elem, slow) : pairs(row.elem, slow);
  return dataOf(row.elem, isTame(row) && text::isOneOf(data, "wide|corners|bits") ? "steps" : data);
}

Call callOf(const Choice& choice) {
  const FnAndElem row = fnAndElem(kKind, choice.at("row"));
  const std::string& data = choice.at("data");
  return {kKind,
          row.fn,
          {row.elem, row.elem},
          row.elem,
          {fillOf(row, data, true), fillOf(row, data, false)},
          {}};
}

} // namespace

const std::vector<std::string>& binaryViews() {
  static const std::vector<std::string> views = {"dense,dense,dense",
                                                 "broadcast,dense,dense",
                                                 "dense,broadcast,dense",
                                                 "dense,broadcast_in,dense",
                                                 "broadcast_in,broadcast,dense",
                                                 "splat,dense,dense",
                                                 "dense,splat,dense",
                                                 "offset,offset,offset",
                                                 "rows,dense,rows",
                                                 "dense,rows,dense",
                                                 "dense,negative,dense",
                                                 "transposed,dense,dense",
                                                 "dense,transposed,transposed",
                                                 "negative,strided,dense",
                                                 "dense,dense,negative",
                                                 "dense,dense,strided",
                                                 "overlap,broadcast,dense",
                                                 "reversed,rotated,dense",
                                                 "rotated,dense,reversed",
                                                 "dense,same,dense",
                                                 "dense,shifted,dense",
                                                 "strided,shifted,rows",
                                                 "dense,dense,in0",
                                                 "dense,dense,in1",
                                                 "dense,same,in0",
                                                 "strided,dense,in0",
                                                 "negative,broadcast,in0"};
  return views;
}

std::vector<Case> binaryCases(const Selection& selection) {
  const std::vector<std::string> required =
      requiredTexts(kKind, [](const auto& row) { return rowText(row); });
  std::vector<std::string> optional, further;
  for (const Elem elem : arithmeticElems())
    for (uint16_t fn = 0; cdl_fn_known(kKind, fn); ++fn) {
      if (!text::hasMeaning(kKind, fn, elem)) continue;
      const bool isCommon = elem == Elem::i32_ || (isFloat(elem) && elem != Elem::f64_);
      (isCommon ? optional : further).push_back(rowText(kKind, fn, elem));
    }
  const std::vector<std::string> plain = {"dense,dense,dense", "dense,broadcast,dense"};
  const std::vector<std::string> some = {
      "dense,dense,dense",      "dense,broadcast,dense", "broadcast_in,broadcast,dense",
      "negative,strided,dense", "dense,same,dense",      "dense,transposed,transposed",
      "dense,dense,in1"};
  return elementwiseCases("primitives:binary/",
                          {{.rows = required,
                            .shapes = manyShapes(),
                            .views = binaryViews(),
                            .data = {"calm", "wide", "corners", "bits", "pairs"},
                            .typicalViews = plain,
                            .typicalData = {"pairs"},
                            .oneIn = 48,
                            .oneInDense = 3,
                            .budget = {0, 66}},
                           {.rows = without(optional, required),
                            .shapes = fewShapes(),
                            .views = binaryViews(),
                            .data = {"calm", "steps", "wide", "pairs"},
                            .typicalViews = plain,
                            .typicalData = {"pairs"},
                            .oneIn = 8,
                            .oneInDense = 2,
                            .budget = {0, 11}},
                           {.rows = without(further, required),
                            .shapes = fewShapes(),
                            .views = some,
                            .data = {"calm", "bits", "pairs"},
                            .typicalViews = {"dense,dense,dense"},
                            .typicalData = {"pairs"},
                            .oneIn = 16,
                            .oneInDense = 8,
                            .budget = {6, 10}},
                           // Sums and products of neighbours of 1 lie half-way between two numbers.
                           {.rows = {"add_f64", "sub_f64", "mul_f64"},
                            .shapes = {"1031"},
                            .views = {"dense,dense,dense"},
                            .data = {"pairs"},
                            .budget = {0, 3}},
                           inLoops(required,
                                   {"dense,dense,dense", "dense,broadcast,dense",
                                    "rows,strided,rows", "dense,dense,in0"},
                                   {"corners"}, {1, 4}),
                           witnesses({"sub_i32"}, {"15x17"}, {"dense,negative,dense"}, {"pairs"}),
                           witnesses({"sub_i32"}, {"scalar"}, {"dense,dense,dense"}, {"calm"})},
                          callOf, selection);
}

} // namespace candela::conformance::tiers::primitives
