// A product of operands with scales by block, for targets without one: the weights as real numbers,
// once, where they are constants, then an ordinary product.
#include <algorithm>
#include <array>

#include "core/compiler/capabilities/views.h"
#include "core/compiler/lowering/decompose/shared.h"
#include "core/support/float_bits.h"

namespace candela::lowering::decompose {

namespace {

/// w[N,G,S] of `depth` columns in all.
struct Blocks {
  int64_t columns, count, size, depth;

  int64_t held() const { return count * size; }
};

double numberOf(Elem elem, uint64_t bits) {
  return isFloat(elem) ? toReal(elem, bits) : static_cast<double>(integerOf(elem, bits));
}

/// A constant that broadcasts to [N,G].
class PerBlock {
public:
  PerBlock(const Tensor& tensor, const Blocks& blocks)
      : tensor_(tensor),
        strides_(capabilities::broadcastStrides(tensor.dims, {blocks.columns, blocks.count})) {}
  double at(int64_t n, int64_t g) const {
    const int64_t i = n * strides_[0] + g * strides_[1];
    return numberOf(tensor_.elem, loadElement(tensor_.elem, tensor_.bytes.data(), i));
  }

private:
  const Tensor& tensor_;
  std::vector<int64_t> strides_;
};

Tensor tensorOf(Value constant) {
  auto tensor = constant->tensor();
  if (!tensor) throw Lowering::Failure{tensor.status()};
  return std::move(*tensor);
}

/// (w - zero) * scale as [N,K] of type `to`.
Tensor dequantized(const Tensor& w, const Tensor& scale, const Tensor* zero, const Blocks& blocks,
                   Elem to) {
  auto made = Tensor::zeros(to, {blocks.columns, blocks.depth});
  if (!made) throw Lowering::Failure{made.status()};
  std::array<double, 256> numbers{}; // of each element that fits a byte
  const bool isByte = elemBits(w.elem) <= 8;
  for (uint64_t bits = 0; isByte && bits < (1u << elemBits(w.elem)); ++bits)
    numbers[bits] = numberOf(w.elem, bits);
  const PerBlock scales(scale, blocks);
  const std::optional<PerBlock> zeros =
      zero ? std::optional<PerBlock>({*zero, blocks}) : std::nullopt;
  std::byte* out = made->bytes.mutableData();
  for (int64_t n = 0; n < blocks.columns; ++n)
    for (int64_t k = 0; k < blocks.depth; ++k) {
      const int64_t g = k / blocks.size;
      const uint64_t bits = loadElement(w.elem, w.bytes.data(), n * blocks.held() + k);
      const double number = isByte ? numbers[bits] : numberOf(w.elem, bits);
      const double centred = number - (zeros ? zeros->at(n, g) : 0);
      storeElement(to, out, n * blocks.depth + k, fromReal(to, centred * scales.at(n, g)));
    }
  return std::move(*made);
}

/// x[rows, depth] as [rows, G, S]; what blocks have more is 0.
Value blocked(Lowering& l, Value x, const Blocks& blocks) {
  const int64_t rows = x->type.dim(0);
  return l.reshape(l.pad(x, {0, 0}, {0, blocks.held() - blocks.depth}, 0),
                   {rows, blocks.count, blocks.size});
}

/// The other way.
Value unblocked(Lowering& l, Value x, const Blocks& blocks) {
  const int64_t rows = x->type.dim(0);
  return l.affine(x, 0, {rows, blocks.depth}, {blocks.held(), 1});
}

/// A scale or zero point with a dim of its own for the elements of a block.
Value perBlock(Lowering& l, Value given, int64_t rows, const Blocks& blocks, Elem elem) {
  return l.reshape(l.broadcast(l.cast(given, elem), {rows, blocks.count}), {rows, blocks.count, 1});
}

/// The weights as [K,N] of type `to`.
Value realWeights(Lowering& l, const Node& node, const Blocks& blocks, Elem to) {
  Value w = node.operand(1), scale = node.operand(2), zero = node.operand(3);
  if (w->isConstant() && scale->isConstant() && (!zero || zero->isConstant())) {
    const Tensor scales = tensorOf(scale);
    const std::optional<Tensor> zeros = zero ? std::optional(tensorOf(zero)) : std::nullopt;
    Value real =
        l.constant(dequantized(tensorOf(w), scales, zeros ? &*zeros : nullptr, blocks, to));
    return l.transpose(real, {1, 0});
  }
  Value real = l.cast(w, to);
  if (zero) real = l.sub(real, perBlock(l, zero, blocks.columns, blocks, to));
  real = l.mul(real, perBlock(l, scale, blocks.columns, blocks, to));
  return l.transpose(unblocked(l, real, blocks), {1, 0});
}

/// x[rows, G, S] in the steps of its blocks, rounded to i8 and back (numerics.h cdl_dynamic_step).
Value rounded(Lowering& l, Value x) {
  const Elem elem = x->type.elem;
  Value largest = l.reduceAxis(l.unary(OpKind::Abs, x), 2, "max");
  Value isNothing = l.less(largest, l.scalar(elem, 0x1p-100)), none = l.scalar(elem, 0),
        most = l.scalar(elem, 127);
  Value step = l.select(isNothing, none, l.div(largest, most)),
        perStep = l.select(isNothing, none, l.div(most, largest));
  Value whole = l.node(OpKind::Round, {l.mul(x, perStep)},
                       {{"to", Elem::i32_}, {"mode", std::string("rne")}});
  return l.mul(l.cast(whole, elem), step);
}

/// a as real numbers [rows, K] of type `to`.
Value realActivations(Lowering& l, const Node& node, const Blocks& blocks, int64_t rows, Elem to) {
  const Value a = l.cast(node.operand(0), to);
  const Value scale = node.operand(4);
  if (!scale) return a;
  return unblocked(l, l.mul(blocked(l, a, blocks), perBlock(l, scale, rows, blocks, to)), blocks);
}

bool isHalfScale(Elem elem) { return elem == Elem::f16_ || elem == Elem::bf16_; }

/// Scales or zero points of halves in f32; others as they are.
Value inFloats(Lowering& l, Value given) {
  if (!given || !isHalfScale(given->type.elem)) return given;
  if (!given->isConstant()) return l.cast(given, Elem::f32_);
  const Tensor halves = tensorOf(given);
  auto made = Tensor::zeros(Elem::f32_, halves.dims);
  if (!made) throw Lowering::Failure{made.status()};
  for (int64_t i = 0; i < halves.count(); ++i)
    made->mutableAs<float>()[i] =
        static_cast<float>(numberOf(halves.elem, loadElement(halves.elem, halves.bytes.data(), i)));
  return l.constant(std::move(*made));
}

using ElemList = std::vector<uint8_t>;

/// Whether some row takes these types, with a rounded before or as it is.
bool hasRow(const capabilities::Target& target, const ElemList& elems) {
  return std::ranges::any_of(target.rows(), [&](const capabilities::Target::Row& entry) {
    return entry.row.kind == CDL_KIND_SCALED_MATMUL && entry.row.support != CDL_SUPPORT_NONE &&
           capabilities::takesElems(entry.row, elems, false);
  });
}

/// The product of a that is rounded before: it has a row wherever weights are narrow for the sake
/// of memory alone.
Value exactOfRounded(Lowering& l, const Node& node, const Blocks& blocks) {
  std::vector<Value> operands = node.operands();
  const Elem from = operands[0]->type.elem;
  const Value a =
      unblocked(l, rounded(l, blocked(l, l.cast(operands[0], Elem::f32_), blocks)), blocks);
  operands[0] = l.cast(a, from);
  graph::Attrs attrs = node.attrs;
  attrs["fn"] = std::string("exact");
  return l.node(OpKind::ScaledMatmul, std::move(operands), std::move(attrs));
}

/// The product of f32 that one of halves is, which may have a row. Where only one of f32 alone has
/// one, scales and zero points are f32 too, once where they are constants.
Value productOfFloats(Lowering& l, const Node& node, Elem to) {
  std::vector<Value> operands = node.operands();
  operands[0] = l.cast(operands[0], l.wide(operands[0]->type.elem));
  ElemList elems, floats;
  for (const Value operand : operands) {
    if (!operand) continue;
    const Elem elem = operand->type.elem;
    const bool isKept = elems.size() < 2 || !isHalfScale(elem);
    elems.push_back(static_cast<uint8_t>(elem));
    floats.push_back(static_cast<uint8_t>(isKept ? elem : Elem::f32_));
  }
  for (ElemList* list : {&elems, &floats}) list->push_back(static_cast<uint8_t>(to));
  if (!hasRow(l.target(), elems) && hasRow(l.target(), floats))
    for (size_t i = 2; i < operands.size(); ++i) operands[i] = inFloats(l, operands[i]);
  graph::Attrs attrs = node.attrs;
  attrs["to"] = to;
  return l.node(OpKind::ScaledMatmul, std::move(operands), std::move(attrs));
}

} // namespace

Result<Values> lowerScaledMatmul(Lowering& l, const Node& node) {
  const Elem to = node.elemAttr("to");
  const Elem inner = l.wide(to);
  const Elem from = node.operand(0)->type.elem;
  if (l.wide(from) != from || inner != to)
    return Values{l.cast(productOfFloats(l, node, inner), to)};
  const graph::TensorType& w = node.operand(1)->type;
  const Blocks blocks{w.dim(0), w.dim(1), w.dim(2), node.operand(0)->type.dim(-1)};
  if (node.stringAttr("fn") == "dynamic") return Values{exactOfRounded(l, node, blocks)};
  const int64_t rows = node.operand(0)->type.dim(0);
  Value a = realActivations(l, node, blocks, rows, inner);
  Value y = matmulAnyRank(l, a, realWeights(l, node, blocks, inner), inner);
  return Values{l.cast(y, to)};
}

} // namespace candela::lowering::decompose
