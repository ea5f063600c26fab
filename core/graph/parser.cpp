#include <bit>
#include <filesystem>
#include <set>

#include "core/graph/checks.h"
#include "core/graph/text.h"
#include "core/support/text/literal.h"

namespace candela::graph {
namespace {

using text::Token;
using text::TokenKind;

/// Thrown where the text is malformed; the stream has recorded why.
struct Malformed {};

/// Recursive descent over the grammar of docs/reference/cdl.md. A malformed text stops it; what is
/// wrong about the meaning is recorded and reading goes on, so that one run names everything.
class Parser {
public:
  Parser(std::string_view source, const std::string& file, Diagnostics& diagnostics)
      : in_(source, file, diagnostics), directory_(std::filesystem::path(file).parent_path().string()) {}

  /// Nullopt after a complaint.
  std::optional<Graph> parse() {
    const Token start = in_.peek();
    try {
      parseGraph();
    } catch (const Malformed&) { return std::nullopt; }
    if (!wrong_)
      if (const Status status = verify(graph_); !status) report(start, status.message());
    return wrong_ || in_.failed() ? std::nullopt : std::optional(std::move(graph_));
  }

private:
  struct Output {
    Token place;
    TensorType type;
    std::string name;
  };
  struct Operation {
    Token start, op;
    std::vector<Token> results, operands;
    text::PayloadSyntax payload;
    Attrs attrs;
    Provenance provenance;
    std::vector<TensorType> types;
  };

  /// Always false.
  bool report(const Token& at, std::string message) {
    wrong_ = true;
    in_.report(at, std::move(message));
    return false;
  }
  [[noreturn]] void fail(const Token& at, std::string message) {
    in_.fail(at, std::move(message));
    throw Malformed();
  }
  void expect(std::string_view mark) {
    if (!in_.expect(mark)) throw Malformed();
  }
  Token expect(TokenKind kind, std::string_view what) {
    Token token = in_.peek();
    if (!in_.expect(kind, what, token.text)) throw Malformed();
    return token;
  }
  int64_t expectInt(std::string_view what) {
    int64_t value = 0;
    if (!in_.expectInt(what, value)) throw Malformed();
    return value;
  }
  /// Items between the marks, with commas; `item` reads one.
  template <typename Item> void list(std::string_view open, std::string_view close, Item item) {
    expect(open);
    while (!in_.at(close)) {
      item();
      if (!in_.accept(",")) break;
    }
    expect(close);
  }

  void parseGraph() {
    expect("graph");
    graph_.name = expect(TokenKind::symbol, "the name of the graph").text;
    list("(", ")", [&] {
      const Token place = expect(TokenKind::value, "an input");
      expect(":");
      const TensorType type = parseType();
      if (define(place)) graph_.addInput(place.text, type);
    });
    expect("->");
    std::vector<Output> outputs;
    list("(", ")", [&] {
      const Token place = expect(TokenKind::value, "an output");
      expect(":");
      TensorType type = parseType();
      outputs.push_back({place, std::move(type), in_.at(TokenKind::string) ? in_.take().text : place.text});
    });
    expect("{");
    while (!in_.accept("}")) parseNode();
    if (const Token rest = in_.peek(); rest.kind != TokenKind::end)
      fail(rest, fmt::format("expected one graph but found {} behind it", rest.shown()));
    for (const Output& output : outputs) addOutput(output);
  }

  void addOutput(const Output& output) {
    Value* value = graph_.find(output.place.text);
    if (poisoned_.count(output.place.text)) return;
    if (!value) {
      report(output.place, fmt::format("output {} is not defined", output.place.shown()));
    } else if (!agrees(output.type, value->type)) {
      report(output.place, fmt::format("output {} is declared {} but is {}", output.place.shown(), output.type.text(),
                                       value->type.text()));
    } else {
      graph_.addOutput(value, output.name);
    }
  }

  /// Whether the name is free; it is taken from here on.
  bool define(const Token& name) {
    return names_.insert(name.text).second || report(name, fmt::format("{} is defined twice", name.shown()));
  }

  Elem elemOf(const Token& token) {
    const auto elem = parseElem(token.text);
    if (!elem) fail(token, fmt::format("unknown element type '{}'", token.text));
    return *elem;
  }

  TensorType parseType() {
    const Token start = expect(TokenKind::identifier, "a type");
    TensorType type;
    type.elem = elemOf(start);
    list("[", "]", [&] {
      const bool exact = !in_.accept("<=");
      type.dims.push_back(Dim(expectInt("a dimension"), exact));
    });
    if (in_.accept("{")) {
      parseTypeDetails(type);
      expect("}");
    }
    if (const Status status = checkType(type, type.text()); !status) fail(start, status.message());
    return type;
  }

  void parseTypeDetails(TensorType& type) {
    Quant quant;
    bool quantized = false;
    do {
      const Token word = in_.peek();
      if (in_.accept("axis")) {
        const int64_t axis = expectInt("an axis");
        quant.axis = axis < 0 || axis > CDL_MAX_RANK ? INT32_MAX : static_cast<int>(axis);
      } else if (in_.accept("scale")) {
        quantized = true;
        list("[", "]", [&] { quant.scales.push_back(parseScale()); });
      } else if (in_.accept("zero")) {
        list("[", "]", [&] { quant.zeros.push_back(parseZero()); });
      } else if (in_.accept("layout")) {
        list("[", "]", [&] { type.layout.steps.push_back(parseLayoutStep()); });
      } else if (in_.accept("halo")) {
        Halo halo;
        for (auto* widths : {&halo.lo, &halo.hi}) list("[", "]", [&] { widths->push_back(parseWidth()); });
        const Token fill = in_.take();
        const auto bits = text::parseElement(type.elem, fill.text);
        if (!bits) fail(fill, bits.status().message());
        halo.fill = *bits;
        type.halo = std::make_shared<const Halo>(std::move(halo));
      } else if (in_.accept("pad")) {
        if (!in_.at("zero") && !in_.at("zero_point"))
          fail(in_.peek(), fmt::format("expected zero or zero_point but found {}", in_.peek().shown()));
        type.layout.pad = in_.take().text == "zero" ? Layout::Pad::zero : Layout::Pad::zeroPoint;
      } else {
        fail(word, fmt::format("expected axis, scale, zero, layout, halo or pad but found {}", word.shown()));
      }
    } while (in_.accept(","));
    if (!quantized && (quant.axis >= 0 || !quant.zeros.empty())) fail(in_.peek(), "axis and zero need a scale");
    if (quantized) type.quant = std::make_shared<const Quant>(std::move(quant));
  }

  uint32_t parseWidth() {
    const Token token = in_.peek();
    const int64_t width = expectInt("a width");
    if (width < 0 || width > INT16_MAX) fail(token, fmt::format("width {} is not within 0 .. {}", width, INT16_MAX));
    return static_cast<uint32_t>(width);
  }

  float parseScale() {
    const Token token = in_.peek();
    const auto bits = text::parseElement(Elem::f32_, token.text);
    if (!bits || token.kind == TokenKind::string)
      fail(token, fmt::format("expected a scale but found {}", token.shown()));
    in_.take();
    return std::bit_cast<float>(static_cast<uint32_t>(*bits));
  }

  int32_t parseZero() {
    const Token token = in_.peek();
    const int64_t zero = expectInt("a zero point");
    if (zero != static_cast<int32_t>(zero)) fail(token, fmt::format("zero point {} does not fit 32 bits", zero));
    return static_cast<int32_t>(zero);
  }

  Layout::Step parseLayoutStep() {
    const Token dim = expect(TokenKind::identifier, "a dim (d0, d1, ...)");
    if (dim.text.size() != 2 || dim.text[0] != 'd' || dim.text[1] < '0' || dim.text[1] > '9')
      fail(dim, fmt::format("expected a dim (d0, d1, ...) but found {}", dim.shown()));
    int64_t factor = 0;
    if (in_.accept("%")) {
      factor = expectInt("a factor");
      if (factor <= 0 || factor > INT32_MAX) fail(dim, fmt::format("layout factor {} is out of range", factor));
    }
    return {static_cast<uint8_t>(dim.text[1] - '0'), static_cast<uint32_t>(factor)};
  }

  Attr parseAttr(AttrType wanted) {
    const Token token = in_.peek();
    if (in_.at("[")) return parseListAttr(wanted);
    if (token.kind == TokenKind::string) return in_.take().text;
    if (token.is(TokenKind::identifier, "true") || token.is(TokenKind::identifier, "false"))
      return static_cast<int64_t>(in_.take().text == "true");
    if (token.kind == TokenKind::identifier && wanted == AttrType::Elem) return elemOf(in_.take());
    return parseNumber(wanted == AttrType::Float);
  }

  Attr parseNumber(bool real) {
    const Token token = in_.peek();
    if (token.kind == TokenKind::integer && !real) return expectInt("an integer");
    const bool number =
        token.kind == TokenKind::integer || token.kind == TokenKind::real || token.kind == TokenKind::identifier;
    const auto value = number ? text::parseReal(token.text) : std::nullopt;
    if (!value) fail(token, fmt::format("expected the value of an attribute but found {}", token.shown()));
    in_.take();
    return *value;
  }

  /// Integers alone are a list of integers unless the record wants numbers.
  Attr parseListAttr(AttrType wanted) {
    std::vector<int64_t> ints;
    std::vector<double> reals;
    list("[", "]", [&] {
      const Attr element = parseNumber(wanted == AttrType::Floats);
      const int64_t* whole = std::get_if<int64_t>(&element);
      if (whole) ints.push_back(*whole);
      reals.push_back(whole ? static_cast<double>(*whole) : std::get<double>(element));
    });
    if (wanted == AttrType::Floats || ints.size() != reals.size()) return reals;
    return ints;
  }

  void parseAttrs(Attrs& attrs, const OpInfo* info) {
    list("{", "}", [&] {
      const Token name = expect(TokenKind::identifier, "an attribute");
      expect("=");
      const AttrInfo* record = info ? info->attr(name.text) : nullptr;
      if (!attrs.emplace(name.text, parseAttr(record ? record->type : AttrType::Int)).second)
        report(name, fmt::format("attribute {} is given twice", name.text));
    });
  }

  void parseProvenance(Provenance& provenance) {
    expect("(");
    do { mergeProvenance(provenance, {expect(TokenKind::string, "the name of a node").text}); } while (in_.accept(","));
    expect(")");
  }

  Operation parseOperation() {
    Operation out;
    out.start = in_.peek();
    do { out.results.push_back(expect(TokenKind::value, "a value or '}'")); } while (in_.accept(","));
    expect("=");
    out.op = expect(TokenKind::identifier, "an op");
    const auto kind = parseOp(out.op.text);
    if (kind == OpKind::Constant && !text::parsePayload(in_, out.payload)) throw Malformed();
    // A value before '=' is the next node's result, not an operand that was left out here.
    while ((in_.at(TokenKind::value) && !in_.peek(1).is(TokenKind::punct, "=")) || in_.at("_")) {
      out.operands.push_back(in_.take());
      if (!in_.accept(",")) break;
    }
    if (in_.at("{")) parseAttrs(out.attrs, kind ? &opInfo(*kind) : nullptr);
    if (in_.accept("loc")) parseProvenance(out.provenance);
    if (in_.accept(":")) {
      do { out.types.push_back(parseType()); } while (in_.accept(","));
    }
    if (in_.accept("loc")) parseProvenance(out.provenance);
    return out;
  }

  void parseNode() {
    const Operation operation = parseOperation();
    bool free = true;
    for (const Token& result : operation.results) free = define(result) && free;
    if (free && addNode(operation)) return;
    for (const Token& result : operation.results)
      if (!graph_.find(result.text)) poisoned_.insert(result.text);
  }

  /// False when the results do not exist afterwards; what uses them is then not looked at.
  bool addNode(const Operation& operation) {
    const auto kind = parseOp(operation.op.text);
    if (!kind) return report(operation.op, fmt::format("unknown op '{}'", operation.op.text));
    std::vector<Value*> operands;
    for (const Token& token : operation.operands) {
      const bool absent = token.kind != TokenKind::value;
      if (!absent && poisoned_.count(token.text)) return false;
      operands.push_back(absent ? nullptr : graph_.find(token.text));
      if (!absent && !operands.back()) return report(token, fmt::format("{} is not defined", token.shown()));
    }
    const size_t count = operation.results.size();
    if (!operation.types.empty() && operation.types.size() != count)
      return report(operation.start, fmt::format("{} results but {} types", count, operation.types.size()));
    if (operation.types.empty() && kind == OpKind::Constant) return report(operation.start, "a constant needs a type");
    std::vector<std::string> names;
    for (const Token& result : operation.results) names.push_back(result.text);
    std::vector<TensorType> types = operation.types;
    types.resize(count);
    Node* node = graph_.addNodeUnchecked(*kind, std::move(operands), operation.attrs, operation.provenance,
                                         std::move(types), nullptr, names);
    if (kind != OpKind::Constant) return checkNode(operation, *node);
    const TensorType& type = operation.types[0];
    auto payload = text::resolvePayload(operation.payload, type.elem, type.count(), directory_, names[0]);
    if (!payload) report(operation.payload.start, payload.status().message());
    if (payload) node->payload = std::move(*payload);
    return true;
  }

  bool checkNode(const Operation& operation, Node& node) {
    const auto inferred = inferTypes(node);
    if (!inferred) {
      report(operation.start, inferred.status().message());
      if (!operation.types.empty()) return true; // what was declared serves the nodes that follow
      graph_.erase(&node);
      return false;
    }
    const size_t count = operation.results.size();
    if (count > inferred->size()) {
      const std::string name = nodeText(node);
      graph_.erase(&node);
      return report(operation.start, fmt::format("{}: {} results, expected at most {}", name, count, inferred->size()));
    }
    for (size_t i = 0; i < count; ++i) {
      Value* value = node.result(i);
      if (operation.types.empty()) {
        value->type = (*inferred)[i];
      } else if (!agrees(value->type, (*inferred)[i])) {
        report(operation.results[i],
               fmt::format("{}: result {} is declared {} but is {}", nodeText(node), operation.results[i].shown(),
                           value->type.text(), (*inferred)[i].text()));
      }
    }
    return true;
  }

  text::TokenStream in_;
  std::string directory_;
  Graph graph_;
  std::set<std::string> names_, poisoned_;
  bool wrong_ = false;
};

} // namespace

Result<Graph> parse(std::string_view text, const std::string& file, Diagnostics& diagnostics) {
  std::optional<Graph> graph = Parser(text, file, diagnostics).parse();
  if (!graph) return diagnostics.status();
  return *std::move(graph);
}

} // namespace candela::graph
