#include "core/compiler/graph/passes/rewrite.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/reference/reference.h"
#include "core/support/float_bits.h"

namespace candela::graph::passes {

bool isPlainConstant(const Value* value) { return isPlain(value) && value->isConstant(); }

namespace {

/// The one bit pattern of all elements, for element types of whole bytes.
std::optional<uint64_t> uniformBits(const std::byte* data, int64_t count, Elem elem) {
  const int bits = elemBits(elem);
  if (count == 0 || bits % 8 != 0) return std::nullopt;
  const size_t size = bits / 8;
  for (int64_t i = 1; i < count; ++i)
    if (std::memcmp(data, data + i * size, size) != 0) return std::nullopt;
  return loadElement(elem, data, 0);
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

bool isSplatOf(const Value* value, double number) {
  const auto bits = splatBits(value);
  const Elem elem = value->type.elem;
  return bits && *bits == (isFloat(elem) ? fromReal(elem, number) : static_cast<uint64_t>(number));
}

std::optional<std::vector<double>> numbersOf(const Value* value) {
  if (!isPlainConstant(value)) return std::nullopt;
  const auto tensor = value->tensor();
  const auto array =
      tensor ? reference::fromTensor(*tensor) : Result<reference::Array>(tensor.status());
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

namespace {

struct FloatForm {
  int digits;         ///< of the significand, the first one included
  int lowestExponent; ///< of a normal number
};

FloatForm formOf(Elem elem) {
  switch (elem) {
  case Elem::f64_: return {53, -1022};
  case Elem::f32_: return {24, -126};
  case Elem::bf16_: return {8, -126};
  case Elem::f16_: return {11, -14};
  default: CDL_CHECK(false, "nothing is computed in {}", elemName(elem));
  }
}

} // namespace

double precisionOf(Elem elem) { return std::ldexp(1.0, 1 - formOf(elem).digits); }

bool holdsWell(Elem elem, double number) {
  const double rounded = toReal(elem, fromReal(elem, number));
  if (!std::isfinite(rounded)) return false;
  return rounded == number || std::abs(number) >= std::ldexp(1.0, formOf(elem).lowestExponent);
}

bool holdsAllWell(Elem elem, const std::vector<double>& numbers) {
  return std::ranges::all_of(numbers, [elem](double number) { return holdsWell(elem, number); });
}

const Node* plainProducer(const Value* value, OpKind kind) {
  const Node* node = value ? value->producer : nullptr;
  if (!node || node->kind != kind || !isPlain(value)) return nullptr;
  const bool plain =
      std::ranges::all_of(node->operands(), [](const Value* v) { return !v || isPlain(v); });
  return plain ? node : nullptr;
}

Provenance provenanceOf(const Value* value, const Value* stop) {
  if (!value || value == stop || !value->producer || value->isConstant()) return {};
  Provenance names;
  for (const Value* operand : value->producer->operands())
    mergeProvenance(names, provenanceOf(operand, stop));
  mergeProvenance(names, value->producer->provenance);
  return names;
}

Payload compactPayload(const Tensor& tensor) {
  const auto bits = tensor.count() > 1
                        ? uniformBits(tensor.bytes.data(), tensor.count(), tensor.elem)
                        : std::nullopt;
  return bits ? Payload::splat(tensor.elem, tensor.count(), *bits) : Payload::data(tensor);
}

bool canReplace(const Graph& graph, const Value* value, const Value* with) {
  if (value == with || !(value->type == with->type)) return false;
  if (!graph.isOutput(value)) return true;
  return with->producer && !with->isConstant() && !graph.isOutput(with);
}

void replaceWith(Graph& graph, Node* node, Value* with) {
  if (with->producer && !with->isConstant())
    mergeProvenance(with->producer->provenance, node->provenance);
  graph.replaceAllUses(node->result(), with);
  graph.erase(node);
}

void replaceWithNew(Graph& graph, Node* node, Value* fresh) {
  const std::string name = node->result()->name;
  graph.replaceAllUses(node->result(), fresh);
  graph.erase(node);
  graph.rename(fresh, name);
}

} // namespace candela::graph::passes
