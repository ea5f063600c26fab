#include "core/compiler/capabilities/views.h"
#include "core/compiler/lowering/decompose/shared.h"
#include "core/support/float_bits.h"

namespace candela::lowering::decompose {

namespace {

uint64_t bitsOf(Elem elem, double value) {
  return isFloat(elem) ? fromReal(elem, value) : wholeBits(elem, static_cast<int64_t>(value));
}

// One element in another type, as CONVERT does it; nullopt where the rule needs more than this
// (float to integer, bool).
std::optional<uint64_t> castBits(Elem from, Elem to, uint64_t bits) {
  if (to == Elem::bool_) return std::nullopt;
  if (isFloat(from))
    return isFloat(to) ? std::optional(fromReal(to, toReal(from, bits))) : std::nullopt;
  // Beyond 2^53 the way through a double would round twice.
  const int64_t whole = static_cast<int64_t>(integerOf(from, bits));
  if (isFloat(to)) {
    if (elemBits(from) > 32) return std::nullopt;
    return fromReal(to, static_cast<double>(whole));
  }
  return wholeBits(to, whole);
}

constexpr uint64_t kSmallConstant = 4096;

} // namespace

Value Lowering::node(OpKind kind, std::vector<Value> operands, graph::Attrs attrs) {
  while (!operands.empty() && !operands.back()) operands.pop_back();
  auto made = graph_.addNode(kind, std::move(operands), std::move(attrs), at_->provenance, at_);
  if (!made) throw Failure{made.status()};
  made_.insert(*made);
  return (*made)->result();
}

Value Lowering::constant(Payload payload, const Shape& shape) {
  const graph::TensorType type(payload.elem(), shape);
  Value value = graph_.addConstant(std::move(payload), type, at_->provenance, at_);
  made_.insert(value->producer);
  return value;
}

Value Lowering::constant(Tensor tensor) {
  const Shape shape = tensor.dims;
  return constant(Payload::data(std::move(tensor)), shape);
}

Value Lowering::splat(Elem elem, const Shape& shape, double value) {
  const auto count = elementCount(shape);
  if (!count) throw Failure{badModel("{} elements are too many", shapeText(shape))};
  return constant(Payload::splat(elem, *count, bitsOf(elem, value)), shape);
}

Value Lowering::cast(Value x, Elem to) {
  const Elem from = x->type.elem;
  if (from == to) return x;
  // Small constants, and those that shrink, are converted here and now.
  const uint64_t bytes = elemBytes(to, x->type.count());
  if (x->isConstant() && !isStorageOnly(from) && !isStorageOnly(to) && castBits(from, to, 0) &&
      (bytes <= kSmallConstant || bytes <= x->payload().sizeBytes())) {
    if (x->payload().form() == Payload::Form::splat)
      return constant(
          Payload::splat(to, x->type.count(), *castBits(from, to, x->payload().splatBits())),
          x->type.shape());
    auto source = x->payload().materialize(x->type.shape());
    auto result = Tensor::zeros(to, x->type.shape());
    if (source && result) {
      for (int64_t i = 0; i < x->type.count(); ++i)
        storeElement(to, result->bytes.mutableData(), i,
                     *castBits(from, to, loadElement(from, source->bytes.data(), i)));
      return constant(std::move(result).value());
    }
  }
  return node(OpKind::Cast, {x}, {{"to", to}});
}

Value Lowering::reshape(Value x, Shape shape) {
  if (x->type.shape() == shape) return x;
  while (x->producer && x->producer->kind == OpKind::Reshape) x = x->producer->operand(0);
  if (x->type.shape() == shape) return x;
  if (x->isConstant()) return constant(x->payload(), shape);
  return node(OpKind::Reshape, {x}, {{"shape", std::move(shape)}});
}

Value Lowering::affine(Value x, int64_t offset, Shape dims, std::vector<int64_t> strides) {
  const auto count = elementCount(dims);
  if (!count) throw Failure{badModel("{} elements are too many", shapeText(dims))};
  while (x->producer && x->producer->kind == OpKind::Reshape) x = x->producer->operand(0);
  if (offset == 0 && *count == x->type.count() &&
      capabilities::classify(dims, strides) == capabilities::OperandClass::dense)
    return reshape(x, dims);
  if (x->isConstant() && x->payload().form() == Payload::Form::splat)
    return constant(Payload::splat(x->type.elem, *count, x->payload().splatBits()), dims);
  if (dims.size() <= CDL_MAX_RANK)
    return node(OpKind::Affine, {x},
                {{"offset", offset}, {"dims", std::move(dims)}, {"strides", std::move(strides)}});
  capabilities::Walk walk = capabilities::coalesce({dims, {strides, denseStrides(dims)}});
  Value flat = node(OpKind::Affine, {x},
                    {{"offset", offset}, {"dims", walk.dims}, {"strides", walk.strides[0]}});
  return reshape(flat, std::move(dims));
}

Value Lowering::transpose(Value x, const std::vector<int64_t>& perm) {
  const Shape from = x->type.shape();
  std::vector<int64_t> inner = denseStrides(from);
  int64_t offset = 0;
  // What was read in another order before is read in this one at once.
  if (const graph::Node* p = x->producer;
      p && p->kind == OpKind::Affine && p->intsAttr("dims") == from) {
    inner = p->intsAttr("strides");
    offset = p->intAttr("offset");
    x = p->operand(0);
  }
  Shape dims;
  std::vector<int64_t> strides;
  for (int64_t d : perm) {
    dims.push_back(from[d]);
    strides.push_back(inner[d]);
  }
  return affine(x, offset, std::move(dims), std::move(strides));
}

Value Lowering::broadcast(Value x, const Shape& shape) {
  if (x->type.shape() == shape) return x;
  return affine(x, 0, shape, capabilities::broadcastStrides(x->type.shape(), shape));
}

Value Lowering::pad(Value x, const std::vector<int64_t>& lo, const std::vector<int64_t>& hi,
                    uint64_t bits) {
  Shape dims = x->type.shape();
  bool none = true;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (__builtin_add_overflow(dims[d], lo[d], &dims[d]) ||
        __builtin_add_overflow(dims[d], hi[d], &dims[d]))
      throw Failure{badModel("padding of {} and {} is too large", lo[d], hi[d])};
    none = none && lo[d] == 0 && hi[d] == 0;
  }
  return none ? x : place({x}, dims, lo, {}, bits, true);
}

Value Lowering::place(std::vector<Value> pieces, Shape dims, std::vector<int64_t> offsets,
                      std::vector<int64_t> steps, uint64_t bits, bool fill) {
  graph::Attrs attrs{{"dims", std::move(dims)},
                     {"offsets", std::move(offsets)},
                     {"value", static_cast<int64_t>(bits)},
                     {"fill", int64_t(fill)}};
  if (!steps.empty()) attrs.emplace("steps", std::move(steps));
  return node(OpKind::Place, std::move(pieces), std::move(attrs));
}

Value Lowering::reduceAxis(Value x, int axis, const char* fn) {
  Shape shape = x->type.shape();
  Value reduced = reduce3(reshape(x, capabilities::aroundAxis(shape, axis)), fn);
  shape[axis] = 1;
  return reshape(reduced, std::move(shape));
}

Value alongAxis(Lowering& l, Value x, int axis, int rank) {
  Shape shape(rank - axis, 1);
  shape[0] = x->type.count();
  return l.reshape(x, shape);
}

Elem Lowering::wide(Elem elem) const {
  if (elem != Elem::f16_ && elem != Elem::bf16_) return elem;
  if (!target_.claims(CDL_PROFILE_FP32)) return elem;
  for (auto [from, to] : {std::pair(elem, Elem::f32_), std::pair(Elem::f32_, elem)}) {
    capabilities::InstrDesc convert;
    convert.kind = CDL_KIND_CONVERT;
    convert.operands = {{from, {1}}, {to, {1}}};
    if (target_.query(convert).support == capabilities::Support::none) return elem;
  }
  return Elem::f32_;
}

} // namespace candela::lowering::decompose
