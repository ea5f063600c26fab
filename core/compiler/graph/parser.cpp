#include <bit>
#include <filesystem>
#include <set>

#include "core/compiler/graph/checks.h"
#include "core/compiler/graph/loop.h"
#include "core/compiler/graph/text.h"
#include "core/support/text/literal.h"

namespace candela::graph {
namespace {

using text::Token, text::TokenKind;

/// Recursive descent over the grammar of docs/reference/cdl.md. A malformed text stops it; what is
/// wrong about the meaning is recorded and reading goes on, so that one run names everything.
class Parser {
public:
  Parser(std::string_view source, const std::string& file, Diagnostics& diagnostics)
      : in_(source, file, diagnostics),
        directory_(std::filesystem::path(file).parent_path().string()) {}

  /// Nullopt after a complaint.
  std::optional<Graph> parse() {
    const Token start = in_.peek();
    if (!in_.parseAll("graph", [&] { parseGraph(); })) return std::nullopt;
    if (!wrong_)
      if (const Status status = verify(graph_); !status) report(start, status.message());
    return wrong_ ? std::nullopt : std::optional(std::move(graph_));
  }

  /// The attributes of an op alone; what is wrong about them was told.
  Attrs parseAttrsOf(OpKind kind) {
    Attrs attrs;
    in_.parseAll("attributes", [&] { parseAttrs(attrs, &opInfo(kind)); });
    return attrs;
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
    std::shared_ptr<Graph> body;
  };

  /// Always false.
  bool report(const Token& at, std::string message) {
    wrong_ = true;
    in_.report(at, std::move(message));
    return false;
  }

  void parseGraph() {
    in_.expect("graph");
    graph_.name = in_.expect(TokenKind::symbol, "the name of the graph").text;
    parseRest();
  }

  /// A graph inside of a node, whose names are its own.
  std::shared_ptr<Graph> parseBody(const Token& start) {
    if (++depth_ > 2 * kMaxNesting) in_.fail(start, "bodies are nested {} deep", depth_);
    auto graph = std::make_shared<Graph>();
    std::set<std::string> names, poisoned;
    const auto exchange = [&] {
      std::swap(graph_, *graph);
      names_.swap(names);
      poisoned_.swap(poisoned);
    };
    exchange();
    parseRest();
    exchange();
    --depth_;
    return graph;
  }

  void parseRest() {
    in_.list("(", ")", [&] {
      const Token place = in_.expect(TokenKind::value, "an input");
      in_.expect(":");
      const TensorType type = parseType();
      if (define(place)) graph_.addInput(place.text, type);
    });
    in_.expect("->");
    std::vector<Output> outputs;
    in_.list("(", ")", [&] {
      const Token place = in_.expect(TokenKind::value, "an output");
      in_.expect(":");
      TensorType type = parseType();
      outputs.push_back(
          {place, std::move(type), in_.at(TokenKind::string) ? in_.take().text : place.text});
    });
    in_.expect("{");
    while (!in_.accept("}")) parseNode();
    for (const Output& output : outputs) addOutput(output);
  }

  void addOutput(const Output& output) {
    Value* value = graph_.find(output.place.text);
    if (poisoned_.count(output.place.text)) return;
    if (!value) {
      report(output.place, fmt::format("output {} is not defined", output.place.shown()));
    } else if (!agrees(output.type, value->type)) {
      report(output.place, fmt::format("output {} is declared {} but is {}", output.place.shown(),
                                       output.type.text(), value->type.text()));
    } else {
      graph_.addOutput(value, output.name);
    }
  }

  /// Whether the name is free; it is taken from here on.
  bool define(const Token& name) {
    return names_.insert(name.text).second ||
           report(name, fmt::format("{} is defined twice", name.shown()));
  }

  TensorType parseType() {
    const Token start = in_.peek();
    TensorType type;
    type.elem = in_.expectElem();
    in_.list("[", "]", [&] { type.dims.push_back(in_.expectInt("a dimension")); });
    if (in_.accept("{")) {
      parseTypeDetails(type);
      in_.expect("}");
    }
    if (const Status status = checkType(type, type.text()); !status)
      in_.fail(start, "{}", status.message());
    return type;
  }

  void parseTypeDetails(TensorType& type) {
    do {
      const Token word = in_.peek();
      if (in_.accept("layout")) {
        in_.list("[", "]", [&] { type.layout.steps.push_back(parseLayoutStep()); });
      } else if (in_.accept("halo")) {
        Halo halo;
        for (auto* widths : {&halo.lo, &halo.hi})
          in_.list("[", "]", [&] { widths->push_back(in_.expectInt("a width", 0, INT16_MAX)); });
        halo.fill = text::expectElement(in_, type.elem);
        type.halo = std::make_shared<const Halo>(std::move(halo));
      } else if (in_.accept("pad")) {
        if (!in_.at("zero") && !in_.at("zero_point"))
          in_.fail(in_.peek(), "expected zero or zero_point but found {}", in_.peek().shown());
        type.layout.pad = in_.take().text == "zero" ? Layout::Pad::zero : Layout::Pad::zeroPoint;
      } else {
        in_.fail(word, "expected layout, halo or pad but found {}", word.shown());
      }
    } while (in_.accept(","));
  }

  Layout::Step parseLayoutStep() {
    const Token dim = in_.expect(TokenKind::identifier, "a dim (d0, d1, ...)");
    if (dim.text.size() != 2 || dim.text[0] != 'd' || dim.text[1] < '0' || dim.text[1] > '9')
      in_.fail(dim, "expected a dim (d0, d1, ...) but found {}", dim.shown());
    const int64_t factor = in_.accept("%") ? in_.expectInt("a factor", 1, INT32_MAX) : 0;
    return {static_cast<uint8_t>(dim.text[1] - '0'), static_cast<uint32_t>(factor)};
  }

  Attr parseAttr(AttrType wanted) {
    const Token token = in_.peek();
    if (in_.at("[")) return parseListAttr(wanted);
    if (token.kind == TokenKind::string) return in_.take().text;
    if (token.is(TokenKind::identifier, "true") || token.is(TokenKind::identifier, "false"))
      return static_cast<int64_t>(in_.take().text == "true");
    if (token.kind == TokenKind::identifier && wanted == AttrType::Elem) return in_.expectElem();
    return parseNumber(wanted == AttrType::Float);
  }

  Attr parseNumber(bool real) {
    const Token token = in_.peek();
    if (token.kind == TokenKind::integer && !real) return in_.expectInt("an integer");
    const bool number = token.kind == TokenKind::integer || token.kind == TokenKind::real ||
                        token.kind == TokenKind::identifier;
    const auto value = number ? text::parseReal(token.text) : std::nullopt;
    if (!value) in_.fail(token, "expected the value of an attribute but found {}", token.shown());
    in_.take();
    return *value;
  }

  /// Integers alone are a list of integers unless the record wants numbers.
  Attr parseListAttr(AttrType wanted) {
    std::vector<int64_t> ints;
    std::vector<double> reals;
    in_.list("[", "]", [&] {
      const Attr element = parseNumber(wanted == AttrType::Floats);
      const int64_t* whole = std::get_if<int64_t>(&element);
      if (whole) ints.push_back(*whole);
      reals.push_back(whole ? static_cast<double>(*whole) : std::get<double>(element));
    });
    if (wanted == AttrType::Floats || ints.size() != reals.size()) return reals;
    return ints;
  }

  void parseAttrs(Attrs& attrs, const OpInfo* info) {
    in_.list("{", "}", [&] {
      const Token name = in_.expect(TokenKind::identifier, "an attribute");
      in_.expect("=");
      const AttrInfo* record = info ? info->attr(name.text) : nullptr;
      if (!attrs.emplace(name.text, parseAttr(record ? record->type : AttrType::Int)).second)
        report(name, fmt::format("attribute {} is given twice", name.text));
    });
  }

  void parseProvenance(Provenance& provenance) {
    in_.expect("(");
    do {
      mergeProvenance(provenance, {in_.expect(TokenKind::string, "the name of a node").text});
    } while (in_.accept(","));
    in_.expect(")");
  }

  Operation parseOperation() {
    Operation out;
    out.start = in_.peek();
    do {
      out.results.push_back(in_.expect(TokenKind::value, "a value or '}'"));
    } while (in_.accept(","));
    in_.expect("=");
    out.op = in_.expect(TokenKind::identifier, "an op");
    const auto kind = parseOp(out.op.text);
    if (kind == OpKind::Constant) out.payload = text::parsePayload(in_);
    // A value before '=' is the next node's result, not an operand that was left out here.
    while ((in_.at(TokenKind::value) && !in_.peek(1).is(TokenKind::punct, "=")) || in_.at("_")) {
      out.operands.push_back(in_.take());
      if (!in_.accept(",")) break;
    }
    if (in_.at("{")) parseAttrs(out.attrs, kind ? &opInfo(*kind) : nullptr);
    if (in_.accept("loc")) parseProvenance(out.provenance);
    if (in_.accept(":")) {
      do {
        out.types.push_back(parseType());
      } while (in_.accept(","));
    }
    if (in_.accept("loc")) parseProvenance(out.provenance);
    if (const Token start = in_.peek(); in_.accept("body")) out.body = parseBody(start);
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
      if (!absent && !operands.back())
        return report(token, fmt::format("{} is not defined", token.shown()));
    }
    const size_t count = operation.results.size();
    if (!operation.types.empty() && operation.types.size() != count)
      return report(operation.start,
                    fmt::format("{} results but {} types", count, operation.types.size()));
    if (operation.types.empty() && kind == OpKind::Constant)
      return report(operation.start, "a constant needs a type");
    std::vector<std::string> names;
    for (const Token& result : operation.results) names.push_back(result.text);
    std::vector<TensorType> types = operation.types;
    types.resize(count);
    Node* node = graph_.addNodeUnchecked(*kind, std::move(operands), operation.attrs,
                                         operation.provenance, std::move(types), nullptr, names);
    node->body = operation.body;
    if (kind != OpKind::Constant) return checkNode(operation, *node);
    const TensorType& type = operation.types[0];
    auto payload =
        text::resolvePayload(operation.payload, type.elem, type.count(), directory_, names[0]);
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
      return report(operation.start, fmt::format("{}: {} results, expected at most {}", name, count,
                                                 inferred->size()));
    }
    for (size_t i = 0; i < count; ++i) {
      Value* value = node.result(i);
      if (operation.types.empty()) {
        value->type = (*inferred)[i];
      } else if (!agrees(value->type, (*inferred)[i])) {
        report(operation.results[i], fmt::format("{}: result {} is declared {} but is {}",
                                                 nodeText(node), operation.results[i].shown(),
                                                 value->type.text(), (*inferred)[i].text()));
      }
    }
    return true;
  }

  text::TokenStream in_;
  std::string directory_;
  Graph graph_;
  std::set<std::string> names_, poisoned_;
  int depth_ = 0;
  bool wrong_ = false;
};

} // namespace

Result<Graph> parse(std::string_view text, const std::string& file, Diagnostics& diagnostics) {
  std::optional<Graph> graph = Parser(text, file, diagnostics).parse();
  if (!graph) return diagnostics.status();
  return *std::move(graph);
}

Result<Attrs> parseAttrs(std::string_view text, OpKind kind) {
  Diagnostics diagnostics;
  const std::string braced = fmt::format("{{{}}}", text);
  Attrs attrs = Parser(braced, "attributes", diagnostics).parseAttrsOf(kind);
  CDL_TRY(diagnostics.status());
  return attrs;
}

} // namespace candela::graph
