#include "core/compiler/graph/graph.h"

#include <algorithm>
#include <utility>

#include "core/compiler/graph/checks.h"

namespace candela::graph {
namespace {

/// From the end: graphs are taken apart from there, and a constant may have as many users as there
/// are nodes.
void dropOneUse(std::vector<Node*>& users, const Node* user) {
  const auto found = std::find(users.rbegin(), users.rend(), user);
  CDL_CHECK(found != users.rend());
  users.erase(std::next(found).base());
}

/// A name for a result that nobody named: the op's.
std::string hintOf(const Node& node) {
  return node.provenance.empty() ? std::string(opName(node.kind)) : node.provenance.front();
}

} // namespace

void mergeProvenance(Provenance& into, const Provenance& from) {
  for (const std::string& name : from)
    if (std::find(into.begin(), into.end(), name) == into.end()) into.push_back(name);
}

bool Value::isConstant() const { return producer && producer->kind == OpKind::Constant; }

bool isPlain(const Value* value) { return value && value->type.layout.isRowMajor(); }

const Payload& Value::payload() const {
  CDL_CHECK(isConstant() && producer->payload, "value '{}' is no constant", name);
  return *producer->payload;
}

void Node::setOperand(size_t i, Value* value) {
  CDL_CHECK(i < operands_.size());
  if (operands_[i]) dropOneUse(operands_[i]->users_, this);
  operands_[i] = value;
  if (value) value->users_.push_back(this);
}

std::string Node::userName() const {
  if (!provenance.empty()) return provenance.front();
  return results_.empty() ? "" : results_.front()->name;
}

Value* Node::operandNamed(std::string_view name) const {
  const auto found = std::ranges::find(info().operands, name, &OperandInfo::name);
  return found == info().operands.end() ? nullptr : operand(found - info().operands.begin());
}

Status Node::fail(std::string_view constraint, const std::vector<std::string>& holes) const {
  const auto& constraints = info().constraints;
  const std::string own = fmt::format("{}_{}", opName(kind), constraint);
  const auto record = std::ranges::find_if(
      constraints, [&](const auto& c) { return c.id == constraint || c.id == own; });
  CDL_CHECK(record != constraints.end(), "{} has no constraint {}", opName(kind), constraint);
  std::string text;
  std::string_view rest = record->text;
  for (const std::string& hole : holes) {
    const size_t open = rest.find('{');
    const size_t close = rest.find('}');
    CDL_CHECK(open < close && close != std::string_view::npos, "{} has fewer than {} holes",
              constraint, holes.size());
    text += std::string(rest.substr(0, open)) + hole;
    rest.remove_prefix(close + 1);
  }
  CDL_CHECK(rest.find('{') == std::string_view::npos, "{} has more than {} holes", constraint,
            holes.size());
  return badModel("{}: {}{} ({})", nodeText(*this), text, rest, record->id);
}

std::string nodeText(const Node& node) {
  const std::string name = node.userName();
  return name.empty() ? std::string(opName(node.kind))
                      : fmt::format("{} '{}'", opName(node.kind), name);
}

Value* Graph::newValue(std::string_view hint, TensorType type) {
  auto value = std::make_unique<Value>();
  value->name = uniqueName(hint);
  value->type = std::move(type);
  Value* raw = value.get();
  byName_[raw->name] = raw;
  values_[raw] = std::move(value);
  return raw;
}

Value* Graph::addInput(std::string name, TensorType type) {
  inputs_.push_back(newValue(name, std::move(type)));
  return inputs_.back();
}

void Graph::addOutput(Value* value, std::string name) {
  CDL_CHECK(value);
  outputsOf_[value].push_back(outputs_.size());
  outputs_.push_back(value);
  outputNames_.push_back(std::move(name));
}

Node* Graph::addNodeUnchecked(OpKind kind, std::vector<Value*> operands, Attrs attrs,
                              Provenance provenance, std::vector<TensorType> resultTypes,
                              Node* before, const std::vector<std::string>& resultNames) {
  std::unique_ptr<Node> owned(new Node(kind));
  Node* node = owned.get();
  node->attrs = std::move(attrs);
  node->provenance = std::move(provenance);
  node->operands_ = std::move(operands);
  for (Value* operand : node->operands_)
    if (operand) operand->users_.push_back(node);
  for (size_t i = 0; i < resultTypes.size(); ++i) {
    Value* value = newValue(i < resultNames.size() ? resultNames[i] : hintOf(*node),
                            std::move(resultTypes[i]));
    value->producer = node;
    value->resultIndex = static_cast<int>(i);
    node->results_.push_back(value);
  }
  const auto place = before ? where_.at(before) : nodes_.end();
  where_[node] = nodes_.insert(place, std::move(owned));
  return node;
}

Result<Node*> Graph::addNode(OpKind kind, std::vector<Value*> operands, Attrs attrs,
                             Provenance provenance, Node* before, int resultCount) {
  Node trial(kind);
  trial.attrs = attrs;
  trial.provenance = provenance;
  trial.operands_ = operands;
  CDL_ASSIGN(std::vector<TensorType> types, inferTypes(trial));
  const auto& results = trial.info().results;
  const int required = static_cast<int>(std::count_if(
      results.begin(), results.end(), [](const OperandInfo& info) { return !info.optional; }));
  if (resultCount < required || resultCount > static_cast<int>(types.size()))
    return badModel("{}: {} results, expected {} to {}", nodeText(trial), resultCount, required,
                    types.size());
  types.resize(resultCount);
  return addNodeUnchecked(kind, std::move(operands), std::move(attrs), std::move(provenance),
                          std::move(types), before);
}

Value* Graph::addConstant(Payload payload, TensorType type, Provenance provenance, Node* before) {
  CDL_CHECK(payload.elem() == type.elem && payload.count() == type.physicalCount(),
            "payload of {} {} for {}", payload.count(), elemName(payload.elem()), type.text());
  Node* node =
      addNodeUnchecked(OpKind::Constant, {}, {}, std::move(provenance), {std::move(type)}, before);
  node->payload = std::move(payload);
  return node->result();
}

Value* Graph::addConstant(Tensor tensor, Provenance provenance, Node* before) {
  TensorType type(tensor.elem, tensor.dims);
  return addConstant(Payload::data(std::move(tensor)), std::move(type), std::move(provenance),
                     before);
}

void Graph::replaceAllUses(Value* from, Value* to) {
  CDL_CHECK(to);
  if (from == to) return;
  const std::vector<Node*> users = std::exchange(from->users_, {});
  for (Node* user : users)
    for (Value*& operand : user->operands_) {
      if (operand != from) continue;
      operand = to;
      to->users_.push_back(user);
    }
  const auto places = outputsOf_.extract(from);
  if (places.empty()) return;
  for (const size_t place : places.mapped()) {
    outputs_[place] = to;
    outputsOf_[to].push_back(place);
  }
}

void Graph::erase(Node* node) {
  for (Value* result : node->results_)
    CDL_CHECK(!isUsed(result), "value '{}' is still used", result->name);
  for (size_t i = 0; i < node->operands_.size(); ++i) node->setOperand(i, nullptr);
  for (Value* result : node->results_) {
    byName_.erase(result->name);
    values_.erase(result);
  }
  const auto place = where_.at(node);
  where_.erase(node);
  nodes_.erase(place);
}

int Graph::eraseDead() {
  int erased = 0;
  for (auto it = nodes_.end(); it != nodes_.begin();) {
    Node* node = std::prev(it)->get();
    const auto& results = node->results();
    if (std::any_of(results.begin(), results.end(),
                    [&](const Value* value) { return isUsed(value); })) {
      --it;
    } else {
      erase(node); // `it` stands behind it and stays valid
      ++erased;
    }
  }
  return erased;
}

bool Graph::isOutput(const Value* value) const { return outputsOf_.count(value) > 0; }

std::string Graph::uniqueName(std::string_view hint) {
  std::string name(hint.empty() ? "value" : hint);
  if (!byName_.count(name)) return name;
  int& counter = nameCounters_[name];
  std::string numbered;
  do {
    numbered = fmt::format("{}_{}", name, ++counter);
  } while (byName_.count(numbered));
  return numbered;
}

void Graph::rename(Value* value, std::string_view name) {
  if (value->name == name) return;
  byName_.erase(value->name);
  value->name = uniqueName(name);
  byName_[value->name] = value;
}

std::vector<Node*> Graph::snapshot() const {
  std::vector<Node*> nodes;
  for (const auto& node : nodes_) nodes.push_back(node.get());
  return nodes;
}

Value* Graph::find(std::string_view name) const {
  const auto found = byName_.find(name);
  return found == byName_.end() ? nullptr : found->second;
}

} // namespace candela::graph
