// graph.h over the Graph.
#include <candela/graph.h>

#include "core/compiler/differentiate/differentiate.h"
#include "core/compiler/graph/text.h"
#include "core/runtime/api/arguments.h"
#include "core/runtime/api/compile.h"

using namespace candela;
using namespace runtime::api;

struct candela_graph {
  graph::Graph graph;
  std::vector<graph::Value*> values; ///< by number, [0] is none
};

namespace {

candela_value_t addValue(candela_graph& to, graph::Value* value) {
  to.values.push_back(value);
  return static_cast<candela_value_t>(to.values.size() - 1);
}

Result<graph::Value*> valueOf(const candela_graph& in, candela_value_t value) {
  if (value > 0 && value < in.values.size()) return in.values[value];
  return badArgument("value {} of {}", value, in.values.size() - 1);
}

Result<graph::TensorType> typeOf(const candela_tensor_t& given) {
  const auto elem = static_cast<unsigned>(given.elem);
  if (!isValidElem(elem) || given.rank > CANDELA_MAX_RANK)
    return badArgument("element type {} or rank {} is out of range", elem, given.rank);
  graph::TensorType type(static_cast<Elem>(elem), Shape(given.dims, given.dims + given.rank));
  if (!elementCount(type.dims)) return badArgument("impossible shape {}", shapeText(type.dims));
  return type;
}

Status checkFree(const graph::Graph& graph, const char* name) {
  if (!name || !*name) return badArgument("a value without a name");
  if (graph.find(name)) return badArgument("the name '{}' is taken", name);
  return Status::ok();
}

Status addConstant(candela_graph& to, const char* name, const candela_tensor_t& data,
                   candela_value_t& value) {
  CDL_TRY(checkFree(to.graph, name));
  CDL_ASSIGN(const graph::TensorType type, typeOf(data));
  const uint64_t bytes = elemBytes(type.elem, static_cast<uint64_t>(type.count()));
  if (data.bytes < bytes || (!data.data && bytes))
    return badArgument("constant '{}' needs {} bytes, {} were given", name, bytes,
                       data.data ? data.bytes : 0);
  graph::Value* const made =
      to.graph.addConstant(Tensor{type.elem, type.dims, Bytes::copyOf(data.data, bytes)});
  to.graph.rename(made, name);
  value = addValue(to, made);
  return Status::ok();
}

/// A node that is to be added, in the caller's words.
struct GivenNode {
  const char* op;
  std::span<const candela_value_t> operands;
  const char* attributes;
  const char* name;
};

Status addOp(candela_graph& to, const GivenNode& given, std::span<candela_value_t> results) {
  const auto kind = graph::parseOp(given.op);
  if (!kind || *kind == graph::OpKind::Constant)
    return badArgument("there is no op '{}'", given.op);
  const size_t most = graph::opInfo(*kind).results.size();
  if (results.empty() || results.size() > most)
    return badArgument("{} results of '{}', expected 1 to {}", results.size(), given.op, most);
  std::vector<graph::Value*> operands;
  for (const candela_value_t operand : given.operands) {
    operands.push_back(nullptr);
    if (operand == 0) continue;
    CDL_ASSIGN(operands.back(), valueOf(to, operand));
  }
  graph::Attrs attrs;
  if (given.attributes) {
    CDL_ASSIGN(attrs, graph::parseAttrs(given.attributes, *kind));
  }
  graph::Provenance provenance;
  if (given.name) provenance.emplace_back(given.name);
  CDL_ASSIGN(graph::Node* const node,
             to.graph.addNode(*kind, std::move(operands), std::move(attrs), std::move(provenance),
                              nullptr, static_cast<int>(results.size())));
  for (size_t r = 0; r < results.size(); ++r) results[r] = addValue(to, node->result(r));
  return Status::ok();
}

/// What is differentiated, in the caller's numbers.
struct GivenGradients {
  candela_value_t of;
  candela_value_t weight; ///< 0: none
  std::span<const candela_value_t> wrt;
};

Status addGradients(candela_graph& to, const GivenGradients& given,
                    std::span<candela_value_t> gradients) {
  differentiate::Cotangent cotangent;
  CDL_ASSIGN(cotangent.of, valueOf(to, given.of));
  if (given.weight != 0) {
    CDL_ASSIGN(cotangent.weight, valueOf(to, given.weight));
  }
  std::vector<graph::Value*> wrt;
  for (const candela_value_t value : given.wrt) {
    wrt.push_back(nullptr);
    CDL_ASSIGN(wrt.back(), valueOf(to, value));
  }
  CDL_ASSIGN(const std::vector<differentiate::Gradient> made,
             differentiate::differentiate(to.graph, std::span(&cotangent, 1), wrt));
  for (size_t i = 0; i < made.size(); ++i) gradients[i] = addValue(to, made[i].value);
  return Status::ok();
}

/// The same graph under the same names.
graph::Graph copyOf(const graph::Graph& from) {
  graph::Graph copy;
  copy.name = from.name;
  std::map<const graph::Value*, graph::Value*> copies;
  for (const graph::Value* input : from.inputs())
    copies[input] = copy.addInput(input->name, input->type);
  for (const auto& node : from.nodes()) copy.addCopy(*node, copies);
  for (size_t o = 0; o < from.outputs().size(); ++o)
    copy.addOutput(copies.at(from.outputs()[o]), from.outputNames()[o]);
  return copy;
}

} // namespace

extern "C" {

candela_status_t candela_graph_create(const char* name, candela_graph_t** graph) {
  return guarded(nullptr, 0, [&]() -> Status {
    if (!graph) return badArgument("nowhere to put the graph");
    *graph = nullptr;
    auto made = std::make_unique<candela_graph>();
    made->graph.name = name && *name ? name : "graph";
    made->values.push_back(nullptr);
    *graph = made.release();
    return Status::ok();
  });
}

void candela_graph_free(candela_graph_t* graph) { delete graph; }

candela_status_t candela_graph_input(candela_graph_t* graph, const char* name,
                                     const candela_tensor_t* type, candela_value_t* value,
                                     char* error, size_t error_size) {
  return guarded(error, error_size, [&]() -> Status {
    if (!graph || !type || !value) return badArgument("no graph, no type, or nowhere to put it");
    CDL_TRY(checkFree(graph->graph, name));
    CDL_ASSIGN(graph::TensorType made, typeOf(*type));
    *value = addValue(*graph, graph->graph.addInput(name, std::move(made)));
    return Status::ok();
  });
}

candela_status_t candela_graph_constant(candela_graph_t* graph, const char* name,
                                        const candela_tensor_t* data, candela_value_t* value,
                                        char* error, size_t error_size) {
  return guarded(error, error_size, [&]() -> Status {
    if (!graph || !data || !value) return badArgument("no graph, no data, or nowhere to put it");
    return addConstant(*graph, name, *data, *value);
  });
}

candela_status_t candela_graph_op(candela_graph_t* graph, const char* op,
                                  const candela_value_t* operands, uint32_t operand_count,
                                  const char* attributes, const char* node,
                                  candela_value_t* results, uint32_t result_count, char* error,
                                  size_t error_size) {
  return guarded(error, error_size, [&]() -> Status {
    const bool hasOperands = operands || operand_count == 0;
    if (!graph || !op || !hasOperands || (!results && result_count))
      return badArgument("no graph, no op, no operands, or nowhere to put results");
    return addOp(*graph, {op, {operands, operand_count}, attributes, node},
                 {results, result_count});
  });
}

candela_status_t candela_graph_output(candela_graph_t* graph, candela_value_t value,
                                      const char* name, char* error, size_t error_size) {
  return guarded(error, error_size, [&]() -> Status {
    if (!graph) return badArgument("no graph");
    CDL_ASSIGN(graph::Value* const made, valueOf(*graph, value));
    graph->graph.addOutput(made, name ? name : made->name);
    return Status::ok();
  });
}

candela_status_t candela_graph_type(const candela_graph_t* graph, candela_value_t value,
                                    candela_tensor_t* type) {
  return guarded(nullptr, 0, [&]() -> Status {
    if (!graph || !type) return badArgument("no graph, or nowhere to describe the value");
    CDL_ASSIGN(const graph::Value* const of, valueOf(*graph, value));
    describeType(of->type.elem, of->type.dims, *type);
    type->data = nullptr;
    type->bytes = elemBytes(of->type.elem, static_cast<uint64_t>(of->type.count()));
    return Status::ok();
  });
}

candela_status_t candela_graph_verify(const candela_graph_t* graph, char* error,
                                      size_t error_size) {
  return guarded(error, error_size,
                 [&] { return graph ? graph::verify(graph->graph) : badArgument("no graph"); });
}

char* candela_graph_print(const candela_graph_t* graph) {
  if (!graph) return nullptr;
  return guardedText([&] { return graph::print(graph->graph).orAbort(); });
}

candela_status_t candela_compile_graph(const candela_graph_t* graph,
                                       const candela_options_t* options, candela_model_t** model,
                                       char* error, size_t error_size) {
  return guarded(error, error_size, [&]() -> Status {
    if (!graph) return badArgument("no graph");
    CDL_TRY(graph::verify(graph->graph));
    const std::string name = graph->graph.name;
    const auto load = [&](const import::ImportOptions& how) -> Result<driver::Loaded> {
      if (how.dims.empty() && how.shapes.empty()) return driver::Loaded(copyOf(graph->graph));
      return badArgument("{}: a graph has its shapes; dims and shapes are for files of models",
                         name);
    };
    return createModel(model, name.c_str(), [&](candela_model& made) {
      return compileModel(made, {name, load}, options);
    });
  });
}

candela_status_t candela_graph_gradients(candela_graph_t* graph, candela_value_t of,
                                         candela_value_t weight, const candela_value_t* wrt,
                                         uint32_t wrt_count, candela_value_t* gradients,
                                         char* error, size_t error_size) {
  return guarded(error, error_size, [&]() -> Status {
    if (!graph || ((!wrt || !gradients) && wrt_count))
      return badArgument("no graph, no values, or nowhere to put gradients");
    return addGradients(*graph, {of, weight, {wrt, wrt_count}}, {gradients, wrt_count});
  });
}

} // extern "C"
