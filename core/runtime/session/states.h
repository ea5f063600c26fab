#pragma once

#include <functional>
#include <mutex>

#include "core/runtime/bundle/bundle.h"
#include "core/runtime/session/buffer_ref.h"

/// Outputs of a run that are inputs of the next one, such as the caches of a decoder.
namespace candela::runtime::session {

/// What the states of one model hold. They are zero at first; open dims are 0 then. Runs take
/// turns.
class States {
public:
  struct Held {
    bundle::BundleState state;
    uint32_t value; ///< of the output
    Tensor now, next;
    BufferRef nowAt, nextAt; ///< of states with rooms
  };
  using IsInPlace = std::function<bool(const bundle::BundleState&)>;
  using Allocate = std::function<Result<Room>(const bundle::BundleState&)>;
  using Run = std::function<Result<std::vector<Tensor>>(std::span<const Tensor> inputs)>;

  /// `allocate`: zeroed room for runs to write into; each state has two rooms then, which it
  /// changes with every run, or one that runs update in place. Without it a state is the tensor
  /// that a run returned. Failure: out_of_memory, or what `allocate` says.
  Status init(const bundle::Bundle& bundle, const IsInPlace& isInPlace = nullptr,
              const Allocate& allocate = nullptr);
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
