#include "core/passes/rewrite.h"

#include <algorithm>
#include <cstring>

#include "core/reference/reference.h"
#include "core/support/float_bits.h"

namespace candela::passes {

using graph::Graph;
using graph::Node;
using graph::Value;

bool isPlainConstant(const Value* value) { return isPlain(value) && value->isConstant(); }

namespace {

/// The one bit pattern of all elements, for element types of whole bytes.
std::optional<uint64_t> uniformBits(const std::byte* data, int64_t count, Elem elem) {
  const int bits = elemBits(elem);
  if (count == 0 || bits % 8 != 0) return std::nullopt;
  const size_t size = bits / 8;
  for (int64_t i = 1; i < count; ++i)
    if (std::memcmp(data, data + i * size, size) != 0) return std::nullopt;
  uint64_t value = 0;
  std::memcpy(&value, data, size);
  return value;
}

/// Sign, exponent bias and fraction width are all that 0, -0 and 1 need.
uint64_t bitsOf(Elem elem, Exact number) {
  const uint64_t sign = uint64_t{1} << (elemBits(elem) - 1);
  if (number == Exact::zero) return 0;
  if (number == Exact::negativeZero) return sign;
  switch (elem) {
  case Elem::f32_: return 0x3f800000;
  case Elem::f16_: return 0x3c00;
  case Elem::bf16_: return 0x3f80;
  case Elem::f64_: return 0x3ff0000000000000;
  default: return 1;
  }
}

} // namespace

std::optional<uint64_t> splatBits(const Value* value) {
  if (!value || !value->isConstant()) return std::nullopt;
  const Payload& payload = value->payload();
  if (payload.count() == 0) return std::nullopt;
  if (payload.form() == Payload::Form::splat) return payload.splatBits();
  if (payload.form() != Payload::Form::data) return std::nullopt;
  return uniformBits(payload.bytes().data(), payload.count(), payload.elem());
}

std::optional<double> splatReal(const Value* value) {
  const auto bits = splatBits(value);
  if (!bits || !isFloat(value->type.elem) || !isPlain(value)) return std::nullopt;
  return toReal(value->type.elem, *bits);
}

bool isSplatOf(const Value* value, Exact number) {
  const auto bits = splatBits(value);
  return bits && *bits == bitsOf(value->type.elem, number);
}

std::optional<std::vector<double>> numbersOf(const Value* value) {
  if (!isPlainConstant(value)) return std::nullopt;
  const auto tensor = value->tensor();
  const auto array = tensor ? reference::fromTensor(*tensor) : Result<reference::Array>(tensor.status());
  if (!array) return std::nullopt;
  if (isFloat(array->elem)) return array->real;
  return std::vector<double>(array->whole.begin(), array->whole.end());
}

Result<Tensor> tensorOf(Elem elem, Shape dims, const std::vector<double>& values) {
  reference::Array array(elem, std::move(dims));
  if (isFloat(elem))
    array.real = values;
  else
    array.whole.assign(values.begin(), values.end());
  return reference::toTensor(array);
}

const Node* plainProducer(const Value* value, graph::OpKind kind) {
  const Node* node = value ? value->producer : nullptr;
  if (!node || node->kind != kind || !isPlain(value)) return nullptr;
  const bool plain = std::ranges::all_of(node->operands(), [](const Value* v) { return !v || isPlain(v); });
  return plain ? node : nullptr;
}

Payload compactPayload(const Tensor& tensor) {
  const auto bits = tensor.count() > 1 ? uniformBits(tensor.bytes.data(), tensor.count(), tensor.elem) : std::nullopt;
  return bits ? Payload::splat(tensor.elem, tensor.count(), *bits) : Payload::data(tensor);
}

bool canReplace(const Graph& graph, const Value* value, const Value* with) {
  if (value == with || !(value->type == with->type)) return false;
  if (!graph.isOutput(value)) return true;
  return with->producer && !with->isConstant() && !graph.isOutput(with);
}

void replaceWith(Graph& graph, Node* node, Value* with) {
  if (with->producer && !with->isConstant()) graph::mergeProvenance(with->producer->provenance, node->provenance);
  graph.replaceAllUses(node->result(), with);
  graph.erase(node);
}

void replaceWithNew(Graph& graph, Node* node, Value* fresh) {
  const std::string name = node->result()->name;
  graph.replaceAllUses(node->result(), fresh);
  graph.erase(node);
  graph.rename(fresh, name);
}

} // namespace candela::passes
