#include <algorithm>
#include <numeric>

#include "core/compiler/import/operators/heads.h"
#include "core/compiler/import/operators/storage.h"

/// Blocks of transformers that the domain com.microsoft has operators for: sums with what was
/// skipped, normalized; embeddings; and products with weights of few bits.
namespace candela::import {
namespace {

/// What is normalized is the sum of input, skip (which may lack the batch) and bias, rounded once
/// where it is a result.
template <OpKind kind> Status importSkipNorm(NodeContext& context) {
  needBounded(context);
  constexpr bool hasBeta = kind == OpKind::LayerNorm;
  const Term x = termOf(context, 0), skip = termOf(context, 1);
  const double epsilon = attrOf<float>(context, "epsilon", hasBeta ? 1e-5f : 1e-6f);
  if (!isFloat(x.elem()) || x.rank() < 2 || x.rank() > 3)
    return badModel("input is {}, expected floats of rank 2 or 3", x.text());
  const Shape row{x.dim(-1)}, each{x.dim(-2), x.dim(-1)};
  Shape one = x.shape();
  one[0] = 1;
  if (skip.elem() != x.elem() ||
      (skip.shape() != x.shape() && skip.shape() != each && skip.shape() != one))
    return badModel("skip {} does not fit input {}", skip.text(), x.text());
  const auto vector = [&](size_t input, const char* name) {
    const Term given = termOf(context, input);
    if (given.shape() != row || given.elem() != x.elem())
      need(badModel("{} is {}, expected {} of {}", name, given.text(), shapeText(row),
                    elemName(x.elem())));
    return widened(given);
  };
  Term sum = widened(x) + widened(skip);
  const size_t biasInput = hasBeta ? 4 : 3;
  if (context.input(biasInput)) sum = sum + vector(biasInput, "bias");
  if (context.wants(3)) context.set(3, sum.cast(x.elem()).value());
  std::vector<Term> operands{sum, vector(2, "gamma")};
  if (hasBeta && context.input(3)) operands.push_back(vector(3, "beta"));
  return context.set(
      make(kind, operands, {{"axis", int64_t(-1)}, {"epsilon", epsilon}}).cast(x.elem()));
}

/// RMSNormalization as it is called in exports that are older than the standard's.
Status importSimplifiedLayerNormalization(NodeContext& context) {
  needBounded(context);
  const Term x = termOf(context, 0), scale = termOf(context, 1);
  const int64_t axis = need(resolveAxis(attrOf<int64_t>(context, "axis", -1), x.rank()));
  const double epsilon = attrOf<float>(context, "epsilon", 1e-5f);
  if (attrOf<int64_t>(context, "stash_type", 1) != 1)
    return failure(Code::unsupported, "a stash_type that is not 1");
  const Shape shape = x.shape(), tail(shape.begin() + axis, shape.end());
  if (scale.shape() != tail || !isFloat(scale.elem()))
    return badModel("scale is {}, expected {}", scale.text(), shapeText(tail));
  const Elem inner = x.elem() == Elem::f64_ || scale.elem() == Elem::f64_ ? Elem::f64_ : Elem::f32_;
  const Term y = make(OpKind::RmsNorm, {x.cast(inner), scale.cast(inner)},
                      {{"axis", axis}, {"epsilon", epsilon}});
  return context.set(y.cast(scale.elem()));
}

/// Rows of a table at places of any shape.
Term rowsAt(const NodeContext& context, size_t table, const char* name, const Term& at,
            int64_t width) {
  const Term rows = termOf(context, table);
  if (rows.rank() != 2 || rows.dim(0) < 1 || (width >= 0 && rows.dim(1) != width) ||
      !isFloat(rows.elem()))
    need(badModel("{} is {}, expected rows of {}", name, rows.text(), width));
  if (!isInteger(at.elem())) need(badModel("places in {} are {}", name, at.text()));
  return widened(make(OpKind::Gather, {rows, at}, {{"axis", int64_t(0)}}));
}

/// Words, places and segments looked up and added, then normalized. The second result counts the
/// words that a mask leaves in each batch.
Status importEmbedLayerNormalization(NodeContext& context) {
  needInputs(context, {2, 3, 5, 6});
  needBounded(context);
  const Term words = termOf(context, 0);
  const double epsilon = attrOf<float>(context, "epsilon", 1e-12f);
  need(context.maybe<int64_t>("mask_index_type"));
  if (words.rank() != 2) return badModel("input_ids are {}, expected rank 2", words.text());
  const int64_t batch = words.dim(0), count = words.dim(1);
  Term sum = rowsAt(context, 2, "word_embedding", words, -1);
  const int64_t width = sum.dim(2);
  const Elem elem = termOf(context, 2).elem();
  Term at = iota(context.build, count, Elem::i32_).reshape({1, count});
  if (context.input(8)) {
    at = termOf(context, 8);
    if (at.shape() != Shape{batch, count} && at.shape() != Shape{1, count})
      return badModel("position_ids are {} beside input_ids {}", at.text(), words.text());
  } else if (termOf(context, 3).rank() == 2 && termOf(context, 3).dim(0) < count) {
    return badModel("position_embedding {} has no rows for {} places", termOf(context, 3).text(),
                    count);
  }
  sum = sum + rowsAt(context, 3, "position_embedding", at, width);
  if (!context.input(1) != !context.input(4))
    return badModel("segment_ids and segment_embedding go together");
  if (context.input(1)) {
    const Term segments = termOf(context, 1);
    if (segments.shape() != words.shape())
      return badModel("segment_ids are {} beside input_ids {}", segments.text(), words.text());
    sum = sum + rowsAt(context, 4, "segment_embedding", segments, width);
  }
  const auto vector = [&](size_t input, const char* name) {
    const Term given = termOf(context, input);
    if (given.shape() != Shape{width} || given.elem() != elem)
      need(badModel("{} is {}, expected {} of {}", name, given.text(), width, elemName(elem)));
    return widened(given);
  };
  if (context.wants(1)) {
    Term kept = full(context.build, 0, {batch}, Elem::i32_);
    if (context.input(7)) {
      const Term mask = termOf(context, 7);
      if (mask.shape() != words.shape() || !isInteger(mask.elem()))
        return badModel("mask is {} beside input_ids {}", mask.text(), words.text());
      kept = reduce(OpKind::ReduceSum, equal(mask, 1).cast(Elem::i32_), {1}, false);
    }
    context.set(1, kept.value());
  }
  if (context.wants(2)) context.set(2, sum.cast(elem).value());
  const std::vector<Term> operands{sum, vector(5, "gamma"), vector(6, "beta")};
  return context.set(
      make(OpKind::LayerNorm, operands, {{"axis", int64_t(-1)}, {"epsilon", epsilon}}).cast(elem));
}

/// How MatMulNBits stores weights[n, k]: in few bits, in blocks along k.
struct BlockedWeights {
  int64_t bits, block, rows, depth;
  bool roundsActivations; ///< to i8, as accuracy level 4 allows

  int64_t blocks() const { return (depth + block - 1) / block; }
  int64_t blobBytes() const { return block * bits / 8; }
  Shape grid() const { return {rows, blocks()}; }
  /// The number that stands for 0 where no zero point is given.
  int64_t middle() const { return int64_t(1) << (bits - 1); }
};

BlockedWeights readBlockedWeights(NodeContext& context) {
  const int64_t bits = attrOf<int64_t>(context, "bits", 4),
                block = attrOf<int64_t>(context, "block_size", 0);
  const int64_t rows = attrOf<int64_t>(context, "N", 0), depth = attrOf<int64_t>(context, "K", 0);
  if (bits != 2 && bits != 3 && bits != 4 && bits != 8)
    need(failure(Code::unsupported, "bits is {}, expected 2, 3, 4 or 8", bits));
  if (block < 16 || block > (1 << 20) || (block & (block - 1)))
    need(badModel("block_size is {}, expected a power of two from 16 on", block));
  if (rows < 1 || rows > INT32_MAX || depth < 1 || depth > INT32_MAX)
    need(badModel("N is {} and K {}", rows, depth));
  const int64_t level = attrOf<int64_t>(context, "accuracy_level", 0);
  if (level < 0 || level > 4) need(badModel("accuracy_level is {}, expected 0 to 4", level));
  if (attrOf<int64_t>(context, "weight_prepacked", 0) != 0)
    need(failure(Code::unsupported,
                 "attribute 'weight_prepacked': weights in the form of another device"));
  return {bits, block, rows, depth, level == 4};
}

/// The place in k of each column that the product is to have, where `g_idx` names the block of each
/// k: sorted by block, so that blocks lie together.
std::vector<int64_t> sortedByBlock(const Tensor& given, const BlockedWeights& form) {
  const std::vector<int64_t> blockOf = given.toInts();
  std::vector<int64_t> order(blockOf.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int64_t k) { return blockOf[static_cast<size_t>(k)]; });
  for (int64_t j = 0; j < form.depth; ++j)
    if (const int64_t k = order[static_cast<size_t>(j)];
        blockOf[static_cast<size_t>(k)] != j / form.block)
      need(failure(Code::unsupported, "g_idx: block {} has not {} columns", j / form.block,
                   form.block));
  return order;
}

/// Number `i` of those that lie bit by bit behind each other.
uint64_t bitsAt(const std::byte* bytes, int64_t i, int64_t bits) {
  uint64_t value = 0;
  for (int64_t bit = i * bits; bit < (i + 1) * bits; ++bit)
    value |= (std::to_integer<uint64_t>(bytes[bit / 8]) >> (bit % 8) & 1) << (bit - i * bits);
  return value;
}

/// Constant weights [N,G,S] of the type that holds their bits; without zero points signed ones,
/// around 0. `order`: the place in k of each column; empty: as they are.
Tensor packedWeights(const Tensor& stored, const BlockedWeights& form, bool isSigned,
                     const std::vector<int64_t>& order) {
  const auto typeOf = [&](Elem two, Elem four, Elem eight) {
    if (form.bits == 2) return two;
    return form.bits == 8 ? eight : four;
  };
  const Elem elem =
      isSigned ? typeOf(Elem::i2_, Elem::i4_, Elem::i8_) : typeOf(Elem::u2_, Elem::u4_, Elem::u8_);
  const auto flip = static_cast<uint64_t>(isSigned ? form.middle() : 0);
  Tensor packed = need(Tensor::zeros(elem, {form.rows, form.blocks(), form.block}));
  std::byte* out = packed.bytes.mutableData();
  if (order.empty() && form.bits != 3) { // the same bits, but for their signs
    uint64_t mask = 0;
    for (int64_t at = 0; at < 8; at += form.bits) mask |= flip << at;
    const std::byte* in = stored.bytes.data();
    for (uint64_t i = 0, bytes = packed.sizeBytes(); i < bytes; ++i)
      out[i] = in[i] ^ static_cast<std::byte>(mask);
    return packed;
  }
  const int64_t held = form.blocks() * form.block;
  const int64_t rowBytes = form.blocks() * form.blobBytes();
  for (int64_t n = 0; n < form.rows; ++n)
    for (int64_t k = 0; k < held; ++k) {
      const bool isMoved = !order.empty() && k < form.depth;
      const int64_t from = isMoved ? order[static_cast<size_t>(k)] : k;
      const uint64_t bits = bitsAt(stored.bytes.data() + n * rowBytes, from, form.bits);
      // Of 3 bits around 0 the sign goes on to the left.
      const uint64_t wide = isSigned && form.bits == 3 ? bits - flip : bits ^ flip;
      storeElement(elem, out, n * held + k, wide & elemMask(elem));
    }
  return packed;
}

/// Scales or zero points, one for each block.
Term perBlock(const Term& given, const BlockedWeights& form, const char* name) {
  if (given.shape() != form.grid() && given.shape() != Shape{form.rows * form.blocks()})
    need(badModel("{} is {}, expected {}", name, given.text(), shapeText(form.grid())));
  return given.reshape(form.grid());
}

/// Zero points in bytes, which are packed in whole bytes for each row.
Term zeroPoints(const Term& given, const BlockedWeights& form) {
  const int64_t bytes = (form.blocks() * form.bits + 7) / 8;
  if (given.elem() != Elem::u8_ ||
      (given.shape() != Shape{form.rows, bytes} && given.shape() != Shape{form.rows * bytes}))
    need(badModel("zero_points are {}, expected {} of u8", given.text(),
                  shapeText(Shape{form.rows, bytes})));
  if (!given.value()->isConstant()) {
    if (form.bits == 3) need(failure(Code::unsupported, "zero_points of 3 bits are no constant"));
    return unpackedBits(given.reshape({form.rows, bytes}), form.bits).slice(1, 0, form.blocks());
  }
  const Tensor packed = need(given.value()->tensor());
  Tensor zeros = need(Tensor::zeros(Elem::u8_, form.grid()));
  for (int64_t n = 0; n < form.rows; ++n)
    for (int64_t g = 0; g < form.blocks(); ++g)
      zeros.mutableAs<uint8_t>()[n * form.blocks() + g] =
          static_cast<uint8_t>(bitsAt(packed.bytes.data() + n * bytes, g, form.bits));
  return {given.build(), given.build().constant(std::move(zeros))};
}

/// Weights of a run, in bytes.
Term weightsOfRun(const Term& b, const BlockedWeights& form) {
  if (form.bits == 3) need(failure(Code::unsupported, "B of 3 bits is no constant"));
  return unpackedBits(b.reshape({form.rows, form.blocks() * form.blobBytes()}), form.bits)
      .reshape({form.rows, form.blocks(), form.block});
}

/// What stands for 0 where no zero point is given and the weights are unsigned.
Term middle(Builder& build, const BlockedWeights& form) {
  return {build, build.constant(Payload::splat(Elem::u8_, 1, static_cast<uint64_t>(form.middle())),
                                {1, 1})};
}

/// a with its columns in another order.
Term reordered(NodeContext& context, const Term& a, const std::vector<int64_t>& order) {
  const Term places = constant(context.build, order, {static_cast<int64_t>(order.size())});
  return make(OpKind::Gather, {a, places}, {{"axis", int64_t(-1)}});
}

/// a . (weights - zero) * scale of weights[n, k] in blocks along k: one op of the Graph. Accuracy
/// level 4 allows to round a to i8, block by block.
Status importMatMulNBits(NodeContext& context) {
  needBounded(context);
  const BlockedWeights form = readBlockedWeights(context);
  Term a = termOf(context, 0);
  const Term b = termOf(context, 1);
  const Shape stored{form.rows, form.blocks(), form.blobBytes()};
  if (a.rank() < 1 || a.dim(-1) != form.depth || !isFloat(a.elem()) || a.elem() == Elem::f64_)
    return badModel("A is {}, expected floats with K = {} last", a.text(), form.depth);
  if (b.elem() != Elem::u8_ || b.shape() != stored)
    return badModel("B is {}, expected {} of u8", b.text(), shapeText(stored));
  const Term scales = perBlock(termOf(context, 2), form, "scales");
  if (!isFloat(scales.elem()) || scales.elem() == Elem::f64_)
    return badModel("scales are {}", scales.text());
  const bool isConstant = b.value()->isConstant();
  std::vector<int64_t> order;
  if (context.input(4)) {
    const Term places = termOf(context, 4);
    if (!places.value()->isConstant() || !isConstant)
      return failure(Code::unsupported, "input 'g_idx' or B is no constant");
    if (places.elem() != Elem::i32_ || places.shape() != Shape{form.depth})
      return badModel("g_idx is {}, expected {} of i32", places.text(), form.depth);
    order = sortedByBlock(need(places.value()->tensor()), form);
    a = reordered(context, a, order);
  }
  std::optional<Term> zero;
  if (context.input(3)) {
    const Term given = termOf(context, 3);
    zero = isFloat(given.elem()) ? perBlock(given, form, "zero_points").cast(a.elem())
                                 : zeroPoints(given, form);
  } else if (!isConstant) {
    zero = middle(context.build, form);
  }
  const Term weights =
      isConstant ? Term(context.build, context.build.constant(packedWeights(
                                           need(b.value()->tensor()), form, !zero, order)))
                 : weightsOfRun(b, form);
  Shape shape = a.shape();
  std::vector<Term> operands{a.reshape({a.count() / form.depth, form.depth}), weights, scales};
  if (zero) operands.push_back(*zero);
  const bool isDynamic = form.roundsActivations && !(zero && isFloat(zero->elem()));
  Term y = make(OpKind::ScaledMatmul, operands,
                {{"to", a.elem()}, {"fn", std::string(isDynamic ? "dynamic" : "exact")}});
  shape.back() = form.rows;
  y = y.reshape(shape);
  if (context.input(5)) {
    const Term bias = termOf(context, 5);
    if (bias.shape() != Shape{form.rows} || bias.elem() != a.elem())
      return badModel("bias is {}, expected {} of {}", bias.text(), form.rows, elemName(a.elem()));
    y = y + bias;
  }
  return context.set(y);
}

constexpr Operator kMicrosoftBlocksOperators[] = {
    {"SimplifiedLayerNormalization", 2, 2, 1, importSimplifiedLayerNormalization},
    {"com.microsoft.EmbedLayerNormalization", 1, 9, 3, importEmbedLayerNormalization},
    {"com.microsoft.MatMulNBits", 3, 6, 1, importMatMulNBits},
    {"com.microsoft.SkipLayerNormalization", 3, 5, 4, importSkipNorm<OpKind::LayerNorm>},
    {"com.microsoft.SkipSimplifiedLayerNormalization", 3, 4, 4, importSkipNorm<OpKind::RmsNorm>},
};

} // namespace

std::span<const Operator> microsoft_blocksOperators() { return kMicrosoftBlocksOperators; }

} // namespace candela::import
