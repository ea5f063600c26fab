// Expressions: ELEMENTWISE, and the epilogues of MATMUL, CONV2D, POOL2D and REDUCE. In other words:
// step by step.
#include <algorithm>

#include "conformance/tiers/ops/families.h"
#include "conformance/tiers/ops/ties.h"
#include "conformance/tiers/primitives/fills.h"
#include "core/compiler/capabilities/rows.h"
#include "core/compiler/capabilities/views.h"
#include "core/support/out_of_memory.h"
#include "core/support/text/literal.h"

namespace candela::conformance::tiers::ops {
namespace {

using graph::OpKind, text::ExprArg;

/// One step as a node.
Result<graph::Value*> node(graph::Graph& graph, const text::ExprStep& step, Values in) {
  if (step.kind == CDL_KIND_CONVERT) {
    graph::Attrs attrs{{"to", step.to}, {"saturate", int64_t(step.saturate)}};
    const bool rounds = step.fn != CDL_CONVERT_TRUNC;
    if (rounds) attrs["mode"] = std::string(step.fn == CDL_CONVERT_RNE ? "rne" : "floor");
    CDL_ASSIGN(const Values y,
               write(graph, rounds ? OpKind::Round : OpKind::Cast, std::move(in), attrs));
    return y[0];
  }
  if (step.kind == CDL_KIND_RESCALE) {
    CDL_ASSIGN(const Values y, write(graph, OpKind::Rescale, std::move(in), {{"to", step.to}}));
    return y[0];
  }
  for (const graph::OpInfo& info : graph::allOps())
    if (info.has(graph::kTraitElementwise) && info.instrKind == step.kind &&
        info.instrFn == step.fn) {
      CDL_ASSIGN(const Values y, write(graph, info.kind, std::move(in)));
      return y[0];
    }
  return failure(Code::internal, "no op is {}", text::exprFnName(step));
}

/// What an argument that is no literal refers to; `values` are those of the steps before.
graph::Value* valueOf(const ExprArg& arg, const Values& operands, const Values& values) {
  switch (arg.source) {
  case ExprArg::Source::acc: return operands[0];
  case ExprArg::Source::view: return operands[arg.index];
  default: return values[arg.index];
  }
}

} // namespace

Result<Values> stepByStep(graph::Graph& graph, const std::string& text, const Values& operands) {
  CDL_ASSIGN(const text::ExprSteps steps, text::parseExpr(text));
  std::vector<Elem> elems;
  for (const graph::Value* operand : operands) elems.push_back(operand->type.elem);
  CDL_ASSIGN(const text::ExprTypes types, text::typeExpr(steps, elems, elems[0]));
  Values values;
  for (size_t s = 0; s < steps.size(); ++s) {
    Values in;
    for (size_t a = 0; a < steps[s].args.size(); ++a) {
      const ExprArg& arg = steps[s].args[a];
      if (arg.source == ExprArg::Source::literal) {
        const Elem elem = types.args[s][a];
        CDL_ASSIGN(const uint64_t bits, text::parseElement(elem, arg.literal));
        in.push_back(graph.addConstant(Payload::splat(elem, 1, bits), {elem, {}}));
      } else {
        in.push_back(valueOf(arg, operands, values));
      }
    }
    CDL_ASSIGN(graph::Value* const value, node(graph, steps[s], std::move(in)));
    values.push_back(value);
  }
  return Values{values.back()};
}

Elem endOf(const std::string& text, const std::vector<Elem>& operands) {
  const auto steps = orThrow(text::parseExpr(text));
  return orThrow(text::typeExpr(steps, operands, operands[0])).steps.back();
}

namespace {

// ---- ELEMENTWISE ----

struct Expression {
  const char* name;
  const char* text;
  const char* operands; ///< types; "T": f32, f16 and bf16 in turn, each a row
};
constexpr Expression kExpressions[] = {
    {"relu", "max(v0, 0.0)", "T"},
    {"clamp", "min(max(v0, -1.5), 2.0)", "T"},
    {"muladd", "add(mul(v0, v1), v2)", "T_T_T"},
    {"mix", "select(lt(v0, v1), v1, v2)", "T_T_T"},
    {"gelu", "mul(mul(v0, 0.5), add(erf(mul(v0, 0.75)), 1.0))", "T"},
    {"silu", "mul(v0, sigmoid(v0))", "T"},
    {"ratio", "div(sub(v0, v1), sqrt(add(abs(v2), 1.0)))", "T_T_T"},
    {"softsign", "t0 = exp(neg(abs(v0))); div(t0, add(t0, 1.0))", "T"},
    {"curves", "add(tanh(v0), log(add(abs(v1), 0.5)))", "f32_f32"},
    {"roots", "mul(rcp(add(abs(v0), 1.0)), floor(v1))", "f32_f32"},
    {"dequantize", "mul(convert_f32(sub(convert_i32(v0), 3)), v1)", "i8_f32"},
    {"quantize", "convert_i8_rne_saturate(add(mul(v0, v1), 3.0))", "f32_f32"},
    {"bytes", "convert_u8_floor_saturate(mul(v0, 16.0))", "f32"},
    {"halves", "convert_f16(add(convert_f32(v0), v1))", "f16_f32"},
    {"whole", "max(add(v0, mul(v1, 3)), -7)", "i32_i32"},
    {"quotient", "sub(v0, mul(div(v0, v1), v1))", "i32_i32"},
    {"masks", "xor(and(v0, v1), or(v0, 12))", "i32_i32"},
    {"shifts", "shr(shl(v0, 3), 1)", "i32"},
    {"truth", "or(and(v0, v1), lt(v2, 0.5))", "bool_bool_f32"},
    {"equal", "select(eq(v0, v1), 1, v0)", "i32_i32"},
    {"long",
     "t0 = mul(v0, v1); t1 = add(t0, v2); t2 = max(t1, 0.0); t3 = min(t2, 6.0); t4 = mul(t3, v0); "
     "t5 = sub(t4, v1); "
     "t6 = abs(t5); t7 = add(t6, 1.0); t8 = sqrt(t7); t9 = div(t4, t8); t10 = neg(t9); t11 = "
     "max(t10, t5); "
     "t12 = add(t11, t3); t13 = mul(t12, 0.5); t14 = min(t13, t8); sub(t14, v2)",
     "f32_f32_f32"},
    {"round", "convert_i32_rne_saturate(v0)", "T"},
    {"even", "round_even(v0)", "T"},
    {"narrow", "convert_f16(v0)", "f32"},
    {"narrower", "convert_bf16(v0)", "f32"},
    {"float", "convert_f32(v0)", "i32"},
    {"rescale-i8", "rescale_i8(v0, v1, v2, v3)", "i32_i32_i32_i32"},
    {"rescale-u8", "rescale_u8(v0, v1, v2, v3)", "i32_i32_i32_i32"},
    {"rescale-i16", "rescale_i16(v0, v1, v2, v3)", "i32_i32_i32_i32"},
};

/// Operands of an expression that rounds; none of others.
std::vector<TrialBuilder::Fill> tiedOperands(const std::string& name, Elem elem) {
  if (name == "quantize") return {wholeNumbers(elem, 20), halfFactors(elem)};
  if (name == "round" || name == "even") return {wholesAndHalf(elem)};
  if (name == "narrow") return {betweenTwo(elem, Elem::f16_)};
  if (name == "narrower") return {betweenTwo(elem, Elem::bf16_)};
  if (name == "float") return {betweenTwo(elem, Elem::f32_)};
  if (name == "halves") // a number of f16, and half of a step of it
    return {primitives::reals(elem,
                              [](int64_t, random::Random& random) {
                                return 1 + static_cast<double>(random.below(900)) * 0x1p-10;
                              }),
            primitives::reals(Elem::f32_, [](int64_t, random::Random&) { return 0x1p-11; })};
  if (name.starts_with("rescale"))
    return {wholeNumbers(elem, 50), halfMultipliers(), halfShifts(), wholeNumbers(elem, 9)};
  return {};
}

std::vector<std::string> expressionRows() {
  std::vector<std::string> rows;
  for (const Expression& each : kExpressions) {
    const std::string operands = each.operands;
    if (operands[0] != 'T') rows.push_back(fmt::format("{}_{}", each.name, operands));
    for (const char* elem : {"f32", "f16", "bf16"})
      if (operands[0] == 'T') rows.push_back(fmt::format("{}_{}", each.name, elem));
  }
  return rows;
}
const Expression& expressionOf(const std::string& row) {
  return *std::ranges::find_if(kExpressions,
                               [&](const Expression& each) { return wordOf(row) == each.name; });
}
size_t operandsOf(const Expression& expression) {
  return static_cast<size_t>(std::ranges::count(std::string_view(expression.operands), '_')) + 1;
}

/// How the last operand lies.
struct Lie {
  std::vector<int64_t> strides;
  int64_t offset = 0;
};
Lie lieOf(const std::string& form, const Shape& shape) {
  Lie lie{denseStrides(shape)};
  if (form == "transposed") {
    int64_t step = 1;
    for (size_t d = 0; d < shape.size(); step *= shape[d++]) lie.strides[d] = step;
  } else if (form == "negative") {
    lie.strides.back() = -1;
    lie.offset = shape.back() - 1;
  }
  return lie;
}

bool holdsElementwise(const Choice& c) {
  const std::string &shape = c.at("shape"), &last = c.at("last"), &data = c.at("data");
  const Expression& expression = expressionOf(c.at("row"));
  if (data == "ties")
    return shape == "3x5x7" && last == "dense" &&
           !tiedOperands(expression.name, Elem::f32_).empty();
  if (std::string_view(expression.name).starts_with("rescale")) return false;
  if (shape == "0x4") return last == "dense" && data == "calm" && wordOf(c.at("row")) == "muladd";
  if (operandsOf(expression) == 1 && last != "dense" && last != "transposed") return false;
  if (last == "transposed" && (shape == "17" || shape == "1x65")) return false;
  if (last == "column" && shape == "17") return false;
  // NaN and infinities once for each expression; numbers that are exact for each way to lie.
  if (data == "corners") return shape == "3x5x7" && last == "dense";
  if (data == "calm") return shape == "3x5x7" || shape == "1x65";
  return last == "dense" || shape == "2x3x4x5x6";
}

/// Makes the last operand of a case one that lies so.
void moveLastOperand(OpCase& made, const std::string& text, const Shape& shape, const Lie& lie) {
  made.parts = [text, shape, lie](graph::Graph& graph, const Values& in) -> Result<Values> {
    Values operands = in;
    CDL_ASSIGN(const Values last,
               write(graph, OpKind::Affine, {in.back()},
                     {{"dims", shape}, {"strides", lie.strides}, {"offset", lie.offset}}));
    operands.back() = last[0];
    return stepByStep(graph, text, operands);
  };
  made.change = [shape, lie](lowering::decompose::NodeInstr& instr, const Values&) {
    for (lowering::decompose::NodeView& operand : instr.operands) {
      operand.dims = shape;
      operand.strides = denseStrides(shape);
    }
    instr.result.dims = shape;
    instr.result.strides = denseStrides(shape);
    instr.operands.back().strides = lie.strides;
    instr.operands.back().offset = lie.offset;
  };
}

OpCase elementwiseCase(const Choice& choice) {
  const Expression& expression = expressionOf(choice.at("row"));
  std::vector<Elem> elems = elemsIn(choice.at("row"));
  elems.resize(operandsOf(expression), elems[0]);
  const Shape shape = shapeOf(choice.at("shape"));
  const std::string& last = choice.at("last");
  OpCase made;
  const bool isTied = choice.at("data") == "ties";
  const auto tied =
      isTied ? tiedOperands(expression.name, elems[0]) : std::vector<TrialBuilder::Fill>();
  for (size_t i = 0; i < elems.size(); ++i)
    made.operands.push_back(
        {elems[i], shape, isTied ? tied[i] : fillOf(elems[i], choice.at("data"))});
  Shape& dims = made.operands.back().dims;
  if (last == "scalar") dims = {};
  if (last == "row") dims = {shape.back()};
  if (last == "column") dims.back() = 1;
  const std::string text = expression.text;
  const Elem to = endOf(text, elems);
  made.whole = [text, to](graph::Graph& graph, const Values& in) {
    return write(graph, OpKind::Expr, in, {{"to", to}, {"steps", text}});
  };
  if (last == "transposed" || last == "negative")
    moveLastOperand(made, text, shape, lieOf(last, shape));
  else
    made.parts = [text](graph::Graph& graph, const Values& in) {
      return stepByStep(graph, text, in);
    };
  return made;
}

OpFamily elementwise() {
  OpFamily made;
  made.family = {"ops:elementwise/",
                 expressionRows(),
                 {{"shape", {"17", "3x5x7", "2x3x4x5x6", "1x65", "0x4"}},
                  {"last", {"dense", "scalar", "row", "column", "transposed", "negative"}},
                  {"data", {"calm", "steps", "corners", "ties"}}},
                 holdsElementwise,
                 {}};
  made.family.isTypical = [](const Choice& choice) { return choice.at("data") != "ties"; };
  made.family.tells = [](const Choice& choice) {
    return choice.at("data") == "ties" ? "ties" : "";
  };
  made.budget = {10, 30};
  made.make = elementwiseCase;
  return made;
}

// ---- Epilogues ----

/// What computes the accumulator: operands by shape, and the node.
struct Base {
  const char* name;
  Elem first, second, acc; ///< second none: one operand
  bool hasZero = false;    ///< a zero point of the first
};
constexpr Base kBases[] = {
    {"matmul-f32", Elem::f32_, Elem::f32_, Elem::f32_},
    {"matmul-f16", Elem::f16_, Elem::f16_, Elem::f16_},
    {"matmul-i8", Elem::i8_, Elem::i8_, Elem::i32_},
    {"matmul-u8", Elem::u8_, Elem::i8_, Elem::i32_},
    {"conv2d-f32", Elem::f32_, Elem::f32_, Elem::f32_},
    {"conv2d-u8", Elem::u8_, Elem::i8_, Elem::i32_},
    {"conv2d-u8depthwise", Elem::u8_, Elem::i8_, Elem::i32_},
    {"conv2d-i8depthwise", Elem::i8_, Elem::i8_, Elem::i32_},
    {"conv2d-u8depthwisezero", Elem::u8_, Elem::i8_, Elem::i32_, true},
    {"conv2d-i8depthwisezero", Elem::i8_, Elem::i8_, Elem::i32_, true},
    {"conv2d-u8zero", Elem::u8_, Elem::i8_, Elem::i32_, true},
    {"conv2d-i8zero", Elem::i8_, Elem::i8_, Elem::i32_, true},
    {"conv2d-i8", Elem::i8_, Elem::i8_, Elem::i32_},
    {"max-f32", Elem::f32_, Elem::none, Elem::f32_},
    {"average-f32", Elem::f32_, Elem::none, Elem::f32_},
    {"max-i8", Elem::i8_, Elem::none, Elem::i8_},
    {"reducesum-f32", Elem::f32_, Elem::none, Elem::f32_},
    {"reducesum-f16", Elem::f16_, Elem::none, Elem::f16_},
    {"reducemax-f32", Elem::f32_, Elem::none, Elem::f32_},
    {"reducesum-i32", Elem::i32_, Elem::none, Elem::i32_},
};
const Base& baseOf(const std::string& row) {
  return *std::ranges::find_if(kBases, [&](const Base& each) { return wordOf(row) == each.name; });
}

struct Epilogue {
  const char* name;
  Elem acc; ///< f32: any float
  const char* text;
  /// of each view of the epilogue: "c" a number for each channel or column, "y" as the result
  const char* views;
};
constexpr Epilogue kEpilogues[] = {
    {"relu", Elem::f32_, "max(acc, 0.0)", ""},
    {"bias", Elem::f32_, "max(add(acc, v1), 0.0)", "c"},
    {"residual", Elem::f32_, "min(add(acc, v1), 6.0)", "y"},
    {"scale", Elem::f32_, "add(mul(acc, v1), v2)", "cc"},
    {"gate", Elem::f32_, "mul(acc, sigmoid(add(acc, v1)))", "c"},
    {"quantize", Elem::f32_, "convert_i8_rne_saturate(mul(acc, v1))", "c"},
    {"bytes", Elem::f32_, "convert_u8_rne_saturate(mul(acc, v1))", "c"},
    {"add", Elem::i32_, "max(add(acc, v1), 0)", "c"},
    {"residual", Elem::i32_, "sub(acc, v1)", "y"},
    {"real", Elem::i32_, "mul(convert_f32(acc), 0.03125)", ""},
    {"rescale-i8", Elem::i32_, "rescale_i8(acc, v1, v2, v3)", "ccc"},
    {"rescale-u8", Elem::i32_, "rescale_u8(acc, v1, v2, v3)", "ccc"},
    {"clamp", Elem::i8_, "min(max(acc, -3), 5)", ""},
};

/// Whether it rounds what the base gives exactly, whole numbers, to others half-way to them.
bool hasTies(const Base& base, const Epilogue& epilogue) {
  const std::string first = base.name, end = epilogue.name;
  if (end == "real") return first == "reducesum-i32"; // the only sums that f32 does not hold
  return end.starts_with("rescale") ||
         (text::isOneOf(end, "quantize|bytes") && !first.starts_with("average"));
}

bool quantizes(const Epilogue& epilogue) {
  return isFloat(epilogue.acc) && epilogue.text[0] == 'c';
}

std::vector<std::string> epilogueRows() {
  std::vector<std::string> rows;
  for (const Base& base : kBases)
    for (const Epilogue& epilogue : kEpilogues)
      // Of a sum of halves it is open on which side of a step it lies.
      if (base.acc == epilogue.acc || (isFloat(base.acc) && isFloat(epilogue.acc) &&
                                       (base.acc == Elem::f32_ || !quantizes(epilogue))))
        rows.push_back(fmt::format("{}_{}", base.name, epilogue.name));
  return rows;
}
const Epilogue& epilogueOf(const std::string& row) {
  return *std::ranges::find_if(kEpilogues, [&](const Epilogue& each) {
    const Elem acc = baseOf(row).acc;
    return row.ends_with(std::string("_") + each.name) &&
           (acc == each.acc || (isFloat(acc) && isFloat(each.acc)));
  });
}

/// The node of a base over operands of these shapes.
struct Shaped {
  std::vector<Shape> operands;
  Shape result;
  OpKind kind;
  graph::Attrs attrs;
};
Shaped shaped(const Base& base, const std::string& size) {
  const std::string_view name = base.name;
  const bool large = size == "large";
  if (name.starts_with("matmul")) {
    const Shape sizes = large ? Shape{1, 37, 65, 48} : Shape{2, 3, 7, 5};
    const int64_t b = sizes[0], m = sizes[1], k = sizes[2], n = sizes[3];
    return {{{b, m, k}, {1, k, n}}, {b, m, n}, OpKind::BatchMatmul, {{"to", base.acc}}};
  }
  const graph::Attrs window{{"strides", std::vector<int64_t>{2, 1}},
                            {"pads", std::vector<int64_t>{1, 0, 1, 2}}};
  if (name.starts_with("conv2d")) {
    const int64_t c = large ? 16 : 3;
    const int64_t o = large ? 32 : 5;
    if (name.find("depthwise") != std::string_view::npos) {
      graph::Attrs grouped = window;
      grouped["group"] = c;
      return {{{1, c, 9, 8}, {c, 1, 3, 3}}, {1, c, 5, 8}, OpKind::ConvInteger, grouped};
    }
    return {{{1, c, 9, 8}, {o, c, 3, 3}},
            {1, o, 5, 8},
            isFloat(base.first) ? OpKind::Conv : OpKind::ConvInteger,
            window};
  }
  if (name.starts_with("reduce")) {
    const int64_t r = large ? 130 : 5;
    const int64_t i = large ? 1 : 4;
    return {{{6, r, i}},
            {6, i},
            OpKind::Reduce,
            {{"fn", std::string(name.substr(6, name.find('-') - 6))}}};
  }
  graph::Attrs pool = window;
  pool["kernel_shape"] = std::vector<int64_t>{3, 3};
  const int64_t c = large ? 16 : 3;
  return {{{1, c, 9, 8}},
          {1, c, 5, 8},
          name.starts_with("max") ? OpKind::MaxPool : OpKind::AveragePool,
          pool};
}

/// What the base computes on: exact numbers where what follows breaks ties.
TrialBuilder::Fill baseFill(Elem elem, const Epilogue& end, const std::string& data) {
  if (data != "ties") return fillOf(elem, isFloat(elem) ? data : "bits");
  return std::string_view(end.name) == "real" ? longIntegers() : wholeNumbers(elem, 1);
}

/// Numbers of the epilogue's view number `place`, which make the result one half-way between two:
/// the factor of a quantizer; multiplier, shift and zero point of RESCALE.
TrialBuilder::Fill tiedView(const Epilogue& end, Elem acc, size_t place) {
  if (quantizes(end)) return halfFactors(acc);
  switch (place) {
  case 0: return halfMultipliers();
  case 1: return halfShifts();
  default: return wholeNumbers(acc, 9);
  }
}

/// A number for each channel of images, or along the last dim of all else.
Shape perChannel(Shape dims) {
  const size_t channels = dims.size() == 4 ? 1 : dims.size() - 1;
  for (size_t d = 0; d < dims.size(); ++d)
    if (d != channels) dims[d] = 1;
  return dims;
}

OpCase epilogue(const Choice& choice) {
  const std::string& row = choice.at("row");
  const Base& base = baseOf(row);
  const Epilogue& end = epilogueOf(row);
  const Shaped shapes = shaped(base, choice.at("size"));
  const bool constant = choice.at("second") == "constant";
  OpCase made;
  const bool isTied = choice.at("data") == "ties";
  const auto data = [&](Elem elem) { return baseFill(elem, end, choice.at("data")); };
  made.operands = {{base.first, shapes.operands[0], data(base.first)}};
  if (base.second != Elem::none)
    made.operands.push_back({base.second, shapes.operands[1], data(base.second), constant});
  if (base.hasZero)
    made.operands.push_back({base.first,
                             {1},
                             isTied ? wholeNumbers(base.first, 1) : fillOf(base.first, "steps"),
                             true});
  const size_t own = made.operands.size();
  std::vector<Elem> elems{base.acc};
  for (const char view : std::string_view(end.views)) {
    const bool isPerChannel = view == 'c';
    made.operands.push_back({base.acc, isPerChannel ? perChannel(shapes.result) : shapes.result,
                             isTied ? tiedView(end, base.acc, elems.size() - 1)
                                    : fillOf(base.acc, quantizes(end) ? "calm" : "steps"),
                             constant && isPerChannel});
    elems.push_back(base.acc);
  }
  const std::string text = end.text;
  const auto from = [shapes, own, hasZero = base.hasZero](graph::Graph& graph, const Values& in) {
    Values operands(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(own));
    if (hasZero) operands.insert(operands.end() - 1, nullptr); // where the bias would be
    return write(graph, shapes.kind, std::move(operands), shapes.attrs);
  };
  const auto with = [from, own](graph::Graph& graph, const Values& in) -> Result<Values> {
    CDL_ASSIGN(Values operands, from(graph, in));
    operands.insert(operands.end(), in.begin() + static_cast<std::ptrdiff_t>(own), in.end());
    return operands;
  };
  const Elem to = endOf(text, elems);
  made.whole = [with, text, to](graph::Graph& graph, const Values& in) -> Result<Values> {
    CDL_ASSIGN(const Values operands, with(graph, in));
    return write(graph, OpKind::Expr, operands, {{"to", to}, {"steps", text}});
  };
  made.parts = [with, text](graph::Graph& graph, const Values& in) -> Result<Values> {
    CDL_ASSIGN(const Values operands, with(graph, in));
    return stepByStep(graph, text, operands);
  };
  made.onClaimedLayouts = choice.at("layout") == "claimed";
  return made;
}

OpFamily epilogues() {
  OpFamily made;
  made.family = {
      "ops:epilogue/",
      epilogueRows(),
      {{"size", {"small", "large"}},
       {"second", {"constant", "input"}},
       {"layout", {"rows", "claimed"}},
       {"data", {"steps", "calm", "ties"}}},
      [](const Choice& c) {
        const Base& base = baseOf(c.at("row"));
        const bool two = base.second != Elem::none, constant = c.at("second") == "constant";
        const bool claimed = c.at("layout") == "claimed", large = c.at("size") == "large";
        if (c.at("data") == "ties")
          return hasTies(base, epilogueOf(c.at("row"))) && constant && large == claimed &&
                 (two || !claimed);
        // Exact sums of halves lie on the steps of a quantizer.
        const bool rounds = quantizes(epilogueOf(c.at("row")));
        if (rounds && c.at("data") == "steps") return false;
        if (!rounds && !isFloat(base.first) && c.at("data") == "calm") return false;
        if (claimed) return two && constant && large && (rounds || c.at("data") == "steps");
        return constant || two || std::string_view(epilogueOf(c.at("row")).views).find('c') == 0;
      },
      {}};
  made.family.isTypical = [](const Choice& choice) { return choice.at("data") != "ties"; };
  // A store on blocked layouts may be another piece of code.
  made.family.tells = [](const Choice& choice) {
    return choice.at("data") == "ties" ? "ties on " + choice.at("layout") : "";
  };
  made.budget = {15, 34};
  made.make = epilogue;
  return made;
}

/// MATMUL and REDUCE are primitives; on layouts of a backend's own they belong here.
OpFamily products() {
  OpFamily made;
  made.family = {"ops:matmul_layouts/",
                 {"f32", "u8_i8", "i8_i8"},
                 {{"shape", {"1x16x32x48", "2x5x64x16", "1x1x33x32", "1x37x16x20"}}}, // b m k n
                 {},
                 {}};
  made.budget = {0, 5};
  made.make = [](const Choice& choice) {
    const std::vector<Elem> elems = elemsIn(choice.at("row"));
    const Shape dims = shapeOf(choice.at("shape"));
    const Elem to = isFloat(elems[0]) ? elems[0] : Elem::i32_;
    OpCase made;
    made.operands = {{elems[0], {dims[0], dims[1], dims[2]}, fillOf(elems[0], "steps")},
                     {elems.back(), {1, dims[2], dims[3]}, fillOf(elems.back(), "steps"), true}};
    made.whole = [to](graph::Graph& graph, const Values& in) {
      return write(graph, OpKind::BatchMatmul, in, {{"to", to}});
    };
    made.onClaimedLayouts = true;
    return made;
  };
  return made;
}

} // namespace

std::vector<OpFamily> expressionFamilies() { return {elementwise(), epilogues(), products()}; }

} // namespace candela::conformance::tiers::ops
