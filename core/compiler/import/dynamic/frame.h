#pragma once

#include <deque>
#include <map>
#include <memory>
#include <unordered_map>

#include "core/compiler/import/builder.h"
#include "core/compiler/import/node_context.h"
#include "core/compiler/import/script.h"
#include "core/runtime/control_flow/flow.h"

namespace candela::import {

class Frame;

/// What the nested graphs of a deferred node call a name outside of them, so that none of their own
/// is the same.
inline std::string outerName(const std::string& name) { return "#" + name; }

/// What a name of the model stands for while it is imported: a value of a Graph, a slot that only a
/// run fills, a sequence of such, or nothing (an absent operand). A poisoned one comes from
/// something that has been reported already: whatever reads it is judged only as far as
/// that goes without types.
struct Slot {
  enum class From : uint8_t { graph, deferred, step };
  Value* value = nullptr; ///< of the Graph of `stage` of `frame`
  runtime::control_flow::SlotId run = runtime::control_flow::kNoSlot; ///< of a run-time value
  std::shared_ptr<std::vector<Slot>> list; ///< a sequence whose length is known
  bool poisoned = false;
  Frame* frame = nullptr;
  int stage = 0;
  From from = From::graph;

  static Slot makePoisoned() {
    Slot slot;
    slot.poisoned = true;
    return slot;
  }
  bool isAbsent() const {
    return !value && run == runtime::control_flow::kNoSlot && !list && !poisoned;
  }
  bool isConstant() const { return value && value->isConstant(); }
};

/// A node that is imported again when a run knows its operands.
struct DeferredNode {
  Section::Item item; ///< under the slots' names
  struct Read {
    runtime::control_flow::SlotId slot;
    bool frozen; ///< its content must be known
  };
  std::vector<Read> reads;
  std::map<std::string, Tensor> constants;            ///< that it reads, by name
  std::vector<runtime::control_flow::SlotId> outputs; ///< kNoSlot: nobody names it
  std::string why;
};

/// A step, and the blocks that its bodies will be made of.
struct PendingStep {
  runtime::control_flow::Step step;
  std::vector<Frame*> bodies;
};

/// One block of the flow in the making: the model, or a body of If or Loop. Its stages run one
/// after the other, each a Graph, then what is deferred, then steps. A value lies in the earliest
/// stage that has all that it needs.
class Frame {
public:
  struct Port {
    runtime::control_flow::SlotId slot;
    Value* value;
  };
  struct Stage {
    explicit Stage(BuilderOptions options) : builder(graph, options) {}
    graph::Graph graph;
    Builder builder;
    std::vector<Port> inputs, outputs;
    std::vector<DeferredNode> deferred;
    std::vector<PendingStep> steps;
  };

  Frame(runtime::control_flow::Flow& flow, Frame* parent, BuilderOptions options)
      : flow_(flow), parent_(parent), options_(options) {}

  Frame* parent() const { return parent_; }
  Stage& stage(int index);
  const std::deque<Stage>& stages() const { return stages_; }
  std::deque<Stage>& stages() { return stages_; }

  /// The earliest stage whose Graph, deferred part or steps may read the slot.
  int stageFor(const Slot& slot, Slot::From reader) const;
  int stageFor(std::span<const Slot> slots, Slot::From reader) const;

  /// The slot as a value of that stage's Graph: itself, a copy of a constant, or an input of the
  /// Graph. The slot is typed.
  Value* valueAt(const Slot& slot, int stage);
  /// The slot of the run that holds it.
  runtime::control_flow::SlotId exported(const Slot& slot);
  /// What a run-time slot is.
  const runtime::control_flow::Slot& runSlot(const Slot& slot) const {
    return flow_.slots[slot.run];
  }
  /// A constant, or a tensor whose shape import knows.
  bool isTyped(const Slot& slot) const {
    return slot.value || (slot.run != runtime::control_flow::kNoSlot && runSlot(slot).isTyped());
  }
  graph::TensorType typeOf(const Slot& slot) const;

  /// An input of the first stage's Graph that the run fills.
  Slot addParam(const std::string& name, const graph::TensorType& type);
  /// A constant of the first stage's Graph.
  Slot addConstant(Tensor tensor);
  /// A step behind everything that it reads, with new output slots of these kinds.
  std::vector<Slot> addStep(runtime::control_flow::Step step, std::vector<Slot> inputs,
                            const std::vector<runtime::control_flow::Slot>& outputs,
                            const std::vector<Frame*>& bodies = {});
  /// `item` reads the inputs and, in its nested graphs, the captured names; a content that is null
  /// is none.
  std::vector<Slot> defer(Section::Item item, std::string why, std::vector<Slot> inputs,
                          std::map<std::string, Slot> captured, const std::set<size_t>& frozen,
                          const Slot& content);

  /// What this block reads of those around it, for the step that holds it.
  const std::vector<Slot>& captures() const { return captures_; }

private:
  void capture(const Slot& slot);
  /// A sequence whose length is known as one that the run makes.
  Slot constructed(const Slot& slot);
  Value* inputFor(runtime::control_flow::SlotId slot, const graph::TensorType& type, int stage);

  runtime::control_flow::Flow& flow_;
  Frame* parent_;
  BuilderOptions options_;
  std::deque<Stage> stages_;
  std::map<std::pair<runtime::control_flow::SlotId, int>, Value*> inputs_; ///< by slot and stage
  std::map<std::pair<const Value*, int>, Value*> copies_; ///< constants in other stages
  std::map<const Value*, runtime::control_flow::SlotId> exports_;
  std::vector<Slot> captures_;
};

} // namespace candela::import
