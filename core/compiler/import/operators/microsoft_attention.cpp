#include <cmath>

#include "core/compiler/import/operators/heads.h"

/// Attention of the domain com.microsoft: projections merged or apart, packed or not, with caches
/// that grow or that have one size and are filled at a place that is known at run time only.
namespace candela::import {
namespace {

constexpr int64_t kMostPlaces = INT32_MAX / 4; ///< so that sums of places stay in i32
constexpr double kLowest = std::numeric_limits<float>::lowest();

int64_t headsAttr(NodeContext& context, const char* name) {
  const int64_t heads = attrOf<int64_t>(context, name, 0);
  if (heads < 1 || heads > kMostPlaces)
    need(badModel("{} is {}, expected at least 1", name, heads));
  return heads;
}

double scaleAttr(NodeContext& context, int64_t size) {
  const double scale = attrOf<float>(context, "scale", 0.0f);
  return scale != 0 ? scale : 1 / std::sqrt(std::max<double>(1, static_cast<double>(size)));
}

void needPlaces(int64_t queries, int64_t keys) {
  if (queries > kMostPlaces || keys > kMostPlaces)
    need(failure(Code::unsupported, "{} queries of {} keys are more than places of 32 bits",
                 queries, keys));
}

/// 0, 1, ... along one of four dims.
Term places(Builder& build, int64_t count, int axis) {
  Shape shape(4, 1);
  shape[axis] = count;
  return iota(build, count, Elem::i32_).reshape(shape);
}

/// A cache [batch, heads, capacity, size] with the new rows in it from place first[batch, 1, 1] on,
/// which is inside.
Term written(const Term& cache, const Term& rows, const Term& first) {
  const int64_t batch = cache.dim(0), heads = cache.dim(1), capacity = cache.dim(2),
                size = cache.dim(3);
  if (rows.count() == 0 || cache.count() == 0) return cache;
  const Elem elem = batch * heads * capacity <= INT32_MAX ? Elem::i32_ : Elem::i64_;
  Builder& build = cache.build();
  const Term line = Term(
      build, build.constant(Payload::iota(elem, batch * heads, 0, capacity), {batch, heads, 1}));
  const Term index =
      line + first.cast(elem) + iota(build, rows.dim(2), elem).reshape({1, 1, rows.dim(2)});
  const int64_t count = batch * heads * rows.dim(2);
  return make(OpKind::Put,
              {cache.reshape({1, batch * heads * capacity, size}), index.reshape({count}),
               rows.reshape({1, count, size})},
              {{"fn", std::string("set")}})
      .reshape(cache.shape());
}

/// Two caches that fit keys and values, which they stand before; nullopt where there are none.
std::optional<std::pair<Term, Term>> readPast(const NodeContext& context, size_t input,
                                              const Heads& all) {
  if (!context.input(input) != !context.input(input + 1))
    need(badModel("past_key and past_value go together"));
  if (!context.input(input)) return std::nullopt;
  const Term keys = termOf(context, input), values = termOf(context, input + 1);
  const int64_t length = keys.rank() == 4 ? keys.dim(2) : 0;
  if (keys.shape() != Shape{all.batch(), all.groups(), length, all.k.dim(3)} ||
      values.shape() != Shape{all.batch(), all.groups(), length, all.v.dim(3)} ||
      keys.elem() != all.k.elem() || values.elem() != all.v.elem())
    need(badModel("past {} and {} do not fit keys {} and values {}", keys.text(), values.text(),
                  all.k.text(), all.v.text()));
  return std::pair(keys, values);
}

/// Added to the scores as given; [batch or 1, heads or 1, queries, keys].
Term readAttentionBias(const NodeContext& context, size_t input, const Heads& all) {
  const Term bias = termOf(context, input);
  const bool fits = bias.rank() == 4 && (bias.dim(0) == 1 || bias.dim(0) == all.batch()) &&
                    (bias.dim(1) == 1 || bias.dim(1) == all.heads()) &&
                    bias.dim(2) == all.queries() && bias.dim(3) == all.keys();
  if (!fits || !isFloat(bias.elem()))
    need(badModel("attention_bias {} does not fit scores of shape {}", bias.text(),
                  shapeText(Shape{all.batch(), all.heads(), all.queries(), all.keys()})));
  return bias.cast(all.q.elem());
}

/// The mask of MultiHeadAttention and Attention: what it leaves out gets `filter` added, in four
/// dims. It has one number for each key, or for each of the queries and keys, or says where the
/// keys of each batch end (and where they begin).
Term readKeyMask(const NodeContext& context, size_t input, const Heads& all, double filter) {
  const Term mask = termOf(context, input);
  const int64_t batch = all.batch(), keys = all.keys();
  if (!isInteger(mask.elem())) need(badModel("the mask is {}, expected integers", mask.text()));
  const auto filtered = [&](const Term& kept) {
    return select(kept, all.q.number(0), all.q.number(filter));
  };
  if (mask.shape() == Shape{batch, keys})
    return filtered(less(0, mask)).reshape({batch, 1, 1, keys});
  if (mask.shape() == Shape{batch, all.queries(), keys})
    return filtered(less(0, mask)).reshape({batch, 1, all.queries(), keys});
  const bool begins = mask.shape() == Shape{2 * batch};
  if (!begins && mask.shape() != Shape{batch} && mask.shape() != Shape{3 * batch + 2})
    need(badModel("the mask {} fits neither {} batches nor scores of shape {}", mask.text(), batch,
                  shapeText(Shape{batch, all.heads(), all.queries(), keys})));
  const Term key = places(context.build, keys, 3);
  const auto limit = [&](int64_t first) {
    return saturated(mask, Elem::i32_).slice(0, first, batch).reshape({batch, 1, 1, 1});
  };
  Term kept = less(key, limit(0));
  if (begins) kept = logicalAnd(kept, logicalNot(less(key, limit(batch))));
  return filtered(kept);
}

/// In the type that scores and shares are made in, so that halves round once, at the end.
Elem widen(Heads& all) {
  const Elem elem = all.q.elem();
  for (Term* x : {&all.q, &all.k, &all.v}) *x = widened(*x);
  return elem;
}

/// What MultiHeadAttention and Attention have in common, from the heads on: y, and the scores where
/// they are wanted. The last query sees every key, as in the operators' own kernels.
void attendMasked(NodeContext& context, Heads all, size_t maskInput, size_t biasInput,
                  std::optional<Term> valid, int64_t scoresOutput) {
  needPlaces(all.queries(), all.keys());
  const Elem elem = widen(all);
  Weighting weighting;
  weighting.scale = scaleAttr(context, all.q.dim(3));
  const double filter = attrOf<float>(context, "mask_filter_value", -10000.0f);
  const bool causal = need(context.flagAttr("unidirectional", false));
  std::optional<Term> bias;
  if (context.input(maskInput)) bias = readKeyMask(context, maskInput, all, filter);
  const int64_t queries = all.queries(), keys = all.keys();
  if (causal && queries > 1) {
    const Term place = places(context.build, queries, 2), key = places(context.build, keys, 3);
    const Term seen = less(key, place + static_cast<double>(all.past + 1));
    const Term allowed = logicalOr(seen, equal(place, static_cast<double>(queries - 1)));
    bias = select(allowed, bias.value_or(all.q.number(0)), all.q.number(kLowest));
  }
  if (valid) bias = select(*valid, bias.value_or(all.q.number(0)), all.q.number(-kInfinity));
  if (context.input(biasInput)) {
    const Term given = readAttentionBias(context, biasInput, all);
    bias = bias ? *bias + given : given;
  }
  weighting.bias.values = bias;
  if (scoresOutput >= 0 && context.wants(scoresOutput)) weighting.stage = 2;
  const Attended attended = attend(all, weighting);
  if (attended.stage) context.set(scoresOutput, attended.stage->cast(elem).value());
  context.set(0, joinHeads(attended.y).cast(elem).value());
}

/// Queries, keys and values apart, or packed side by side: [batch, places, heads, 2 or 3, size].
/// Keys and values in four dims are those of another sequence, projected already. A bias is that of
/// the projections.
Heads readMultiHeads(NodeContext& context, int64_t heads) {
  const Term query = termOf(context, 0);
  const auto piece = [&](const Term& packed, int64_t which) {
    return packed.slice(3, which, 1).squeeze(3).transpose({0, 2, 1, 3});
  };
  const auto needPacked = [&](const Term& packed, int64_t count, const char* name) {
    if (packed.rank() != 5 || packed.dim(2) != heads || packed.dim(3) != count)
      need(badModel("{} is {}, expected [batch,places,{},{},size] where nothing else is given",
                    name, packed.text(), heads, count));
  };
  const auto apart = [&](size_t input, const char* name) {
    const Term x = termOf(context, input);
    return splitHeads(x, name, heads);
  };
  if (!context.input(1) && context.input(2)) need(badModel("a value is given, but no key"));
  const bool packedAll = !context.input(1), packedPair = !packedAll && !context.input(2);
  if (packedAll) needPacked(query, 3, "query");
  if (packedPair) needPacked(termOf(context, 1), 2, "key");
  if (!packedAll && query.rank() != 3) need(badModel("query is {}, expected rank 3", query.text()));
  const auto readHeads = [&]() -> Heads {
    if (packedAll) return {piece(query, 0), piece(query, 1), piece(query, 2)};
    if (packedPair)
      return {apart(0, "query"), piece(termOf(context, 1), 0), piece(termOf(context, 1), 1)};
    return {apart(0, "query"), apart(1, "key"), apart(2, "value")};
  };
  Heads all = readHeads();
  all.check();
  if (all.groups() != heads) need(badModel("key has {} heads, expected {}", all.groups(), heads));
  if (!context.input(3)) return all;
  const Term bias = termOf(context, 3);
  const int64_t width = heads * all.q.dim(3), valueWidth = heads * all.v.dim(3);
  if (bias.shape() != Shape{2 * width + valueWidth} || bias.elem() != all.q.elem())
    need(badModel("bias {} does not fit heads of {}, {} and {}", bias.text(), width, width,
                  valueWidth));
  const auto add = [&](const Term& x, int64_t first) {
    return x + bias.slice(0, first, heads * x.dim(3)).reshape({1, heads, 1, x.dim(3)});
  };
  all.q = add(all.q, 0);
  const bool projected = !packedAll && !packedPair && termOf(context, 1).rank() == 4;
  if (projected) return all;
  all.k = add(all.k, width);
  all.v = add(all.v, 2 * width);
  return all;
}

Status importMultiHeadAttention(NodeContext& context) {
  needBounded(context);
  Heads all = readMultiHeads(context, headsAttr(context, "num_heads"));
  if (context.input(9))
    return failure(Code::unsupported,
                   "input 'cache_indirection' of a beam search is not supported");
  const auto past = readPast(context, 6, all);
  std::optional<Term> valid;
  Term presentKeys = all.k, presentValues = all.v;
  if (past && context.input(8)) {
    const Term given = termOf(context, 8);
    const int64_t capacity = past->first.dim(2), added = all.keys();
    if (!isInteger(given.elem()) || given.count() != 1 || added > capacity)
      return badModel("past_sequence_length {} and {} new places do not fit a cache of {}",
                      given.text(), added, capacity);
    needPlaces(all.queries(), capacity);
    const Term first =
        min(max(saturated(given, Elem::i32_), 0), static_cast<double>(capacity - added))
            .reshape({1, 1, 1});
    presentKeys = written(past->first, all.k, first);
    presentValues = written(past->second, all.v, first);
    all.k = presentKeys;
    all.v = presentValues;
    if (context.input(4) || context.input(5) || context.wants(3) ||
        need(context.flagAttr("unidirectional", false))) {
      // They have as many keys as are valid, so that this must be known.
      const int64_t known = (*need(context.knownInts(8, "past_sequence_length")))[0];
      if (known < 0 || known > capacity - added)
        return badModel("past_sequence_length is {}, expected 0 to {}", known, capacity - added);
      all.k = all.k.slice(2, 0, known + added);
      all.v = all.v.slice(2, 0, known + added);
      all.past = known;
    } else {
      valid = less(places(context.build, capacity, 3),
                   first.reshape({1, 1, 1, 1}) + static_cast<double>(added));
    }
  } else if (past) {
    all.past = past->first.dim(2);
    presentKeys = all.k = concat({past->first, all.k}, 2);
    presentValues = all.v = concat({past->second, all.v}, 2);
  }
  attendMasked(context, all, 4, 5, valid, 3);
  context.set(1, presentKeys.value());
  context.set(2, presentValues.value());
  return Status::ok();
}

/// With the projections of queries, keys and values merged into one product.
Status importMicrosoftAttention(NodeContext& context) {
  needBounded(context);
  const int64_t heads = headsAttr(context, "num_heads");
  for (const char* name : {"do_rotary", "past_present_share_buffer"})
    if (need(context.flagAttr(name, false)))
      return failure(Code::unsupported, "attribute '{}' is not supported", name);
  need(context.maybe<int64_t>("rotary_embedding_dim"));
  if (context.input(6))
    return failure(Code::unsupported, "input 'past_sequence_length' is not supported");
  const Term x = termOf(context, 0), weights = termOf(context, 1);
  if (x.rank() != 3 || weights.rank() != 2 || weights.dim(0) != x.dim(2))
    return badModel("input {} and weights {} do not multiply", x.text(), weights.text());
  const int64_t width = weights.dim(1);
  const auto sizes =
      attrOf<std::vector<int64_t>>(context, "qkv_hidden_sizes", {width / 3, width / 3, width / 3});
  for (const int64_t size : sizes)
    if (size < heads || size > width || size % heads != 0)
      return badModel("a width of {} does not split into {} heads", size, heads);
  if (sizes.size() != 3 || sizes[0] != sizes[1] || sizes[0] + sizes[1] + sizes[2] != width)
    return badModel("widths [{}] do not fit weights {}", fmt::join(sizes, ","), weights.text());
  Term all = matmul(x, weights);
  if (context.input(2)) {
    const Term bias = termOf(context, 2);
    if (bias.shape() != Shape{width})
      return badModel("bias {}, expected {} values", bias.text(), width);
    all = all + bias;
  }
  const auto part = [&](int64_t first, int64_t size, const char* name) {
    return splitHeads(all.slice(2, first, size), name, heads);
  };
  Heads apart{part(0, sizes[0], "query"), part(sizes[0], sizes[1], "key"),
              part(2 * sizes[0], sizes[2], "value")};
  apart.check();
  if (context.input(4)) {
    const Term past = termOf(context, 4);
    const int64_t length = past.rank() == 5 ? past.dim(3) : 0;
    if (past.shape() != Shape{2, apart.batch(), heads, length, apart.k.dim(3)} ||
        sizes[2] != sizes[0])
      return badModel("past {} does not fit keys {} and values {}", past.text(), apart.k.text(),
                      apart.v.text());
    apart.past = length;
    apart.k = concat({past.slice(0, 0, 1).squeeze(0), apart.k}, 2);
    apart.v = concat({past.slice(0, 1, 1).squeeze(0), apart.v}, 2);
  }
  if (context.wants(1)) {
    if (sizes[2] != sizes[0])
      return badModel("present holds keys of {} and values of {}", sizes[0], sizes[2]);
    context.set(1, concat({apart.k.unsqueeze(0), apart.v.unsqueeze(0)}, 0).value());
  }
  attendMasked(context, apart, 3, 5, {}, -1);
  return Status::ok();
}

/// Rows of a table of cosines or sines for places [batch or 1, sequence], before the heads.
Term anglesAt(const Term& table, const Term& at) {
  return make(OpKind::Gather, {table, at}, {{"axis", int64_t(0)}}).unsqueeze(1);
}

struct Angles {
  Term cosine, sine;
};

Angles readAngles(const NodeContext& context, size_t input, const Term& x, int64_t most) {
  const Term cosine = termOf(context, input), sine = termOf(context, input + 1);
  if (cosine.rank() != 2 || sine.shape() != cosine.shape() || cosine.elem() != x.elem() ||
      sine.elem() != x.elem() || cosine.dim(0) < 1 || cosine.dim(1) > most / 2)
    need(badModel("cos_cache {} and sin_cache {} do not turn heads of {} of {}", cosine.text(),
                  sine.text(), most, elemName(x.elem())));
  return {cosine, sine};
}

/// A head's first place for each batch, or every place.
Status importMicrosoftRotaryEmbedding(NodeContext& context) {
  needBounded(context);
  const bool interleaved = need(context.flagAttr("interleaved", false));
  need(context.flagAttr("is_packed_batching", false)); // a hint
  if (attrOf<float>(context, "scale", 1.0f) != 1)
    return failure(Code::unsupported, "attribute 'scale' is not 1, which no kernel on a CPU heeds");
  const int64_t given = attrOf<int64_t>(context, "num_heads", 0),
                size = attrOf<int64_t>(context, "rotary_embedding_dim", 0);
  const Term input = termOf(context, 0), at = termOf(context, 1);
  if (given < 0 || size < 0 || (size > 0 && given == 0 && input.rank() == 3))
    return badModel("rotary_embedding_dim {} goes with num_heads, which is {}", size, given);
  const int64_t pairs = termOf(context, 2).rank() == 2 ? termOf(context, 2).dim(1) : 0;
  if (pairs < 1 || pairs > kMostPlaces || (size > 0 && size != 2 * pairs))
    return badModel("cos_cache {} does not turn {} elements", termOf(context, 2).text(), size);
  std::optional<int64_t> heads;
  if (input.rank() == 3) heads = size > 0 ? given : input.dim(2) / (2 * pairs);
  const Term x = splitHeads(input, "input", heads);
  const Angles angles = readAngles(context, 2, x, x.dim(3));
  const int64_t batch = x.dim(0), count = x.dim(2);
  if (!isInteger(at.elem()) || (at.count() != 1 && at.shape() != Shape{batch, count}))
    return badModel("position_ids are {}, expected one or {}", at.text(),
                    shapeText(Shape{batch, count}));
  const Term place =
      at.shape() == Shape{batch, count}
          ? at
          : at.reshape({1, 1}) + iota(context.build, count, at.elem()).reshape({1, count});
  const Term cosine = widened(anglesAt(angles.cosine, place)),
             sine = widened(anglesAt(angles.sine, place));
  const Term y = turned(widened(x), cosine, sine, interleaved).cast(x.elem());
  return context.set(input.rank() == 3 ? joinHeads(y) : y);
}

Heads readGroupedHeads(NodeContext& context, int64_t heads, int64_t groups) {
  const Term query = termOf(context, 0);
  if (!context.input(1) != !context.input(2)) need(badModel("key and value go together"));
  if (heads % groups != 0)
    need(badModel("{} heads of queries are no multiple of {} heads of keys", heads, groups));
  if (query.rank() != 3) need(badModel("query is {}, expected rank 3", query.text()));
  if (context.input(1)) {
    Heads all{splitHeads(query, "query", heads), splitHeads(termOf(context, 1), "key", groups),
              splitHeads(termOf(context, 2), "value", groups)};
    all.check();
    return all;
  }
  const Term packed = splitHeads(query, "query", heads + 2 * groups);
  Heads all{packed.slice(1, 0, heads), packed.slice(1, heads, groups),
            packed.slice(1, heads + groups, groups)};
  all.check();
  return all;
}

/// What the CPU kernels do not do either, by name.
void needPlainCache(NodeContext& context) {
  for (const char* name : {"k_quant_type", "v_quant_type"})
    if (attrOf<std::string>(context, name, "NONE") != "NONE")
      need(failure(Code::unsupported, "attribute '{}': a quantized cache is not supported", name));
  for (const char* name : {"kv_cache_bit_width", "sliding_window_cache"})
    if (attrOf<int64_t>(context, name, 0) != 0)
      need(failure(Code::unsupported, "attribute '{}' is not supported", name));
  need(context.maybe<float>("qk_norm_epsilon"));
  constexpr const char* kInputs[] = {"k_scale", "v_scale", "q_norm_weight", "k_norm_weight"};
  for (size_t i = 0; i < std::size(kInputs); ++i)
    if (context.input(12 + i))
      need(failure(Code::unsupported, "input '{}' is not supported", kInputs[i]));
}

/// The keys and values that GroupQueryAttention keeps from one call to the next. A cache that is
/// larger than what it holds keeps its size, and new keys are written where the old ones of their
/// batch end.
struct GroupedCache {
  std::optional<std::pair<Term, Term>> past; ///< keys and values
  int64_t total = 0;                         ///< places that are attended to, at most
  int64_t kept = 0;                          ///< places of the old cache
  int64_t capacity = 0;                      ///< places of the new one
  bool isPrompt = false;                     ///< the first call: nothing is kept
  std::optional<Term> count;                 ///< places of each batch with the new ones
  std::optional<Term> first;                 ///< where the new places of each batch begin

  /// The cache with new rows; `before` is what it held.
  Term present(const Term& rows, const std::optional<Term>& before) const {
    const int64_t queries = rows.dim(2);
    if (isPrompt)
      return kept > queries ? concat({rows, before->slice(2, queries, kept - queries)}, 2) : rows;
    const Shape shape{rows.dim(0), rows.dim(1), capacity, rows.dim(3)};
    const Term cache = before ? before->pad({0, 0, 0, 0}, {0, 0, capacity - kept, 0})
                              : full(rows.build(), 0, shape, rows.elem());
    return written(cache, rows, first->reshape({rows.dim(0), 1, 1}));
  }
};

/// Reads seqlens_k, which says for each batch how many keys there are with the new ones, less 1,
/// and total_sequence_length, the most of them, which gives the size of a cache that grows: so it
/// must be known.
GroupedCache readGroupedCache(NodeContext& context, Heads& all) {
  const int64_t batch = all.batch(), queries = all.queries();
  GroupedCache cache;
  cache.past = readPast(context, 3, all);
  const Term lengths = termOf(context, 5);
  if (!isInteger(lengths.elem()) || lengths.count() != batch)
    need(badModel("seqlens_k are {}, expected one for each of {}", lengths.text(), batch));
  const auto totals = need(context.knownInts(6, "total_sequence_length"));
  if (totals->size() != 1) need(badModel("total_sequence_length has {} values", totals->size()));
  cache.total = (*totals)[0];
  if (cache.total < queries || cache.total > kMostPlaces)
    need(
        badModel("total_sequence_length is {}, but there are {} new places", cache.total, queries));
  cache.kept = cache.past ? cache.past->first.dim(2) : 0;
  cache.capacity = std::max(cache.kept, cache.total);
  needPlaces(queries, cache.capacity);
  cache.isPrompt = cache.total == queries;
  cache.count = min(max(saturated(lengths, Elem::i32_), static_cast<double>(queries - 1)),
                    static_cast<double>(cache.total - 1))
                    .reshape({batch, 1, 1, 1}) +
                1;
  cache.first = cache.isPrompt ? full(context.build, 0, {1, 1, 1, 1}, Elem::i32_)
                               : *cache.count - static_cast<double>(queries);
  return cache;
}

/// Turns queries and keys by the angles of their places, where the node asks for it.
Status addRotaryEmbedding(NodeContext& context, Heads& all, const Term& place, bool isPrompt) {
  const int64_t batch = all.batch(), queries = all.queries();
  const bool interleaved = need(context.flagAttr("rotary_interleaved", false));
  if (!need(context.flagAttr("do_rotary", false))) return Status::ok();
  if (!context.input(7) || !context.input(8))
    return badModel("do_rotary needs cos_cache and sin_cache");
  const Angles angles = readAngles(context, 7, all.q, all.q.dim(3));
  Term at = place.reshape({isPrompt ? 1 : batch, queries});
  if (context.input(9)) {
    const Term given = termOf(context, 9);
    if (!isInteger(given.elem()) || given.shape() != Shape{batch, queries})
      return badModel("position_ids are {}, expected {}", given.text(),
                      shapeText(Shape{batch, queries}));
    at =
        !isPrompt || given.count() == 0
            ? given
            : given.reshape({given.count()}).slice(0, 0, 1).reshape({1, 1}) + at.cast(given.elem());
  }
  const Term cosine = widened(anglesAt(angles.cosine, at)),
             sine = widened(anglesAt(angles.sine, at));
  for (Term* x : {&all.q, &all.k})
    *x = turned(widened(*x), cosine, sine, interleaved).cast(x->elem());
  return Status::ok();
}

/// A score more in each softmax: the one that is given for each head, or 0; nullopt: none.
std::optional<Term> readSink(NodeContext& context, const Heads& all) {
  const int64_t heads = all.heads();
  const bool smooth = need(context.flagAttr("smooth_softmax", false));
  if (context.input(11)) {
    const Term sink = termOf(context, 11);
    if (sink.shape() != Shape{heads})
      need(badModel("head_sink is {}, expected {} values", sink.text(), heads));
    return sink.cast(all.q.elem()).reshape({1, heads, 1, 1});
  }
  if (smooth) return full(context.build, 0, {1, heads, 1, 1}, all.q.elem());
  return std::nullopt;
}

Status importGroupQueryAttention(NodeContext& context) {
  needInputs(context, {5, 6});
  needBounded(context);
  needPlainCache(context);
  const int64_t heads = headsAttr(context, "num_heads"),
                groups = headsAttr(context, "kv_num_heads");
  Heads all = readGroupedHeads(context, heads, groups);
  const int64_t queries = all.queries();
  if (all.keys() != queries) return badModel("{} keys for {} queries", all.keys(), queries);
  const bool causal = need(context.flagAttr("causal", true));
  const int64_t window = attrOf<int64_t>(context, "local_window_size", -1);
  if (window < -1 || window == 0 || (window > 0 && !causal))
    return badModel("local_window_size is {} with causal {}", window, int(causal));
  Weighting weighting;
  weighting.scale = scaleAttr(context, all.q.dim(3));
  weighting.softcap = attrOf<float>(context, "softcap", 0.0f);
  if (!(weighting.softcap >= 0))
    return badModel("softcap is {}, expected at least 0", weighting.softcap);

  const GroupedCache cache = readGroupedCache(context, all);
  const Term place = *cache.first + places(context.build, queries, 2);
  CDL_TRY(addRotaryEmbedding(context, all, place, cache.isPrompt));
  std::optional<Term> oldKeys, oldValues;
  if (cache.past) std::tie(oldKeys, oldValues) = *cache.past;
  const Term keys = cache.present(all.k, oldKeys), values = cache.present(all.v, oldValues);
  context.set(1, keys.value());
  context.set(2, values.value());
  all.k = keys.slice(2, 0, cache.total);
  all.v = values.slice(2, 0, cache.total);

  const Elem elem = widen(all);
  const Term key = places(context.build, cache.total, 3);
  Term allowed = causal ? less(key, place + 1) : less(key, *cache.count);
  if (window > 0 && window < cache.total)
    allowed = logicalAnd(allowed, less(place - static_cast<double>(window), key));
  const Term added = context.input(10) ? readAttentionBias(context, 10, all) : all.q.number(0);
  weighting.bias.values = select(allowed, added, all.q.number(-kInfinity));
  weighting.sink = readSink(context, all);
  const int64_t scores = attrOf<int64_t>(context, "qk_output", 0);
  if (scores < 0 || scores > 2) return badModel("qk_output is {}, expected 0 to 2", scores);
  if (context.wants(3) && scores > 0) weighting.stage = scores + 1;
  const Attended attended = attend(all, weighting);
  if (attended.stage) context.set(3, select(allowed, *attended.stage, 0).cast(elem).value());
  return context.set(joinHeads(attended.y).cast(elem));
}

constexpr Operator kMicrosoftAttentionOperators[] = {
    {"com.microsoft.Attention", 2, 7, 2, importMicrosoftAttention},
    {"com.microsoft.GroupQueryAttention", 1, 16, 4, importGroupQueryAttention},
    {"com.microsoft.MultiHeadAttention", 1, 10, 4, importMultiHeadAttention},
    {"com.microsoft.RotaryEmbedding", 4, 4, 1, importMicrosoftRotaryEmbedding},
};

} // namespace

std::span<const Operator> microsoft_attentionOperators() { return kMicrosoftAttentionOperators; }

} // namespace candela::import
