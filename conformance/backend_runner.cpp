#include "conformance/backend_runner.h"

#include "conformance/port.h"
#include "core/compiler/driver/flow_model.h"

namespace candela::conform {
RunCase backendRunner(Port& port, bool toPrimitives) {
  pipeline::CompileOptions options;
  options.toPrimitives = toPrimitives;
  return [&port, options](import::Script script,
                          const std::vector<flow::Value>& inputs) -> Result<RunAnswer> {
    CDL_ASSIGN(const auto devices, port.devices());
    CDL_ASSIGN(const auto model, pipeline::FlowModel::create(std::move(script), "case", devices,
                                                             options, port.isReference()));
    RunAnswer answer;
    for (const runtime::NodePlacement& node : model->described().placement)
      answer.work +=
          {1, node.cls == runtime::NodePlacement::Class::native, node.macs, node.nativeMacs};
    CDL_ASSIGN(answer.outputs, model->run(inputs));
    return answer;
  };
}

} // namespace candela::conform
