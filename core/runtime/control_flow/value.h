#pragma once

#include <memory>
#include <vector>

#include "core/support/tensor.h"

namespace candela::runtime::control_flow {

/// What one step of a flow hands to the next: nothing (an optional without a value), a tensor, or a
/// sequence of tensors. Copies share the bytes.
struct Value {
  enum class Kind : uint8_t { none, tensor, sequence };
  Kind kind = Kind::none;
  Tensor tensor;                                    ///< of a tensor
  std::shared_ptr<const std::vector<Tensor>> items; ///< of a sequence, never null there

  Value() = default;
  Value(Tensor tensor) : kind(Kind::tensor), tensor(std::move(tensor)) {}
  Value(std::vector<Tensor> items)
      : kind(Kind::sequence), items(std::make_shared<const std::vector<Tensor>>(std::move(items))) {
  }

  bool isNone() const { return kind == Kind::none; }
  bool isTensor() const { return kind == Kind::tensor; }
  bool isSequence() const { return kind == Kind::sequence; }
  /// "f32[2,3]", "a sequence of 4 tensors", "nothing"
  std::string text() const;
};

} // namespace candela::runtime::control_flow
