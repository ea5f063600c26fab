// Optional functions by required ones, and the composites beside them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/compiler/lowering/decompose/shared.h"

namespace candela::lowering::decompose {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A value with its builder, so that decompositions are written as formulas. Plain numbers take the
// type beside them.
struct Real {
  Lowering* l;
  Value value;
  Elem elem() const { return value->type.elem; }
  Real number(double x) const { return {l, l->scalar(elem(), x)}; }
};
#define CANDELA_FUNCTION(name, Kind)                                                               \
  Real name(const Real& a, const Real& b) {                                                        \
    return {a.l, a.l->binary(OpKind::Kind, a.value, b.value)};                                     \
  }                                                                                                \
  [[maybe_unused]] Real name(const Real& a, double b) { return name(a, a.number(b)); }             \
  [[maybe_unused]] Real name(double a, const Real& b) { return name(b.number(a), b); }
CANDELA_FUNCTION(operator+, Add)
CANDELA_FUNCTION(operator-, Sub)
CANDELA_FUNCTION(operator*, Mul)
CANDELA_FUNCTION(operator/, Div)
CANDELA_FUNCTION(min, Min)
CANDELA_FUNCTION(equal, Equal)
CANDELA_FUNCTION(less, Less)
CANDELA_FUNCTION(bitAnd, BitAnd)
CANDELA_FUNCTION(shiftRight, ShiftRight)
#undef CANDELA_FUNCTION
#define CANDELA_FUNCTION(name, Kind)                                                               \
  Real name(const Real& x) { return {x.l, x.l->unary(OpKind::Kind, x.value)}; }
CANDELA_FUNCTION(operator-, Neg)
CANDELA_FUNCTION(abs, Abs)
CANDELA_FUNCTION(floor, Floor)
CANDELA_FUNCTION(sqrt, Sqrt)
CANDELA_FUNCTION(exp, Exp)
CANDELA_FUNCTION(log, Log)
CANDELA_FUNCTION(log1p, Log1p)
CANDELA_FUNCTION(expm1, Expm1)
CANDELA_FUNCTION(atan, Atan)
#undef CANDELA_FUNCTION
Real select(const Real& condition, const Real& a, const Real& b) {
  return {a.l, a.l->select(condition.value, a.value, b.value)};
}
Real select(const Real& condition, const Real& a, double b) {
  return select(condition, a, a.number(b));
}
Real select(const Real& condition, double a, const Real& b) {
  return select(condition, b.number(a), b);
}

// Coefficients from low to high, fitted at Chebyshev nodes.
// (tanh(x) / x - 1) / x^2 in x^2 for |x| <= 0.625; relative errors of tanh 1.7e-8 and 1.5e-18.
const std::vector<double> kTanh = {-0.33333328944134255, 0.13332769736976328, -0.053850909578513581,
                                   0.020997178999074751, -0.0060967141659081976};
const std::vector<double> kTanhLong = {
    -0.33333333333333333,   0.13333333333333042,   -0.053968253967896992,  0.021869488519008306,
    -0.0088632351032408779, 0.0035921217511549623, -0.0014557754120478055, 0.00058966065777570433,
    -0.0002375906496055562, 9.2571161295567683e-5, -3.12011014257974e-5,   6.4851634827931131e-6};
// erf(x) / x in x^2 for |x| <= 1; relative errors 1.3e-9 and 2.4e-21.
const std::vector<double> kErf = {
    1.1283791658483509,   -0.37612626666720331,    0.11283594715160218,  -0.026854212010626412,
    0.005189087423433974, -0.00080168642871658695, 7.8758750626854883e-5};
const std::vector<double> kErfLong = {
    1.1283791670955126,     -0.37612638903183752,    0.1128379167095512,     -0.026866170645129841,
    0.0052239776254232983,  -0.00085483270219348296, 0.00012055332902888735, -1.4925647567519332e-5,
    1.6462045441468419e-6,  -1.6364642158167615e-7,  1.4792401209404813e-8,  -1.216456005728345e-9,
    8.7090451290531067e-11, -4.2309458242953378e-12};
// -log(1 - erf(x)) in t = (x - (1 + end) / 2) / ((end - 1) / 2) for 1 <= x <= end; absolute errors
// of erf 4.8e-10 (end 4) and 4e-17 (end 6). Beyond the end erf is 1 in the type.
const std::vector<double> kErfc = {
    7.8068152727272644,     8.0290210113367308,     2.1237608331239641,
    0.036647578044776784,   -0.010961849217635256,  0.0031903054131416668,
    -0.0008803970815024043, 0.00022749950380415686, -4.1958400121675373e-5};
const std::vector<double> kErfcLong = {
    14.112437402148174,      18.165248970912977,     6.0422065921388599,     0.081650909717812208,
    -0.034128411075984803,   0.014384548330034056,   -0.0059537045467073006, 0.0023739972871857784,
    -0.00089357590221676497, 0.00030781949005153524, -9.0904817077207625e-5, 1.8474935013349413e-5,
    1.4917592686842429e-6,   -4.5674822828739303e-6, 3.3879906511036271e-6,  -1.9142474972678929e-6,
    9.6783116394371178e-7,   -3.9018039170275553e-7, 7.6441133156681796e-8,  -2.0037511430812822e-8,
    3.7630401073729453e-8,   -4.2399982430926151e-9, -1.8019347257583865e-8, 7.1596774245395752e-9};

// (sin(x) / x - 1) / x^2 and (cos(x) - 1 + x^2 / 2) / x^4 in x^2 for |x| <= 0.9; relative errors of
// sin and cos 7.1e-11 and 8.5e-18, 4.6e-9 and 2.4e-18.
const std::vector<double> kSin = {-0.16666666658328608, 0.008333330038749817,
                                  -0.0001983923436108426, 2.715435939613437e-06};
const std::vector<double> kSinLong = {-0.16666666666666666,    0.008333333333333333,
                                      -0.00019841269841269822, 2.755731922396722e-06,
                                      -2.5052108376384132e-08, 1.6059041450297783e-10,
                                      -7.646815275848588e-13,  2.784944034327906e-15};
const std::vector<double> kCos = {0.04166666213199151, -0.001388788083889204, 2.44690668391583e-05};
const std::vector<double> kCosLong = {
    0.041666666666666664,  -0.0013888888888888883, 2.4801587301576954e-05, -2.7557319216318975e-07,
    2.087675428242947e-09, -1.147025537705165e-11, 4.735396865320833e-14};
// (atan(x) / x - 1) / x^2 in x^2 for |x| <= tan(pi / 8); relative errors of atan 2.3e-9 and
// 6.8e-18.
const std::vector<double> kAtan = {-0.3333333175381697, 0.1999953879477192, -0.14263897112598675,
                                   0.1074309966767457, -0.06449835224591496};
const std::vector<double> kAtanLong = {
    -0.3333333333333333,  0.1999999999999548,  -0.14285714284657894, 0.11111111014561013,
    -0.09090904549884611, 0.07692182535116648, -0.06664502215671447, 0.058580687568615106,
    -0.05085030492810941, 0.03921955253255129, -0.019162068915902573};
// pi, 20 bits behind the point in the first and 24 more in each other.
constexpr int64_t kPi[] = {0x3243f6, 0xa8885a, 0x308d31, 0x3198a2, 0xe03707, 0x344a40, 0x938222};

Real polynomial(const Real& x, const std::vector<double>& coefficients) {
  Real sum = x.number(coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

// `magnitude` with the sign of x.
Real withSign(const Real& x, const Real& magnitude) {
  return select(less(x, 0), -magnitude, magnitude);
}
// The value at 0 of what is odd: 0 with its sign.
Real keepZero(const Real& x, const Real& y) { return select(equal(x, 0), x, y); }

// Near 0 the quotient would cancel, so a polynomial stands there; it also gives tiny x back as it
// is. NaN takes the quotient.
Real tanhOf(const Real& x) {
  const Real magnitude = abs(x), t = exp(magnitude * -2);
  const Real large = withSign(x, (1 - t) / (1 + t)), square = x * x;
  const Real small =
      x + x * (square * polynomial(square, x.elem() == Elem::f64_ ? kTanhLong : kTanh));
  return select(less(magnitude, 0.625), small, large);
}

// exp only ever sees arguments <= 0, so nothing overflows.
Real sigmoidOf(const Real& x) {
  const Real t = exp(-abs(x));
  return select(less(x, 0), t, 1) / (1 + t);
}

Real erfOf(const Real& x) {
  const bool isLong = x.elem() == Elem::f64_;
  const double end = isLong ? 6 : 4;
  const Real magnitude = abs(x), small = x * polynomial(x * x, isLong ? kErfLong : kErf);
  const Real t = (min(magnitude, end) - (1 + end) / 2) * (2 / (end - 1));
  const Real tail = exp(-polynomial(t, isLong ? kErfcLong : kErfc));
  return select(less(magnitude, 1), small, withSign(x, 1 - tail));
}

// exp(b log|a|), negative for odd powers of negative numbers, NaN for broken ones.
Real powOf(const Real& a, const Real& b) {
  const auto isWhole = [](const Real& v) { return equal(v, floor(v)); };
  const Real magnitude = abs(a), inverse = 1 / a;
  // 1 to any power, where the product may be 0 times infinity.
  const Real size = select(equal(magnitude, 1), 1, exp(b * log(magnitude)));
  // A negative number has no root, but -0 and -infinity have: their product with the inverse is
  // NaN.
  const Real product = a * inverse, root = select(equal(product, product), kNan, size);
  const Real negative = select(isWhole(b), select(isWhole(b * 0.5), size, -size), root);
  // Any number to the power 0, NaN too.
  return select(equal(b, 0), 1, select(less(min(a, inverse), 0), negative, size));
}

// By squaring, as many steps as the exponents have bits.
Real wholePowerOf(const Real& a, const Real& b) {
  int bits = elemBits(a.elem()) - (isUnsigned(a.elem()) ? 0 : 1);
  if (b.value->isConstant() && b.value->type.count() <= 4096)
    if (const auto tensor = b.value->tensor()) {
      uint64_t all = 0;
      for (int64_t i = 0; i < tensor->count(); ++i)
        all |= loadElement(tensor->elem, tensor->bytes.data(), i);
      while (bits > 1 && !(all >> (bits - 1))) --bits;
    }
  Real power = a.number(1), factor = a, rest = b;
  for (int i = 0; i < bits; ++i) {
    power = select(equal(bitAnd(rest, 1), 1), power * factor, power);
    if (i + 1 == bits) break;
    factor = factor * factor;
    rest = shiftRight(rest, 1);
  }
  if (isUnsigned(a.elem())) return power;
  const Real sign = select(equal(bitAnd(b, 1), 1), -1, a.number(1));
  return select(less(b, 0), select(equal(a, 1), 1, select(equal(a, -1), sign, 0)), power);
}

// Each multiple of b that is taken away leaves an exact rest, as it is between half of that and all
// of it.
Real remOf(const Real& a, const Real& b) {
  const Real divisor = abs(b);
  Real rest = abs(a);
  for (int k = digits(a.elem()); k-- > 0;) {
    const Real multiple = divisor * std::ldexp(1.0, k);
    rest = select(less(rest, multiple), rest, rest - multiple);
  }
  return withSign(a, select(less(rest, divisor), rest, kNan)); // also for 0, infinity and NaN
}

Real truncOf(const Real& x) { return select(less(x, 0), -floor(-x), floor(x)); }

// Numbers beyond 2^(digits - 1) are whole; adding that to others rounds them.
Real roundEvenOf(const Real& x) {
  const double shift = std::ldexp(1.0, digits(x.elem()) - 1);
  const Real magnitude = abs(x);
  const Real y =
      withSign(x, select(less(magnitude, shift), (magnitude + shift) - shift, magnitude));
  return select(equal(y, 0), x * 0, y);
}

// What rounding makes of 1 + x is made up for by the quotient.
Real log1pOf(const Real& x) {
  const Real sum = x + 1;
  const Real near = select(equal(sum, 1), x, log(sum) * (x / (sum - 1)));
  return select(less(x, std::ldexp(1.0, digits(x.elem()))), near, log(x));
}
// The same for exp(x); beyond 1 nothing cancels.
Real expm1Of(const Real& x) {
  const Real power = exp(x);
  const Real near = select(equal(power, 1), x, (power - 1) * (x / log(power)));
  return select(less(abs(x), 1), near, power - 1);
}

// |x| less the nearest multiple of pi / 2, and which one. Every product is exact: of half as many
// digits of the multiple with half as many of pi. Beyond what that carries NaN is better than a
// number without a true digit.
struct Angle {
  Real rest, quarters;
};
// The i-th piece of pi / 2: a word of kPi, or half of one.
double pieceOfPi(int i, bool wholeWord) {
  if (wholeWord) return std::ldexp(double(kPi[i]), -21 - 24 * i);
  const int64_t word = kPi[i / 2];
  if (i % 2) return std::ldexp(double(word & 0xfff), -21 - 12 * (i - 1));
  return std::ldexp(double(word >> 12), -9 - 12 * i);
}
Angle angleOf(const Real& x) {
  const int precision = digits(x.elem()), half = precision == 24 ? 12 : 24;
  const Real magnitude = abs(x), quarters = floor(magnitude * (2 / std::numbers::pi) + 0.5);
  const Real high = floor(quarters * std::ldexp(1.0, -half)) * std::ldexp(1.0, half),
             low = quarters - high;
  Real rest = select(less(magnitude, std::ldexp(1.0, precision - 4)), magnitude, kNan);
  for (int i = 0; i < 7; ++i) {
    const double piece = pieceOfPi(i, half == 24);
    rest = rest - high * piece - low * piece;
  }
  return {rest, quarters};
}
Real isOdd(const Real& whole) {
  const Real half = whole * 0.5;
  return less(floor(half), half);
}
Real sinOfRest(const Real& x) {
  const Real square = x * x;
  return x + x * (square * polynomial(square, x.elem() == Elem::f64_ ? kSinLong : kSin));
}
Real cosOfRest(const Real& x) {
  const Real square = x * x;
  return 1 - (square * 0.5 -
              square * square * polynomial(square, x.elem() == Elem::f64_ ? kCosLong : kCos));
}
Real sinOf(const Real& x) {
  const Angle angle = angleOf(x);
  const Real y = select(isOdd(angle.quarters), cosOfRest(angle.rest), sinOfRest(angle.rest));
  return keepZero(x, withSign(x, select(isOdd(floor(angle.quarters * 0.5)), -y, y)));
}
Real cosOf(const Real& x) {
  const Angle angle = angleOf(x);
  const Real y = select(isOdd(angle.quarters), sinOfRest(angle.rest), cosOfRest(angle.rest));
  return select(isOdd(floor((angle.quarters + 1) * 0.5)), -y, y);
}
Real tanOf(const Real& x) {
  const Angle angle = angleOf(x);
  const Real sine = sinOfRest(angle.rest), cosine = cosOfRest(angle.rest),
             odd = isOdd(angle.quarters);
  return keepZero(x, withSign(x, select(odd, cosine, sine) / select(odd, -sine, cosine)));
}

// As pi / 4 and an angle, or pi / 2 and one, beyond the tangents of pi / 8 and 3 pi / 8. NaN takes
// the last.
Real atanOf(const Real& x) {
  const double end = std::numbers::sqrt2 - 1;
  const Real m = abs(x), isSmall = less(m, end), isMiddle = less(m, 1 / end);
  const Real t = select(isSmall, m, select(isMiddle, m - 1, -1)) /
                 select(isSmall, 1, select(isMiddle, m + 1, m));
  const Real start =
      select(isSmall, 0, select(isMiddle, std::numbers::pi / 4, m.number(std::numbers::pi / 2)));
  const Real square = t * t,
             tail = square * polynomial(square, x.elem() == Elem::f64_ ? kAtanLong : kAtan);
  return keepZero(x, withSign(x, start + (t + t * tail)));
}
Real asinOf(const Real& x) { return atan(x / sqrt((1 - x) * (1 + x))); }
Real acosOf(const Real& x) { return atan(sqrt((1 - x) / (1 + x))) * 2; }

// The square of exp(x / 2) does not overflow before the result does.
Real coshOf(const Real& x) {
  const Real root = exp(abs(x) * 0.5);
  return root * 0.5 * root + 0.5 / (root * root);
}
Real sinhOf(const Real& x) {
  const Real magnitude = abs(x), root = exp(magnitude * 0.5), t = expm1(x);
  const Real large = root * 0.5 * root - 0.5 / (root * root);
  return select(less(magnitude, 1), (t + t / (t + 1)) * 0.5, withSign(x, large));
}
// Where x^2 + 1 is x^2 the logarithm of 2x is as good, and does not overflow.
Real logOfTwice(const Real& x, const Real& y) {
  return select(less(x, std::ldexp(1.0, digits(x.elem()) / 2 + 2)), y, log(x) + std::numbers::ln2);
}
Real asinhOf(const Real& x) {
  const Real m = abs(x), square = m * m;
  return keepZero(x, withSign(x, logOfTwice(m, log1p(m + square / (sqrt(square + 1) + 1)))));
}
Real acoshOf(const Real& x) {
  const Real above = x - 1;
  return logOfTwice(x, log1p(above + sqrt(above) * sqrt(above + 2)));
}
Real atanhOf(const Real& x) { return (log1p(x) - log1p(-x)) * 0.5; }

// In f32 where the target computes halves that way.
template <typename Function> Values throughWide(Lowering& l, const Node& node, Function direct) {
  const Elem elem = node.operand(0)->type.elem, wide = l.wide(elem);
  if (wide == elem) return {direct(Real{&l, node.operand(0)}).value};
  std::vector<Value> operands;
  for (Value operand : node.operands()) operands.push_back(l.cast(operand, wide));
  return {l.cast(l.node(node.kind, std::move(operands)), elem)};
}
// What a half has too few digits for.
template <typename Function> Values inWide(Lowering& l, const Node& node, Function direct) {
  const Elem elem = node.operand(0)->type.elem;
  if (elemBits(elem) == 16 && l.wide(elem) == elem) return {};
  return throughWide(l, node, direct);
}

Values integerFunction(Lowering& l, const Node& node) {
  const Real a{&l, node.operand(0)}, b{&l, node.operand(1)};
  if (isSmallInteger(a.elem())) return lowerThroughI32(l, node);
  if (node.kind == OpKind::Rem) return {(a - a / b * b).value};
  if (node.kind == OpKind::Pow) return {wholePowerOf(a, b).value};
  return {};
}

} // namespace

Values lowerFunction(Lowering& l, const Node& node) {
  switch (node.kind) {
  case OpKind::Tanh: return throughWide(l, node, tanhOf);
  case OpKind::Sigmoid: return throughWide(l, node, sigmoidOf);
  case OpKind::Erf: return throughWide(l, node, erfOf);
  case OpKind::Ceil: return {(-floor(-Real{&l, node.operand(0)})).value};
  case OpKind::Trunc: return {truncOf(Real{&l, node.operand(0)}).value};
  case OpKind::RoundEven: return {roundEvenOf(Real{&l, node.operand(0)}).value};
  case OpKind::Log1p: return throughWide(l, node, log1pOf);
  case OpKind::Expm1: return throughWide(l, node, expm1Of);
  case OpKind::Sin: return inWide(l, node, sinOf);
  case OpKind::Cos: return inWide(l, node, cosOf);
  case OpKind::Tan: return inWide(l, node, tanOf);
  case OpKind::Pow:
  case OpKind::Rem:
    if (isInteger(node.result()->type.elem)) return integerFunction(l, node);
    if (node.kind == OpKind::Pow)
      return throughWide(l, node, [&](const Real& a) { return powOf(a, {&l, node.operand(1)}); });
    return inWide(l, node, [&](const Real& a) { return remOf(a, {&l, node.operand(1)}); });
  case OpKind::BitAnd:
  case OpKind::BitOr:
  case OpKind::BitXor:
  case OpKind::ShiftLeft:
  case OpKind::ShiftRight: return integerFunction(l, node);
  default: return {};
  }
}

#define CANDELA_FUNCTION(Kind, direct)                                                             \
  Result<Values> lower##Kind(Lowering& l, const Node& node) { return throughWide(l, node, direct); }
CANDELA_FUNCTION(Asin, asinOf)
CANDELA_FUNCTION(Acos, acosOf)
CANDELA_FUNCTION(Atan, atanOf)
CANDELA_FUNCTION(Sinh, sinhOf)
CANDELA_FUNCTION(Cosh, coshOf)
CANDELA_FUNCTION(Asinh, asinhOf)
CANDELA_FUNCTION(Acosh, acoshOf)
CANDELA_FUNCTION(Atanh, atanhOf)
#undef CANDELA_FUNCTION

} // namespace candela::lowering::decompose
