#include "conformance/tiers/primitives/families.h"
#include "conformance/tiers/primitives/fills.h"
#include "core/support/text/scan.h"

namespace candela::conformance::tiers::primitives {
namespace {

/// Every value of the type, in order or not: an odd factor keeps them all.
TrialBuilder::Fill everyValue(Elem elem, bool inOrder) {
  return integers(elem, [=](int64_t i, random::Random&) -> __int128 {
    return integerRange(elem).lowest + i * (inOrder ? 1 : 37);
  });
}

CaseResult runTable(const Choice& choice, Port& port) {
  const std::vector<std::string> row = text::split(choice.at("row"), '_');
  const Elem x = *parseElem(row[0]), y = *parseElem(row[1]);
  const std::string& view = choice.at("view");
  const bool isWide = x == Elem::i16_, isOutput = view.starts_with("to_");
  const Shape dims = isWide ? Shape{64, 1024} : Shape{4, 64};
  TrialBuilder builder(seedText(choice), CDL_KIND_TABLE);
  builder.input(x, dims, isOutput || view.ends_with("table") ? "dense" : view,
                everyValue(x, choice.at("order") == "ascending"));
  const TrialBuilder::Fill entries = numbers(y, dataNamed(choice.at("entries")));
  const Shape places{isWide ? 513 : 256};
  if (view == "constant_table")
    builder.constant(y, places, "dense", entries);
  else
    builder.input(y, places, view == "reversed_table" ? "negative" : "dense", entries);
  return builder.output(y, dims, isOutput ? view.substr(3) : "dense").tryOut(port);
}

} // namespace

std::vector<Case> tableCases(const Selection& selection) {
  Family family{"primitives:table/", {"i8_i8", "u8_u8", "i16_i16"}, {}, {}, runTable};
  for (const char* x : {"i8", "u8"})
    for (const char* y : {"f32", "f16", "bf16", "f64", "i8", "u8", "i16", "u16", "i32", "u32",
                          "i64", "u64", "bool"})
      if (std::string_view(x) != y) family.rows.push_back(fmt::format("{}_{}", x, y));
  family.axes = {
      {"entries", {"bits", "corners"}},
      {"order", {"ascending", "mixed"}},
      {"view", {"dense", "rows", "transposed", "to_rows", "constant_table", "reversed_table"}}};
  family.holds = [](const Choice& choice) {
    return choice.at("view") == "dense" || choice.at("entries") == "bits";
  };
  family.isTypical = [](const Choice& choice) { return choice.at("view") == "dense"; };
  return expand(family, selection, {.quick = 0, .full = 30});
}

} // namespace candela::conformance::tiers::primitives
