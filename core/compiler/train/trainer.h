#pragma once

#include <memory>

#include "core/compiler/driver/pipeline.h"
#include "core/compiler/train/step_graph.h"

namespace candela::train {

/// What differs from step to step, beside the data.
struct StepInput {
  std::vector<Tensor> data; ///< the model's inputs, in the order of StepGraph::dataInputs
  Tensor labels;            ///< of the types of StepGraph
  double learningRate = 0;
  int64_t number = 1; ///< of this step, from 1
};
/// What is read from the device behind a step; states stay there.
enum class Reads : uint8_t { loss, scores }; // scores: and the loss
struct StepOutput {
  double loss = 0;
  Tensor scores; ///< before the step; without bytes where they were not asked for
};

/// A step that was compiled for devices, and its states, which stay where the device has them. One
/// thread.
class Trainer {
public:
  /// devices: in order of preference; none: the portable executor. `options`: all but the states.
  /// Failure: those of compilation.
  static Result<Trainer> create(StepGraph step, const OptimizerSettings& optimizer,
                                const std::string& modelName,
                                std::span<const std::shared_ptr<runtime::plugin::Device>> devices,
                                driver::CompileOptions options = {});
  Trainer(Trainer&&) noexcept;
  ~Trainer();

  const StepGraph& step() const { return step_; }
  const runtime::bundle::Bundle& bundle() const;

  /// One step. Failure: a run's.
  Result<StepOutput> run(const StepInput& input, Reads reads);
  /// Copies the states from where they lie, for states(). Failure: a device's.
  Status readStates();
  /// In the order of StepGraph::states: those before the first step, that were given to start(), or
  /// as the last readStates() found them.
  const std::vector<Tensor>& states() const { return states_; }
  /// Sets all states, from which the next step goes on.
  void start(std::vector<Tensor> states);

private:
  Trainer(StepGraph step, const OptimizerSettings& optimizer);
  std::map<std::string, Tensor> given(const StepInput& input) const;

  StepGraph step_;
  OptimizerSettings optimizer_;
  std::unique_ptr<runtime::session::Session> session_;
  std::vector<Tensor> states_;
  bool isGiven_ = true; ///< the next step takes states_
};

/// The model as inference has it, with parameters that are given to each run: what training is
/// judged by. One thread.
class Evaluator {
public:
  /// settings: those of the step; its loss, import and output count.
  static Result<Evaluator>
  create(const import::onnx_io::Model& model, const std::vector<Parameter>& parameters,
         const StepSettings& settings,
         std::span<const std::shared_ptr<runtime::plugin::Device>> devices);
  Evaluator(Evaluator&&) noexcept;
  ~Evaluator();

  /// The output for one batch, of a classifier its scores as before a softmax. `data`: by the names
  /// of the model's inputs; `values`: of the parameters, in their order, more are left alone.
  Result<Tensor> run(const std::map<std::string, Tensor>& data, std::span<const Tensor> values);

private:
  Evaluator() = default;
  std::unique_ptr<runtime::session::Session> session_;
  std::vector<std::string> inputs_, parameters_; ///< names
  size_t output_ = 0;
};

} // namespace candela::train
