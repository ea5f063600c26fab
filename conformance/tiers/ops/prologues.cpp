// Prologues of REDUCE. In other words: step by step, then the reduction.
#include <algorithm>

#include "conformance/tiers/ops/families.h"
#include "conformance/tiers/ops/ties.h"

namespace candela::conformance::tiers::ops {
namespace {

using graph::OpKind;

/// What a REDUCE computes of its operands before it adds them up, and what it makes of the sum.
struct Prologue {
  const char* name;
  const char* text;
  const char* operands; ///< types
  const char* fn;
  const char* epilogue = "";
};
constexpr Prologue kPrologues[] = {
    {"squares", "mul(v0, v0)", "f32", "sum"},
    {"halves", "abs(v0)", "f16", "max"},
    {"norm", "mul(v0, v0)", "f32", "sum", "sqrt(add(mul(acc, 0.125), 0.5))"},
    {"exponentials", "exp(sub(v0, v1))", "f32_f32", "sum", "log(acc)"},
    {"distance", "t0 = sub(v0, v1); mul(t0, t0)", "f32_f32", "sum"},
    {"farthest", "abs(sub(v0, v1))", "f32_f32", "max"},
    {"least", "add(mul(v0, v1), v2)", "f32_f32_f32", "min"},
    {"dequantize", "mul(convert_f32(sub(convert_i32(v0), 3)), v1)", "i8_f32", "sum",
     "mul(acc, 0.0625)"},
    {"dot", "sub(mul(v0, v1), 3)", "i32_i32", "sum"},
    {"wide", "mul(convert_i32(v0), convert_i32(v1))", "u8_i8", "sum", "add(acc, 7)"},
    {"bytes", "max(v0, v1)", "u8_u8", "min"},
    {"count", "convert_i32(lt(v0, v1))", "f32_f32", "sum"},
    {"product", "select(lt(v0, 2), 1, v0)", "i32", "prod"},
    {"rounded", "convert_i32_rne_saturate(mul(v0, 0.5))", "f32", "sum"},
    {"rescaled", "rescale_i32(v0, v1, v2, v3)", "i32_i32_i32_i32", "sum"},
};

/// Operands of a prologue that rounds; none of others.
std::vector<TrialBuilder::Fill> tiedOperands(std::string_view name) {
  if (name == "rounded") return {wholeNumbers(Elem::f32_, 50)};
  if (name == "rescaled")
    return {wholeNumbers(Elem::i32_, 50), halfMultipliers(), halfShifts(),
            wholeNumbers(Elem::i32_, 9)};
  return {};
}
const Prologue& prologueOf(const std::string& row) {
  return *std::ranges::find_if(kPrologues,
                               [&](const Prologue& each) { return wordOf(row) == each.name; });
}

OpCase prologue(const Choice& choice) {
  const Prologue& form = prologueOf(choice.at("row"));
  const std::vector<Elem> elems = elemsIn(choice.at("row"));
  const Shape x = shapeOf(choice.at("shape"));
  const std::string& lie = choice.at("others");
  OpCase made;
  for (size_t i = 0; i < elems.size(); ++i) {
    Shape dims = x;
    if (i && lie != "whole") // a number for each sum, for each place along it, or one alone
      for (size_t d = 0; d < dims.size(); ++d)
        if (lie == "one" || (lie == "sums") == (d == 1)) dims[d] = 1;
    made.operands.push_back(
        {elems[i], dims,
         choice.at("data") == "ties"
             ? tiedOperands(form.name)[i]
             : fillOf(elems[i], isFloat(elems[i]) ? choice.at("data") : "bits")});
  }
  const std::string text = form.text, end = form.epilogue, fn = form.fn;
  const Elem folded = endOf(text, elems);
  made.whole = [=](graph::Graph& graph, const Values& in) -> Result<Values> {
    CDL_ASSIGN(const Values value,
               write(graph, OpKind::Expr, in, {{"to", folded}, {"steps", text}}));
    CDL_ASSIGN(Values sums,
               write(graph, OpKind::Reduce, value, {{"fn", fn}, {"prologue", int64_t(1)}}));
    if (end.empty()) return sums;
    return write(graph, OpKind::Expr, sums, {{"to", endOf(end, {folded})}, {"steps", end}});
  };
  made.parts = [=](graph::Graph& graph, const Values& in) -> Result<Values> {
    CDL_ASSIGN(const Values value, stepByStep(graph, text, in));
    CDL_ASSIGN(Values sums, write(graph, OpKind::Reduce, value, {{"fn", fn}}));
    if (end.empty()) return sums;
    return stepByStep(graph, end, sums);
  };
  return made;
}

} // namespace

std::vector<OpFamily> prologueFamilies() {
  std::vector<std::string> rows;
  for (const Prologue& each : kPrologues)
    rows.push_back(fmt::format("{}_{}", each.name, each.operands));
  OpFamily made;
  made.family = {"ops:prologue/",
                 rows,
                 {{"shape", {"6x5x4", "3x130x1", "1x7x37", "2x1x3", "4x16x16"}},
                  {"others", {"whole", "sums", "along", "one"}},
                  {"data", {"steps", "calm", "ties"}}},
                 [](const Choice& c) {
                   const std::vector<Elem> elems = elemsIn(c.at("row"));
                   if (c.at("data") == "ties")
                     return !tiedOperands(wordOf(c.at("row"))).empty() &&
                            c.at("shape") == "6x5x4" && c.at("others") == "whole";
                   if (wordOf(c.at("row")) == "rescaled") return false;
                   if (elems.size() == 1 && c.at("others") != "whole") return false;
                   return c.at("data") == (isFloat(elems[0]) ? "calm" : "steps") ||
                          (isFloat(elems[0]) && c.at("shape") == "6x5x4");
                 },
                 {}};
  made.family.isTypical = [](const Choice& choice) { return choice.at("data") != "ties"; };
  made.family.tells = [](const Choice& choice) {
    return choice.at("data") == "ties" ? "ties" : "";
  };
  made.budget = {15, 34};
  made.make = prologue;
  return {made};
}

} // namespace candela::conformance::tiers::ops
