#include "core/compiler/import/dynamic/outer_names.h"
#include "core/compiler/import/dynamic/script_assembly.h"
#include "core/compiler/import/graph_importer.h"

namespace candela::import {

Result<Script> importSection(const Section& section,
                             std::span<const runtime::control_flow::Value> inputs) {
  const ImportOptions options{.claim = section.claim, .randomSeed = section.randomSeed};
  ImportContext context(section.model, options);
  GraphImporter importer(context);
  CDL_CHECK(inputs.size() == section.inputs.size());
  Frame& frame = context.frames.front();
  const auto define = [&](const std::string& name, const Slot& slot) {
    context.scope.define(name, slot);
    context.scope.define(outerName(name), slot);
  };
  for (const auto& [name, tensor] : section.constants) define(name, frame.addConstant(tensor));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Section::Input& input = section.inputs[i];
    const auto param = [&](const Tensor& tensor) {
      const Slot slot = frame.addParam(input.name, {tensor.elem, tensor.dims});
      context.script.flow.inputs.push_back(slot.run);
      return slot;
    };
    Slot slot;
    slot.frame = &frame;
    if (inputs[i].isTensor()) {
      slot = input.frozen ? frame.addConstant(inputs[i].tensor) : param(inputs[i].tensor);
    } else if (inputs[i].isSequence()) {
      slot.list = std::make_shared<std::vector<Slot>>();
      for (const Tensor& item : *inputs[i].items) slot.list->push_back(param(item));
    }
    define(input.name, slot);
  }
  for (const Section::Item& item : section.items) {
    const Place place{frame, context.scope, item.opsets, ""};
    NodeContext::Contents known = item.known;
    if (!item.content.empty()) {
      const auto ints = Builder::knownInts(context.scope.find(item.content)->value);
      if (!ints)
        return failure(Code::unsupported, "node '{}': too many values decide a shape", item.name);
      known.push_back(*ints);
    }
    importer.addNode(place, item.node, item.name, std::move(known));
    for (const std::string& output : item.node.outputs)
      if (const Slot* made = context.scope.find(output))
        context.scope.define(outerName(output), *made);
  }
  if (!context.diagnostics.empty()) return context.diagnostics.status(""); // the run names the file
  std::vector<Slot> outputs;
  for (const std::string& output : section.outputs) outputs.push_back(*context.scope.find(output));
  return assembleScript(context, outputs, section.outputs);
}

} // namespace candela::import
