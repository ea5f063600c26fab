#pragma once

#include <memory>
#include <new>

#include "core/support/status.h"

/// Memory that is not there. Where a function returns a Result it says so there; elsewhere it is
/// thrown, as by `new`.
namespace candela {

/// std::bad_alloc with a message of ours.
class OutOfMemory : public std::bad_alloc {
public:
  explicit OutOfMemory(std::string message)
      : message_(std::make_shared<const std::string>(std::move(message))) {}
  const char* what() const noexcept override { return message_->c_str(); }

private:
  std::shared_ptr<const std::string> message_; ///< copies of an exception must not throw
};

/// The value. A failure of the machine, which is memory that is not there, is thrown; another one
/// would be a defect of ours, and aborts.
template <typename T>
T orThrow(Result<T> result, std::source_location at = std::source_location::current()) {
  if (!result && result.status().code() == Code::out_of_memory)
    throw OutOfMemory(result.status().message());
  return std::move(result).orAbort(at);
}

} // namespace candela
