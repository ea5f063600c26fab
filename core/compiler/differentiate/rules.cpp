#include "core/compiler/differentiate/rules.h"

#include "core/compiler/differentiate/differentiate.h"

namespace candela::differentiate {
namespace {

struct Entry {
  Rule rule = nullptr;
  std::string_view reason;
};

Entry entryOf(OpKind kind) {
  switch (kind) { // without a default: a record without a line in rules.inc does not compile
  case OpKind::Constant: return {nullptr, "it has no operands"};
#define RULE(Kind, function)                                                                       \
  case OpKind::Kind: return {function, ""};
#define NO_RULE(Kind, reason)                                                                      \
  case OpKind::Kind: return {nullptr, reason};
#include "core/compiler/differentiate/rules.inc"
#undef RULE
#undef NO_RULE
  }
  CDL_CHECK(false, "op {} is none", static_cast<int>(kind));
}

} // namespace

Rule ruleOf(OpKind kind) { return entryOf(kind).rule; }

std::string_view reasonWithout(OpKind kind) { return entryOf(kind).reason; }

Term Step::dy(size_t result) const {
  if (Value* sum = tape_.find(node.result(result))) return {tape_.writer(), sum};
  return zerosLike(y(result));
}

void Step::give(size_t i, const std::function<Term()>& make) const {
  if (wants(i)) tape_.add(node.operand(i), make().sumTo(node.operand(i)->type.shape()));
}

std::vector<Term> Step::withResults(int count) const {
  graph::Graph& graph = writer().graph;
  Node* self = node.result()->producer;
  Node* fuller =
      need(graph.addNode(node.kind, node.operands(), node.attrs, node.provenance, self, count));
  for (size_t i = 0; i < node.results().size(); ++i)
    graph.replaceAllUses(node.result(i), fuller->result(i));
  std::vector<Term> results;
  for (Value* result : fuller->results()) results.emplace_back(writer(), result);
  return results;
}

void Step::refuse(const std::string& why) const {
  throw Failure{failure(Code::unsupported, "{} '{}' has no gradient: {}", node.info().name,
                        node.userName(), why)};
}

void Tape::add(const Value* value, const Term& gradient) {
  CDL_CHECK(gradient.elem() == value->type.elem && gradient.shape() == value->type.shape(),
            "gradient {} of {} {}", gradient.value()->type.text(), value->name, value->type.text());
  Value*& sum = sums_[value];
  sum = sum ? (Term(writer_, sum) + gradient).value() : gradient.value();
}

} // namespace candela::differentiate
