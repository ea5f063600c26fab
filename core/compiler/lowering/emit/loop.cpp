// A loop of the Graph becomes a `for` region of the Program. What it carries lies in the buffers of
// its results: the operands are copied there before it, what a run computes at the end of the run.
// Slices of what is scanned are views that step with the loop; nothing is copied for them.
#include "core/compiler/graph/loop.h"

#include <algorithm>

#include "core/compiler/lowering/emit/emitter.h"

namespace candela::lowering::emit {

void Emitter::addLoops(program::Instr& instr) const {
  instr.loop = loop_;
  for (size_t l = loops_.size(); l-- > 0;) {
    const Node& loop = *loops_[l];
    const graph::Provenance names =
        loop.provenance.empty() ? graph::Provenance{loop.result()->name} : loop.provenance;
    for (const std::string& name : names)
      if (std::ranges::find(instr.provenance, name, &program::Origin::node) ==
          instr.provenance.end())
        instr.provenance.push_back({name, std::string(graph::opName(loop.kind))});
  }
}

Emitter::Home Emitter::sliceOf(Home home, const graph::TensorType& type, int64_t trips,
                               bool backward) const {
  const int64_t slice = type.count() / std::max<int64_t>(type.dim(0), 1);
  home.offset += backward ? (trips - 1) * slice : 0;
  home.ivStrides[loops_.size() - 1] += backward ? -slice : slice;
  return home;
}

void Emitter::copy(const Home& from, const Home& to, const graph::TensorType& type,
                   const Node& node) {
  if (from == to || type.count() == 0) return;
  program::Instr copy;
  copy.kind = CDL_KIND_COPY;
  copy.inputs = {at(from, type.elem, {type.count()})};
  copy.outputs = {at(to, type.elem, {type.count()})};
  add(std::move(copy), node);
}

void Emitter::carry(const Node& loop) {
  const graph::LoopForm form = graph::loopForm(loop);
  const auto& outputs = loop.body->outputs();
  // Slices first: what is carried may be one of them, as it was before.
  for (size_t i = form.carried; i < outputs.size(); ++i) {
    const graph::TensorType& type = loop.result(i)->type;
    const bool backward = form.runsBackward(form.scanned + i - form.carried);
    copy(homeOf(outputs[i]), sliceOf(homeOf(loop.result(i)), type, form.trips, backward),
         outputs[i]->type, loop);
  }
  // What changes places is taken out of them all before anything is put there.
  std::vector<Home> from;
  for (size_t i = 0; i < form.carried; ++i) {
    from.push_back(homeOf(outputs[i]));
    const auto& inputs = loop.body->inputs();
    const size_t old = std::ranges::find(inputs, baseOf(outputs[i])) - inputs.begin();
    if (old >= form.carried || old == i || outputs[i]->type.count() == 0) continue;
    const Home staged{declare(outputs[i]->name, loop.result(i)->type, program::Role::temp)};
    copy(from[i], staged, outputs[i]->type, loop);
    from[i] = staged;
  }
  for (size_t i = 0; i < form.carried; ++i)
    copy(from[i], homeOf(loop.result(i)), outputs[i]->type, loop);
}

Status Emitter::emitLoop(const Node& loop) {
  const graph::LoopForm form = graph::loopForm(loop);
  const graph::Graph& body = *loop.body;
  CDL_CHECK(loops_.size() < graph::kMaxNesting, "loop '{}' is nested too deep", loop.userName());
  for (size_t i = 0; i < form.carried; ++i)
    copy(homeOf(loop.operand(i)), homeOf(loop.result(i)), loop.result(i)->type, loop);

  const auto first = static_cast<uint32_t>(program_.instrs.size());
  const uint32_t parent = loop_;
  const graph::Graph* around = graph_;
  loop_ = static_cast<uint32_t>(program_.loops.size());
  program_.loops.push_back({first, 0, parent, static_cast<uint64_t>(form.trips)});
  loops_.push_back(&loop);
  graph_ = &body;

  for (size_t i = 0; i < body.inputs().size(); ++i) {
    Home home = homeOf(i < form.carried ? loop.result(i) : loop.operand(i));
    if (i >= form.carried && i - form.carried < form.scanned)
      home = sliceOf(home, loop.operand(i)->type, form.trips, form.runsBackward(i - form.carried));
    homes_[body.inputs()[i]] = home;
  }
  for (size_t i = form.carried; i < body.outputs().size(); ++i) {
    const Value* base = baseOf(body.outputs()[i]);
    if (!base->producer || base->isConstant()) continue; // carry() copies it
    const bool backward = form.runsBackward(form.scanned + i - form.carried);
    homes_.try_emplace(base,
                       sliceOf(homeOf(loop.result(i)), loop.result(i)->type, form.trips, backward));
  }
  CDL_TRY(declareValues());
  CDL_TRY(emitNodes());
  carry(loop);

  const uint32_t count = static_cast<uint32_t>(program_.instrs.size()) - first;
  program_.loops[loop_].count = count;
  if (count == 0) program_.loops.pop_back(); // nothing is left to do, inside of it neither
  loop_ = parent;
  loops_.pop_back();
  graph_ = around;
  return Status::ok();
}

} // namespace candela::lowering::emit
