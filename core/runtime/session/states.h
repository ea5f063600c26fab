#pragma once

#include <functional>
#include <map>
#include <mutex>

#include "core/runtime/bundle/bundle.h"
#include "core/runtime/plugin/plugin.h"

/// Outputs of a run that are inputs of the next one, such as the caches of a decoder.
namespace candela::runtime::session {

/// Where the host sees a state: in memory that this device executes on as it is, or (without
/// memory) in its own, which devices copy from and to.
struct Resident {
  std::shared_ptr<plugin::DeviceMemory> memory;
  const plugin::Device* device = nullptr;
  uint32_t space = 0; ///< as the images of programs count
};
using Residents = std::map<const void*, Resident>; ///< by the host's address

/// What the states of one model hold. They are zero at first; open dims are 0 then. Runs take
/// turns.
class States {
public:
  struct Held {
    bundle::BundleState state;
    uint32_t value; ///< of the output
    Tensor now, next;
  };
  using Allocate = std::function<Result<Bytes>(const bundle::BundleState&)>;
  using Run = std::function<Result<std::vector<Tensor>>(std::span<const Tensor> inputs)>;

  /// `allocate`: zeroed room for runs to write into; each state has two rooms then, which it
  /// changes with every run. Without it a state is the tensor that a run returned. Failure:
  /// out_of_memory, or what `allocate` says.
  Status init(const bundle::Bundle& bundle, const Allocate& allocate = nullptr);
  bool empty() const { return held_.empty(); }

  /// Runs once, with what is held in place of state inputs that have no type; keeps the results. A
  /// failure changes nothing. For states without rooms.
  Result<std::vector<Tensor>> run(std::span<const Tensor> given, const Run& once);

  /// Held while one run reads `now` and writes `next`, for states with rooms; holds nothing where
  /// there are no states.
  std::unique_lock<std::mutex> takeTurn();
  std::span<const Held> held() const { return held_; }
  /// The run succeeded: what was `next` is `now`.
  void advance();

private:
  std::vector<Held> held_;
  std::mutex turn_;
};

} // namespace candela::runtime::session
