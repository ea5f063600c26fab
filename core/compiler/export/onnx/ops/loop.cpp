#include "core/compiler/graph/loop.h"

#include "core/compiler/export/onnx/ops.h"

namespace candela::exporter::onnx {
namespace {

onnx_io::ValueInfo infoOf(const Term& term) {
  onnx_io::ValueInfo info;
  info.name = term.name;
  info.elem = term.elem;
  info.hasShape = true;
  for (const int64_t dim : term.dims) info.dims.push_back({dim, ""});
  return info;
}

/// The nodes of a body, which reads the values around it by their names.
struct Body {
  std::shared_ptr<onnx_io::Graph> graph = std::make_shared<onnx_io::Graph>();
  GraphWriter writer;

  Body(GraphWriter& around, const graph::Node& node) : writer(around.model(), *graph) {
    graph->name = around.model().unique(node.userName() + ".body");
  }

  void addInput(const graph::Value* input) { graph->inputs.push_back(infoOf(writer.of(input))); }
  /// Another graph's value stands for the input.
  void capture(const graph::Value* input, const Term& outer) { writer.alias(input, outer); }
  /// Outputs are results of nodes of the body's own, each once.
  void addOutputs(const graph::Graph& body) {
    for (const graph::Value* output : body.outputs()) {
      const Term value = writer.of(output);
      const Term own = writer.make("Identity", {value}, value.elem, value.dims);
      graph->outputs.push_back(infoOf(own));
    }
  }
};

/// What runs backward was made from its end.
Term reversed(GraphWriter& w, const Term& x) { return w.slice(x, 0, x.dims[0] - 1, -1, -1); }

std::vector<graph::TensorType> typesOf(const graph::Node& node) {
  std::vector<graph::TensorType> types;
  for (const graph::Value* result : node.results()) types.push_back(result->type);
  return types;
}

/// Without a scanned operand nothing but a count says how often a body runs.
void writeCounted(GraphWriter& w, const graph::Node& node, const graph::LoopForm& form) {
  const graph::Graph& inner = *node.body;
  Body body(w, node);
  const Term trip{w.model().unique("trip"), Elem::i64_, {}};
  const Term before{w.model().unique("condition"), Elem::bool_, {}};
  body.graph->inputs = {infoOf(trip), infoOf(before)};
  const Terms operands = w.operandsOf(node);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i < form.carried)
      body.addInput(inner.inputs()[i]);
    else
      body.capture(inner.inputs()[i], operands[i]);
  }
  body.writer.write(inner);
  const Term after = body.writer.make("Identity", {before}, Elem::bool_, {});
  body.graph->outputs.push_back(infoOf(after));
  body.addOutputs(inner);
  Terms given = {w.whole(form.trips, Elem::i64_), w.number(1, Elem::bool_)};
  given.insert(given.end(), operands.begin(), operands.begin() + static_cast<long>(form.carried));
  const Terms results = w.makeSeveral("Loop", given, typesOf(node), {{"body", body.graph}});
  for (size_t i = 0; i < results.size(); ++i) {
    const bool isBackward = i >= form.carried && form.runsBackward(i - form.carried);
    w.bind(node.result(i), isBackward ? reversed(w, results[i]) : results[i]);
  }
}

} // namespace

void writeLoop(GraphWriter& w, const graph::Node& node) {
  const graph::LoopForm form = graph::loopForm(node);
  if (form.scanned == 0) return writeCounted(w, node, form);
  const graph::Graph& inner = *node.body;
  Body body(w, node);
  const Terms operands = w.operandsOf(node);
  const size_t given = form.carried + form.scanned;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i < given)
      body.addInput(inner.inputs()[i]);
    else
      body.capture(inner.inputs()[i], operands[i]);
  }
  body.writer.write(inner);
  body.addOutputs(inner);
  std::vector<int64_t> inputs, outputs;
  for (size_t i = 0; i < form.scanned; ++i) inputs.push_back(form.runsBackward(i) ? 1 : 0);
  for (size_t i = form.carried; i < node.results().size(); ++i)
    outputs.push_back(form.runsBackward(form.scanned + i - form.carried) ? 1 : 0);
  Attributes attributes = {{"body", body.graph},
                           {"num_scan_inputs", static_cast<int64_t>(form.scanned)},
                           {"scan_input_directions", inputs}};
  if (!outputs.empty()) attributes["scan_output_directions"] = outputs;
  const Terms results =
      w.makeSeveral("Scan", {operands.begin(), operands.begin() + static_cast<long>(given)},
                    typesOf(node), std::move(attributes));
  for (size_t i = 0; i < results.size(); ++i) w.bind(node.result(i), results[i]);
}

void writeCustom(GraphWriter& w, const graph::Node& node) {
  if (!node.body)
    refuse("it is an op of the plugin '{}', and there is no body that says it in other ops",
           node.stringAttr("plugin"));
  const graph::Graph& inner = *node.body;
  GraphWriter writer(w.model(), w.into());
  const Terms operands = w.operandsOf(node);
  for (size_t i = 0; i < operands.size(); ++i) writer.alias(inner.inputs()[i], operands[i]);
  writer.write(inner);
  for (size_t i = 0; i < node.results().size(); ++i)
    w.bind(node.result(i), w.op("Identity", {writer.of(inner.outputs()[i])}));
}

} // namespace candela::exporter::onnx
