#include "conformance/tiers/primitives/elementwise.h"

#include <algorithm>
#include <memory>
#include <set>

#include "conformance/judge/element_rule.h"
#include "conformance/judge/elementwise_bounds.h"
#include "conformance/port.h"
#include "core/support/text/scan.h"

namespace candela::conformance::tiers::primitives {
namespace {

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

bool isDense(const std::vector<std::string>& forms) {
  return std::ranges::all_of(forms, [](const std::string& form) { return form == "dense"; });
}

/// "in0" -> 0.
std::optional<size_t> inPlaceOf(std::string_view form) {
  if (form.size() != 3 || !form.starts_with("in")) return std::nullopt;
  return static_cast<size_t>(form[2] - '0');
}

/// Whether the view says of these dims and types what its name says.
bool fits(const std::string& view, const Shape& dims, const Call& call) {
  const std::vector<std::string> forms = text::split(view, ',');
  if (isDense(forms)) return true;
  const auto isNarrow = [](Elem elem) { return isPacked(elem); };
  if (std::ranges::any_of(call.operands, isNarrow) || isNarrow(call.result)) return false;
  if (elementCount(dims).value_or(0) < 2) return false;
  return std::ranges::all_of(forms, [&](const std::string& form) {
    if (const auto operand = inPlaceOf(form))
      return elemBits(call.operands[*operand]) == elemBits(call.result);
    return text::isOneOf(form, "dense|same|shifted|beside|between") || isForm(dims, form);
  });
}

/// Whether the bounds of such results say little: where all of them may be as small as the type
/// allows.
bool isVague(const std::vector<std::string>& forms, const Shape& dims, const std::string& data,
             const Call& call) {
  if (!isFloat(call.result) ||
      judge::elementRule(call.kind, call.fn, call.result).kind ==
          judge::ElementRule::Kind::rounded ||
      text::isOneOf(data, "calm|steps|every"))
    return false;
  const auto isLong = [](int64_t dim) { return dim > 1; };
  const bool isOne = std::ranges::any_of(forms, [&](const std::string& form) {
    return form == "splat" || (form.starts_with("broadcast") &&
                               (data == "pairs" || std::ranges::count_if(dims, isLong) < 2));
  });
  return isOne || elementCount(dims).value_or(0) < (data == "wide" ? 30 : 200);
}

std::string addressOf(const std::string& stem, const Choice& choice,
                      const std::vector<Axis>& before) {
  std::string address = stem + choice.at("row");
  for (const Axis& axis : before) address += ';' + choice.at(axis.name);
  return address + ';' + choice.at("shape") + ';' + choice.at("view") + ';' + choice.at("data");
}

CaseResult run(const std::string& address, const Choice& choice, const CallOf& callOf, Port& port) {
  const Call call = callOf(choice);
  const Shape dims = shapeOf(choice.at("shape"));
  const std::vector<std::string> forms = text::split(choice.at("view"), ',');
  TrialBuilder builder(address, call.kind, call.fn);
  for (size_t i = 0; i < call.operands.size(); ++i) {
    if (forms[i] == "same" || forms[i] == "shifted")
      builder.inputBeside(forms[i] == "shifted" ? 1 : 0);
    else
      builder.input(call.operands[i], dims, forms[i], call.fills[i]);
  }
  const std::string& last = forms.back();
  if (const auto operand = inPlaceOf(last))
    builder.outputIn(*operand, call.result);
  else if (last == "beside" || last == "between")
    builder.outputIn(0, call.result, last == "between" ? 1 : elementCount(dims).value_or(0) + 3);
  else
    builder.output(call.result, dims, last);
  for (const program::Attr& attr : call.attrs) builder.attr(attr);
  if (const auto loop = choice.find("loop"); loop != choice.end())
    builder.loops(static_cast<size_t>(loop->second[0] - '0'));
  const auto device = port.device();
  if (!device) return CaseResult::of(device.status());
  const uint32_t flags = (*device)->table().device_capabilities((*device)->handle())->flags;
  return builder.tryOut(port,
                        [flags](const program::Program& program, std::span<const Tensor> inputs) {
                          return judge::elementwiseBounds(program, inputs, flags);
                        });
}

Family familyOf(const std::string& stem, const Part& part, const CallOf& callOf) {
  Family family{stem, part.rows, part.before, {}, {}};
  family.axes.push_back({"shape", part.shapes});
  family.axes.push_back({"view", part.views});
  family.axes.push_back({"data", part.data});
  const auto shared = std::make_shared<const Part>(part);
  family.isTypical = [shared](const Choice& choice) {
    const int64_t count = elementCount(shapeOf(choice.at("shape"))).value_or(0);
    return count > 200 &&
           (shared->typicalViews.empty() || contains(shared->typicalViews, choice.at("view"))) &&
           (shared->typicalData.empty() || contains(shared->typicalData, choice.at("data")));
  };
  const auto isTypical = family.isTypical;
  family.holds = [shared, stem, callOf, isTypical](const Choice& choice) {
    const std::string& view = choice.at("view");
    const Shape dims = shapeOf(choice.at("shape"));
    const bool dense = isDense(text::split(view, ','));
    if (!dense && elementCount(dims).value_or(0) > 10000) return false;
    // The hash comes first: it is the cheaper question.
    if (!isTypical(choice) && seedOf(addressOf(stem, choice, shared->before)) %
                                      (dense ? shared->oneInDense : shared->oneIn) !=
                                  0)
      return false;
    const Call call = callOf(choice);
    return fits(view, dims, call) &&
           !isVague(text::split(view, ','), dims, choice.at("data"), call);
  };
  family.run = [shared, stem, callOf](const Choice& choice, Port& port) {
    return run(addressOf(stem, choice, shared->before), choice, callOf, port);
  };
  return family;
}

} // namespace

std::vector<Case> elementwiseCases(const std::string& stem, const std::vector<Part>& parts,
                                   const CallOf& callOf, const Selection& selection) {
  std::vector<Case> all;
  std::set<std::string> known;
  for (const Part& part : parts)
    for (Case& one : expand(familyOf(stem, part, callOf), selection, part.budget))
      if (known.insert(one.address).second) all.push_back(std::move(one));
  return all;
}

std::vector<std::string> manyShapes() {
  return {"scalar",          "1",           "7",     "31",      "15x17",
          "2x3x5",           "0x4",         "63x5",  "3x1x5x7", "1031",
          "2x2x3x1x5",       "2x1x3x2x1x2", "5x129", "8x64",    "2x1x2x3x1x2x2",
          "2x1x3x2x1x2x2x3", "65537"};
}
std::vector<std::string> fewShapes() { return {"7", "15x17", "2x3x5", "0x4", "1031", "3x1x5x7"}; }

std::vector<std::string>
requiredTexts(uint16_t kind,
              const std::function<std::string(const capabilities::RequiredRow&)>& text,
              ProfilesOf profiles) {
  std::vector<std::string> rows;
  for (const capabilities::RequiredRow& row : capabilities::requiredRows()) {
    const bool isBeside = capabilities::profilesBeside(row.profile) != 0;
    if (row.kind != kind || isBeside != (profiles == ProfilesOf::beside)) continue;
    if (std::string one = text(row); !contains(rows, one)) rows.push_back(std::move(one));
  }
  return rows;
}

std::span<const Elem> arithmeticElems() {
  static constexpr Elem elems[] = {Elem::f32_, Elem::f16_, Elem::bf16_, Elem::f64_, Elem::i8_,
                                   Elem::u8_,  Elem::i16_, Elem::u16_,  Elem::i32_, Elem::u32_,
                                   Elem::i64_, Elem::u64_, Elem::bool_};
  return elems;
}

std::vector<std::string> without(std::vector<std::string> rows,
                                 const std::vector<std::string>& other) {
  std::erase_if(rows, [&](const std::string& row) { return contains(other, row); });
  return rows;
}

FnAndElem fnAndElem(uint16_t kind, const std::string& row) {
  const size_t split = row.rfind('_');
  return {*parseFn(kind, row.substr(0, split)), *parseElem(row.substr(split + 1))};
}

std::string rowText(uint16_t kind, uint16_t fn, Elem elem) {
  return fmt::format("{}_{}", program::fnName(kind, fn), elemName(elem));
}
std::string rowText(const capabilities::RequiredRow& row) {
  return rowText(row.kind, row.fn, static_cast<Elem>(row.elems[0]));
}

Part witnesses(std::vector<std::string> rows, std::vector<std::string> shapes,
               std::vector<std::string> views, std::vector<std::string> data) {
  return {.rows = std::move(rows),
          .shapes = std::move(shapes),
          .views = std::move(views),
          .data = std::move(data),
          .budget = {1, 8}};
}

Part inLoops(std::vector<std::string> rows, std::vector<std::string> views,
             std::vector<std::string> data, Budget budget) {
  return {.rows = std::move(rows),
          .shapes = {"5x3x7", "3x2x17", "4x9x8"},
          .views = std::move(views),
          .data = std::move(data),
          .before = {{"loop", {"1", "2"}}},
          .oneIn = 8,
          .oneInDense = 4,
          .budget = budget};
}

} // namespace candela::conformance::tiers::primitives
