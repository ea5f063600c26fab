#include <cmath>

#include "core/compiler/import/operators/heads.h"

/// Attention of heads, whatever form they come in: one `attention` op where nothing stands between
/// its steps, else those steps; and rotary embeddings.
namespace candela::import {
namespace {

Heads readHeads(NodeContext& context) {
  const auto qHeads = need(context.maybe<int64_t>("q_num_heads")),
             kvHeads = need(context.maybe<int64_t>("kv_num_heads"));
  const int64_t rank = termOf(context, 0).rank();
  for (const size_t i : {1, 2})
    if (termOf(context, i).rank() != rank)
      need(badModel("Q has rank {} but {} is {}", rank, i == 1 ? "K" : "V",
                    termOf(context, i).text()));
  Heads all{splitHeads(termOf(context, 0), "Q", qHeads),
            splitHeads(termOf(context, 1), "K", kvHeads),
            splitHeads(termOf(context, 2), "V", kvHeads)};
  all.check();
  const auto& [q, k, v, past] = all;
  if (!context.input(4) != !context.input(5)) need(badModel("past_key and past_value go together"));
  if (!context.input(4)) return all;
  if (context.input(6)) need(badModel("nonpad_kv_seqlen does not go with past_key"));
  const Term keys = termOf(context, 4), values = termOf(context, 5);
  const int64_t length = keys.rank() == 4 ? keys.dim(2) : 0;
  if (keys.shape() != Shape{k.dim(0), k.dim(1), length, k.dim(3)} ||
      values.shape() != Shape{v.dim(0), v.dim(1), length, v.dim(3)})
    need(badModel("past {} and {} do not fit keys {} and values {}", keys.text(), values.text(),
                  k.text(), v.text()));
  return {q, concat({keys, k}, 2), concat({values, v}, 2), length};
}

/// attn_mask in four dims, with what it leaves out at the end of the keys masked.
Term readMask(const NodeContext& context, const Heads& all) {
  Term mask = termOf(context, 3);
  const Shape scores{all.batch(), all.heads(), all.queries(), all.keys()};
  if (mask.rank() < 1 || mask.rank() > 4 || mask.dim(-1) > all.keys())
    need(badModel("attn_mask {} does not fit scores of shape {}", mask.text(), shapeText(scores)));
  Shape dims(4 - mask.rank(), 1), given = mask.shape();
  dims.insert(dims.end(), given.begin(), given.end());
  for (const int i : {0, 1, 2})
    if (dims[i] != 1 && dims[i] != scores[i])
      need(
          badModel("attn_mask {} does not fit scores of shape {}", mask.text(), shapeText(scores)));
  if (mask.elem() != Elem::bool_) mask = mask.cast(all.q.elem());
  const double rest = mask.elem() == Elem::bool_ ? 0 : -kInfinity;
  return mask.reshape(dims).pad({0, 0, 0, 0}, {0, 0, 0, all.keys() - dims[3]}, rest);
}

/// How many keys to the left and to the right of its own place a query sees; -1: all.
std::array<int64_t, 2> readWindow(NodeContext& context) {
  const bool causal = need(context.flagAttr("is_causal", false));
  std::array<int64_t, 2> window = {-1, -1};
  if (context.opset >= 25)
    for (const int side : {0, 1}) {
      const char* name = side ? "right_window_size" : "left_window_size";
      window[side] = attrOf<int64_t>(context, name, -1);
      if (window[side] < -1) need(badModel("{} is {}, expected at least -1", name, window[side]));
    }
  if (causal) window[1] = 0;
  return window;
}

Bias readBias(NodeContext& context, const Heads& all) {
  const std::array<int64_t, 2> window = readWindow(context);
  Builder& build = context.build;
  const int64_t queries = all.queries(), keys = all.keys();
  if (queries > INT32_MAX / 4 || keys > INT32_MAX / 4)
    need(failure(Code::unsupported, "{} queries of {} keys are more than places of 32 bits",
                 queries, keys));
  std::optional<Term> allowed;
  const auto allowOnly = [&](const Term& more) {
    allowed = allowed ? logicalAnd(*allowed, more) : more;
  };
  const Term key = iota(build, keys, Elem::i32_).reshape({1, 1, 1, keys});
  Term place = iota(build, queries, Elem::i32_).reshape({1, 1, queries, 1});
  Bias bias{{}, keys == 0};
  if (context.input(6)) {
    if (context.opset < 24)
      need(badModel("input 'nonpad_kv_seqlen' needs opset 24, the model has {}", context.opset));
    const Term given = termOf(context, 6);
    if (given.elem() != Elem::i64_ || given.shape() != Shape{all.batch()})
      need(badModel("nonpad_kv_seqlen is {}, expected one i64 for each of {}", given.text(),
                    all.batch()));
    const Term count = min(max(given, 0), static_cast<double>(keys))
                           .cast(Elem::i32_)
                           .reshape({all.batch(), 1, 1, 1});
    allowOnly(less(key, count));
    place = place + (count - static_cast<double>(queries));
    bias.mayMaskRows = true;
  } else if (all.past > 0) {
    place = place + static_cast<double>(all.past);
  }
  // A window wider than all places limits nothing.
  const int64_t farthest = queries + keys + all.past;
  if (window[0] >= 0 && window[0] < farthest) {
    allowOnly(less(place - static_cast<double>(window[0] + 1), key));
    bias.mayMaskRows |= all.past + queries - 1 - window[0] > keys - 1;
  }
  if (window[1] >= 0 && window[1] < farthest)
    allowOnly(less(key, place + static_cast<double>(window[1] + 1)));
  std::optional<Term> added;
  if (context.input(3)) {
    const Term mask = readMask(context, all);
    bias.mayMaskRows = true;
    if (mask.elem() == Elem::bool_)
      allowOnly(mask);
    else
      added = mask;
  }
  const Term zero = all.q.number(0), masked = all.q.number(-kInfinity);
  if (allowed)
    bias.values = select(*allowed, added.value_or(zero), masked);
  else
    bias.values = added;
  return bias;
}

Elem readPrecision(NodeContext& context, Elem otherwise) {
  const auto code = need(context.maybe<int64_t>("softmax_precision"));
  if (!code) return otherwise;
  const auto elem =
      *code >= 0 && *code <= 99 ? elemFromOnnx(static_cast<int>(*code)) : std::nullopt;
  if (!elem || !isFloat(*elem) || isStorageOnly(*elem))
    need(badModel("softmax_precision {} is no float type", *code));
  return *elem;
}

Status importAttention(NodeContext& context) {
  const Heads all = readHeads(context);
  Weighting weighting;
  weighting.precision = readPrecision(context, all.q.elem());
  weighting.softcap = attrOf<float>(context, "softcap", 0.0f);
  if (!(weighting.softcap >= 0))
    return badModel("softcap is {}, expected at least 0", weighting.softcap);
  const int64_t mode = attrOf<int64_t>(context, "qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) return badModel("qk_matmul_output_mode is {}, expected 0 to 3", mode);
  if (context.wants(3)) weighting.stage = mode;
  const auto scale = need(context.maybe<float>("scale"));
  weighting.scale =
      scale ? *scale : 1 / std::sqrt(std::max<double>(1, static_cast<double>(all.q.dim(3))));
  weighting.bias = readBias(context, all);
  const Attended attended = attend(all, weighting);
  if (attended.stage) context.set(3, attended.stage->value());
  context.set(1, all.k.value());
  context.set(2, all.v.value());
  return context.set(context.input(0)->type.rank() == 3 ? joinHeads(attended.y) : attended.y);
}

/// Pairs of elements (halves of a head, or neighbours) turned by angles whose cosines and sines are
/// given for each place.
Status importRotaryEmbedding(NodeContext& context) {
  const bool interleaved = need(context.flagAttr("interleaved", false));
  const int64_t given = attrOf<int64_t>(context, "rotary_embedding_dim", 0);
  const int64_t count = attrOf<int64_t>(context, "num_heads", 0);
  const Term input = termOf(context, 0);
  const Term x = splitHeads(input, "X", count == 0 ? std::nullopt : std::optional(count));
  const int64_t size = given == 0 ? x.dim(3) : given;
  if (size < 0 || size > x.dim(3) || size % 2 != 0)
    return badModel("{} elements of heads of {} do not turn in pairs", size, x.dim(3));

  const Shape wanted{x.dim(0), x.dim(2), size / 2};
  const auto angles = [&](size_t i, const char* name) {
    Term table = termOf(context, i);
    if (table.elem() != x.elem()) need(badModel("{} is {}, X {}", name, table.text(), x.text()));
    if (context.input(3)) {
      const Term places = termOf(context, 3);
      if (table.rank() != 2)
        need(badModel("{} is {}, expected rank 2 beside position_ids", name, table.text()));
      if (places.shape() != Shape{x.dim(0), x.dim(2)})
        need(badModel("position_ids are {}, expected {}", places.text(),
                      shapeText(Shape{x.dim(0), x.dim(2)})));
      table = make(OpKind::Gather, {table, places}, {{"axis", int64_t(0)}});
    }
    if (table.shape() != wanted)
      need(badModel("{} gives {}, expected {}", name, table.text(), shapeText(wanted)));
    return table.unsqueeze(1);
  };
  const Term cosine = angles(1, "cos_cache"), sine = angles(2, "sin_cache");
  const Term y = turned(x, cosine, sine, interleaved);
  return context.set(input.rank() == 3 ? joinHeads(y) : y);
}

constexpr Operator kAttentionOperators[] = {
    {"Attention", 3, 7, 4, importAttention},
    {"RotaryEmbedding", 3, 4, 1, importRotaryEmbedding},
};

} // namespace

std::span<const Operator> attentionOperators() { return kAttentionOperators; }

} // namespace candela::import
