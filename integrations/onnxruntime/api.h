/// ONNX Runtime's tables, called so that a failure is an exception, and exceptions of this library
/// as a status of theirs.
#ifndef CANDELA_INTEGRATIONS_ONNXRUNTIME_API_H
#define CANDELA_INTEGRATIONS_ONNXRUNTIME_API_H

#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <candela/candela.hpp>

#include "integrations/onnxruntime/ort_abi.h"

namespace candela::ort {

/// What ends as a status of ONNX Runtime.
class Failure : public std::runtime_error {
public:
  Failure(abi::ErrorCode code, const std::string& message)
      : std::runtime_error(message), code_(code) {}
  abi::ErrorCode code() const { return code_; }

private:
  abi::ErrorCode code_;
};

abi::ErrorCode codeOf(candela_status_t status);

/// The tables of the ONNX Runtime that opened this library. Threads: any.
class Api {
public:
  /// Throws Failure where the release is older than what is used.
  explicit Api(const abi::OrtApiBase& base);

  /// Calls a function of a table; one that returns a status throws Failure where that is one.
  template <typename Table, typename Result, typename... Arguments, typename... Given>
  Result call(abi::Slot<Table, Result(Arguments...)> slot, Given... given) const {
    return abi::function(table(slot), slot)(given...);
  }
  template <typename Table, typename... Arguments, typename... Given>
  void call(abi::Slot<Table, abi::OrtStatus*(Arguments...)> slot, Given... given) const {
    check(abi::function(table(slot), slot)(given...));
  }
  /// The one result of a function that writes it to its last argument.
  template <typename T, typename Table, typename... Arguments, typename... Given>
  T get(abi::Slot<Table, abi::OrtStatus*(Arguments...)> slot, Given... given) const {
    T result{};
    call(slot, given..., &result);
    return result;
  }
  /// A list of `Count` and `Fill`, two functions of one thing.
  template <typename T, typename Owner>
  std::vector<const T*> list(abi::ApiSlot<abi::OrtStatus*(const Owner*, size_t*)> count,
                             abi::ApiSlot<abi::OrtStatus*(const Owner*, const T**, size_t)> fill,
                             const Owner* owner) const {
    std::vector<const T*> items(get<size_t>(count, owner));
    if (!items.empty()) call(fill, owner, items.data(), items.size());
    return items;
  }

  /// What an attribute holds that is no tensor and no graph: numbers as they lie in memory, one
  /// text as it is, several texts with a zero behind each.
  std::string contentOf(const abi::OrtOpAttr* attribute, abi::AttributeType type) const;
  /// Throws Failure with the text of a status, which it frees.
  void check(abi::OrtStatus* status) const;
  abi::OrtStatus* status(abi::ErrorCode code, const char* message) const;
  /// The library's own messages; one that cannot be written is lost.
  void log(const abi::OrtLogger* logger, abi::Severity severity, const std::string& message) const;

  /// The version whose functions may be called: abi::kApiVersion or a later one that is used.
  uint32_t version() const { return version_; }
  bool hasEditor() const { return editor_ != nullptr; }

private:
  size_t sizeOf(const abi::OrtOpAttr* attribute, abi::AttributeType type) const;
  template <typename F> const abi::OrtApi* table(abi::ApiSlot<F>) const { return api_; }
  template <typename F> const abi::OrtEpApi* table(abi::EpApiSlot<F>) const { return ep_; }
  template <typename F> const abi::OrtModelEditorApi* table(abi::EditorSlot<F>) const {
    return editor_;
  }

  const abi::OrtApi* api_ = nullptr;
  const abi::OrtEpApi* ep_ = nullptr;
  const abi::OrtModelEditorApi* editor_ = nullptr;
  uint32_t version_ = abi::kApiVersion;
  size_t behindText_ = 0; ///< zeros that an attribute's text ends with: releases differ
};

/// What a function of the C border does: whatever it throws becomes a status.
template <typename F> abi::OrtStatus* guarded(const Api& api, F&& work) noexcept {
  try {
    work();
    return nullptr;
  } catch (const Failure& failure) {
    return api.status(failure.code(), failure.what());
  } catch (const sdk::Error& error) {
    return api.status(codeOf(error.status()), error.what());
  } catch (const std::bad_alloc&) {
    return api.status(abi::ErrorCode::EpFail, "Candela: out of memory");
  } catch (const std::exception& error) {
    return api.status(abi::ErrorCode::EpFail, error.what());
  } catch (...) {
    return api.status(abi::ErrorCode::EpFail, "Candela: an unknown failure");
  }
}

/// The same of a function that can say nothing of a failure.
template <typename F> void quietly(const Api& api, F&& work) noexcept {
  if (abi::OrtStatus* const status = guarded(api, work)) api.call(abi::ReleaseStatus, status);
}

/// What ONNX Runtime lends until it is released by a function of its table.
template <typename T, typename Slot> auto owned(const Api& api, T* what, Slot release) {
  const auto free = [&api, release](T* owned) {
    if (owned) api.call(release, owned);
  };
  return std::unique_ptr<T, decltype(free)>(what, free);
}

} // namespace candela::ort

#endif
