#pragma once

#include <fmt/format.h>

#include <optional>
#include <source_location>
#include <string>
#include <utility>

#include "candela/cdl.h"

namespace candela {

/// What went wrong, by what the caller should do about it; the numbers of the ABI
/// (spec/codes.toml).
enum class Code : uint16_t {
#define CANDELA_CODE(name, id, text) name = id,
  CDL_CODES(CANDELA_CODE)
#undef CANDELA_CODE
};

/// The code's name as in spec/codes.toml.
const char* codeName(Code code);

/// Success, or a code and a message: lower case, no full stop, with the name that the user knows
/// and the two numbers that disagree.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status ok() { return {}; }
  bool isOk() const { return code_ == Code::ok; }
  explicit operator bool() const { return isOk(); }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  /// The same status with "prefix: " in front of the message; success stays as it is.
  Status context(std::string_view prefix) const;

private:
  Code code_ = Code::ok;
  std::string message_;
};

template <typename... Args>
Status failure(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return {code, fmt::format(format, std::forward<Args>(args)...)};
}
/// The model, text or image is malformed.
template <typename... Args> Status badModel(fmt::format_string<Args...> format, Args&&... args) {
  return {Code::bad_model, fmt::format(format, std::forward<Args>(args)...)};
}
/// The caller passed something wrong.
template <typename... Args> Status badArgument(fmt::format_string<Args...> format, Args&&... args) {
  return {Code::invalid_argument, fmt::format(format, std::forward<Args>(args)...)};
}

[[noreturn]] void checkFailed(const char* file, int line, const char* condition,
                              const std::string& message);

/// A value, or the Status that says why there is none.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  bool isOk() const { return value_.has_value(); }
  explicit operator bool() const { return isOk(); }
  const Status& status() const { return status_; }
  /// The same with "prefix: " in front of the failure's message.
  Result context(std::string_view prefix) && {
    return isOk() ? std::move(*this) : Result(status_.context(prefix));
  }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return *std::move(value_); }
  /// The value, where a failure would be a defect of ours.
  T orAbort(std::source_location at = std::source_location::current()) && {
    if (!isOk())
      checkFailed(at.file_name(), static_cast<int>(at.line()), "isOk()", status_.message());
    return *std::move(value_);
  }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

private:
  std::optional<T> value_;
  Status status_;
};

} // namespace candela

/// A defect in our own code: aborts with file and line. Never for bad input.
#define CDL_CHECK(condition, ...)                                                                  \
  do {                                                                                             \
    if (!(condition))                                                                              \
      ::candela::checkFailed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__));       \
  } while (0)

#define CDL_CONCAT_INNER(a, b) a##b
#define CDL_CONCAT(a, b) CDL_CONCAT_INNER(a, b)

/// Returns from the enclosing function when the Status is a failure.
#define CDL_TRY(expression)                                                                        \
  do {                                                                                             \
    if (::candela::Status cdlStatus = (expression); !cdlStatus) return cdlStatus;                  \
  } while (0)

/// CDL_ASSIGN(auto x, f()): x is the value of the Result, or its Status is returned.
#define CDL_ASSIGN(target, expression)                                                             \
  auto CDL_CONCAT(cdlResult, __LINE__) = (expression);                                             \
  if (!CDL_CONCAT(cdlResult, __LINE__)) return CDL_CONCAT(cdlResult, __LINE__).status();           \
  target = std::move(CDL_CONCAT(cdlResult, __LINE__)).value()
