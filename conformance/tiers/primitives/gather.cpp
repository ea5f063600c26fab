#include "conformance/tiers/primitives/families.h"
#include "conformance/tiers/primitives/fills.h"
#include "conformance/tiers/primitives/indexed.h"

namespace candela::conformance::tiers::primitives {
namespace {

constexpr Elem kMoved[] = {Elem::f32_, Elem::f16_, Elem::bf16_, Elem::f64_,    Elem::i8_,
                           Elem::u8_,  Elem::i16_, Elem::u16_,  Elem::i32_,    Elem::u32_,
                           Elem::i64_, Elem::u64_, Elem::bool_, Elem::f8e4m3_, Elem::f8e5m2_};
/// Those that are gathered by i64 as well.
constexpr Elem kFar[] = {Elem::f32_, Elem::bf16_, Elem::u8_, Elem::i32_, Elem::i64_};

CaseResult runGather(const Choice& choice, Port& port) {
  const Indexed at(choice);
  const auto& [row, elem, index, dims, count, view, isOutput] = at;
  TrialBuilder builder(seedText(choice), CDL_KIND_GATHER, *parseFn(CDL_KIND_GATHER, row[0]));
  builder.input(elem, dims, isOutput || view.ends_with("index") ? "dense" : view,
                numbers(elem, random::Data::bits));
  const TrialBuilder::Fill fill = places(index, choice.at("index"), dims[1]);
  if (view == "constant_index")
    builder.constant(index, {count}, "dense", fill);
  else
    builder.input(index, {count}, view == "strided_index" ? "strided" : "dense", fill);
  return builder.output(elem, {dims[0], count, dims[2]}, at.outputView()).tryOut(port);
}

bool holdsGather(const Choice& choice) {
  const std::string &shape = choice.at("shape"), &index = choice.at("index");
  if (choice.at("row").starts_with("clamp") && shape == "2x0x3k4") return false; // refused
  if (choice.at("view") != "dense")
    return (shape == "2x5x3k4" || shape == "3x17x4k31") && (index == "inside" || index == "limits");
  return index != "equal" || shape == "2x5x3k4";
}

} // namespace

std::vector<Case> gatherCases(const Selection& selection) {
  Family family{"primitives:gather/", {}, {}, holdsGather, runGather};
  for (uint16_t fn = 0; cdl_fn_known(CDL_KIND_GATHER, fn); ++fn) {
    const std::string_view name = fnName(CDL_KIND_GATHER, fn);
    for (const Elem elem : kMoved)
      family.rows.push_back(fmt::format("{}_{}_i32", name, elemName(elem)));
    for (const Elem elem : kFar)
      family.rows.push_back(fmt::format("{}_{}_i64", name, elemName(elem)));
  }
  family.axes = {{"shape",
                  {"2x5x3k4", "1x1x1k1", "3x17x4k31", "1x257x2k65", "4x3x0k5", "2x0x3k4",
                   "2x7x16k0", "1x1031x1k129"}},
                 {"index", {"inside", "equal", "outside", "limits"}},
                 {"view",
                  {"dense", "offset", "rows", "transposed", "negative", "strided", "broadcast",
                   "to_rows", "to_negative", "strided_index", "constant_index"}}};
  family.isTypical = [](const Choice& choice) {
    return choice.at("view") == "dense" && choice.at("shape") == "3x17x4k31";
  };
  return expand(family, selection, {.quick = 0, .full = 50});
}

} // namespace candela::conformance::tiers::primitives
