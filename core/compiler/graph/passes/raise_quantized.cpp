// What stands between dequantize and quantize becomes arithmetic on the integers themselves.
//
// Going forward through the graph, products of dequantized operands become integer products whose
// i32 sums are dequantized behind them, and dequantize sinks below movement. Whatever quantize then
// meets is made of dequantized integers: a RESCALE of one or two, a TABLE of one, a mean of one.
// docs/adr/0010 says why there is no third form.
#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>

#include "core/compiler/graph/passes/integer_rows.h"
#include "core/compiler/graph/passes/rewrite.h"
#include "core/compiler/graph/rescale_factor.h"
#include "core/reference/reference.h"

namespace candela::graph::passes {

namespace {

// products of two bytes whose sum stays in i32, and of i16 and bytes in 40 bits
constexpr int64_t kMostTaps = 32768;
constexpr double kMostRounding =
    // of the result's step, by which a bias in whole steps of the sums may move it
    1.0 / 128;
constexpr int kMostShift = 62; // of a RESCALE

using Doubles = std::vector<double>;

bool allZero(const Doubles& values) {
  return std::ranges::all_of(values, [](double v) { return v == 0; });
}
bool isByte(Elem elem) { return elem == Elem::i8_ || elem == Elem::u8_; }
/// What may be multiplied by bytes.
bool isFactor(Elem elem) { return isByte(elem) || elem == Elem::i16_; }
/// What such products are summed in: the latter never beyond 40 bits.
Elem sumElem(Elem factor) { return factor == Elem::i16_ ? Elem::i64_ : Elem::i32_; }
double mostOfSums(Elem sums) { return sums == Elem::i64_ ? 0x1p39 - 1 : 0x1p31 - 1; }

/// real = scale * (stored - zero), with one scale or one for each of dim `axis`.
struct Real {
  Value* stored = nullptr;
  Doubles scales, zeros;
  int axis = -1;
  bool isPerTensor() const { return axis < 0; }
};

/// Of a quantize (its result) or a dequantize (its operand), when scales and zero points are
/// constants.
std::optional<Real> quantizationOf(const Node& node, Value* stored) {
  if (!isPlain(stored) || !isPlain(node.result()) || !isPlain(node.operand(0))) return std::nullopt;
  const auto scales = numbersOf(node.operand(1));
  if (!scales || node.operand(1)->type.elem != Elem::f32_) return std::nullopt;
  for (const double scale : *scales)
    if (!std::isnormal(scale) || scale < 0) return std::nullopt;
  const auto zeros = node.operand(2) ? numbersOf(node.operand(2)) : Doubles(scales->size(), 0);
  if (!zeros) return std::nullopt;
  const int axis = node.hasAttr("axis") ? wrapAxis(node.intAttr("axis"), stored->type.rank()) : -1;
  return Real{stored, *scales, *zeros, axis};
}

std::optional<Real> realOf(const Value* value) {
  if (!value || !value->producer || value->producer->kind != OpKind::Dequantize)
    return std::nullopt;
  return quantizationOf(*value->producer, value->producer->operand(0));
}

bool isProduct(OpKind kind) {
  return kind == OpKind::Conv || kind == OpKind::Matmul || kind == OpKind::Gemm;
}

// ---- How large integers become

double largestOf(const Doubles& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

/// Of the type's values less any of the zero points.
double largestCentred(Elem elem, const Doubles& zeros) {
  const IntegerRange range = integerRange(elem);
  double largest = 0;
  for (const double zero : zeros)
    largest = std::max({largest, zero - static_cast<double>(range.lowest),
                        static_cast<double>(range.highest) - zero});
  return largest;
}

/// The weights of a product: `taps` of them, less their zero points, meet in each sum.
struct Weights {
  const Value* stored;
  Doubles zeros;
  int64_t taps = 1;
  /// a sum reads one piece of the weights, else one column of their last two dims
  bool channelsFirst = false;
};

/// The largest sum of the magnitudes of weights that meet.
double largestSum(const Weights& w) {
  const double loose = static_cast<double>(w.taps) * largestCentred(w.stored->type.elem, w.zeros);
  const auto values = numbersOf(w.stored);
  if (!values || values->empty() || w.taps < 1) return loose;
  const auto columns = static_cast<size_t>(
      w.channelsFirst || w.stored->type.rank() < 2 ? 1 : w.stored->type.dim(-1));
  const size_t piece = static_cast<size_t>(w.taps) * columns;
  Doubles sums(values->size() / piece * columns, 0);
  for (size_t i = 0; i < sums.size() * static_cast<size_t>(w.taps); ++i) {
    const size_t sum = i / piece * columns + i % columns;
    const double zero = w.zeros.size() == 1 ? w.zeros[0] : w.zeros[sum % w.zeros.size()];
    sums[sum] += std::abs((*values)[i] - zero);
  }
  return sums.empty() ? 0 : largestOf(sums);
}

/// What the sums of products with such factors cannot be larger than.
double boundOfSums(Elem factors, const Doubles& zeros, const Weights& w) {
  const double factor = largestCentred(factors, zeros), room = mostOfSums(sumElem(factors));
  const double loose =
      factor * static_cast<double>(w.taps) * largestCentred(w.stored->type.elem, w.zeros);
  return loose < room / 2 ? loose : factor * largestSum(w); // half of it is enough for most biases
}

/// What the magnitudes of an integer value cannot be larger than.
double boundOf(const Value* value) {
  const Node* node = value->producer;
  const auto zerosOf = [&](size_t i) {
    return node->operand(i) ? numbersOf(node->operand(i)) : std::optional(Doubles{0});
  };
  const double any = largestCentred(value->type.elem, {0});
  switch (node ? node->kind : OpKind::Constant) {
  case OpKind::Constant: {
    const auto values = node ? numbersOf(value) : std::nullopt;
    return values ? largestOf(*values) : any;
  }
  case OpKind::Reshape:
  case OpKind::Transpose: return boundOf(node->operand(0));
  case OpKind::Add: return std::min(any, boundOf(node->operand(0)) + boundOf(node->operand(1)));
  case OpKind::ConvInteger:
  case OpKind::MatmulInteger: {
    const bool conv = node->kind == OpKind::ConvInteger;
    const size_t firstZero = conv ? 3 : 2; // operands: x, w, a bias of conv_integer, zeros of both
    const auto xZeros = zerosOf(firstZero), wZeros = zerosOf(firstZero + 1);
    if (!xZeros || !wZeros) return any;
    const Value *x = node->operand(0), *w = node->operand(1);
    const int64_t taps =
        conv ? w->type.count() / std::max<int64_t>(1, w->type.dim(0)) : x->type.dim(-1);
    const double sums = boundOfSums(x->type.elem, *xZeros, {w, *wZeros, taps, conv});
    return std::min(any, sums + (conv && node->operand(2) ? boundOf(node->operand(2)) : 0));
  }
  default: return any;
  }
}

// ---- Biases

/// The smallest step of a quantize that reads this, behind what does not enlarge an error; 0 where
/// something else does.
double finestStep(const Graph& graph, const Value* value, int depth = 0) {
  if (graph.isOutput(value) || depth > 8) return 0;
  double finest = INFINITY;
  for (const Node* user : value->users()) {
    switch (user->kind) {
    case OpKind::Quantize: {
      const auto scales = user->operand(0) == value ? numbersOf(user->operand(1)) : std::nullopt;
      finest =
          std::min(finest, scales && !scales->empty() ? *std::ranges::min_element(*scales) : 0);
      break;
    }
    case OpKind::Relu:
    case OpKind::Clip:
    case OpKind::Reshape:
    case OpKind::Transpose:
    case OpKind::Add:
    case OpKind::Sub:
    case OpKind::Concat:
    case OpKind::MaxPool:
    case OpKind::AveragePool:
    case OpKind::GlobalAveragePool:
      finest = std::min(
          finest, user->results().size() == 1 ? finestStep(graph, user->result(), depth + 1) : 0);
      break;
    default: return 0;
    }
  }
  return std::isfinite(finest) ? finest : 0;
}

/// A bias in whole steps of the sums that it joins, each channel's own or the one of all. Nothing
/// where rounding to them is more than rounding to f32, and `finest`, the step of the result, is
/// not so coarse that it hardly matters.
std::optional<Doubles> inSteps(const Doubles& values, const Doubles& scales, size_t channels,
                               double finest) {
  Doubles steps;
  for (size_t c = 0; c < channels; ++c) {
    const double value = values[values.size() == 1 ? 0 : c],
                 scale = scales[scales.size() == 1 ? 0 : c];
    steps.push_back(std::nearbyint(value / scale));
    if (!(std::abs(steps.back()) < 0x1p30)) return std::nullopt;
    const double error = std::abs(steps.back() * scale - value);
    if (error > std::abs(value) * precisionOf(Elem::f32_) && error > finest * kMostRounding)
      return std::nullopt;
  }
  return steps;
}

/// A conv, matmul or gemm of two dequantized operands as an integer product.
struct Product {
  Real x, w;
  Doubles scales; ///< of the sums: one, or one per channel of the result
  Doubles bias;   ///< in steps of the sums; empty: none
  Doubles behind; ///< a bias that is added to the dequantized sums; empty: none
};

/// How many channels the result of a product has, where its weights have scales for them.
int64_t channelsOf(const Node& node, const TensorType& weights, int channelDim) {
  if (node.kind == OpKind::Conv) return node.result()->type.dim(1);
  return weights.rank() < 2 ? 1 : weights.dim(channelDim);
}

/// How many products each sum of a product adds up.
int64_t depthOf(const Node& node, const TensorType& x, const TensorType& weights,
                int64_t channels) {
  if (node.kind == OpKind::Conv) return weights.count() / channels;
  const bool transposed = node.kind == OpKind::Gemm && node.intAttr("transA");
  return x.dim(transposed ? 0 : -1);
}

/// The numbers of a constant, quantized or not; nothing where it is no constant.
std::optional<Doubles> constantReals(const Value* value) {
  const auto real = realOf(value);
  if (!real) return numbersOf(value);
  auto numbers = numbersOf(real->stored);
  for (size_t i = 0; numbers && i < numbers->size(); ++i) {
    const size_t c = real->isPerTensor() ? 0 : i;
    (*numbers)[i] = ((*numbers)[i] - real->zeros[c]) * real->scales[c];
  }
  return numbers;
}

std::optional<Product> productOf(const Graph* graph, const Node& node, std::string& why) {
  const auto no = [&](std::string reason) {
    why = std::move(reason);
    return std::nullopt;
  };
  const auto x = realOf(node.operand(0)), w = realOf(node.operand(1));
  if (!x || !w)
    return no(fmt::format("operand {} is not quantized by constants",
                          node.info().operands[x ? 1 : 0].name));
  const Elem factors = x->stored->type.elem;
  for (const Real* operand : {&*x, &*w})
    if (const Elem elem = operand->stored->type.elem;
        operand == &*x ? !isFactor(elem) : !isByte(elem))
      return no(fmt::format("an operand is {}", elemName(elem)));
  if (!x->isPerTensor()) return no("its input has several scales");
  const bool conv = node.kind == OpKind::Conv, gemm = node.kind == OpKind::Gemm;
  const int wRank = w->stored->type.rank(), yRank = node.result()->type.rank();
  const int channelDim = conv || (gemm && node.intAttr("transB")) ? 0 : wRank - 1;
  if (!w->isPerTensor() && (w->axis != channelDim || wRank < 2))
    return no(fmt::format("its weights have scales along dim {}", w->axis));
  const int64_t channels = channelsOf(node, w->stored->type, channelDim);
  if (x->stored->type.count() == 0 || w->stored->type.count() == 0)
    return no("an operand is empty");
  const int64_t taps = depthOf(node, x->stored->type, w->stored->type, channels);
  if (taps > kMostTaps) return no(fmt::format("sums of {} products may leave i32", taps));
  if (yRank == 0) return no("its result is a scalar");
  const Weights weights{w->stored, w->zeros, taps, channelDim == 0 && wRank > 1};
  const double room = mostOfSums(sumElem(factors)) - boundOfSums(factors, x->zeros, weights);
  if (room < 0) return no(fmt::format("its sums may leave {}", elemName(sumElem(factors))));
  Product product{*x, *w, {}, {}, {}};
  const double alpha = gemm ? node.floatAttr("alpha") : 1;
  const double beta = gemm ? node.floatAttr("beta") : 1;
  for (const double scale : w->scales)
    product.scales.push_back(static_cast<float>(static_cast<float>(x->scales[0] * scale) * alpha));
  for (const double scale : product.scales)
    if (!std::isnormal(scale) || scale < 0)
      return no(fmt::format("the scale of its sums is {}", scale));
  const Value* b = node.kind == OpKind::Matmul ? nullptr : node.operand(2);
  if (!b || beta == 0) return product;
  auto bias = constantReals(b);
  if (!bias) return no("its bias is no constant");
  if (bias->size() != 1 &&
      (static_cast<int64_t>(bias->size()) != channels || b->type.dim(-1) != channels))
    return no("its bias is not one value a channel");
  for (double& value : *bias) value *= beta;
  const auto steps = inSteps(*bias, product.scales, static_cast<size_t>(channels),
                             graph ? finestStep(*graph, node.result()) : INFINITY);
  if (steps && largestOf(*steps) <= room)
    product.bias = *steps;
  else
    product.behind = *bias;
  return product;
}

/// Adds nodes before `at`, on its behalf.
class Raiser {
public:
  Raiser(Graph& graph, Node* at, Provenance provenance)
      : graph_(graph), at_(at), provenance_(std::move(provenance)) {}

  Result<Value*> add(OpKind kind, std::vector<Value*> operands, Attrs attrs = {}) {
    while (!operands.back()) operands.pop_back();
    CDL_ASSIGN(const Node* node,
               graph_.addNode(kind, std::move(operands), std::move(attrs), provenance_, at_));
    return node->result();
  }
  /// Rounded to the type once.
  Result<Value*> constant(Elem elem, Shape dims, const Doubles& values) {
    CDL_ASSIGN(Tensor tensor, tensorOf(elem, std::move(dims), values));
    return constant(std::move(tensor));
  }
  Result<Value*> constant(Tensor tensor) {
    return graph_.addConstant(std::move(tensor), provenance_, at_);
  }
  /// Null where all are 0, which is what an absent one means.
  Result<Value*> zeroPoint(Elem elem, const Doubles& zeros) {
    if (allZero(zeros)) return static_cast<Value*>(nullptr);
    const bool same = std::ranges::count(zeros, zeros[0]) == std::ssize(zeros);
    const Doubles values = same ? Doubles{zeros[0]} : zeros;
    return constant(elem, {std::ssize(values)}, values);
  }
  Result<Value*> dequantize(Value* stored, const Doubles& scales, const Doubles& zeros, int axis) {
    const Shape dims = axis < 0 ? Shape{} : Shape{std::ssize(scales)};
    const Attrs attrs = axis < 0 ? Attrs{} : Attrs{{"axis", int64_t(axis)}};
    CDL_ASSIGN(Value * scale, constant(Elem::f32_, dims, scales));
    Value* zero = nullptr;
    if (!allZero(zeros)) {
      CDL_ASSIGN(zero, constant(stored->type.elem, dims, zeros));
    }
    return add(OpKind::Dequantize, {stored, scale, zero}, attrs);
  }
  /// stored - zero, in i32 where the two differ; nothing for zero points of channels.
  Result<Value*> centred(const Real& real) {
    if (allZero(real.zeros)) return real.stored;
    CDL_CHECK(elemBits(real.stored->type.elem) <= 16, "{} has no room for a zero point",
              elemName(real.stored->type.elem));
    CDL_ASSIGN(Value * wide, add(OpKind::Cast, {real.stored}, {{"to", Elem::i32_}}));
    CDL_ASSIGN(Value * zero, constant(Elem::i32_, {}, {real.zeros[0]}));
    return add(OpKind::Sub, {wide, zero});
  }

private:
  Graph& graph_;
  Node* at_;
  Provenance provenance_;
};

/// i8 of constant bytes without a sign, with zero points that move along.
Result<Value*> asSigned(Raiser& raiser, Real& real) {
  if (real.stored->type.elem != Elem::u8_ || !real.stored->isConstant()) return real.stored;
  Doubles values = *numbersOf(real.stored);
  for (Doubles* list : {&values, &real.zeros})
    for (double& value : *list) value -= 128;
  return raiser.constant(Elem::i8_, real.stored->type.shape(), values);
}

/// The dim of the sums along which they have scales; -1: they have one.
int scaleAxis(const Product& product, bool conv, int rank) {
  if (product.scales.size() == 1 && product.w.isPerTensor()) return -1;
  return conv ? 1 : rank - 1;
}

Result<bool> raiseProduct(Graph& graph, Node* node) {
  std::string why;
  auto product = productOf(&graph, *node, why);
  if (!product) return false;
  Raiser raiser(graph, node,
                mergedProvenance(node->provenance, node->operand(1)->producer->provenance));
  Value* x = product->x.stored;
  CDL_ASSIGN(Value * w, asSigned(raiser, product->w));
  CDL_ASSIGN(Value * xZero, raiser.zeroPoint(x->type.elem, product->x.zeros));
  CDL_ASSIGN(Value * wZero, raiser.zeroPoint(w->type.elem, product->w.zeros));
  const Doubles& bias = product->bias;
  const Elem sumsElem = sumElem(x->type.elem);
  const bool conv = node->kind == OpKind::Conv, takesBias = conv && sumsElem == Elem::i32_;
  const auto beside = [&](const Doubles& row) { // broadcasts along the channels of the result
    Shape dims(conv ? static_cast<size_t>(node->result()->type.rank() - 1) : 1, 1);
    dims[0] = std::ssize(row);
    return dims;
  };
  Value* b = nullptr;
  if (!bias.empty()) {
    CDL_ASSIGN(b,
               raiser.constant(sumsElem, takesBias ? Shape{std::ssize(bias)} : beside(bias), bias));
  }
  Value* sums = nullptr;
  if (conv) {
    CDL_ASSIGN(sums, raiser.add(OpKind::ConvInteger, {x, w, takesBias ? b : nullptr, xZero, wZero},
                                node->attrs));
  } else {
    const Attrs swap = {{"perm", std::vector<int64_t>{1, 0}}};
    const bool gemm = node->kind == OpKind::Gemm;
    if (gemm && node->intAttr("transA")) {
      CDL_ASSIGN(x, raiser.add(OpKind::Transpose, {x}, swap));
    }
    if (gemm && node->intAttr("transB")) {
      CDL_ASSIGN(w, raiser.add(OpKind::Transpose, {w}, swap));
    }
    CDL_ASSIGN(sums, raiser.add(OpKind::MatmulInteger, {x, w, xZero, wZero}));
  }
  if (b && !takesBias) {
    CDL_ASSIGN(sums, raiser.add(OpKind::Add, {sums, b}));
  }
  const int axis = scaleAxis(*product, conv, sums->type.rank());
  CDL_ASSIGN(Value * real, raiser.dequantize(sums, product->scales, {0}, axis));
  if (!product->behind.empty()) {
    CDL_ASSIGN(Value * row, raiser.constant(Elem::f32_, beside(product->behind), product->behind));
    CDL_ASSIGN(real, raiser.add(OpKind::Add, {real, row}));
  }
  replaceWithNew(graph, node, real);
  return true;
}

bool isActivation(const Node* node) {
  return node && (node->kind == OpKind::Relu || node->kind == OpKind::Clip);
}

bool feedsQuantize(const Value* value) {
  return std::ranges::any_of(value->users(), [](const Node* user) {
    return user->kind == OpKind::Quantize || (isActivation(user) && feedsQuantize(user->result()));
  });
}

/// A constant row that is added to the sums of a product joins them: where it is a whole number of
/// steps, or where the sum is quantized to much larger ones, and where the sums have room for it.
Result<bool> raiseBias(Graph& graph, Node* node) {
  for (const int side : {0, 1}) {
    const auto real = realOf(node->operand(side));
    const Value* row = node->operand(1 - side);
    const auto values = real ? numbersOf(row) : std::nullopt;
    const Elem elem = real ? real->stored->type.elem : Elem::none;
    if (!values || (elem != Elem::i32_ && elem != Elem::i64_) ||
        node->result()->type.shape() != real->stored->type.shape())
      continue;
    const int rank = real->stored->type.rank();
    const int64_t channels = rank > 0 ? real->stored->type.dim(-1) : 0;
    const bool isRow =
        values->size() == 1 || (std::ssize(*values) == channels && row->type.dim(-1) == channels);
    if (!isRow || (!real->isPerTensor() && real->axis != rank - 1) || !allZero(real->zeros))
      continue;
    const auto steps = inSteps(*values, real->scales, static_cast<size_t>(channels),
                               finestStep(graph, node->result()));
    if (!steps || boundOf(real->stored) + largestOf(*steps) > mostOfSums(elem)) continue;
    if (allZero(*steps) && canReplace(graph, node->result(), node->operand(side))) {
      replaceWith(graph, node, node->operand(side));
      return true;
    }
    Raiser raiser(
        graph, node,
        mergedProvenance(real->stored->producer ? real->stored->producer->provenance : Provenance{},
                         node->provenance));
    CDL_ASSIGN(Value * b, raiser.constant(elem, {channels}, *steps));
    CDL_ASSIGN(Value * sums, raiser.add(OpKind::Add, {real->stored, b}));
    CDL_ASSIGN(Value * y, raiser.dequantize(sums, real->scales, {0}, real->axis));
    replaceWithNew(graph, node, y);
    return true;
  }
  return false;
}

bool sameQuantization(const Real& a, const Real& b) {
  return a.isPerTensor() && b.isPerTensor() && a.scales == b.scales && a.zeros == b.zeros &&
         a.stored->type.elem == b.stored->type.elem;
}

/// Moves elements only; which of them is the largest does not depend on a scale either.
bool isMovement(const Node& node) {
  switch (node.kind) {
  case OpKind::Reshape:
  case OpKind::Transpose:
  case OpKind::Slice:
  case OpKind::Concat:
  case OpKind::Gather: return true;
  case OpKind::Put: return node.stringAttr("fn") == "set";
  case OpKind::MaxPool: return node.results().size() == 1;
  default: return false;
  }
}

/// Dequantize behind what moves its result.
Result<bool> sinkDequantize(Graph& graph, Node* node) {
  const auto first = realOf(node->operand(0));
  if (!first || !first->isPerTensor() || elemBits(first->stored->type.elem) > 16 ||
      !isPlain(node->result()))
    return false;
  std::vector<Value*> operands{first->stored};
  for (size_t i = 1; i < node->operands().size(); ++i) {
    operands.push_back(node->operand(i));
    const bool isData = node->kind == OpKind::Concat || (node->kind == OpKind::Put && i == 2);
    if (!isData) continue;
    const auto other = realOf(node->operand(i));
    if (!other || !sameQuantization(*first, *other)) return false;
    operands.back() = other->stored;
  }
  Raiser raiser(graph, node, node->provenance);
  CDL_ASSIGN(Value * moved, raiser.add(node->kind, std::move(operands), node->attrs));
  CDL_ASSIGN(Value * real, raiser.dequantize(moved, first->scales, first->zeros, -1));
  replaceWithNew(graph, node, real);
  return true;
}

// ---- What quantize meets

/// The quantized result that a cluster has to give, and the limits that activations add.
struct Goal {
  double scale = 1, zero = 0;
  Elem elem = Elem::none;
  double lowest = -INFINITY, highest = INFINITY; ///< reals

  double stored(double real) const {
    const IntegerRange range = integerRange(elem);
    const double steps = std::nearbyint(static_cast<float>(real / scale)) + zero;
    return std::clamp(steps, static_cast<double>(range.lowest), static_cast<double>(range.highest));
  }
};

/// One operand of a RESCALE: zero-centred integers and their scales in steps of the result.
struct Term {
  Value* stored;
  Doubles scales;
  int axis = -1;
};

/// The bits of a term's magnitudes; sums of more than 32 bits are those of a product, or may have
/// all 63.
int bitsOf(const Value* stored) {
  const Elem elem = stored->type.elem;
  if (elem == Elem::i64_ && boundOf(stored) <= mostOfSums(elem)) return 39;
  return elemBits(elem) - isSigned(elem);
}

/// clamp(rne(sum of terms) + zero); nothing where a scale is none that RESCALE has, or the
/// alignment leaves 63 bits.
Result<Value*> rescale(Raiser& raiser, const std::vector<Term>& terms, const Goal& goal) {
  int most = 0, left[2] = {0, 0};
  std::vector<std::vector<RescaleFactor>> all;
  for (const Term& term : terms) {
    all.emplace_back();
    for (const double scale : term.scales) {
      if (!std::isnormal(static_cast<float>(scale)) || rescaleFactor(scale).shift > kMostShift)
        return static_cast<Value*>(nullptr);
      all.back().push_back(rescaleFactor(scale));
    }
    for (const RescaleFactor& s : all.back()) most = std::max(most, s.shift);
  }
  // One shift for both operands; one operand is aligned only where its scale is above 2^24.
  for (size_t t = 0; t < terms.size(); ++t) {
    for (const RescaleFactor& s : all[t])
      left[t] = std::max(left[t], terms.size() > 1 ? most - s.shift : -s.shift);
    if (bitsOf(terms[t].stored) + 24 + left[t] + (terms.size() > 1) > 63)
      return static_cast<Value*>(nullptr);
  }
  const auto beside = [&](const Term& term, auto value) -> Result<Value*> {
    Shape dims;
    if (term.axis >= 0) dims.assign(static_cast<size_t>(term.stored->type.rank() - term.axis), 1);
    if (term.axis >= 0) dims[0] = std::ssize(term.scales);
    Doubles values;
    for (const RescaleFactor& s : all[static_cast<size_t>(&term - terms.data())])
      values.push_back(value(s));
    return raiser.constant(Elem::i32_, dims, values);
  };
  const auto multiplier = [](const RescaleFactor& s) { return s.significand; };
  CDL_ASSIGN(Value * m, beside(terms[0], multiplier));
  CDL_ASSIGN(Value * shift, beside(terms[0], [&](const RescaleFactor& s) {
               return double(terms.size() > 1 ? most : s.shift + left[0]);
             }));
  CDL_ASSIGN(Value * zero, raiser.constant(Elem::i32_, {}, {goal.zero}));
  std::vector<Value*> operands{terms[0].stored, m, shift, zero};
  Attrs attrs{{"to", goal.elem}};
  if (left[0] > 0) attrs["left_shift"] = int64_t(left[0]);
  if (terms.size() > 1) {
    operands.push_back(terms[1].stored);
    CDL_ASSIGN(m, beside(terms[1], multiplier));
    operands.push_back(m);
    if (left[1] > 0) attrs["b_left_shift"] = int64_t(left[1]);
  }
  if (goal.lowest > -INFINITY) attrs["clamp_min"] = static_cast<int64_t>(goal.stored(goal.lowest));
  if (goal.highest < INFINITY) attrs["clamp_max"] = static_cast<int64_t>(goal.stored(goal.highest));
  return raiser.add(OpKind::Rescale, std::move(operands), std::move(attrs));
}

Doubles inStepsOf(const Goal& goal, Doubles scales, double sign = 1) {
  for (double& scale : scales) scale = sign * static_cast<float>(scale / goal.scale);
  return scales;
}

/// The one dequantized value that `value` is a function of, element by element; null when there is
/// none.
Value* sourceOf(Value* value, int depth = 0) {
  if (realOf(value)) return value;
  const Node* node = value->producer;
  if (!node || depth > 16 || !node->info().has(kTraitElementwise) || node->results().size() != 1 ||
      node->info().has(kTraitPrimitive))
    return nullptr;
  Value* source = nullptr;
  for (Value* operand : node->operands()) {
    if (!operand || (isPlainConstant(operand) && operand->type.count() == 1)) continue;
    Value* own = sourceOf(operand, depth + 1);
    if (!own || (source && own != source)) return nullptr;
    source = own;
  }
  return source && source->type.shape() == value->type.shape() ? source : nullptr;
}

/// The node's results for every byte: `values` maps what stands in the model to what stands here.
Result<Value*> onEveryByte(Graph& every, Value* value, std::map<const Value*, Value*>& values) {
  if (values.count(value)) return values[value];
  std::vector<Value*> operands;
  for (Value* operand : value->producer->operands()) {
    operands.push_back(nullptr);
    if (operand) {
      CDL_ASSIGN(operands.back(), onEveryByte(every, operand, values));
    }
  }
  if (value->isConstant()) return values[value] = every.addConstant(value->payload(), value->type);
  CDL_ASSIGN(const Node* node,
             every.addNode(value->producer->kind, std::move(operands), value->producer->attrs));
  return values[value] = node->result();
}

/// quantize(f(dequantize(x))) of bytes that stay in their type, by the float arithmetic itself.
Result<Value*> table(Raiser& raiser, Node* quantize) {
  Value* source = sourceOf(quantize->operand(0));
  const auto real = source ? realOf(source) : std::nullopt;
  const Elem elem = quantize->result()->type.elem;
  if (!real || !real->isPerTensor() || !isByte(elem) || real->stored->type.elem != elem)
    return static_cast<Value*>(nullptr);
  Graph every;
  std::map<const Value*, Value*> values;
  Doubles bytes(256);
  for (size_t i = 0; i < 256; ++i)
    bytes[i] = static_cast<double>(i) - (elem == Elem::i8_ ? 128 : 0);
  CDL_ASSIGN(Tensor tensor, tensorOf(elem, {256}, bytes));
  values[real->stored] = every.addConstant(std::move(tensor));
  CDL_ASSIGN(Value * y, onEveryByte(every, quantize->result(), values));
  every.addOutput(y, "y");
  CDL_ASSIGN(const std::vector<Tensor> results, reference::run(every, {}));
  CDL_ASSIGN(const reference::Array entries, reference::fromTensor(results[0]));
  CDL_ASSIGN(Value * table,
             raiser.constant(elem, {256}, Doubles(entries.whole.begin(), entries.whole.end())));
  return raiser.add(OpKind::Table, {real->stored, table});
}

/// The sum over some dims, which stay, and how many elements it has.
struct Sum {
  std::vector<int64_t> axes;
  int64_t count = 1;
};
std::optional<Sum> sumOf(const Node& node) {
  const TensorType& x = node.operand(0)->type;
  Sum sum;
  if (node.kind == OpKind::GlobalAveragePool) {
    for (int d = 2; d < x.rank(); ++d) sum.axes.push_back(d);
  } else if (node.kind == OpKind::ReduceMean) {
    sum.axes = node.intsAttr("axes");
  } else {
    return std::nullopt;
  }
  for (const int64_t axis : sum.axes) sum.count *= x.dim(static_cast<int>(axis));
  if (sum.count > (1 << 22) || sum.axes.empty()) return std::nullopt;
  return sum;
}

/// average_pool without a border, or with one that counts, is a depthwise convolution with ones.
std::optional<int64_t> tapsOf(const Node& node) {
  if (node.kind != OpKind::AveragePool || node.intAttr("ceil_mode")) return std::nullopt;
  const auto kernel = node.intsAttr("kernel_shape");
  const auto pads = node.intsAttr("pads", 2 * kernel.size(), 0);
  if (!node.intAttr("count_include_pad") && std::ranges::count(pads, 0) != std::ssize(pads))
    return std::nullopt;
  return elementCount(kernel);
}

/// A sum or difference of two reals; null where none of them has the shape of the result.
Result<Value*> sumInSteps(Raiser& raiser, const Node& node, const Real& a, const Real& b,
                          const Goal& goal) {
  const Shape shape = node.result()->type.shape();
  CDL_ASSIGN(Value * x, raiser.centred(a));
  CDL_ASSIGN(Value * y, raiser.centred(b));
  std::vector<Term> terms{{x, inStepsOf(goal, a.scales)}, {y, inStepsOf(goal, b.scales)}};
  if (node.kind == OpKind::Sub) terms[1].scales[0] = -terms[1].scales[0];
  if (x->type.shape() != shape) std::swap(terms[0], terms[1]);
  if (terms[0].stored->type.shape() != shape) return static_cast<Value*>(nullptr);
  return rescale(raiser, terms, goal);
}

/// A product of two reals; null where it may leave i32.
Result<Value*> productInSteps(Raiser& raiser, const Real& a, const Real& b, const Goal& goal) {
  for (const Real* factor : {&a, &b})
    if (largestCentred(factor->stored->type.elem, factor->zeros) > 32768)
      return static_cast<Value*>(nullptr);
  CDL_ASSIGN(Value * x, raiser.centred(a));
  CDL_ASSIGN(Value * y, raiser.centred(b));
  for (Value** factor : {&x, &y})
    if ((*factor)->type.elem != Elem::i32_) {
      CDL_ASSIGN(*factor, raiser.add(OpKind::Cast, {*factor}, {{"to", Elem::i32_}}));
    }
  CDL_ASSIGN(Value * products, raiser.add(OpKind::Mul, {x, y}));
  const auto scale = static_cast<float>(a.scales[0] * b.scales[0]);
  return rescale(raiser, {{products, inStepsOf(goal, {scale})}}, goal);
}

/// Sums of `count` integers of `a` each, as their means.
Result<Value*> meanInSteps(Raiser& raiser, Value* sums, int64_t count, const Real& a,
                           const Goal& goal) {
  const double divisor = static_cast<double>(count) * goal.scale;
  return rescale(raiser, {{sums, {static_cast<float>(a.scales[0] / divisor)}}}, goal);
}

/// The mean along some axes: integers are added up, and the sums divided.
Result<Value*> meanAlongAxes(Raiser& raiser, const Node& node, const Sum& sum, const Real& a,
                             const Goal& goal) {
  const Shape shape = node.result()->type.shape();
  CDL_ASSIGN(Value * sums, raiser.centred(a));
  if (sums->type.elem != Elem::i32_) {
    CDL_ASSIGN(sums, raiser.add(OpKind::Cast, {sums}, {{"to", Elem::i32_}}));
  }
  CDL_ASSIGN(sums, raiser.add(OpKind::ReduceSum, {sums}, {{"axes", sum.axes}}));
  if (sums->type.shape() != shape) {
    CDL_ASSIGN(sums, raiser.add(OpKind::Reshape, {sums}, {{"shape", shape}}));
  }
  return meanInSteps(raiser, sums, sum.count, a, goal);
}

/// The mean of windows of `taps` elements: a depthwise convolution with ones adds them up.
Result<Value*> meanOfWindows(Raiser& raiser, const Node& node, int64_t taps, const Real& a,
                             const Goal& goal) {
  Shape dims = node.intsAttr("kernel_shape");
  const int64_t channels = a.stored->type.dim(1);
  dims.insert(dims.begin(), {channels, 1});
  CDL_ASSIGN(Value * ones,
             raiser.constant(Elem::i8_, dims, Doubles(static_cast<size_t>(channels * taps), 1)));
  CDL_ASSIGN(Value * zero, raiser.zeroPoint(a.stored->type.elem, a.zeros));
  Attrs attrs{{"group", channels}};
  for (const char* name : {"strides", "pads", "dilations"})
    if (node.hasAttr(name)) attrs[name] = node.attrs.find(name)->second;
  CDL_ASSIGN(Value * sums,
             raiser.add(OpKind::ConvInteger, {a.stored, ones, nullptr, zero}, std::move(attrs)));
  return meanInSteps(raiser, sums, taps, a, goal);
}

/// The integers of what stands before the activations; null where it has no integer form.
Result<Value*> integersOf(Raiser& raiser, Value* value, const Goal& goal) {
  Value* const none = nullptr;
  if (const auto real = realOf(value)) {
    if (!allZero(real->zeros) && (!real->isPerTensor() || elemBits(real->stored->type.elem) > 16))
      return none;
    CDL_ASSIGN(Value * x, raiser.centred(*real));
    return rescale(raiser, {{x, inStepsOf(goal, real->scales), real->axis}}, goal);
  }
  const Node* node = value->producer;
  if (!node || node->operands().empty()) return none;
  const auto a = realOf(node->operand(0)), b = realOf(node->operand(1));
  if (!a || !a->isPerTensor() || (node->operand(1) && (!b || !b->isPerTensor()))) return none;
  for (const Real* real : {&*a, b ? &*b : &*a})
    if (!allZero(real->zeros) && elemBits(real->stored->type.elem) > 16) return none;
  switch (node->kind) {
  case OpKind::Add:
  case OpKind::Sub: return sumInSteps(raiser, *node, *a, *b, goal);
  case OpKind::Mul: return productInSteps(raiser, *a, *b, goal);
  default: break;
  }
  if (!isFactor(a->stored->type.elem)) return none;
  const double largest = largestCentred(a->stored->type.elem, a->zeros);
  const auto sum = sumOf(*node);
  if (sum && largest * static_cast<double>(sum->count) <= mostOfSums(Elem::i32_))
    return meanAlongAxes(raiser, *node, *sum, *a, goal);
  const auto taps = tapsOf(*node);
  if (taps && *taps <= kMostTaps) return meanOfWindows(raiser, *node, *taps, *a, goal);
  return none;
}

/// The numbers of a scale or bias of rows; `absent` for each where there is none.
std::optional<Doubles> rowNumbers(const Value* value, size_t count, double absent) {
  return value ? numbersOf(value) : Doubles(count, absent);
}

std::optional<RowFunction> rowFunctionOf(const Node& node, const Real& x, const QuantizedBytes& y) {
  const Shape shape = x.stored->type.shape();
  const int axis = wrapAxis(node.intAttr("axis"), x.stored->type.rank());
  if (node.kind == OpKind::Softmax)
    return integerSoftmax(x.scales[0], shape[static_cast<size_t>(axis)], y);
  const Shape row(shape.begin() + axis, shape.end());
  const auto count = static_cast<size_t>(*elementCount(row));
  auto scale = rowNumbers(node.operand(1), count, 1), bias = rowNumbers(node.operand(2), count, 0);
  if (!scale || !bias) return std::nullopt;
  const RowNorm norm{*std::move(scale), *std::move(bias), node.floatAttr("epsilon")};
  if (node.kind == OpKind::RmsNorm) {
    const QuantizedBytes bytes{x.scales[0], static_cast<int64_t>(x.zeros[0]), x.stored->type.elem};
    auto function = integerRmsNorm(bytes, norm, y);
    if (function) function->operands[0].dims = row;
    return function;
  }
  auto function = integerLayerNorm(x.scales[0], norm, y);
  if (!function) return std::nullopt;
  for (const size_t i : {0, 1}) function->operands[i].dims = row;
  return function;
}

/// The form in integers of a function of rows; nothing of others.
std::optional<OpKind> integerFormOf(OpKind kind) {
  switch (kind) {
  case OpKind::Softmax: return OpKind::SoftmaxInteger;
  case OpKind::LayerNorm: return OpKind::LayerNormInteger;
  case OpKind::RmsNorm: return OpKind::RmsNormInteger;
  default: return std::nullopt;
  }
}

/// Softmax, LayerNorm and RMSNorm of bytes, where the model wants them as integers.
Result<Value*> rowFunction(Raiser& raiser, const Value* value, const Goal& goal) {
  Value* const none = nullptr;
  const Node* node = value->producer;
  const auto form = node ? integerFormOf(node->kind) : std::nullopt;
  if (!form) return none;
  const auto x = realOf(node->operand(0));
  if (!node->intAttr("integers") || !x || !x->isPerTensor() || !isByte(goal.elem) ||
      !isByte(x->stored->type.elem) || x->stored->type.count() == 0 || goal.lowest > -INFINITY ||
      goal.highest < INFINITY)
    return none;
  auto function =
      rowFunctionOf(*node, *x, {goal.scale, static_cast<int64_t>(goal.zero), goal.elem});
  if (!function) return none;
  function->attrs["axis"] = node->intAttr("axis");
  std::vector<Value*> operands{x->stored};
  for (Tensor& tensor : function->operands) {
    CDL_ASSIGN(operands.emplace_back(), raiser.constant(std::move(tensor)));
  }
  return raiser.add(*form, std::move(operands), std::move(function->attrs));
}

/// Reals of several scales that are joined, or put among each other: each in the steps of the
/// result first. Null where an operand is none.
Result<Value*> joined(Raiser& raiser, const Node& node, const Goal& goal) {
  Value* const none = nullptr;
  const bool isPut = node.kind == OpKind::Put && node.stringAttr("fn") == "set";
  if (node.kind != OpKind::Concat && !isPut) return none;
  std::vector<Value*> pieces = node.operands();
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (isPut && i == 1) continue; // the places
    const auto real = realOf(pieces[i]);
    if (!real || !real->isPerTensor()) return none;
  }
  const Real whole{nullptr, {goal.scale}, {goal.zero}, -1};
  const bool isLimited = goal.lowest > -INFINITY || goal.highest < INFINITY;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (isPut && i == 1) continue;
    const auto real = realOf(pieces[i]);
    const bool isAlike = real->stored->type.elem == goal.elem && real->scales == whole.scales &&
                         real->zeros == whole.zeros && !isLimited;
    if (isAlike) {
      pieces[i] = real->stored;
      continue;
    }
    CDL_ASSIGN(pieces[i], integersOf(raiser, pieces[i], goal));
    if (!pieces[i]) return none;
  }
  return raiser.add(node.kind, std::move(pieces), node.attrs);
}

Result<bool> raiseQuantize(Graph& graph, Node* node);

/// Quantize before what moves its operand, where it meets what computes that.
Result<bool> liftQuantize(Graph& graph, Node* node) {
  const Value* value = node->operand(0);
  const Node* move = value->producer;
  if (!move || (move->kind != OpKind::Reshape && move->kind != OpKind::Transpose)) return false;
  if (value->users().size() != 1 || graph.isOutput(value) || !isPlain(move->operand(0)) ||
      node->hasAttr("axis"))
    return false;
  CDL_ASSIGN(Node * early,
             graph.addNode(OpKind::Quantize, {move->operand(0), node->operand(1), node->operand(2)},
                           {}, node->provenance, node));
  CDL_ASSIGN(const Node* moved,
             graph.addNode(move->kind, {early->result()}, move->attrs, move->provenance, node));
  replaceWithNew(graph, node, moved->result());
  CDL_TRY(raiseQuantize(graph, early).status());
  return true;
}

Result<bool> raiseQuantize(Graph& graph, Node* node) {
  const auto to = quantizationOf(*node, node->result());
  if (!to || !to->isPerTensor()) return false;
  if (const auto real = realOf(node->operand(0)); real && sameQuantization(*real, *to)) {
    if (!canReplace(graph, node->result(), real->stored)) return false;
    replaceWith(graph, node, real->stored);
    return true;
  }
  CDL_ASSIGN(const bool lifted, liftQuantize(graph, node));
  if (lifted) return true;
  Goal goal{to->scales[0], to->zeros[0], to->stored->type.elem};
  Value* value = node->operand(0);
  Provenance names = node->provenance;
  std::vector<const Node*> activations;
  while (isActivation(value->producer)) {
    activations.push_back(value->producer);
    names = mergedProvenance(value->producer->provenance, names);
    value = value->producer->operand(0);
  }
  for (const Node* activation : activations | std::views::reverse) {
    double limits[2] = {0, INFINITY};
    for (const size_t i : {0, 1}) {
      if (activation->kind == OpKind::Relu) continue;
      const auto limit = activation->operand(i + 1) ? numbersOf(activation->operand(i + 1))
                                                    : Doubles{i ? INFINITY : -INFINITY};
      if (!limit || std::isnan((*limit)[0])) return false;
      limits[i] = (*limit)[0];
    }
    for (double* end : {&goal.lowest, &goal.highest})
      *end = std::min(std::max(*end, limits[0]), limits[1]);
  }
  if (value->producer && value->producer->kind != OpKind::Dequantize && !value->isConstant())
    names = mergedProvenance(value->producer->provenance, names);
  Raiser raiser(graph, node, std::move(names));
  CDL_ASSIGN(Value * integers, table(raiser, node));
  if (!integers && value->producer) {
    CDL_ASSIGN(integers, joined(raiser, *value->producer, goal));
  }
  if (!integers) {
    CDL_ASSIGN(integers, rowFunction(raiser, value, goal));
  }
  if (!integers) {
    CDL_ASSIGN(integers, integersOf(raiser, value, goal));
  }
  if (!integers) return false;
  replaceWithNew(graph, node, integers);
  return true;
}

/// Bytes around a zero point of 128 that only dequantize reads are i8 around 0, and u16 around
/// 32768 are i16: nothing has to be subtracted then.
Result<bool> makeSigned(Graph& graph, Node* node) {
  const auto to = quantizationOf(*node, node->result());
  const bool isByteWide = to && isByte(to->stored->type.elem);
  if (!to || to->stored->type.elem != (isByteWide ? Elem::u8_ : Elem::u16_) ||
      to->zeros != Doubles{isByteWide ? 128.0 : 32768.0} || !to->isPerTensor())
    return false;
  if (graph.isOutput(node->result())) return false;
  const std::vector<Node*> users = node->result()->users();
  for (const Node* user : users)
    if (const auto real = realOf(user->results().empty() ? nullptr : user->result());
        !real || real->zeros != to->zeros)
      return false;
  Raiser raiser(graph, node, node->provenance);
  CDL_ASSIGN(Value * zero, raiser.constant(isByteWide ? Elem::i8_ : Elem::i16_, {}, {0}));
  CDL_ASSIGN(Value * stored,
             raiser.add(OpKind::Quantize, {node->operand(0), node->operand(1), zero}));
  for (Node* user : users) {
    CDL_ASSIGN(const Node* real, graph.addNode(OpKind::Dequantize, {stored, user->operand(1)}, {},
                                               user->provenance, user));
    replaceWithNew(graph, user, real->result());
  }
  const std::string name = node->result()->name;
  graph.erase(node);
  graph.rename(stored, name);
  return true;
}

Result<bool> raise(Graph& graph, Node* node) {
  if (node->kind == OpKind::Quantize) return raiseQuantize(graph, node);
  if (isProduct(node->kind)) return raiseProduct(graph, node);
  if (node->kind == OpKind::Add) return raiseBias(graph, node);
  if (isMovement(*node)) return sinkDequantize(graph, node);
  return false;
}

} // namespace

Result<int> raiseQuantized(Graph& graph) {
  int made = 0;
  std::vector<Node*> quantizes = graph.snapshot(); // what reads them is erased
  std::erase_if(quantizes, [](const Node* node) { return node->kind != OpKind::Quantize; });
  for (Node* node : quantizes) {
    CDL_ASSIGN(const bool isSigned, makeSigned(graph, node));
    made += isSigned;
  }
  CDL_ASSIGN(const int raised, onEachNode(graph, raise));
  return made + raised;
}

std::string integerNote(const Node& node) {
  switch (node.kind) {
  case OpKind::ConvInteger:
  case OpKind::MatmulInteger:
  case OpKind::SoftmaxInteger:
  case OpKind::LayerNormInteger:
  case OpKind::RmsNormInteger:
  case OpKind::Rescale:
  case OpKind::Table: return "runs as integers";
  case OpKind::Constant:
  case OpKind::Quantize:
  case OpKind::Dequantize: return "";
  default: break;
  }
  const bool quantized =
      std::ranges::any_of(node.operands(), [](const Value* v) { return realOf(v).has_value(); });
  if (!quantized || isMovement(node)) return "";
  std::string why = fmt::format("{} of these operands has no integer form", opName(node.kind));
  if (isProduct(node.kind)) productOf(nullptr, node, why);
  if (!isProduct(node.kind) && !feedsQuantize(node.result())) why = "its result is not quantized";
  return "dequantized because " + why;
}

} // namespace candela::graph::passes
