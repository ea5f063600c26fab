// Flows in a bundle's file.
#include "core/runtime/bundle/payloads.h"

namespace candela::runtime::bundle {
namespace {

using control_flow::SlotId;

template <typename Slots> void fillSlots(Slots* out, const std::vector<SlotId>& slots) {
  for (const SlotId slot : slots) out->Add(slot + 1); // kNoSlot wraps to 0
}
template <typename Slots> std::vector<SlotId> readSlots(const Slots& in) {
  std::vector<SlotId> slots;
  for (const uint32_t slot : in) slots.push_back(slot - 1);
  return slots;
}

void fillBlock(proto::FlowBlock& out, const control_flow::Block& in) {
  fillSlots(out.mutable_params(), in.params);
  fillSlots(out.mutable_results(), in.results);
  for (const runtime::control_flow::Step& step : in.steps) {
    proto::FlowStep* s = out.add_steps();
    s->set_kind(static_cast<uint32_t>(step.kind));
    s->set_node(step.node);
    s->set_unit(step.unit);
    s->set_why(step.why);
    s->set_unsupported(step.unsupported);
    fillSlots(s->mutable_inputs(), step.inputs);
    fillSlots(s->mutable_outputs(), step.outputs);
    for (const runtime::control_flow::Block& block : step.blocks)
      fillBlock(*s->add_blocks(), block);
  }
}

/// The parser of protobuf bounds how deep it is.
control_flow::Block readBlock(const proto::FlowBlock& in) {
  control_flow::Block out;
  out.params = readSlots(in.params());
  out.results = readSlots(in.results());
  for (const proto::FlowStep& s : in.steps()) {
    runtime::control_flow::Step& step = out.steps.emplace_back();
    step.kind =
        static_cast<runtime::control_flow::StepKind>(std::min<uint32_t>(s.kind(), UINT8_MAX));
    step.node = s.node();
    step.unit = s.unit();
    step.why = s.why();
    step.unsupported = s.unsupported();
    step.inputs = readSlots(s.inputs());
    step.outputs = readSlots(s.outputs());
    for (const proto::FlowBlock& block : s.blocks()) step.blocks.push_back(readBlock(block));
  }
  return out;
}

} // namespace

void fillFlow(proto::Flow& out, PayloadWriter& payloads, const FlowBundle& in) {
  for (const runtime::control_flow::Slot& slot : in.flow.slots) {
    proto::Slot* s = out.add_slots();
    s->set_name(slot.name);
    s->set_kind(static_cast<uint32_t>(slot.kind));
    s->set_elem(static_cast<uint32_t>(slot.elem));
    for (const int64_t dim : slot.dims) s->add_dims(dim);
    s->set_ranked(slot.ranked);
  }
  for (const runtime::control_flow::Constant& constant : in.flow.constants) {
    proto::FlowConstant* c = out.add_constants();
    c->set_slot(constant.slot);
    payloads.add(c->mutable_data(), constant.tensor.bytes);
  }
  fillSlots(out.mutable_inputs(), in.flow.inputs);
  fillSlots(out.mutable_outputs(), in.flow.outputs);
  for (const std::string& name : in.flow.outputNames) out.add_output_names(name);
  fillBlock(*out.mutable_main(), in.flow.main);
  for (const Bundle& unit : in.units) fill(*out.add_units(), payloads, unit);
}

Result<std::shared_ptr<const FlowBundle>> readFlow(const proto::Flow& in, const Bytes& payloads) {
  auto out = std::make_shared<FlowBundle>();
  for (const proto::Slot& s : in.slots()) {
    runtime::control_flow::Slot slot;
    slot.name = s.name();
    if (s.kind() > static_cast<uint32_t>(runtime::control_flow::Slot::Kind::optional))
      return badModel("unknown kind {} of a slot", s.kind());
    slot.kind = static_cast<runtime::control_flow::Slot::Kind>(s.kind());
    if (s.elem() != 0 && !isValidElem(s.elem()))
      return badModel("slot {} has unknown element type {}", s.name(), s.elem());
    slot.elem = static_cast<Elem>(s.elem());
    slot.dims.assign(s.dims().begin(), s.dims().end());
    slot.ranked = s.ranked();
    out->flow.slots.push_back(std::move(slot));
  }
  for (const proto::FlowConstant& c : in.constants()) {
    if (c.slot() >= out->flow.slots.size() || !out->flow.slots[c.slot()].isTyped())
      return badModel("a constant stands in slot {}, which has no type", c.slot());
    const runtime::control_flow::Slot& slot = out->flow.slots[c.slot()];
    Tensor tensor{slot.elem, slot.dims, {}};
    CDL_ASSIGN(tensor.bytes, take(payloads, c.data()));
    if (!elementCount(slot.dims) || slot.elem == Elem::none ||
        tensor.bytes.size() != tensor.sizeBytes())
      return badModel("constant {} of {} bytes is {}", slot.name, tensor.bytes.size(),
                      slot.typeText());
    out->flow.constants.push_back({c.slot(), std::move(tensor)});
  }
  out->flow.inputs = readSlots(in.inputs());
  out->flow.outputs = readSlots(in.outputs());
  out->flow.outputNames.assign(in.output_names().begin(), in.output_names().end());
  out->flow.main = readBlock(in.main());
  std::vector<runtime::control_flow::Ports> ports;
  for (const proto::Manifest& u : in.units()) {
    if (u.has_flow()) return badModel("a unit is a flow itself");
    CDL_ASSIGN(Bundle unit, read(u, payloads));
    ports.push_back({unit.inputs.size(), unit.outputs.size()});
    out->units.push_back(std::move(unit));
  }
  CDL_TRY(control_flow::verify(out->flow, ports));
  return std::shared_ptr<const FlowBundle>(std::move(out));
}

} // namespace candela::runtime::bundle
