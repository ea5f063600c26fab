#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/compiler/import/onnx_io/model.h"

/// Which constants of a model are trained.
namespace candela::train {

/// What a parameter is for, by the node that reads it.
enum class Role : uint8_t {
  weight,      ///< factors of sums over `fanIn` terms
  embedding,   ///< rows that are looked up
  bias,        ///< added
  scale,       ///< multiplied, channel by channel
  slope,       ///< of what is below 0
  runningMean, ///< of a batch norm: follows the batches, without a gradient
  runningVariance,
};
/// Whether a gradient moves it.
inline bool isTrained(Role role) { return role < Role::runningMean; }

struct Parameter {
  std::string name; ///< of the initializer
  Role role = Role::weight;
  int64_t fanIn = 1; ///< of weights
  std::string node;  ///< the first that reads it
  Tensor value;      ///< as the file has it
};

/// The initializers of f32 that layers read as weights, biases, scales, slopes or running
/// statistics, in the order of the nodes, each once. What a pattern of `freeze` (a glob) matches,
/// by its own name or its node's, is left out. A constant that is added or multiplied is a
/// parameter where the other operand is what a layer or a norm made, and it has one element for
/// each of its channels; scalars, masks (an element of 1e4 or more) and what prepares inputs are
/// none. Failure: invalid_argument for a pattern that matches nothing, or where nothing is left to
/// train.
Result<std::vector<Parameter>> parametersOf(const import::onnx_io::Model& model,
                                            const std::vector<std::string>& freeze);

/// The values that training from nothing begins with, by the parameter's role: weights uniform in
/// +-sqrt(3 / fanIn) times the square root of 2 (the spread that keeps the size of sums behind a
/// relu), embeddings in +-0.05, biases 0, scales and variances 1, slopes 0.25. The same numbers for
/// a seed on every machine.
Result<Tensor> initialValue(const Parameter& parameter, uint64_t seed);

/// The model with other values in place of its initializers, and nothing else changed.
import::onnx_io::Model withValues(const import::onnx_io::Model& model,
                                  const std::vector<Parameter>& parameters);

} // namespace candela::train
