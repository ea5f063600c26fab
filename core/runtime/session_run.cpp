#include "core/runtime/session.h"

namespace candela::runtime {

Status Session::bindStates(const std::vector<std::string>& texts) {
  CDL_TRY(addStates(bundle_, texts));
  return initStates();
}

/// Each state lies where the step that writes it writes to, twice: one room is read while the other is written.
Status Session::initStates() {
  residents_.clear();
  return states_.init(bundle_, [&](const BundleState& state) -> Result<Bytes> {
    const uint32_t value = bundle_.outputs[state.output];
    Resident resident;
    Bytes room;
    for (const BundleStep& step : bundle_.steps)
      for (size_t i = 0; step.kind != StepKind::copy && i < step.outputs.size(); ++i)
        if (step.outputs[i] == value) { CDL_ASSIGN(room, runners_[step.partition]->allocateOutput(i, resident)); }
    if (!room.data()) { CDL_ASSIGN(room, Bytes::allocate(bundle_.values[value].sizeBytes())); }
    residents_[room.data()] = resident;
    return room;
  });
}

Result<std::vector<Tensor>> Session::run(std::span<const Tensor> inputs, RunStats* stats) {
  uint64_t copied = 0;
  auto outputs = states_.run(
      inputs, [&](std::span<const Tensor> all) { return runOnce(all, stats); }, &copied);
  if (stats) stats->stateBytes += copied;
  return outputs;
}

Result<std::vector<Tensor>> Session::runOnce(std::span<const Tensor> inputs, RunStats* stats) {
  if (inputs.size() != bundle_.inputs.size())
    return badArgument("{} inputs were given, the model has {}", inputs.size(), bundle_.inputs.size());
  std::vector<Tensor> values(bundle_.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    CDL_TRY(bundle_.values[bundle_.inputs[i]].checkInput(inputs[i]));
    values[bundle_.inputs[i]] = inputs[i];
  }
  for (size_t v = 0; v < values.size(); ++v) {
    const BundleValue& value = bundle_.values[v];
    if (value.constant != kNoConstant) values[v] = {value.elem, value.dims, bundle_.constants[value.constant].bytes};
  }

  RunStats counted;
  counted.residents = residents_.empty() ? nullptr : &residents_;
  for (const BundleStep& step : bundle_.steps) {
    if (step.kind == StepKind::copy) {
      values[step.outputs[0]] = values[step.inputs[0]];
    } else {
      std::vector<Tensor> in, out;
      for (uint32_t v : step.inputs) in.push_back(values[v]);
      for (uint32_t v : step.outputs) {
        if (const Tensor* room = states_.room(v)) {
          out.push_back(*room);
          continue;
        }
        auto tensor = Tensor::zeros(bundle_.values[v].elem, bundle_.values[v].dims);
        if (!tensor) return tensor.status().context(fmt::format("value '{}'", bundle_.values[v].name));
        out.push_back(*std::move(tensor));
      }
      const std::string& backend = bundle_.partitions[step.partition].backend;
      const std::string on = fmt::format("{} on {}", step.partition, backend.empty() ? "soft" : backend);
      const Span span("partition", on);
      if (Trace* trace = Trace::current()) trace->enter(bundle_.partitions[step.partition].image, backend);
      CDL_TRY(runners_[step.partition]->run(in, out, counted).context("partition " + on));
      for (size_t i = 0; i < step.outputs.size(); ++i) values[step.outputs[i]] = std::move(out[i]);
    }
  }
  if (stats) *stats = counted;
  std::vector<Tensor> outputs;
  for (uint32_t v : bundle_.outputs) outputs.push_back(values[v]);
  return outputs;
}

Status Session::save(const std::string& path) const {
  CDL_ASSIGN(const Bundle bundle, stored());
  return saveBundle(bundle, path);
}

Result<Bundle> Session::stored() const {
  Bundle stored = bundle_;
  stored.constants.clear();
  const auto keep = [&](uint32_t& constant) {
    if (constant == kNoConstant) return;
    const BundleConstant& kept = bundle_.constants[constant];
    constant = stored.addConstant(kept.hash, kept.bytes);
  };
  for (BundleValue& value : stored.values) keep(value.constant);
  for (size_t p = 0; p < runners_.size(); ++p) {
    BundlePartition& partition = stored.partitions[p];
    CDL_ASSIGN(partition.executable, runners_[p]->save());
    if (partition.executable.size()) partition.constants.clear();
    for (uint32_t& constant : partition.constants) keep(constant);
  }
  return stored;
}

} // namespace candela::runtime
