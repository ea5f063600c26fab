// SCALED_MATMUL: types that devices have, blocks, zero points and scales of every kind.
#include <cmath>

#include "conformance/tiers/ops/families.h"
#include "conformance/tiers/scaled_fills.h"
#include "core/support/float_bits.h"
#include "core/support/out_of_memory.h"

namespace candela::conformance::tiers::ops {
namespace {

using graph::OpKind;

/// Numbers of which rounding by blocks leaves no doubt, however the device divides: the largest of
/// a block is 127 steps of a power of two, the others are whole steps or quarters from them.
TrialBuilder::Fill settled(Elem elem, const ProductText& e, bool isWide) {
  return [elem, e, isWide](int64_t count, random::Random& random) {
    Tensor tensor = orThrow(Tensor::zeros(elem, {count}));
    const int64_t reach = isWide ? 40 : 3;
    const bool hasQuarters = elem != Elem::bf16_; // which holds 8 digits
    int64_t exponent = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = i % e.depth % e.block;
      if (place == 0) exponent = random.between(-reach, reach);
      double steps = place == 0 ? 127 : static_cast<double>(random.between(-126, 126));
      if (place != 0 && hasQuarters) steps += static_cast<double>(random.between(-1, 1)) / 4;
      storeElement(elem, tensor.bytes.mutableData(), i,
                   fromReal(elem, std::ldexp(steps, static_cast<int>(exponent))));
    }
    return tensor;
  };
}

/// Nodes one behind the other; the first failure is kept.
class Chain {
public:
  explicit Chain(graph::Graph& graph) : graph_(graph) {}

  graph::Value* add(OpKind kind, Values operands, graph::Attrs attrs = {}) {
    if (!status_) return nullptr;
    auto made = write(graph_, kind, std::move(operands), std::move(attrs));
    if (!made) status_ = made.status();
    return made ? (*made)[0] : nullptr;
  }
  graph::Value* cast(graph::Value* x, Elem to) {
    return !x || x->type.elem == to ? x : add(OpKind::Cast, {x}, {{"to", to}});
  }
  graph::Value* number(double value) {
    return graph_.addConstant(Tensor::of<float>(Elem::f32_, {}, {static_cast<float>(value)}));
  }
  graph::Value* reshape(graph::Value* x, Shape shape) {
    return add(OpKind::Reshape, {x}, {{"shape", std::move(shape)}});
  }
  Result<Values> end(graph::Value* value) const {
    if (!status_) return status_;
    return Values{value};
  }

private:
  graph::Graph& graph_;
  Status status_;
};

/// What the operands of a case are: a, w, w_scale and, where there are some, zero points, scales of
/// a and a bias for each column.
struct ProductForm {
  ProductText extents;
  bool isDynamic = false;
  bool hasZero = false;
  bool hasScaleOfA = false;
  bool hasBias = false;
  Elem to = Elem::f32_;

  graph::Value* scaleOfA(const Values& in) const {
    return hasScaleOfA ? in[hasZero ? 4 : 3] : nullptr;
  }
};

/// A scale with a dim of its own for the elements of a block.
graph::Value* perBlock(Chain& chain, graph::Value* given) {
  Shape shape = given->type.shape();
  shape.push_back(1);
  return chain.reshape(chain.cast(given, Elem::f32_), shape);
}

/// x[rows, depth] in blocks, with zeros behind it.
graph::Value* blocked(Chain& chain, graph::Value* x, const ProductText& e) {
  const int64_t rest = e.blocks() * e.block - e.depth;
  if (rest)
    x = chain.add(OpKind::Pad, {x},
                  {{"lo", std::vector<int64_t>{0, 0}}, {"hi", std::vector<int64_t>{0, rest}}});
  return chain.reshape(x, {e.rows, e.blocks(), e.block});
}

/// x[rows, G, S] rounded to i8 by the largest of each block, and back (numerics.h
/// cdl_dynamic_step).
graph::Value* rounded(Chain& chain, graph::Value* x) {
  graph::Value* size = chain.add(OpKind::Abs, {x});
  graph::Value* largest = chain.add(OpKind::ReduceMax, {size},
                                    {{"axes", std::vector<int64_t>{2}}, {"keepdims", int64_t(1)}});
  graph::Value* isNothing = chain.add(OpKind::Less, {largest, chain.number(0x1p-100)});
  const auto unlessNothing = [&](graph::Value* value) {
    return chain.add(OpKind::Select, {isNothing, chain.number(0), value});
  };
  graph::Value* step = unlessNothing(chain.add(OpKind::Div, {largest, chain.number(127)}));
  graph::Value* perStep = unlessNothing(chain.add(OpKind::Div, {chain.number(127), largest}));
  graph::Value* whole = chain.add(OpKind::Round, {chain.add(OpKind::Mul, {x, perStep})},
                                  {{"to", Elem::i32_}, {"mode", std::string("rne")}});
  return chain.add(OpKind::Mul, {chain.cast(whole, Elem::f32_), step});
}

/// The product of real numbers that the operands stand for.
Result<Values> inSteps(graph::Graph& graph, const Values& in, const ProductForm& form) {
  const ProductText& e = form.extents;
  Chain chain(graph);
  graph::Value* a = chain.cast(in[0], Elem::f32_);
  graph::Value* w = chain.cast(in[1], Elem::f32_);
  if (form.hasZero) w = chain.add(OpKind::Sub, {w, perBlock(chain, in[3])});
  w = chain.add(OpKind::Mul, {w, perBlock(chain, in[2])});
  const int64_t held = e.blocks() * e.block;
  w = chain.reshape(w, {e.columns, held});
  a = blocked(chain, a, e);
  if (form.isDynamic) a = rounded(chain, a);
  if (graph::Value* scale = form.scaleOfA(in))
    a = chain.add(OpKind::Mul, {a, perBlock(chain, scale)});
  a = chain.reshape(a, {e.rows, held});
  if (held != e.depth) { // what lies behind the depth is 0 in a, and counts in w if it is NaN
    const auto cut = [&](graph::Value* x, int64_t rows) {
      return chain.add(OpKind::Slice, {x},
                       {{"starts", std::vector<int64_t>{0, 0}},
                        {"counts", std::vector<int64_t>{rows, e.depth}},
                        {"steps", std::vector<int64_t>{1, 1}}});
    };
    a = cut(a, e.rows);
    w = cut(w, e.columns);
  }
  w = chain.add(OpKind::Transpose, {w}, {{"perm", std::vector<int64_t>{1, 0}}});
  graph::Value* y = chain.add(OpKind::Matmul, {a, w});
  if (form.hasBias) y = chain.add(OpKind::Add, {y, chain.cast(in.back(), Elem::f32_)});
  return chain.end(chain.cast(y, form.to));
}

/// The one node, or two that become one instruction.
Result<Values> whole(graph::Graph& graph, const Values& in, const ProductForm& form) {
  Values operands{in[0], in[1], in[2]};
  if (form.hasZero || form.hasScaleOfA) operands.push_back(form.hasZero ? in[3] : nullptr);
  if (form.hasScaleOfA) operands.push_back(form.scaleOfA(in));
  CDL_ASSIGN(Values y,
             write(graph, OpKind::ScaledMatmul, operands,
                   {{"to", form.to}, {"fn", std::string(form.isDynamic ? "dynamic" : "exact")}}));
  if (!form.hasBias) return y;
  y.push_back(in.back());
  return write(graph, OpKind::Expr, y, {{"to", form.to}, {"steps", std::string("add(acc, v1)")}});
}

/// By the words of its row: the types of a, w and w_scale, and of the result where it is not f32.
OpCase scaledProduct(const Choice& choice) {
  const std::string& row = choice.at("row");
  const std::vector<Elem> elems = elemsIn(row);
  const std::string &zero = choice.at("zero"), &spread = choice.at("scales");
  ProductForm form{ProductText(choice.at("shape"))};
  form.isDynamic = wordOf(row) == "dynamic";
  form.hasZero = zero != "none";
  form.hasScaleOfA = choice.at("a_scale") == "given";
  form.hasBias = choice.at("epilogue") == "bias";
  form.to = elems.size() > 3 ? elems[3] : Elem::f32_;
  const ProductText& e = form.extents;
  const bool constant = choice.at("weights") == "constant";
  const Shape grid{spread == "one" ? 1 : e.columns, spread == "blocks" ? e.blocks() : 1};
  const std::string& data = choice.at("data");
  const std::string ofWeights = isInteger(elems[1]) ? "bits" : "calm";
  OpCase made;
  made.operands = {
      {elems[0],
       {e.rows, e.depth},
       form.isDynamic ? settled(elems[0], e, data == "wide") : fillOf(elems[0], data)},
      {elems[1], {e.columns, e.blocks(), e.block}, fillOf(elems[1], ofWeights), constant},
      {elems[2], grid, blockScales(elems[2]), constant}};
  if (form.hasZero) {
    const Elem elem = parseElem(zero).value_or(elems[0]); // "float": of a's type
    made.operands.push_back({elem, grid, blockZeros(elem), constant});
  }
  if (form.hasScaleOfA)
    made.operands.push_back({elems[2], {e.rows, e.blocks()}, blockScales(elems[2])});
  if (form.hasBias) made.operands.push_back({form.to, {e.columns}, fillOf(form.to, "calm")});
  made.whole = [form](graph::Graph& graph, const Values& in) { return whole(graph, in, form); };
  made.parts = [form](graph::Graph& graph, const Values& in) { return inSteps(graph, in, form); };
  return made;
}

bool isFloatRow(const std::string& row) { return isFloat(elemsIn(row)[1]); }

bool holds(const Choice& c) {
  const std::string &row = c.at("row"), &zero = c.at("zero"), &scales = c.at("scales"),
                    &shape = c.at("shape"), &data = c.at("data");
  const Elem a = elemsIn(row)[0];
  const bool isDynamic = wordOf(row) == "dynamic";
  const bool isOfA = c.at("a_scale") == "given";
  if (isFloatRow(row) && zero != "none") return false;
  if (zero == "float" && (isDynamic || !isFloat(a) || isStorageOnly(a))) return false;
  if (isOfA && (isDynamic || (isFloat(a) && !isStorageOnly(a)))) return false;
  // A bias ends the same sums: of few of them, and of f32, which nothing rounds before it.
  const bool isBiased = c.at("epilogue") == "bias";
  if (isBiased &&
      (elemsIn(row).size() > 3 || shape != "3x64x17b32" || scales != "blocks" || data != "calm"))
    return false;
  const bool isSmall = shape == "1x1x1b1" || shape == "2x0x3b8" || shape == "0x16x4b8";
  if (isSmall) return data == "calm" && scales == "blocks" && zero == "none" && !isOfA;
  if (isDynamic) return data == "calm" || (data == "wide" && a == Elem::f32_);
  if (a == Elem::i8_) return data == "bits" || data == "calm";
  return data != "bits" && (data != "wide" || a == Elem::f32_);
}

/// The function, then the types of a, w and w_scale, and of the result where it is not f32.
std::vector<std::string> exactRows() {
  return {
      "exact_f32_i4_f32",
      "exact_f32_u4_f32",
      "exact_f32_i8_f32",
      "exact_f32_u8_f32",
      "exact_f32_i2_f32",
      "exact_f32_u2_f32",
      "exact_f32_i4_f16",
      "exact_f32_i4_bf16",
      "exact_f32_u4_f16",
      "exact_f32_u4_bf16",
      "exact_f32_i8_f16",
      "exact_f32_i8_bf16",
      "exact_f32_u8_f16",
      "exact_f32_u8_bf16",
      "exact_f32_f16_f32",
      "exact_f32_bf16_f32",
      "exact_f32_f8e4m3_f32",
      "exact_f32_f8e4m3_f8e8m0",
      "exact_f32_f8e5m2_f32",
      "exact_f32_f8e5m2_f8e8m0",
      "exact_f16_i4_f16_f16",
      "exact_f16_u4_f16_f32",
      "exact_bf16_i4_bf16_bf16",
      "exact_bf16_i8_f32_f32",
      "exact_i8_i8_f32",
      "exact_i8_i4_f32",
      "exact_i8_u4_f16",
      "exact_f8e4m3_f8e4m3_f32",
      "exact_f8e4m3_f8e5m2_f32",
      "exact_f8e5m2_f8e4m3_f32",
      "exact_f8e4m3_f8e4m3_f32_f16",
      "exact_f8e4m3_f8e4m3_f32_bf16",
      "exact_f8e4m3_f8e4m3_f8e8m0",
      "exact_f8e5m2_f8e5m2_f8e8m0",
      "exact_f6e2m3_f6e2m3_f8e8m0",
      "exact_f6e3m2_f6e3m2_f8e8m0",
      "exact_f4e2m1_f4e2m1_f8e8m0",
      "exact_f4e2m1_f4e2m1_f8e4m3",
      "exact_f8e4m3_f4e2m1_f8e8m0",
      "exact_bf16_f8e4m3_f32_f32",
      "exact_f16_f8e5m2_f32_f32",
      "exact_bf16_f4e2m1_f8e8m0_bf16",
      "exact_f32_f4e2m1_f8e8m0",
  };
}

std::vector<std::string> dynamicRows() {
  return {
      "dynamic_f32_i4_f32",        "dynamic_f32_u4_f32",  "dynamic_f32_i8_f32",
      "dynamic_f32_u8_f32",        "dynamic_f32_i2_f32",  "dynamic_f32_u2_f32",
      "dynamic_f32_i4_f16",        "dynamic_f32_i4_bf16", "dynamic_f32_u4_f16",
      "dynamic_f32_u4_bf16",       "dynamic_f32_i8_f16",  "dynamic_f32_i8_bf16",
      "dynamic_f32_u8_f16",        "dynamic_f32_u8_bf16", "dynamic_f16_i4_f16_f16",
      "dynamic_bf16_u4_bf16_bf16",
  };
}

std::vector<std::string> scaledRows() {
  std::vector<std::string> rows = exactRows();
  const std::vector<std::string> more = dynamicRows();
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

OpFamily scaledMatmul() {
  OpFamily made;
  made.family = {"ops:scaled_matmul/",
                 scaledRows(),
                 {{"shape",
                   {"3x64x17b32", "1x256x40b32", "5x40x8b16", "4x96x33b128", "2x50x9b16", "1x1x1b1",
                    "2x0x3b8", "0x16x4b8"}},
                  {"zero", {"none", "u8", "i8", "float"}},
                  {"scales", {"blocks", "columns", "one"}},
                  {"a_scale", {"none", "given"}},
                  {"weights", {"constant", "input"}},
                  {"epilogue", {"none", "bias"}},
                  {"data", {"calm", "steps", "wide", "bits"}}},
                 holds,
                 {}};
  made.budget = {8, 20};
  made.make = scaledProduct;
  return made;
}

} // namespace

std::vector<OpFamily> productFamilies() { return {scaledMatmul()}; }

} // namespace candela::conformance::tiers::ops
