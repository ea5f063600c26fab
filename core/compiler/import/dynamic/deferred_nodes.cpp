#include "core/compiler/import/graph_importer.h"

namespace candela::import {

/// Slices whose ends are frozen: they alone wait for the count, with what reads them, and not what
/// made them.
Status Walk::addTrims(const Place& place, const std::string& name, const Step& step, int stage,
                      std::string why, std::vector<Slot>& outputs) {
  static const Opsets kOpsets = {{"", kOpsetOfOwn}};
  const auto slotOf = [&](Value* value) {
    Slot slot;
    slot.frame = &place.frame;
    slot.stage = stage;
    slot.value = value;
    return slot;
  };
  const auto one = [&](int64_t value) {
    return constantSlot(place.frame, Tensor::of<int64_t>(Elem::i64_, {1}, {value}));
  };
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = slotOf(step.outputs()[i]);
  for (const Step::Trim& trim : step.trims()) {
    if (!step.wants(trim.output)) continue;
    onnx_io::Node slice;
    slice.opType = "Slice";
    slice.inputs = {"data", "starts", "ends", "axes"};
    slice.outputs = {step.node.outputs[trim.output]};
    std::vector<Slot> made(1);
    CDL_TRY(defer({place.frame, place.scope, kOpsets, place.prefix}, slice, name, why,
                  {slotOf(trim.value), one(0), slotOf(step.demanded()), one(trim.axis)}, made,
                  {2}));
    outputs[trim.output] = made[0];
  }
  return Status::ok();
}

} // namespace candela::import
