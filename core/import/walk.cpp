#include <algorithm>
#include <set>
#include <unordered_map>

#include "core/import/bind_dims.h"
#include "core/import/history.h"
#include "core/import/step.h"

namespace candela::import {
namespace {

struct Order {
  std::vector<size_t> nodes; ///< every node that can run, producers first, otherwise in the file's order
  std::vector<size_t> stuck; ///< nodes in or behind a cycle, in the file's order
  std::vector<size_t> cycle; ///< one of the cycles: each node reads a result of the one before, the
                             ///< first of the last
};

/// Follows producers that are stuck themselves until a node comes again.
std::vector<size_t> findCycle(const std::vector<std::vector<size_t>>& producers, const std::vector<bool>& isStuck,
                              size_t start) {
  std::vector<size_t> path;
  std::vector<size_t> position(isStuck.size(), SIZE_MAX);
  for (size_t node = start;;) {
    if (position[node] != SIZE_MAX) {
      path.erase(path.begin(), path.begin() + static_cast<ptrdiff_t>(position[node]));
      std::reverse(path.begin(), path.end());
      return path;
    }
    position[node] = path.size();
    path.push_back(node);
    node = *std::find_if(producers[node].begin(), producers[node].end(), [&](size_t p) { return isStuck[p]; });
  }
}

/// Names that no node defines do not hold a node back: they are the walk's to judge.
Order topologicalOrder(const std::vector<onnx_io::Node>& nodes) {
  std::unordered_map<std::string_view, size_t> definedBy;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string& output : nodes[i].outputs)
      if (!output.empty()) definedBy.emplace(output, i);

  std::vector<std::vector<size_t>> producers(nodes.size()), consumers(nodes.size());
  std::vector<size_t> missing(nodes.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string& input : nodes[i].inputs)
      if (const auto found = definedBy.find(input); found != definedBy.end()) {
        producers[i].push_back(found->second);
        consumers[found->second].push_back(i);
        ++missing[i];
      }

  Order order;
  std::set<size_t> ready; // the earliest in the file first
  for (size_t i = 0; i < nodes.size(); ++i)
    if (missing[i] == 0) ready.insert(i);
  while (!ready.empty()) {
    const size_t node = ready.extract(ready.begin()).value();
    order.nodes.push_back(node);
    for (size_t consumer : consumers[node])
      if (--missing[consumer] == 0) ready.insert(consumer);
  }
  if (order.nodes.size() == nodes.size()) return order;

  std::vector<bool> isStuck(nodes.size(), true);
  for (size_t node : order.nodes) isStuck[node] = false;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (isStuck[i]) order.stuck.push_back(i);
  order.cycle = findCycle(producers, isStuck, order.stuck.front());
  return order;
}

constexpr int kMaxDepth = 64;
constexpr int64_t kMaxNodes = 1000000;

std::string functionName(const onnx_io::Function& function) {
  return fmt::format("{}{}{}", qualified(function.domain, function.name), function.overload.empty() ? "" : ":",
                     function.overload);
}

/// The model's own functions, by (domain, name, overload).
class Functions {
public:
  /// Complains about functions that are defined twice, call themselves, nest deeper than 64 or
  /// would inline to more than a million nodes. After a complaint nothing must be inlined.
  Functions(const onnx_io::Model& model, Complaints& complaints) {
    for (const onnx_io::Function& function : model.functions)
      if (!byKey_.emplace(Key(function.domain, function.name, function.overload), &function).second)
        complaints.add(badModel("function '{}' is defined twice", functionName(function)));
    std::vector<const onnx_io::Function*> stack;
    Size size;
    complaints.add(measure(model.graph.nodes, stack, size));
  }

  const onnx_io::Function* find(const onnx_io::Node& node) const {
    const auto found = byKey_.find(Key(node.domain, node.opType, node.overload));
    return found == byKey_.end() ? nullptr : found->second;
  }

private:
  using Key = std::tuple<std::string, std::string, std::string>;
  struct Size {
    int64_t nodes = 0;
    int depth = 0;
  };
  /// Of the nodes with everything that they call; saturates. Failures name the chain of calls.
  Status measure(const std::vector<onnx_io::Node>& nodes, std::vector<const onnx_io::Function*>& stack, Size& size) {
    for (const onnx_io::Node& node : nodes) {
      const onnx_io::Function* function = byKey_.empty() ? nullptr : find(node);
      Size inner;
      if (function) {
        if (const auto repeat = std::find(stack.begin(), stack.end(), function); repeat != stack.end()) {
          std::string chain;
          for (auto it = repeat; it != stack.end(); ++it) chain += functionName(**it) + " -> ";
          return badModel("function '{0}' calls itself: {1}{0}", functionName(*function), chain);
        }
        if (static_cast<int>(stack.size()) >= kMaxDepth)
          return badModel("function '{}' is nested deeper than {}", functionName(*function), kMaxDepth);
        if (const auto known = sizes_.find(function); known != sizes_.end()) {
          inner = known->second;
        } else {
          stack.push_back(function);
          CDL_TRY(measure(function->nodes, stack, inner));
          stack.pop_back();
          sizes_[function] = inner;
        }
        ++inner.depth;
        if (static_cast<int>(stack.size()) + inner.depth > kMaxDepth)
          return badModel("function '{}' is nested deeper than {}", functionName(*function), kMaxDepth);
      }
      size.nodes += 1 + inner.nodes;
      size.depth = std::max(size.depth, inner.depth);
      if (size.nodes > kMaxNodes && !byKey_.empty())
        return badModel("the functions inline to more than {} nodes", kMaxNodes);
    }
    return Status::ok();
  }

  std::map<Key, const onnx_io::Function*> byKey_;
  std::map<const onnx_io::Function*, Size> sizes_;
};

/// What a name stands for. A poisoned one comes from something that has been complained about
/// already: whatever reads it is judged only as far as that goes without types.
struct Slot {
  Value* value = nullptr; ///< null: absent (an operand that a call leaves out) or poisoned
  bool poisoned = false;
};
using Scope = std::unordered_map<std::string, Slot>;
using Opsets = std::map<std::string, int64_t>;

/// A node of a function's body as this call makes it: attribute references replaced by the call's attributes or the
/// function's defaults, or left out where there is neither; and without what the call leaves out.
onnx_io::Node bindBody(const onnx_io::Node& node, const onnx_io::Function& function, const onnx_io::Node& call,
                       const Scope& scope) {
  onnx_io::Node bound = node;
  bound.attributeRefs.clear();
  for (const auto& [name, reference] : node.attributeRefs) {
    const auto given = call.attributes.find(reference);
    const auto fallback = function.attributeDefaults.find(reference);
    if (given != call.attributes.end())
      bound.attributes.emplace(name, given->second);
    else if (fallback != function.attributeDefaults.end())
      bound.attributes.emplace(name, fallback->second);
  }
  for (std::string& input : bound.inputs)
    if (const auto found = scope.find(input); found != scope.end() && !found->second.value && !found->second.poisoned)
      input.clear();
  return bound;
}

std::string nodeText(const std::string& name, const onnx_io::Node& node) {
  return fmt::format("node '{}' ({})", name, node.opType);
}

std::string nodeName(const onnx_io::Node& node, size_t index) {
  return node.name.empty() ? fmt::format("{}_{}", node.opType, index) : node.name;
}

class Walk {
public:
  Walk(const onnx_io::Model& model, const ImportOptions& options)
      : model_(model), options_(options), builder_(graph_, options.foldLimitBytes), functions_(model, complaints_) {}

  Result<graph::Graph> run() {
    if (!complaints_.empty()) return complaints_.status(model_.path); // functions that cannot be inlined
    if (!model_.graph.name.empty()) graph_.name = model_.graph.name;
    addInputs();
    addInitializers();
    addFrozen();
    if (checkOpset(model_.opsets, "")) {
      addNodes(model_.graph.nodes, model_.opsets, scope_, "", nullptr, nullptr);
      addOutputs();
    }
    if (!complaints_.empty()) return complaints_.status(model_.path);
    graph_.eraseDead();
    return std::move(graph_);
  }

private:
  void addInputs() {
    const auto shapes = bindInputs(model_.graph, options_, complaints_);
    std::set<std::string> seen, initialized;
    for (const onnx_io::Initializer& initializer : model_.graph.initializers) initialized.insert(initializer.name);
    for (const onnx_io::ValueInfo& input : model_.graph.inputs) {
      if (!seen.insert(input.name).second || input.name.empty()) {
        complaints_.add(
            badModel("input '{}' is {}", input.name, input.name.empty() ? "without a name" : "declared twice"));
        continue;
      }
      if (options_.frozen.count(input.name) || initialized.count(input.name)) continue;
      const auto shape = shapes.find(input.name);
      Slot slot{nullptr, true};
      if (shape != shapes.end()) slot = {graph_.addInput(input.name, {input.elem, shape->second})};
      define(scope_, input.name, slot, fmt::format("input '{}'", input.name));
    }
  }

  void addInitializers() {
    for (const onnx_io::Initializer& initializer : model_.graph.initializers) {
      if (options_.frozen.count(initializer.name)) continue;
      addConstant(initializer.name, initializer.tensor, "initializer");
    }
  }

  void addFrozen() {
    for (const auto& [name, tensor] : options_.frozen) {
      const auto input = std::ranges::find(model_.graph.inputs, name, &onnx_io::ValueInfo::name);
      if (input == model_.graph.inputs.end()) {
        complaints_.add(badArgument("frozen input '{}': no such input in the model", name));
        continue;
      }
      if (!isDeclared(*input, {tensor.elem, tensor.dims}))
        complaints_.add(badArgument("frozen input '{}' is {} but the model declares {}", name, tensor.typeText(),
                                    declaredText(*input)));
      addConstant(name, tensor, "input");
    }
  }

  void addConstant(const std::string& name, const Tensor& tensor, const char* role) {
    Value* value = graph_.addConstant(tensor);
    graph_.rename(value, name);
    define(scope_, name, {value}, fmt::format("{} '{}'", role, name));
  }

  void addOutputs() {
    std::set<std::string> seen;
    if (model_.graph.outputs.empty()) complaints_.add(badModel("the graph has no outputs"));
    for (const onnx_io::ValueInfo& output : model_.graph.outputs) {
      if (!seen.insert(output.name).second) complaints_.add(badModel("output '{}' is declared twice", output.name));
      const auto found = scope_.find(output.name);
      if (found == scope_.end()) complaints_.add(badModel("output '{}' is produced by nothing", output.name));
      if (found == scope_.end() || !found->second.value) continue;
      complaints_.add(checkDeclared(output, found->second.value->type, options_.dims));
      graph_.addOutput(found->second.value, output.name);
    }
  }

  bool checkOpset(const Opsets& opsets, const std::string& who) {
    const auto opset = opsets.find("");
    if (opset == opsets.end()) return true; // complained about where it is needed
    // Older opsets are judged operator by operator.
    if (opset->second >= 1 && opset->second <= kNewestOpset) return true;
    complaints_.add(
        failure(Code::unsupported, "{}opset {} is outside {} to {}", who, opset->second, kOldestOpset, kNewestOpset));
    return false;
  }

  void addNodes(const std::vector<onnx_io::Node>& nodes, const Opsets& opsets, Scope& scope, const std::string& prefix,
                const onnx_io::Function* function, const onnx_io::Node* call) {
    Order order = topologicalOrder(nodes);
    if (!order.cycle.empty()) {
      std::string chain;
      for (size_t index : order.cycle) chain += fmt::format("'{}{}' -> ", prefix, nodeName(nodes[index], index));
      complaints_.add(badModel("cyclic or out of order: {}'{}{}'", chain, prefix,
                               nodeName(nodes[order.cycle.front()], order.cycle.front())));
      // What hangs on the cycle has no types, but may have more to complain about.
      for (size_t index : order.stuck) {
        const onnx_io::Node& node = nodes[index];
        const std::string name = prefix + nodeName(node, index);
        std::vector<Slot> inputs(node.inputs.size(), Slot{nullptr, true}), outputs;
        if (!functions_.find(node))
          complaints_.add(addOperator(node, name, opsets, inputs, outputs).context(nodeText(name, node)));
      }
      for (size_t index : order.stuck)
        for (const std::string& output : nodes[index].outputs)
          if (!output.empty()) scope.emplace(output, Slot{nullptr, true});
    }
    for (size_t index : order.nodes) {
      const onnx_io::Node& node = nodes[index];
      const std::string name = prefix + nodeName(node, index);
      if (function) {
        addNode(bindBody(node, *function, *call, scope), name, opsets, scope);
        continue;
      }
      for (const auto& [attribute, reference] : node.attributeRefs)
        complaints_.add(badModel("{}: attribute '{}' refers to '{}', but this is no function", nodeText(name, node),
                                 attribute, reference));
      addNode(node, name, opsets, scope);
    }
  }

  void addNode(const onnx_io::Node& node, const std::string& name, const Opsets& opsets, Scope& scope) {
    const std::string who = nodeText(name, node);
    std::vector<Slot> inputs, outputs(node.outputs.size(), Slot{nullptr, true});
    for (const std::string& input : node.inputs) {
      if (input.empty()) {
        inputs.push_back({});
        continue;
      }
      const auto found = scope.find(input);
      if (found == scope.end()) complaints_.add(badModel("{}: input '{}' is produced by nothing", who, input));
      inputs.push_back(found == scope.end() ? Slot{nullptr, true} : found->second);
    }
    const onnx_io::Function* function = functions_.find(node);
    complaints_.add((function ? inlineCall(node, name, *function, inputs, outputs)
                              : addOperator(node, name, opsets, inputs, outputs))
                        .context(who));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      if (!outputs[i].value) outputs[i] = &scope == &scope_ ? standIn(node.outputs[i]) : Slot{nullptr, true};
      define(scope, node.outputs[i], outputs[i], who);
    }
  }

  /// For a value that has been complained about: where the model declares its type, what reads it can be judged
  /// further. Floats only, as integers may be shapes, of which a declaration says nothing.
  Slot standIn(const std::string& name) {
    if (declared_.empty())
      for (const onnx_io::ValueInfo& value : model_.graph.values) declared_.emplace(value.name, &value);
    const auto found = declared_.find(name);
    if (complaints_.empty() || found == declared_.end() || !found->second->hasShape || !isFloat(found->second->elem))
      return {nullptr, true};
    Shape shape;
    for (const onnx_io::Dim& dim : found->second->dims) {
      const auto bound = dim.value < 0 ? options_.dims.find(dim.name) : options_.dims.end();
      shape.push_back(bound == options_.dims.end() ? dim.value : bound->second);
    }
    if (std::ranges::any_of(shape, [](int64_t dim) { return dim < 0; }) || !elementCount(shape)) return {nullptr, true};
    return {graph_.addInput(name, {found->second->elem, shape})};
  }

  Status inlineCall(const onnx_io::Node& node, const std::string& name, const onnx_io::Function& function,
                    const std::vector<Slot>& inputs, std::vector<Slot>& outputs) {
    if (inputs.size() > function.inputs.size())
      return badModel("has {} inputs but the function takes {}", inputs.size(), function.inputs.size());
    if (outputs.size() > function.outputs.size())
      return badModel("has {} outputs but the function gives {}", outputs.size(), function.outputs.size());
    for (const auto& [attribute, value] : node.attributes)
      if (std::find(function.attributes.begin(), function.attributes.end(), attribute) == function.attributes.end() &&
          !function.attributeDefaults.count(attribute))
        return badModel("attribute '{}' is unknown to the function", attribute);
    if (!checkOpset(function.opsets, fmt::format("function '{}': ", function.name))) return Status::ok();
    Scope inner;
    for (size_t i = 0; i < function.inputs.size(); ++i)
      define(inner, function.inputs[i], i < inputs.size() ? inputs[i] : Slot(),
             fmt::format("function '{}'", function.name));
    addNodes(function.nodes, function.opsets, inner, name + "/", &function, &node);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto found = inner.find(function.outputs[i]);
      if (found == inner.end())
        return badModel("the function's output '{}' is produced by nothing", function.outputs[i]);
      outputs[i] = found->second;
    }
    return Status::ok();
  }

  Status addOperator(const onnx_io::Node& node, const std::string& name, const Opsets& opsets,
                     const std::vector<Slot>& inputs, std::vector<Slot>& outputs) {
    const auto opset = opsets.find(node.domain);
    if (opset == opsets.end())
      return badModel("domain '{}' has no opset import", node.domain.empty() ? "ai.onnx" : node.domain);
    const Importer importer = findImporter(node);
    if (!importer)
      return failure(Code::unsupported, "operator {} of opset {} is not supported{}",
                     qualified(node.domain, node.opType), opset->second,
                     node.domain.empty() ? knownText(node.opType, "", opset->second) : "");
    if (node.domain.empty() && opset->second < kOldestOpset && !isUnchangedSince(node.opType, opset->second))
      return failure(Code::unsupported, "operator {} of opset {} is not supported: known since opset {}", node.opType,
                     opset->second, kOldestOpset);
    CDL_TRY(importer.checkArity(node));
    std::vector<Value*> values;
    for (const Slot& input : inputs) {
      if (input.poisoned) return importer.checkAttributes(node, opset->second);
      values.push_back(input.value);
    }
    builder_.begin(name);
    std::optional<onnx_io::Node> raised;
    if (node.domain.empty() && opset->second == 6) CDL_TRY(raiseOpset6(builder_, raised.emplace(node), values));
    Step step(builder_, raised ? *raised : node, static_cast<int>(opset->second), std::move(values));
    CDL_TRY(importer.import(step));
    for (size_t i = 0; i < outputs.size(); ++i) {
      outputs[i] = {step.outputs()[i]};
      // The model's names for values are the ones that the user knows.
      if (step.wants(i) && builder_.isFresh(outputs[i].value)) graph_.rename(outputs[i].value, node.outputs[i]);
    }
    return Status::ok();
  }

  void define(Scope& scope, const std::string& name, Slot slot, const std::string& who) {
    if (!scope.emplace(name, slot).second) complaints_.add(badModel("{}: value '{}' is defined twice", who, name));
  }

  const onnx_io::Model& model_;
  const ImportOptions& options_;
  Complaints complaints_;
  graph::Graph graph_;
  Builder builder_;
  Functions functions_;
  Scope scope_;
  std::unordered_map<std::string_view, const onnx_io::ValueInfo*> declared_; ///< the graph's inner values
};

} // namespace

Result<graph::Graph> importModel(const onnx_io::Model& model, const ImportOptions& options) {
  return Walk(model, options).run();
}

Result<graph::Graph> importOnnx(const std::string& path, const ImportOptions& options) {
  CDL_ASSIGN(const onnx_io::Model model, onnx_io::readModel(path));
  return importModel(model, options);
}

} // namespace candela::import
