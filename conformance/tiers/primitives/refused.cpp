#include "conformance/tiers/primitives/families.h"
#include "conformance/tiers/primitives/fills.h"
#include "core/support/text/scan.h"

namespace candela::conformance::tiers::primitives {
namespace {

/// "rescale_i32_9": a left shift by one more than 63 bits leave room for; "rescale_i32_i32_8_0": of
/// two operands.
CaseResult alignment(const std::vector<std::string>& words, Port& port) {
  const Elem a = *parseElem(words[1]);
  const bool two = words.size() == 5;
  TrialBuilder builder(words[0], CDL_KIND_RESCALE);
  const auto ofInts = [&](Elem elem) {
    builder.input(elem, {7}, "dense", numbers(elem, random::Data::calm));
  };
  for (const Elem elem : {a, Elem::i32_, Elem::i32_, Elem::i32_}) ofInts(elem);
  const auto shift = [&](uint16_t id, const std::string& word) {
    builder.attr(program::Attr::ofInt(id, *text::parseNumber<int64_t>(word)));
  };
  shift(CDL_ATTR_A_LEFT_SHIFT, words[two ? 3 : 2]);
  if (two) {
    ofInts(*parseElem(words[2]));
    ofInts(Elem::i32_);
    shift(CDL_ATTR_B_LEFT_SHIFT, words[4]);
  }
  return builder.output(Elem::i8_, {7}).tryRefusal(port);
}

/// "gather_f32": an index is clamped to one of no places.
CaseResult gatherOfNothing(const std::vector<std::string>& words, Port& port) {
  const Elem elem = *parseElem(words[1]);
  TrialBuilder builder(words[0], CDL_KIND_GATHER, CDL_GATHER_CLAMP);
  builder.input(elem, {2, 0, 3}, "dense", numbers(elem, random::Data::bits));
  builder.input(Elem::i32_, {4}, "dense", places(Elem::i32_, "outside", 3));
  return builder.output(elem, {2, 4, 3}).tryRefusal(port);
}

} // namespace

std::vector<Case> refusedCases(const Selection& selection) {
  Family family{"primitives:refused/", {}, {}, {}, {}};
  for (const char* row :
       {"rescale_i32_9", "rescale_u32_8", "rescale_i16_25", "rescale_i8_33", "rescale_u8_32",
        "rescale_i64_1", "rescale_i32_63", "rescale_i32_i32_8_0", "rescale_i32_i32_0_8",
        "rescale_i8_i8_32_0", "rescale_i8_i8_0_32", "gather_f32", "gather_i32", "gather_u8"})
    family.rows.emplace_back(row);
  family.run = [](const Choice& choice, Port& port) {
    const std::vector<std::string> words = text::split(choice.at("row"), '_');
    return words[0] == "rescale" ? alignment(words, port) : gatherOfNothing(words, port);
  };
  return expand(family, selection, {.quick = 4, .full = 14});
}

} // namespace candela::conformance::tiers::primitives
