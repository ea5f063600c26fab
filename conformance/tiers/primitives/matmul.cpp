#include <algorithm>
#include <iterator>

#include "conformance/judge/sum_bounds.h"
#include "conformance/tiers/primitives/families.h"
#include "conformance/tiers/primitives/fills.h"
#include "core/support/text/scan.h"

namespace candela::conformance::tiers::primitives {
namespace {

/// What stands behind the types in a row's name.
///   acc      y is added to
///   za       a zero point of a; zab: and of b; zan: and of each column of b
///   bias     an epilogue adds a number to each column; relu: and clamps at 0; relu8: and ends in
///            i8
struct Product {
  Elem a, b, y;
  std::string variant;
};

struct Types {
  Elem a, b, y;
};
constexpr Types kTypes[] = {
    {Elem::f32_, Elem::f32_, Elem::f32_},    {Elem::f16_, Elem::f16_, Elem::f16_},
    {Elem::bf16_, Elem::bf16_, Elem::bf16_}, {Elem::f64_, Elem::f64_, Elem::f64_},
    {Elem::i8_, Elem::i8_, Elem::i32_},      {Elem::u8_, Elem::i8_, Elem::i32_},
    {Elem::i8_, Elem::u8_, Elem::i32_},      {Elem::u8_, Elem::u8_, Elem::i32_},
    {Elem::i16_, Elem::i8_, Elem::i64_},     {Elem::i16_, Elem::i16_, Elem::i64_},
    {Elem::i32_, Elem::i32_, Elem::i32_},    {Elem::u32_, Elem::u32_, Elem::u32_},
    {Elem::i64_, Elem::i64_, Elem::i64_},    {Elem::u64_, Elem::u64_, Elem::u64_}};

std::string rowName(const Types& types, const char* variant) {
  std::string name = fmt::format("{}_{}", elemName(types.a), elemName(types.b));
  return *variant ? name + "_" + variant : name;
}

Product productOf(const std::string& row) {
  const std::vector<std::string> words = text::split(row, '_');
  const Elem a = *parseElem(words[0]), b = *parseElem(words[1]);
  for (const Types& types : kTypes)
    if (types.a == a && types.b == b) return {a, b, types.y, words.size() > 2 ? words[2] : ""};
  CDL_CHECK(false, "{} is no product", row);
  return {};
}

/// max(acc + bias, 0), as far as the variant goes.
program::Expr ending(const std::string& variant, Elem elem) {
  using Source = program::Operand::Source;
  const program::Operand zero{Source::constant, elem, 0};
  const program::Step add{CDL_KIND_BINARY,
                          CDL_BINARY_ADD,
                          elem,
                          false,
                          {{Source::acc, elem, 0}, {Source::view, elem, 2}},
                          0};
  const program::Step clamp{
      CDL_KIND_BINARY, CDL_BINARY_MAX, elem, false, {{Source::step, elem, 0}, zero}, 0};
  const program::Step narrow{
      CDL_KIND_CONVERT, CDL_CONVERT_RNE, Elem::i8_, true, {{Source::step, elem, 1}}, 0};
  if (variant == "bias") return {add};
  if (variant == "relu") return {add, clamp};
  return {add, clamp, narrow};
}

CaseResult runMatmul(const Choice& choice, Port& port) {
  const Product product = productOf(choice.at("row"));
  const Shape shape = shapeOf(choice.at("shape")); // BxMxKxN
  const int64_t batch = shape[0], m = shape[1], k = shape[2], n = shape[3];
  const std::string &view = choice.at("view"), &data = choice.at("data"),
                    &variant = product.variant;
  const bool isOutput = view.starts_with("to_"), isA = view.starts_with("a_"),
             isB = view.starts_with("b_");
  const bool isEnding = text::isOneOf(variant, "bias|relu|relu8");
  TrialBuilder builder(seedText(choice), CDL_KIND_MATMUL);
  const std::string factors = data == "halves" ? "whole" : data;
  builder.input(product.a, {batch, m, k}, isA ? view.substr(2) : "dense",
                terms(product.a, factors, {k, 1}));
  const TrialBuilder::Fill second = weights(product.b, factors, {k, n});
  if (view == "constant")
    builder.constant(product.b, {batch, k, n}, "dense", second);
  else
    builder.input(product.b, {batch, k, n}, isB ? view.substr(2) : "dense", second);
  if (variant.starts_with("za"))
    builder.input(product.a, {1}, "dense", numbers(product.a, random::Data::bits));
  if (variant == "zab" || variant == "zan")
    builder.input(product.b, {variant == "zab" ? 1 : n}, "dense",
                  numbers(product.b, random::Data::bits));
  if (isEnding)
    builder.input(product.y, {batch, m, n}, "columns", terms(product.y, data, {1, 1}))
        .expr(ending(variant, product.y));
  TrialBuilder::Fill before;
  if (variant == "acc") {
    before = isFloat(product.y) ? terms(product.y, data == "zeros" ? "calm" : data, {k, 1})
                                : numbers(product.y, random::Data::bits);
    builder.attr(program::Attr::ofInt(CDL_ATTR_ACCUMULATE, 1));
  }
  builder.output(variant == "relu8" ? Elem::i8_ : product.y, {batch, m, n},
                 isOutput ? view.substr(3) : "dense", before);
  if (isEnding) return builder.tryOut(port, judge::exactBounds);
  const bool many = isFloat(product.a) && hasRandomErrors(product.y, data) && view == "dense";
  return builder.tryOut(port, many ? judge::sumStatistics : judge::primitiveBounds);
}

bool fits(const Product& product, const std::string& data) {
  if (product.variant == "relu8" && data == "halves") return isFloat(product.a);
  if (text::isOneOf(product.variant, "bias|relu|relu8")) return text::isOneOf(data, "whole|bits");
  if (isInteger(product.a)) return true;
  if (data == "ties") return product.variant.empty() && product.y != Elem::f64_;
  if (data == "halves") return false;
  return true;
}

bool holdsMatmul(const Choice& choice) {
  const Product product = productOf(choice.at("row"));
  const std::string &shape = choice.at("shape"), &view = choice.at("view"),
                    &data = choice.at("data");
  if (!fits(product, data)) return false;
  if (view != "dense")
    return text::isOneOf(shape, "2x3x5x4|3x17x16x33") && text::isOneOf(data, "calm|bits|whole");
  if (data == "halves") return shape == "3x17x16x33";
  if (data == "ties")
    return shape == "1x129x2x3" || (product.y != Elem::f32_ && shape == "3x17x16x33");
  // Every tail once; what an accumulator loses, where sums are long.
  if (text::isOneOf(data, "calm|bits|whole") || shape == "2x3x5x4" || shape == "1x7x257x9")
    return true;
  return product.variant.empty() && text::isOneOf(shape, "3x17x16x33|1x4x1031x16|1x63x1x65");
}

} // namespace

std::vector<Case> matmulCases(const Selection& selection) {
  // Two families, as they have no data in common.
  Family floats{"primitives:matmul/", {}, {}, holdsMatmul, runMatmul}, integers = floats;
  for (const Types& types : kTypes) {
    std::vector<std::string>& rows = isFloat(types.a) ? floats.rows : integers.rows;
    const bool isSmall = isInteger(types.a) && elemBits(types.a) <= 16;
    for (const char* variant : {"", "acc"}) rows.push_back(rowName(types, variant));
    if (isSmall)
      for (const char* variant : {"za", "zab", "zan"}) rows.push_back(rowName(types, variant));
    if (types.a == Elem::f32_ || types.b == Elem::i8_)
      for (const char* variant : {"bias", "relu", "relu8"}) rows.push_back(rowName(types, variant));
  }
  const Axis shapes{"shape",
                    {"2x3x5x4", "1x1x1x1", "1x3x0x5", "0x2x3x4", "2x0x3x4", "1x7x257x9",
                     "1x15x16x17", "1x16x17x15", "3x17x16x33", "1x31x32x33", "1x33x31x32",
                     "1x32x33x31", "1x63x1x65", "1x65x63x64", "1x64x65x63", "1x4x1031x16",
                     "1x1x65x1", "1x129x2x3"}};
  const Axis views{"view",
                   {"dense", "a_broadcast", "b_broadcast", "a_offset", "b_rows", "a_rows",
                    "a_transposed", "b_transposed", "b_negative", "to_rows", "to_strided",
                    "constant"}};
  floats.axes = {shapes,
                 {"data",
                  {"calm", "zeros", "whole", "positive", "alternating", "large_small", "wide",
                   "specials", "ties", "halves"}},
                 views};
  integers.axes = {shapes, {"data", {"bits", "extremes"}}, views};
  floats.isTypical = integers.isTypical = [](const Choice& choice) {
    return choice.at("view") == "dense" &&
           text::isOneOf(choice.at("shape"), "1x7x257x9|3x17x16x33") &&
           !text::isOneOf(choice.at("data"), "zeros|specials|halves");
  };
  floats.tells = [](const Choice& choice) {
    const bool isTied = text::isOneOf(choice.at("data"), "ties|halves") &&
                        choice.at("view") == "dense" &&
                        text::isOneOf(choice.at("shape"), "1x129x2x3|3x17x16x33");
    return isTied ? "ties" : "";
  };
  std::vector<Case> cases = expand(floats, selection, {.quick = 0, .full = 40});
  std::ranges::move(expand(integers, selection, {.quick = 0, .full = 55}),
                    std::back_inserter(cases));
  return cases;
}

} // namespace candela::conformance::tiers::primitives
