#include "conformance/judge/slopes.h"

#include <cmath>
#include <map>

#include "core/reference/reference.h"

namespace candela::conformance::judge {
namespace {

using random::Random;

constexpr double kStep = 0x1p-15;
constexpr double kRoundings = 256;
constexpr int kDirections = 2;
constexpr int kElements = 4;

struct WeightedSum {
  double value = 0;
  double magnitude = 0;
  std::vector<double> terms;
};

/// A graph at a point.
struct Point {
  const graph::Graph& graph;
  std::span<const Tensor> inputs;
  const Weights& weights;

  /// Where the inputs are moved by `by` along the direction.
  WeightedSum sumAt(const Direction& direction, double by) const {
    std::vector<Tensor> moved;
    for (size_t i = 0; i < inputs.size(); ++i) {
      moved.push_back(inputs[i]);
      if (inputs[i].elem != Elem::f64_) continue;
      std::vector<double> values(inputs[i].as<double>(),
                                 inputs[i].as<double>() + inputs[i].count());
      for (size_t e = 0; e < values.size(); ++e) values[e] += by * direction[i][e];
      moved.back() = Tensor::of(Elem::f64_, inputs[i].dims, values);
    }
    const std::vector<Tensor> outputs = reference::run(graph, moved).orAbort();
    WeightedSum sum;
    for (size_t i = 0; i < outputs.size(); ++i)
      for (size_t e = 0; e < weights[i].size(); ++e) {
        sum.terms.push_back(weights[i][e] * outputs[i].as<double>()[e]);
        sum.value += sum.terms.back();
        sum.magnitude += std::abs(sum.terms.back());
      }
    return sum;
  }
};

/// Of one step along a direction.
struct Difference {
  Difference(const Point& point, const Direction& direction, double step) {
    const WeightedSum after = point.sumAt(direction, step);
    const WeightedSum here = point.sumAt(direction, 0);
    const WeightedSum before = point.sumAt(direction, -step);
    slope = (after.value - before.value) / (2 * step);
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

  double slope = 0;
  double bend = 0; ///< of each term, since edges of several may cancel
  double magnitude = 0;
  double rounding = 0; ///< of the slope, by one rounding of the sum
};

std::vector<Direction> directionsOf(std::span<const Tensor> inputs, Random& random) {
  Direction none;
  std::vector<std::pair<size_t, size_t>> elements;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto count =
        inputs[i].elem == Elem::f64_ ? static_cast<size_t>(inputs[i].count()) : size_t{0};
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

bool isReal(const graph::Value* value) {
  return isFloat(value->type.elem) && !isStorageOnly(value->type.elem);
}

} // namespace

std::vector<Slope> centralDifferences(const graph::Graph& graph, std::span<const Tensor> inputs,
                                      const Weights& weights, Random& random) {
  const Point point{graph, inputs, weights};
  std::vector<Slope> slopes;
  for (Direction& direction : directionsOf(inputs, random)) {
    const Difference whole(point, direction, kStep);
    const Difference half(point, direction, kStep / 2);
    const double bound = 2 * std::abs(whole.slope - half.slope) + kRoundings * half.rounding;
    slopes.push_back(
        {std::move(direction), half.slope, bound, half.magnitude, !half.hasEdge(whole)});
  }
  return slopes;
}

std::vector<std::vector<double>> cotangentsOf(const graph::Graph& graph, const Weights& weights) {
  std::vector<std::vector<double>> all;
  if (isOneNumber(graph)) return all;
  std::map<const graph::Value*, size_t> places;
  for (size_t i = 0; i < weights.size(); ++i) {
    const graph::Value* output = graph.outputs()[i];
    if (!isReal(output)) continue;
    const auto [at, isNew] = places.try_emplace(output, all.size());
    if (isNew) all.emplace_back(weights[i].size(), 0.0);
    for (size_t e = 0; e < weights[i].size(); ++e) all[at->second][e] += weights[i][e];
  }
  return all;
}

bool isOneNumber(const graph::Graph& graph) {
  const graph::Value* only = nullptr;
  for (const graph::Value* output : graph.outputs()) {
    if (!isReal(output) || output == only) continue;
    if (only) return false;
    only = output;
  }
  return only && only->type.count() == 1;
}

Weights randomWeights(const graph::Graph& graph, Random& random) {
  const bool isOne = isOneNumber(graph);
  Weights weights;
  for (const graph::Value* output : graph.outputs()) {
    weights.emplace_back();
    for (int64_t i = 0; isReal(output) && i < output->type.count(); ++i)
      weights.back().push_back(isOne ? 1 : random.unit() * 2 - 1);
  }
  return weights;
}

} // namespace candela::conformance::judge
