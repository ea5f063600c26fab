// Products with weights that are dequantized become products with scales, which read the weights as
// they are stored.
//
// What stands before the product is followed back to the stored weights: casts, a zero point, a
// scale, and the movement around them. Each of the three is kept as a view of a constant
// (constant_view.h), so that how far the scale was repeated along k tells how long its blocks are.
#include <algorithm>
#include <numeric>

#include "core/compiler/graph/passes/constant_view.h"
#include "core/compiler/graph/passes/rewrite.h"
#include "core/support/scaled_product.h"

namespace candela::graph::passes {

namespace {

/// Shorter ones say nothing about blocks.
constexpr int64_t kLeastBlock = 16;
constexpr int kMostNodes = 32; // between the stored weights and the product

/// (stored - zero) * scale.
struct Dequantized {
  ConstantView stored;
  std::optional<ConstantView> zero;
  std::optional<ConstantView> scale;
};

bool isNarrow(Elem elem) {
  if (isFloat(elem)) return elemBits(elem) <= 16 && elem != Elem::f8e8m0_;
  return isInteger(elem) && elemBits(elem) <= 8;
}

std::optional<Dequantized> dequantizedOf(const Value* value, int depth = 0);

/// Behind a transpose, a reshape or a slice of it.
std::optional<Dequantized> moved(const Dequantized& inner, const Node& movement) {
  auto stored = inner.stored.behind(movement);
  if (!stored) return std::nullopt;
  Dequantized outer{std::move(*stored), std::nullopt, std::nullopt};
  if (inner.zero && !(outer.zero = inner.zero->behind(movement))) return std::nullopt;
  if (inner.scale && !(outer.scale = inner.scale->behind(movement))) return std::nullopt;
  return outer;
}

/// Of a dequantize with one scale, or one for each index of an axis.
std::optional<Dequantized> ofDequantize(const Node& node) {
  auto stored = ConstantView::of(node.operand(0));
  const auto scale = ConstantView::of(node.operand(1));
  if (!stored || !scale) return std::nullopt;
  const Shape dims = node.operand(0)->type.shape();
  const int rank = node.operand(0)->type.rank();
  const size_t axis =
      node.hasAttr("axis") ? static_cast<size_t>(wrapAxis(node.intAttr("axis"), rank)) : 0;
  Dequantized found{std::move(*stored), std::nullopt, scale->alongAxis(axis, dims)};
  if (!node.operand(2)) return found;
  const auto zero = ConstantView::of(node.operand(2));
  if (!zero) return std::nullopt;
  found.zero = zero->alongAxis(axis, dims);
  return found;
}

/// x - zero or x * scale, where x has its own shape and nothing of what follows yet.
std::optional<Dequantized> ofArithmetic(const Node& node, int depth) {
  const Shape dims = node.result()->type.shape();
  const bool isScaled = node.kind == OpKind::Mul;
  for (const int side : isScaled ? std::vector<int>{0, 1} : std::vector<int>{0}) {
    auto x = dequantizedOf(node.operand(side), depth + 1);
    const auto number = ConstantView::of(node.operand(1 - side));
    const bool isOpen = x && number && !x->scale && (isScaled || !x->zero);
    if (!isOpen || node.operand(side)->type.shape() != dims) continue;
    (isScaled ? x->scale : x->zero) = number->broadcastTo(dims);
    return x;
  }
  return std::nullopt;
}

std::optional<Dequantized> dequantizedOf(const Value* value, int depth) {
  const Node* node = value ? value->producer : nullptr;
  if (!node || depth > kMostNodes || !isPlain(value)) return std::nullopt;
  switch (node->kind) {
  case OpKind::Constant: {
    auto stored = ConstantView::of(value);
    if (!stored || !isNarrow(value->type.elem)) return std::nullopt;
    return Dequantized{std::move(*stored), std::nullopt, std::nullopt};
  }
  case OpKind::Cast: {
    auto inner = dequantizedOf(node->operand(0), depth + 1);
    const Elem to = value->type.elem;
    // Behind the scale it rounds what a product with scales does not round at all.
    const bool isDropped = inner && inner->scale
                               ? isFloat(to) && !isStorageOnly(to)
                               : keepsNarrowNumbers(node->operand(0)->type.elem, to);
    return isDropped ? inner : std::nullopt;
  }
  case OpKind::Dequantize: return ofDequantize(*node);
  case OpKind::Sub:
  case OpKind::Mul: return ofArithmetic(*node, depth);
  default: break;
  }
  if (!isViewMovement(*node)) return std::nullopt;
  const auto inner = dequantizedOf(node->operand(0), depth + 1);
  return inner ? moved(*inner, *node) : std::nullopt;
}

/// A product whose right side is dequantized: a[..., k] . w.
struct WeightProduct {
  Value* a = nullptr;
  Value* bias = nullptr; ///< null: none
  Dequantized w;
  size_t depthDim = 0; ///< of w
  size_t columnDim = 1;

  int64_t depth() const { return w.stored.dims()[depthDim].extent; }
  int64_t columns() const { return w.stored.dims()[columnDim].extent; }
  int64_t block() const {
    int64_t block = depth();
    for (const auto& view : {w.zero, w.scale}) {
      const int64_t run = view ? view->runLength(depthDim) : depth();
      if (run != depth()) block = block == depth() ? run : std::gcd(block, run);
    }
    return block;
  }
  int64_t blocks() const { return (depth() + block() - 1) / block(); }
};

bool isPlainGemm(const Node& node) {
  return !node.intAttr("transA") && node.floatAttr("alpha") == 1 && node.floatAttr("beta") == 1;
}

std::optional<WeightProduct> weightProductOf(const Node& node) {
  const bool isGemm = node.kind == OpKind::Gemm;
  if (node.kind != OpKind::Matmul && !(isGemm && isPlainGemm(node))) return std::nullopt;
  Value* a = node.operand(0);
  const Value* b = node.operand(1);
  const bool isMatrix = isPlain(a) && a->type.rank() >= 1 && b->type.rank() == 2;
  // What is dequantized on both sides is one of integers, or was not to be one.
  const bool isReal = !a->producer || (a->producer->kind != OpKind::Dequantize && !a->isConstant());
  if (!isMatrix || !isReal || a->type.count() == 0) return std::nullopt;
  auto w = dequantizedOf(b);
  // A product of halves is one that devices have.
  const bool isOfHalves =
      w && elemBits(w->stored.stored().type.elem) > 8 && a->type.elem != Elem::f32_;
  if (!w || isOfHalves) return std::nullopt;
  WeightProduct product{a, isGemm ? node.operand(2) : nullptr, std::move(*w)};
  if (isGemm && node.intAttr("transB")) std::swap(product.depthDim, product.columnDim);
  return product.block() < kLeastBlock ? std::nullopt : std::optional(std::move(product));
}

/// The stored elements of a view in the order [columns, depth], every `step`-th along the depth.
Result<Tensor> gathered(const ConstantView& view, const WeightProduct& product, int64_t step,
                        Shape dims) {
  CDL_ASSIGN(const Tensor stored, view.stored().tensor());
  CDL_ASSIGN(Tensor made, Tensor::zeros(stored.elem, std::move(dims)));
  const std::vector<int64_t> columns = view.places(product.columnDim);
  const std::vector<int64_t> depths = view.places(product.depthDim, step);
  const int64_t held = made.count() / static_cast<int64_t>(columns.size());
  std::byte* out = made.bytes.mutableData();
  // By strips of columns: where columns are neighbours as they are stored, each line is read once.
  constexpr size_t kStrip = 32;
  for (size_t first = 0; first < columns.size(); first += kStrip)
    for (size_t k = 0; k < depths.size(); ++k)
      for (size_t n = first; n < std::min(first + kStrip, columns.size()); ++n)
        storeElement(
            made.elem, out, static_cast<int64_t>(n) * held + static_cast<int64_t>(k),
            loadElement(stored.elem, stored.bytes.data(), view.offset() + columns[n] + depths[k]));
  return made;
}

/// Zero points of wide integers, as a constant fold leaves them, in bytes. They stay where they are
/// no bytes.
Result<Tensor> inBytes(const Tensor& zeros) {
  const bool isByte = zeros.elem == Elem::i8_ || zeros.elem == Elem::u8_;
  if (isByte || !isInteger(zeros.elem)) return zeros;
  const std::vector<int64_t> numbers = zeros.toInts();
  const bool isUnsigned = std::ranges::any_of(numbers, [](int64_t number) { return number > 127; });
  const IntegerRange range = integerRange(isUnsigned ? Elem::u8_ : Elem::i8_);
  CDL_ASSIGN(Tensor bytes, Tensor::zeros(isUnsigned ? Elem::u8_ : Elem::i8_, zeros.dims));
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < range.lowest || numbers[i] > range.highest) return zeros;
    bytes.bytes.mutableData()[i] = static_cast<std::byte>(numbers[i]);
  }
  return bytes;
}

Elem signedOf(Elem elem) {
  switch (elem) {
  case Elem::u2_: return Elem::i2_;
  case Elem::u4_: return Elem::i4_;
  default: return Elem::i8_;
  }
}

/// The constants of a product with scales.
struct ScaledOperands {
  Tensor w;
  Tensor scale;
  std::optional<Tensor> zero;
};

/// Unsigned weights around the middle of their range are signed ones around 0.
void centre(ScaledOperands& operands) {
  if (!operands.zero || !isInteger(operands.w.elem) || isSigned(operands.w.elem)) return;
  const int bits = elemBits(operands.w.elem);
  const int64_t middle = int64_t{1} << (bits - 1);
  for (const int64_t zero : operands.zero->toInts())
    if (zero != middle) return;
  uint8_t flip = 0;
  for (int at = bits - 1; at < 8; at += bits) flip = static_cast<uint8_t>(flip | 1u << at);
  operands.w.elem = signedOf(operands.w.elem);
  for (uint64_t i = 0, bytes = operands.w.sizeBytes(); i < bytes; ++i)
    operands.w.bytes.mutableData()[i] ^= static_cast<std::byte>(flip);
  operands.zero.reset();
}

Result<ScaledOperands> scaledOperandsOf(const WeightProduct& product) {
  const Shape grid{product.columns(), product.blocks()};
  ScaledOperands made;
  CDL_ASSIGN(made.w, gathered(product.w.stored, product, 1,
                              {product.columns(), product.blocks(), product.block()}));
  if (product.w.scale) {
    CDL_ASSIGN(made.scale, gathered(*product.w.scale, product, product.block(), grid));
  } else {
    made.scale = Tensor::of<float>(Elem::f32_, {1, 1}, {1});
  }
  if (!product.w.zero) return made;
  CDL_ASSIGN(const Tensor zeros, gathered(*product.w.zero, product, product.block(), grid));
  CDL_ASSIGN(made.zero, inBytes(zeros));
  if (isInteger(made.zero->elem)) centre(made);
  return made;
}

Result<bool> raiseScaledProduct(Graph& graph, Node* node) {
  if (node->results().size() != 1 || !isPlain(node->result())) return false;
  const auto product = weightProductOf(*node);
  if (!product) return false;
  CDL_ASSIGN(ScaledOperands made, scaledOperandsOf(*product));
  ScaledProductTypes types;
  types.a = product->a->type.elem;
  types.w = made.w.elem;
  types.wScale = made.scale.elem;
  types.wZero = made.zero ? made.zero->elem : Elem::none;
  types.y = node->result()->type.elem;
  if (!whyNoScaledProduct(types).empty()) return false;
  const Provenance names =
      mergedProvenance(provenanceOf(node->operand(1), nullptr), node->provenance);
  const auto add = [&](OpKind kind, std::vector<Value*> operands, Attrs attrs) {
    return graph.addNode(kind, std::move(operands), std::move(attrs), names, node);
  };
  const int64_t rows = product->a->type.count() / product->depth();
  CDL_ASSIGN(const Node* a,
             add(OpKind::Reshape, {product->a}, {{"shape", Shape{rows, product->depth()}}}));
  std::vector<Value*> operands{a->result(), graph.addConstant(made.w, names, node),
                               graph.addConstant(made.scale, names, node)};
  if (made.zero) operands.push_back(graph.addConstant(*made.zero, names, node));
  CDL_ASSIGN(const Node* y, add(OpKind::ScaledMatmul, std::move(operands),
                                {{"to", types.y}, {"fn", std::string("exact")}}));
  CDL_ASSIGN(const Node* whole,
             add(OpKind::Reshape, {y->result()}, {{"shape", node->result()->type.shape()}}));
  if (product->bias) {
    CDL_ASSIGN(whole, add(OpKind::Add, {whole->result(), product->bias}, {}));
  }
  replaceWithNew(graph, node, whole->result());
  return true;
}

} // namespace

Result<int> raiseScaledProducts(Graph& graph) { return onEachNode(graph, raiseScaledProduct); }

} // namespace candela::graph::passes
