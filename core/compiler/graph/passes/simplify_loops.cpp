#include <algorithm>
#include <set>

#include "core/compiler/graph/loop.h"
#include "core/compiler/graph/passes/rewrite.h"

namespace candela::graph::passes {

namespace {

/// What a loop would be without what it does not need.
class Slimming {
public:
  Slimming(Graph& graph, Node& loop)
      : graph_(graph), loop_(loop), body_(*loop.body), form_(loopForm(loop)),
        live_(body_.outputs().size(), false) {
    findLive();
  }

  Result<int> run() {
    int changes = 0;
    for (size_t i = 0; i < body_.inputs().size(); ++i) changes += fateOf(i) != fateAsIs(i);
    changes += static_cast<int>(std::ranges::count(live_, false));
    if (changes > 0) CDL_TRY(rebuild());
    return changes;
  }

private:
  enum class Fate { carried, scanned, captured, constant, none };

  bool isCarried(size_t i) const { return i < form_.carried; }
  bool isScanned(size_t i) const { return i >= form_.carried && i - form_.carried < form_.scanned; }
  Fate fateAsIs(size_t i) const {
    if (isCarried(i)) return Fate::carried;
    return isScanned(i) ? Fate::scanned : Fate::captured;
  }

  /// Which outputs of the body count: what is used of the loop's results, and what those need from
  /// run to run.
  void findLive() {
    std::vector<const Value*> open;
    const auto want = [&](size_t output) {
      if (live_[output]) return;
      live_[output] = true;
      open.push_back(body_.outputs()[output]);
    };
    for (size_t i = 0; i < live_.size(); ++i)
      if (graph_.isUsed(loop_.result(i))) want(i);
    while (!open.empty()) {
      const Value* value = open.back();
      open.pop_back();
      if (!value || !needed_.insert(value).second) continue;
      if (value->producer) {
        open.insert(open.end(), value->producer->operands().begin(),
                    value->producer->operands().end());
        continue;
      }
      const size_t input = std::ranges::find(body_.inputs(), value) - body_.inputs().begin();
      if (isCarried(input)) want(input);
    }
    // What stays as it is need not be carried, unless the result must be a value of its own.
    for (size_t i = 0; i < form_.carried; ++i)
      if (live_[i] && body_.outputs()[i] == body_.inputs()[i] &&
          (!graph_.isUsed(loop_.result(i)) ||
           canReplace(graph_, loop_.result(i), loop_.operand(i)))) {
        live_[i] = false;
        unchanged_.insert(i);
      }
  }

  /// What becomes of an operand.
  Fate fateOf(size_t i) const {
    if (isCarried(i) && live_[i]) return Fate::carried;
    const bool isNeeded = needed_.count(body_.inputs()[i]) != 0;
    if (!isNeeded) return Fate::none;
    if (isScanned(i)) return Fate::scanned;
    return isPlainConstant(loop_.operand(i)) ? Fate::constant : Fate::captured;
  }

  Status rebuild() {
    LoopForm form;
    form.trips = form_.trips;
    Graph body;
    body.name = body_.name;
    std::map<const Value*, Value*> copies;
    std::vector<Value*> operands;
    for (const Fate fate : {Fate::carried, Fate::scanned, Fate::captured})
      for (size_t i = 0; i < body_.inputs().size(); ++i) {
        if (fateOf(i) != fate) continue;
        if (fate == Fate::carried) ++form.carried;
        if (fate == Fate::scanned) ++form.scanned;
        if (fate == Fate::scanned) form.backward.push_back(form_.runsBackward(i - form_.carried));
        operands.push_back(loop_.operand(i));
        copies[body_.inputs()[i]] = body.addInput(body_.inputs()[i]->name, body_.inputs()[i]->type);
      }
    for (size_t i = 0; i < body_.inputs().size(); ++i)
      if (fateOf(i) == Fate::constant) {
        const Node& constant = *loop_.operand(i)->producer;
        copies[body_.inputs()[i]] =
            body.addConstant(*constant.payload, constant.result()->type, constant.provenance);
      }
    for (const auto& node : body_.nodes())
      if (std::ranges::any_of(node->results(),
                              [&](const Value* v) { return needed_.count(v) != 0; }))
        body.addCopy(*node, copies);
    for (size_t i = 0; i < live_.size(); ++i) {
      if (!live_[i]) continue;
      body.addOutput(copies.at(body_.outputs()[i]), body_.outputNames()[i]);
      if (i >= form_.carried)
        form.backward.push_back(form_.runsBackward(form_.scanned + i - form_.carried));
    }
    Node* slim = nullptr; // where everything stays as it is no loop is left
    if (!body.outputs().empty()) {
      CDL_ASSIGN(slim, addLoop(graph_, form, operands, std::move(body), loop_.provenance, &loop_));
    }
    std::vector<std::pair<Value*, std::string>> names;
    for (size_t i = 0, next = 0; i < live_.size(); ++i) {
      Value* old = loop_.result(i);
      if (unchanged_.count(i)) graph_.replaceAllUses(old, loop_.operand(i));
      if (!live_[i]) continue;
      names.emplace_back(slim->result(next++), old->name);
      graph_.replaceAllUses(old, names.back().first);
    }
    graph_.erase(&loop_);
    for (const auto& [value, name] : names) graph_.rename(value, name);
    return Status::ok();
  }

  Graph& graph_;
  Node& loop_;
  const Graph& body_;
  const LoopForm form_;
  std::vector<bool> live_; ///< outputs of the body that go on, to the next run or into a result
  std::set<const Value*> needed_;
  std::set<size_t> unchanged_; ///< carried values that every run leaves as they are
};

/// A loop that runs once is what its body does.
class Unfolding {
public:
  Unfolding(Graph& graph, Node& loop) : graph_(graph), loop_(loop), form_(loopForm(loop)) {}

  Status run() {
    const Graph& body = *loop_.body;
    for (size_t i = 0; i < body.inputs().size(); ++i) {
      copies_[body.inputs()[i]] = loop_.operand(i);
      if (i < form_.carried || i - form_.carried >= form_.scanned) continue;
      CDL_ASSIGN(copies_[body.inputs()[i]],
                 reshaped(loop_.operand(i), body.inputs()[i]->type.shape()));
    }
    for (const auto& node : body.nodes()) copy(*node);
    std::vector<std::pair<Value*, std::string>> names;
    for (size_t i = 0; i < loop_.results().size(); ++i) {
      Value *result = loop_.result(i), *value = copies_.at(body.outputs()[i]);
      // An output of the graph is a value of its own.
      if (i >= form_.carried || !canReplace(graph_, result, value)) {
        CDL_ASSIGN(value, reshaped(value, result->type.shape()));
      }
      graph_.replaceAllUses(result, value);
      if (named_.insert(value).second) names.emplace_back(value, result->name);
    }
    graph_.erase(&loop_);
    for (const auto& [value, name] : names)
      if (made_.count(value->producer)) graph_.rename(value, name);
    return Status::ok();
  }

private:
  Result<Value*> reshaped(Value* value, const Shape& shape) {
    CDL_ASSIGN(const Node* node, graph_.addNode(OpKind::Reshape, {value}, {{"shape", shape}},
                                                loop_.provenance, &loop_));
    made_.insert(node);
    return node->result();
  }

  void copy(const Node& node) {
    std::vector<Value*> operands;
    std::vector<TensorType> types;
    std::vector<std::string> names;
    for (const Value* operand : node.operands())
      operands.push_back(operand ? copies_.at(operand) : nullptr);
    for (const Value* result : node.results()) {
      types.push_back(result->type);
      names.push_back(result->name);
    }
    Node* made = graph_.addNodeUnchecked(node.kind, std::move(operands), node.attrs,
                                         mergedProvenance(node.provenance, loop_.provenance),
                                         std::move(types), &loop_, names);
    made->payload = node.payload;
    if (node.body) made->body = std::make_shared<Graph>(clone(*node.body));
    made_.insert(made);
    for (size_t i = 0; i < names.size(); ++i) copies_[node.result(i)] = made->result(i);
  }

  Graph& graph_;
  Node& loop_;
  const LoopForm form_;
  std::map<const Value*, Value*> copies_;
  std::set<const Node*> made_;
  std::set<const Value*> named_;
};

} // namespace

Result<int> simplifyLoops(Graph& graph) {
  return onEachNode(graph, [](Graph& within, Node* node) -> Result<int> {
    if (node->kind != OpKind::Loop) return 0;
    if (node->intAttr("trips") != 1) return Slimming(within, *node).run();
    CDL_TRY(Unfolding(within, *node).run());
    return 1;
  });
}

} // namespace candela::graph::passes
