/// The asynchronous half of the embedding API for C++17: owning types over async.h. Failures throw
/// candela::sdk::Error.
#ifndef CANDELA_ASYNC_HPP
#define CANDELA_ASYNC_HPP

#include <candela/async.h>
#include <candela/candela.hpp>

#include <chrono>
#include <functional>

namespace candela::sdk {

namespace detail {

template <typename T, void (*Free)(T*)> struct Deleter {
  void operator()(T* object) const { Free(object); }
};
template <typename T, void (*Free)(T*)> using Handle = std::unique_ptr<T, Deleter<T, Free>>;

} // namespace detail

/// An open device. Movable.
class Device {
public:
  /// "acme:1"; see candela_device_open.
  static Device open(const std::string& name, const std::vector<std::string>& options = {}) {
    std::vector<const char*> list;
    for (const std::string& option : options) list.push_back(option.c_str());
    list.push_back(nullptr);
    candela_device_t* device = nullptr;
    detail::check([&](char* error, size_t size) {
      return candela_device_open(name.c_str(), list.data(), &device, error, size);
    });
    return Device(device);
  }
  candela_device_properties_t properties() const {
    candela_device_properties_t properties{};
    properties.struct_size = sizeof properties;
    candela_device_properties(handle_.get(), &properties);
    return properties;
  }
  candela_device_memory_t memory() const {
    candela_device_memory_t memory{};
    memory.struct_size = sizeof memory;
    candela_device_memory(handle_.get(), &memory);
    return memory;
  }
  candela_device_t* get() const { return handle_.get(); }

private:
  explicit Device(candela_device_t* device) : handle_(device) {}
  detail::Handle<candela_device_t, candela_device_close> handle_;
};

/// Bytes on a device or on the host. Movable.
class Buffer {
public:
  static Buffer create(const Device& device, uint64_t bytes) { return make(device.get(), bytes); }
  static Buffer onHost(uint64_t bytes) { return make(nullptr, bytes); }

  uint64_t bytes() const { return candela_buffer_bytes(handle_.get()); }
  /// Null where the host does not see it.
  void* data() const { return candela_buffer_data(handle_.get()); }
  void write(const void* from, uint64_t bytes, uint64_t offset = 0) {
    detail::check([&](char* error, size_t size) {
      return candela_buffer_write(handle_.get(), offset, from, bytes, error, size);
    });
  }
  void read(void* to, uint64_t bytes, uint64_t offset = 0) const {
    detail::check([&](char* error, size_t size) {
      return candela_buffer_read(handle_.get(), offset, to, bytes, error, size);
    });
  }
  void copyTo(Buffer& to, uint64_t bytes) const {
    detail::check([&](char* error, size_t size) {
      return candela_buffer_copy(to.get(), 0, handle_.get(), 0, bytes, error, size);
    });
  }
  candela_buffer_t* get() const { return handle_.get(); }

private:
  explicit Buffer(candela_buffer_t* buffer) : handle_(buffer) {}
  static Buffer make(candela_device_t* device, uint64_t bytes) {
    candela_buffer_t* buffer = nullptr;
    detail::check([&](char* error, size_t size) {
      return candela_buffer_create(device, bytes, &buffer, error, size);
    });
    return Buffer(buffer);
  }
  detail::Handle<candela_buffer_t, candela_buffer_free> handle_;
};

/// A number that requests and the program move and wait for. Movable.
class Timeline {
public:
  Timeline() {
    candela_timeline_t* timeline = nullptr;
    const candela_status_t status = candela_timeline_create(&timeline);
    if (status != CANDELA_OK) throw Error(status, "no timeline can be made");
    handle_.reset(timeline);
  }
  uint64_t value() const { return candela_timeline_value(handle_.get()); }
  void signal(uint64_t value) {
    const candela_status_t status = candela_timeline_signal(handle_.get(), value);
    if (status != CANDELA_OK) throw Error(status, "the timeline is beyond that value");
  }
  void wait(uint64_t value, uint64_t timeoutNs = CANDELA_FOREVER) const {
    detail::check([&](char* error, size_t size) {
      return candela_timeline_wait(handle_.get(), value, timeoutNs, error, size);
    });
  }
  candela_timeline_t* get() const { return handle_.get(); }

private:
  detail::Handle<candela_timeline_t, candela_timeline_free> handle_;
};

/// An input or output of a request.
inline candela_argument_t argument(const candela_tensor_t& tensor) { return {tensor, nullptr, 0}; }
inline candela_argument_t argument(const Buffer& buffer, uint64_t offset = 0) {
  return {candela_tensor_t{}, buffer.get(), offset};
}
/// An output that the library allocates.
inline candela_argument_t anywhere() { return {candela_tensor_t{}, nullptr, 0}; }

/// One run that was asked for. Movable; without it the request goes on.
class Request {
public:
  bool isDone() const { return candela_request_done(handle_.get()) != 0; }
  void wait() const {
    detail::check([&](char* error, size_t size) {
      return candela_request_wait(handle_.get(), CANDELA_FOREVER, error, size);
    });
  }
  /// Whether it was done in this time. Throws how it failed.
  bool waitFor(std::chrono::nanoseconds time) const {
    try {
      detail::check([&](char* error, size_t size) {
        return candela_request_wait(handle_.get(), static_cast<uint64_t>(time.count()), error,
                                    size);
      });
      return true;
    } catch (const Error& error) {
      if (error.status() == CANDELA_TIMEOUT && !isDone()) return false;
      throw;
    }
  }
  void cancel() { candela_request_cancel(handle_.get()); }
  /// Of a request that succeeded.
  candela_tensor_t output(uint32_t index) const {
    candela_tensor_t output{};
    const candela_status_t status = candela_request_output(handle_.get(), index, &output);
    if (status != CANDELA_OK) throw Error(status, "no output " + std::to_string(index));
    return output;
  }

private:
  friend class Session;
  explicit Request(candela_request_t* request) : handle_(request) {}
  detail::Handle<candela_request_t, candela_request_free> handle_;
};

/// What a request waits for, moves, and how long it may take.
struct RequestOptions {
  std::vector<candela_moment_t> waits, signals;
  std::chrono::nanoseconds timeout{0}; ///< 0: no limit
  bool refuseWhenFull = false;
  /// Called once when it is done, as candela_submission_t::done is; it does not throw.
  std::function<void(candela_status_t status, const std::string& message)> done;
};

/// Runs requests on copies of a model, which live longer. Movable; its end cancels what is not
/// done.
class Session {
public:
  struct Options {
    uint32_t capacity = 256, inFlight = 2;
    bool trace = false;
  };
  explicit Session(const std::vector<const Model*>& models) : Session(models, Options()) {}
  Session(const std::vector<const Model*>& models, const Options& options) {
    std::vector<candela_model_t*> list;
    for (const Model* model : models) list.push_back(model->get());
    candela_session_options_t c = CANDELA_SESSION_OPTIONS_INIT;
    c.capacity = options.capacity;
    c.in_flight = options.inFlight;
    c.flags = options.trace ? CANDELA_SESSION_TRACE : 0;
    candela_session_t* session = nullptr;
    detail::check([&](char* error, size_t size) {
      return candela_session_create(list.data(), static_cast<uint32_t>(list.size()), &c, &session,
                                    error, size);
    });
    handle_.reset(session);
  }

  Request submit(const std::vector<candela_argument_t>& inputs,
                 const std::vector<candela_argument_t>& outputs,
                 const RequestOptions& options = {}) {
    candela_submission_t c = CANDELA_SUBMISSION_INIT;
    c.flags = options.refuseWhenFull ? CANDELA_SUBMIT_REFUSE_WHEN_FULL : 0;
    c.inputs = inputs.data();
    c.outputs = outputs.data();
    c.input_count = static_cast<uint32_t>(inputs.size());
    c.output_count = static_cast<uint32_t>(outputs.size());
    c.waits = options.waits.data();
    c.signals = options.signals.data();
    c.wait_count = static_cast<uint32_t>(options.waits.size());
    c.signal_count = static_cast<uint32_t>(options.signals.size());
    c.timeout_ns = static_cast<uint64_t>(options.timeout.count());
    auto done = options.done ? std::make_unique<Done>(options.done) : nullptr;
    if (done) c.done = callBack;
    c.context = done.get();
    candela_request_t* request = nullptr;
    detail::check([&](char* error, size_t size) {
      return candela_submit(handle_.get(), &c, &request, error, size);
    });
    done.release(); // which callBack frees
    return Request(request);
  }
  std::string statsJson() const { return detail::taken(candela_session_stats_json(handle_.get())); }
  std::string traceJson() { return detail::taken(candela_session_trace_json(handle_.get())); }

private:
  using Done = std::function<void(candela_status_t, const std::string&)>;
  static void callBack(void* context, candela_status_t status, const char* message) {
    const std::unique_ptr<Done> done(static_cast<Done*>(context));
    (*done)(status, message);
  }
  detail::Handle<candela_session_t, candela_session_free> handle_;
};

} // namespace candela::sdk

#endif
