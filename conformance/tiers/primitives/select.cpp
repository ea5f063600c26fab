// SELECT: bits are moved, the payload of a NaN and the sign of a zero with them.
#include "conformance/tiers/primitives/elementwise.h"
#include "conformance/tiers/primitives/families.h"
#include "conformance/tiers/primitives/values.h"

namespace candela::conformance::tiers::primitives {
namespace {

std::string selectRow(const capabilities::RequiredRow& row) {
  return std::string(elemName(static_cast<Elem>(row.elems[1])));
}

Call callOf(const Choice& choice) {
  const Elem elem = *parseElem(choice.at("row"));
  const std::string& data = choice.at("data");
  const auto fill = [&](bool slow) {
    return data == "pairs" ? pairs(elem, slow) : dataOf(elem, data);
  };
  return {CDL_KIND_SELECT,
          0,
          {Elem::bool_, elem, elem},
          elem,
          {numbers(Elem::bool_, random::Data::bits), fill(true), fill(false)},
          {}};
}

} // namespace

std::vector<Case> selectCases(const Selection& selection) {
  const std::vector<std::string> required = requiredTexts(CDL_KIND_SELECT, selectRow);
  std::vector<std::string> all;
  for (const Elem elem : arithmeticElems()) all.emplace_back(elemName(elem));
  const std::vector<std::string> views = {"dense,dense,dense,dense",
                                          "broadcast,dense,dense,dense",
                                          "splat,dense,dense,dense",
                                          "broadcast_in,splat,broadcast,dense",
                                          "dense,splat,dense,dense",
                                          "dense,broadcast,broadcast_in,dense",
                                          "offset,offset,offset,offset",
                                          "rows,dense,rows,rows",
                                          "transposed,negative,strided,dense",
                                          "dense,transposed,rotated,reversed",
                                          "dense,overlap,dense,negative",
                                          "dense,dense,dense,strided",
                                          "dense,dense,same,dense",
                                          "dense,dense,shifted,dense",
                                          "dense,dense,dense,in1",
                                          "dense,dense,dense,in2",
                                          "broadcast,strided,dense,in1",
                                          "negative,dense,negative,in2",
                                          "dense,dense,dense,in0"};
  const std::vector<std::string> plain = {"dense,dense,dense,dense", "broadcast,dense,dense,dense",
                                          "dense,splat,dense,dense"};
  return elementwiseCases("primitives:select/",
                          {{.rows = required,
                            .shapes = manyShapes(),
                            .views = views,
                            .data = {"calm", "bits", "pairs"},
                            .typicalViews = plain,
                            .typicalData = {"pairs", "bits"},
                            .oneIn = 10,
                            .oneInDense = 2,
                            .budget = {0, 32}},
                           {.rows = without(all, required),
                            .shapes = fewShapes(),
                            .views = views,
                            .data = {"bits", "pairs"},
                            .typicalViews = {"dense,dense,dense,dense"},
                            .typicalData = {"bits"},
                            .oneIn = 8,
                            .oneInDense = 4,
                            .budget = {1, 3}},
                           inLoops(required,
                                   {"dense,dense,dense,dense", "broadcast,dense,dense,dense",
                                    "dense,rows,strided,rows"},
                                   {"bits"}, {1, 2}),
                           witnesses({"f32"}, {"15x17"}, {"dense,dense,broadcast,dense"}, {"bits"}),
                           witnesses({"f32"}, {"scalar"}, {"dense,dense,dense,dense"}, {"bits"})},
                          callOf, selection);
}

} // namespace candela::conformance::tiers::primitives
