#include "conformance/judge/scaled_bounds.h"

#include <cmath>
#include <limits>

#include "conformance/judge/elements.h"
#include "core/reference/interpreter/interp.h"
#include "core/support/float_bits.h"

namespace candela::conformance::judge {
namespace {

using program::Instr, program::Program, program::View;

constexpr double kUnit = 0x1p-24;
constexpr double kLeast = 0x1p-149;
constexpr double kLargest = std::numeric_limits<float>::max() * (1 - 0x1p-20);
constexpr double kRoundingsOfTerm = 6; // its own and the first sum's

/// The numbers of a view, in row-major order of its dims.
Result<std::vector<double>> numbersOf(const Program& program, const View& view,
                                      std::span<const Tensor> inputs) {
  CDL_ASSIGN(const Bytes content, contentOf(program, view.buffer, inputs));
  std::vector<double> numbers;
  for (const int64_t at : elementsOf(view)) {
    const uint64_t bits = loadElement(view.elem, content.data(), at);
    numbers.push_back(isFloat(view.elem)
                          ? toReal(view.elem, bits)
                          : static_cast<double>(static_cast<int64_t>(integerOf(view.elem, bits))));
  }
  return numbers;
}

/// The operands as numbers; those of blocks are 1 or 0 where there are none.
struct Factors {
  int64_t rows = 0;
  int64_t depth = 0;
  int64_t columns = 0;
  int64_t blocks = 0;
  int64_t block = 0;
  std::vector<double> a;
  std::vector<double> w;
  std::vector<double> wScale;
  std::vector<double> wZero;
  std::vector<double> aScale;
};

Result<Factors> factorsOf(const Program& program, std::span<const Tensor> inputs) {
  const std::vector<View>& views = program.instrs[0].inputs;
  Factors f;
  f.rows = views[0].dims[0];
  f.depth = views[0].dims[1];
  f.columns = views[1].dims[0];
  f.blocks = views[1].dims[1];
  f.block = views[1].dims[2];
  CDL_ASSIGN(f.a, numbersOf(program, views[0], inputs));
  CDL_ASSIGN(f.w, numbersOf(program, views[1], inputs));
  CDL_ASSIGN(f.wScale, numbersOf(program, views[2], inputs));
  f.wZero.assign(static_cast<size_t>(f.columns * f.blocks), 0);
  f.aScale.assign(static_cast<size_t>(f.rows * f.blocks), 1);
  if (views.size() > 3) {
    CDL_ASSIGN(f.wZero, numbersOf(program, views[3], inputs));
  }
  if (views.size() > 4) {
    CDL_ASSIGN(f.aScale, numbersOf(program, views[4], inputs));
  }
  return f;
}

/// One result: the sum, that of magnitudes, and the largest factor that may stand outside of a sum.
struct ScaledSum {
  double y = 0;
  double size = 0;
  double outside = 1;

  double slack(double terms) const {
    return (terms + kRoundingsOfTerm) * (kUnit * size + kLeast * outside);
  }
};

ScaledSum sumAt(const Factors& f, int64_t row, int64_t column) {
  ScaledSum sum;
  for (int64_t k = 0; k < f.depth; ++k) {
    const int64_t g = k / f.block;
    const auto ofColumn = static_cast<size_t>(column * f.blocks + g);
    const double scale = f.wScale[ofColumn] * f.aScale[static_cast<size_t>(row * f.blocks + g)];
    const double a = f.a[static_cast<size_t>(row * f.depth + k)];
    const double w =
        f.w[ofColumn * static_cast<size_t>(f.block) + static_cast<size_t>(k % f.block)];
    const double zero = f.wZero[ofColumn];
    sum.y += a * (w - zero) * scale;
    sum.size += std::abs(a) * (std::abs(w) + std::abs(zero)) * std::abs(scale);
    sum.outside = std::max(sum.outside, std::abs(scale));
  }
  return sum;
}

} // namespace

bool isScaledFloatProduct(const Instr& instr) {
  return instr.kind == CDL_KIND_SCALED_MATMUL && instr.fn == CDL_SCALED_MATMUL_EXACT &&
         isFloat(instr.inputs[0].elem);
}

Result<Expectation> scaledBounds(const Program& program, std::span<const Tensor> inputs) {
  const bool isOne = program.instrs.size() == 1 && isScaledFloatProduct(program.instrs[0]);
  if (!isOne || !program.instrs[0].expr.empty() || !program.loops.empty())
    return failure(Code::unsupported, "bounds of what is no plain product of floats with scales");
  CDL_ASSIGN(const Factors factors, factorsOf(program, inputs));
  CDL_ASSIGN(Expectation expected, exactBounds(program, inputs));
  const View& view = program.instrs[0].outputs[0];
  Interval& interval = expected.intervals[0];
  int64_t next = 0;
  for (const int64_t at : elementsOf(view)) {
    const ScaledSum sum = sumAt(factors, next / factors.columns, next % factors.columns);
    ++next;
    if (sum.size >= kLargest || !std::isfinite(sum.size)) {
      interval.makeWild(at);
      continue;
    }
    const double slack = sum.slack(static_cast<double>(factors.depth));
    interval.lo.real[static_cast<size_t>(at)] = reference::roundReal(view.elem, sum.y - slack);
    interval.hi.real[static_cast<size_t>(at)] = reference::roundReal(view.elem, sum.y + slack);
  }
  return expected;
}

} // namespace candela::conformance::judge
