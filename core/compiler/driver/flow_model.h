#pragma once

#include "core/compiler/driver/pipeline.h"
#include "core/compiler/import/script.h"

namespace candela::driver {

/// A model that takes steps between its Graphs: what has known shapes is compiled, the rest when a
/// run shows its shapes and contents, once for each of them. run() may be called by many threads at
/// once.
class FlowModel {
public:
  /// reference: the oracle instead of devices and host.
  static Result<std::unique_ptr<FlowModel>>
  create(import::Script script, const std::string& modelName,
         std::vector<std::shared_ptr<runtime::plugin::Device>> devices,
         const CompileOptions& options, bool reference = false);

  /// Of a bundle that holds a flow; devices are found by name.
  static Result<std::unique_ptr<FlowModel>> load(runtime::bundle::Bundle bundle);
  /// Stores it as a bundle. Failure: io, a backend's, or unsupported where a part waits for the
  /// run's shapes.
  Status save(const std::string& path) const;

  /// Outputs are inputs of the next run, by "INPUT=OUTPUT"; described() names them then, and the
  /// bundle.
  Status bindStates(const std::vector<std::string>& texts) {
    return runtime::bundle::addStates(described_, texts);
  }

  const runtime::control_flow::Flow& flow() const { return flow_; }
  /// Ports (dims of -1, or kUnranked, where only a run knows) and where the nodes of the parts that
  /// were compiled ahead go; parts that wait are listed as the host's.
  const runtime::bundle::Bundle& described() const { return described_; }
  /// inputs of the kinds of the flow's inputs. Failure: invalid_argument for another type than is
  /// declared.
  Result<std::vector<runtime::control_flow::Value>>
  run(std::span<const runtime::control_flow::Value> inputs) const;
  /// The same of tensors alone.
  Result<std::vector<Tensor>> runTensors(std::span<const Tensor> inputs) const;
  /// How often something was compiled for a run's shapes so far, what was dropped since counted
  /// too; parts within parts are not.
  size_t specializations() const;

private:
  FlowModel() = default;
  void describePorts();
  runtime::control_flow::Flow flow_;
  std::vector<std::unique_ptr<runtime::control_flow::Unit>> units_;
  runtime::bundle::Bundle described_;
};

/// Dims of a port whose rank only a run knows.
inline const Shape kUnranked = {INT64_MIN};

/// Of each part that waits, this many shapes at most are kept, and no more than these bytes of
/// weights and arenas (but always one); the one that has not run for longest goes first.
inline constexpr size_t kMostSpecializations = 64;
inline constexpr uint64_t kMostSpecializedBytes = uint64_t(1) << 30;

} // namespace candela::driver
