#include "core/compiler/import/operators/heads.h"

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

/// Packed numbers [rows, bytes] as [rows, bytes * 8 / bits] of u8, the lowest bits first. Constants
/// of 4 bits are what our own packed type is, and stay it.
Term unpackedBits(const Term& packed, int64_t bits) {
  if (bits == 8) return packed;
  const int64_t each = 8 / bits;
  const Shape shape{packed.dim(0), packed.dim(1) * each};
  if (bits == 4 && packed.value()->isConstant()) {
    Tensor tensor = need(packed.value()->tensor());
    tensor.elem = Elem::u4_;
    tensor.dims = shape;
    return Term(packed.build(), packed.build().constant(std::move(tensor))).cast(Elem::u8_);
  }
  std::vector<Term> parts;
  for (int64_t i = 0; i < each; ++i) {
    const Term moved = i == 0 ? packed : shiftRight(packed, static_cast<double>(i * bits));
    parts.push_back(
        (i + 1 == each ? moved : bitAnd(moved, static_cast<double>((1 << bits) - 1))).unsqueeze(2));
  }
  return concat(parts, 2).reshape(shape);
}

/// How MatMulNBits stores weights[n, k]: in few bits, in blocks along k.
struct BlockedWeights {
  int64_t bits, block, rows, depth;
};

BlockedWeights readBlockedWeights(NodeContext& context) {
  const int64_t bits = attrOf<int64_t>(context, "bits", 4),
                block = attrOf<int64_t>(context, "block_size", 0);
  const int64_t rows = attrOf<int64_t>(context, "N", 0), depth = attrOf<int64_t>(context, "K", 0);
  if (bits != 2 && bits != 4 && bits != 8)
    need(failure(Code::unsupported, "bits is {}, expected 2, 4 or 8", bits));
  if (block < 16 || block > (1 << 20) || (block & (block - 1)))
    need(badModel("block_size is {}, expected a power of two from 16 on", block));
  if (rows < 1 || rows > INT32_MAX || depth < 1 || depth > INT32_MAX)
    need(badModel("N is {} and K {}", rows, depth));
  if (const int64_t level = attrOf<int64_t>(context, "accuracy_level", 0); level < 0 || level > 4)
    need(badModel("accuracy_level is {}, expected 0 to 4", level));
  if (attrOf<int64_t>(context, "weight_prepacked", 0) != 0)
    need(failure(Code::unsupported,
                 "attribute 'weight_prepacked': weights in the form of another device"));
  return {bits, block, rows, depth};
}

/// a . (weights - zero) * scale of weights[n, k] in blocks along k. They are stored in few bits,
/// each block's in whole bytes, zero points too unless they are floats.
Status importMatMulNBits(NodeContext& context) {
  needBounded(context);
  const auto [bits, block, rows, depth] = readBlockedWeights(context);
  if (context.input(4)) return failure(Code::unsupported, "input 'g_idx' is not supported");
  const Term a = termOf(context, 0), b = termOf(context, 1);
  const int64_t blocks = (depth + block - 1) / block, blob = block * bits / 8;
  if (a.rank() < 1 || a.dim(-1) != depth || !isFloat(a.elem()))
    return badModel("A is {}, expected floats with K = {} last", a.text(), depth);
  if (b.elem() != Elem::u8_ || b.shape() != Shape{rows, blocks, blob})
    return badModel("B is {}, expected {} of u8", b.text(), shapeText(Shape{rows, blocks, blob}));
  const Shape grid{rows, blocks}, line{rows * blocks};
  const auto perBlock = [&](const Term& given, const char* name) {
    if (given.shape() != grid && given.shape() != line)
      need(badModel("{} is {}, expected {}", name, given.text(), shapeText(grid)));
    return given.reshape({grid[0], grid[1], 1});
  };
  const Term scales = perBlock(termOf(context, 2), "scales");
  if (!isFloat(scales.elem())) return badModel("scales are {}", scales.text());
  const Elem inner = widened(scales).elem();
  const Term stored =
      unpackedBits(b.reshape({rows, blocks * blob}), bits).reshape({rows, blocks, block});
  Term centred = stored;
  if (context.input(3) && isFloat(termOf(context, 3).elem())) {
    centred = stored.cast(inner) - perBlock(termOf(context, 3), "zero_points").cast(inner);
  } else if (context.input(3)) {
    const Term given = termOf(context, 3);
    const int64_t bytes = (blocks * bits + 7) / 8;
    if (given.elem() != Elem::u8_ ||
        (given.shape() != Shape{rows, bytes} && given.shape() != Shape{rows * bytes}))
      return badModel("zero_points are {}, expected {} of u8", given.text(),
                      shapeText(Shape{rows, bytes}));
    const Term zero = unpackedBits(given.reshape({rows, bytes}), bits)
                          .slice(1, 0, blocks)
                          .reshape({rows, blocks, 1});
    centred = (stored.cast(Elem::i32_) - zero.cast(Elem::i32_)).cast(inner);
  } else {
    centred = (stored.cast(Elem::i32_) - static_cast<double>(1 << (bits - 1))).cast(inner);
  }
  const Term weights =
      (centred * scales.cast(inner)).reshape({rows, blocks * block}).slice(1, 0, depth);
  Term y = matmul(widened(a), weights.cast(widened(a).elem()).transpose({1, 0}));
  if (context.input(5)) {
    const Term bias = termOf(context, 5);
    if (bias.shape() != Shape{rows} || bias.elem() != a.elem())
      return badModel("bias is {}, expected {} of {}", bias.text(), rows, elemName(a.elem()));
    y = y + widened(bias);
  }
  return context.set(y.cast(a.elem()));
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
