#pragma once

#include "core/import/script.h"
#include "core/pipeline/pipeline.h"

namespace candela::pipeline {

/// A model that takes steps between its Graphs: what has known shapes is compiled, the rest when a run shows its shapes
/// and contents, once for each of them. run() may be called by many threads at once.
class FlowModel {
public:
  /// reference: the oracle instead of devices and host.
  static Result<std::unique_ptr<FlowModel>> create(import::Script script, const std::string& modelName,
                                                   std::vector<std::shared_ptr<runtime::Device>> devices,
                                                   const CompileOptions& options, bool reference = false);

  const flow::Flow& flow() const { return flow_; }
  /// Ports (dims of -1, or kUnranked, where only a run knows) and where the nodes of the parts that were compiled ahead
  /// go; parts that wait are listed as the host's.
  const runtime::Bundle& described() const { return described_; }
  /// The same of tensors alone.
  Result<std::vector<Tensor>> runTensors(std::span<const Tensor> inputs) const;
  /// inputs of the kinds of the flow's inputs. Failure: invalid_argument for another type than is declared.
  Result<std::vector<flow::Value>> run(std::span<const flow::Value> inputs) const;

private:
  FlowModel() = default;
  flow::Flow flow_;
  std::vector<std::unique_ptr<flow::Unit>> units_;
  runtime::Bundle described_;
};

/// Dims of a port whose rank only a run knows.
inline const Shape kUnranked = {INT64_MIN};

/// The parts of this many shapes at most are kept; the one that has not run for longest goes first.
inline constexpr size_t kMostSpecializations = 64;

} // namespace candela::pipeline
