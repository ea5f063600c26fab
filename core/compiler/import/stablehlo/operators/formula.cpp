// Functions that are formulas of others.
#include <cmath>
#include <limits>

#include "core/compiler/import/stablehlo/broadcast.h"

namespace candela::import::stablehlo {
namespace {

/// Operators on names, which say what a formula says.
struct Formula {
  Step& step;
  Elem elem;

  Name number(double value) const { return step.number(value, elem); }
  Name add(const Name& a, const Name& b) const { return step.add("Add", {a, b}); }
  Name sub(const Name& a, const Name& b) const { return step.add("Sub", {a, b}); }
  Name mul(const Name& a, const Name& b) const { return step.add("Mul", {a, b}); }
  Name div(const Name& a, const Name& b) const { return step.add("Div", {a, b}); }
  Name less(const Name& a, const Name& b) const { return step.add("Less", {a, b}); }
  Name equal(const Name& a, const Name& b) const { return step.add("Equal", {a, b}); }
  Name where(const Name& is, const Name& a, const Name& b) const {
    return step.add("Where", {is, a, b});
  }
  Name of(const char* op, const Name& x) const { return step.add(op, {x}); }
};

using Function = Name (*)(const Formula&, const Name& x);

template <Function F> void writeFormula(Step& step) {
  const Operands x = floatOperand(step);
  step.setKept(F({step, step.output().elem}, x.names[0]), x.kept);
}

Name rsqrt(const Formula& f, const Name& x) { return f.of("Reciprocal", f.of("Sqrt", x)); }
Name square(const Formula& f, const Name& x) { return f.mul(x, x); }

const onnx_io::Node* nodeOf(Step& step, const Name& value, const char* op) {
  const std::vector<onnx_io::Node>& nodes = step.scope().graph().nodes;
  for (auto node = nodes.rbegin(); node != nodes.rend() && node - nodes.rbegin() < 16; ++node)
    if (node->outputs[0] == value) return node->opType == op ? &*node : nullptr;
  return nullptr;
}

/// Of -x * c, as a GELU has it, 1 + erf(x * c), in which passes of the Graph see one.
Name erfc(const Formula& f, const Name& x) {
  const onnx_io::Node* product = nodeOf(f.step, x, "Mul");
  for (const size_t i : {0, 1}) {
    const onnx_io::Node* negated = product ? nodeOf(f.step, product->inputs[i], "Neg") : nullptr;
    if (!negated) continue;
    const Name plain = negated->inputs[0], scale = product->inputs[1 - i];
    return f.add(f.of("Erf", f.mul(plain, scale)), f.number(1));
  }
  return f.sub(f.number(1), f.of("Erf", x));
}

Name cbrt(const Formula& f, const Name& x) {
  const Name root = f.step.add("Pow", {f.of("Abs", x), f.number(1.0 / 3)});
  return f.mul(f.of("Sign", x), root);
}

/// tanh(x / 2) * (exp(x) + 1) is exp(x) - 1 without its cancellation near 0.
Name expm1(const Formula& f, const Name& x) {
  const Name half = f.of("Tanh", f.mul(x, f.number(0.5)));
  return f.mul(half, f.add(f.of("Exp", x), f.number(1)));
}

/// Near 0 log(u) * x / (u - 1) of the rounded u = 1 + x, whose errors cancel.
Name log1p(const Formula& f, const Name& x) {
  const Name u = f.add(x, f.number(1));
  const Name apart = f.sub(u, f.number(1));
  const Name log = f.of("Log", u);
  const Name isTiny = f.equal(apart, f.number(0));
  const Name divisor = f.where(isTiny, f.number(1), apart);
  const Name near = f.where(isTiny, x, f.mul(log, f.div(x, divisor)));
  return f.where(f.less(f.of("Abs", x), f.number(0.5)), near, log);
}

/// Halves away from zero; halves are exact, so that nothing is rounded on the way.
Name roundAway(const Formula& f, const Name& x) {
  const Name magnitude = f.of("Abs", x);
  const Name below = f.of("Floor", magnitude);
  const Name isBelow = f.less(f.sub(magnitude, below), f.number(0.5));
  return f.mul(f.of("Sign", x), f.where(isBelow, below, f.add(below, f.number(1))));
}

Name polynomial(const Formula& f, const Name& x, std::initializer_list<double> coefficients) {
  Name sum;
  for (const double coefficient : coefficients)
    sum = sum.empty() ? f.number(coefficient) : f.add(f.mul(sum, x), f.number(coefficient));
  return sum;
}

/// By polynomials of w = -log(1 - x * x), one below 5 and one above (Giles, "Approximating the
/// erfinv function"), good for f32.
Name erfInverse(const Formula& f, const Name& x) {
  const Name w =
      f.of("Neg", f.step.add("Log", {f.mul(f.sub(f.number(1), x), f.add(f.number(1), x))}));
  const Name middle = f.sub(w, f.number(2.5));
  const Name inner =
      polynomial(f, middle,
                 {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                  -0.00125372503, -0.00417768164, 0.246640727, 1.50140941});
  const Name tail = f.sub(f.of("Sqrt", w), f.number(3));
  const Name outer =
      polynomial(f, tail,
                 {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                  -0.0076224613, 0.00943887047, 1.00167406, 2.83297682});
  const Name finite = f.mul(f.where(f.less(w, f.number(5)), inner, outer), x);
  const Name isEnd = f.equal(f.of("Abs", x), f.number(1));
  return f.where(isEnd, f.mul(x, f.number(INFINITY)), finite);
}

void writeErfInverse(Step& step) {
  if (step.output().elem == Elem::f64_) refuse("its result is f64, whose digits it does not have");
  writeFormula<erfInverse>(step);
}

/// atan(y / x), turned by half a circle where x is negative; of zeros what their signs say is not
/// seen.
void writeAtan2(Step& step) {
  const Elem elem = step.output().elem;
  if (!isFloat(elem)) refuse("its result is {}, expected floats", step.output().text());
  const Operands both = elementwiseOperands(step);
  const Formula f{step, elem};
  const auto isInfinite = [&](const Name& value) {
    return f.equal(f.of("Abs", value), f.number(std::numeric_limits<double>::infinity()));
  };
  // Of two infinities the signs say the angle, which their ratio does not.
  const Name areInfinite = step.add("And", {isInfinite(both.names[0]), isInfinite(both.names[1])});
  const Name y = f.where(areInfinite, f.of("Sign", both.names[0]), both.names[0]);
  const Name x = f.where(areInfinite, f.of("Sign", both.names[1]), both.names[1]);
  const Name zero = f.number(0), pi = f.number(M_PI), half = f.number(M_PI / 2);
  const Name isBelow = f.less(y, zero);
  const auto signedBy = [&](const Name& angle) {
    return f.where(isBelow, f.of("Neg", angle), angle);
  };
  const Name onAxis = f.where(f.equal(y, zero), zero, signedBy(half));
  const Name isAxis = f.equal(x, zero);
  const Name plain = f.of("Atan", f.div(y, f.where(isAxis, f.number(1), x)));
  const Name beside = f.where(f.less(x, zero), f.add(plain, signedBy(pi)), plain);
  step.setKept(f.where(isAxis, onAxis, beside), both.kept);
}

/// To the exponents and significands of another type, and back.
void writeReducePrecision(Step& step) {
  const Operands x = floatOperand(step);
  std::string format = step.word("format", 0);
  if (format.empty())
    format = fmt::format("e{}m{}", step.integer("exponent_bits"), step.integer("mantissa_bits"));
  const Elem elem = step.output().elem;
  if (format == "e8m23" && elem == Elem::f32_) return step.setValue(step.input(0));
  Elem narrow = Elem::none;
  if (format == "e5m10") narrow = Elem::f16_;
  if (format == "e8m7") narrow = Elem::bf16_;
  if (narrow == Elem::none || elem != Elem::f32_)
    refuse("format {} of {} is not supported", format, elemName(elem));
  step.setKept(step.cast(step.cast(x.names[0], narrow), elem), x.kept);
}

void writeIsFinite(Step& step) {
  const Operands x = elementwiseOperands(step);
  const Elem elem = step.type(0).elem;
  step.expectElem(Elem::bool_);
  if (!isFloat(elem)) refuse("operand 0 is {}, expected floats", step.type(0).text());
  // No difference of two that are not.
  const Name apart = step.add("Sub", {x.names[0], x.names[0]});
  step.setKept(step.add("Equal", {apart, step.number(0, elem)}), x.kept);
}

/// (x - mean) * scale / sqrt(variance + epsilon) + offset, along one dim.
void writeBatchNorm(Step& step) {
  const Part x = step.part(0);
  const Elem elem = step.type(0).elem;
  const int64_t axis = step.integer("feature_index");
  step.checkAxes({axis}, x.dims.size(), "feature_index");
  const Attribute* epsilon = step.find("epsilon");
  if (!epsilon || epsilon->kind != Attribute::Kind::number) reject("attribute epsilon is missing");
  Shape dims(x.dims.size(), 1);
  dims[static_cast<size_t>(axis)] = x.dims[static_cast<size_t>(axis)];
  std::vector<Name> rows;
  for (size_t i = 1; i < 5; ++i) {
    if (step.type(i).dims != Shape{dims[static_cast<size_t>(axis)]})
      reject("operand {} is {}, which is not as long as dim {}", i, step.type(i).text(), axis);
    rows.push_back(step.reshape(step.part(i), dims).name);
  }
  const Formula f{step, elem};
  const Name deviation = f.of("Sqrt", f.add(rows[3], f.number(epsilon->number)));
  const Name scale = f.div(rows[0], deviation);
  const Name y = f.add(f.mul(f.sub(x.name, rows[2]), scale), rows[1]);
  step.setPart({y, x.dims});
}

constexpr std::string_view kZeroLimits = "the sign of a zero does not count";

constexpr Operator kFormula[] = {
    {"chlo.erf_inv", 1, 1, 0, writeErfInverse, "not of f64"},
    {"chlo.erfc", 1, 1, 0, writeFormula<erfc>},
    {"chlo.square", 1, 1, 0, writeFormula<square>},
    {"stablehlo.atan2", 2, 2, 0, writeAtan2, kZeroLimits},
    {"stablehlo.batch_norm_inference", 5, 5, 0, writeBatchNorm},
    {"stablehlo.cbrt", 1, 1, 0, writeFormula<cbrt>},
    {"stablehlo.exponential_minus_one", 1, 1, 0, writeFormula<expm1>},
    {"stablehlo.is_finite", 1, 1, 0, writeIsFinite},
    {"stablehlo.log_plus_one", 1, 1, 0, writeFormula<log1p>},
    {"stablehlo.reduce_precision", 1, 1, 0, writeReducePrecision, "to f16 and bf16, of f32"},
    {"stablehlo.round_nearest_afz", 1, 1, 0, writeFormula<roundAway>},
    {"stablehlo.rsqrt", 1, 1, 0, writeFormula<rsqrt>},
};

} // namespace

std::span<const Operator> formulaOperators() { return kFormula; }

} // namespace candela::import::stablehlo
