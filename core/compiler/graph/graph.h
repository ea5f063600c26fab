#pragma once

#include <list>
#include <map>
#include <unordered_map>
#include <variant>

#include "core/compiler/graph/op_info.h"
#include "core/compiler/graph/types.h"
#include "core/support/payload.h"

namespace candela::graph {

class Graph;
class Node;

/// The value of an attribute. Bool is an int of 0 or 1.
using AttrValue =
    std::variant<int64_t, double, std::vector<int64_t>, std::vector<double>, std::string, Elem>;

/// A value that is copied beside the object and moved in. Where memory ends while GCC 12 copies a
/// std::variant into a map, it destroys an alternative that was never made: a crash at -O1, an
/// endless loop at -O3.
struct Attr : AttrValue {
  using AttrValue::AttrValue;
  Attr() = default;
  Attr(Attr&&) = default;
  Attr(const Attr& other) : AttrValue() {
    const auto copy = [this](const auto& value) {
      auto made = value;
      emplace<std::decay_t<decltype(value)>>(std::move(made));
    };
    std::visit(copy, static_cast<const AttrValue&>(other));
  }
  Attr& operator=(Attr&&) = default;
  Attr& operator=(const Attr& other) {
    Attr made = other;
    return *this = std::move(made);
  }
};
using Attrs = std::map<std::string, Attr, std::less<>>;

/// The ONNX nodes that something came from, in order of first mention.
using Provenance = std::vector<std::string>;
/// Appends what `into` does not hold yet.
void mergeProvenance(Provenance& into, const Provenance& from);

inline Provenance mergedProvenance(Provenance first, const Provenance& second) {
  mergeProvenance(first, second);
  return first;
}

/// An SSA value: a graph input or a result of a node. Owned by the graph; addresses are stable.
class Value {
public:
  std::string name; ///< unique in the graph, without '%'
  TensorType type;
  Node* producer = nullptr; ///< null for a graph input
  int resultIndex = 0;

  const std::vector<Node*>& users() const { return users_; } ///< once per use
  bool isConstant() const;
  /// Only of a constant.
  const Payload& payload() const;
  Result<Tensor> tensor() const { return payload().materialize(type.shape()); }

private:
  friend class Graph;
  friend class Node;
  std::vector<Node*> users_;
};

/// A value (not null) that is row-major: what plain arithmetic may be done on.
bool isPlain(const Value* value);

/// One op instance. Owned by the graph.
class Node {
public:
  OpKind kind;
  Attrs attrs;
  Provenance provenance;
  std::optional<Payload> payload; ///< of Constant
  std::shared_ptr<Graph> body;    ///< of Loop, which alone has it; see loop.h

  const OpInfo& info() const { return opInfo(kind); }
  const std::vector<Value*>& operands() const { return operands_; }
  /// Null when absent or out of range.
  Value* operand(size_t i) const { return i < operands_.size() ? operands_[i] : nullptr; }
  /// Of the first one whose record has the name; null when there is none.
  Value* operandNamed(std::string_view name) const;
  const std::vector<Value*>& results() const { return results_; }
  Value* result(size_t i = 0) const { return results_[i]; }
  void setOperand(size_t i, Value* value);

  /// Attribute or the record's default; aborts when it has neither (the verifier saw to it).
  int64_t intAttr(std::string_view name) const;
  double floatAttr(std::string_view name) const;
  std::vector<int64_t> intsAttr(std::string_view name) const;
  /// Where it is not given: `count` times `otherwise`.
  std::vector<int64_t> intsAttr(std::string_view name, size_t count, int64_t otherwise) const;
  std::string stringAttr(std::string_view name) const;
  Elem elemAttr(std::string_view name) const;
  /// Whether it is given; a default does not count.
  bool hasAttr(std::string_view name) const { return attrs.find(name) != attrs.end(); }

  /// The name that the user knows: the first of provenance, else the first result's name.
  std::string userName() const;
  /// bad_model: "conv 'Conv_12': <constraint's text with {named} holes filled in order> (conv_c1)".
  /// Rules that several ops share name the constraint without the op: "c1".
  template <typename... Args> Status fail(std::string_view constraint, const Args&... args) const {
    return fail(constraint, std::vector<std::string>{fmt::format("{}", args)...});
  }
  Status fail(std::string_view constraint, const std::vector<std::string>& holes) const;

private:
  friend class Graph;
  explicit Node(OpKind kind) : kind(kind) {}
  std::vector<Value*> operands_; ///< null: an absent optional one
  std::vector<Value*> results_;
};

/// The high-level IR: a strongly typed dataflow graph in topological order. Not thread-safe.
class Graph {
public:
  std::string name = "main";

  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  /// the model's own names, same order
  std::vector<std::string>& outputNames() { return outputNames_; }
  const std::vector<std::string>& outputNames() const { return outputNames_; }
  const std::list<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  /// The nodes of now, so that a pass may insert and erase while it walks.
  std::vector<Node*> snapshot() const;
  size_t nodeCount() const { return nodes_.size(); }

  Value* addInput(std::string name, TensorType type);
  void addOutput(Value* value, std::string name);

  /// Appends (or inserts before `before`) a node and infers its result types. On failure the graph
  /// is unchanged. resultCount: how many of the record's results exist (trailing optional ones may
  /// be left out).
  Result<Node*> addNode(OpKind kind, std::vector<Value*> operands, Attrs attrs = {},
                        Provenance provenance = {}, Node* before = nullptr, int resultCount = 1);
  /// For parsers: result types are given, to be judged by the verifier. Results without a name are
  /// named after the node.
  Node* addNodeUnchecked(OpKind kind, std::vector<Value*> operands, Attrs attrs,
                         Provenance provenance, std::vector<TensorType> resultTypes,
                         Node* before = nullptr, const std::vector<std::string>& resultNames = {});
  Value* addConstant(Payload payload, TensorType type, Provenance provenance = {},
                     Node* before = nullptr);
  Value* addConstant(Tensor tensor, Provenance provenance = {}, Node* before = nullptr);

  /// Every use of `from`, graph outputs too, becomes `to`.
  void replaceAllUses(Value* from, Value* to);
  /// The results must be unused.
  void erase(Node* node);
  /// Erases nodes whose results nobody uses; returns how many.
  int eraseDead();
  bool isOutput(const Value* value) const;
  bool isUsed(const Value* value) const { return !value->users().empty() || isOutput(value); }
  /// A name that no value has: `hint`, or hint_1, hint_2, ...
  std::string uniqueName(std::string_view hint);
  void rename(Value* value, std::string_view name);
  Value* find(std::string_view name) const;

  /// Appends a copy of another graph's node under the same names, payloads shared. `copies`: the
  /// values of this graph that stand for those of the other one; the results join it. A body is
  /// copied.
  Node* addCopy(const Node& node, std::map<const Value*, Value*>& copies);

private:
  Value* newValue(std::string_view hint, TensorType type);
  std::list<std::unique_ptr<Node>> nodes_;
  std::map<const Node*, std::list<std::unique_ptr<Node>>::iterator> where_;
  std::map<const Value*, std::unique_ptr<Value>> values_;
  std::map<std::string, Value*, std::less<>> byName_;
  std::map<std::string, int, std::less<>> nameCounters_;
  std::vector<Value*> inputs_, outputs_;
  std::vector<std::string> outputNames_;
  /// the places of a value among outputs_
  std::unordered_map<const Value*, std::vector<size_t>> outputsOf_;
};

/// A type for every result of the record, optional ones too, by the op's inference in graph/ops/.
/// Checks arity, element types, attributes and constraints first. Failures name the op, the node
/// and the constraint.
Result<std::vector<TensorType>> inferTypes(const Node& node);

/// Everything that must hold of a graph: order, arity, types as inference gives them, unique names,
/// use lists.
Status verify(const Graph& graph);

// One per record of spec/ops/ or per rule that a record names, in graph/ops/<family>.cpp. Operands,
// types and attributes were checked against the record; what is left are shapes and constraints. A
// missing one is a link error.
#define CANDELA_OP(Kind, Rule) Result<std::vector<TensorType>> infer##Rule(const Node& node);
CANDELA_INFERENCES(CANDELA_OP)
#undef CANDELA_OP

} // namespace candela::graph
