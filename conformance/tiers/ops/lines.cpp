// What looks along lines: SOFTMAX, NORM, ATTENTION, ARG_REDUCE, SORT.
#include <bit>
#include <limits>

#include "conformance/tiers/ops/families.h"
#include "core/support/float_bits.h"
#include "core/support/out_of_memory.h"
#include "core/support/text/scan.h"

namespace candela::conformance::tiers::ops {
namespace {

using graph::OpKind;

/// Of types that the first ones speak for.
bool isRare(const std::string& row) {
  const Elem elem = elemsIn(row)[0];
  return elem == Elem::f64_ || elem == Elem::u16_ || elem == Elem::i16_ || elem == Elem::u32_ ||
         elem == Elem::u64_ || elem == Elem::bool_ ||
         (elem == Elem::i64_ && wordOf(row).size() == 3);
}

Result<graph::Value*> one(graph::Graph& graph, OpKind kind, Values operands,
                          graph::Attrs attrs = {}) {
  CDL_ASSIGN(const Values values, write(graph, kind, std::move(operands), std::move(attrs)));
  return values[0];
}

/// x - max - log(sum(exp(x - max))) along dim 1, as no op of the Graph says it.
Result<Values> logSoftmax(graph::Graph& graph, const Values& in) {
  const graph::Attrs middle{{"axes", std::vector<int64_t>{1}}};
  CDL_ASSIGN(graph::Value * x, widened(graph, in[0]));
  CDL_ASSIGN(graph::Value * top, one(graph, OpKind::ReduceMax, {x}, middle));
  CDL_ASSIGN(x, one(graph, OpKind::Sub, {x, top}));
  CDL_ASSIGN(graph::Value * sum, one(graph, OpKind::Exp, {x}));
  CDL_ASSIGN(sum, one(graph, OpKind::ReduceSum, {sum}, middle));
  CDL_ASSIGN(sum, one(graph, OpKind::Log, {sum}));
  CDL_ASSIGN(x, one(graph, OpKind::Sub, {x, sum}));
  if (x->type.elem != in[0]->type.elem)
    return write(graph, OpKind::Cast, {x}, {{"to", in[0]->type.elem}});
  return Values{x};
}

OpFamily softmax() {
  OpFamily made;
  made.family = {"ops:softmax/",
                 {"softmax_f32", "softmax_f16", "softmax_bf16", "softmax_f64", "logsoftmax_f32",
                  "logsoftmax_f16", "logsoftmax_bf16", "logsoftmax_f64"},
                 {{"shape", {"3x7x1", "1x1x1", "2x5x3", "1x257x1", "4x16x17", "5x1x3", "0x5x2"}},
                  {"data", {"calm", "steps", "wide", "equal", "offset", "masked"}}},
                 [](const Choice& c) {
                   const std::string &row = c.at("row"), &shape = c.at("shape");
                   if (isRare(row)) return shape == "2x5x3" && c.at("data") == "calm";
                   // The logarithm of what is 1 but for roundings says little, and so does a line
                   // of -inf alone.
                   const bool plain = wordOf(row) == "softmax" && c.at("data") != "masked";
                   return plain || (shape != "1x1x1" && shape != "5x1x3");
                 },
                 {}};
  made.budget = {0, 20};
  made.make = [](const Choice& choice) {
    const Elem elem = elemsIn(choice.at("row"))[0];
    OpCase softmax;
    softmax.operands = {{elem, shapeOf(choice.at("shape")), fillOf(elem, choice.at("data"))}};
    softmax.whole = [](graph::Graph& graph, const Values& in) {
      return write(graph, OpKind::Softmax, in, {{"axis", int64_t(1)}});
    };
    if (wordOf(choice.at("row")) == "softmax") return softmax;
    softmax.parts = logSoftmax;
    softmax.change = [](lowering::decompose::NodeInstr& instr, const Values&) {
      instr.fn = CDL_SOFTMAX_LOG_SOFTMAX;
    };
    return softmax;
  };
  return made;
}

bool holdsNorm(const Choice& c) {
  const std::string &row = c.at("row"), &epsilon = c.at("epsilon"), &data = c.at("data");
  const bool half = elemBits(elemsIn(row)[0]) == 16;
  if (isRare(row)) return epsilon == "1e-5" && data == "calm" && c.at("shape") == "3x7";
  if (c.at("shape") == "0x8") return epsilon == "0.5" && data == "calm" && !half;
  // Of one number, or of equal ones, no epsilon leaves 0 / 0, and without a bias layer_norm leaves
  // 0 but for roundings.
  const bool flat = c.at("shape") == "1x1" || data == "equal";
  if (flat && (epsilon != "0.5" || (wordOf(row) == "layer" && c.at("given") != "bias")))
    return false;
  if (half) return epsilon == "0.5" && data != "wide";
  return epsilon == "1e-5" || data == "calm" || flat;
}

/// RMS_NORM with a bias, which no node has: an addition follows it.
void addBias(OpCase& norm) {
  norm.parts = [write = norm.whole](graph::Graph& graph, const Values& in) -> Result<Values> {
    Values wide;
    for (graph::Value* value : in) {
      CDL_ASSIGN(value, widened(graph, value));
      wide.push_back(value);
    }
    CDL_ASSIGN(const Values normed, write(graph, wide));
    CDL_ASSIGN(graph::Value * y, one(graph, OpKind::Add, {normed[0], wide[2]}));
    if (y->type.elem != in[0]->type.elem)
      return ops::write(graph, OpKind::Cast, {y}, {{"to", in[0]->type.elem}});
    return Values{y};
  };
  norm.change = [](lowering::decompose::NodeInstr& instr, const Values& operands) {
    instr.operands.push_back(instr.operands[1]);
    instr.operands[2].value = operands[2];
  };
}

OpCase normCase(const Choice& choice) {
  const std::string& row = choice.at("row");
  const Elem elem = elemsIn(row)[0];
  const Shape shape = shapeOf(choice.at("shape"));
  const bool layer = wordOf(row) == "layer";
  const bool biased = choice.at("given") == "bias";
  const double epsilon = text::parseNumber<double>(choice.at("epsilon")).value_or(1);
  OpCase norm;
  norm.operands = {{elem, shape, fillOf(elem, choice.at("data"))}};
  if (choice.at("given") != "x")
    norm.operands.push_back({elem, {shape[1]}, fillOf(elem, "calm")}); // scale
  if (biased) norm.operands.push_back({elem, {shape[1]}, fillOf(elem, "calm")});
  norm.whole = [layer, epsilon](graph::Graph& graph, const Values& in) {
    Values operands = in;
    // The record of rms_norm has no bias.
    if (!layer) operands.resize(std::min<size_t>(2, in.size()));
    return ops::write(graph, layer ? OpKind::LayerNorm : OpKind::RmsNorm, operands,
                      {{"axis", int64_t(1)}, {"epsilon", epsilon}});
  };
  if (biased && !layer) addBias(norm);
  return norm;
}

OpFamily norm() {
  OpFamily made;
  made.family = {"ops:norm/",
                 {"layer_f32", "layer_f16", "layer_bf16", "layer_f64", "rms_f32", "rms_f16",
                  "rms_bf16", "rms_f64"},
                 {{"given", {"x", "scale", "bias"}},
                  {"shape", {"3x7", "1x1", "5x64", "2x257", "16x3", "0x8"}},
                  {"epsilon", {"1e-5", "0", "1e-12", "0.5"}},
                  {"data", {"calm", "steps", "wide", "offset", "equal"}}},
                 holdsNorm,
                 {}};
  made.budget = {0, 22};
  made.make = normCase;
  return made;
}

/// A mask that leaves out every third key, and now and then a whole row but one.
TrialBuilder::Fill leavingOut(Elem elem, int64_t keys) {
  return [elem, keys](int64_t count, random::Random& random) {
    Tensor mask = orThrow(Tensor::zeros(elem, {count}));
    const uint64_t out = fromReal(elem, -std::numeric_limits<double>::infinity());
    for (int64_t i = 0; i < count; ++i) {
      const bool lonely = i / keys % 4 == 3;
      if (i % keys != 0 && (lonely || random.oneIn(3)))
        storeElement(elem, mask.bytes.mutableData(), i, out);
    }
    return mask;
  };
}

OpFamily attention() {
  OpFamily made;
  made.family = {
      "ops:attention/",
      {"f32", "f16", "bf16"},
      // B S T D E
      {{"shape",
        {"1x1x1x4x4", "2x5x7x8x3", "1x16x16x8x8", "3x2x33x5x17", "0x2x3x4x5", "2x4x70x16x32"}},
       {"mask", {"none", "added", "out", "repeated"}},
       {"scale", {"1", "0.125"}},
       {"data", {"small", "calm", "steps"}}},
      [](const Choice& c) {
        // Halves round the scores, whose exponentials then differ by as much as those
        // are large.
        if (c.at("row") == "bf16" && c.at("shape") == "1x16x16x8x8") return false;
        if (c.at("row") != "f32")
          return c.at("data") == "small" && c.at("scale") == "0.125" &&
                 c.at("shape") != "3x2x33x5x17";
        return c.at("data") != "small";
      },
      {}};
  made.budget = {0, 12};
  made.make = [](const Choice& choice) {
    const Elem elem = elemsIn(choice.at("row"))[0];
    const Shape dims = shapeOf(choice.at("shape"));
    const auto [b, s, t, d, e] = std::array{dims[0], dims[1], dims[2], dims[3], dims[4]};
    const std::string &data = choice.at("data"), &mask = choice.at("mask");
    OpCase attention;
    attention.operands = {{elem, {b, s, d}, fillOf(elem, data)},
                          {elem, {b, t, d}, fillOf(elem, data)},
                          {elem, {b, t, e}, fillOf(elem, data)}};
    if (mask != "none")
      attention.operands.push_back({elem, mask == "repeated" ? Shape{s, t} : Shape{b, s, t},
                                    mask == "out" ? leavingOut(elem, t) : fillOf(elem, "calm")});
    attention.whole = [scale = text::parseNumber<double>(choice.at("scale")).value_or(1)](
                          graph::Graph& graph, const Values& in) {
      return write(graph, OpKind::Attention, in, {{"scale", scale}});
    };
    return attention;
  };
  return made;
}

OpFamily argReduce() {
  OpFamily made;
  std::vector<std::string> rows;
  for (const char* fn : {"max", "min"})
    for (const char* elem :
         {"f32", "f16", "bf16", "i32", "i8", "u8", "f64", "i16", "u16", "u32", "i64", "u64"})
      for (const char* index : {"i32", "i64"})
        rows.push_back(fmt::format("{}_{}_{}", fn, elem, index));
  made.family = {"ops:arg_reduce/",
                 rows,
                 {{"shape", {"3x7x1", "1x1x1", "2x17x3", "5x2x2", "1x300x1", "0x4x2"}},
                  {"of_equals", {"first", "last"}},
                  {"data", {"ties", "corners", "equal"}}},
                 [](const Choice& c) {
                   if (isRare(c.at("row")))
                     return c.at("shape") == "2x17x3" && c.at("of_equals") == "last" &&
                            c.at("data") == "ties";
                   if (c.at("shape") == "0x4x2")
                     return c.at("of_equals") == "first" && c.at("data") == "ties";
                   return c.at("data") != "equal" || c.at("shape") == "2x17x3";
                 },
                 {}};
  made.budget = {12, 22};
  made.make = [](const Choice& choice) {
    const std::vector<Elem> elems = elemsIn(choice.at("row"));
    OpCase reduce;
    reduce.operands = {
        {elems[0], shapeOf(choice.at("shape")), fillOf(elems[0], choice.at("data"))}};
    graph::Attrs attrs{{"fn", wordOf(choice.at("row"))},
                       {"axis", int64_t(1)},
                       {"select_last", int64_t(choice.at("of_equals") == "last")}};
    reduce.whole = [attrs](graph::Graph& graph, const Values& in) {
      return write(graph, OpKind::ArgReduce, in, attrs);
    };
    if (elems[1] == Elem::i32_) return reduce;
    reduce.change = [](lowering::decompose::NodeInstr& instr, const Values&) {
      instr.result.elem = Elem::i64_;
    };
    reduce.parts = [whole = reduce.whole](graph::Graph& graph, const Values& in) -> Result<Values> {
      CDL_ASSIGN(const Values places, whole(graph, in));
      return write(graph, OpKind::Cast, places, {{"to", Elem::i64_}});
    };
    return reduce;
  };
  return made;
}

/// How many of the sorted elements of a line are kept.
int64_t firstOf(int64_t extent, const std::string& first) {
  if (first == "all") return extent;
  return first == "1" ? 1 : (extent + 1) / 2;
}

OpFamily sort() {
  OpFamily made;
  std::vector<std::string> rows;
  for (const char* fn : {"ascending", "descending"})
    for (const char* elem : {"f32", "f16", "bf16", "i32", "i8", "u8", "i64", "f64", "i16", "u16",
                             "u32", "u64", "bool"})
      rows.push_back(fmt::format("{}_{}", fn, elem));
  made.family = {"ops:sort/",
                 rows,
                 {{"shape", {"3x7x1", "2x17x3", "1x200x1", "4x1x2"}},
                  {"first", {"all", "1", "half"}},
                  {"data", {"ties", "corners", "bits"}}},
                 [](const Choice& c) {
                   if (isRare(c.at("row")))
                     return c.at("shape") == "2x17x3" && c.at("first") == "half" &&
                            c.at("data") == "ties";
                   return c.at("data") != "bits" || c.at("first") == "all";
                 },
                 {}};
  made.budget = {7, 16};
  made.make = [](const Choice& choice) {
    const Elem elem = elemsIn(choice.at("row"))[0];
    const Shape shape = shapeOf(choice.at("shape"));
    graph::Attrs attrs{{"axis", int64_t(1)},
                       {"k", firstOf(shape[1], choice.at("first"))},
                       {"descending", int64_t(wordOf(choice.at("row")) == "descending")}};
    OpCase sort;
    sort.operands = {{elem, shape, fillOf(elem, choice.at("data"))}};
    sort.whole = [attrs](graph::Graph& graph, const Values& in) {
      return write(graph, OpKind::Sort, in, attrs, 2);
    };
    return sort;
  };
  return made;
}

} // namespace

std::vector<OpFamily> lineFamilies() {
  return {softmax(), norm(), attention(), argReduce(), sort()};
}

} // namespace candela::conformance::tiers::ops
