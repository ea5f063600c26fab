#include "core/runtime/session/session.h"

#include "core/runtime/session/image_runner.h"
#include "core/support/worker_pool.h"

namespace candela::runtime::session {

Result<std::unique_ptr<Runner>> makeRunner(const bundle::Bundle& bundle,
                                           const bundle::BundlePartition& partition,
                                           std::shared_ptr<plugin::Device> device,
                                           Refusal* refusal) {
  CDL_TRY(threadsOfEnvironment().status()); // which the pool itself cannot complain of
  return device ? makeDeviceRunner(bundle, partition, std::move(device), refusal)
                : makeSoftRunner(bundle, partition);
}

Result<std::unique_ptr<Session>>
Session::create(bundle::Bundle bundle, std::span<const std::shared_ptr<plugin::Device>> devices) {
  CDL_TRY(bundle::verifyBundle(bundle));
  std::vector<std::shared_ptr<plugin::Device>> open(devices.begin(), devices.end());
  std::vector<std::unique_ptr<Runner>> runners;
  for (const bundle::BundlePartition& partition : bundle.partitions) {
    std::shared_ptr<plugin::Device> device;
    for (const std::shared_ptr<plugin::Device>& candidate : open)
      if (candidate->id() == partition.backend) device = candidate;
    if (!device && !partition.backend.empty()) {
      CDL_ASSIGN(const plugin::FoundDevice found, plugin::findDeviceNamed(partition.backend));
      CDL_TRY(found.plugin->checkStoredOptions(partition.options));
      CDL_ASSIGN(device, found.open(partition.options));
      open.push_back(device);
    }
    CDL_ASSIGN(std::unique_ptr<Runner> runner, makeRunner(bundle, partition, device));
    runners.push_back(std::move(runner));
  }
  auto session = adopt(std::move(bundle), std::move(runners));
  CDL_TRY(session->initStates());
  return session;
}

std::unique_ptr<Session> Session::adopt(bundle::Bundle bundle,
                                        std::vector<std::unique_ptr<Runner>> runners) {
  CDL_CHECK(bundle.partitions.size() == runners.size());
  auto session = std::make_unique<Session>();
  session->bundle_ = std::move(bundle);
  session->runners_ = std::move(runners);
  const bundle::Bundle& held = session->bundle_;
  session->isComputed_.assign(held.values.size(), false);
  for (uint32_t v = 0; v < held.values.size(); ++v) {
    session->source_.push_back(v);
    session->valueBytes_.push_back(held.values[v].sizeBytes());
  }
  for (const bundle::BundleStep& step : held.steps) {
    const bool isCopy = step.kind == bundle::StepKind::copy;
    if (isCopy) session->source_[step.outputs[0]] = session->source_[step.inputs[0]];
    const std::string backend = isCopy ? "" : held.partitions[step.partition].backend;
    session->stepNames_.push_back(
        fmt::format("{} on {}", step.partition, backend.empty() ? "soft" : backend));
    for (const uint32_t v : step.outputs) session->isComputed_[v] = !isCopy;
  }
  session->findReaders();
  session->findStages();
  return session;
}

} // namespace candela::runtime::session
