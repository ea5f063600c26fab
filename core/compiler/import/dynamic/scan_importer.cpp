#include "core/compiler/import/dynamic/scan_importer.h"

#include "core/compiler/import/dynamic/deferred_nodes.h"
#include "core/compiler/import/dynamic/flow_values.h"
#include "core/compiler/import/graph_importer.h"

namespace candela::import {
namespace {

/// A node of the body that takes a slice of what is scanned.
onnx_io::Node sliceNode(const char* opType, std::vector<std::string> reads,
                        const std::string& gives,
                        std::map<std::string, onnx_io::Attribute> attributes) {
  onnx_io::Node node;
  node.name = gives;
  node.opType = opType;
  node.inputs = std::move(reads);
  node.outputs = {gives};
  node.attributes = std::move(attributes);
  return node;
}

} // namespace

Status ScanImporter::add(const Place& place, const onnx_io::Node& node, const std::string& name,
                         const std::vector<Slot>& inputs, std::vector<Slot>& outputs) {
  CDL_ASSIGN(const onnx_io::Graph* body, graphs_.graphOf(node, "body"));
  if (place.opsets.at("") < 9) return addBatched(place, node, name, inputs, outputs);
  CDL_ASSIGN(const Form form, readForm(node, *body, inputs.size(), outputs.size()));
  for (const Slot& input : inputs)
    if (input.isAbsent() || input.list) return badModel("an input is no tensor");
  if (!std::ranges::all_of(inputs, [&](const Slot& input) { return place.frame.isTyped(input); }))
    return deferNode(place, node, name, {"a shape that depends on data"}, inputs, outputs);
  Scope scope(&place.scope);
  CDL_ASSIGN(const LoopForm loop, makeLoop(place, *body, name, form, inputs, scope));
  const std::vector<Slot> carried(inputs.begin(),
                                  inputs.begin() + static_cast<ptrdiff_t>(form.states));
  std::vector<Slot> made(body->outputs.size(), Slot::makePoisoned());
  const Place within{place.frame, scope, place.opsets, place.prefix, place.function, place.call};
  const Slot trips = place.frame.addConstant(Tensor::scalarI64(loop.trips));
  CDL_TRY(loops_.addIterations(within, {loop.body, name, trips, Slot(), carried}, made));
  for (size_t k = 0; k < form.states; ++k)
    if (place.frame.isTyped(made[k]) &&
        place.frame.typeOf(made[k]) != place.frame.typeOf(carried[k]))
      return badModel("its body turns state '{}' from {} to {}", body->inputs[k].name,
                      place.frame.typeOf(carried[k]).text(), place.frame.typeOf(made[k]).text());
  arrangeStacks(place, name, form, made, outputs.size());
  std::copy_n(made.begin(), outputs.size(), outputs.begin());
  return Status::ok();
}

Result<ScanImporter::Form> ScanImporter::readForm(const onnx_io::Node& node,
                                                  const onnx_io::Graph& body, size_t inputs,
                                                  size_t outputs) const {
  CDL_TRY(checkAttributeNames(node, std::array{"body", "num_scan_inputs", "scan_input_axes",
                                               "scan_input_directions", "scan_output_axes",
                                               "scan_output_directions"}));
  CDL_ASSIGN(const int64_t scanned, attributeOf<int64_t>(node, "num_scan_inputs", 0));
  if (scanned < 1 || scanned > static_cast<int64_t>(inputs))
    return badModel("num_scan_inputs is {} for {} inputs", scanned, inputs);
  Form form;
  form.states = inputs - static_cast<size_t>(scanned);
  if (body.inputs.size() != inputs)
    return badModel("its body has {} inputs, expected {}", body.inputs.size(), inputs);
  if (body.outputs.size() < form.states || body.outputs.size() < outputs)
    return badModel("its body has {} outputs, expected {}", body.outputs.size(),
                    std::max(form.states, outputs));
  const size_t scans = body.outputs.size() - form.states;
  const auto listOf = [&](const char* attribute, size_t count) -> Result<Ints> {
    CDL_ASSIGN(Ints list, attributeOf<Ints>(node, attribute, Ints(count, 0)));
    if (list.size() != count)
      return badModel("{} has {} entries, expected {}", attribute, list.size(), count);
    return list;
  };
  CDL_ASSIGN(form.inAxes, listOf("scan_input_axes", static_cast<size_t>(scanned)));
  CDL_ASSIGN(form.inBackward, listOf("scan_input_directions", static_cast<size_t>(scanned)));
  CDL_ASSIGN(form.outAxes, listOf("scan_output_axes", scans));
  CDL_ASSIGN(form.outBackward, listOf("scan_output_directions", scans));
  return form;
}

Result<ScanImporter::LoopForm>
ScanImporter::makeLoop(const Place& place, const onnx_io::Graph& body, const std::string& name,
                       const Form& form, const std::vector<Slot>& inputs, Scope& scope) {
  onnx_io::Graph turns = body;
  const std::string own = name + "#";
  turns.inputs.clear();
  for (const char* port : {"turn", "condition"}) turns.inputs.emplace_back().name = own + port;
  for (size_t k = 0; k < form.states; ++k) turns.inputs.push_back(body.inputs[k]);
  std::vector<onnx_io::Node> slices;
  std::optional<int64_t> trips;
  for (size_t k = 0; k < form.inAxes.size(); ++k) {
    const graph::TensorType type = place.frame.typeOf(inputs[form.states + k]);
    CDL_ASSIGN(const int64_t axis, resolveAxis(form.inAxes[k], type.rank()));
    const int64_t extent = type.dim(static_cast<int>(axis));
    if (trips && *trips != extent)
      return badModel("scan input {} has {} elements along axis {}, the ones before have {}", k,
                      extent, axis, *trips);
    trips = extent;
    const std::string whole = fmt::format("{}{}", own, k);
    // Without an iteration the body has its types from slices that are never taken.
    Shape present = type.shape();
    present[static_cast<size_t>(axis)] = std::max<int64_t>(extent, 1);
    scope.define(whole, extent ? inputs[form.states + k] : zeros(place, name, type.elem, present));
    std::string index = own + "turn";
    if (form.inBackward[k]) {
      scope.define(whole + "last", place.frame.addConstant(Tensor::scalarI64(extent - 1)));
      slices.push_back(sliceNode("Sub", {whole + "last", index}, whole + "back", {}));
      index = whole + "back";
    }
    slices.push_back(
        sliceNode("Gather", {whole, index}, body.inputs[form.states + k].name, {{"axis", axis}}));
  }
  turns.nodes.insert(turns.nodes.begin(), slices.begin(), slices.end());
  onnx_io::ValueInfo condition;
  condition.name = own + "condition";
  turns.outputs.insert(turns.outputs.begin(), condition);
  return LoopForm{std::move(turns), *trips};
}

void ScanImporter::arrangeStacks(const Place& place, const std::string& name, const Form& form,
                                 std::vector<Slot>& made, size_t outputs) {
  for (size_t k = 0; k < form.outAxes.size() && form.states + k < outputs; ++k) {
    Slot& scan = made[form.states + k];
    if (scan.poisoned || (!form.outBackward[k] && form.outAxes[k] == 0)) continue;
    const auto one = [&](int64_t value) {
      return place.frame.addConstant(Tensor::of<int64_t>(Elem::i64_, {1}, {value}));
    };
    if (form.outBackward[k])
      scan = graphs_.addOwnNode(place, name, "Slice",
                                {scan, one(-1), one(INT64_MIN), one(0), one(-1)});
    if (form.outAxes[k] != 0)
      scan = graphs_.addOwnNode(place, name, kMoveFirst, {scan}, {{"axis", form.outAxes[k]}});
  }
}

Status ScanImporter::addBatched(const Place& place, const onnx_io::Node& node,
                                const std::string& name, const std::vector<Slot>& inputs,
                                std::vector<Slot>& outputs) {
  CDL_TRY(checkAttributeNames(node, std::array{"body", "num_scan_inputs", "directions"}));
  if (inputs.size() < 2) return badModel("has {} inputs, expected at least 2", inputs.size());
  if (!inputs[0].isAbsent())
    return failure(Code::unsupported, "sequence_lens of opset 8 are not supported");
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].isAbsent() || inputs[i].list) return badModel("an input is no tensor");
    if (!place.frame.isTyped(inputs[i]))
      return deferNode(place, node, name, {"a shape that depends on data"}, inputs, outputs);
    if (place.frame.typeOf(inputs[i]).rank() == 0 ||
        place.frame.typeOf(inputs[i]).dim(0) != place.frame.typeOf(inputs[1]).dim(0))
      return badModel("input {} is {}, expected {} batches", i,
                      place.frame.typeOf(inputs[i]).text(), place.frame.typeOf(inputs[1]).dim(0));
  }
  static const Opsets kOpsets = {{"", 9}};
  onnx_io::Node one = node;
  one.inputs.erase(one.inputs.begin());
  if (const auto directions = one.attributes.extract("directions"); !directions.empty())
    one.attributes["scan_input_directions"] = directions.mapped();
  std::vector<std::vector<Slot>> gathered(outputs.size());
  for (int64_t b = 0; b < place.frame.typeOf(inputs[1]).dim(0); ++b) {
    std::vector<Slot> batch, made(outputs.size());
    const Slot index = place.frame.addConstant(Tensor::scalarI64(b));
    for (size_t i = 1; i < inputs.size(); ++i)
      batch.push_back(
          graphs_.addOwnNode(place, name, "Gather", {inputs[i], index}, {{"axis", int64_t(0)}}));
    if (anyPoisoned(batch)) return Status::ok();
    CDL_TRY(add({place.frame, place.scope, kOpsets, place.prefix, place.function, place.call}, one,
                name, batch, made));
    for (size_t i = 0; i < made.size(); ++i) gathered[i].push_back(made[i]);
    if (anyPoisoned(made)) return Status::ok();
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (gathered[i].empty()) return badModel("it has no batches");
    outputs[i] = graphs_.addStack(place, name, std::move(gathered[i]));
  }
  return Status::ok();
}

Status ScanImporter::addMoveFirst(const Place& place, const onnx_io::Node& node,
                                  const std::string& name, const std::vector<Slot>& inputs,
                                  std::vector<Slot>& outputs) {
  CDL_ASSIGN(int64_t axis, attributeOf<int64_t>(node, "axis", 0));
  if (!place.frame.isTyped(inputs[0]))
    return deferNode(place, node, name, {"a shape that depends on data"}, inputs, outputs);
  const int rank = place.frame.typeOf(inputs[0]).rank();
  CDL_ASSIGN(axis, resolveAxis(axis, rank));
  std::vector<int64_t> order;
  for (int i = 1; i < rank; ++i) order.push_back(i);
  order.insert(order.begin() + axis, 0);
  outputs[0] = graphs_.addOwnNode(place, name, "Transpose", {inputs[0]}, {{"perm", order}});
  return Status::ok();
}

Slot ScanImporter::zeros(const Place& place, const std::string& name, Elem elem,
                         const Shape& shape) {
  const auto zero = Tensor::zeros(elem, {1});
  const Slot dims = place.frame.addConstant(
      Tensor::of<int64_t>(Elem::i64_, {static_cast<int64_t>(shape.size())}, shape));
  return graphs_.addOwnNode(place, name, "ConstantOfShape", {dims}, {{"value", *zero}});
}

} // namespace candela::import
