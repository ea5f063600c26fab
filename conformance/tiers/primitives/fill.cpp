// FILL: the bits of one value in every element.
#include <cmath>
#include <limits>

#include "conformance/tiers/primitives/elementwise.h"
#include "conformance/tiers/primitives/families.h"
#include "core/support/float_bits.h"

namespace candela::conformance::tiers::primitives {
namespace {

std::string fillRow(const capabilities::RequiredRow& row) {
  return std::string(elemName(static_cast<Elem>(row.elems[0])));
}

uint64_t valueNamed(Elem elem, const std::string& name) {
  const uint64_t mask = elemMask(elem), sign = (mask >> 1) + 1;
  if (elem == Elem::bool_) return name == "zero" ? 0 : 1;
  if (name == "zero") return 0;
  if (name == "one") return isFloat(elem) ? fromReal(elem, 1) : 1;
  if (name == "ones") return mask;
  if (name == "sign") return sign; // -0, or the lowest
  if (name == "pattern") return 0x8123'4567'89AB'CDEF & mask;
  if (name == "denormal") return 5;
  const uint64_t highest =
      isFloat(elem) ? fromReal(elem, std::numeric_limits<double>::infinity()) : mask >> 1;
  // a NaN with a payload, or the limit
  return name == "payload" && isFloat(elem) ? (highest + 3) & mask : highest;
}

/// The value stands where others have their data.
Call callOf(const Choice& choice) {
  const Elem elem = *parseElem(choice.at("row"));
  return {CDL_KIND_FILL,
          0,
          {},
          elem,
          {},
          {program::Attr::ofBits(CDL_ATTR_VALUE, valueNamed(elem, choice.at("data")))}};
}

} // namespace

std::vector<Case> fillCases(const Selection& selection) {
  const std::vector<std::string> required = requiredTexts(CDL_KIND_FILL, fillRow);
  std::vector<std::string> all;
  for (int id = 1; id < kElemCount; ++id)
    if (!isPacked(static_cast<Elem>(id))) all.emplace_back(elemName(static_cast<Elem>(id)));
  const std::vector<std::string> views = {"dense",    "offset",  "rows",     "transposed",
                                          "negative", "strided", "reversed", "rotated"};
  const std::vector<std::string> values = {"zero", "one", "ones", "sign", "pattern", "payload"};
  std::vector<std::string> floats = required;
  std::erase_if(floats, [](const std::string& row) { return !isFloat(*parseElem(row)); });
  return elementwiseCases("primitives:fill/",
                          {{.rows = floats,
                            .shapes = {"15x17"},
                            .views = {"dense"},
                            .data = {"sign", "payload", "limit", "denormal"},
                            .budget = {1, 12}},
                           {.rows = required,
                            .shapes = manyShapes(),
                            .views = views,
                            .data = values,
                            .typicalViews = {"dense"},
                            .typicalData = {"pattern", "payload"},
                            .oneIn = 12,
                            .oneInDense = 4,
                            .budget = {0, 26}},
                           {.rows = without(all, required),
                            .shapes = fewShapes(),
                            .views = views,
                            .data = values,
                            .typicalViews = {"dense"},
                            .typicalData = {"pattern"},
                            .oneIn = 24,
                            .oneInDense = 12,
                            .budget = {1, 4}},
                           inLoops(required, {"dense", "rows", "negative"}, {"pattern"}, {1, 2})},
                          callOf, selection);
}

} // namespace candela::conformance::tiers::primitives
