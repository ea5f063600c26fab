#include "tests/fuzz/rewrite_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "conformance/judge/element_rule.h"
#include "core/compiler/driver/pipeline.h"
#include "core/compiler/graph/loop.h"
#include "core/support/float_bits.h"

namespace candela::conformance {
namespace {

using graph::Graph, graph::Node, graph::OpKind, graph::Value;
using reference::Array;

constexpr double kBeyond = std::numeric_limits<double>::infinity();

double largestNumber(Elem elem) { return toReal(elem, fromReal(elem, kBeyond) - 1); }

bool isInfinite(const judge::Interval& x, int64_t i) {
  return std::isinf(x.lo.real[i]) && x.isPoint(i);
}

template <typename Test> bool anyElement(const judge::Interval& x, Test test) {
  for (int64_t i = 0; i < x.count(); ++i)
    if (test(i)) return true;
  return false;
}

/// A quotient by zero is infinite in every form.
bool mayDivideByZero(const Node& node, const std::vector<const judge::Interval*>& operands) {
  size_t divisor = 0;
  switch (node.kind) {
  case OpKind::Div: divisor = 1; break;
  case OpKind::Pow:
  case OpKind::Log:
  case OpKind::Reciprocal: break;
  default: return false;
  }
  const judge::Interval& x = *operands[divisor];
  return !isFloat(x.elem()) ||
         anyElement(x, [&](int64_t i) { return x.lo.real[i] <= 0 && x.hi.real[i] >= 0; });
}

void allowNumbersBeyond(const Node& node, const std::vector<const judge::Interval*>& operands,
                        std::vector<judge::Interval>& results) {
  if (node.info().has(graph::kTraitMovement) || mayDivideByZero(node, operands)) return;
  for (const judge::Interval* x : operands)
    if (x && isFloat(x->elem()) && anyElement(*x, [&](int64_t i) { return isInfinite(*x, i); }))
      return;
  for (judge::Interval& y : results) {
    if (!isFloat(y.elem())) continue;
    const double largest = largestNumber(y.elem());
    for (int64_t i = 0; i < y.count(); ++i) {
      if (y.lo.real[i] == kBeyond) y.lo.real[i] = largest;
      if (y.hi.real[i] == -kBeyond) y.hi.real[i] = -largest;
    }
  }
}

/// What fold-batch-norm scales the channels of.
bool isProduct(const Node* node) {
  return node && (node->kind == OpKind::Conv || node->kind == OpKind::Gemm);
}

/// Whether fold-batch-norm may scale the channels of the node.
bool isScaled(const Node& node) {
  if (!isProduct(&node)) return false;
  return std::ranges::any_of(node.result()->users(), [](const Node* user) {
    return user->kind == OpKind::Mul || user->kind == OpKind::Add ||
           user->kind == OpKind::BatchNorm;
  });
}

/// The largest magnitude of each element; infinite where it may have any.
Array magnitudesOf(const judge::Interval& x) {
  Array magnitudes = x.lo;
  for (int64_t i = 0; i < x.count(); ++i)
    magnitudes.real[i] =
        x.isWild(i) ? kBeyond : std::max(std::abs(x.lo.real[i]), std::abs(x.hi.real[i]));
  return magnitudes;
}

/// What the node makes of these magnitudes of its operands; an empty one stands for an absent
/// operand.
Array sumsOf(const Node& node, const std::vector<Array>& magnitudes) {
  std::vector<const Array*> in;
  for (const Array& each : magnitudes) in.push_back(each.elem == Elem::none ? nullptr : &each);
  Array sums(node.result()->type.elem, node.result()->type.shape());
  reference::applyFormula(node, in, std::span(&sums, 1));
  return sums;
}

/// How many times as large as the spread a mean may be that a batch norm of this type need not
/// subtract first: three bits of halves, of what stands alone and of others behind a product ten.
double mostCancellation(const Node& node) {
  const Value* x = node.operand(0);
  const bool behindProduct = isProduct(x->producer);
  if (elemBits(x->type.elem) == 16) return behindProduct ? 8 : 0;
  return behindProduct ? 1024 : 8;
}

/// A batch norm as x * s + t: both terms are rounded relative to themselves.
void allowProductAndShift(const Node& node, const std::vector<const judge::Interval*>& operands,
                          judge::Interval& y) {
  if (node.intAttr("training_mode") != 0) return;
  const Array &x = operands[0]->lo, &scale = operands[1]->lo, &bias = operands[2]->lo,
              &mean = operands[3]->lo, &variance = operands[4]->lo;
  int64_t inner = 1;
  for (size_t d = 2; d < x.dims.size(); ++d) inner *= x.dims[d];
  const auto channelOf = [&](int64_t i) { return static_cast<size_t>(i / inner % x.dims[1]); };
  const auto spreadOf = [&](size_t c) {
    return std::sqrt(variance.real[c] + node.floatAttr("epsilon"));
  };
  double most = 0;
  for (size_t c = 0; c < mean.real.size(); ++c)
    most = std::max(most, std::abs(mean.real[c]) / spreadOf(c));
  if (!(most <= mostCancellation(node))) return;
  for (int64_t i = 0; i < y.count(); ++i) {
    const size_t c = channelOf(i), e = static_cast<size_t>(i);
    const double largest = std::max(std::abs(x.real[e]), std::abs(operands[0]->hi.real[e]));
    const double terms =
        (largest + std::abs(mean.real[c])) * std::abs(scale.real[c] / spreadOf(c)) +
        std::abs(bias.real[c]);
    const double slack = 3 * judge::unitOf(y.elem()) * terms;
    if (!std::isfinite(slack) || y.isWild(i)) continue;
    y.lo.real[e] -= slack, y.hi.real[e] += slack;
  }
}

/// How many biases of products may be rounded to whole steps of their sums before this is
/// quantized.
int biasesBefore(const Value* value, int depth = 0) {
  const Node* node = value ? value->producer : nullptr;
  if (!node || depth > 8) return 0;
  int count = 0;
  switch (node->kind) {
  case OpKind::Conv:
  case OpKind::Gemm:
  case OpKind::Matmul: return 1;
  case OpKind::Dequantize: return node->operand(0)->type.elem == Elem::i32_;
  case OpKind::Relu:
  case OpKind::Clip:
  case OpKind::Reshape:
  case OpKind::Transpose:
  case OpKind::Add:
  case OpKind::Sub:
  case OpKind::Concat:
  case OpKind::MaxPool:
  case OpKind::AveragePool:
  case OpKind::GlobalAveragePool:
    for (const Value* operand : node->operands()) count += biasesBefore(operand, depth + 1);
    return count;
  default: return 0;
  }
}

judge::Interval roundedOnceMore(judge::Interval x) {
  const double unit = judge::unitOf(x.elem());
  for (int64_t i = 0; i < x.count(); ++i) {
    if (!std::isfinite(x.lo.real[i]) || !std::isfinite(x.hi.real[i])) continue;
    x.lo.real[i] -= unit * std::abs(x.lo.real[i]);
    x.hi.real[i] += unit * std::abs(x.hi.real[i]);
  }
  return x;
}

/// Integers of several values are good for dequantize alone: every other op may do anything between
/// their ends.
judge::Interval wildWhereOpen(judge::Interval x) {
  for (int64_t i = 0; i < x.count(); ++i)
    if (!x.isPoint(i)) x.makeWild(i);
  return x;
}

class RewriteAnalysis {
public:
  Result<std::vector<judge::Interval>> run(const Graph& graph,
                                           std::span<const judge::Interval> inputs) {
    std::map<const Value*, judge::Interval> values;
    for (size_t i = 0; i < inputs.size(); ++i) values.emplace(graph.inputs()[i], inputs[i]);
    for (const auto& node : graph.nodes()) {
      CDL_ASSIGN(std::vector<judge::Interval> results, resultsOf(*node, values));
      for (size_t i = 0; i < results.size(); ++i)
        values.emplace(node->result(i), std::move(results[i]));
    }
    std::vector<judge::Interval> outputs;
    for (const Value* output : graph.outputs()) outputs.push_back(values.at(output));
    return outputs;
  }

private:
  Result<std::vector<judge::Interval>>
  resultsOf(const Node& node, const std::map<const Value*, judge::Interval>& values) {
    if (node.kind == OpKind::Constant) {
      CDL_ASSIGN(const Tensor tensor, node.result()->tensor());
      CDL_ASSIGN(judge::Interval interval, judge::Interval::of(tensor));
      return std::vector<judge::Interval>{std::move(interval)};
    }
    std::vector<judge::Interval> own;
    for (size_t i = 0; i < node.operands().size(); ++i) {
      const Value* operand = node.operand(i);
      own.push_back(operand ? values.at(operand) : judge::Interval{});
      if (!operand) continue;
      if (!isFloat(own[i].elem()) && node.kind != OpKind::Dequantize)
        own[i] = wildWhereOpen(std::move(own[i]));
      if (i > 0 && isScaled(node)) own[i] = roundedOnceMore(std::move(own[i]));
    }
    if (node.kind == OpKind::Loop) return runsOf(node, own);
    std::vector<const judge::Interval*> operands;
    for (size_t i = 0; i < own.size(); ++i) operands.push_back(node.operand(i) ? &own[i] : nullptr);
    const judge::Interval x =
        node.kind == OpKind::Quantize ? withRoundedBiases(node, own) : judge::Interval{};
    if (node.kind == OpKind::Quantize) operands[0] = &x;
    CDL_ASSIGN(std::vector<judge::Interval> results,
               judge::analyze(node, operands, driver::hostTarget()));
    if (node.kind == OpKind::BatchNorm) allowProductAndShift(node, operands, results[0]);
    allowTermsBeyond(node, operands, results[0]);
    if (node.kind == OpKind::Quantize) CDL_TRY(eitherStep(node, operands, results[0]));
    allowNumbersBeyond(node, operands, results);
    return results;
  }

  /// A factor that went into the weights of a product meets every term instead of their sum: where
  /// it takes terms beyond the type, those of both signs are infinite.
  void allowTermsBeyond(const Node& node, const std::vector<const judge::Interval*>& operands,
                        judge::Interval& y) {
    if (isProduct(&node) && isFloat(y.elem())) {
      std::vector<Array> magnitudes;
      for (const judge::Interval* operand : operands)
        magnitudes.push_back(operand ? magnitudesOf(*operand) : Array{});
      magnitudes.resize(3); // the bias may be left out
      sums_.emplace(node.result(), sumsOf(node, magnitudes));
      return;
    }
    std::optional<Array> scaled = scaledSums(node, operands);
    if (!scaled) return;
    const double largest = largestNumber(y.elem());
    for (int64_t i = 0; i < y.count(); ++i)
      if (!(std::abs(scaled->real[i]) <= largest)) y.makeWild(i);
    sums_.emplace(node.result(), std::move(*scaled));
  }

  /// The sums of magnitudes of a product behind the factor of this node, if it is one.
  std::optional<Array> scaledSums(const Node& node,
                                  const std::vector<const judge::Interval*>& operands) const {
    if (node.kind != OpKind::Mul && node.kind != OpKind::BatchNorm) return std::nullopt;
    for (size_t i = 0; i < node.operands().size(); ++i) {
      const auto sums = sums_.find(node.operand(i));
      if (sums == sums_.end()) continue;
      if (node.kind == OpKind::BatchNorm) return timesSpread(node, operands, sums->second);
      std::vector<Array> magnitudes = {magnitudesOf(*operands[0]), magnitudesOf(*operands[1])};
      magnitudes[i] = sums->second;
      return sumsOf(node, magnitudes);
    }
    return std::nullopt;
  }

  static Array timesSpread(const Node& norm, const std::vector<const judge::Interval*>& operands,
                           Array sums) {
    const int64_t channels = sums.dims[1];
    int64_t inner = 1;
    for (size_t d = 2; d < sums.dims.size(); ++d) inner *= sums.dims[d];
    for (int64_t i = 0; i < sums.count(); ++i) {
      const int64_t c = i / inner % channels;
      const double spread = std::sqrt(operands[4]->lo.real[c] + norm.floatAttr("epsilon"));
      sums.real[i] *= std::abs(operands[1]->lo.real[c]) / spread;
    }
    return sums;
  }

  /// of products, and of what multiplies them: sums of magnitudes
  std::map<const Value*, Array> sums_;

  /// Each moves the result by 1/128 of its step at most.
  static judge::Interval withRoundedBiases(const Node& node,
                                           const std::vector<judge::Interval>& own) {
    judge::Interval x = own[0];
    const double moved = biasesBefore(node.operand(0)) / 128.0;
    if (moved == 0 || own[1].count() != 1) return x;
    for (int64_t i = 0; i < x.count(); ++i) {
      if (x.isWild(i)) continue;
      x.lo.real[i] -= moved * own[1].lo.real[0], x.hi.real[i] += moved * own[1].lo.real[0];
    }
    return x;
  }

  /// Where the middle between two steps lies in the operand's interval.
  static Status eitherStep(const Node& node, const std::vector<const judge::Interval*>& operands,
                           judge::Interval& y) {
    std::vector<const Array*> low, high;
    for (const judge::Interval* x : operands)
      low.push_back(x ? &x->lo : nullptr), high.push_back(x ? &x->hi : nullptr);
    low.resize(3, nullptr), high.resize(3, nullptr);
    Array lo(y.elem(), y.lo.dims), hi(y.elem(), y.lo.dims);
    reference::applyFormula(node, low, std::span(&lo, 1));
    reference::applyFormula(node, high, std::span(&hi, 1));
    const judge::Interval& x = *operands[0];
    for (int64_t i = 0; i < y.count(); ++i) {
      if (!y.isWild(i) || x.isWild(i) || std::isnan(x.lo.real[i])) continue;
      y.lo.whole[i] = std::min(lo.whole[i], hi.whole[i]),
      y.hi.whole[i] = std::max(lo.whole[i], hi.whole[i]);
    }
    return Status::ok();
  }

  static judge::Interval sliceOf(const judge::Interval& x, int64_t at) {
    judge::Interval slice;
    for (const auto& [from, to] : {std::pair{&x.lo, &slice.lo}, std::pair{&x.hi, &slice.hi}}) {
      *to = Array(from->elem, Shape(from->dims.begin() + 1, from->dims.end()));
      for (int64_t i = 0; i < to->count(); ++i) to->set(i, from->at(at * to->count() + i));
    }
    return slice;
  }
  static void putSlice(judge::Interval& x, int64_t at, const judge::Interval& slice) {
    for (int64_t i = 0; i < slice.count(); ++i) {
      x.lo.set(at * slice.count() + i, slice.lo.at(i));
      x.hi.set(at * slice.count() + i, slice.hi.at(i));
    }
  }

  Result<std::vector<judge::Interval>> runsOf(const Node& node,
                                              const std::vector<judge::Interval>& operands) {
    const graph::LoopForm form = graph::loopForm(node);
    const auto place = [&](size_t i, int64_t trip) {
      return form.runsBackward(i) ? form.trips - 1 - trip : trip;
    };
    std::vector<judge::Interval> results;
    for (const Value* result : node.results()) {
      const Array zeros(result->type.elem, result->type.shape());
      results.push_back({zeros, zeros});
    }
    for (size_t i = 0; i < form.carried; ++i) results[i] = operands[i];
    for (int64_t trip = 0; trip < form.trips; ++trip) {
      std::vector<judge::Interval> inputs(
          results.begin(), results.begin() + static_cast<std::ptrdiff_t>(form.carried));
      for (size_t i = 0; i < form.scanned; ++i)
        inputs.push_back(sliceOf(operands[form.carried + i], place(i, trip)));
      inputs.insert(inputs.end(),
                    operands.begin() + static_cast<std::ptrdiff_t>(form.carried + form.scanned),
                    operands.end());
      CDL_ASSIGN(std::vector<judge::Interval> outputs, run(*node.body, inputs));
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (i < form.carried)
          results[i] = std::move(outputs[i]);
        else
          putSlice(results[i], place(form.scanned + i - form.carried, trip), outputs[i]);
      }
    }
    return results;
  }
};

} // namespace

Result<std::vector<judge::Interval>> analyzeRewrites(const Graph& graph,
                                                     std::span<const judge::Interval> inputs) {
  return RewriteAnalysis().run(graph, inputs);
}

std::string outsideOfRewrites(const judge::Interval& interval, const Tensor& got) {
  if (isFloat(got.elem) || got.elem == Elem::bool_ || got.elem != interval.elem() ||
      got.dims != interval.lo.dims)
    return judge::outside(interval, got);
  for (int64_t i = 0; i < got.count(); ++i) {
    const __int128 value = integerOf(got.elem, loadElement(got.elem, got.bytes.data(), i));
    if (interval.isWild(i) || (value >= interval.lo.whole[i] && value <= interval.hi.whole[i]))
      continue;
    return fmt::format("element {} is {}, expected {} to {}", i, static_cast<int64_t>(value),
                       static_cast<int64_t>(interval.lo.whole[i]),
                       static_cast<int64_t>(interval.hi.whole[i]));
  }
  return "";
}

} // namespace candela::conformance
