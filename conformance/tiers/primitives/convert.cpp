// CONVERT: every pair of types, each rounding to integers, wrapping and saturating.
#include "conformance/tiers/primitives/elementwise.h"
#include "conformance/tiers/primitives/families.h"
#include "conformance/tiers/primitives/values.h"

namespace candela::conformance::tiers::primitives {
namespace {

constexpr uint16_t kKind = CDL_KIND_CONVERT;

std::string rowText(Elem from, Elem to) {
  return fmt::format("{}_{}", elemName(from), elemName(to));
}

/// Required pairs that are rounded in this way.
std::vector<std::string> requiredPairs(uint16_t fn, ProfilesOf profiles = ProfilesOf::alone) {
  const auto text = [fn](const capabilities::RequiredRow& row) {
    const Elem from = static_cast<Elem>(row.elems[0]);
    return row.fn == fn ? rowText(from, static_cast<Elem>(row.elems[1])) : "";
  };
  std::vector<std::string> rows = requiredTexts(kKind, text, profiles);
  std::erase(rows, "");
  return rows;
}

Call callOf(const Choice& choice) {
  const std::string& row = choice.at("row");
  const size_t split = row.find('_');
  const Elem from = *parseElem(row.substr(0, split)), to = *parseElem(row.substr(split + 1));
  const std::string& data = choice.at("data");
  return {kKind,
          *parseFn(kKind, choice.at("fn")),
          {from},
          to,
          {data == "near" ? near(from, to) : dataOf(from, data)},
          {program::Attr::ofInt(CDL_ATTR_SATURATE, choice.at("sat") == "1")}};
}

std::vector<Axis> roundings(std::string_view fn) {
  return {{"fn", {std::string(fn)}}, {"sat", {"0", "1"}}};
}

/// Binary digits that every number of the type may have.
int digitsOf(Elem elem) {
  if (elem == Elem::bool_) return 1;
  if (!isFloat(elem)) return elemBits(elem) - (isSigned(elem) ? 1 : 0);
  switch (elem) {
  case Elem::f64_: return 53;
  case Elem::f32_: return 24;
  case Elem::f16_: return 11;
  case Elem::bf16_: return 8;
  default: return 4; // of storage: at most
  }
}

/// The pairs that mean something with this rounding; "" with any.
struct Pairs {
  std::vector<std::string> arithmetic, storage, bytes, halves, wide;
};
Pairs allPairs(bool toIntegers) {
  Pairs all;
  for (int f = 1; f < kElemCount; ++f)
    for (int t = 1; t < kElemCount; ++t) {
      const Elem from = static_cast<Elem>(f), to = static_cast<Elem>(t);
      if (toIntegers && !(isFloat(from) && isInteger(to))) continue;
      const std::string row = rowText(from, to);
      const bool stored = isStorageOnly(from) || isStorageOnly(to);
      // Storage comes of and becomes what can be computed with; one integer type stands for all.
      if (stored && !(isFloat(from) && isFloat(to)) && from != Elem::i32_ && to != Elem::i32_)
        continue;
      if (isStorageOnly(from) && isStorageOnly(to)) continue;
      (stored ? all.storage : all.arithmetic).push_back(row);
      if (elemBits(from) == 8 && from != Elem::bool_) all.bytes.push_back(row);
      if (elemBits(from) == 16) all.halves.push_back(row);
      if (elemBits(from) > 16) all.wide.push_back(row);
    }
  return all;
}

/// Whether some number of the one type lies half-way between two of the other.
bool hasTies(uint16_t fn, Elem from, Elem to) {
  if (fn == CDL_CONVERT_RNE) return isFloat(from) && isInteger(to);
  return isFloat(to) && digitsOf(from) > digitsOf(to);
}

/// The pairs that round to nearest, each on numbers next to ties: whoever claims one shows how it
/// breaks them.
Part tiesOf(const Pairs& all, uint16_t fn) {
  std::vector<std::string> rows;
  for (const auto* pairs : {&all.arithmetic, &all.storage})
    for (const std::string& row : *pairs) {
      const size_t split = row.find('_');
      const Elem from = *parseElem(row.substr(0, split)), to = *parseElem(row.substr(split + 1));
      if (hasTies(fn, from, to)) rows.push_back(row);
    }
  return {.rows = rows,
          .shapes = {"1031"},
          .views = {"dense,dense"},
          .data = {"near"},
          .before = {{"fn", {std::string(program::fnName(kKind, fn))}}, {"sat", {"1"}}},
          .budget = {0, static_cast<unsigned>(rows.size())}};
}

/// Pairs that profiles beside others require.
Part ofNarrowProfiles(uint16_t fn) {
  return {.rows = requiredPairs(fn, ProfilesOf::beside),
          .shapes = {"1031", "8x64", "15x17", "0x4"},
          .views = {"dense,dense"},
          .data = {"near", "calm", "corners"},
          .before = roundings(program::fnName(kKind, fn)),
          .typicalData = {"near"},
          .budget = {0, 16}};
}

/// What is asked about one way to round.
std::vector<Part> partsOf(uint16_t fn) {
  const std::vector<std::string> dense = {"dense,dense"};
  const std::string_view name = program::fnName(kKind, fn);
  std::vector<Part> parts;
  const std::vector<std::string> required = requiredPairs(fn);
  const bool isPlain = fn == CDL_CONVERT_TRUNC;
  const auto everyNumber = [&](const std::vector<std::string>& rows, Elem like) {
    parts.push_back({.rows = rows,
                     .shapes = {everyShape(like)},
                     .views = dense,
                     .data = {"every"},
                     .before = roundings(name),
                     .budget = {1, isPlain ? 2u : 1u}});
  };
  const Budget arithmetic = isPlain ? Budget{4, 8} : Budget{1, 3};
  const Budget storage = isPlain ? Budget{2, 4} : Budget{1, 1};
  const Pairs all = allPairs(!isPlain);
  parts.push_back({.rows = required,
                   .shapes = manyShapes(),
                   .views = unaryViews(),
                   .data = {"calm", "corners", "bits", "near"},
                   .before = roundings(name),
                   .typicalViews = dense,
                   .typicalData = {"near"},
                   .oneIn = 40,
                   .oneInDense = 6,
                   .budget = {0, isPlain ? 48u : 6u}});
  parts.push_back(
      {.rows = without(all.arithmetic, required),
       .shapes = {"1031", "2x3x5"},
       .views = {"dense,dense", "transposed,dense", "reversed,rotated", "strided,in0", "dense,in0"},
       .data = {"calm", "near"},
       .before = roundings(name),
       .typicalViews = dense,
       .typicalData = {"near"},
       .oneIn = 32,
       .oneInDense = 4,
       .budget = arithmetic});
  parts.push_back({.rows = all.storage,
                   .shapes = {"8x64", "2x2x3x1x5"},
                   .views = {"dense,dense", "broadcast,dense", "reversed,rotated"},
                   .data = {"calm", "near"},
                   .before = roundings(name),
                   .typicalViews = dense,
                   .typicalData = {"near"},
                   .oneIn = 16,
                   .oneInDense = 4,
                   .budget = storage});
  if (isPlain) parts.push_back(ofNarrowProfiles(fn));
  if (fn != CDL_CONVERT_FLOOR) parts.push_back(tiesOf(all, fn));
  everyNumber(all.bytes, Elem::u8_);
  everyNumber(all.halves, Elem::f16_);
  everyNumber(all.wide, Elem::f32_);
  parts.push_back(
      inLoops(required, {"dense,dense", "rows,strided", "negative,rows"}, {"near"}, {1, 1}));
  for (const Axis& axis : roundings(name)) parts.back().before.push_back(axis);
  return parts;
}

} // namespace

std::vector<Case> convertCases(const Selection& selection) {
  std::vector<Part> parts;
  for (uint16_t fn = 0; cdl_fn_known(kKind, fn); ++fn)
    for (Part& part : partsOf(fn)) parts.push_back(std::move(part));
  parts.push_back(witnesses({"f32_i32"}, {"scalar"}, {"dense,dense"}, {"calm"}));
  parts.back().before = {{"fn", {"rne"}}, {"sat", {"1"}}};
  return elementwiseCases("primitives:convert/", parts, callOf, selection);
}

} // namespace candela::conformance::tiers::primitives
