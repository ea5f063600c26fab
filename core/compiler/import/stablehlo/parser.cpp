#include "core/compiler/import/stablehlo/parser.h"

#include <charconv>

namespace candela::import::stablehlo {
namespace {

constexpr int kMostRegions = 64; // in one another
constexpr int64_t kMostResults = 4096;

/// Blobs of {-# dialect_resources: ... #-}, by name.
std::map<std::string, std::string_view> resourcesOf(std::string_view text) {
  std::map<std::string, std::string_view> found;
  const size_t begin = text.rfind("{-#");
  if (begin == std::string_view::npos) return found;
  const auto line = 1 + std::ranges::count(text.substr(0, begin), '\n');
  Scanner scanner(text.substr(begin + 3), line);
  while (!scanner.atEnd() && !scanner.isNext("#-}")) {
    const bool isQuoted = scanner.isNext("\"");
    const std::string key = isQuoted ? scanner.quoted() : std::string(scanner.word());
    if (!key.empty() && scanner.accept(":") && scanner.isNext("\"")) {
      found[key] = scanner.rawQuoted();
      continue;
    }
    for (const char* mark : {"{", "}", ",", ":"})
      if (scanner.accept(mark)) break;
    const bool isStuck = key.empty() && !scanner.atEnd() && !scanner.isNext("#-}") &&
                         !scanner.isNext("\"") && !scanner.isNext("{") && !scanner.isNext("}") &&
                         !scanner.isNext(",") && !scanner.isNext(":") && scanner.word().empty();
    if (isStuck) break;
  }
  return found;
}

int64_t integerIn(Scanner& scanner, const char* what) {
  const std::string_view text = scanner.number();
  int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size())
    scanner.fail(fmt::format("expected {}", what));
  return value;
}

Attribute integers(std::vector<int64_t> values) {
  Attribute made;
  made.kind = Attribute::Kind::list;
  for (const int64_t value : values) {
    made.list.emplace_back();
    made.list.back().kind = Attribute::Kind::integer;
    made.list.back().integer = value;
  }
  return made;
}

std::string propertyText(const Attribute& properties, std::string_view key) {
  const Attribute* found = properties.find(key);
  return found ? found->text : "";
}

Attribute wordOf(std::string text) {
  Attribute made;
  made.kind = Attribute::Kind::word;
  made.text = std::move(text);
  return made;
}

} // namespace

class Parser::Nested {
public:
  explicit Nested(Parser& parser) : parser_(parser) {
    if (++parser_.depth_ > kMostRegions)
      parser_.scanner_.fail(fmt::format("regions are nested deeper than {}", kMostRegions));
  }
  ~Nested() { --parser_.depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

private:
  Parser& parser_;
};

Parser::Parser(std::string_view text)
    : scanner_(text), resources_(resourcesOf(text)), attributes_(scanner_, resources_) {}

Program Parser::read() {
  Program program;
  readTopLevel(program, "");
  return program;
}

void Parser::readTopLevel(Program& program, const char* close) {
  const bool isInside = *close != '\0';
  while (!scanner_.atEnd()) {
    if (isInside && scanner_.accept(close)) return;
    if (scanner_.isNext("#") || scanner_.isNext("sdy.mesh")) {
      scanner_.skipLine(); // an alias, or the devices that sharding notes name
    } else if (scanner_.accept("{-#")) {
      scanner_.balanced('{', '}');
    } else if (scanner_.accept("module") || scanner_.accept("builtin.module")) {
      readModule(program);
    } else if (scanner_.accept("func.func")) {
      readFunction(program);
    } else if (scanner_.isNext("\"builtin.module\"") || scanner_.isNext("\"func.func\"")) {
      readGeneric(program);
    } else {
      scanner_.fail("expected a module or a function");
    }
  }
  if (isInside) scanner_.fail("expected the end of the module");
}

void Parser::readModule(Program& program) {
  const Nested nested(*this);
  if (scanner_.accept("@")) program.name = scanner_.name("the name of the module");
  std::map<std::string, Attribute, std::less<>> ignored;
  if (scanner_.accept("attributes")) attributes_.dictionary(ignored);
  scanner_.expect("{", "before what is in the module");
  readTopLevel(program, "}");
  scanner_.skipLocation();
}

void Parser::readFunction(Program& program) {
  Function function;
  function.body.line = scanner_.line();
  function.isPublic = !scanner_.accept("private");
  if (function.isPublic) scanner_.accept("public");
  scanner_.expect("@", "before the name of a function");
  function.name = scanner_.name("the name of a function");
  readArguments(function);
  if (scanner_.accept("->")) readResults(function);
  std::map<std::string, Attribute, std::less<>> ignored;
  if (scanner_.accept("attributes")) attributes_.dictionary(ignored);
  scanner_.expect("{", "before the operations of a function");
  operations(function.body);
  scanner_.skipLocation();
  addFunction(program, std::move(function));
}

void Parser::addFunction(Program& program, Function function) {
  const std::string name = function.name;
  if (!program.functions.emplace(name, std::move(function)).second)
    scanner_.fail(fmt::format("function '{}' is there twice", name));
}

/// "builtin.module"() ({...}) and "func.func"() ({...}), as MLIR prints them in its generic form.
void Parser::readGeneric(Program& program) {
  const Nested nested(*this);
  Operation op;
  op.line = scanner_.line();
  op.name = scanner_.quoted();
  if (op.name == "func.func") {
    genericForm(op);
    if (op.regions.size() != 1) scanner_.fail("expected one region of a function");
    Function function;
    function.name = op.attributes["sym_name"].text;
    function.isPublic = op.attributes["sym_visibility"].text != "private";
    function.body = std::move(op.regions[0]);
    function.resultTypes = op.attributes["function_type"].results;
    function.resultNotes = op.attributes["res_attrs"].list;
    addFunction(program, std::move(function));
  } else {
    for (const char* mark : {"(", ")"}) scanner_.expect(mark, "behind the name of a module");
    if (scanner_.accept("<{")) {
      program.name = propertyText(attributes_.entries("}"), "sym_name");
      scanner_.expect(">", "behind properties");
    }
    scanner_.expect("(", "before a region");
    scanner_.expect("{", "before what is in the module");
    readTopLevel(program, "}");
    scanner_.expect(")", "behind a region");
    attributes_.dictionary(op.attributes);
    resultTypes(op);
  }
  scanner_.skipLocation();
}

Argument Parser::argument() {
  Argument made;
  made.name = valueName();
  scanner_.expect(":", "before the type of an argument");
  made.type = attributes_.type();
  return made;
}

void Parser::readArguments(Function& function) {
  scanner_.expect("(", "before arguments");
  while (!scanner_.accept(")")) {
    if (!function.body.arguments.empty()) scanner_.expect(",", "between arguments");
    function.body.arguments.push_back(argument());
    Attribute notes;
    if (scanner_.accept("{")) notes = attributes_.entries("}");
    function.argumentNotes.push_back(std::move(notes));
    scanner_.skipLocation();
  }
}

void Parser::readResults(Function& function) {
  const bool areMany = scanner_.accept("(");
  while (!areMany || !scanner_.accept(")")) {
    if (!function.resultTypes.empty()) scanner_.expect(",", "between results");
    function.resultTypes.push_back(attributes_.type());
    Attribute notes;
    if (areMany && scanner_.accept("{")) notes = attributes_.entries("}");
    function.resultNotes.push_back(std::move(notes));
    if (!areMany) return;
  }
}

std::string Parser::valueName() {
  scanner_.expect("%", "before the name of a value");
  std::string name = scanner_.name("the name of a value");
  if (scanner_.accept("#")) {
    const int64_t index = integerIn(scanner_, "the number of a result");
    if (index != 0) name += fmt::format("#{}", index);
  }
  return name;
}

/// Up to the bracket that closes the region.
void Parser::operations(Region& region) {
  const Nested nested(*this);
  while (!scanner_.accept("}")) {
    if (scanner_.isNext("^")) scanner_.fail("a region of several blocks is not supported");
    if (scanner_.atEnd()) scanner_.fail("expected the end of a region");
    region.operations.push_back(operation());
  }
}

Region Parser::region() {
  Region made;
  made.line = scanner_.line();
  scanner_.expect("{", "before a region");
  if (scanner_.accept("^")) {
    scanner_.name("the name of a block");
    if (scanner_.accept("(")) {
      while (!scanner_.accept(")")) {
        if (!made.arguments.empty()) scanner_.expect(",", "between arguments");
        made.arguments.push_back(argument());
        scanner_.skipLocation();
      }
    }
    scanner_.expect(":", "behind the name of a block");
  }
  operations(made);
  return made;
}

void Parser::resultNames(Operation& op, std::vector<int64_t>& counts) {
  if (!scanner_.isNext("%")) return;
  do {
    scanner_.expect("%", "before the name of a result");
    op.results.push_back(scanner_.name("the name of a result"));
    counts.push_back(scanner_.accept(":") ? integerIn(scanner_, "a number of results") : 1);
    if (counts.back() < 1 || counts.back() > kMostResults)
      scanner_.fail(fmt::format("{} results", counts.back()));
  } while (scanner_.accept(","));
  scanner_.expect("=", "behind the names of results");
}

/// "1" with two of them becomes "1" and "1#1".
void Parser::countResults(Operation& op, const std::vector<int64_t>& counts) {
  std::vector<std::string> all;
  for (size_t i = 0; i < op.results.size(); ++i)
    for (int64_t k = 0; k < counts[i]; ++k)
      all.push_back(k == 0 ? op.results[i] : fmt::format("{}#{}", op.results[i], k));
  op.results = std::move(all);
}

Operation Parser::operation() {
  Operation op;
  std::vector<int64_t> counts;
  scanner_.peek();
  op.line = scanner_.line();
  resultNames(op, counts);
  countResults(op, counts);
  if (scanner_.isNext("\"")) {
    op.name = scanner_.quoted();
    genericForm(op);
  } else {
    op.name = std::string(scanner_.word());
    if (op.name.empty()) scanner_.fail("expected an operation");
    prettyForm(op);
  }
  if (op.name == "call") op.name = "func.call";
  if (op.name == "return") op.name = "func.return";
  scanner_.skipLocation();
  if (!op.results.empty() && op.types.size() != op.results.size())
    reject("line {}: {}: has {} results, but {} types of results", op.line, op.name,
           op.results.size(), op.types.size());
  return op;
}

void Parser::genericForm(Operation& op) {
  scanner_.expect("(", "before operands");
  while (!scanner_.accept(")")) {
    if (!op.operands.empty()) scanner_.expect(",", "between operands");
    op.operands.push_back(valueName());
  }
  if (scanner_.accept("<{")) {
    Attribute properties = attributes_.entries("}");
    scanner_.expect(">", "behind properties");
    for (size_t i = 0; i < properties.keys.size(); ++i)
      op.attributes[properties.keys[i]] = std::move(properties.list[i]);
  }
  if (scanner_.accept("(")) {
    while (!scanner_.accept(")")) {
      if (!op.regions.empty()) scanner_.expect(",", "between regions");
      op.regions.push_back(region());
    }
  }
  attributes_.dictionary(op.attributes);
  resultTypes(op);
}

void Parser::prettyForm(Operation& op) {
  if (op.name == "stablehlo.constant") return constant(op);
  if (op.name == "stablehlo.reduce" && scanner_.isNext("(")) return reduce(op);
  if (op.name == "stablehlo.while") return loop(op);
  while (piece(op)) {}
  if (scanner_.isNext(":")) resultTypes(op);
}

/// One of what stands between the name of an operation and its types. False: the types, or the end.
bool Parser::piece(Operation& op) {
  for (const char* mark : {",", "(", ")"})
    if (scanner_.accept(mark)) return true;
  switch (scanner_.peek()) {
  case '%': op.operands.push_back(valueName()); return true;
  case '[': sliceRanges(op); return true;
  case '{': attributes_.dictionary(op.attributes); return true;
  case '<': attributes_.value(false); return true; // how a value is sharded
  case '@': op.attributes["callee"] = attributes_.value(false); return true;
  case '"': op.attributes["name"] = attributes_.value(false); return true;
  case ':':
  case '}':
  case '\0': return false;
  default: break;
  }
  if (scanner_.isNext("loc") || op.name == "return" || op.name.ends_with(".return")) return false;
  namedPiece(op);
  return true;
}

void Parser::namedPiece(Operation& op) {
  std::string word(scanner_.word());
  if (word.empty()) scanner_.fail(fmt::format("unexpected text in {}", op.name));
  if (scanner_.accept("=")) {
    op.attributes[word] = attributes_.value(false);
    return;
  }
  op.words.push_back(std::move(word));
}

/// [0:1, 0:8:2]
void Parser::sliceRanges(Operation& op) {
  scanner_.expect("[", "before ranges");
  std::vector<int64_t> starts, limits, strides;
  while (!scanner_.accept("]")) {
    if (!starts.empty()) scanner_.expect(",", "between ranges");
    starts.push_back(integerIn(scanner_, "the begin of a range"));
    scanner_.expect(":", "in a range");
    limits.push_back(integerIn(scanner_, "the end of a range"));
    strides.push_back(scanner_.accept(":") ? integerIn(scanner_, "a stride") : 1);
  }
  op.attributes["start_indices"] = integers(std::move(starts));
  op.attributes["limit_indices"] = integers(std::move(limits));
  op.attributes["strides"] = integers(std::move(strides));
}

void Parser::constant(Operation& op) {
  attributes_.dictionary(op.attributes);
  Attribute value = attributes_.value(true);
  if (value.kind != Attribute::Kind::elements)
    reject("line {}: {}: its value is no dense<...>", op.line, op.name);
  op.types = {value.type};
  op.attributes["value"] = std::move(value);
}

/// stablehlo.reduce(%x init: %i), (%y init: %j) applies stablehlo.add across dimensions = [1]
void Parser::reduce(Operation& op) {
  std::vector<std::string> begins;
  do {
    scanner_.expect("(", "before an operand");
    op.operands.push_back(valueName());
    scanner_.expect("init:", "behind an operand");
    begins.push_back(valueName());
    scanner_.expect(")", "behind an operand");
  } while (scanner_.accept(","));
  const size_t inputs = op.operands.size();
  op.operands.insert(op.operands.end(), begins.begin(), begins.end());
  if (scanner_.accept("applies")) op.attributes["applies"] = wordOf(std::string(scanner_.word()));
  scanner_.expect("across", "before dimensions");
  scanner_.expect("dimensions", "behind 'across'");
  scanner_.expect("=", "behind 'dimensions'");
  op.attributes["dimensions"] = attributes_.value(false);
  attributes_.dictionary(op.attributes);
  resultTypes(op);
  if (scanner_.accept("reducer")) reducer(op, inputs);
}

/// (%a: type, %b: type) for each input; in a region all the first ones stand first.
void Parser::reducer(Operation& op, size_t inputs) {
  std::vector<Argument> first, second;
  while (scanner_.accept("(")) {
    first.push_back(argument());
    scanner_.skipLocation();
    scanner_.expect(",", "between arguments");
    second.push_back(argument());
    scanner_.skipLocation();
    scanner_.expect(")", "behind arguments");
  }
  if (first.size() != inputs)
    reject("line {}: {}: its reducer takes {} pairs, expected {}", op.line, op.name, first.size(),
           inputs);
  Region made = region();
  made.arguments = std::move(first);
  made.arguments.insert(made.arguments.end(), second.begin(), second.end());
  op.regions.push_back(std::move(made));
}

/// stablehlo.while(%a = %0, %b = %1) : types cond {...} do {...}
void Parser::loop(Operation& op) {
  if (scanner_.isNext("\"")) scanner_.fail("unexpected text");
  scanner_.expect("(", "before what is carried");
  std::vector<Argument> carried;
  while (!scanner_.accept(")")) {
    if (!carried.empty()) scanner_.expect(",", "between values");
    carried.emplace_back();
    carried.back().name = valueName();
    scanner_.expect("=", "behind a name");
    op.operands.push_back(valueName());
  }
  std::vector<Type> types;
  if (!carried.empty()) {
    scanner_.expect(":", "before types");
    types = attributes_.types();
  }
  if (types.size() != carried.size())
    reject("line {}: {}: {} types for {} values", op.line, op.name, types.size(), carried.size());
  for (size_t i = 0; i < carried.size(); ++i) carried[i].type = types[i];
  op.types = std::move(types);
  if (scanner_.accept("attributes")) attributes_.dictionary(op.attributes);
  for (const char* name : {"cond", "do"}) {
    scanner_.expect(name, "before a region");
    op.regions.push_back(region());
    op.regions.back().arguments = carried;
  }
}

/// Types of operands and results, or of those that are alike.
void Parser::resultTypes(Operation& op) {
  scanner_.expect(":", "before types");
  std::vector<Type> types = attributes_.types();
  if (scanner_.accept("->")) types = attributes_.types();
  const bool isLast = op.results.size() == 1 && types.size() > 1;
  if (isLast) types.erase(types.begin(), types.end() - 1);
  op.types = std::move(types);
}

std::string Operation::word(std::string_view key, size_t position) const {
  const auto found = attributes.find(key);
  if (found != attributes.end()) return found->second.text;
  return position < words.size() ? words[position] : "";
}

Program parseProgram(std::string_view text) { return Parser(text).read(); }

} // namespace candela::import::stablehlo
