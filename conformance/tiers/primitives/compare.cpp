// COMPARE: eq and lt of every type.
#include "conformance/tiers/primitives/elementwise.h"
#include "conformance/tiers/primitives/families.h"
#include "conformance/tiers/primitives/values.h"

namespace candela::conformance::tiers::primitives {
namespace {

constexpr uint16_t kKind = CDL_KIND_COMPARE;

Call callOf(const Choice& choice) {
  const auto [fn, elem] = fnAndElem(kKind, choice.at("row"));
  const std::string& data = choice.at("data");
  const auto fill = [&, type = elem](bool slow) {
    return data == "pairs" ? pairs(type, slow) : dataOf(type, data);
  };
  return {kKind, fn, {elem, elem}, Elem::bool_, {fill(true), fill(false)}, {}};
}

} // namespace

std::vector<Case> compareCases(const Selection& selection) {
  const std::vector<std::string> required =
      requiredTexts(kKind, [](const auto& row) { return rowText(row); });
  std::vector<std::string> all;
  for (const Elem elem : arithmeticElems())
    for (uint16_t fn = 0; cdl_fn_known(kKind, fn); ++fn) all.push_back(rowText(kKind, fn, elem));
  const std::vector<std::string> plain = {"dense,dense,dense", "dense,broadcast,dense"};
  return elementwiseCases(
      "primitives:compare/",
      {{.rows = required,
        .shapes = manyShapes(),
        .views = binaryViews(),
        .data = {"calm", "steps", "corners", "bits", "pairs"},
        .typicalViews = plain,
        .typicalData = {"pairs"},
        .oneIn = 48,
        .oneInDense = 3,
        .budget = {0, 46}},
       {.rows = without(all, required),
        .shapes = fewShapes(),
        .views = binaryViews(),
        .data = {"steps", "bits", "pairs"},
        .typicalViews = {"dense,dense,dense"},
        .typicalData = {"pairs"},
        .oneIn = 24,
        .oneInDense = 6,
        .budget = {2, 4}},
       inLoops(required, {"dense,dense,dense", "dense,broadcast,dense", "rows,strided,rows"},
               {"corners"}, {1, 3}),
       witnesses({"lt_i32"}, {"15x17"}, {"dense,negative,dense"}, {"pairs"}),
       witnesses({"lt_i32"}, {"scalar"}, {"dense,dense,dense"}, {"bits"})},
      callOf, selection);
}

} // namespace candela::conformance::tiers::primitives
