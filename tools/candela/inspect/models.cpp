// Pages about models and data: ONNX, graphs, tensors, reports.
#include <algorithm>
#include <map>
#include <set>

#include "core/compiler/driver/custom_ops.h"
#include "core/compiler/import/formats.h"
#include "core/compiler/import/import.h"
#include "core/support/compare.h"
#include "core/support/file.h"
#include "core/support/hash.h"
#include "core/support/json.h"
#include "tools/candela/inspect/inspect.h"
#include "tools/candela/run/run.h"
#include "tools/candela/support/ir_file.h"
#include "tools/candela/support/model.h"

namespace candela::tool {
namespace {

std::string dimsText(const import::onnx_io::ValueInfo& value) {
  if (value.elem == Elem::none) return value.what;
  if (!value.hasShape) return fmt::format("{}[...]", elemName(value.elem));
  std::vector<std::string> dims;
  for (const import::onnx_io::Dim& dim : value.dims) {
    const std::string number = dim.value < 0 ? "?" : fmt::format("{}", dim.value);
    dims.push_back(dim.name.empty() ? number : dim.name);
  }
  return fmt::format("{}[{}]", elemName(value.elem), fmt::join(dims, ","));
}

PageTable ports(const std::string& name, const std::vector<import::onnx_io::ValueInfo>& values,
                const std::map<std::string, bool>& hidden) {
  PageTable table{name, {"name", "type"}, {}};
  for (const import::onnx_io::ValueInfo& value : values)
    if (!hidden.count(value.name)) table.rows.push_back({value.name, dimsText(value)});
  return table;
}

/// (what, how often), the most frequent first.
PageTable counted(const std::string& name, const std::string& column,
                  const std::map<std::string, uint64_t>& counts) {
  std::vector<std::pair<std::string, uint64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  PageTable table{name, {column, "count"}, {}};
  for (const auto& [what, count] : sorted) table.rows.push_back({what, count});
  return table;
}

void drawModel(Drawing& drawing, const import::onnx_io::Graph& graph) {
  std::map<std::string, std::string> producer;
  for (const import::onnx_io::ValueInfo& input : graph.inputs) {
    drawing.nodes.push_back({"input " + input.name, input.name, dimsText(input)});
    producer[input.name] = drawing.nodes.back().id;
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const import::onnx_io::Node& node = graph.nodes[i];
    drawing.nodes.push_back({fmt::format("node {}", i), node.opType, node.name});
    for (const std::string& output : node.outputs)
      if (!output.empty()) producer[output] = drawing.nodes.back().id;
  }
  for (const import::onnx_io::Initializer& initializer : graph.initializers)
    producer.erase(initializer.name);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const std::string& input : graph.nodes[i].inputs) {
      const auto at = producer.find(input);
      if (at != producer.end())
        drawing.edges.push_back({at->second, fmt::format("node {}", i), input});
    }
  for (const import::onnx_io::ValueInfo& output : graph.outputs) {
    drawing.nodes.push_back({"output " + output.name, output.name, dimsText(output)});
    const auto at = producer.find(output.name);
    if (at != producer.end())
      drawing.edges.push_back({at->second, "output " + output.name, output.name});
  }
}

/// Who claims what, by operator; those that somebody refused are not in the result.
std::set<std::string> addClaims(Page& page, const std::string& path, const std::string& backends,
                                ImportFlags flags) {
  std::vector<std::shared_ptr<runtime::plugin::Device>> devices;
  for (const std::string& name : splitList(backends))
    if (name != "soft" && name != "reference")
      devices.push_back(check(check(runtime::plugin::findDevice(name)).open({})));
  const import::ClaimOp ask = check(driver::claimBy(devices));
  PageTable table{
      "operators of backends", {"node", "op", "claimed by", "results", "other form"}, {}};
  std::set<std::string> claimed, refused;
  flags.claim = [&](const import::CustomNode& asked) {
    Result<import::CustomOp> op = ask(asked);
    (op ? claimed : refused).insert(asked.node.opType);
    if (!op) return op;
    std::vector<std::string> results;
    for (const graph::TensorType& type : op->results) results.push_back(type.text());
    table.rows.push_back({asked.name, asked.node.domain + "." + asked.node.opType,
                          std::get<std::string>(op->attrs.at("plugin")),
                          fmt::format("{}", fmt::join(results, " ")), op->body ? "yes" : "no"});
    return op;
  };
  try {
    std::string flow;
    readGraphs(path, flags, flow);
  } catch (const Failure& failure) {
    page.fact("refused", failure.what());
  }
  page.tables.push_back(std::move(table));
  for (const std::string& op : refused) claimed.erase(op);
  return claimed;
}

} // namespace

Page inspectModel(const std::string& path, const std::string& backends, ImportFlags flags) {
  const Bytes content = check(mapFile(path));
  const import::Format& format = import::formatOf(content);
  const import::onnx_io::Model model = check(format.read(content, path));
  Page page{fmt::format("{} model", format.name), path, {}, {}, {}};
  std::map<std::string, uint64_t> ops;
  for (const import::onnx_io::Node& node : model.graph.nodes)
    ++ops[node.domain.empty() ? node.opType : node.domain + "." + node.opType];
  uint64_t parameters = 0, bytes = 0;
  std::map<std::string, bool> initialised;
  for (const import::onnx_io::Initializer& initializer : model.graph.initializers) {
    parameters += static_cast<uint64_t>(initializer.tensor.count());
    bytes += initializer.tensor.sizeBytes();
    initialised[initializer.name] = true;
  }
  std::vector<std::string> opsets;
  for (const auto& [domain, version] : model.opsets)
    opsets.push_back(fmt::format("{} {}", domain.empty() ? "ai.onnx" : domain, version));
  page.fact("nodes", model.graph.nodes.size());
  page.fact("opsets", opsets);
  page.fact("ir version", model.irVersion);
  page.fact("producer", model.producer);
  page.fact("parameters", parameters);
  page.fact("parameter bytes", bytes);
  page.fact("functions", model.functions.size());
  const auto known = import::supportedOperators();
  std::vector<std::string> unknown;
  for (const import::onnx_io::Node& node : model.graph.nodes) {
    const bool isFunction = std::any_of(model.functions.begin(), model.functions.end(),
                                        [&](const import::onnx_io::Function& f) {
                                          return f.name == node.opType && f.domain == node.domain;
                                        });
    if (!isFunction &&
        std::find(known.begin(), known.end(), std::pair(node.domain, node.opType)) == known.end() &&
        std::find(unknown.begin(), unknown.end(), node.opType) == unknown.end())
      unknown.push_back(node.opType);
  }
  if (!backends.empty()) {
    const std::set<std::string> claimed = addClaims(page, path, backends, std::move(flags));
    std::erase_if(unknown, [&](const std::string& op) { return claimed.count(op) > 0; });
  }
  page.fact("unsupported operators", unknown);
  page.tables.push_back(ports("inputs", model.graph.inputs, initialised));
  page.tables.push_back(ports("outputs", model.graph.outputs, {}));
  page.tables.push_back(counted("nodes by op", "op", ops));
  PageTable weights{"initializers", {"name", "type", "bytes"}, {}};
  for (const import::onnx_io::Initializer& initializer : model.graph.initializers)
    weights.rows.push_back(
        {initializer.name, initializer.tensor.typeText(), initializer.tensor.sizeBytes()});
  page.tables.push_back(std::move(weights));
  drawModel(page.drawing, model.graph);
  return page;
}

void drawGraph(Drawing& drawing, const graph::Graph& graph) {
  std::map<const graph::Value*, std::string> producer;
  for (const graph::Value* input : graph.inputs()) {
    drawing.nodes.push_back({"input " + input->name, input->name, input->type.text()});
    producer[input] = drawing.nodes.back().id;
  }
  int nodes = 0;
  for (const auto& node : graph.nodes()) {
    if (node->kind == graph::OpKind::Constant) continue;
    const std::string id = fmt::format("node {}", nodes++);
    drawing.nodes.push_back({id, std::string(graph::opName(node->kind)), node->userName()});
    for (const graph::Value* operand : node->operands()) {
      const auto at = producer.find(operand);
      if (at != producer.end()) drawing.edges.push_back({at->second, id, operand->type.text()});
    }
    for (const graph::Value* result : node->results()) producer[result] = id;
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const graph::Value* output = graph.outputs()[i];
    const std::string id = "output " + graph.outputNames()[i];
    drawing.nodes.push_back({id, graph.outputNames()[i], output->type.text()});
    const auto at = producer.find(output);
    if (at != producer.end()) drawing.edges.push_back({at->second, id, ""});
  }
}

namespace {

Page inspectGraph(const std::string& path, const graph::Graph& graph) {
  Page page{"graph", path, {}, {}, {}};
  std::map<std::string, uint64_t> ops;
  uint64_t constants = 0, constantBytes = 0, nodes = 0;
  PageTable inputs{"inputs", {"name", "type"}, {}}, outputs{"outputs", {"name", "type"}, {}};
  for (const graph::Value* input : graph.inputs())
    inputs.rows.push_back({input->name, input->type.text()});
  for (const auto& node : graph.nodes()) {
    const bool isConstant = node->kind == graph::OpKind::Constant;
    constants += isConstant ? 1 : 0;
    nodes += isConstant ? 0 : 1;
    if (isConstant)
      constantBytes += node->payload->sizeBytes();
    else
      ++ops[std::string(graph::opName(node->kind))];
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    outputs.rows.push_back({graph.outputNames()[i], graph.outputs()[i]->type.text()});
  drawGraph(page.drawing, graph);
  page.fact("name", graph.name);
  page.fact("nodes", nodes);
  page.fact("constants", constants);
  page.fact("constant bytes", constantBytes);
  page.tables.push_back(std::move(inputs));
  page.tables.push_back(std::move(outputs));
  page.tables.push_back(counted("nodes by op", "op", ops));
  return page;
}

} // namespace

Page inspectText(const std::string& path) {
  Diagnostics diagnostics;
  Result<Ir> ir = parseIr(check(readText(path)), path, diagnostics);
  check(diagnostics.status());
  check(ir.status());
  if (const auto* graph = std::get_if<graph::Graph>(&*ir)) return inspectGraph(path, *graph);
  Page page{"program", path, {}, {}, {}};
  addProgram(page, std::get<program::Program>(*ir));
  return page;
}

Page inspectTensor(const std::string& path) {
  const Tensor tensor = check(readNpy(path));
  Page page{"tensor", path, {}, {}, {}};
  page.fact("type", tensor.typeText());
  page.fact("bytes", tensor.sizeBytes());
  page.fact("values", summaryText(tensor));
  page.fact("sha256", hashText(sha256(tensor.bytes.data(), tensor.sizeBytes())));
  return page;
}

Page inspectReport(const std::string& path) {
  const Json report = parseJson<Json>(check(readText(path)));
  const Json schema = report.is_object() ? report.value("schema", Json()) : Json();
  if (!schema.is_string() || !schema.get<std::string>().starts_with("candela."))
    fail(kBadInput, "{}: not a report of candela: no schema named candela.*", path);
  Page page{"report", path, {}, {}, {}};
  for (const auto& [name, value] : report.items()) {
    // inspect's own report has a schema, a version and a command too.
    const bool ours = name == "schema" || name == "candela_version" || name == "command";
    const std::string key = ours ? "report " + name : name;
    if (value.is_object()) {
      for (const auto& [inner, number] : value.items()) page.fact(key + " " + inner, number);
    } else if (value.is_array() && !value.empty() && value[0].is_object()) {
      PageTable table{key, {}, {}};
      for (const auto& [column, unused] : value[0].items()) table.columns.push_back(column);
      for (const Json& entry : value) {
        std::vector<Json> row;
        for (const std::string& column : table.columns)
          row.push_back(entry.is_object() ? entry.value(column, Json()) : Json());
        table.rows.push_back(std::move(row));
      }
      page.tables.push_back(std::move(table));
    } else {
      page.fact(key, value);
    }
  }
  return page;
}

} // namespace candela::tool
