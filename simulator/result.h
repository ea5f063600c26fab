#pragma once

#include <optional>
#include <string>
#include <utility>

namespace candela::npu {

/// Why something cannot be done: lower case, no full stop, the name that the user knows and the two
/// numbers that disagree. The simulator has its own since a vendor's plugin links it without core/.
struct Error {
  std::string message;
};

/// A value, or the Error that says why there is none. Who reads it asks first which of the two it
/// is.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : error_(std::move(error)) {}

  /// Whether there is a value.
  explicit operator bool() const { return value_.has_value(); }
  /// Why there is none; empty where there is one.
  const std::string& message() const { return error_.message; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

private:
  std::optional<T> value_;
  Error error_;
};

/// Nothing, which is success, or an Error.
using Outcome = std::optional<Error>;

} // namespace candela::npu
