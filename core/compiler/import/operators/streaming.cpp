#include <cmath>

#include "core/compiler/import/loop_recurrence.h"

/// Attention whose memory is a state of fixed size, and the causal convolution that stands before
/// it.
namespace candela::import {
namespace {

/// [batch, places, heads * size] as [batch, heads, places, size].
Term splitHeads(const Term& x, const char* name, int64_t heads) {
  if (!isFloat(x.elem()) || x.rank() != 3 || x.dim(2) % heads != 0)
    need(badModel("{} {} does not split into {} heads", name, x.text(), heads));
  return widened(x).reshape({x.dim(0), x.dim(1), heads, x.dim(2) / heads}).transpose({0, 2, 1, 3});
}

/// What is left of the state at each place: [batch, heads, places, 1 or depth].
Term readDecay(const NodeContext& context, int64_t batch, int64_t places, int64_t heads,
               int64_t depth) {
  const Term given = termOf(context, 4);
  if (given.rank() != 3 || given.dim(0) != batch || given.dim(1) != places ||
      (given.dim(2) != heads && given.dim(2) != heads * depth))
    need(badModel("decay {}, expected one number for each head or element of a key", given.text()));
  return exp(splitHeads(given, "decay", heads));
}

/// How much of a place's error is written to the state: [batch, heads or 1, places, 1].
Term readBeta(const NodeContext& context, int64_t batch, int64_t places, int64_t heads) {
  const Term given = termOf(context, 5);
  if (given.rank() != 3 || given.dim(0) != batch || given.dim(1) != places ||
      (given.dim(2) != heads && given.dim(2) != 1))
    need(badModel("beta {}, expected one number for each head or place", given.text()));
  return splitHeads(given, "beta", given.dim(2));
}

Status importLinearAttention(NodeContext& context) {
  const std::string rule = attrOf<std::string>(context, "update_rule", "gated_delta");
  const bool isGated = rule == "gated" || rule == "gated_delta",
             isDelta = rule == "delta" || rule == "gated_delta";
  if (!isGated && !isDelta && rule != "linear")
    return badModel("update_rule '{}' is not linear, gated, delta or gated_delta", rule);
  const int64_t qHeads = attrOf<int64_t>(context, "q_num_heads", 0),
                heads = attrOf<int64_t>(context, "kv_num_heads", 0);
  if (qHeads < 1 || heads < 1 || qHeads % heads != 0)
    return badModel("{} heads of queries are no multiple of {} heads of keys", qHeads, heads);
  need(context.maybe<int64_t>("chunk_size")); // a hint
  if (isGated != (context.input(4) != nullptr) || isDelta != (context.input(5) != nullptr))
    return badModel("update_rule '{}' takes {} decay and {} beta", rule, isGated ? "a" : "no",
                    isDelta ? "a" : "no");

  const Elem elem = termOf(context, 0).elem();
  const Term q = splitHeads(termOf(context, 0), "query", qHeads);
  const Term k = splitHeads(termOf(context, 1), "key", heads),
             v = splitHeads(termOf(context, 2), "value", heads);
  const int64_t batch = q.dim(0), places = q.dim(2), depth = q.dim(3), width = v.dim(3),
                group = qHeads / heads;
  if (k.shape() != Shape{batch, heads, places, depth} ||
      v.shape() != Shape{batch, heads, places, width})
    return badModel("query {}, key {} and value {} do not belong together",
                    termOf(context, 0).text(), termOf(context, 1).text(),
                    termOf(context, 2).text());
  double scale = attrOf<float>(context, "scale", 0.0f);
  if (scale == 0) scale = 1 / std::sqrt(std::max<double>(1, static_cast<double>(depth)));

  const Shape stateShape{batch, heads, depth, width};
  const bool hasPast = context.input(3) != nullptr;
  if (hasPast && termOf(context, 3).shape() != stateShape)
    return badModel("past_state {}, expected {}", termOf(context, 3).text(), shapeText(stateShape));
  const Elem stateElem = hasPast ? termOf(context, 3).elem() : elem;
  const Term past =
      hasPast ? widened(termOf(context, 3)) : full(context.build, 0, stateShape, q.elem());
  const auto placesFirst = [](const Term& x) { return x.transpose({2, 0, 1, 3}); };
  Recurrence recurrence{places, {{past}, {placesFirst(k), placesFirst(v)}, {}}};
  std::vector<Term>& scanned = recurrence.inputs.scanned;
  if (isGated) scanned.push_back(placesFirst(readDecay(context, batch, places, heads, depth)));
  if (isDelta) scanned.push_back(placesFirst(readBeta(context, batch, places, heads)));
  scanned.push_back(q.reshape({batch, heads, group, places, depth}).transpose({3, 0, 1, 2, 4}));
  const StepResults all = addRecurrence(context.build, recurrence, [=](const StepInputs& in) {
    const Term &key = in.scanned[0], &query = in.scanned.back();
    Term state = in.carried[0], value = in.scanned[1].unsqueeze(2);
    if (isGated) state = state * in.scanned[2].unsqueeze(3);
    if (isDelta)
      value = in.scanned[isGated ? 3 : 2].unsqueeze(3) * (value - matmul(key.unsqueeze(2), state));
    state = state + key.unsqueeze(3) * value;
    return StepResults{{state}, {matmul(query, state)}}; // [batch, heads, group, width]
  });
  context.set(1, all.carried[0].cast(stateElem).value());
  const Term y = all.stacked[0].transpose({1, 0, 2, 3, 4}).reshape({batch, places, qHeads * width});
  return context.set((y * scale).cast(elem));
}

/// Each channel with its own kernel over the places so far; the last ones are kept for the next
/// call.
Status importCausalConvWithState(NodeContext& context) {
  const std::string activation = attrOf<std::string>(context, "activation", "none");
  const bool isSilu = activation == "silu" || activation == "swish";
  if (!isSilu && activation != "none")
    return badModel("activation '{}' is not none, silu or swish", activation);
  const Term x = termOf(context, 0), w = termOf(context, 1);
  if (x.rank() != 3 || w.rank() != 3 || w.dim(0) != x.dim(1) || w.dim(1) != 1 || w.dim(2) < 1)
    return badModel(
        "input {} and weight {}, expected [batch,channels,places] and [channels,1,kernel]",
        x.text(), w.text());
  const Shape past{x.dim(0), x.dim(1), w.dim(2) - 1};
  if (context.input(3) && termOf(context, 3).shape() != past)
    return badModel("past_state {}, expected {}", termOf(context, 3).text(), shapeText(past));
  const Term before =
      context.input(3) ? termOf(context, 3) : full(context.build, 0, past, x.elem());
  const Term all = concat({before, x}, 2);
  std::vector<Term> operands{all, w};
  if (context.input(2)) operands.push_back(termOf(context, 2));
  Term y = make(OpKind::Conv, operands, {{"group", x.dim(1)}});
  if (isSilu) {
    const Term wide = widened(y);
    y = (wide * sigmoid(wide)).cast(y.elem());
  }
  context.set(1, all.slice(2, x.dim(2), past[2]).value());
  return context.set(y);
}

constexpr Operator kStreamingOperators[] = {
    {"CausalConvWithState", 2, 4, 2, importCausalConvWithState},
    {"LinearAttention", 3, 6, 2, importLinearAttention},
};

} // namespace

std::span<const Operator> streamingOperators() { return kStreamingOperators; }

} // namespace candela::import
