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

/// Recursive descent over the grammar of docs/reference/cdl.md. A malformed text stops it; what is
/// wrong about the meaning is recorded and reading goes on, so that one run names everything.
class Parser {
public:
  Parser(std::string_view source, const std::string& file, Diagnostics& diagnostics)
      : in_(source, file, diagnostics), directory_(std::filesystem::path(file).parent_path().string()) {}

  Graph parse() {
    const Token start = in_.peek();
    if (in_.expect("graph") && in_.expect(TokenKind::symbol, "the name of the graph", graph_.name)) {
      parseInputs();
      parseOutputs();
      in_.expect("{");
      while (!in_.failed() && !in_.accept("}")) parseNode();
      const Token rest = in_.peek();
      if (!in_.failed() && rest.kind != TokenKind::end)
        in_.fail(rest, fmt::format("expected one graph but found {} behind it", rest.shown()));
      if (!in_.failed()) resolveOutputs();
    }
    if (!wrong_ && !in_.failed())
      if (const Status status = verify(graph_); !status) report(start, status.message());
    return std::move(graph_);
  }

  bool failed() const { return wrong_ || in_.failed(); }

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

  void report(const Token& at, std::string message) {
    wrong_ = true;
    in_.report(at, std::move(message));
  }

  void parseInputs() {
    in_.expect("(");
    while (!in_.failed() && !in_.at(")")) {
      const Token place = in_.peek();
      std::string name;
      TensorType type;
      if (!in_.expect(TokenKind::value, "an input", name) || !in_.expect(":") || !parseType(type)) return;
      if (define(place)) graph_.addInput(name, type);
      if (!in_.accept(",")) break;
    }
    in_.expect(")");
  }

  void parseOutputs() {
    in_.expect("->");
    in_.expect("(");
    while (!in_.failed() && !in_.at(")")) {
      Output output;
      output.place = in_.peek();
      if (!in_.expect(TokenKind::value, "an output", output.name) || !in_.expect(":") || !parseType(output.type))
        return;
      if (in_.at(TokenKind::string)) output.name = in_.take().text;
      outputs_.push_back(std::move(output));
      if (!in_.accept(",")) break;
    }
    in_.expect(")");
  }

  void resolveOutputs() {
    for (const Output& output : outputs_) {
      Value* value = graph_.find(output.place.text);
      if (poisoned_.count(output.place.text)) continue;
      if (!value) {
        report(output.place, fmt::format("output {} is not defined", output.place.shown()));
      } else if (!agrees(output.type, value->type)) {
        report(output.place, fmt::format("output {} is declared {} but is {}", output.place.shown(), output.type.text(),
                                         value->type.text()));
      } else {
        graph_.addOutput(value, output.name);
      }
    }
  }

  /// Whether the name is free; it is taken from here on.
  bool define(const Token& name) {
    if (names_.insert(name.text).second) return true;
    report(name, fmt::format("{} is defined twice", name.shown()));
    return false;
  }

  bool parseDims(TensorType& type) {
    if (!in_.expect("[")) return false;
    while (!in_.at("]")) {
      const bool exact = !in_.accept("<=");
      int64_t bound = 0;
      if (!in_.expectInt("a dimension", bound)) return false;
      type.dims.push_back(Dim(bound, exact));
      if (!in_.accept(",")) break;
    }
    return in_.expect("]");
  }

  bool parseType(TensorType& type) {
    const Token start = in_.peek();
    std::string name;
    if (!in_.expect(TokenKind::identifier, "a type", name)) return false;
    const auto elem = parseElem(name);
    if (!elem) {
      in_.fail(start, fmt::format("unknown element type '{}'", name));
      return false;
    }
    type.elem = *elem;
    if (!parseDims(type)) return false;
    if (in_.accept("{") && (!parseTypeDetails(type) || !in_.expect("}"))) return false;
    if (const Status status = checkType(type, type.text()); !status) {
      in_.fail(start, status.message());
      return false;
    }
    return true;
  }

  bool parseTypeDetails(TensorType& type) {
    Quant quant;
    bool quantized = false;
    do {
      const Token word = in_.peek();
      int64_t axis = 0;
      if (in_.accept("axis")) {
        if (!in_.expectInt("an axis", axis)) return false;
        quant.axis = axis < 0 || axis > CDL_MAX_RANK ? INT32_MAX : static_cast<int>(axis);
      } else if (in_.accept("scale")) {
        quantized = true;
        if (!parseScales(quant.scales)) return false;
      } else if (in_.accept("zero")) {
        if (!parseZeros(quant.zeros)) return false;
      } else if (in_.accept("layout")) {
        if (!parseLayout(type.layout)) return false;
      } else if (in_.accept("pad")) {
        if (!in_.at("zero") && !in_.at("zero_point")) {
          in_.fail(in_.peek(), fmt::format("expected zero or zero_point but found {}", in_.peek().shown()));
          return false;
        }
        type.layout.pad = in_.take().text == "zero" ? Layout::Pad::zero : Layout::Pad::zeroPoint;
      } else {
        in_.fail(word, fmt::format("expected axis, scale, zero, layout or pad but found {}", word.shown()));
        return false;
      }
    } while (in_.accept(","));
    if (!quantized && (quant.axis >= 0 || !quant.zeros.empty())) {
      in_.fail(in_.peek(), "axis and zero need a scale");
      return false;
    }
    if (quantized) type.quant = std::make_shared<const Quant>(std::move(quant));
    return true;
  }

  /// [value, value]; `take` reads one value.
  template <typename Take> bool parseList(Take take) {
    if (!in_.expect("[")) return false;
    while (!in_.at("]")) {
      if (!take()) return false;
      if (!in_.accept(",")) break;
    }
    return in_.expect("]");
  }

  bool parseScales(std::vector<float>& scales) {
    return parseList([&] {
      const Token token = in_.peek();
      const auto bits = text::parseElement(Elem::f32_, token.text);
      if (!bits || token.kind == TokenKind::string) {
        in_.fail(token, fmt::format("expected a scale but found {}", token.shown()));
        return false;
      }
      in_.take();
      scales.push_back(std::bit_cast<float>(static_cast<uint32_t>(*bits)));
      return true;
    });
  }

  bool parseZeros(std::vector<int32_t>& zeros) {
    return parseList([&] {
      const Token token = in_.peek();
      int64_t zero = 0;
      if (!in_.expectInt("a zero point", zero)) return false;
      if (zero != static_cast<int32_t>(zero)) in_.fail(token, fmt::format("zero point {} does not fit 32 bits", zero));
      zeros.push_back(static_cast<int32_t>(zero));
      return !in_.failed();
    });
  }

  bool parseLayout(Layout& layout) {
    return parseList([&] {
      const Token token = in_.peek();
      Layout::Step step;
      int64_t factor = 0;
      std::string name;
      if (!in_.expect(TokenKind::identifier, "a dim (d0, d1, ...)", name)) return false;
      if (name.size() != 2 || name[0] != 'd' || name[1] < '0' || name[1] > '9') {
        in_.fail(token, fmt::format("expected a dim (d0, d1, ...) but found {}", token.shown()));
        return false;
      }
      step.dim = static_cast<uint8_t>(name[1] - '0');
      if (in_.accept("%")) {
        if (!in_.expectInt("a factor", factor)) return false;
        if (factor <= 0 || factor > INT32_MAX) in_.fail(token, fmt::format("layout factor {} is out of range", factor));
        step.factor = static_cast<uint32_t>(factor);
      }
      layout.steps.push_back(step);
      return !in_.failed();
    });
  }

  bool parseAttr(Attr& attr, AttrType wanted) {
    const Token token = in_.peek();
    if (in_.at("[")) return parseListAttr(attr, wanted);
    if (token.kind == TokenKind::string) {
      attr = in_.take().text;
      return true;
    }
    if (token.kind == TokenKind::identifier && (token.text == "true" || token.text == "false")) {
      attr = static_cast<int64_t>(in_.take().text == "true");
      return true;
    }
    if (token.kind == TokenKind::identifier && wanted == AttrType::Elem) {
      const auto elem = parseElem(token.text);
      if (!elem) in_.fail(token, fmt::format("unknown element type '{}'", token.text));
      attr = elem.value_or(Elem::none);
      in_.take();
      return !in_.failed();
    }
    return parseNumber(attr, wanted == AttrType::Float);
  }

  bool parseNumber(Attr& attr, bool real) {
    const Token token = in_.peek();
    if (token.kind == TokenKind::integer && !real) {
      int64_t value = 0;
      if (!in_.expectInt("an integer", value)) return false;
      attr = value;
      return true;
    }
    const bool number =
        token.kind == TokenKind::integer || token.kind == TokenKind::real || token.kind == TokenKind::identifier;
    const auto value = number ? text::parseReal(token.text) : std::nullopt;
    if (!value) {
      in_.fail(token, fmt::format("expected the value of an attribute but found {}", token.shown()));
      return false;
    }
    in_.take();
    attr = *value;
    return true;
  }

  bool parseListAttr(Attr& attr, AttrType wanted) {
    std::vector<int64_t> ints;
    std::vector<double> reals;
    const bool read = parseList([&] {
      Attr element;
      if (!parseNumber(element, wanted == AttrType::Floats)) return false;
      if (const int64_t* value = std::get_if<int64_t>(&element)) {
        ints.push_back(*value);
        reals.push_back(static_cast<double>(*value));
      } else {
        reals.push_back(std::get<double>(element));
      }
      return true;
    });
    if (wanted == AttrType::Floats || ints.size() != reals.size()) {
      attr = std::move(reals);
    } else {
      attr = std::move(ints);
    }
    return read;
  }

  bool parseAttrs(Attrs& attrs, const OpInfo* info) {
    while (!in_.at("}")) {
      const Token name = in_.peek();
      std::string key;
      if (!in_.expect(TokenKind::identifier, "an attribute", key) || !in_.expect("=")) return false;
      const AttrInfo* record = info ? info->attr(key) : nullptr;
      Attr attr;
      if (!parseAttr(attr, record ? record->type : AttrType::Int)) return false;
      if (!attrs.emplace(key, std::move(attr)).second) report(name, fmt::format("attribute {} is given twice", key));
      if (!in_.accept(",")) break;
    }
    return in_.expect("}");
  }

  bool parseProvenance(Provenance& provenance) {
    if (!in_.expect("(")) return false;
    do {
      std::string name;
      if (!in_.expect(TokenKind::string, "the name of a node", name)) return false;
      mergeProvenance(provenance, {name});
    } while (in_.accept(","));
    return in_.expect(")");
  }

  bool parseOperation(Operation& out) {
    out.start = in_.peek();
    do {
      const Token token = in_.peek();
      std::string name;
      if (!in_.expect(TokenKind::value, "a value or '}'", name)) return false;
      out.results.push_back(token);
    } while (in_.accept(","));
    std::string op;
    if (!in_.expect("=")) return false;
    out.op = in_.peek();
    if (!in_.expect(TokenKind::identifier, "an op", op)) return false;
    const auto kind = parseOp(op);
    if (kind == OpKind::Constant && !text::parsePayload(in_, out.payload)) return false;
    // A value before '=' is the next node's result, not an operand that was left out here.
    while ((in_.at(TokenKind::value) && !in_.peek(1).is(TokenKind::punct, "=")) || in_.at("_")) {
      out.operands.push_back(in_.take());
      if (!in_.accept(",")) break;
    }
    if (in_.accept("{") && !parseAttrs(out.attrs, kind ? &opInfo(*kind) : nullptr)) return false;
    if (in_.accept("loc") && !parseProvenance(out.provenance)) return false;
    if (in_.accept(":")) {
      do {
        if (!parseType(out.types.emplace_back())) return false;
      } while (in_.accept(","));
    }
    return !in_.accept("loc") || parseProvenance(out.provenance);
  }

  void parseNode() {
    Operation operation;
    if (!parseOperation(operation)) return;
    bool free = true;
    for (const Token& result : operation.results) free = define(result) && free;
    if (free && addNode(operation)) return;
    for (const Token& result : operation.results)
      if (!graph_.find(result.text)) poisoned_.insert(result.text);
  }

  /// False when the results do not exist afterwards; what uses them is then not looked at.
  bool addNode(const Operation& operation) {
    const auto kind = parseOp(operation.op.text);
    if (!kind) {
      report(operation.op, fmt::format("unknown op '{}'", operation.op.text));
      return false;
    }
    std::vector<Value*> operands;
    for (const Token& token : operation.operands) {
      const bool absent = token.kind != TokenKind::value;
      if (!absent && poisoned_.count(token.text)) return false;
      operands.push_back(absent ? nullptr : graph_.find(token.text));
      if (absent || operands.back()) continue;
      report(token, fmt::format("{} is not defined", token.shown()));
      return false;
    }
    const size_t count = operation.results.size();
    if (!operation.types.empty() && operation.types.size() != count) {
      report(operation.start, fmt::format("{} results but {} types", count, operation.types.size()));
      return false;
    }
    if (operation.types.empty() && kind == OpKind::Constant) {
      report(operation.start, "a constant needs a type");
      return false;
    }
    std::vector<std::string> names;
    for (const Token& result : operation.results) names.push_back(result.text);
    std::vector<TensorType> types = operation.types;
    types.resize(count);
    Node* node = graph_.addNodeUnchecked(*kind, std::move(operands), operation.attrs, operation.provenance, types,
                                         nullptr, names);
    if (kind == OpKind::Constant) return addContent(operation, *node);
    return checkNode(operation, *node);
  }

  bool addContent(const Operation& operation, Node& node) {
    const TensorType& type = operation.types[0];
    auto payload = text::resolvePayload(operation.payload, type.elem, type.count(), directory_, node.result()->name);
    if (!payload) {
      report(operation.payload.start, payload.status().message());
    } else {
      node.payload = std::move(*payload);
    }
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
      report(operation.start,
             fmt::format("{}: {} results, expected at most {}", nodeText(node), count, inferred->size()));
      graph_.erase(&node);
      return false;
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
  std::vector<Output> outputs_;
  std::set<std::string> names_, poisoned_;
  bool wrong_ = false;
};

} // namespace

Result<Graph> parse(std::string_view text, const std::string& file, Diagnostics& diagnostics) {
  Parser parser(text, file, diagnostics);
  Graph graph = parser.parse();
  if (parser.failed()) return diagnostics.status();
  return graph;
}

} // namespace candela::graph
