#include <algorithm>
#include <iterator>

#include "conformance/judge/sum_bounds.h"
#include "conformance/tiers/primitives/families.h"
#include "conformance/tiers/primitives/fills.h"
#include "core/support/text/scan.h"

namespace candela::conformance::tiers::primitives {
namespace {

constexpr Elem kElems[] = {Elem::f32_, Elem::f16_, Elem::bf16_, Elem::f64_, Elem::i8_,
                           Elem::u8_,  Elem::i16_, Elem::u16_,  Elem::i32_, Elem::u32_,
                           Elem::i64_, Elem::u64_, Elem::bool_};
constexpr const char* kLong = "1x65536x1";

/// acc * 2, which is exact, or clamped at 0.
program::Expr ending(std::string_view name, Elem elem) {
  using Source = program::Operand::Source;
  const program::Operand acc{Source::acc, elem, 0}, zero{Source::constant, elem, 0};
  if (name == "doubled") return {{CDL_KIND_BINARY, CDL_BINARY_ADD, elem, false, {acc, acc}, 0}};
  return {{CDL_KIND_BINARY, CDL_BINARY_MAX, elem, false, {acc, zero}, 0}};
}

CaseResult runReduce(const Choice& choice, Port& port) {
  const std::vector<std::string> row = text::split(choice.at("row"), '_');
  const Elem elem = *parseElem(row[1]);
  const Shape dims = shapeOf(choice.at("shape"));
  const std::string &view = choice.at("view"), &data = choice.at("data");
  const bool isOutput = view.starts_with("to_");
  const uint16_t fn = *parseFn(CDL_KIND_REDUCE, row[0]);
  TrialBuilder builder(seedText(choice), CDL_KIND_REDUCE, fn);
  builder.input(elem, dims, isOutput ? "dense" : view, terms(elem, data, {dims[1], dims[2]}));
  builder.output(elem, {dims[0], dims[2]}, isOutput ? view.substr(3) : "dense");
  if (row.size() > 2) return builder.expr(ending(row[2], elem)).tryOut(port, judge::exactBounds);
  const bool many =
      fn == CDL_REDUCE_SUM && isFloat(elem) && hasRandomErrors(elem, data) && view == "dense";
  return builder.tryOut(port, many ? judge::sumStatistics : judge::primitiveBounds);
}

bool fits(const std::vector<std::string>& row, const std::string& data) {
  if (!isFloat(*parseElem(row[1]))) return text::isOneOf(data, "calm|bits|extremes");
  if (row.size() > 2) return data == "whole";
  if (row[0] == "prod") return text::isOneOf(data, "near_one|powers|specials|zeros");
  if (row[0] != "sum") return text::isOneOf(data, "calm|wide|extremes|specials");
  return data == "ties"
             ? row[1] != "f64"
             : text::isOneOf(data,
                             "calm|zeros|whole|positive|alternating|large_small|wide|specials");
}

bool holdsReduce(const Choice& choice) {
  const std::vector<std::string> row = text::split(choice.at("row"), '_');
  const std::string &shape = choice.at("shape"), &view = choice.at("view"),
                    &data = choice.at("data");
  if (!fits(row, data)) return false;
  if (view != "dense")
    return text::isOneOf(shape, "2x7x3|5x33x17") && text::isOneOf(data, "calm|near_one|whole");
  if (shape == kLong)
    return row[0] == "sum" && text::isOneOf(data, "bits|positive|large_small|whole");
  if (data == "ties")
    return shape == "17x2x31" || (row[1] != "f32" && text::isOneOf(shape, "2x7x3|5x33x17"));
  // leaves the range in some order
  if (data == "specials" && row[0] == "prod") return shape != "2x1031x1";
  return true;
}

} // namespace

std::vector<Case> reduceCases(const Selection& selection) {
  // Two families, as they have no data in common.
  Family floats{"primitives:reduce/", {}, {}, holdsReduce, runReduce}, integers = floats;
  for (uint16_t fn = 0; cdl_fn_known(CDL_KIND_REDUCE, fn); ++fn)
    for (const Elem elem : kElems)
      (isFloat(elem) ? floats : integers)
          .rows.push_back(fmt::format("{}_{}", fnName(CDL_KIND_REDUCE, fn), elemName(elem)));
  for (const char* row : {"sum_f32_doubled", "sum_f32_clamped", "max_f32_doubled"})
    floats.rows.emplace_back(row);
  integers.rows.emplace_back("sum_i32_clamped");
  const Axis shapes{"shape",
                    {"2x7x3", "1x1x1", "3x0x5", "1x257x1", "5x33x17", "64x16x1", "2x1031x1",
                     "17x2x31", "2x5x0", kLong}};
  const Axis views{"view",
                   {"dense", "offset", "broadcast", "rows", "transposed", "negative", "overlap",
                    "to_rows", "to_strided"}};
  floats.axes = {shapes,
                 {"data",
                  {"calm", "zeros", "whole", "positive", "alternating", "large_small", "wide",
                   "specials", "ties", "near_one", "powers", "extremes"}},
                 views};
  integers.axes = {shapes, {"data", {"calm", "bits", "extremes"}}, views};
  floats.isTypical = integers.isTypical = [](const Choice& choice) {
    return choice.at("view") == "dense" && text::isOneOf(choice.at("shape"), "5x33x17|64x16x1") &&
           !text::isOneOf(choice.at("data"), "zeros|specials|extremes");
  };
  floats.tells = [](const Choice& choice) {
    const bool isTied = choice.at("data") == "ties" && choice.at("view") == "dense" &&
                        choice.at("shape") == "17x2x31";
    return isTied ? "ties" : "";
  };
  std::vector<Case> cases = expand(floats, selection, {.quick = 0, .full = 36});
  std::ranges::move(expand(integers, selection, {.quick = 0, .full = 40}),
                    std::back_inserter(cases));
  return cases;
}

} // namespace candela::conformance::tiers::primitives
