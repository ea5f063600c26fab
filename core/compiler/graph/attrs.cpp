#include <ranges>

#include "core/compiler/graph/checks.h"
#include "core/compiler/graph/text.h"
#include "core/support/text/literal.h"
#include "core/support/text/scan.h"

namespace candela::graph {
namespace {

/// The records' defaults, read once from their texts; null when there is none.
const Attr* defaultOf(const AttrInfo& info) {
  static const std::map<const AttrInfo*, Attr> defaults = [] {
    std::map<const AttrInfo*, Attr> made;
    for (const OpInfo& op : allOps())
      for (const AttrInfo& each : op.attrs) {
        if (each.defaultText.empty()) continue;
        Attr value = std::string(each.defaultText);
        if (each.type == AttrType::Int || each.type == AttrType::Bool)
          value = text::parseNumber<int64_t>(each.defaultText).value();
        if (each.type == AttrType::Float) value = text::parseReal(each.defaultText).value();
        made.emplace(&each, std::move(value));
      }
    return made;
  }();
  const auto found = defaults.find(&info);
  return found == defaults.end() ? nullptr : &found->second;
}

/// The attribute or its default; aborts where there is neither, or one of another type: the
/// verifier excludes both.
template <typename T> const T& valueOf(const Node& node, std::string_view name) {
  const auto found = node.attrs.find(name);
  const AttrInfo* info = node.info().attr(name);
  const Attr* attr = nullptr;
  if (found != node.attrs.end())
    attr = &found->second;
  else if (info)
    attr = defaultOf(*info);
  CDL_CHECK(attr && std::holds_alternative<T>(*attr),
            "{}: attribute {} is absent or has another type", opName(node.kind), name);
  return std::get<T>(*attr);
}

/// AttrType has the order of the variant; a Bool is an int.
bool hasType(const Attr& attr, AttrType type) {
  if (type == AttrType::Bool) return attr == Attr(int64_t{0}) || attr == Attr(int64_t{1});
  if (const Elem* elem = std::get_if<Elem>(&attr);
      elem && !isValidElem(static_cast<unsigned>(*elem)))
    return false;
  return attr.index() == static_cast<size_t>(type);
}

std::string_view typeName(AttrType type) {
  constexpr std::string_view kNames[] = {
      "an integer",         "a number",        "a list of integers", "a list of numbers",
      "a string in quotes", "an element type", "true or false"};
  return kNames[static_cast<size_t>(type)];
}

/// A limit of a range: a number, -rank or rank-1.
int64_t limitOf(std::string_view text, int rank) {
  if (text == "-rank") return -rank;
  if (text == "rank-1") return rank - 1;
  return text::parseNumber<int64_t>(text).value();
}

bool inRange(int64_t value, std::string_view range, int rank) {
  if (range == "> 0") return value > 0;
  if (range == ">= 0") return value >= 0;
  if (range == "!= 0") return value != 0;
  const size_t dots = range.find("..");
  if (dots == std::string_view::npos) return true;
  return value >= limitOf(range.substr(0, dots), rank) &&
         value <= limitOf(range.substr(dots + 2), rank);
}

Status checkRange(const Node& node, const AttrInfo& info, const Attr& attr) {
  const int rank = node.operand(0) ? node.operand(0)->type.rank() : 0;
  const bool ranked = info.range.find("rank") != std::string_view::npos;
  const auto check = [&](int64_t value) {
    if (inRange(value, info.range, rank)) return Status::ok();
    return badModel("{}: attribute {} is {}, expected {}{}", nodeText(node), info.name, value,
                    info.range, ranked ? fmt::format(" of rank {}", rank) : "");
  };
  if (const int64_t* value = std::get_if<int64_t>(&attr)) return check(*value);
  if (const auto* values = std::get_if<std::vector<int64_t>>(&attr))
    for (const int64_t value : *values) CDL_TRY(check(value));
  if (const auto* word = std::get_if<std::string>(&attr);
      word && !info.range.empty() && !text::isOneOf(*word, std::string(info.range)))
    return badModel("{}: attribute {} is '{}', expected {}", nodeText(node), info.name, *word,
                    info.range);
  return Status::ok();
}

} // namespace

int64_t Node::intAttr(std::string_view name) const { return valueOf<int64_t>(*this, name); }
double Node::floatAttr(std::string_view name) const { return valueOf<double>(*this, name); }
std::string Node::stringAttr(std::string_view name) const {
  return valueOf<std::string>(*this, name);
}
Elem Node::elemAttr(std::string_view name) const { return valueOf<Elem>(*this, name); }
std::vector<int64_t> Node::intsAttr(std::string_view name) const {
  return valueOf<std::vector<int64_t>>(*this, name);
}
std::vector<int64_t> Node::intsAttr(std::string_view name, size_t count, int64_t otherwise) const {
  return hasAttr(name) ? intsAttr(name) : std::vector<int64_t>(count, otherwise);
}

Status checkAttributes(const Node& node) {
  const OpInfo& info = node.info();
  for (const auto& [name, attr] : node.attrs) {
    const AttrInfo* record = info.attr(name);
    // of the instruction; inferCustom looks at them
    if (!record && node.kind == OpKind::Custom) continue;
    if (!record) return badModel("{}: unknown attribute '{}'", nodeText(node), name);
    if (!hasType(attr, record->type))
      return badModel("{}: attribute {} is not {}", nodeText(node), name, typeName(record->type));
  }
  for (const AttrInfo& record : info.attrs) {
    const auto given = node.attrs.find(record.name);
    const Attr* attr = given != node.attrs.end() ? &given->second : defaultOf(record);
    if (!attr && record.required)
      return badModel("{}: attribute {} is missing", nodeText(node), record.name);
    if (attr) CDL_TRY(checkRange(node, record, *attr));
  }
  return Status::ok();
}

std::string attrText(const Attr& attr, AttrType type) {
  if (const int64_t* value = std::get_if<int64_t>(&attr)) {
    if (type == AttrType::Bool) return *value ? "true" : "false";
    return fmt::format("{}", *value);
  }
  if (const double* value = std::get_if<double>(&attr)) return text::realText(*value);
  if (const auto* values = std::get_if<std::vector<int64_t>>(&attr))
    return fmt::format("[{}]", fmt::join(*values, ", "));
  if (const std::string* value = std::get_if<std::string>(&attr)) return text::quoteText(*value);
  if (const Elem* value = std::get_if<Elem>(&attr)) return std::string(elemName(*value));
  const auto& reals = std::get<std::vector<double>>(attr);
  return fmt::format("[{}]", fmt::join(reals | std::views::transform(text::realText), ", "));
}

} // namespace candela::graph
