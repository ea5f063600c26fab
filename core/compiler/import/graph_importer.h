#pragma once

#include "core/compiler/import/bind_dims.h"
#include "core/compiler/import/dynamic/frame.h"
#include "core/compiler/import/functions.h"

namespace candela::import {

/// The opset of nodes that import writes itself.
inline constexpr int64_t kOpsetOfOwn = 21;

/// The names of a block and of those around it.
class Scope {
public:
  explicit Scope(const Scope* parent = nullptr) : parent_(parent) {}
  /// Null when no block defines it.
  const Slot* find(const std::string& name) const {
    const auto found = slots_.find(name);
    return found != slots_.end() ? &found->second : parent_ ? parent_->find(name) : nullptr;
  }
  bool define(const std::string& name, Slot slot) {
    return slots_.emplace(name, std::move(slot)).second;
  }

private:
  const Scope* parent_;
  std::unordered_map<std::string, Slot> slots_;
};

/// Where nodes stand: whose names and versions they mean, and whose Graphs they go to.
struct Place {
  Frame& frame;
  Scope& scope;
  const Opsets& opsets;
  std::string prefix;                          ///< of the names of nodes
  const onnx_io::Function* function = nullptr; ///< within the body of a function,
  const onnx_io::Node* call = nullptr;         ///< as this node calls it

  Place within(Frame& inner, Scope& names, const std::string& node) const {
    return {inner, names, opsets, node + "/", function, call};
  }
};

/// The operators that the walk imports itself, of the default domain: those of graphs in graphs,
/// and of sequences.
std::span<const char* const> controlOperators();
std::vector<std::string> listOperators();

/// One model on its way into Graphs and the flow between them.
class Walk {
public:
  Walk(std::shared_ptr<const onnx_io::Model> model, const ImportOptions& options);

  /// The whole model, or a section of it.
  Result<Script> run();
  Result<Script> run(const Section& section, std::span<const flow::Value> inputs);

private:
  // walk.cpp: names, nodes, functions.
  void addInputs();
  flow::Slot openInput(const onnx_io::ValueInfo& input) const;
  void addFrozen();
  void addConstant(Frame& frame, Scope& scope, const std::string& name, const Tensor& tensor,
                   const char* role);
  std::vector<Slot> addOutputs();
  /// An output against what the model declares of it, unless that may be another writer's count.
  Status checkOutput(const onnx_io::ValueInfo& declared, const graph::TensorType& inferred,
                     const std::map<std::string, int64_t>& named) const;
  /// Whether the input is one although the model has a value for it, which is a default then.
  bool isOverridden(const std::string& name) const {
    return options_.shapes.count(name) > 0 &&
           std::ranges::count(model_->graph.inputs, name, &onnx_io::ValueInfo::name);
  }
  bool checkOpset(const Opsets& opsets, const std::string& who);
  void addNodes(const Place& place, const std::vector<onnx_io::Node>& nodes);
  /// known: what Step::contents() gives.
  void addNode(const Place& place, const onnx_io::Node& node, const std::string& name,
               Step::Contents known = {});
  Slot standIn(const std::string& name);
  Status inlineCall(const onnx_io::Node& node, const std::string& name,
                    const onnx_io::Function& function, const std::vector<Slot>& inputs,
                    std::vector<Slot>& outputs, Frame& frame);
  Status addOperator(const Place& place, const onnx_io::Node& node, const std::string& name,
                     const std::vector<Slot>& inputs, std::vector<Slot>& outputs,
                     Step::Contents known = {});
  /// custom.cpp: a node that a backend may claim.
  Status addCustom(const Place& place, const onnx_io::Node& node, const std::string& name,
                   int64_t version, const std::vector<Slot>& inputs, std::vector<Slot>& outputs);
  void define(Scope& scope, const std::string& name, Slot slot, const std::string& who);
  /// Adds what is wrong with the types that a node got, whose outputs stay poisoned; success.
  Status complainOfTypes(const Status& status, const std::string& name, const onnx_io::Node& node);
  /// The node waits for what a run knows.
  Status defer(const Place& place, const onnx_io::Node& node, const std::string& name,
               std::string why, const std::vector<Slot>& inputs, std::vector<Slot>& outputs,
               const std::set<size_t>& frozen = {}, Step::Contents known = {},
               const Slot& content = {});

  /// trims.cpp: outputs that are as long as a count says that only a run knows; all else is
  /// imported.
  Status addTrims(const Place& place, const std::string& name, const Step& step, int stage,
                  std::string why, std::vector<Slot>& outputs);

  // control.cpp: If, Loop, Scan.
  /// Nullopt: the operator has no graphs in it.
  std::optional<Status> addControl(const Place& place, const onnx_io::Node& node,
                                   const std::string& name, const std::vector<Slot>& inputs,
                                   std::vector<Slot>& outputs);
  Result<const onnx_io::Graph*> graphOf(const onnx_io::Node& node, const char* attribute) const;
  /// Nodes and initializers of a nested graph; what its outputs stand for.
  std::vector<Slot> addGraph(const Place& place, const onnx_io::Graph& graph);
  /// One side of an If whose condition a run decides, in a block of its own.
  struct Branch {
    Frame* body;
    std::vector<Slot> results;
    Complaints failed; ///< where its types are impossible: an error of the run that takes it
  };
  Branch addBranch(const Place& place, const onnx_io::Graph& graph, const std::string& name,
                   size_t outputs);
  Status addBranches(const Place& place, const onnx_io::Node& node, const std::string& name,
                     const std::vector<Branch>& branches, const Slot& condition,
                     std::vector<Slot>& outputs);
  Status addIf(const Place& place, const onnx_io::Node& node, const std::string& name,
               const std::vector<Slot>& inputs, std::vector<Slot>& outputs);
  Status addLoop(const Place& place, const onnx_io::Node& node, const std::string& name,
                 const std::vector<Slot>& inputs, std::vector<Slot>& outputs);
  /// The turns one after the other. False: that cannot be, as a condition is known at run only.
  Result<bool> unroll(const Place& place, const onnx_io::Graph& body, const std::string& name,
                      int64_t trips, std::vector<Slot> carried, std::vector<Slot>& outputs);
  /// Turns of a body as Loop defines it: written out, or a step.
  Status addTurns(const Place& place, const onnx_io::Graph& body, const std::string& name,
                  const Slot& trips, const Slot& condition, const std::vector<Slot>& carried,
                  std::vector<Slot>& outputs);
  Status addLoopStep(const Place& place, const onnx_io::Graph& body, const std::string& name,
                     const Slot& trips, const Slot& condition, const std::vector<Slot>& carried,
                     std::vector<Slot>& outputs);
  /// A body of known turns that is one Graph as the op `loop`. False: it is not.
  bool addLoopNode(const Place& place, Frame& frame, const std::string& name, int64_t trips,
                   const std::vector<Slot>& params, const std::vector<Slot>& carried,
                   const std::vector<Slot>& results, std::vector<Slot>& outputs);
  /// Opset 8: every operand has batches in front.
  Status addBatchedScan(const Place& place, const onnx_io::Node& node, const std::string& name,
                        const std::vector<Slot>& inputs, std::vector<Slot>& outputs);
  Status addScan(const Place& place, const onnx_io::Node& node, const std::string& name,
                 const std::vector<Slot>& inputs, std::vector<Slot>& outputs);
  /// Node kMoveFirst, of a tensor whose rank may be the run's.
  Status moveFirst(const Place& place, const onnx_io::Node& node, const std::string& name,
                   const std::vector<Slot>& inputs, std::vector<Slot>& outputs);
  Slot zeros(const Place& place, const std::string& name, Elem elem, const Shape& shape);
  Slot stacked(const Place& place, const std::string& name, std::vector<Slot> items);
  /// What one node of the default domain makes of them.
  Slot synthesized(const Place& place, const std::string& name, const char* opType,
                   std::vector<Slot> inputs,
                   std::map<std::string, onnx_io::Attribute> attributes = {});
  Slot constantSlot(Frame& frame, Tensor tensor);

  // lists.cpp: sequences and optionals.
  std::optional<Status> addList(const Place& place, const onnx_io::Node& node,
                                const std::string& name, const std::vector<Slot>& inputs,
                                std::vector<Slot>& outputs);

  Status addListNode(const Place& place, const onnx_io::Node& node, const std::string& name,
                     const std::vector<Slot>& inputs, std::vector<Slot>& outputs);
  Status mapSequence(const Place& place, const onnx_io::Node& node, const std::string& name,
                     const std::vector<Slot>& inputs, std::vector<Slot>& outputs);

  // script.cpp
  Script finish(const std::vector<Slot>& outputs, std::vector<std::string> names);
  std::vector<flow::Step> finishFrame(Frame& frame, std::set<flow::SlotId>& needed);

  std::shared_ptr<const onnx_io::Model> model_;
  const ImportOptions& options_;
  Complaints complaints_;
  Script script_;
  Functions functions_;
  std::deque<Frame> frames_; ///< the first one is the model
  Scope scope_;
  int64_t nodes_ = 0;                       ///< imported so far, turns and calls counted
  std::set<const onnx_io::Graph*> turning_; ///< bodies that could not be written out
  int64_t unrolled_ = 1;                    ///< how often what is imported now is written out
  int depth_ = 0;                           ///< of graphs in graphs
  bool disputed_ = false;                   ///< Step::disputeExtents()
  /// the graph's inner values
  std::unordered_map<std::string_view, const onnx_io::ValueInfo*> declared_;
};

} // namespace candela::import
