#include "core/compiler/export/onnx/export_onnx.h"

#include "core/compiler/export/onnx/writer.h"

namespace candela::exporter::onnx {
namespace {

onnx_io::ValueInfo infoOf(const std::string& name, const graph::TensorType& type) {
  onnx_io::ValueInfo info;
  info.name = name;
  info.elem = type.elem;
  info.hasShape = true;
  for (const int64_t dim : type.dims) info.dims.push_back({dim, ""});
  return info;
}

/// What is an input, or an output twice, gets a node that gives the output its name.
void writeOutputs(GraphWriter& writer, const graph::Graph& graph,
                  const std::map<const graph::Value*, std::string>& named) {
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const graph::Value* output = graph.outputs()[i];
    const std::string& name = graph.outputNames()[i];
    writer.into().outputs.push_back(infoOf(name, output->type));
    const auto own = named.find(output);
    if (own != named.end() && own->second == name) continue;
    writer.copyTo(output, name);
  }
}

} // namespace

Result<onnx_io::Model> toOnnx(const graph::Graph& graph) {
  onnx_io::Model model;
  model.isOnnx = false;
  model.irVersion = kIrVersion;
  model.producer = "candela";
  model.opsets[""] = kOpset;
  model.graph.name = graph.name;
  ModelWriter shared;
  GraphWriter writer(shared, model.graph);
  std::map<const graph::Value*, std::string> named;
  for (const graph::Value* input : graph.inputs()) {
    shared.names.insert(input->name);
    writer.name(input, input->name);
    named[input] = input->name;
    model.graph.inputs.push_back(infoOf(input->name, input->type));
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const graph::Value* output = graph.outputs()[i];
    const std::string& name = graph.outputNames()[i];
    const bool isNew = shared.names.insert(name).second;
    if (!isNew && (!named.contains(output) || named[output] != name))
      return badModel("graph '{}': two values that are seen outside are named '{}'", graph.name,
                      name);
    // A constant's elements stand under another name than what comes out.
    const bool isMade = isNew && !output->isConstant();
    if (isMade && named.emplace(output, name).second) writer.name(output, name);
  }
  writer.write(graph);
  writeOutputs(writer, graph, named);
  CDL_TRY(shared.refusals.status("ONNX"));
  if (shared.hasIntegerRows && shared.hasFloatRows)
    return failure(Code::unsupported,
                   "some of its softmaxes and norms are meant as functions of integers and some "
                   "are not; a model of ONNX says it of all or of none");
  model.integerRows = shared.hasIntegerRows;
  return model;
}

} // namespace candela::exporter::onnx
