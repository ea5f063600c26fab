#include <algorithm>
#include <set>
#include <unordered_map>

#include "core/import/bind_dims.h"
#include "core/import/functions.h"
#include "core/import/order.h"
#include "core/import/step.h"

namespace candela::import {
namespace {

constexpr int kOldestOpset = 7, kNewestOpset = 28;

/// What a name stands for. A poisoned one comes from something that has been complained about
/// already: whatever reads it is judged only as far as that goes without types.
struct Slot {
  Value* value = nullptr; ///< null: absent (an operand that a call leaves out) or poisoned
  bool poisoned = false;
};
using Scope = std::unordered_map<std::string, Slot>;
using Opsets = std::map<std::string, int64_t>;

/// A node of a function's body as this call makes it: with the call's attributes, and without what
/// the call leaves out.
onnx_io::Node bindBody(const onnx_io::Node& node, const onnx_io::Function& function, const onnx_io::Node& call,
                       const Scope& scope) {
  onnx_io::Node bound = bindAttributes(node, function, call);
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

/// What means in opset 1 what it means now, or what its adapter knows.
const std::set<std::string> kKnownSinceOpset1 = {"GlobalAveragePool", "GlobalMaxPool", "TopK", "Transpose"};

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
      if (!outputs[i].value) outputs[i].poisoned = true;
      define(scope, node.outputs[i], outputs[i], who);
    }
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
    const Importer importer = node.domain.empty() && node.overload.empty() ? findImporter(node.opType) : Importer();
    if (!importer)
      return failure(Code::unsupported, "operator {}{}{} of opset {} is not supported", node.domain,
                     node.domain.empty() ? "" : ".", node.opType, opset->second);
    if (opset->second < kOldestOpset && !kKnownSinceOpset1.count(node.opType))
      return failure(Code::unsupported, "opset {} is outside {} to {}", opset->second, kOldestOpset, kNewestOpset);
    CDL_TRY(importer.checkArity(node));
    std::vector<Value*> values;
    for (const Slot& input : inputs) {
      if (input.poisoned) return Status::ok();
      values.push_back(input.value);
    }
    builder_.begin(name);
    Step step(builder_, node, static_cast<int>(opset->second), std::move(values));
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
