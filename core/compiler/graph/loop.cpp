#include "core/compiler/graph/loop.h"

#include <algorithm>

#include "core/compiler/graph/checks.h"

namespace candela::graph {

LoopForm loopForm(const Node& node) {
  LoopForm form;
  form.trips = node.intAttr("trips");
  form.carried = static_cast<size_t>(node.intAttr("carried"));
  form.scanned = static_cast<size_t>(node.intAttr("scanned"));
  if (node.hasAttr("backward")) form.backward = node.intsAttr("backward");
  return form;
}

Result<Node*> addLoop(Graph& graph, const LoopForm& form, std::vector<Value*> operands, Graph body,
                      Provenance provenance, Node* before) {
  Attrs attrs{{"trips", form.trips},
              {"carried", static_cast<int64_t>(form.carried)},
              {"scanned", static_cast<int64_t>(form.scanned)}};
  if (std::ranges::count(form.backward, 0) != std::ssize(form.backward))
    attrs.emplace("backward", form.backward);
  const size_t results = body.outputs().size();
  Node* node =
      graph.addNodeUnchecked(OpKind::Loop, std::move(operands), std::move(attrs),
                             std::move(provenance), std::vector<TensorType>(results), before);
  node->body = std::make_shared<Graph>(std::move(body));
  auto types = inferTypes(*node);
  Status status = types ? verifyBody(*node) : types.status();
  if (!status) {
    graph.erase(node);
    return status;
  }
  for (size_t i = 0; i < results; ++i) node->result(i)->type = (*types)[i];
  return node;
}

Node* Graph::addCopy(const Node& node, std::map<const Value*, Value*>& copies) {
  std::vector<Value*> operands;
  std::vector<TensorType> types;
  std::vector<std::string> names;
  for (const Value* operand : node.operands())
    operands.push_back(operand ? copies.at(operand) : nullptr);
  for (const Value* result : node.results()) {
    types.push_back(result->type);
    names.push_back(result->name);
  }
  Node* copy = addNodeUnchecked(node.kind, std::move(operands), node.attrs, node.provenance,
                                std::move(types), nullptr, names);
  copy->payload = node.payload;
  if (node.body) copy->body = std::make_shared<Graph>(clone(*node.body));
  for (size_t i = 0; i < names.size(); ++i) copies[node.result(i)] = copy->result(i);
  return copy;
}

Graph clone(const Graph& graph) {
  Graph out;
  out.name = graph.name;
  std::map<const Value*, Value*> copies;
  for (const Value* input : graph.inputs()) copies[input] = out.addInput(input->name, input->type);
  for (const auto& node : graph.nodes()) out.addCopy(*node, copies);
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    out.addOutput(copies.at(graph.outputs()[i]), graph.outputNames()[i]);
  return out;
}

std::vector<Graph*> nestedGraphs(Graph& graph) {
  std::vector<Graph*> all;
  for (const auto& node : graph.nodes()) {
    if (!node->body) continue;
    const std::vector<Graph*> inner = nestedGraphs(*node->body);
    all.insert(all.end(), inner.begin(), inner.end());
  }
  all.push_back(&graph);
  return all;
}

std::vector<const Graph*> nestedGraphs(const Graph& graph) {
  const std::vector<Graph*> all = nestedGraphs(const_cast<Graph&>(graph));
  return {all.begin(), all.end()};
}

int nestingDepth(const Node& node) {
  if (!node.body) return 0;
  int inner = 0;
  for (const auto& each : node.body->nodes()) inner = std::max(inner, nestingDepth(*each));
  return inner + (node.kind == OpKind::Loop);
}

Status verifyBody(const Node& node) {
  if (!node.body) return Status::ok();
  if (!node.info().has(kTraitRegion))
    return badModel("{}: only a loop or a custom op has a body", nodeText(node));
  if (node.results().size() != node.body->outputs().size())
    return badModel("{}: {} results, its body has {} outputs", nodeText(node),
                    node.results().size(), node.body->outputs().size());
  return verify(*node.body).context(nodeText(node));
}

} // namespace candela::graph
