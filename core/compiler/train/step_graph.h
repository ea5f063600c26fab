#pragma once

#include "core/compiler/import/import.h"
#include "core/compiler/import/onnx_io/model.h"
#include "core/compiler/train/losses.h"
#include "core/compiler/train/optimizers.h"
#include "core/compiler/train/parameters.h"

/// One step of training as a Graph.
namespace candela::train {

struct StepSettings {
  Loss loss = Loss::crossEntropy;
  OptimizerSettings optimizer;
  double clipNorm = 0;            ///< 0: gradients stay as they are
  import::ImportOptions import{}; ///< its dims and shapes are those of one batch
  std::string output;             ///< that the loss is of; empty: the only one
};

/// What a step carries to the next one: a parameter, or what the optimizer keeps of one. Its input
/// and its output have names of ours.
struct CarriedState {
  std::string input, output, name; ///< name: the initializer's, with what it is of behind a colon
  Tensor first;                    ///< before the first step
};

/// Inputs: the model's; `labels`; learning_rate, correction1 and correction2; the states. Outputs:
/// loss; scores, the model's output; the states' next values.
struct StepGraph {
  graph::Graph graph;
  std::vector<CarriedState> states;    ///< the parameters first, in their order
  graph::TensorType labels, scores;    ///< of one batch
  std::vector<std::string> dataInputs; ///< the model's, in its order
  /// Parameters that the loss does not depend on: carried on as they are, whatever the decay.
  std::vector<std::string> unreached;
};

/// Batch norms whose statistics are among the parameters take those of each batch, and move the
/// running ones. A softmax that ends a classifier is part of the loss.
/// Failures: those of import; unsupported where a node has no gradient; invalid_argument where the
/// output does not fit the loss.
Result<StepGraph> makeStep(const import::onnx_io::Model& model,
                           const std::vector<Parameter>& parameters, const StepSettings& settings);

/// The model with its parameters as inputs, behind its own.
import::onnx_io::Model withParametersAsInputs(const import::onnx_io::Model& model,
                                              const std::vector<Parameter>& parameters);

} // namespace candela::train
