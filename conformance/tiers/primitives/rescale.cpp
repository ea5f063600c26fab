#include <algorithm>

#include "conformance/tiers/primitives/families.h"
#include "conformance/tiers/primitives/fills.h"
#include "core/support/text/scan.h"

namespace candela::conformance::tiers::primitives {
namespace {

/// Bits of magnitude that an operand may use. Sums of products stay below 2^39.
int magnitudeBits(Elem elem) { return elem == Elem::i64_ ? 39 : elemBits(elem) - isSigned(elem); }

/// Values of an operand.
TrialBuilder::Fill values(Elem elem, const std::string& data) {
  const __int128 most = (static_cast<__int128>(1) << magnitudeBits(elem)) - 1,
                 least = isSigned(elem) ? -most : 0;
  return integers(elem, [=](int64_t i, random::Random& random) -> __int128 {
    const __int128 corners[] = {
        least, least + (isSigned(elem) ? 1 : 0), 0, 1, 2, most - 1, most, -isSigned(elem)};
    if (data == "extremes") return random.of(corners);
    // Small ones, most of which lie half-way between two results.
    if (data == "ties") return isSigned(elem) ? i % 101 - 50 : i % 101;
    return least + static_cast<__int128>(random.bits() % static_cast<uint64_t>(most - least + 1));
  });
}

TrialBuilder::Fill multipliers(const std::string& data) {
  return integers(Elem::i32_, [=](int64_t, random::Random& random) -> __int128 {
    const int64_t least = 1 << 23, most = (1 << 24) - 1;
    if (data == "ties") return least;
    if (data == "extremes") return random.oneIn(2) ? least : most;
    return random.between(least, most);
  });
}

/// Shifts after which about as many bits are left as the result has; `bits`: of the sum before,
/// less the left shift.
TrialBuilder::Fill shifts(const std::string& data, int bits, int left, Elem y) {
  return integers(Elem::i32_, [=](int64_t i, random::Random& random) -> __int128 {
    const int64_t fitting = bits + left - magnitudeBits(y);
    const int64_t all[] = {0, 1, 24, 31, 32, 33, 62, 63};
    if (data == "extremes") return random.of(all);
    if (data == "shifts") return (i * 5 + random.below(5)) % 64;
    if (data == "ties") return left + 24 + i % 3;
    return std::clamp<int64_t>(fitting + random.between(-2, 3), 0, 63);
  });
}

TrialBuilder::Fill zeroPoints(const std::string& data, Elem y) {
  return integers(
      Elem::i32_, [=, range = integerRange(y)](int64_t, random::Random& random) -> __int128 {
        const __int128 corners[] = {0, std::max<__int128>(range.lowest, -0x7fffffff - 1),
                                    std::min<__int128>(range.highest, 0x7fffffff), -0x7fffffff - 1,
                                    0x7fffffff};
        return data == "extremes" ? random.of(corners)
                                  : random.between(isSigned(y) ? -100 : 0, 100);
      });
}

/// How multipliers, shifts and zero points lie, by the scale that a case has.
const char* formOf(const std::string& scale) {
  if (scale == "tensor") return "splat";
  return scale == "channel" ? "channel" : "dense";
}

/// "i32_i8": one operand; "i8_u8_i8": two.
CaseResult runRescale(const Choice& choice, Port& port) {
  const std::vector<std::string> row = text::split(choice.at("row"), '_');
  const Elem a = *parseElem(row[0]), b = *parseElem(row[row.size() / 2]),
             y = *parseElem(row.back());
  const bool two = row.size() == 3;
  const Shape dims = shapeOf(choice.at("shape"));
  const std::string &data = choice.at("data"), &limits = choice.at("limits"),
                    &view = choice.at("view");
  const bool isOutput = view.starts_with("to_");
  const char* form = formOf(choice.at("scale"));
  const std::string operand = isOutput ? "dense" : view;
  int bits = magnitudeBits(a) + 24;
  if (two) bits = std::max(bits, magnitudeBits(b) + 24) + 1;
  const int room = 63 - bits;
  const bool left = limits == "left";
  const int leftA = left ? std::min(room, 8) : 0;
  const int leftB = left ? std::min(room, 3) : 0;
  TrialBuilder builder(seedText(choice), CDL_KIND_RESCALE);
  builder.input(a, dims, operand, values(a, data)).input(Elem::i32_, dims, form, multipliers(data));
  builder.input(Elem::i32_, dims, form, shifts(data, bits, leftA, y));
  builder.input(Elem::i32_, dims, form, zeroPoints(data, y));
  if (two)
    builder.input(b, dims, operand, values(b, data))
        .input(Elem::i32_, dims, form, multipliers(data));
  if (left) {
    builder.attr(program::Attr::ofInt(CDL_ATTR_A_LEFT_SHIFT, leftA));
    if (two) builder.attr(program::Attr::ofInt(CDL_ATTR_B_LEFT_SHIFT, leftB));
  }
  if (limits == "clamp") {
    const IntegerRange range = integerRange(y);
    builder.attr(program::Attr::ofInt(CDL_ATTR_CLAMP_MIN, isSigned(y) ? -17 : 3));
    builder.attr(program::Attr::ofInt(
        CDL_ATTR_CLAMP_MAX, static_cast<int64_t>(std::min<__int128>(range.highest, 101))));
  }
  return builder.output(y, dims, isOutput ? view.substr(3) : "dense").tryOut(port);
}

bool holdsRescale(const Choice& choice) {
  const std::string &shape = choice.at("shape"), &data = choice.at("data");
  const bool isUsual = shape == "3x37x5";
  if (choice.at("view") != "dense")
    return isUsual && data == "spread" && choice.at("limits") == "none" &&
           choice.at("scale") != "element";
  if (choice.at("limits") != "none") return isUsual && choice.at("scale") != "element";
  return isUsual || (data == "spread" && choice.at("scale") != "element");
}

} // namespace

std::vector<Case> rescaleCases(const Selection& selection) {
  Family family{"primitives:rescale/", {}, {}, holdsRescale, runRescale};
  for (const char* a : {"i8", "u8", "i16", "u16", "i32", "u32", "i64"})
    for (const char* y : {"i8", "u8", "i16", "u16", "i32"})
      family.rows.push_back(fmt::format("{}_{}", a, y));
  for (const char* row : {"i8_i8_i8", "u8_u8_u8", "i8_u8_i8", "u8_i8_i32", "i16_i16_i16",
                          "i32_i32_i8", "i32_i8_u8", "i32_i32_i32"})
    family.rows.emplace_back(row);
  family.axes = {{"shape", {"3x37x5", "1", "scalar", "0x3", "7x1031"}},
                 {"scale", {"tensor", "channel", "element"}},
                 {"data", {"spread", "ties", "extremes", "shifts"}},
                 {"limits", {"none", "left", "clamp"}},
                 {"view", {"dense", "rows", "transposed", "negative", "to_rows", "to_strided"}}};
  family.isTypical = [](const Choice& choice) {
    return choice.at("view") == "dense" && choice.at("shape") == "3x37x5" &&
           choice.at("scale") != "element";
  };
  family.tells = [typical = family.isTypical](const Choice& choice) {
    // With one shift for all the sum of two operands, which are alike, would be even.
    const bool isTied = typical(choice) && choice.at("data") == "ties" &&
                        choice.at("limits") == "none" && choice.at("scale") == "channel";
    return isTied ? "ties" : "";
  };
  return expand(family, selection, {.quick = 0, .full = 52});
}

} // namespace candela::conformance::tiers::primitives
