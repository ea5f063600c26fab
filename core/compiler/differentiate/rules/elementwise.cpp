// Element by element: the derivative of each op at a place, times what comes back to that place.
#include <cmath>
#include <numbers>

#include "core/compiler/differentiate/rules.h"

namespace candela::differentiate {
namespace {

/// Of an op of one operand: dx = dy * slope.
void giveSlope(const Step& step, const std::function<Term()>& slope) {
  step.give(0, [&] { return step.dy() * slope(); });
}

/// How much of what comes back the operand gets that `wins` (a < b: b of a maximum): all, or half
/// where both are equal.
Term shareOf(const Term& loses, const Term& wins, Elem elem) {
  Writer& writer = wins.writer();
  const auto number = [&](double value) { return full(writer, value, {}, elem); };
  return select(wins, number(1), select(loses, number(0), number(0.5)));
}

} // namespace

void addRule(const Step& step) {
  step.give(0, [&] { return step.dy(); });
  step.give(1, [&] { return step.dy(); });
}

void subRule(const Step& step) {
  step.give(0, [&] { return step.dy(); });
  step.give(1, [&] { return -step.dy(); });
}

void mulRule(const Step& step) {
  step.give(0, [&] { return step.dy() * step.x(1); });
  step.give(1, [&] { return step.dy() * step.x(0); });
}

void divRule(const Step& step) {
  step.give(0, [&] { return step.dy() / step.x(1); });
  step.give(1, [&] { return -(step.dy() * step.y()) / step.x(1); });
}

void maxRule(const Step& step) {
  const auto give = [&](size_t self, size_t other) {
    step.give(self, [&] {
      const Term wins = less(step.x(other), step.x(self)),
                 loses = less(step.x(self), step.x(other));
      return step.dy() * shareOf(loses, wins, step.y().elem());
    });
  };
  give(0, 1);
  give(1, 0);
}

void minRule(const Step& step) {
  const auto give = [&](size_t self, size_t other) {
    step.give(self, [&] {
      const Term wins = less(step.x(self), step.x(other)),
                 loses = less(step.x(other), step.x(self));
      return step.dy() * shareOf(loses, wins, step.y().elem());
    });
  };
  give(0, 1);
  give(1, 0);
}

void selectRule(const Step& step) {
  step.give(1, [&] { return where(step.x(0), step.dy()); });
  step.give(2, [&] { return where(logicalNot(step.x(0)), step.dy()); });
}

void negRule(const Step& step) {
  step.give(0, [&] { return -step.dy(); });
}

/// 0 at 0, as of relu.
void absRule(const Step& step) {
  step.give(0, [&] {
    const Term x = step.x(0);
    const Term dy = step.dy();
    return select(less(x, 0), -dy, where(less(0, x), dy));
  });
}

/// Of floor and its like: nothing comes back from a function that stands still.
void stepFunctionRule(const Step&) {}

void sqrtRule(const Step& step) {
  step.give(0, [&] { return step.dy() / (step.y() * 2); });
}

void reciprocalRule(const Step& step) {
  giveSlope(step, [&] { return -(step.y() * step.y()); });
}

void expRule(const Step& step) {
  giveSlope(step, [&] { return step.y(); });
}

void logRule(const Step& step) {
  step.give(0, [&] { return step.dy() / step.x(0); });
}

void tanhRule(const Step& step) {
  giveSlope(step, [&] { return 1 - step.y() * step.y(); });
}

void sigmoidRule(const Step& step) {
  giveSlope(step, [&] { return step.y() * (1 - step.y()); });
}

void erfRule(const Step& step) {
  giveSlope(step, [&] {
    const Term x = step.x(0);
    return exp(-(x * x)) * (2 * std::numbers::inv_sqrtpi);
  });
}

/// Where b is 0 the power is 1 for every a; where a is 0 no b above 0 changes it.
void powRule(const Step& step) {
  const Term a = step.x(0);
  const Term b = step.x(1);
  step.give(0, [&] {
    const Term flat = equal(b, 0);
    const Term lower = pow(a, select(flat, b.number(1), b - 1));
    return step.dy() * select(flat, b.number(0), b * lower);
  });
  step.give(1, [&] {
    const Term base = select(equal(a, 0), a.number(1), a);
    return step.dy() * (step.y() * log(base));
  });
}

/// Phi(x) + x * phi(x), of the normal distribution.
void geluRule(const Step& step) {
  giveSlope(step, [&] {
    const Term x = step.x(0);
    const Term below = (erf(x * (1 / std::numbers::sqrt2)) + 1) * 0.5;
    const double height = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    return below + x * (exp(x * x * -0.5) * height);
  });
}

void reluRule(const Step& step) {
  step.give(0, [&] { return where(less(0, step.x(0)), step.dy()); });
}

/// min(max(x, lo), hi); what is equal to a limit belongs to the limit, as 0 does of relu.
void clipRule(const Step& step) {
  const Term x = step.x(0);
  const Term dy = step.dy();
  std::optional<Term> above, below; // the place is above lo; what remains is below hi
  if (step.hasOperand(1)) above = less(step.x(1), x);
  if (step.hasOperand(2)) below = less(step.hasOperand(1) ? maximum(x, step.x(1)) : x, step.x(2));
  const Term inside = below ? where(*below, dy) : dy;
  step.give(0, [&] { return above ? where(*above, inside) : inside; });
  step.give(1, [&] { return where(logicalNot(*above), inside); });
  step.give(2, [&] { return where(logicalNot(*below), dy); });
}

void castRule(const Step& step) {
  step.give(0, [&] { return step.dy().cast(step.x(0).elem()); });
}

/// a - n * b with a whole number n, which is (a - y) / b but for its roundings.
void remRule(const Step& step) {
  step.give(0, [&] { return step.dy(); });
  step.give(1, [&] { return step.dy() * roundEven((step.y() - step.x(0)) / step.x(1)); });
}

void log1pRule(const Step& step) {
  step.give(0, [&] { return step.dy() / (step.x(0) + 1); });
}

void expm1Rule(const Step& step) {
  giveSlope(step, [&] { return step.y() + 1; });
}

void sinRule(const Step& step) {
  giveSlope(step, [&] { return cos(step.x(0)); });
}

void cosRule(const Step& step) {
  giveSlope(step, [&] { return -sin(step.x(0)); });
}

void tanRule(const Step& step) {
  giveSlope(step, [&] { return step.y() * step.y() + 1; });
}

/// (1 - x)(1 + x) keeps its digits near 1, where 1 - x * x loses them.
void asinRule(const Step& step) {
  step.give(0, [&] { return step.dy() / sqrt((1 - step.x(0)) * (1 + step.x(0))); });
}

void acosRule(const Step& step) {
  step.give(0, [&] { return -(step.dy() / sqrt((1 - step.x(0)) * (1 + step.x(0)))); });
}

void atanRule(const Step& step) {
  step.give(0, [&] { return step.dy() / (step.x(0) * step.x(0) + 1); });
}

void sinhRule(const Step& step) {
  giveSlope(step, [&] { return cosh(step.x(0)); });
}

void coshRule(const Step& step) {
  giveSlope(step, [&] { return sinh(step.x(0)); });
}

void asinhRule(const Step& step) {
  step.give(0, [&] { return step.dy() / sqrt(step.x(0) * step.x(0) + 1); });
}

void acoshRule(const Step& step) {
  step.give(0, [&] { return step.dy() / sqrt((step.x(0) - 1) * (step.x(0) + 1)); });
}

void atanhRule(const Step& step) {
  step.give(0, [&] { return step.dy() / ((1 - step.x(0)) * (1 + step.x(0))); });
}

/// (x - zero) * scale, whose x is stored.
void dequantizeRule(const Step& step) {
  step.give(1, [&] {
    const Term scale = step.x(1);
    const Term ones = full(step.writer(), 1, scale.shape(), scale.elem());
    std::vector<Term> operands{step.x(0), ones};
    if (step.hasOperand(2)) operands.push_back(step.x(2));
    const Term counts = step.dy() * make(OpKind::Dequantize, operands, step.node.attrs);
    if (scale.rank() == 0) return sumOfAll(counts);
    const int64_t rank = counts.rank();
    std::vector<int64_t> others = range(0, rank);
    std::erase(others, graph::wrapAxis(step.node.intAttr("axis"), static_cast<int>(rank)));
    return sum(counts, others, false);
  });
}

} // namespace candela::differentiate
