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
  auto session = adopt(std::move(bundle), std::move(runners));
  CDL_TRY(session->initStates());
  return session;
}

std::unique_ptr<Session> Session::adopt(Bundle bundle, std::vector<std::unique_ptr<Runner>> runners) {
  CDL_CHECK(bundle.partitions.size() == runners.size());
  auto session = std::make_unique<Session>();
  session->bundle_ = std::move(bundle);
  session->runners_ = std::move(runners);
  return session;
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
