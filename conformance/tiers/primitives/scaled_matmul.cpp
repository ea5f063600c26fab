// SCALED_MATMUL, which is no primitive: the products that profiles of narrow types require.
#include "conformance/judge/scaled_bounds.h"
#include "conformance/tiers/primitives/elementwise.h"
#include "conformance/tiers/primitives/families.h"
#include "conformance/tiers/primitives/fills.h"
#include "conformance/tiers/scaled_fills.h"
#include "core/support/text/scan.h"

namespace candela::conformance::tiers::primitives {
namespace {

/// The function, then the types of the operands and of the result.
std::string productRow(const capabilities::RequiredRow& row) {
  std::string name(fnName(row.kind, row.fn));
  for (size_t i = 0; i < row.elemCount; ++i)
    name += fmt::format("_{}", elemName(static_cast<Elem>(row.elems[i])));
  return name;
}

struct ProductTypes {
  uint16_t fn = 0;
  std::vector<Elem> operands; ///< a, w, w_scale, w_zero, a_scale, as far as there are some
  Elem result = Elem::none;

  explicit ProductTypes(const std::string& row) {
    std::vector<std::string> words = text::split(row, '_');
    fn = *parseFn(CDL_KIND_SCALED_MATMUL, words[0]);
    words.erase(words.begin());
    for (const std::string& word : words) operands.push_back(*parseElem(word));
    result = operands.back();
    operands.pop_back();
  }
  bool hasZero() const { return operands.size() > 3; }
  bool hasScaleOfA() const { return operands.size() > 4; }
};

TrialBuilder::Fill nothing(Elem elem) {
  return reals(elem, [](int64_t, random::Random&) { return 0.0; });
}

CaseResult runScaledMatmul(const Choice& choice, Port& port) {
  const ProductTypes types(choice.at("row"));
  const ProductText e(choice.at("shape"));
  const std::string& spread = choice.at("scales");
  const bool isConstant = choice.at("weights") == "constant";
  TrialBuilder builder(seedText(choice), CDL_KIND_SCALED_MATMUL, types.fn);
  const auto ofWeights = [&](Elem elem, Shape dims, const std::string& form,
                             const TrialBuilder::Fill& fill) {
    if (isConstant)
      builder.constant(elem, std::move(dims), form, fill);
    else
      builder.input(elem, std::move(dims), form, fill);
  };
  const auto factors = [](Elem elem) {
    return numbers(elem, isInteger(elem) ? random::Data::bits : random::Data::calm);
  };
  builder.input(types.operands[0], {e.rows, e.depth}, "dense", factors(types.operands[0]));
  ofWeights(types.operands[1], {e.columns, e.blocks(), e.block}, "dense",
            factors(types.operands[1]));
  ofWeights(types.operands[2], {e.columns, e.blocks()}, spread, blockScales(types.operands[2]));
  const Shape grid{e.columns, e.blocks()};
  if (types.hasScaleOfA()) // behind zero points that are none
    builder.constant(types.operands[3], grid, "splat", nothing(types.operands[3]));
  else if (types.hasZero())
    ofWeights(types.operands[3], grid, spread, blockZeros(types.operands[3]));
  if (types.hasScaleOfA())
    builder.input(types.operands[4], {e.rows, e.blocks()}, spread, blockScales(types.operands[4]));
  builder.output(types.result, {e.rows, e.columns});
  return builder.tryOut(port);
}

bool isTypicalProduct(const Choice& choice) {
  return choice.at("weights") == "constant" && choice.at("scales") == "dense" &&
         text::isOneOf(choice.at("shape"), "3x64x17b32|5x40x8b16");
}

} // namespace

std::vector<Case> scaledMatmulCases(const Selection& selection) {
  const Family family{
      "primitives:scaled_matmul/",
      requiredTexts(CDL_KIND_SCALED_MATMUL, productRow, ProfilesOf::beside),
      {{"shape", {"3x64x17b32", "5x40x8b16", "1x256x40b32", "4x96x33b128", "0x16x4b8"}},
       {"scales", {"dense", "broadcast_in", "broadcast", "splat"}},
       {"weights", {"constant", "input"}}},
      nullptr,
      runScaledMatmul,
      isTypicalProduct};
  return expand(family, selection, {.quick = 0, .full = 72});
}

} // namespace candela::conformance::tiers::primitives
