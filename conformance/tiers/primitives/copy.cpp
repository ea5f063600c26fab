// COPY: any affine view of any type that moves.
#include "conformance/tiers/primitives/elementwise.h"
#include "conformance/tiers/primitives/families.h"
#include "conformance/tiers/primitives/values.h"

namespace candela::conformance::tiers::primitives {
namespace {

std::string copyRow(const capabilities::RequiredRow& row) {
  return std::string(elemName(static_cast<Elem>(row.elems[0])));
}

Call callOf(const Choice& choice) {
  const Elem elem = *parseElem(choice.at("row"));
  return {CDL_KIND_COPY, 0, {elem}, elem, {dataOf(elem, choice.at("data"))}, {}};
}

} // namespace

std::vector<Case> copyCases(const Selection& selection) {
  const std::vector<std::string> required = requiredTexts(CDL_KIND_COPY, copyRow);
  std::vector<std::string> all;
  for (int id = 1; id < kElemCount; ++id) all.emplace_back(elemName(static_cast<Elem>(id)));
  const std::vector<std::string> views = {
      "dense,dense",        "offset,dense",       "dense,offset",    "broadcast,dense",
      "broadcast_in,dense", "splat,dense",        "rows,dense",      "dense,rows",
      "transposed,dense",   "dense,transposed",   "negative,dense",  "dense,negative",
      "strided,dense",      "dense,strided",      "overlap,dense",   "overlap,rows",
      "reversed,rotated",   "rotated,reversed",   "rotated,dense",   "dense,rotated",
      "strided,strided",    "transposed,strided", "splat,strided",   "broadcast,transposed",
      "offset,rows",        "dense,beside",       "strided,between", "transposed,beside",
      "dense,reversed",     "negative,negative"};
  return elementwiseCases(
      "primitives:copy/",
      {{.rows = required,
        .shapes = manyShapes(),
        .views = views,
        .data = {"bits", "corners"},
        .typicalViews = {"dense,dense", "rotated,dense", "transposed,strided", "overlap,rows"},
        .oneIn = 7,
        .oneInDense = 2,
        .budget = {0, 42}},
       {.rows = without(all, required),
        .shapes = fewShapes(),
        .views = views,
        .data = {"bits"},
        .typicalViews = {"dense,dense"},
        .oneIn = 8,
        .oneInDense = 2,
        .budget = {2, 5}},
       {.rows = requiredTexts(CDL_KIND_COPY, copyRow, ProfilesOf::beside),
        .shapes = fewShapes(),
        .views = views,
        .data = {"bits", "corners"},
        .typicalViews = {"dense,dense", "transposed,strided"},
        .oneIn = 7,
        .oneInDense = 2,
        .budget = {0, 4}},
       inLoops(required, {"dense,dense", "broadcast,dense", "transposed,rows", "strided,between"},
               {"bits"}, {1, 3}),
       witnesses({"f32"}, {"scalar"}, {"dense,dense"}, {"bits"})},
      callOf, selection);
}

} // namespace candela::conformance::tiers::primitives
