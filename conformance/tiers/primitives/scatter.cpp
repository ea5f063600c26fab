#include "conformance/judge/element_rule.h"
#include "conformance/tiers/primitives/families.h"
#include "conformance/tiers/primitives/fills.h"
#include "conformance/tiers/primitives/indexed.h"

namespace candela::conformance::tiers::primitives {
namespace {

constexpr Elem kElems[] = {Elem::f32_, Elem::f16_, Elem::bf16_, Elem::f64_, Elem::i8_,
                           Elem::u8_,  Elem::i16_, Elem::u16_,  Elem::i32_, Elem::u32_,
                           Elem::i64_, Elem::u64_, Elem::bool_};

/// Sums and products of the two lie half-way between two numbers.
TrialBuilder::Fill oddAbove1(Elem elem) {
  return reals(elem, [elem](int64_t, random::Random& random) {
    return 1 + static_cast<double>(2 * random.below(30) + 1) * 2 * judge::unitOf(elem);
  });
}
TrialBuilder::Fill tiedBy(Elem elem) {
  return reals(elem, [](int64_t, random::Random&) { return 1.5; });
}

CaseResult runScatter(const Choice& choice, Port& port) {
  const Indexed at(choice);
  const auto& [row, elem, index, dims, count, view, isOutput] = at;
  const std::string& data = choice.at("data");
  TrialBuilder builder(seedText(choice), CDL_KIND_SCATTER, *parseFn(CDL_KIND_SCATTER, row[0]));
  builder.input(index, {count}, view == "strided_index" ? "strided" : "dense",
                places(index, choice.at("index"), dims[1]));
  builder.input(elem, {dims[0], count, dims[2]},
                isOutput || view == "strided_index" ? "dense" : view,
                data == "ties" ? tiedBy(elem) : numbers(elem, dataNamed(data)));
  const TrialBuilder::Fill before =
      data == "ties" ? oddAbove1(elem) : numbers(elem, dataNamed(data));
  return builder.output(elem, dims, at.outputView(), before).tryOut(port);
}

bool holdsScatter(const Choice& choice) {
  const std::string &shape = choice.at("shape"), &index = choice.at("index"),
                    &row = choice.at("row");
  if (choice.at("data") == "ties")
    return (row.starts_with("add_") || row.starts_with("mul_")) &&
           isFloat(*parseElem(row.substr(4, row.rfind('_') - 4))) && shape == "1x257x1k65" &&
           index == "once" && choice.at("view") == "dense";
  const bool isSmall = shape == "2x5x3k4" || shape == "3x7x4k31";
  if (choice.at("view") != "dense")
    return isSmall && index == "outside" && choice.at("data") == "calm";
  return choice.at("data") == "calm" || (isSmall && index == "equal");
}

} // namespace

std::vector<Case> scatterCases(const Selection& selection) {
  Family family{"primitives:scatter/", {}, {}, holdsScatter, runScatter};
  for (uint16_t fn = 0; cdl_fn_known(CDL_KIND_SCATTER, fn); ++fn) {
    const std::string_view name = fnName(CDL_KIND_SCATTER, fn);
    for (const Elem elem : kElems)
      family.rows.push_back(fmt::format("{}_{}_i32", name, elemName(elem)));
    for (const Elem elem : {Elem::f32_, Elem::i32_, Elem::u8_})
      family.rows.push_back(fmt::format("{}_{}_i64", name, elemName(elem)));
  }
  family.axes = {
      {"shape", {"2x5x3k4", "1x1x1k3", "3x7x4k31", "1x257x1k65", "2x0x3k4", "4x3x2k0"}},
      {"index", {"once", "equal", "outside", "limits"}},
      {"data", {"calm", "corners", "bits", "ties"}},
      {"view",
       {"dense", "rows", "transposed", "negative", "to_rows", "to_strided", "strided_index"}}};
  family.isTypical = [](const Choice& choice) {
    return choice.at("view") == "dense" && choice.at("shape") == "3x7x4k31";
  };
  family.tells = [](const Choice& choice) { return choice.at("data") == "ties" ? "ties" : ""; };
  return expand(family, selection, {.quick = 0, .full = 85});
}

} // namespace candela::conformance::tiers::primitives
