#include "conformance/judge/sum_bounds.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "conformance/judge/elements.h"
#include "core/reference/interpreter/interp.h"
#include "core/support/float_bits.h"
#include "core/support/out_of_memory.h"

namespace candela::conformance::judge {
namespace {

using program::Instr, program::Program, program::Role, program::View;

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Where sums and products are collected.
struct Accumulator {
  double unit, largest, leastNormal, least;
  int digits;
};
Accumulator accumulatorOf(Elem elem) {
  if (elem == Elem::f64_)
    return {0x1p-53, std::numeric_limits<double>::max(), 0x1p-1022, 0x1p-1074, 53};
  return {0x1p-24, std::numeric_limits<float>::max() * (1 - 0x1p-20), 0x1p-126, 0x1p-149, 24};
}

/// Half a step at 1 of a result.
double unitOf(Elem elem) {
  switch (elem) {
  case Elem::f64_: return 0x1p-53;
  case Elem::f32_: return 0x1p-24;
  case Elem::f16_: return 0x1p-11;
  default: return 0x1p-8;
  }
}

/// The element type of the views of a buffer; none without one.
Elem elemOf(const Instr& instr, uint32_t buffer) {
  for (const auto* views : {&instr.inputs, &instr.outputs})
    for (const View& view : *views)
      if (view.buffer == buffer) return view.elem;
  return Elem::none;
}

using Map = std::function<double(double)>;

Tensor inDoubles(Elem elem, const Bytes& bytes, uint64_t count, const Map& map) {
  Tensor out = orThrow(Tensor::zeros(Elem::f64_, {static_cast<int64_t>(count)}));
  for (uint64_t i = 0; i < count; ++i)
    out.mutableAs<double>()[i] =
        map(toReal(elem, loadElement(elem, bytes.data(), static_cast<int64_t>(i))));
  return out;
}

/// The program in f64, on its inputs and constants as `map` changes them: what its result's buffer
/// holds then.
Result<std::vector<double>> runInDoubles(const Program& program, std::span<const Tensor> inputs,
                                         const Map& map) {
  Program wide = program;
  std::vector<Tensor> converted;
  size_t next = 0;
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    const program::Buffer& buffer = program.buffers[b];
    const Elem elem = elemOf(program.instrs[0], b);
    const uint64_t count = buffer.bytes * 8 / static_cast<uint64_t>(elemBits(elem));
    wide.buffers[b].bytes = count * sizeof(double);
    if (buffer.role == Role::constant) {
      CDL_ASSIGN(const Bytes content, contentOf(program, b, inputs));
      wide.constants[buffer.constant].payload = Payload::data(inDoubles(elem, content, count, map));
    } else if (buffer.role != Role::output && buffer.role != Role::temp) {
      converted.push_back(inDoubles(elem, inputs[next++].bytes, count, map));
    }
  }
  for (auto* views : {&wide.instrs[0].inputs, &wide.instrs[0].outputs})
    for (View& view : *views) view.elem = Elem::f64_;
  CDL_ASSIGN(const std::vector<Tensor> results, reference::interpret(wide, converted));
  return std::vector<double>(results[0].as<double>(), results[0].as<double>() + results[0].count());
}

double magnitude(double value) { return std::isfinite(value) ? std::abs(value) : 0; }

/// The exponent of the lowest bit that any number of the view has: all are whole multiples of it.
Result<int> stepOf(const Program& program, const View& view, std::span<const Tensor> inputs) {
  CDL_ASSIGN(const Bytes content, contentOf(program, view.buffer, inputs));
  int step = 2000;
  for (const int64_t at : elementsOf(program, view)) {
    const double value = toReal(view.elem, loadElement(view.elem, content.data(), at));
    if (value == 0 || !std::isfinite(value)) continue;
    int exponent = 0;
    const auto digits =
        static_cast<uint64_t>(std::ldexp(std::abs(std::frexp(value, &exponent)), 53));
    step = std::min(step, exponent - 53 + std::countr_zero(digits));
  }
  return step;
}

/// One element as the judge sees it.
struct Sum {
  double y;     ///< in f64
  double slack; ///< how far the accumulator may be from it; NaN: anywhere
};

class Judgement {
public:
  Judgement(const Program& program, std::span<const Tensor> inputs)
      : program_(program), instr_(program.instrs[0]), inputs_(inputs),
        acc_(accumulatorOf(instr_.outputs[0].elem)) {
    const Shape& x = instr_.inputs[0].dims;
    terms_ = static_cast<double>(instr_.kind == CDL_KIND_MATMUL ? x.back() : x[x.size() - 2]);
    isProduct_ = instr_.kind == CDL_KIND_REDUCE && instr_.fn == CDL_REDUCE_PROD;
  }

  Result<Expectation> run(bool withStatistics) {
    CDL_ASSIGN(exact_, runInDoubles(program_, inputs_, [](double value) { return value; }));
    CDL_TRY(isProduct_ ? measureProducts() : measureSums());
    const View& view = instr_.outputs[0];
    const auto count = static_cast<int64_t>(exact_.size());
    auto [elem, dims] = program_.contentType(view.buffer);
    CDL_ASSIGN(Tensor output, Tensor::zeros(elem, dims));
    CDL_ASSIGN(const Bytes before, contentOf(program_, view.buffer, inputs_));
    if (before.size()) output.bytes = Bytes::copyOf(before.data(), before.size());
    std::vector<bool> reached(exact_.size(), false);
    for (const int64_t at : elementsOf(program_, view)) {
      reached[static_cast<size_t>(at)] = true;
      storeElement(elem, output.bytes.mutableData(), at,
                   fromReal(elem, exact_[static_cast<size_t>(at)]));
    }
    CDL_ASSIGN(Interval interval, Interval::of(output));
    RoundingModel model{exact_, std::vector<double>(exact_.size(), 0)};
    std::map<int64_t, std::vector<uint64_t>> kept;
    for (int64_t i = 0; i < count; ++i) {
      if (!reached[static_cast<size_t>(i)]) {
        kept[i] = {loadElement(elem, output.bytes.data(), i)};
        continue;
      }
      const Sum sum = at(static_cast<size_t>(i));
      if (std::isnan(sum.slack)) {
        interval.makeWild(i);
      } else if (std::isfinite(sum.y)) {
        interval.lo.real[i] = reference::roundReal(elem, sum.y - sum.slack);
        interval.hi.real[i] = reference::roundReal(elem, sum.y + sum.slack);
        if (sum.slack > 0)
          model.deviation[static_cast<size_t>(i)] = deviation(static_cast<size_t>(i));
      }
    }
    Expectation expected;
    expected.outputs.push_back(std::move(output));
    expected.intervals.push_back(std::move(interval));
    expected.bits = {false};
    expected.anyOf.push_back(std::move(kept));
    if (withStatistics) expected.roundings.push_back(std::move(model));
    return expected;
  }

private:
  Status measureSums() {
    CDL_ASSIGN(sizes_, runInDoubles(program_, inputs_, magnitude));
    int step = 0;
    const size_t factors = instr_.kind == CDL_KIND_MATMUL ? 2 : 1;
    for (size_t i = 0; i < factors; ++i) {
      CDL_ASSIGN(const int own, stepOf(program_, instr_.inputs[i], inputs_));
      step += own;
    }
    if (instr_.inout) {
      CDL_ASSIGN(const int own, stepOf(program_, instr_.outputs[0], inputs_));
      step = std::min(step, own);
    }
    // No order rounds a sum that has so few digits.
    counted_ =
        step < std::ilogb(acc_.least) ? 0 : std::ldexp(1.0, std::min(step + acc_.digits, 1000));
    return Status::ok();
  }

  Status measureProducts() {
    CDL_ASSIGN(sizes_, runInDoubles(program_, inputs_,
                                    [](double value) { return std::max(magnitude(value), 1.0); }));
    CDL_ASSIGN(small_, runInDoubles(program_, inputs_, [](double value) {
                 const double size = magnitude(value);
                 return size == 0 ? 1 : std::min(size, 1.0);
               }));
    CDL_ASSIGN(const Bytes x, contentOf(program_, instr_.inputs[0].buffer, inputs_));
    const Elem elem = instr_.inputs[0].elem;
    powers_ = true;
    for (const int64_t i : elementsOf(program_, instr_.inputs[0])) {
      const double size = magnitude(toReal(elem, loadElement(elem, x.data(), i)));
      powers_ = powers_ && (size == 0 || std::ldexp(1.0, std::ilogb(size)) == size);
    }
    return Status::ok();
  }

  Sum at(size_t i) const {
    const double y = exact_[i], nowhere = std::nan("");
    if (isProduct_) {
      // In some order the factors above 1 come first, in another one those below.
      if (sizes_[i] >= acc_.largest || small_[i] < acc_.leastNormal) return {y, nowhere};
      return {y, std::isfinite(y) && !powers_ ? errors(terms_) * std::abs(y) : 0};
    }
    if (sizes_[i] >= acc_.largest) return {y, nowhere};
    if (!std::isfinite(y) || sizes_[i] <= counted_) return {y, 0};
    return {y, errors(terms_ + 2) * sizes_[i] + terms_ * acc_.least};
  }

  /// The oracle's own roundings are none beside those of f32.
  double errors(double roundings) const {
    return (instr_.outputs[0].elem == Elem::f64_ ? 2 : 1) * roundings * acc_.unit;
  }

  double deviation(size_t i) const {
    if (isProduct_) return 0;
    const double sum = acc_.unit * sizes_[i] * std::sqrt((terms_ + 1) / 3);
    return std::hypot(sum, unitOf(instr_.outputs[0].elem) * std::abs(exact_[i]) / std::sqrt(3.0));
  }

  const Program& program_;
  const Instr& instr_;
  std::span<const Tensor> inputs_;
  const Accumulator acc_;
  double terms_ = 0;
  bool isProduct_ = false;
  std::vector<double> exact_, sizes_, small_;
  double counted_ = 0;
  bool powers_ = false;
};

Result<Expectation> judge(const Program& program, std::span<const Tensor> inputs,
                          bool withStatistics) {
  if (program.instrs.size() != 1 || !isFloatSum(program.instrs[0]))
    return failure(Code::unsupported, "bounds of what is no sum of floats");
  if (!program.instrs[0].expr.empty())
    return failure(Code::unsupported, "bounds of a sum behind an epilogue");
  return Judgement(program, inputs).run(withStatistics);
}

} // namespace

bool isFloatSum(const Instr& instr) {
  const bool sums = instr.kind == CDL_KIND_MATMUL ||
                    (instr.kind == CDL_KIND_REDUCE &&
                     (instr.fn == CDL_REDUCE_SUM || instr.fn == CDL_REDUCE_PROD));
  return sums && isFloat(instr.inputs[0].elem);
}

Result<Expectation> sumBounds(const Program& program, std::span<const Tensor> inputs) {
  return judge(program, inputs, false);
}

Result<Expectation> sumStatistics(const Program& program, std::span<const Tensor> inputs) {
  return judge(program, inputs, true);
}

Result<Expectation> exactBounds(const Program& program, std::span<const Tensor> inputs) {
  Expectation expected;
  CDL_ASSIGN(expected.outputs, reference::interpret(program, inputs));
  expected.bits.assign(expected.outputs.size(), false);
  for (const Tensor& output : expected.outputs) {
    CDL_ASSIGN(Interval interval, Interval::of(output));
    expected.intervals.push_back(std::move(interval));
  }
  return expected;
}

} // namespace candela::conformance::judge
