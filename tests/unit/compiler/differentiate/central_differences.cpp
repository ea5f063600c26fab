#include "tests/unit/compiler/differentiate/central_differences.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/compiler/graph/loop.h"
#include "core/compiler/graph/text.h"
#include "core/reference/reference.h"

namespace candela::testing {
namespace {

using conformance::random::Random;

constexpr double kStep = 0x1p-15;
constexpr double kRoundings = 256;
constexpr int kDirections = 2;
constexpr int kElements = 4;

bool isF64(const Tensor& tensor) { return tensor.elem == Elem::f64_; }

/// One direction in the space of all f64 inputs.
using Direction = std::vector<std::vector<double>>;

class Slopes {
public:
  Slopes(const graph::Graph& graph, const std::vector<Tensor>& inputs, Random& random)
      : graph_(graph), inputs_(inputs), differentiated_(graph::clone(graph)) {
    for (const graph::Value* output : graph.outputs()) {
      weights_.emplace_back();
      if (output->type.elem != Elem::f64_) continue;
      for (int64_t i = 0; i < output->type.count(); ++i)
        weights_.back().push_back(random.unit() * 2 - 1);
    }
  }

  /// Failure: what differentiating or running says.
  Status compute() {
    CDL_TRY(differentiate::differentiateGraph(differentiated_));
    CDL_TRY(graph::verify(differentiated_));
    std::vector<Tensor> all = inputs_;
    const std::vector<std::vector<double>> weights = cotangents();
    isOneNumber_ = weights.size() == 1 && weights[0].size() == 1;
    for (size_t i = inputs_.size(); i < differentiated_.inputs().size(); ++i)
      all.push_back(Tensor::of(Elem::f64_, differentiated_.inputs()[i]->type.shape(),
                               weights[i - inputs_.size()]));
    CDL_ASSIGN(const std::vector<Tensor> results, reference::run(differentiated_, all));
    size_t next = graph_.outputs().size();
    for (const Tensor& input : inputs_)
      gradients_.push_back(isF64(input) ? results[next++] : Tensor());
    return Status::ok();
  }

  /// Whether it is that number which is differentiated, with no cotangent.
  bool isOneNumber() const { return isOneNumber_; }

  struct Sum {
    double value = 0;
    double magnitude = 0;
    std::vector<double> terms;

    void add(double term) {
      value += term;
      magnitude += std::abs(term);
      terms.push_back(term);
    }
  };
  /// Of the weighted outputs, where the inputs are moved by `by` along the direction.
  Sum sumAt(const Direction& direction, double by) const {
    std::vector<Tensor> moved;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      moved.push_back(inputs_[i]);
      if (!isF64(inputs_[i])) continue;
      std::vector<double> values(inputs_[i].as<double>(),
                                 inputs_[i].as<double>() + inputs_[i].count());
      for (size_t e = 0; e < values.size(); ++e) values[e] += by * direction[i][e];
      moved.back() = Tensor::of(Elem::f64_, inputs_[i].dims, values);
    }
    const std::vector<Tensor> outputs = reference::run(graph_, moved).orAbort();
    Sum sum;
    for (size_t i = 0; i < outputs.size(); ++i)
      for (size_t e = 0; e < weights_[i].size(); ++e)
        sum.add((isOneNumber() ? 1 : weights_[i][e]) * outputs[i].as<double>()[e]);
    return sum;
  }

  Sum gradientAlong(const Direction& direction) const {
    Sum sum;
    for (size_t i = 0; i < direction.size(); ++i)
      for (size_t e = 0; e < direction[i].size(); ++e)
        sum.add(direction[i][e] * gradients_[i].as<double>()[e]);
    return sum;
  }

private:
  /// What the cotangent inputs are, in their order: one for each value that is a float output; of
  /// one that is several outputs the weights add up.
  std::vector<std::vector<double>> cotangents() const {
    std::vector<std::vector<double>> all;
    std::map<const graph::Value*, size_t> places;
    for (size_t i = 0; i < weights_.size(); ++i) {
      const graph::Value* output = graph_.outputs()[i];
      if (output->type.elem != Elem::f64_) continue;
      const auto [at, isNew] = places.try_emplace(output, all.size());
      if (isNew) all.emplace_back(weights_[i].size(), 0.0);
      for (size_t e = 0; e < weights_[i].size(); ++e) all[at->second][e] += weights_[i][e];
    }
    return all;
  }

  const graph::Graph& graph_;
  const std::vector<Tensor>& inputs_;
  graph::Graph differentiated_;
  std::vector<std::vector<double>> weights_;
  std::vector<Tensor> gradients_;
  bool isOneNumber_ = false;
};

/// Of one step along a direction.
struct Difference {
  Difference(const Slopes& slopes, const Direction& direction, double step) {
    const auto after = slopes.sumAt(direction, step), here = slopes.sumAt(direction, 0),
               before = slopes.sumAt(direction, -step);
    slope = (after.value - before.value) / (2 * step);
    bend = 0; // of each term, since edges of several may cancel
    for (size_t i = 0; i < here.terms.size(); ++i)
      bend += std::abs(after.terms[i] - 2 * here.terms[i] + before.terms[i]);
    magnitude = (after.magnitude + before.magnitude) / 2;
    rounding = 0x1p-53 * magnitude / step;
  }
  /// Whether an edge or a jump lies so far within the step that the bound does not hold: what is
  /// smooth bends a quarter as much over half of the step, what has an edge in the inner quarter a
  /// third as much or more.
  bool hasEdge(const Difference& whole) const {
    return bend > 0.32 * whole.bend + kRoundings * 0x1p-53 * magnitude;
  }

  double slope, bend, magnitude;
  double rounding; ///< of the slope, by one rounding of the sum
};

std::vector<Direction> directionsOf(const std::vector<Tensor>& inputs, Random& random) {
  Direction none;
  std::vector<std::pair<size_t, size_t>> elements;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto count = isF64(inputs[i]) ? static_cast<size_t>(inputs[i].count()) : size_t{0};
    none.emplace_back(count, 0.0);
    for (size_t e = 0; e < count; ++e) elements.emplace_back(i, e);
  }
  std::vector<Direction> directions;
  for (int n = 0; n < kDirections; ++n) {
    directions.push_back(none);
    for (std::vector<double>& input : directions.back())
      for (double& value : input) value = random.unit() * 2 - 1;
  }
  for (int n = 0; n < kElements && !elements.empty(); ++n) {
    const auto [input, element] = random.of(elements);
    directions.push_back(none);
    directions.back()[input][element] = 1;
  }
  return directions;
}

} // namespace

void compareGradients(const graph::Graph& graph, const std::vector<Tensor>& inputs, Random& random,
                      Comparison& comparison) {
  Slopes slopes(graph, inputs, random);
  const Status status = slopes.compute();
  ASSERT_TRUE(status.isOk()) << status.message() << graph::print(graph).orAbort();
  for (const Direction& direction : directionsOf(inputs, random)) {
    const Difference whole(slopes, direction, kStep), half(slopes, direction, kStep / 2);
    ++comparison.compared;
    if (half.hasEdge(whole)) continue;
    const auto got = slopes.gradientAlong(direction);
    const double bound = 2 * std::abs(whole.slope - half.slope) + kRoundings * half.rounding;
    comparison.sharp += bound <= 1e-6 * (1 + got.magnitude + half.magnitude);
    EXPECT_LE(std::abs(got.value - half.slope), bound)
        << "gradient " << got.value << ", central difference " << half.slope
        << graph::print(graph).orAbort();
  }
}

} // namespace candela::testing
