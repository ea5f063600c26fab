#include "core/runtime/session/states.h"

#include <algorithm>

namespace candela::runtime::session {

Status States::init(const bundle::Bundle& bundle, const IsInPlace& isInPlace,
                    const Allocate& allocate) {
  std::vector<Held> all;
  for (const bundle::BundleState& state : bundle.states) {
    const bundle::BundleValue& input = bundle.values[bundle.inputs[state.input]];
    Held held{state, bundle.outputs[state.output], {}, {}, {}, {}};
    if (allocate) {
      CDL_ASSIGN(Room now, allocate(state));
      Room next = now;
      if (!isInPlace(state)) {
        CDL_ASSIGN(next, allocate(state));
      }
      held.now = {input.elem, input.dims, std::move(now.bytes)};
      held.next = {input.elem, input.dims, std::move(next.bytes)};
      held.nowAt = std::move(now.at);
      held.nextAt = std::move(next.at);
    } else {
      Shape dims = input.dims;
      for (int64_t& dim : dims) dim = std::max<int64_t>(dim, 0);
      CDL_ASSIGN(held.now, Tensor::zeros(input.elem, dims));
    }
    all.push_back(std::move(held));
  }
  held_ = std::move(all);
  return Status::ok();
}

Result<std::vector<Tensor>> States::run(std::span<const Tensor> given, const Run& once) {
  if (empty()) return once(given);
  const std::lock_guard turn(turn_);
  std::vector<Tensor> inputs(given.begin(), given.end());
  for (const Held& held : held_)
    if (held.state.input < inputs.size() && inputs[held.state.input].elem == Elem::none)
      inputs[held.state.input] = held.now;
  CDL_ASSIGN(std::vector<Tensor> outputs, once(inputs));
  for (Held& held : held_) held.now = outputs[held.state.output];
  return outputs;
}

std::unique_lock<std::mutex> States::takeTurn() {
  return empty() ? std::unique_lock<std::mutex>() : std::unique_lock(turn_);
}

void States::advance() {
  for (Held& held : held_) {
    std::swap(held.now, held.next);
    std::swap(held.nowAt, held.nextAt);
  }
}

} // namespace candela::runtime::session
