#include <charconv>

#include "core/graph/checks.h"
#include "core/support/text/lexer.h"
#include "core/support/text/literal.h"

namespace candela::graph {
namespace {

int64_t intOf(std::string_view text) {
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  CDL_CHECK(error == std::errc() && stop == text.data() + text.size(), "'{}' is no integer", text);
  return value;
}

std::vector<int64_t> intsOf(std::string_view text) {
  std::vector<int64_t> out;
  text = text.substr(1, text.size() - 2); // without the brackets
  while (!text.empty()) {
    const size_t comma = std::min(text.find(", "), text.size());
    out.push_back(intOf(text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 2, text.size()));
  }
  return out;
}

/// The attribute of the type, or null when it is absent; aborts on another type, which the verifier
/// excludes.
template <typename T> const T* given(const Node& node, std::string_view name) {
  const auto found = node.attrs.find(name);
  if (found == node.attrs.end()) return nullptr;
  const T* value = std::get_if<T>(&found->second);
  CDL_CHECK(value, "{}: attribute {} has another type", opName(node.kind), name);
  return value;
}

std::string_view defaultOf(const Node& node, std::string_view name) {
  const AttrInfo* info = node.info().attr(name);
  CDL_CHECK(info && !info->defaultText.empty(), "{}: attribute {} is absent and has no default", opName(node.kind),
            name);
  return info->defaultText;
}

bool hasType(const Attr& attr, AttrType type) {
  switch (type) {
  case AttrType::Int: return std::holds_alternative<int64_t>(attr);
  case AttrType::Bool: return std::holds_alternative<int64_t>(attr) && (std::get<int64_t>(attr) | 1) == 1;
  case AttrType::Float: return std::holds_alternative<double>(attr);
  case AttrType::Ints: return std::holds_alternative<std::vector<int64_t>>(attr);
  case AttrType::Floats: return std::holds_alternative<std::vector<double>>(attr);
  case AttrType::String: return std::holds_alternative<std::string>(attr);
  case AttrType::Elem:
    return std::holds_alternative<Elem>(attr) && isValidElem(static_cast<unsigned>(std::get<Elem>(attr)));
  }
  return false;
}

std::string_view typeName(AttrType type) {
  constexpr std::string_view kNames[] = {"an integer",        "a number",           "a list of integers",
                                         "a list of numbers", "a string in quotes", "an element type",
                                         "true or false"};
  return kNames[static_cast<size_t>(type)];
}

/// "> 0", ">= 0", "!= 0" and "lo..hi" of numbers; ranges that need the operands or name words are
/// the op's own business.
bool inRange(int64_t value, std::string_view range) {
  if (range == "> 0") return value > 0;
  if (range == ">= 0") return value >= 0;
  if (range == "!= 0") return value != 0;
  const size_t dots = range.find("..");
  if (dots == std::string_view::npos || range.find("rank") != std::string_view::npos) return true;
  return value >= intOf(range.substr(0, dots)) && value <= intOf(range.substr(dots + 2));
}

Status checkRange(const Node& node, const AttrInfo& info, const Attr& attr) {
  const auto check = [&](int64_t value) {
    if (inRange(value, info.range)) return Status::ok();
    return badModel("{}: attribute {} is {}, expected {}", nodeText(node), info.name, value, info.range);
  };
  if (const int64_t* value = std::get_if<int64_t>(&attr)) return check(*value);
  if (const auto* values = std::get_if<std::vector<int64_t>>(&attr))
    for (const int64_t value : *values) CDL_TRY(check(value));
  return Status::ok();
}

} // namespace

int64_t Node::intAttr(std::string_view name) const {
  const int64_t* value = given<int64_t>(*this, name);
  return value ? *value : intOf(defaultOf(*this, name));
}

double Node::floatAttr(std::string_view name) const {
  if (const double* value = given<double>(*this, name)) return *value;
  const auto value = text::parseReal(defaultOf(*this, name));
  CDL_CHECK(value, "{}: default of {} is no number", opName(kind), name);
  return *value;
}

std::vector<int64_t> Node::intsAttr(std::string_view name) const {
  const auto* value = given<std::vector<int64_t>>(*this, name);
  return value ? *value : intsOf(defaultOf(*this, name));
}

std::string Node::stringAttr(std::string_view name) const {
  const std::string* value = given<std::string>(*this, name);
  return value ? *value : std::string(defaultOf(*this, name));
}

Elem Node::elemAttr(std::string_view name) const {
  const Elem* value = given<Elem>(*this, name);
  return value ? *value : parseElem(defaultOf(*this, name)).value_or(Elem::none);
}

Status checkAttributes(const Node& node) {
  const OpInfo& info = node.info();
  for (const auto& [name, attr] : node.attrs) {
    const AttrInfo* record = info.attr(name);
    if (!record) return badModel("{}: unknown attribute '{}'", nodeText(node), name);
    if (!hasType(attr, record->type))
      return badModel("{}: attribute {} is not {}", nodeText(node), name, typeName(record->type));
    CDL_TRY(checkRange(node, *record, attr));
  }
  for (const AttrInfo& record : info.attrs)
    if (record.required && !node.hasAttr(record.name))
      return badModel("{}: attribute {} is missing", nodeText(node), record.name);
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
  std::string out = "[";
  for (const double value : std::get<std::vector<double>>(attr))
    out += (out.size() > 1 ? ", " : "") + text::realText(value);
  return out + "]";
}

} // namespace candela::graph
