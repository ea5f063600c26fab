#include "conformance/backend_runner.h"

#include "conformance/port.h"
#include "core/compiler/driver/flow_model.h"

namespace candela::conformance {
RunCase backendRunner(Port& port, bool toPrimitives) {
  driver::CompileOptions options;
  options.toPrimitives = toPrimitives;
  return [&port,
          options](import::Script script,
                   const std::vector<runtime::control_flow::Value>& inputs) -> Result<RunAnswer> {
    CDL_ASSIGN(const auto devices, port.devices());
    CDL_ASSIGN(const auto model, driver::FlowModel::create(std::move(script), "case", devices,
                                                           options, port.isReference()));
    RunAnswer answer;
    for (const runtime::bundle::NodePlacement& node : model->described().placement)
      answer.work += {1, node.cls == runtime::bundle::NodePlacement::Class::native, node.macs,
                      node.nativeMacs};
    CDL_ASSIGN(answer.outputs, model->run(inputs));
    return answer;
  };
}

} // namespace candela::conformance
