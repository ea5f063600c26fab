#include <algorithm>

#include "core/reference/kinds.h"

namespace candela::reference {

Array::Array(Elem elem, Shape dims) : elem(elem), dims(std::move(dims)) {
  const auto count = elementCount(this->dims);
  CDL_CHECK(count, "impossible shape {}", shapeText(this->dims));
  if (isFloat(elem)) {
    real.resize(*count);
  } else {
    whole.resize(*count);
  }
}

Scalar Array::at(int64_t i) const {
  if (isFloat(elem)) return {real[i], 0};
  return {0, whole[i]};
}

void Array::set(int64_t i, const Scalar& value) {
  if (isFloat(elem))
    real[i] = value.real;
  else
    whole[i] = value.whole;
}

void Array::fill(const Scalar& value) {
  std::fill(real.begin(), real.end(), value.real);
  std::fill(whole.begin(), whole.end(), value.whole);
}

Result<Array> fromTensor(const Tensor& tensor) {
  const auto count = elementCount(tensor.dims);
  if (!count || !isValidElem(static_cast<unsigned>(tensor.elem)))
    return badArgument("impossible tensor {}", tensor.typeText());
  CDL_TRY(checkSize(tensor.dims));
  Array array(tensor.elem, tensor.dims);
  for (int64_t i = 0; i < *count; ++i)
    array.set(i, decode(tensor.elem, loadElement(tensor.elem, tensor.bytes.data(), i)));
  return array;
}

Result<Tensor> toTensor(const Array& array) {
  CDL_ASSIGN(Tensor tensor, Tensor::zeros(array.elem, array.dims));
  std::byte* data = tensor.bytes.mutableData();
  for (int64_t i = 0; i < array.count(); ++i)
    storeElement(array.elem, data, i, encode(array.elem, array.at(i)));
  return tensor;
}

Status checkSize(std::span<const int64_t> dims) {
  constexpr int64_t kLimit = int64_t(1) << 30;
  const auto count = elementCount(dims);
  if (count && *count <= kLimit) return Status::ok();
  return failure(Code::out_of_memory,
                 "a tensor of shape {} is above the oracle's limit of {} elements", shapeText(dims),
                 kLimit);
}

void applyFormula(const graph::Node& node, Operands in, Results out) {
  const graph::OpInfo& info = node.info();
  switch (node.kind) {
#define CANDELA_OP(Kind, name)                                                                     \
  case graph::OpKind::Kind: return reference##Kind(node, in, out);
    CANDELA_FORMULAS(CANDELA_OP)
#undef CANDELA_OP
  default:
    CDL_CHECK(info.instrKind, "{} has no formula", info.name);
    const bool saturate = info.attr("saturate") && node.intAttr("saturate");
    mapElements({info.instrKind, info.instrFn, in.back()->elem, out[0].elem, saturate}, in, out[0]);
  }
}

namespace {

using graph::Node, graph::OpKind, graph::Value;

/// The operands must have the types that the node was inferred for.
Status checkOperand(const Node& node, size_t i, const Tensor* operand) {
  const Value* value = node.operand(i);
  if ((value != nullptr) != (operand != nullptr))
    return badArgument("{} '{}': operand {} is {}", graph::opName(node.kind), node.userName(), i,
                       operand ? "given but absent in the node" : "missing");
  if (!value) return Status::ok();
  if (operand->elem != value->type.elem || operand->dims != value->type.shape())
    return badArgument("{} '{}': operand {} is {} {}, expected {}", graph::opName(node.kind),
                       node.userName(), i, elemName(operand->elem), shapeText(operand->dims),
                       value->type.text());
  return Status::ok();
}

} // namespace

Result<std::vector<Tensor>> evaluate(const Node& node) {
  std::vector<Tensor> operands;
  for (const Value* operand : node.operands()) {
    operands.emplace_back();
    if (operand) {
      CDL_ASSIGN(operands.back(), operand->tensor());
    }
  }
  return evaluate(node, operands);
}

Result<std::vector<Tensor>> evaluate(const Node& node, std::span<const Tensor> operands) {
  if (node.kind == OpKind::Constant) {
    CDL_ASSIGN(Tensor tensor, node.payload->materialize(node.result()->type.shape()));
    return std::vector<Tensor>{std::move(tensor)};
  }
  if (node.kind == OpKind::Loop) return evaluateLoop(node, operands);
  if (node.kind == OpKind::Custom) return evaluateCustom(node, operands);
  const auto given = [&](size_t i) {
    return i < operands.size() && operands[i].elem != Elem::none ? &operands[i] : nullptr;
  };
  std::vector<Array> arrays;
  arrays.reserve(operands.size());
  // Ops look at absent trailing operands like at any other absent one.
  std::vector<const Array*> in(std::max(operands.size(), node.info().operands.size()), nullptr);
  for (size_t i = 0; i < std::max(operands.size(), node.operands().size()); ++i) {
    CDL_TRY(checkOperand(node, i, given(i)));
    if (!given(i)) continue;
    CDL_ASSIGN(Array array, fromTensor(operands[i]));
    in[i] = &arrays.emplace_back(std::move(array));
  }
  std::vector<Array> out;
  for (const Value* result : node.results()) {
    CDL_TRY(checkSize(result->type.shape()));
    out.emplace_back(result->type.elem, result->type.shape());
  }
  applyFormula(node, in, out);
  std::vector<Tensor> tensors;
  for (const Array& array : out) {
    CDL_ASSIGN(Tensor tensor, toTensor(array));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<std::vector<Tensor>> run(const graph::Graph& graph, std::span<const Tensor> inputs) {
  if (inputs.size() != graph.inputs().size())
    return badArgument("graph '{}' has {} inputs, given {}", graph.name, graph.inputs().size(),
                       inputs.size());
  std::map<const Value*, Tensor> values;
  std::map<const Value*, size_t> usesLeft;
  const auto define = [&](const Value* value, Tensor tensor) {
    usesLeft[value] = value->users().size();
    if (graph.isUsed(value)) values[value] = std::move(tensor);
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value* input = graph.inputs()[i];
    if (inputs[i].elem != input->type.elem || inputs[i].dims != input->type.shape())
      return badArgument("input '{}' is {}, expected {}", input->name, inputs[i].typeText(),
                         input->type.text());
    define(input, inputs[i]);
  }
  for (const auto& node : graph.nodes()) {
    std::vector<Tensor> operands;
    for (const Value* operand : node->operands())
      operands.push_back(operand ? values.at(operand) : Tensor{});
    auto results = evaluate(*node, operands);
    if (!results) {
      const std::string who = fmt::format("{} '{}'", graph::opName(node->kind), node->userName());
      return results.status().message().starts_with(who) ? results.status()
                                                         : results.status().context(who);
    }
    for (size_t i = 0; i < node->results().size(); ++i)
      define(node->results()[i], std::move((*results)[i]));
    for (const Value* operand : node->operands())
      if (operand && --usesLeft[operand] == 0 && !graph.isOutput(operand)) values.erase(operand);
  }
  std::vector<Tensor> outputs;
  for (const Value* output : graph.outputs()) outputs.push_back(values.at(output));
  return outputs;
}

} // namespace candela::reference
