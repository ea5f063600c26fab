// Status: what every function of a backend returns; and the guard that keeps exceptions inside of
// the plugin.
#pragma once

#include "candela/cdl.h"

#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace cdl {

/// The parts one behind the other; numbers in decimal.
template <class... Parts> std::string text(const Parts&... parts) {
  const auto shown = [](const auto& part) -> std::string {
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(part)>>)
      return std::to_string(part);
    else
      return part;
  };
  return (std::string() + ... + shown(parts));
}

/// A code, the vendor's own number and a text for people. Default: ok.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(cdl_code_t code, std::string text, int32_t vendorCode = 0)
      : code_(code), vendorCode_(vendorCode), text_(std::move(text)) {}

  bool isOk() const { return code_ == CDL_OK; }
  cdl_code_t code() const { return code_; }
  int32_t vendorCode() const { return vendorCode_; }
  const std::string& text() const { return text_; }

  /// Of a late refusal: the instruction (0: the whole Program) and a CDL_REASON_*.
  uint32_t instr() const { return instr_; }
  cdl_reason_t reason() const { return reason_; }

  friend Status refused(uint32_t instr, cdl_reason_t reason, std::string text);

private:
  cdl_code_t code_ = CDL_OK;
  int32_t vendorCode_ = 0;
  uint32_t instr_ = 0;
  cdl_reason_t reason_ = CDL_REASON_NONE;
  std::string text_;
};

inline Status ok() { return Status(); }
inline Status error(cdl_code_t code, std::string text, int32_t vendorCode = 0) {
  return Status(code, std::move(text), vendorCode);
}
inline Status unsupported(std::string text) { return Status(CDL_UNSUPPORTED, std::move(text)); }

/// What compile returns for an instruction that the rows allow but the device cannot do: the core
/// bars it and partitions again.
inline Status refused(uint32_t instr, cdl_reason_t reason, std::string text) {
  Status status(CDL_REFUSED, std::move(text));
  status.instr_ = instr;
  status.reason_ = reason;
  return status;
}

/// Thrown by the accessors below for a view or type that the instruction does not have; caught by
/// guard().
class BadAccess : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Thrown for a binding that the caller got wrong.
class BadBinding : public BadAccess {
public:
  using BadAccess::BadAccess;
};

inline const char* elemName(uint8_t elem) { return cdl_elem_name(elem); }

inline std::string kindName(uint16_t kind) {
  const cdl_kind_facts_t* facts = cdl_kind_facts(kind);
  return facts ? facts->name : "kind " + std::to_string(kind);
}

namespace detail {

inline cdl_code_t report(cdl_error_t* error, const Status& status) {
  if (error) error->vendor_code = status.vendorCode();
  return cdl_set_error(error, status.code(), status.text().c_str());
}

/// Runs a function that returns a Status, and makes one of what it throws.
template <class F> Status caught(F&& function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return error(CDL_OUT_OF_MEMORY, "out of memory");
  } catch (const BadBinding& e) {
    return error(CDL_INVALID_ARGUMENT, e.what());
  } catch (const std::exception& e) {
    return error(CDL_INTERNAL, e.what());
  } catch (...) {
    return error(CDL_INTERNAL, "an exception of unknown type");
  }
}

/// Runs a function that returns a Status; nothing that it throws passes the interface.
template <class F> cdl_code_t guard(cdl_error_t* e, F&& function) noexcept {
  try {
    return report(e, caught(function));
  } catch (...) {
    return cdl_set_error(e, CDL_OUT_OF_MEMORY, "out of memory");
  }
}

} // namespace detail
} // namespace cdl
