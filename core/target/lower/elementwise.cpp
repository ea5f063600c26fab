// Ops that have an instruction which the target does not take.
#include <limits>

#include "core/target/lower/shared.h"

namespace candela::target {

namespace {

// Coefficients from low to high, fitted at Chebyshev nodes.
// (tanh(x) / x - 1) / x^2 in x^2 for |x| <= 0.625; relative errors of tanh 1.7e-8 and 1.5e-18.
const std::vector<double> kTanh = {-0.33333328944134255, 0.13332769736976328, -0.053850909578513581,
                                   0.020997178999074751, -0.0060967141659081976};
const std::vector<double> kTanhLong = {-0.33333333333333333,   0.13333333333333042,    -0.053968253967896992,
                                       0.021869488519008306,   -0.0088632351032408779, 0.0035921217511549623,
                                       -0.0014557754120478055, 0.00058966065777570433, -0.0002375906496055562,
                                       9.2571161295567683e-5,  -3.12011014257974e-5,   6.4851634827931131e-6};
// erf(x) / x in x^2 for |x| <= 1; relative errors 1.3e-9 and 2.4e-21.
const std::vector<double> kErf = {1.1283791658483509,    -0.37612626666720331, 0.11283594715160218,
                                  -0.026854212010626412, 0.005189087423433974, -0.00080168642871658695,
                                  7.8758750626854883e-5};
const std::vector<double> kErfLong = {1.1283791670955126,     -0.37612638903183752,   0.1128379167095512,
                                      -0.026866170645129841,  0.0052239776254232983,  -0.00085483270219348296,
                                      0.00012055332902888735, -1.4925647567519332e-5, 1.6462045441468419e-6,
                                      -1.6364642158167615e-7, 1.4792401209404813e-8,  -1.216456005728345e-9,
                                      8.7090451290531067e-11, -4.2309458242953378e-12};
// -log(1 - erf(x)) in t = (x - (1 + end) / 2) / ((end - 1) / 2) for 1 <= x <= end; absolute errors
// of erf 4.8e-10 (end 4) and 4e-17 (end 6). Beyond the end erf is 1 in the type.
const std::vector<double> kErfc = {7.8068152727272644,     8.0290210113367308,     2.1237608331239641,
                                   0.036647578044776784,   -0.010961849217635256,  0.0031903054131416668,
                                   -0.0008803970815024043, 0.00022749950380415686, -4.1958400121675373e-5};
const std::vector<double> kErfcLong = {
    14.112437402148174,      18.165248970912977,     6.0422065921388599,     0.081650909717812208,
    -0.034128411075984803,   0.014384548330034056,   -0.0059537045467073006, 0.0023739972871857784,
    -0.00089357590221676497, 0.00030781949005153524, -9.0904817077207625e-5, 1.8474935013349413e-5,
    1.4917592686842429e-6,   -4.5674822828739303e-6, 3.3879906511036271e-6,  -1.9142474972678929e-6,
    9.6783116394371178e-7,   -3.9018039170275553e-7, 7.6441133156681796e-8,  -2.0037511430812822e-8,
    3.7630401073729453e-8,   -4.2399982430926151e-9, -1.8019347257583865e-8, 7.1596774245395752e-9};

Value polynomial(Lowering& l, Value x, const std::vector<double>& coefficients) {
  const Elem elem = x->type.elem;
  Value sum = l.scalar(elem, coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) sum = l.add(l.mul(sum, x), l.scalar(elem, coefficients[i]));
  return sum;
}

// `magnitude` with the sign of x.
Value withSign(Lowering& l, Value x, Value magnitude) {
  return l.select(l.less(x, l.scalar(x->type.elem, 0)), l.unary(OpKind::Neg, magnitude), magnitude);
}

// Near 0 the quotient would cancel, so a polynomial stands there; it also gives tiny x and -0 back
// as they are. NaN takes the quotient.
Value tanhOf(Lowering& l, Value x) {
  const Elem elem = x->type.elem;
  Value magnitude = l.unary(OpKind::Abs, x), one = l.scalar(elem, 1);
  Value t = l.unary(OpKind::Exp, l.mul(magnitude, l.scalar(elem, -2)));
  Value large = withSign(l, x, l.div(l.sub(one, t), l.add(one, t)));
  Value square = l.mul(x, x);
  Value small = l.add(x, l.mul(x, l.mul(square, polynomial(l, square, elem == Elem::f64_ ? kTanhLong : kTanh))));
  return l.select(l.less(magnitude, l.scalar(elem, 0.625)), small, large);
}

// exp only ever sees arguments <= 0, so nothing overflows.
Value sigmoidOf(Lowering& l, Value x) {
  const Elem elem = x->type.elem;
  Value t = l.unary(OpKind::Exp, l.unary(OpKind::Neg, l.unary(OpKind::Abs, x))), one = l.scalar(elem, 1);
  return l.div(l.select(l.less(x, l.scalar(elem, 0)), t, one), l.add(one, t));
}

Value erfOf(Lowering& l, Value x) {
  const Elem elem = x->type.elem;
  const bool isLong = elem == Elem::f64_;
  const double end = isLong ? 6 : 4;
  Value magnitude = l.unary(OpKind::Abs, x), square = l.mul(x, x);
  Value small = l.mul(x, polynomial(l, square, isLong ? kErfLong : kErf));
  Value t =
      l.mul(l.sub(l.min(magnitude, l.scalar(elem, end)), l.scalar(elem, (1 + end) / 2)), l.scalar(elem, 2 / (end - 1)));
  Value tail = l.unary(OpKind::Exp, l.unary(OpKind::Neg, polynomial(l, t, isLong ? kErfcLong : kErfc)));
  Value large = withSign(l, x, l.sub(l.scalar(elem, 1), tail));
  return l.select(l.less(magnitude, l.scalar(elem, 1)), small, large);
}

// exp(b log|a|), negative for odd powers of negative numbers, NaN for broken ones.
Value powOf(Lowering& l, Value a, Value b) {
  const auto number = [&](double value) { return l.scalar(a->type.elem, value); };
  const auto isWhole = [&](Value v) { return l.equal(v, l.unary(OpKind::Floor, v)); };
  Value magnitude = l.unary(OpKind::Abs, a), inverse = l.unary(OpKind::Reciprocal, a);
  // 1 to any power, where the product may be 0 times infinity.
  Value size = l.select(l.equal(magnitude, number(1)), number(1),
                        l.unary(OpKind::Exp, l.mul(b, l.unary(OpKind::Log, magnitude))));
  Value negative = l.select(isWhole(l.mul(b, number(0.5))), size, l.unary(OpKind::Neg, size));
  // A negative number has no root, but -0 and -infinity have: their product with the inverse is NaN.
  Value product = l.mul(a, inverse);
  Value broken = l.select(l.equal(product, product), number(std::numeric_limits<double>::quiet_NaN()), size);
  negative = l.select(isWhole(b), negative, broken);
  Value y = l.select(l.less(l.min(a, inverse), number(0)), negative, size);
  // Any number to the power 0, NaN too.
  return l.select(l.equal(b, number(0)), number(1), y);
}

// A function of float operands; in f32 where the target computes halves that way.
template <typename... Operands>
Value throughWide(Lowering& l, const Node& node, Value (*direct)(Lowering&, Operands...)) {
  const Elem elem = node.operand(0)->type.elem, wide = l.wide(elem);
  if (wide != elem) {
    std::vector<Value> operands;
    for (Value operand : node.operands()) operands.push_back(l.cast(operand, wide));
    return l.cast(l.node(node.kind, std::move(operands)), elem);
  }
  if constexpr (sizeof...(Operands) == 1)
    return direct(l, node.operand(0));
  else
    return direct(l, node.operand(0), node.operand(1));
}

bool isSmallInteger(Elem elem) { return isInteger(elem) && elemBits(elem) < 32 && !isStorageOnly(elem); }

// Casts that no single CONVERT does: by a comparison, or in two steps by way of i32, which holds
// every value between.
Values lowerCast(Lowering& l, const Node& node) {
  Value x = node.operand(0);
  const Elem from = x->type.elem, to = node.result()->type.elem;
  if (from == to) return {x};
  if (to == Elem::bool_) {
    Value isZero = l.equal(x, l.scalar(from, 0));
    return {l.select(isZero, l.scalar(to, 0), l.scalar(to, 1))};
  }
  const bool narrowSource = isSmallInteger(from) || from == Elem::bool_;
  const bool narrowTarget = isSmallInteger(to);
  if (from == Elem::i32_ || to == Elem::i32_ || (!narrowSource && !narrowTarget)) return {};
  graph::Attrs first{{"to", Elem::i32_}}, second{{"to", to}};
  for (graph::Attrs* attrs : {&first, &second}) attrs->emplace("saturate", node.intAttr("saturate"));
  return {l.node(OpKind::Cast, {l.node(OpKind::Cast, {x}, first)}, second)};
}

// The same op on i32, exact for every function that wraps, orders or truncates.
Values lowerThroughI32(Lowering& l, const Node& node) {
  std::vector<Value> operands;
  for (Value operand : node.operands())
    operands.push_back(isSmallInteger(operand->type.elem) ? l.cast(operand, Elem::i32_) : operand);
  return {l.cast(l.node(node.kind, std::move(operands), node.attrs), node.result()->type.elem)};
}

// Zero points outside of the product: (a - za)(b - zb) = ab - za b - zb a + za zb, summed in i32, which may wrap.
Values lowerZeroPoints(Lowering& l, const Node& node) {
  if (!node.operand(2) && !node.operand(3)) return {};
  Value a = node.operand(0), b = node.operand(1), y = l.matmul(a, b, Elem::i32_);
  const Shape aDims = a->type.shape(), bDims = b->type.shape();
  Value aZero = node.operand(2) ? l.cast(node.operand(2), Elem::i32_) : nullptr;
  Value bZero = node.operand(3) ? l.cast(node.operand(3), Elem::i32_) : nullptr;
  if (aZero) {
    Value columns = l.reshape(l.reduce3(l.cast(b, Elem::i32_), "sum"), {bDims[0], 1, bDims[2]});
    if (bZero) columns = l.sub(columns, l.mul(bZero, l.scalar(Elem::i32_, static_cast<double>(aDims[2]))));
    y = l.sub(y, l.mul(columns, aZero));
  }
  if (!bZero) return {y};
  Value rows = l.reduce3(l.reshape(l.cast(a, Elem::i32_), {aDims[0] * aDims[1], aDims[2], 1}), "sum");
  return {l.sub(y, l.mul(l.reshape(rows, {aDims[0], aDims[1], 1}), bZero))};
}

// Operands of the result's shape, for targets that refuse stride 0.
Values lowerExpanded(Lowering& l, const Node& node) {
  const Shape shape = node.result()->type.shape();
  std::vector<Value> operands;
  bool changed = false;
  for (Value operand : node.operands()) {
    operands.push_back(operand ? l.broadcast(operand, shape) : nullptr);
    changed |= operands.back() != operand;
  }
  if (!changed) return {};
  return {l.node(node.kind, std::move(operands), node.attrs)};
}

} // namespace

Result<Values> lowerElementwise(Lowering& l, const Node& node, const Answer& why) {
  const Elem elem = node.operands().empty() || !node.operand(0) ? Elem::none : node.operand(0)->type.elem;
  const bool expands = node.operands().size() > 1 && node.info().has(graph::kTraitElementwise);
  if (expands && (why.reason == CDL_REASON_OPERAND_CLASS || instructionsOf(node).empty()))
    if (Values values = lowerExpanded(l, node); !values.empty()) return values;
  switch (node.kind) {
  case OpKind::Tanh: return Values{throughWide(l, node, tanhOf)};
  case OpKind::Sigmoid: return Values{throughWide(l, node, sigmoidOf)};
  case OpKind::Erf: return Values{throughWide(l, node, erfOf)};
  case OpKind::Pow: return Values{throughWide(l, node, powOf)};
  case OpKind::Ceil: return Values{l.unary(OpKind::Neg, l.unary(OpKind::Floor, l.unary(OpKind::Neg, node.operand(0))))};
  case OpKind::Cast: return lowerCast(l, node);
  case OpKind::Neg:
    if (!isInteger(elem)) return Values{};
    return Values{l.sub(l.scalar(elem, 0), node.operand(0))};
  case OpKind::Abs:
    if (!isInteger(elem)) return Values{};
    if (isUnsigned(elem)) return Values{node.operand(0)};
    return Values{l.max(node.operand(0), l.sub(l.scalar(elem, 0), node.operand(0)))};
  case OpKind::BatchMatmul: return lowerZeroPoints(l, node);
  case OpKind::Round: {
    if (node.result()->type.elem == Elem::i32_ || !isSmallInteger(node.result()->type.elem)) return Values{};
    graph::Attrs attrs = node.attrs;
    attrs["to"] = Elem::i32_;
    return Values{l.node(OpKind::Cast, {l.node(OpKind::Round, {node.operand(0)}, attrs)},
                         {{"to", node.result()->type.elem}, {"saturate", node.intAttr("saturate")}})};
  }
  case OpKind::Add:
  case OpKind::Sub:
  case OpKind::Mul:
  case OpKind::Div:
  case OpKind::Min:
  case OpKind::Max:
  case OpKind::Equal:
  case OpKind::Less:
  case OpKind::Reduce:
    if (!isSmallInteger(elem)) return Values{};
    return lowerThroughI32(l, node);
  default: return Values{};
  }
}

} // namespace candela::target
