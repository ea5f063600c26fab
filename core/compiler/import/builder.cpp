#include "core/compiler/import/builder.h"

#include <algorithm>
#include <cstring>

#include "core/reference/reference.h"

namespace candela::import {
namespace {

// Above this many bytes folding is the fold pass's decision, not part of shape arithmetic.
constexpr uint64_t kFoldWorkBytes = uint64_t(1) << 22;

// Attribute values that no tensor can need; below them inference cannot overflow.
constexpr int64_t kWindowLimit = (int64_t(1) << 31) - 1;
constexpr int64_t kIntsLimit = int64_t(1) << 48;

/// What the constant costs in the model: a splat is one element.
uint64_t storedBytes(const Payload& payload) {
  return payload.form() == Payload::Form::data ? payload.sizeBytes() : elemBytes(payload.elem(), 1);
}

/// Whether the op moves elements, but not those that the first operand stores.
bool isMovedWidened(const graph::OpInfo& info, const std::vector<Value*>& operands) {
  return info.has(graph::kTraitMovement) && !operands.empty() && operands[0] &&
         isStorageOnly(operands[0]->type.elem) && !info.operands[0].accepts(operands[0]->type.elem);
}

Status checkRange(const Attrs& attrs, int64_t limit) {
  for (const auto& [name, value] : attrs)
    if (const auto* ints = std::get_if<std::vector<int64_t>>(&value))
      for (int64_t v : *ints)
        if (v < -limit || v > limit)
          return badModel("attribute '{}' has value {}, beyond {}", name, v, limit);
  return Status::ok();
}

} // namespace

void Builder::begin(const std::string& nodeName) {
  provenance_ = {nodeName};
  fresh_.clear();
}

bool Builder::isFresh(const Value* value) const {
  return std::find(fresh_.begin(), fresh_.end(), value) != fresh_.end();
}

Value* Builder::fresh(Value* value) {
  fresh_.push_back(value);
  return value;
}

Value* Builder::constant(Tensor tensor) {
  return fresh(graph_.addConstant(std::move(tensor), provenance_));
}

Value* Builder::constant(Payload payload, const Shape& shape) {
  const graph::TensorType type(payload.elem(), shape);
  return fresh(graph_.addConstant(std::move(payload), type, provenance_));
}

bool Builder::isWorthFolding(const graph::Node& node) const {
  if (node.kind == OpKind::Dequantize) return false; // the integers say more
  uint64_t stored = 0, work = 0, made = 0;
  for (const Value* operand : node.operands()) {
    if (!operand) continue;
    if (!operand->isConstant()) return false;
    stored += storedBytes(operand->payload());
    work += operand->payload().sizeBytes();
  }
  for (const Value* result : node.results())
    made += elemBytes(result->type.elem, result->type.count());
  if (made > options_.foldLimitBytes && made > stored) return false;
  const bool heavy =
      node.info().has(graph::kTraitContraction) || node.info().has(graph::kTraitWindow);
  return work + made <= (heavy ? options_.foldLimitBytes : kFoldWorkBytes);
}

Result<std::vector<Value*>> Builder::fold(graph::Node* node) {
  CDL_ASSIGN(std::vector<Tensor> tensors, reference::evaluate(*node));
  std::vector<Value*> values;
  for (Tensor& tensor : tensors) values.push_back(constant(std::move(tensor)));
  graph_.erase(node);
  return values;
}

Result<std::vector<Value*>> Builder::addAll(OpKind kind, std::vector<Value*> operands, Attrs attrs,
                                            int resultCount) {
  const graph::OpInfo& info = graph::opInfo(kind);
  CDL_TRY(checkRange(attrs, info.has(graph::kTraitWindow) ? kWindowLimit : kIntsLimit));
  while (!operands.empty() && !operands.back()) operands.pop_back(); // absent optional ones
  const bool isRowFunction =
      kind == OpKind::Softmax || kind == OpKind::LayerNorm || kind == OpKind::RmsNorm;
  if (options_.integerRows && isRowFunction) attrs["integers"] = int64_t(1);
  if (isMovedWidened(info, operands))
    return addWidened(kind, std::move(operands), std::move(attrs));
  auto node = graph_.addNode(kind, std::move(operands), std::move(attrs), provenance_, nullptr,
                             resultCount);
  if (!node) {
    // Whoever reports this names the ONNX node already.
    const std::string prefix = fmt::format("{} '{}': ", info.name, provenance_.front());
    const std::string& message = node.status().message();
    return Status(node.status().code(),
                  message.starts_with(prefix) ? message.substr(prefix.size()) : message);
  }
  for (const Value* result : (*node)->results())
    if (const Shape shape = result->type.shape(); !elementCount(shape))
      return badModel("its result of shape {} is impossibly large", shapeText(shape));
  if (isWorthFolding(**node)) return fold(*node);
  std::vector<Value*> results = (*node)->results();
  for (Value* result : results) fresh(result);
  return results;
}

Result<std::vector<Value*>> Builder::addWidened(OpKind kind, std::vector<Value*> operands,
                                                Attrs attrs) {
  const Elem stored = operands[0]->type.elem;
  const Elem byte = isSigned(stored) ? Elem::i8_ : Elem::u8_;
  const Elem wide = isFloat(stored) ? Elem::f32_ : byte;
  for (Value*& operand : operands)
    if (operand && operand->type.elem == stored) {
      CDL_ASSIGN(operand, cast(operand, wide));
    }
  CDL_ASSIGN(std::vector<Value*> results, addAll(kind, std::move(operands), std::move(attrs), 1));
  CDL_ASSIGN(results[0], cast(results[0], stored));
  return results;
}

Result<Value*> Builder::add(OpKind kind, const std::vector<Result<Value*>>& operands, Attrs attrs) {
  std::vector<Value*> values;
  for (const Result<Value*>& operand : operands) {
    CDL_TRY(operand.status());
    values.push_back(*operand);
  }
  CDL_ASSIGN(std::vector<Value*> results, addAll(kind, std::move(values), std::move(attrs), 1));
  return results.front();
}

Result<Value*> Builder::scalar(double value, Elem elem) {
  return cast(constant(Tensor::of<double>(Elem::f64_, {}, {value})), elem);
}

Result<Value*> Builder::cast(Value* value, Elem to) {
  if (value->type.elem == to) return value;
  return add(OpKind::Cast, {value}, {{"to", to}});
}

Result<Value*> Builder::reshape(Value* value, const Shape& shape) {
  if (value->type.dims == shape) return value;
  const auto count = elementCount(shape);
  if (!count) return badModel("shape {} is impossibly large", shapeText(shape));
  if (value->isConstant() && value->type.count() == *count)
    return constant(value->payload(), shape);
  return add(OpKind::Reshape, {value}, {{"shape", shape}});
}

Result<Value*> Builder::flatten(Value* value, int64_t axis) {
  const Shape shape = value->type.shape();
  const std::span<const int64_t> dims(shape);
  const auto outer = elementCount(dims.first(axis)), inner = elementCount(dims.subspan(axis));
  if (!outer || !inner) return badModel("{} has no 2-D form", value->type.text());
  return reshape(value, {*outer, *inner});
}

Result<Value*> Builder::expand(Value* value, const Shape& shape) {
  const Shape from = value->type.shape();
  const auto to = graph::broadcastShapes(from, shape);
  const auto count = to ? elementCount(*to) : std::nullopt;
  if (to && !count) return badModel("shape {} is impossibly large", shapeText(*to));
  if (to && *to == from) return value;
  if (to && value->isConstant() && value->type.count() == 1 && elemBits(value->type.elem) >= 8) {
    CDL_ASSIGN(const Tensor one, value->tensor());
    uint64_t bits = 0;
    std::memcpy(&bits, one.bytes.data(), one.sizeBytes());
    return constant(Payload::splat(one.elem, *count, bits), *to);
  }
  return add(OpKind::Expand, {value}, {{"shape", shape}});
}

std::optional<std::vector<int64_t>> Builder::knownInts(const Value* value) {
  constexpr int64_t kMostKnownInts = 1 << 16;
  if (!value->isConstant() || isFloat(value->type.elem) || isStorageOnly(value->type.elem) ||
      value->type.count() > kMostKnownInts)
    return std::nullopt;
  auto tensor = value->tensor();
  if (!tensor) return std::nullopt;
  return tensor->toInts();
}

} // namespace candela::import
