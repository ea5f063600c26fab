// The types in which a graph is computed.
//
// Widening is for devices without halves, or with products of them alone: every node that computes
// does so in f32, between casts, and a half that only lies between two such nodes disappears. What
// moves halves (of an input, of a cache) goes on moving them, so that memory is read as it is
// stored. Narrowing is for a user who takes fewer bits for less time: weights alone, or all that
// products read and write.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "core/compiler/graph/passes/rewrite.h"
#include "core/support/float_bits.h"

namespace candela::graph::passes {

namespace {

bool isOf(const Value* value, Elem elem) { return value && value->type.elem == elem; }

bool movesOnly(const Node& node) {
  return node.info().has(kTraitMovement) || node.info().has(kTraitAlias) ||
         node.kind == OpKind::Select;
}

/// Whether a cast to the half has the same bits by way of f32. Integers beyond f32's whole numbers
/// are infinite in f16.
bool isSameByWayOfF32(Elem from, Elem half) {
  if (isFloat(from)) return elemBits(from) <= 16;
  return half == Elem::f16_ || elemBits(from) <= 16;
}

/// What is added to the product of the first two operands; null where nothing is, or zeros alone.
Value* addendOf(const Node& node) {
  Value* addend = node.kind == OpKind::Matmul ? nullptr : node.operand(2);
  return addend && !isSplatOf(addend, 0) ? addend : nullptr;
}

/// Whether a product is one of two operands alone, and an addend behind it.
bool canTakeApart(const Node& node) {
  const Value* addend = addendOf(node);
  switch (node.kind) {
  case OpKind::Matmul: return true;
  case OpKind::Gemm:
    return node.floatAttr("alpha") == 1 && (!addend || node.floatAttr("beta") == 1);
  case OpKind::Conv:
  case OpKind::ConvTranspose: return !addend || numbersOf(addend).has_value();
  default: return false;
  }
}

Result<Value*> castTo(Graph& graph, Value* value, Elem to, const Node& origin, Node* before) {
  CDL_ASSIGN(const Node* made,
             graph.addNode(OpKind::Cast, {value}, {{"to", to}}, origin.provenance, before));
  return made->result();
}

/// The addend in f32, with the dims of the result; null where there is none.
Result<Value*> wideAddend(Graph& graph, Node* node) {
  Value* addend = addendOf(*node);
  if (!addend) return nullptr;
  if (node->kind == OpKind::Gemm)
    return isOf(addend, Elem::f32_) ? addend : castTo(graph, addend, Elem::f32_, *node, node);
  const std::vector<double> numbers = *numbersOf(addend);
  Shape dims(static_cast<size_t>(node->result()->type.rank() - 1), 1);
  dims[0] = static_cast<int64_t>(numbers.size());
  CDL_ASSIGN(Tensor made, tensorOf(Elem::f32_, dims, numbers));
  return graph.addConstant(std::move(made), node->provenance, node);
}

/// The product of a and b, which are halves, and behind it the addend of `node`, in f32.
Result<Value*> takenApart(Graph& graph, Node* node, Value* a, Value* b) {
  CDL_ASSIGN(Value * addend, wideAddend(graph, node));
  CDL_ASSIGN(const Node* product,
             graph.addNode(node->kind, {a, b}, node->attrs, node->provenance, node));
  CDL_ASSIGN(Value * result, castTo(graph, product->result(), Elem::f32_, *node, node));
  if (!addend) return result;
  CDL_ASSIGN(const Node* sum,
             graph.addNode(OpKind::Add, {result, addend}, {}, node->provenance, node));
  return sum->result();
}

/// What computes halves in halves all the same.
enum class Kept : uint8_t { nothing, products };

/// Widens one graph. The bodies of loops are graphs of their own, whose inputs and outputs keep
/// their types.
class Widening {
public:
  Widening(Graph& graph, Elem half, Kept kept) : graph_(graph), half_(half), kept_(kept) {}

  Result<int> run() {
    int count = 0;
    for (Node* node : graph_.snapshot()) {
      CDL_ASSIGN(const bool isWidened, widen(node));
      count += isWidened;
    }
    graph_.eraseDead();
    return count;
  }

private:
  bool touchesHalves(const Node& node) const {
    const auto isHalf = [&](const Value* value) { return isOf(value, half_); };
    return std::ranges::any_of(node.operands(), isHalf) ||
           std::ranges::any_of(node.results(), isHalf);
  }

  Result<bool> widen(Node* node) {
    const bool isFixed = node->kind == OpKind::Constant || node->kind == OpKind::Bitcast ||
                         node->body != nullptr || node->kind == OpKind::Custom;
    if (isFixed || !touchesHalves(*node)) return false;
    if (node->kind == OpKind::Cast) return widenCast(node);
    if (kept_ == Kept::products && isProductOfHalves(*node)) return widenAddend(node);
    if (movesOnly(*node) && !movesWhatWasWide(*node)) return false;
    CDL_TRY(rebuild(node));
    return true;
  }

  bool isProductOfHalves(const Node& node) const {
    return canTakeApart(node) && isOf(node.operand(0), half_);
  }

  /// Leaves a product as it is, and adds in f32 what is added to it.
  Result<bool> widenAddend(Node* node) {
    if (!addendOf(*node)) return false;
    CDL_ASSIGN(Value * wide, takenApart(graph_, node, node->operand(0), node->operand(1)));
    CDL_ASSIGN(Value * narrow, cast(wide, half_, node, node->provenance));
    replaceWithNew(graph_, node, narrow);
    return true;
  }

  /// Whether all that it moves was f32 before it became a half, constants apart.
  bool movesWhatWasWide(const Node& node) const {
    bool hasWide = false;
    for (const Value* operand : node.operands()) {
      if (!isOf(operand, half_) || operand->isConstant()) continue;
      if (!wideOrigin(operand)) return false;
      hasWide = true;
    }
    return hasWide;
  }

  /// The f32 that was rounded to this half; null where it is none.
  static Value* wideOrigin(const Value* half) {
    const Node* node = half->producer;
    const bool isRounded = node && node->kind == OpKind::Cast && isOf(node->operand(0), Elem::f32_);
    return isRounded ? node->operand(0) : nullptr;
  }

  Result<Value*> cast(Value* value, Elem to, Node* before, const Provenance& provenance) {
    CDL_ASSIGN(const Node* made,
               graph_.addNode(OpKind::Cast, {value}, {{"to", to}}, provenance, before));
    return made->result();
  }

  Result<Value*> widened(Value* value, Node* before) {
    if (!isOf(value, half_)) return value;
    if (Value* origin = wideOrigin(value)) return origin;
    return cast(value, Elem::f32_, before, before->provenance);
  }

  Result<bool> widenCast(Node* node) {
    Value* x = node->operand(0);
    const Elem to = node->result()->type.elem;
    if (isOf(x, half_) && to == Elem::f32_) {
      Value* origin = wideOrigin(x);
      const bool isDropped = origin && canReplace(graph_, node->result(), origin);
      if (isDropped) replaceWith(graph_, node, origin);
      return isDropped;
    }
    const bool isFrom = isOf(x, half_);
    if (!isFrom && !isSameByWayOfF32(x->type.elem, half_)) return false;
    CDL_ASSIGN(Value * wide,
               isFrom ? widened(x, node) : cast(x, Elem::f32_, node, node->provenance));
    node->setOperand(0, wide);
    return true;
  }

  /// The node in f32, and its results as halves behind it.
  /// Weights of scaled products are multiplied as they are stored, and stored in no more bits.
  static bool takesWide(const Node& node, size_t operand) {
    const auto& known = node.info().operands;
    return known[std::min(operand, known.size() - 1)].accepts(Elem::f32_);
  }

  Status rebuild(Node* node) {
    std::vector<Value*> operands = node->operands();
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!takesWide(*node, i)) continue;
      CDL_ASSIGN(operands[i], widened(operands[i], node));
    }
    Attrs attrs = node->attrs;
    for (auto& [name, attr] : attrs)
      if (const Elem* elem = std::get_if<Elem>(&attr); elem && *elem == half_) attr = Elem::f32_;
    const std::vector<Value*> old = node->results();
    CDL_ASSIGN(const Node* wide,
               graph_.addNode(node->kind, std::move(operands), std::move(attrs), node->provenance,
                              node, static_cast<int>(old.size())));
    std::vector<Value*> fresh = wide->results();
    std::vector<std::string> names;
    for (size_t i = 0; i < old.size(); ++i) {
      if (isOf(old[i], half_)) {
        CDL_ASSIGN(fresh[i], cast(fresh[i], half_, node, node->provenance));
      }
      names.push_back(old[i]->name);
      graph_.replaceAllUses(old[i], fresh[i]);
    }
    graph_.erase(node);
    for (size_t i = 0; i < fresh.size(); ++i) graph_.rename(fresh[i], names[i]);
    return Status::ok();
  }

  Graph& graph_;
  const Elem half_;
  const Kept kept_;
};

/// A constant of f32 that is the right side of a product of matrices.
Value* weightsOf(const Node& node) {
  if (node.kind != OpKind::Matmul && node.kind != OpKind::Gemm) return nullptr;
  Value* w = node.operand(1);
  const bool isMatrix = isPlain(w) && w->isConstant() && w->type.rank() == 2;
  return isMatrix && isOf(w, Elem::f32_) && !node.operand(0)->isConstant() ? w : nullptr;
}

/// Rounds f32 to a half, to nearest and ties to even.
class HalfRounding {
public:
  explicit HalfRounding(Elem half)
      : half_(half), digits_(half == Elem::f16_ ? 13 : 16),
        bias_(half == Elem::f16_ ? 112u << 23 : 0),
        smallest_(half == Elem::f16_ ? 0x1p-14F : 0x1p-126F),
        largest_(static_cast<float>(largestReal(half))) {}

  uint64_t operator()(float number) const {
    const float size = std::abs(number);
    const bool isNormal = size >= smallest_ && size <= largest_;
    if (!isNormal) return fromReal(half_, number);
    // What is dropped carries into the digits that stay, and from there into the exponent.
    const auto bits = std::bit_cast<uint32_t>(number);
    const uint32_t magnitude = (bits & 0x7fffffffu) - bias_;
    const uint32_t isOdd = magnitude >> digits_ & 1;
    const uint32_t below = (1u << (digits_ - 1)) - 1;
    return (bits >> 16 & 0x8000u) | (magnitude + below + isOdd) >> digits_;
  }

private:
  const Elem half_;
  const int digits_;     ///< of f32 that the half does not have
  const uint32_t bias_;  ///< how much less its exponents are, in bits of f32
  const float smallest_; ///< normal number
  const float largest_;
};

Result<Tensor> rounded(const Node& node, const Tensor& numbers, Elem half) {
  CDL_ASSIGN(Tensor made, Tensor::zeros(half, numbers.dims));
  const HalfRounding round(half);
  const auto* from = reinterpret_cast<const float*>(numbers.bytes.data());
  for (int64_t i = 0, count = numbers.count(); i < count; ++i) {
    const uint64_t bits = round(from[i]);
    if (std::isfinite(from[i]) && std::abs(from[i]) > largestReal(half) &&
        std::isinf(toReal(half, bits)))
      return failure(Code::unsupported, "{} '{}': element {} of its weights is {}, beyond {}",
                     opName(node.kind), node.userName(), i, from[i], elemName(half));
    storeElement(half, made.bytes.mutableData(), i, bits);
  }
  return made;
}

Result<int> narrowWeights(Graph& graph, Elem half) {
  return onEachNode(graph, [half](Graph& within, Node* node) -> Result<bool> {
    Value* w = weightsOf(*node);
    if (!w) return false;
    CDL_ASSIGN(const Tensor weights, w->tensor());
    CDL_ASSIGN(Tensor made, rounded(*node, weights, half));
    Value* stored = within.addConstant(std::move(made), node->provenance, node);
    CDL_ASSIGN(const Node* wide, within.addNode(OpKind::Cast, {stored}, {{"to", Elem::f32_}},
                                                node->provenance, node));
    node->setOperand(1, wide->result());
    return true;
  });
}

bool isProductOfF32(const Node& node) {
  switch (node.kind) {
  case OpKind::Matmul:
  case OpKind::Gemm:
  case OpKind::Conv:
  case OpKind::ConvTranspose:
  case OpKind::Attention: return isOf(node.result(), Elem::f32_);
  default: return false;
  }
}

Result<bool> narrowProduct(Graph& graph, Node* node, Elem half) {
  if (!isProductOfF32(*node)) return false;
  const auto cast = [&](Value* value, Elem to) -> Result<Value*> {
    CDL_ASSIGN(const Node* made,
               graph.addNode(OpKind::Cast, {value}, {{"to", to}}, node->provenance, node));
    return made->result();
  };
  std::vector<Value*> operands = node->operands();
  for (Value*& operand : operands) {
    if (!operand) continue;
    if (operand->isConstant()) {
      CDL_ASSIGN(const Tensor numbers, operand->tensor());
      CDL_ASSIGN(Tensor made, rounded(*node, numbers, half));
      operand = graph.addConstant(std::move(made), node->provenance, node);
      continue;
    }
    CDL_ASSIGN(operand, cast(operand, half));
  }
  CDL_ASSIGN(const Node* product,
             graph.addNode(node->kind, std::move(operands), node->attrs, node->provenance, node));
  CDL_ASSIGN(Value * result, cast(product->result(), Elem::f32_));
  replaceWithNew(graph, node, result);
  return true;
}

Result<int> narrowProducts(Graph& graph, Elem half) {
  return onEachNode(
      graph, [half](Graph& within, Node* node) { return narrowProduct(within, node, half); });
}

/// Which convolutions are narrowed.
enum class Convolutions : uint8_t {
  faster, ///< those that processors with instructions for pairs of halves gain by
  all     ///< all: where the device has none of f32, what is left is not the device's
};

/// Narrows matrix products and convolutions for a device that computes these alone in a half. What
/// comes behind a product (a bias, a scale) stays f32.
class ProductNarrowing {
public:
  ProductNarrowing(Graph& graph, Elem half, Convolutions which = Convolutions::faster)
      : graph_(graph), half_(half), which_(which) {}

  /// Of constant weights and of what is computed alike.
  Result<int> matmuls() {
    CDL_ASSIGN(const int count, each([this](Node* node) { return narrowMatmul(node); }));
    graph_.eraseDead();
    return count;
  }

  /// Also what lies between them: a sum that goes on to a convolution is rounded for all who read
  /// it, and the largest of rounded numbers is what rounding the largest gives.
  Result<int> convolutions() {
    CDL_ASSIGN(const int count, each([this](Node* node) { return narrowConv(node); }));
    CDL_ASSIGN(const int pools, each([this](Node* node) { return narrowMaxPool(node); }));
    CDL_TRY(shareRounded());
    graph_.eraseDead();
    return count + pools;
  }

private:
  template <typename Rewrite> Result<int> each(Rewrite rewrite) {
    int count = 0;
    for (Node* node : graph_.snapshot()) {
      CDL_ASSIGN(const bool isChanged, rewrite(node));
      count += isChanged;
    }
    return count;
  }

  /// The node before which to put what is to stand right behind `value`.
  Node* behind(const Value* value) const {
    const std::vector<Node*> order = graph_.snapshot();
    if (!value->producer) return order.front();
    const auto at = std::ranges::find(order, value->producer);
    return at + 1 == order.end() ? nullptr : at[1];
  }

  /// The value in the half: a constant by itself, anything else by a cast that all its readers can
  /// share.
  Result<Value*> narrowed(Value* value, Node* reader) {
    if (value->isConstant()) {
      CDL_ASSIGN(const Tensor numbers, value->tensor());
      CDL_ASSIGN(Tensor made, rounded(*reader, numbers, half_));
      return graph_.addConstant(std::move(made), reader->provenance, reader);
    }
    if (const auto found = rounded_.find(value); found != rounded_.end()) return found->second;
    CDL_ASSIGN(Value * made, castTo(graph_, value, half_, *reader, behind(value)));
    rounded_[value] = made;
    return made;
  }

  Status replaceProduct(Node* node) {
    CDL_ASSIGN(Value * a, narrowed(node->operand(0), node));
    CDL_ASSIGN(Value * b, narrowed(node->operand(1), node));
    CDL_ASSIGN(Value * result, takenApart(graph_, node, a, b));
    replaceWithNew(graph_, node, result);
    return Status::ok();
  }

  /// Whether it is the number that integers stand for: products of such become those of integers.
  static bool isDequantized(const Value* value) {
    return value->producer && value->producer->kind == OpKind::Dequantize;
  }

  Result<bool> narrowMatmul(Node* node) {
    const bool isMatmul = node->kind == OpKind::Matmul || node->kind == OpKind::Gemm;
    if (!isMatmul || !isOf(node->result(), Elem::f32_) || !canTakeApart(*node)) return false;
    if (isDequantized(node->operand(0)) || isDequantized(node->operand(1))) return false;
    CDL_TRY(replaceProduct(node));
    return true;
  }

  Result<bool> narrowConv(Node* node) {
    const bool isConv = node->kind == OpKind::Conv && isOf(node->result(), Elem::f32_);
    if (!isConv || node->result()->type.rank() != 4) return false;
    const Value* w = node->operand(1);
    const bool isConstant = isPlain(w) && w->isConstant();
    if (!isConstant || !canTakeApart(*node)) return false;
    const int64_t group = node->intAttr("group");
    const int64_t channels = node->result()->type.dim(1);
    const int64_t perGroup = w->type.dim(1);
    const bool hasPairs = group == 1 && perGroup % 2 == 0;
    const bool isDepthwise = perGroup == 1 && group == channels && channels % 16 == 0;
    if (which_ == Convolutions::faster && !hasPairs && !isDepthwise) return false;
    CDL_TRY(replaceProduct(node));
    return true;
  }

  Result<bool> narrowMaxPool(Node* node) {
    const bool isPool = node->kind == OpKind::MaxPool && node->results().size() == 1;
    if (!isPool || !rounded_.contains(node->result()) || graph_.isOutput(node->result()))
      return false;
    CDL_ASSIGN(Value * x, narrowed(node->operand(0), node));
    CDL_ASSIGN(const Node* pool,
               graph_.addNode(OpKind::MaxPool, {x}, node->attrs, node->provenance, node));
    CDL_ASSIGN(Value * wide, castTo(graph_, pool->result(), Elem::f32_, *node, node));
    rounded_[wide] = pool->result();
    graph_.replaceAllUses(rounded_.at(node->result()), pool->result());
    rounded_.erase(node->result());
    replaceWithNew(graph_, node, wide);
    return true;
  }

  /// Lets all who read a sum that is rounded for a convolution read the rounded one: it is stored
  /// once, in half of the bytes.
  Status shareRounded() {
    for (Node* node : graph_.snapshot()) {
      if (node->kind != OpKind::Cast) continue;
      Value* wide = node->operand(0);
      const auto found = rounded_.find(wide);
      if (found == rounded_.end() || found->second != node->result()) continue;
      const bool isSum = wide->producer && wide->producer->kind != OpKind::Cast;
      if (!isSum || wide->users().size() == 1) continue;
      CDL_ASSIGN(Value * again, castTo(graph_, node->result(), Elem::f32_, *wide->producer,
                                       behind(node->result())));
      const std::vector<Node*> readers = wide->users();
      for (Node* reader : readers) {
        if (reader == node) continue;
        for (size_t i = 0; i < reader->operands().size(); ++i)
          if (reader->operand(i) == wide) reader->setOperand(i, again);
      }
    }
    return Status::ok();
  }

  Graph& graph_;
  const Elem half_;
  const Convolutions which_;
  std::map<Value*, Value*> rounded_; ///< of f32, by which value of the half
};

} // namespace

Result<int> widenF16(Graph& graph) { return Widening(graph, Elem::f16_, Kept::nothing).run(); }
Result<int> widenBF16(Graph& graph) { return Widening(graph, Elem::bf16_, Kept::nothing).run(); }
Result<int> widenBesideProductsF16(Graph& graph) {
  return Widening(graph, Elem::f16_, Kept::products).run();
}
Result<int> widenBesideProductsBF16(Graph& graph) {
  return Widening(graph, Elem::bf16_, Kept::products).run();
}
Result<int> narrowWeightsF16(Graph& graph) { return narrowWeights(graph, Elem::f16_); }
Result<int> narrowWeightsBF16(Graph& graph) { return narrowWeights(graph, Elem::bf16_); }
Result<int> narrowMatmulsF16(Graph& graph) { return ProductNarrowing(graph, Elem::f16_).matmuls(); }
Result<int> narrowMatmulsBF16(Graph& graph) {
  return ProductNarrowing(graph, Elem::bf16_).matmuls();
}
Result<int> narrowConvolutionsF16(Graph& graph) {
  return ProductNarrowing(graph, Elem::f16_).convolutions();
}
Result<int> narrowConvolutionsBF16(Graph& graph) {
  return ProductNarrowing(graph, Elem::bf16_).convolutions();
}
Result<int> narrowAllConvolutionsF16(Graph& graph) {
  return ProductNarrowing(graph, Elem::f16_, Convolutions::all).convolutions();
}
Result<int> narrowAllConvolutionsBF16(Graph& graph) {
  return ProductNarrowing(graph, Elem::bf16_, Convolutions::all).convolutions();
}
Result<int> narrowProductsF16(Graph& graph) { return narrowProducts(graph, Elem::f16_); }
Result<int> narrowProductsBF16(Graph& graph) { return narrowProducts(graph, Elem::bf16_); }

} // namespace candela::graph::passes
