#pragma once

#include <functional>

#include "core/runtime/bundle/bundle.h"
#include "tools/candela/debug/slice.h"

namespace candela::tool {

/// The Programs of a bundle instruction by instruction, each on its own backend, on the memory that
/// the backend's own results made.
class Stepper {
public:
  /// by the backend's own name
  using Devices = std::map<std::string, std::shared_ptr<runtime::plugin::Device>>;
  /// Throws Failure when a Program cannot be read, or there is no room.
  Stepper(const runtime::bundle::Bundle& bundle, std::span<const Tensor> inputs);

  /// One execution of an instruction.
  struct Place {
    size_t part = 0, execution = 0;
  };
  uint64_t executions() const;
  std::optional<Place> place(uint64_t number) const; ///< counted over all Programs
  const program::Program& program(size_t part) const { return parts_[part].program; }
  const Tape& tape(size_t part) const { return *parts_[part].tape; }
  size_t parts() const { return parts_.size(); }
  const std::string& backend(size_t part) const; ///< by its own name; empty: the host

  /// In a process that may die. In the order of the bundle's steps; `visit` sees each execution
  /// with its number, and false ends the run. `question` is asked of each, on `devices` (and
  /// `against`).
  void run(const Question& question, const Devices& devices,
           const std::shared_ptr<runtime::plugin::Device>& against,
           const std::function<void(uint64_t)>& begin,
           const std::function<bool(const Finding&)>& visit);
  /// What has run is what the outputs are made of.
  std::vector<Tensor> outputs() const;

private:
  struct Part {
    const runtime::bundle::BundleStep* step = nullptr;
    program::Program program;
    std::optional<Tape> tape;
  };
  Tensor value(uint32_t index) const;

  const runtime::bundle::Bundle& bundle_;
  std::vector<Tensor> inputs_;
  std::vector<Part> parts_;                                 ///< a step that runs one, each
  std::map<uint32_t, std::pair<size_t, uint32_t>> writers_; ///< by value: part, buffer
};

} // namespace candela::tool
