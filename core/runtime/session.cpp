#include "core/runtime/session.h"

#include "core/runtime/image_runner.h"

namespace candela::runtime {

Result<std::unique_ptr<Runner>> makeRunner(const Bundle& bundle, const BundlePartition& partition,
                                           std::shared_ptr<Device> device, Refusal* refusal) {
  return device ? makeDeviceRunner(bundle, partition, std::move(device), refusal) : makeSoftRunner(bundle, partition);
}

Result<std::unique_ptr<Session>> Session::create(Bundle bundle, std::span<const std::shared_ptr<Device>> devices) {
  CDL_TRY(verifyBundle(bundle));
  std::vector<std::shared_ptr<Device>> open(devices.begin(), devices.end());
  std::vector<std::unique_ptr<Runner>> runners;
  for (const BundlePartition& partition : bundle.partitions) {
    std::shared_ptr<Device> device;
    for (const std::shared_ptr<Device>& candidate : open)
      if (candidate->plugin().name() == partition.backend) device = candidate;
    if (!device && !partition.backend.empty()) {
      CDL_ASSIGN(std::shared_ptr<Plugin> plugin, findPlugin(partition.backend));
      CDL_ASSIGN(device, plugin->open(0, partition.options));
      open.push_back(device);
    }
    CDL_ASSIGN(std::unique_ptr<Runner> runner, makeRunner(bundle, partition, device));
    runners.push_back(std::move(runner));
  }
  return adopt(std::move(bundle), std::move(runners));
}

std::unique_ptr<Session> Session::adopt(Bundle bundle, std::vector<std::unique_ptr<Runner>> runners) {
  CDL_CHECK(bundle.partitions.size() == runners.size());
  auto session = std::make_unique<Session>();
  session->bundle_ = std::move(bundle);
  session->runners_ = std::move(runners);
  return session;
}

Result<std::vector<Tensor>> Session::run(std::span<const Tensor> inputs, RunStats* stats) {
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
  counted.profile = profile_;
  std::vector<TraceEvent> events;
  const uint64_t start = nowNs();
  for (size_t s = 0; s < bundle_.steps.size(); ++s) {
    const BundleStep& step = bundle_.steps[s];
    TraceEvent event{fmt::format("step {}", s), "host", nowNs() - start};
    if (step.kind == StepKind::copy) {
      values[step.outputs[0]] = values[step.inputs[0]];
    } else {
      std::vector<Tensor> in, out;
      for (uint32_t v : step.inputs) in.push_back(values[v]);
      for (uint32_t v : step.outputs) {
        auto tensor = Tensor::zeros(bundle_.values[v].elem, bundle_.values[v].dims);
        if (!tensor) return tensor.status().context(fmt::format("value '{}'", bundle_.values[v].name));
        out.push_back(*std::move(tensor));
      }
      const std::string& backend = bundle_.partitions[step.partition].backend;
      event.on = backend.empty() ? "soft" : backend;
      event.name = fmt::format("partition {}", step.partition);
      CDL_TRY(runners_[step.partition]->run(in, out, counted).context(fmt::format("{} on {}", event.name, event.on)));
      for (size_t i = 0; i < step.outputs.size(); ++i) values[step.outputs[i]] = std::move(out[i]);
      for (const cdl_profile_record_t& r : counted.records)
        events.push_back({"", event.on, r.start_ns - start, r.end_ns - start, step.partition, r.instr});
      counted.records.clear();
    }
    event.endNs = nowNs() - start;
    events.push_back(std::move(event));
  }
  {
    const std::lock_guard lock(traceMutex_);
    trace_ = std::move(events);
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

std::vector<TraceEvent> Session::trace() const {
  const std::lock_guard lock(traceMutex_);
  return trace_;
}

} // namespace candela::runtime
