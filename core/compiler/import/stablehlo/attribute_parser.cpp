#include <algorithm>
#include <charconv>

#include "core/compiler/import/stablehlo/elements.h"
#include "core/compiler/import/stablehlo/parser.h"

namespace candela::import::stablehlo {
namespace {

constexpr int kMostNested = 64; // lists and dictionaries
constexpr size_t kMostRank = 8; // what a Graph has
constexpr size_t kShownType = 60;

struct ElemName {
  std::string_view text;
  Elem elem;
};
constexpr ElemName kElems[] = {
    {"f32", Elem::f32_},          {"f16", Elem::f16_},
    {"bf16", Elem::bf16_},        {"f64", Elem::f64_},
    {"i1", Elem::bool_},          {"i8", Elem::i8_},
    {"i16", Elem::i16_},          {"i32", Elem::i32_},
    {"i64", Elem::i64_},          {"ui8", Elem::u8_},
    {"ui16", Elem::u16_},         {"ui32", Elem::u32_},
    {"ui64", Elem::u64_},         {"i4", Elem::i4_},
    {"ui4", Elem::u4_},           {"i2", Elem::i2_},
    {"ui2", Elem::u2_},           {"f8E4M3FN", Elem::f8e4m3_},
    {"f8E5M2", Elem::f8e5m2_},    {"f8E4M3FNUZ", Elem::f8e4m3fnuz_},
    {"f8E8M0FNU", Elem::f8e8m0_}, {"f8E5M2FNUZ", Elem::f8e5m2fnuz_},
    {"f4E2M1FN", Elem::f4e2m1_},  {"index", Elem::i64_},
};

/// What a type is that values of ours do not have.
Type foreignType(std::string_view text) {
  Type type;
  type.refusal = std::string(text.substr(0, kShownType));
  std::ranges::replace_if(type.refusal, [](char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return type;
}

/// "3x4xf32", of tensor<3x4xf32>.
Type tensorType(std::string_view inside) {
  const std::string text = fmt::format("tensor<{}>", inside);
  Type type;
  while (!inside.empty() && inside[0] >= '0' && inside[0] <= '9') {
    int64_t dim = 0;
    const auto read = std::from_chars(inside.data(), inside.data() + inside.size(), dim);
    const auto length = static_cast<size_t>(read.ptr - inside.data());
    if (read.ec != std::errc() || length >= inside.size() || inside[length] != 'x')
      return foreignType(text);
    type.dims.push_back(dim);
    inside.remove_prefix(length + 1);
  }
  if (inside.starts_with("?") || inside.starts_with("*"))
    return foreignType(text + ", whose dims are not all known");
  const auto found = std::ranges::find(kElems, inside, &ElemName::text);
  if (found == std::end(kElems)) return foreignType(text);
  if (type.rank() > kMostRank)
    return foreignType(fmt::format("{}, of more than {} dims", text, kMostRank));
  if (!elementCount(type.dims)) return foreignType(text + ", which is impossibly large");
  type.elem = found->elem;
  return type;
}

} // namespace

class AttributeParser::Nested {
public:
  explicit Nested(AttributeParser& parser) : parser_(parser) {
    if (++parser_.depth_ > kMostNested)
      parser_.scanner_.fail(fmt::format("values are nested deeper than {}", kMostNested));
  }
  ~Nested() { --parser_.depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

private:
  AttributeParser& parser_;
};

Type AttributeParser::type() {
  if (scanner_.accept("!")) {
    const std::string text = "!" + scanner_.name("a type");
    if (scanner_.accept("<")) scanner_.balanced('<', '>');
    return foreignType(text);
  }
  if (scanner_.accept("(")) {
    scanner_.balanced('(', ')');
    return foreignType("a function");
  }
  const std::string word(scanner_.word());
  if (word.empty()) scanner_.fail("expected a type");
  if (!scanner_.accept("<")) {
    Type scalar = tensorType(word);
    return scalar.refusal.empty() ? scalar : foreignType(word);
  }
  const std::string_view inside = scanner_.balanced('<', '>');
  if (word == "tensor") return tensorType(inside);
  return foreignType(fmt::format("{}<{}>", word, inside));
}

std::vector<Type> AttributeParser::types() {
  std::vector<Type> all;
  if (scanner_.accept("(")) {
    while (!scanner_.accept(")")) {
      if (!all.empty()) scanner_.expect(",", "between types");
      all.push_back(type());
    }
    return all;
  }
  do {
    all.push_back(type());
  } while (scanner_.accept(","));
  return all;
}

Attribute AttributeParser::value(bool takesType) {
  const Nested nested(*this);
  Attribute made;
  switch (scanner_.peek()) {
  case '[': scanner_.accept("["); return chain(list("]"));
  case '{': scanner_.accept("{"); return entries("}");
  case '"':
    made.kind = Attribute::Kind::text;
    made.text = scanner_.quoted();
    return made;
  case '@':
    scanner_.accept("@");
    made.kind = Attribute::Kind::word;
    made.text = scanner_.name("a symbol");
    return made;
  case '#': return dialectValue();
  case '!': type(); return made;
  case '(':
    scanner_.accept("(");
    made.text = std::string(scanner_.balanced('(', ')'));
    if (scanner_.accept("->"))
      made.results = scanner_.isNext("(") ? types() : std::vector<Type>{type()};
    return made;
  case '<':
    scanner_.accept("<");
    made.text = std::string(scanner_.balanced('<', '>'));
    return made;
  default: break;
  }
  const char c = scanner_.peek();
  const bool isNumber = c == '-' || (c >= '0' && c <= '9');
  return isNumber ? numberValue(takesType) : wordValue();
}

/// [0, 1] x [0, 1] and [b, f]x[i, o]->[b, f] are lists of lists.
Attribute AttributeParser::chain(Attribute first) {
  Attribute all;
  all.kind = Attribute::Kind::list;
  all.list.push_back(std::move(first));
  while (scanner_.accept("x") || scanner_.accept("->")) {
    scanner_.expect("[", "before a list");
    all.list.push_back(list("]"));
  }
  return all.list.size() == 1 ? std::move(all.list[0]) : std::move(all);
}

Attribute AttributeParser::list(std::string_view close) {
  const Nested nested(*this);
  Attribute made;
  made.kind = Attribute::Kind::list;
  while (!scanner_.accept(close)) {
    if (!made.list.empty()) scanner_.expect(",", "in a list");
    made.list.push_back(value(true));
  }
  return made;
}

Attribute AttributeParser::entries(std::string_view close) {
  const Nested nested(*this);
  Attribute made;
  made.kind = Attribute::Kind::dictionary;
  while (!scanner_.accept(close)) {
    if (!made.keys.empty()) scanner_.expect(",", "between attributes");
    std::string key = scanner_.peek() == '"' ? scanner_.quoted() : std::string(scanner_.word());
    if (key.empty()) scanner_.fail("expected the name of an attribute");
    Attribute one;
    if (scanner_.accept("=")) one = value(true);
    made.keys.push_back(std::move(key));
    made.list.push_back(std::move(one));
  }
  return made;
}

void AttributeParser::dictionary(std::map<std::string, Attribute, std::less<>>& attributes) {
  if (!scanner_.accept("{")) return;
  Attribute made = entries("}");
  for (size_t i = 0; i < made.keys.size(); ++i) attributes[made.keys[i]] = std::move(made.list[i]);
}

Attribute AttributeParser::numberValue(bool takesType) {
  Attribute made;
  const std::string_view text = scanner_.number();
  const char* end = text.data() + text.size();
  made.kind = Attribute::Kind::integer;
  auto read = std::from_chars(text.data(), end, made.integer);
  if (read.ptr != end) {
    made.kind = Attribute::Kind::number;
    read = std::from_chars(text.data(), end, made.number);
  }
  made.text = std::string(text);
  if (read.ptr != end || read.ec != std::errc()) made.kind = Attribute::Kind::opaque;
  if (takesType && scanner_.accept(":")) made.type = type();
  return made;
}

Attribute AttributeParser::elements(bool isResource) {
  Attribute made;
  made.kind = Attribute::Kind::elements;
  const int64_t line = scanner_.line();
  const std::string_view literal = scanner_.balanced('<', '>');
  scanner_.expect(":", "before the type of elements");
  made.type = type();
  try {
    if (!isResource) {
      made.elements = readElements(literal, made.type);
      return made;
    }
    const auto found = resources_.find(std::string(literal));
    if (found == resources_.end()) reject("resource '{}' is not in the file", literal);
    made.elements = readResource(found->second, made.type);
  } catch (const Refusal& refusal) {
    throw Refusal{refusal.status.context(fmt::format("line {}: elements", line))};
  }
  return made;
}

/// array<i64: 1, 2>, behind its first bracket.
Attribute AttributeParser::array() {
  type();
  if (scanner_.accept(":")) return list(">");
  scanner_.expect(">", "behind an array");
  Attribute made;
  made.kind = Attribute::Kind::list;
  return made;
}

Attribute AttributeParser::dialectValue() {
  scanner_.accept("#");
  Attribute made;
  const std::string name = scanner_.name("the name of a value");
  made.text = "#" + name;
  if (!scanner_.accept("<")) return made;
  Scanner ahead = scanner_;
  const bool hasEntries = !ahead.word().empty() && ahead.accept("=");
  if (name.starts_with("stablehlo.") && hasEntries) return entries(">");
  if (name.starts_with("stablehlo.") && scanner_.accept("[")) {
    made = chain(list("]"));
    scanner_.expect(">", "behind a value");
    return made;
  }
  const std::string_view inside = scanner_.balanced('<', '>');
  made.kind = Attribute::Kind::word;
  made.text = std::string(inside.substr(inside.rfind(' ') + 1));
  return made;
}

Attribute AttributeParser::wordValue() {
  Attribute made;
  if (scanner_.isNext("tensor")) {
    made.type = type();
    return made;
  }
  const std::string word(scanner_.word());
  if (word.empty()) scanner_.fail("expected a value");
  if (word == "true" || word == "false") {
    made.kind = Attribute::Kind::integer;
    made.integer = word == "true";
    return made;
  }
  if (scanner_.isNext("<")) {
    scanner_.accept("<");
    if (word == "dense" || word == "dense_resource") return elements(word == "dense_resource");
    if (word == "array") return array();
    made.text = std::string(scanner_.balanced('<', '>'));
    return made;
  }
  made.kind = Attribute::Kind::word;
  made.text = word;
  return made;
}

const Attribute* Attribute::find(std::string_view key) const {
  for (size_t i = 0; i < keys.size(); ++i)
    if (keys[i] == key) return &list[i];
  return nullptr;
}

} // namespace candela::import::stablehlo
