#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

#include "core/compiler/import/operators/selection.h"
#include "core/support/hash.h"

/// Random numbers. They are a function of a key and of the place of each element: Threefry-2x32
/// with 20 rounds (Salmon, Moraes, Dror and Shaw: "Parallel random numbers: as easy as 1, 2, 3",
/// 2011), written in i32 arithmetic, so that every backend, thread and run gives the same bits.
/// Element i of n takes word i / h of the block with the counter (i mod h, 0), where h = ceil(n /
/// 2).
///
/// What users get: a node with a `seed` gives the same numbers in each run and on each machine, as
/// does every other node with this seed; the key is (the 32 bits of the seed as a float, 0). Nodes
/// without one differ from each other; their key comes from their names and from the caller's seed
/// (--seed, import.random_seed), so they too repeat their numbers in each run of a compiled model,
/// and in each turn of a loop. Values are those of no other runtime, whose generators are their
/// own.
namespace candela::import {
namespace {

struct Key {
  uint32_t low, high;
};

Key keyOf(NodeContext& context, std::optional<float> seed) {
  if (seed) return {std::bit_cast<uint32_t>(*seed), 0};
  std::string name = context.node.name + "/" + context.node.outputs.front();
  if (context.randomSeed) name += fmt::format("/{}", *context.randomSeed);
  const Hash hash = sha256(name.data(), name.size());
  Key key;
  std::memcpy(&key, hash.data(), sizeof(key));
  key.high |= 1; // the key of no seed
  return key;
}
Key keyAttr(NodeContext& context) { return keyOf(context, need(context.maybe<float>("seed"))); }

Term word(const Term& like, uint32_t bits) {
  return constant(like.build(), std::vector<int64_t>{static_cast<int32_t>(bits)}, {}, Elem::i32_);
}
/// As of an unsigned number.
Term shiftDown(const Term& x, int by) {
  return bitAnd(shiftRight(x, word(x, by)), word(x, ~uint32_t(0) >> by));
}
Term rotate(const Term& x, int by) {
  return bitOr(shiftLeft(x, word(x, by)), shiftDown(x, 32 - by));
}

/// 32 random bits for each of `count` elements.
Term randomBits(Builder& build, int64_t count, Key key) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const int64_t half = (count + 1) / 2;
  if (half > INT32_MAX)
    need(failure(Code::unsupported, "{} random numbers, at most {}", count, INT32_MAX));
  const uint32_t words[3] = {key.low, key.high, key.low ^ key.high ^ 0x1BD11BDA};
  Term a = iota(build, half, Elem::i32_),
       b = full(build, static_cast<int32_t>(words[1]), {half}, Elem::i32_);
  a = a + word(a, words[0]);
  for (uint32_t round = 0; round < 20; ++round) {
    a = a + b;
    b = bitXor(rotate(b, kRotations[round / 4 % 2][round % 4]), a);
    if (round % 4 != 3) continue;
    const uint32_t turn = round / 4 + 1;
    a = a + word(a, words[turn % 3]);
    b = b + word(b, words[(turn + 1) % 3] + turn);
  }
  return concat({a, b}, 0).slice(0, 0, count);
}

/// Equally likely multiples of 2^-p in [0, 1), all of them exact: p is 24, of f64 53, of f16 11, of
/// bf16 8. In f32 for halves.
Term uniform(Builder& build, const Shape& shape, Key key, Elem elem) {
  const auto count = elementCount(shape);
  if (!count || *count > INT32_MAX)
    need(failure(Code::unsupported, "random numbers of shape {}, at most {}", shapeText(shape),
                 INT32_MAX));
  if (elem == Elem::f64_) {
    const Term bits = randomBits(build, 2 * *count, key);
    const Term high = shiftDown(bits.slice(0, 0, *count), 5),
               low = shiftDown(bits.slice(0, *count, *count), 6);
    return ((high.cast(elem) * 0x1p26 + low.cast(elem)) * 0x1p-53).reshape(shape);
  }
  int kept = 24; // bits of the significand
  if (elem == Elem::f16_)
    kept = 11;
  else if (elem == Elem::bf16_)
    kept = 8;
  return (shiftDown(randomBits(build, *count, key), 32 - kept).cast(Elem::f32_) *
          std::ldexp(1.0, -kept))
      .reshape(shape);
}

/// By Box and Muller: of two uniform numbers, the one a radius and the other an angle, two normal
/// ones.
Term normal(Builder& build, const Shape& shape, Key key, Elem elem) {
  const auto count = elementCount(shape);
  if (!count || *count > INT32_MAX)
    need(failure(Code::unsupported, "random numbers of shape {}, at most {}", shapeText(shape),
                 INT32_MAX));
  const int64_t half = (*count + 1) / 2;
  const Term u = uniform(build, {2 * half}, key, elem == Elem::f64_ ? elem : Elem::f32_);
  const Term radius = sqrt(log(1 - u.slice(0, 0, half)) * -2),
             angle = u.slice(0, half, half) * (2 * std::numbers::pi);
  return concat({radius * cos(angle), radius * sin(angle)}, 0).slice(0, 0, *count).reshape(shape);
}

Elem elemAttr(NodeContext& context, Elem fallback) {
  const auto given = need(context.maybe<int64_t>("dtype"));
  if (!given) return fallback;
  const auto elem =
      *given > 0 && *given <= INT32_MAX ? elemFromOnnx(static_cast<int>(*given)) : std::nullopt;
  if (!elem || isStorageOnly(*elem))
    need(failure(Code::unsupported, "dtype {} is no element type here", *given));
  return *elem;
}

/// Of the shape that an attribute says, or of an input.
Shape shapeOf(NodeContext& context) {
  if (context.input(0)) return termOf(context, 0).shape();
  const auto shape = need(context.maybe<std::vector<int64_t>>("shape"));
  if (!shape) need(badModel("attribute 'shape' is missing"));
  if (!elementCount(*shape)) need(badModel("impossible shape [{}]", fmt::join(*shape, ",")));
  return *shape;
}

Elem floatAttr(NodeContext& context) {
  const Elem elem = elemAttr(context, context.input(0) ? context.input(0)->type.elem : Elem::f32_);
  if (!isFloat(elem) || isStorageOnly(elem))
    need(badModel("random {}, expected floats", elemName(elem)));
  return elem;
}

Status importUniform(NodeContext& context) {
  const Shape shape = shapeOf(context);
  const Elem elem = floatAttr(context);
  const double low = attrOf<float>(context, "low", 0), high = attrOf<float>(context, "high", 1);
  return context.set(
      (uniform(context.build, shape, keyAttr(context), elem) * (high - low) + low).cast(elem));
}

Status importNormal(NodeContext& context) {
  const Shape shape = shapeOf(context);
  const Elem elem = floatAttr(context);
  const double mean = attrOf<float>(context, "mean", 0), scale = attrOf<float>(context, "scale", 1);
  return context.set(
      (normal(context.build, shape, keyAttr(context), elem) * scale + mean).cast(elem));
}

/// 1 as often as each element says.
Status importBernoulli(NodeContext& context) {
  const Shape shape = shapeOf(context);
  const Term chance = widened(termOf(context, 0));
  if (!isFloat(chance.elem())) return badModel("input {}, expected floats", chance.text());
  const Elem elem = elemAttr(context, context.input(0)->type.elem);
  return context.set(
      less(uniform(context.build, shape, keyAttr(context), chance.elem()), chance).cast(elem));
}

/// Classes as often as exp(x[batch, classes]) says. Shares are counted in units of 2^-30, whose
/// running sums are exact: the class of a number is how many of them it is not below.
Status importMultinomial(NodeContext& context) {
  const Term x = widened(termOf(context, 0));
  if (x.rank() != 2 || !isFloat(x.elem()) || x.count() == 0)
    return badModel("input {}, expected floats [batch, classes]", x.text());
  const int64_t samples = attrOf<int64_t>(context, "sample_size", 1);
  if (samples < 1 || samples > INT32_MAX)
    return badModel("sample_size is {}, expected 1 to {}", samples, INT32_MAX);
  const Elem elem = elemAttr(context, Elem::i32_);
  if (elem != Elem::i32_ && elem != Elem::i64_)
    return badModel("dtype is {}, expected i32 or i64", elemName(elem));
  const int64_t batch = x.dim(0), classes = x.dim(1);
  const Term units = saturated(softmax(x) * 0x1p30, Elem::i32_);
  const Term sums = runningSum(units, 1).cast(Elem::i64_);
  const Term total = sums.slice(1, classes - 1, 1);
  if (const auto count = elementCount(Shape{batch, samples}); !count || *count > INT32_MAX)
    return failure(Code::unsupported, "{} samples of {} rows, at most {}", samples, batch,
                   INT32_MAX);
  const Term bits =
      shiftDown(randomBits(context.build, batch * samples, keyAttr(context)), 1).cast(Elem::i64_);
  const Term pick = shiftRight(bits.reshape({batch, samples}) * total, 31);
  const Term passed = lessOrEqual(sums.unsqueeze(1), pick.unsqueeze(2)).cast(Elem::i32_);
  const Term index =
      min(reduce(OpKind::ReduceSum, passed, {2}, false), static_cast<double>(classes - 1));
  return context.set(index.cast(elem));
}

/// In inference form y is x and the mask is all true. In training, and where that is known at run
/// only, elements are kept by the mask, as often as the ratio leaves, and scaled up by as much.
Status importDropout(NodeContext& context) {
  const Term x = termOf(context, 0);
  const auto untouched = [&](Elem elem) {
    if (context.wants(1)) context.set(1, full(context.build, 1, x.shape(), elem).value());
    return context.set(x);
  };
  if (context.opset < 12) {
    need(context.maybe<float>("ratio"));
    if (context.input(1))
      return badModel("has {} inputs, expected 1 before opset 12", context.inputs().size());
    // the mask had x's type before opset 10
    return untouched(context.opset < 10 ? x.elem() : Elem::bool_);
  }
  const auto seed = need(context.maybe<int64_t>("seed"));
  for (const size_t i : {1, 2})
    if (context.input(i) && termOf(context, i).count() != 1)
      return badModel("{} is {}, expected one value", i == 1 ? "ratio" : "training_mode",
                      termOf(context, i).text());
  if (!context.input(2) || Builder::knownInts(context.input(2)) == std::vector<int64_t>{0})
    return untouched(Elem::bool_);
  const Term wide = widened(x), training = termOf(context, 2).reshape({});
  if (training.elem() != Elem::bool_)
    return badModel("training_mode is {}, expected bool", training.text());
  const Term given =
      context.input(1) ? termOf(context, 1).reshape({}).cast(wide.elem()) : wide.number(0.5);
  const Term ratio = select(training, given, 0);
  const Key key = keyOf(context, seed ? std::optional(static_cast<float>(*seed)) : std::nullopt);
  const Term kept = logicalNot(less(uniform(context.build, x.shape(), key, wide.elem()), ratio));
  if (context.wants(1)) context.set(1, kept.value());
  return context.set(select(kept, wide * reciprocal(1 - ratio), 0).cast(x.elem()));
}

constexpr Operator kRandomOperators[] = {
    {"Bernoulli", 1, 1, 1, importBernoulli},       {"Dropout", 1, 3, 2, importDropout},
    {"Multinomial", 1, 1, 1, importMultinomial},   {"RandomNormal", 0, 0, 1, importNormal},
    {"RandomNormalLike", 1, 1, 1, importNormal},   {"RandomUniform", 0, 0, 1, importUniform},
    {"RandomUniformLike", 1, 1, 1, importUniform},
};

} // namespace

std::span<const Operator> randomOperators() { return kRandomOperators; }

} // namespace candela::import
