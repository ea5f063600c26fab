/// The embedding API for C++17: owning types over candela.h. Failures throw candela::sdk::Error.
#ifndef CANDELA_CANDELA_HPP
#define CANDELA_CANDELA_HPP

#include <candela/candela.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace candela::sdk {

class Error : public std::runtime_error {
public:
  Error(candela_status_t status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  candela_status_t status() const { return status_; }

private:
  candela_status_t status_;
};

namespace detail {

/// Long enough for a list of every unsupported node of a large model; kept, so that a call that
/// succeeds allocates nothing.
inline std::vector<char>& roomForError() {
  thread_local std::vector<char> room(1 << 16, '\0');
  return room;
}
/// Makes a call that returns a status, and throws where that is a failure.
template <typename F> void check(F&& call) {
  std::vector<char>& error = roomForError();
  error[0] = '\0';
  const candela_status_t status = call(error.data(), error.size());
  if (status != CANDELA_OK) throw Error(status, error.data());
}
/// A text of the library, which is freed.
inline std::string taken(char* c) {
  const std::string copy = c ? c : "";
  candela_free_text(c);
  return copy;
}

} // namespace detail

/// Threads of the process for what no backend takes; 0: what is usual. See candela_set_threads.
inline void setThreads(uint32_t count) {
  if (candela_set_threads(count) != CANDELA_OK)
    throw Error(CANDELA_INVALID_ARGUMENT, std::to_string(count) + " threads, expected 1 to 4096");
}
inline uint32_t threads() { return candela_threads(); }

/// An input or output of a model. Where only a run knows: a dim is -1, `ranked` is false, elem is
/// 0.
struct Port {
  std::string name;
  candela_elem_t elem;
  std::vector<int64_t> dims;
  uint64_t bytes;
  bool ranked = true;
  bool isKnown() const {
    bool known = ranked;
    for (const int64_t dim : dims) known = known && dim >= 0;
    return known;
  }
};

/// How to compile. Everything has a default.
struct Options {
  std::vector<candela_device_t*> devices = {}; ///< open ones, in the place of `backends`
  std::string backends = "soft";
  std::vector<std::string> dims, shapes, options, states;
  bool requireNative = false, toPrimitives = false, keepValues = false, bindAtRun = false,
       rematerialize = false;
  bool unstacked = false; ///< every node stays an instruction of its own
  bool noGroups = false;  ///< every instruction runs as a whole
  std::string partition;  ///< preference, cost or pipeline; empty: preference
  std::string pinFile;    ///< which nodes have to be where; empty: none
  std::string precision;  ///< of products: f16 or bf16; empty: the model's
  void (*progress)(void* context, const char* stage, double fraction) = nullptr;
  void* progressContext = nullptr;
};

namespace detail {

/// Calls with the options as the interface in C takes them.
template <typename F> auto withOptions(const Options& options, F&& call) {
  const auto list = [](const std::vector<std::string>& in) {
    std::vector<const char*> out;
    for (const std::string& text : in) out.push_back(text.c_str());
    out.push_back(nullptr);
    return out;
  };
  const auto dims = list(options.dims);
  const auto shapes = list(options.shapes);
  const auto keyed = list(options.options);
  const auto states = list(options.states);
  candela_options_t c = CANDELA_OPTIONS_INIT;
  c.flags = (options.requireNative ? CANDELA_FLAG_REQUIRE_NATIVE : 0) |
            (options.toPrimitives ? CANDELA_FLAG_TO_PRIMITIVES : 0) |
            (options.keepValues ? CANDELA_FLAG_KEEP_VALUES : 0) |
            (options.bindAtRun ? CANDELA_FLAG_BIND_AT_RUN : 0) |
            (options.rematerialize ? CANDELA_FLAG_REMATERIALIZE : 0) |
            (options.unstacked ? CANDELA_FLAG_UNSTACKED : 0) |
            (options.noGroups ? CANDELA_FLAG_NO_GROUPS : 0);
  c.backends = options.devices.empty() ? options.backends.c_str() : nullptr;
  c.devices = options.devices.data();
  c.device_count = static_cast<uint32_t>(options.devices.size());
  c.dims = dims.data();
  c.shapes = shapes.data();
  c.options = keyed.data();
  c.states = states.data();
  c.partition = options.partition.empty() ? nullptr : options.partition.c_str();
  c.pin_file = options.pinFile.empty() ? nullptr : options.pinFile.c_str();
  c.precision = options.precision.empty() ? nullptr : options.precision.c_str();
  c.progress = options.progress;
  c.progress_context = options.progressContext;
  return call(c);
}

} // namespace detail

/// A compiled model. Movable; run() from any number of threads.
class Model {
public:
  /// Owns what a function in C made.
  static Model adopt(candela_model_t* model) { return Model(model); }
  /// Compiles a model, of any format that is read, or a .cdl file.
  static Model compile(const std::string& path, const Options& options = {}) {
    return compileWith(options, [&](const candela_options_t& c, candela_model_t** model,
                                    char* error, size_t size) {
      return candela_compile(path.c_str(), &c, model, error, size);
    });
  }
  /// Compiles the content of such a file; `name` stands for its path.
  static Model compile(const void* data, size_t bytes, const std::string& name,
                       const Options& options = {}) {
    return compileWith(options, [&](const candela_options_t& c, candela_model_t** model,
                                    char* error, size_t size) {
      return candela_compile_memory(data, bytes, name.c_str(), &c, model, error, size);
    });
  }

  /// Loads a bundle.
  static Model load(const std::string& path) {
    return make([&](candela_model_t** model, char* error, size_t size) {
      return candela_load(path.c_str(), model, error, size);
    });
  }
  /// Loads the content of a bundle; `name` stands for its path.
  static Model load(const void* data, size_t bytes, const std::string& name) {
    return make([&](candela_model_t** model, char* error, size_t size) {
      return candela_load_memory(data, bytes, name.c_str(), model, error, size);
    });
  }

  candela_model_t* get() const { return model_.get(); }

  void save(const std::string& path) const {
    detail::check([&](char* error, size_t size) {
      return candela_save(model_.get(), path.c_str(), error, size);
    });
  }

  std::vector<Port> inputs() const { return ports(candela_input_count, candela_input); }
  std::vector<Port> outputs() const { return ports(candela_output_count, candela_output); }

  /// Runs once; inputs and outputs as candela_run wants them.
  void run(const std::vector<candela_tensor_t>& inputs,
           std::vector<candela_tensor_t>& outputs) const {
    detail::check([&](char* error, size_t size) {
      return candela_run(model_.get(), inputs.data(), static_cast<uint32_t>(inputs.size()),
                         outputs.data(), static_cast<uint32_t>(outputs.size()), error, size);
    });
  }

  void profile(bool on) { candela_profile(model_.get(), on ? 1 : 0); }
  std::string reportJson() const {
    const char* const report = candela_report_json(model_.get());
    return report ? report : "";
  }
  std::string traceJson() const { return detail::taken(candela_trace_json(model_.get())); }
  static std::string backendsJson(const std::vector<std::string>& paths = {}) {
    std::vector<const char*> list;
    for (const std::string& path : paths) list.push_back(path.c_str());
    list.push_back(nullptr);
    return detail::taken(candela_backends_json(list.data()));
  }

private:
  struct Free {
    void operator()(candela_model_t* model) const { candela_free(model); }
  };
  explicit Model(candela_model_t* model) : model_(model) {}

  template <typename F> static Model make(F&& call) {
    candela_model_t* model = nullptr;
    detail::check([&](char* error, size_t size) { return call(&model, error, size); });
    return Model(model);
  }
  template <typename F> static Model compileWith(const Options& options, F&& call) {
    return detail::withOptions(options, [&](const candela_options_t& c) {
      return make([&](candela_model_t** model, char* error, size_t size) {
        return call(c, model, error, size);
      });
    });
  }
  template <typename Count, typename Get> std::vector<Port> ports(Count count, Get get) const {
    std::vector<Port> ports;
    for (uint32_t i = 0, n = count(model_.get()); i < n; ++i) {
      candela_tensor_t t{};
      const char* name = get(model_.get(), i, &t);
      const bool ranked = t.rank != CANDELA_UNKNOWN_RANK;
      ports.push_back({name, t.elem, std::vector<int64_t>(t.dims, t.dims + (ranked ? t.rank : 0)),
                       t.bytes, ranked});
    }
    return ports;
  }

  std::unique_ptr<candela_model_t, Free> model_;
};

} // namespace candela::sdk

#endif
