#include "core/runtime/control_flow/flow.h"

namespace candela::runtime::control_flow {
namespace {

class Verifier {
public:
  Verifier(const Flow& flow, std::span<const Ports> units) : flow_(flow), units_(units) {}

  Status slots(const std::vector<SlotId>& list, bool mayBeNone) const {
    for (const SlotId slot : list)
      if (slot >= flow_.slots.size() && !(mayBeNone && slot == kNoSlot))
        return badModel("slot {} of {}", slot, flow_.slots.size());
    return Status::ok();
  }

  Status block(const Block& block) const {
    CDL_TRY(slots(block.params, false));
    CDL_TRY(slots(block.results, true));
    for (const Step& step : block.steps)
      CDL_TRY(this->step(step).context(fmt::format("step of node '{}'", step.node)));
    return Status::ok();
  }

private:
  Status step(const Step& step) const {
    if (step.kind > StepKind::fail) return badModel("unknown kind {}", static_cast<int>(step.kind));
    CDL_TRY(slots(step.inputs, true));
    CDL_TRY(slots(step.outputs, true));
    const auto counts = [&](size_t inputs, size_t outputs, size_t blocks) -> Status {
      if (step.inputs.size() == inputs && step.outputs.size() == outputs &&
          step.blocks.size() == blocks)
        return Status::ok();
      return badModel("{} with {} inputs, {} outputs and {} blocks", stepName(step.kind),
                      step.inputs.size(), step.outputs.size(), step.blocks.size());
    };
    const size_t inputs = step.inputs.size(), outputs = step.outputs.size();
    switch (step.kind) {
    case StepKind::unit:
      if (step.unit >= units_.size()) return badModel("unit {} of {}", step.unit, units_.size());
      return counts(units_[step.unit].inputs, units_[step.unit].outputs, 0);
    case StepKind::branch:
      CDL_TRY(counts(1, outputs, 2));
      for (const Block& inner : step.blocks) {
        if (inner.results.size() != outputs)
          return badModel("a branch gives {} of {}", inner.results.size(), outputs);
        CDL_TRY(block(inner));
      }
      return Status::ok();
    case StepKind::loop: {
      if (inputs < 2 || outputs < inputs - 2)
        return badModel("a loop of {} inputs and {} outputs", inputs, outputs);
      CDL_TRY(slots(step.outputs, false));
      CDL_TRY(counts(inputs, outputs, 1));
      const Block& body = step.blocks[0];
      if (body.params.size() != inputs || body.results.size() != outputs + 1)
        return badModel("a loop's body has {} params and {} results", body.params.size(),
                        body.results.size());
      return block(body);
    }
    case StepKind::construct:
    case StepKind::stack: return counts(inputs, 1, 0);
    case StepKind::insert: return counts(3, 1, 0);
    case StepKind::erase:
    case StepKind::at: return counts(2, 1, 0);
    case StepKind::length:
    case StepKind::has:
    case StepKind::get: return counts(1, 1, 0);
    case StepKind::fail: return counts(0, 0, 0);
    }
    return Status::ok();
  }

  const Flow& flow_;
  std::span<const Ports> units_;
};

} // namespace

Status verify(const Flow& flow, std::span<const Ports> units) {
  const Verifier verifier(flow, units);
  CDL_TRY(verifier.slots(flow.inputs, false));
  CDL_TRY(verifier.slots(flow.outputs, true));
  if (flow.outputNames.size() != flow.outputs.size())
    return badModel("{} names of {} outputs", flow.outputNames.size(), flow.outputs.size());
  for (const Slot& slot : flow.slots)
    if (slot.isTyped() && (slot.elem == Elem::none || !elementCount(slot.dims)))
      return badModel("slot {} has no type", slot.name);
  return verifier.block(flow.main);
}

} // namespace candela::runtime::control_flow
