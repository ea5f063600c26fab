#pragma once

#include <candela/candela.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/compiler/driver/flow_model.h"
#include "core/support/mapped_file.h"
#include "core/support/out_of_memory.h"
#include "core/support/text/shown.h"

/// What stands behind the handles of candela.h.
struct candela_model {
  // A session, or a flow of them, or the oracle on an IR, of which the bundle tells only what it
  // is.
  std::unique_ptr<candela::runtime::session::Session> session;
  std::unique_ptr<candela::driver::FlowModel> flow;
  candela::driver::Ir ir;
  candela::runtime::bundle::Bundle described;

  const candela::runtime::bundle::Bundle& bundle() const {
    return session ? session->bundle() : described;
  }
  size_t inputs() const { return bundle().inputs.size(); }
  size_t outputs() const { return bundle().outputs.size(); }
  const candela::runtime::bundle::BundleValue& input(size_t i) const {
    return bundle().values[bundle().inputs[i]];
  }
  const candela::runtime::bundle::BundleValue& output(size_t i) const {
    return bundle().values[bundle().outputs[i]];
  }

  mutable candela::runtime::session::States
      states; ///< of a flow and of the oracle; a session has its own
  /// held by a run of a model with states until its outputs are written
  mutable std::mutex turn;
  /// Whether a state goes through that input or output.
  bool isState(uint32_t candela::runtime::bundle::BundleState::* port, uint32_t i) const {
    return std::ranges::count(bundle().states, i, port) > 0;
  }

  /// What a call of candela_run on a session needs, kept for the next one.
  struct Call {
    std::vector<candela::runtime::session::BufferRef> inputs, outputs;
    std::vector<candela::runtime::session::TraceEvent> events;
  };
  mutable candela::runtime::session::Pool<Call> calls;

  // What compiling and the newest run did.
  mutable std::mutex traceMutex;
  mutable std::vector<candela::runtime::session::TraceEvent> compiled, ran;
  std::atomic<bool> profiles = false;
  mutable std::mutex filesMutex;
  mutable candela::FileWatch::Files files; ///< that it still reads
  candela::Status checkFiles() const {
    const std::lock_guard lock(filesMutex);
    return checkUnchanged(files);
  }
  void keepWatching(const candela::FileWatch::Files& read) const {
    const std::lock_guard lock(filesMutex);
    files.insert(files.end(), read.begin(), read.end());
  }
  bool flatShapes = false; ///< ports come from a Program, whose buffers have sizes but no dims
  std::string report;
};

namespace candela::runtime::api {

/// Takes no memory: there may be none.
candela_status_t report(Code code, const char* message, char* error, size_t size);

/// Runs `body` and turns what it throws (out of memory, a defect in a library) into a status.
template <typename F> candela_status_t guarded(char* error, size_t size, F&& body) {
  const auto tell = [&](Code code, const char* message) {
    return report(code, message, error, size);
  };
  try {
    const Status status = body();
    return tell(status.code(), text::shownText(status.message()).c_str());
  } catch (const OutOfMemory& e) {
    return tell(Code::out_of_memory, e.what());
  } catch (const std::bad_alloc&) {
    return tell(Code::out_of_memory, "out of memory");
  } catch (const std::exception& e) {
    return tell(Code::internal, e.what());
  } catch (...) {
    return tell(Code::internal, "an exception of unknown type");
  }
}

char* duplicate(const std::string& text);

/// The same for what returns a text that the caller frees: NULL where there is none.
template <typename F> char* guardedText(F&& body) {
  try {
    return duplicate(body());
  } catch (...) {
    return nullptr;
  }
}

/// Fills a struct of the caller's version with as much as both know.
template <typename T> Status fillStruct(T& out, const T& filled) {
  const uint32_t size = out.struct_size;
  if (size < sizeof(uint32_t) * 2) return badArgument("a struct_size of {} bytes", size);
  std::memcpy(&out, &filled, std::min<size_t>(size, sizeof filled));
  out.struct_size = size;
  return Status::ok();
}

} // namespace candela::runtime::api
