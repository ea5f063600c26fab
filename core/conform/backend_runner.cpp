#include "core/conform/backend_runner.h"

#include <memory>

#include "core/conform/workers.h"
#include "core/pipeline/flow_model.h"

namespace candela::conform {
RunCase backendRunner(const std::string& backend, bool toPrimitives) {
  pipeline::CompileOptions options;
  options.toPrimitives = toPrimitives;
  return [backend, options, devices = std::vector<std::shared_ptr<runtime::Device>>()](
             import::Script script, const std::vector<flow::Value>& inputs) mutable -> Result<RunAnswer> {
    const bool reference = backend == "reference";
    if (!reference && backend != "soft" && devices.empty()) {
      CDL_ASSIGN(const auto plugin, runtime::findPlugin(backend));
      CDL_ASSIGN(auto device, plugin->open(0, {}));
      devices.push_back(std::move(device));
    }
    CDL_ASSIGN(const auto model, pipeline::FlowModel::create(std::move(script), "case", devices, options, reference));
    RunAnswer answer;
    for (const runtime::NodePlacement& node : model->described().placement)
      answer.work += {1, node.cls == runtime::NodePlacement::Class::native, node.macs, node.nativeMacs};
    CDL_ASSIGN(answer.outputs, model->run(inputs));
    return answer;
  };
}

Status probeBackend(const std::string& backend) {
  if (backend == "reference" || backend == "soft") return Status::ok();
  const auto probe = [&](size_t) {
    CaseResult result;
    const auto plugin = runtime::findPlugin(backend);
    const Status status = plugin ? (*plugin)->open(0, {}).status() : plugin.status();
    result.outcome = status ? CaseResult::Outcome::passed : CaseResult::Outcome::failed;
    result.reason = status.message();
    return result;
  };
  CDL_ASSIGN(const std::vector<CaseResult> results, runInWorkers({"backend"}, probe, {}, nullptr));
  if (results[0].outcome == CaseResult::Outcome::passed) return Status::ok();
  return badArgument("{}", results[0].reason).context(fmt::format("backend {}", backend));
}

} // namespace candela::conform
