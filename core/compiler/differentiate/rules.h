#pragma once

#include <functional>
#include <set>

#include "core/compiler/differentiate/term.h"

/// What the rules share: one rule for each op of rules.inc, in rules/<family>.cpp.
namespace candela::differentiate {

/// The gradients of values on the way back: what was added up for each so far.
class Tape {
public:
  /// `depends`: the values that a gradient is wanted of, or that lie between those and the
  /// cotangents.
  Tape(graph::Graph& graph, std::set<const Value*> depends)
      : writer_{graph}, depends_(std::move(depends)) {}

  Writer& writer() { return writer_; }
  bool wants(const Value* value) const { return value && depends_.count(value) > 0; }
  Value* find(const Value* value) const {
    const auto found = sums_.find(value);
    return found == sums_.end() ? nullptr : found->second;
  }
  /// Of the value's type.
  void add(const Value* value, const Term& gradient);

private:
  Writer writer_;
  std::set<const Value*> depends_;
  std::map<const Value*, Value*> sums_;
};

/// One node on the way back: what its rule reads and gives. A rule gives for each operand what the
/// gradient of the results becomes of it, and builds nothing for operands that want none.
class Step {
public:
  Step(Tape& tape, const Node& node) : node(node), tape_(tape) {}

  const Node& node;

  Writer& writer() const { return tape_.writer(); }
  /// An operand that is there.
  Term x(size_t i) const { return {tape_.writer(), node.operand(i)}; }
  Term y(size_t i = 0) const { return {tape_.writer(), node.result(i)}; }
  bool hasOperand(size_t i) const { return node.operand(i) != nullptr; }
  /// Whether a gradient of the operand is wanted; false for one that is absent.
  bool wants(size_t i) const { return tape_.wants(node.operand(i)); }
  /// Whether a gradient of the result is there.
  bool has(size_t result) const {
    return result < node.results().size() && tape_.find(node.result(result));
  }
  /// The gradient of a result; zero where nothing uses it.
  Term dy(size_t result = 0) const;
  /// Adds to the gradient of an operand what `make` builds, summed over what broadcasting repeated.
  void give(size_t i, const std::function<Term()>& make) const;

  /// The same node with that many results in the place of this one, whose uses it takes over.
  std::vector<Term> withResults(int count) const;
  [[noreturn]] void refuse(const std::string& why) const;

private:
  Tape& tape_;
};

/// The values that depend on one of `wrt`, those themselves among them, through float values.
std::set<const Value*> dependents(const graph::Graph& graph, std::span<Value* const> wrt);
/// Walks the graph's nodes of now from the last one to the first, each through its rule. Throws
/// Failure.
void walkBack(Tape& tape, const graph::Graph& graph);

#define RULE(Kind, function) void function(const Step& step);
#define NO_RULE(Kind, reason)
#include "core/compiler/differentiate/rules.inc"
#undef RULE
#undef NO_RULE

/// The rule of an op; null where it has none.
using Rule = void (*)(const Step& step);
Rule ruleOf(OpKind kind);

} // namespace candela::differentiate
