// The module candela._native: the classes of the package, over which candela/__init__.py lies.
#include <algorithm>
#include <atomic>

#include <pybind11/stl.h>

#include "python/native/requests.h"
#include "python/native/trainer.h"

namespace candela::python {
namespace {

// Of DLPack, dlpack.h: kinds of devices.
constexpr int kDlCpu = 1;
constexpr int kDlExtension = 12;

/// The exception classes of candela.errors, by status.
PyObject* errorClasses() {
  static PyObject* const classes =
      py::object(py::module_::import("candela.errors").attr("BY_STATUS")).release().ptr();
  return classes;
}

py::str decoded(const std::string& text) {
  PyObject* const str = PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "replace");
  if (!str) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(str);
}

void translate(std::exception_ptr thrown) {
  if (!thrown) return;
  try {
    std::rethrow_exception(thrown);
  } catch (const sdk::Error& error) {
    const py::object made = py::reinterpret_borrow<py::dict>(
        errorClasses())[py::int_(int(error.status()))](decoded(error.what()));
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
  }
}

/// Calls Python from a compilation, which runs without the interpreter's lock. The first exception,
/// or Ctrl-C, is kept for its end. The model has its address and calls it from runs too, on threads
/// of the library, when they compile what waited for shapes: nobody listens then.
struct Progress {
  py::object call;
  std::optional<py::error_already_set> raised;
  std::atomic<bool> listens = true;

  static void report(void* context, const char* stage, double fraction) {
    auto& self = *static_cast<Progress*>(context);
    if (!self.listens) return;
    const py::gil_scoped_acquire acquire;
    if (self.raised) return;
    try {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (!self.call.is_none()) self.call(stage, fraction);
    } catch (py::error_already_set& error) {
      self.raised.emplace(std::move(error));
    }
  }
  /// With the interpreter's lock. Throws what was raised.
  void stop() {
    listens = false;
    call = py::none();
    if (!raised) return;
    const py::error_already_set error = std::move(*raised);
    raised.reset();
    throw error;
  }
};

struct Source {
  std::optional<std::string> content; ///< else a file has it
  std::string name;                   ///< the path, or what stands for it
};

sdk::Model compiledModel(const Source& source, const sdk::Options& options,
                         const std::optional<sdk::Gradients>& gradients) {
  const std::string& name = source.name;
  if (!source.content)
    return gradients ? sdk::compileGradients(name, *gradients, options)
                     : sdk::Model::compile(name, options);
  const void* data = source.content->data();
  const size_t bytes = source.content->size();
  return gradients ? sdk::compileGradients(data, bytes, name, *gradients, options)
                   : sdk::Model::compile(data, bytes, name, options);
}

/// A model, or its gradients.
std::shared_ptr<Session> compiled(const Source& source, sdk::Options options,
                                  const std::optional<sdk::Gradients>& gradients,
                                  const py::object& call, const sdk::Session::Options& requests) {
  const auto progress = std::make_shared<Progress>(call);
  options.progress = Progress::report;
  options.progressContext = progress.get();
  std::optional<sdk::Model> model;
  {
    const Outside outside;
    model = compiledModel(source, options, gradients);
  }
  progress->stop();
  return std::make_shared<Session>(std::move(*model), requests, progress);
}

std::shared_ptr<Trainer> trainerOf(const Source& source, const sdk::Training& training,
                                   sdk::Options options, const py::object& call) {
  Progress progress{call, {}, true}; // of compiling alone: steps call nothing
  options.progress = Progress::report;
  options.progressContext = &progress;
  std::optional<sdk::Trainer> trainer;
  {
    const Outside outside;
    if (source.content)
      trainer = sdk::Trainer::create(source.content->data(), source.content->size(), source.name,
                                     training, options);
    else
      trainer = sdk::Trainer::create(source.name, training, options);
  }
  progress.stop();
  return std::make_shared<Trainer>(std::move(*trainer));
}

sdk::Model loaded(const Source& source) {
  const Outside outside;
  if (source.content)
    return sdk::Model::load(source.content->data(), source.content->size(), source.name);
  return sdk::Model::load(source.name);
}

sdk::Session::Options requestOptions(uint32_t capacity, uint32_t inFlight) {
  sdk::Session::Options options;
  options.capacity = capacity;
  options.inFlight = inFlight;
  return options;
}

/// Whether anything says how to compile, for a bundle that is compiled.
bool areSet(const sdk::Options& options) {
  const bool isNamed = !options.dims.empty() || !options.shapes.empty() ||
                       !options.options.empty() || !options.states.empty() ||
                       !options.devices.empty() || !options.partition.empty() ||
                       !options.pinFile.empty();
  return isNamed || options.requireNative || options.toPrimitives || options.keepValues ||
         options.rematerialize;
}

/// The options have addresses alone: whoever calls this keeps the devices.
void setDevices(sdk::Options& options, const std::vector<std::shared_ptr<Device>>& devices) {
  options.devices.clear();
  for (const auto& device : devices) {
    if (!device)
      throw sdk::Error(CANDELA_INVALID_ARGUMENT, "devices: None, expected candela.Device");
    options.devices.push_back(device->get());
  }
}

void defineOptions(py::module_& module) {
  py::class_<sdk::Options>(module, "Options", "How to compile.")
      .def(py::init<>())
      .def_readwrite("backends", &sdk::Options::backends)
      .def_readwrite("dims", &sdk::Options::dims)
      .def_readwrite("shapes", &sdk::Options::shapes)
      .def_readwrite("options", &sdk::Options::options)
      .def_readwrite("states", &sdk::Options::states)
      .def_readwrite("require_native", &sdk::Options::requireNative)
      .def_readwrite("to_primitives", &sdk::Options::toPrimitives)
      .def_readwrite("keep_values", &sdk::Options::keepValues)
      .def_readwrite("bind_at_run", &sdk::Options::bindAtRun)
      .def_readwrite("rematerialize", &sdk::Options::rematerialize)
      .def_readwrite("partition", &sdk::Options::partition)
      .def_readwrite("pin_file", &sdk::Options::pinFile)
      .def("are_set", areSet)
      .def("set_devices", setDevices, py::keep_alive<1, 2>());
}

void definePort(py::module_& module) {
  const auto type = [](const Port& self) { return self.element ? self.element->name : nullptr; };
  const auto dtype = [](const Port& self) {
    return self.element ? dtypeOf(*self.element) : py::none();
  };
  py::class_<Port>(module, "Port", "An input or output of a model.")
      .def_property_readonly("name", [](const Port& self) { return self.pyName; })
      .def_property_readonly("type", type)
      .def_property_readonly("dtype", dtype)
      .def_property_readonly("shape", &Port::shape)
      .def_property_readonly("is_state", [](const Port& self) { return self.isState; })
      .def("__repr__", [type](const Port& self) {
        return py::str("<candela.Port {!r} {} {}>").format(self.pyName, type(self), self.shape());
      });
}

void defineDevice(py::module_& module) {
  const auto open = [](const std::string& name, const std::optional<py::dict>& options) {
    std::vector<std::string> list;
    for (const auto& [key, value] : options.value_or(py::dict()))
      list.push_back(std::string(py::str(key)) + "=" + std::string(py::str(value)));
    return std::make_shared<Device>(name, list);
  };
  const auto properties = [](const Device& self) {
    const candela_device_properties_t of = self.properties();
    py::dict named;
    named["id"] = of.id;
    named["index"] = of.index;
    named["name"] = of.name;
    named["backend"] = of.backend;
    named["version"] = of.version;
    named["profiles"] = of.profiles;
    named["host_mapped"] = of.host_mapped != 0;
    named["compiles"] = of.compiles != 0;
    named["capacity_bytes"] = of.capacity_bytes;
    named["alignment"] = of.alignment;
    return named;
  };
  const auto memory = [](const Device& self) {
    const candela_device_memory_t of = self.memory();
    return py::make_tuple(of.bytes_in_use, of.most_bytes);
  };
  py::class_<Device, std::shared_ptr<Device>>(
      module, "Device", "An open device, by \"acme\", \"acme:1\" or the path of a plugin.")
      .def(py::init(open), py::arg("name"), py::arg("options") = py::none())
      .def_property_readonly("id", [](const Device& self) { return self.properties().id; })
      .def_property_readonly("properties", properties)
      .def_property_readonly("memory", memory);
}

/// What a tensor of Candela does not do for DLPack, beside what the library refuses.
void checkDlpackWish(const py::kwargs& wish) {
  if (wish.contains("copy") && wish["copy"].ptr() == Py_True)
    throw py::buffer_error("DLPack tensors of Candela share memory: they are no copies");
  if (!wish.contains("dl_device") || py::object(wish["dl_device"]).is_none()) return;
  if (!py::object(wish["dl_device"]).equal(py::make_tuple(kDlCpu, 0)))
    throw py::buffer_error("DLPack tensors of Candela are in memory that the host sees");
}

void defineTensor(py::module_& module) {
  const auto setBufferProtocol = [](PyHeapTypeObject* type) {
    type->as_buffer.bf_getbuffer = Tensor::getBuffer;
    type->as_buffer.bf_releasebuffer = Tensor::releaseBuffer;
    type->ht_type.tp_as_buffer = &type->as_buffer;
  };
  const auto create = [](const std::vector<int64_t>& shape, const py::object& dtype,
                         const Device* device) {
    return Tensor::create(shape, elementFrom(dtype), device);
  };
  const auto address = [](const Tensor& self) {
    self.checkUsable();
    return reinterpret_cast<uintptr_t>(self.data());
  };
  const auto array = [](Tensor& self, const py::object& dtype, const py::object&) {
    const py::object made = self.numpy();
    return dtype.is_none() ? made : py::object(made.attr("astype")(dtype));
  };
  const auto dlpack = [](Tensor& self, const py::kwargs& wish) {
    checkDlpackWish(wish);
    return self.dlpack();
  };
  const auto dlpackDevice = [](const Tensor& self) {
    return py::make_tuple(self.isVisible() ? kDlCpu : kDlExtension, 0);
  };
  const auto repr = [](const Tensor& self) {
    return py::str("<candela.Tensor {} {} on {}>")
        .format(self.element().name, self.shape(), self.device());
  };
  py::class_<Tensor, std::shared_ptr<Tensor>>(module, "Tensor",
                                              py::custom_type_setup(setBufferProtocol),
                                              "A dense tensor on the host or on a device.")
      .def(py::init(create), py::arg("shape"), py::arg("dtype") = "float32",
           py::arg("device").none(true) = nullptr)
      .def_property_readonly("type", [](const Tensor& self) { return self.element().name; })
      .def_property_readonly("dtype", [](const Tensor& self) { return dtypeOf(self.element()); })
      .def_property_readonly("shape", &Tensor::shape)
      .def_property_readonly("nbytes", &Tensor::bytes)
      .def_property_readonly("device", &Tensor::device)
      .def_property_readonly("is_host", &Tensor::isVisible)
      .def_property_readonly("address", address)
      .def("write", &Tensor::write, py::arg("array"),
           "Copies an array of the same type and shape into it.")
      .def("copy_to", &Tensor::copyTo, py::arg("other"),
           "Copies its bytes into a tensor of as many, on whatever device.")
      .def("free", &Tensor::free, "Gives its memory back, when requests are done with it.")
      .def("numpy", &Tensor::numpy,
           "An ndarray on the same memory where the host sees it, else a copy.")
      .def("__array__", array, py::arg("dtype") = py::none(), py::arg("copy") = py::none())
      .def("__dlpack__", dlpack)
      .def("__dlpack_device__", dlpackDevice)
      .def("__repr__", repr);
  module.def("from_dlpack", &Tensor::fromDlpack, py::arg("tensor"),
             "A tensor on the memory of another library's, without a copy.");
}

/// Seconds, below 0 for None: no limit. What is no time, as -1 or NaN, only asks: 0.
double secondsOf(const std::optional<double>& timeout) {
  if (!timeout) return -1;
  return *timeout > 0 ? *timeout : 0;
}

void defineFuture(py::module_& module) {
  const auto result = [](Future& self, std::optional<double> timeout) {
    return self.result(secondsOf(timeout));
  };
  const auto await = [](const py::object& self) {
    const py::object loop = py::module_::import("asyncio").attr("get_running_loop")();
    return loop.attr("run_in_executor")(py::none(), self.attr("result")).attr("__await__")();
  };
  py::class_<Future, std::shared_ptr<Future>>(module, "Future", "One run that was asked for.")
      .def("result", result, py::arg("timeout") = py::none(),
           "Waits, and returns what Session.run would, or raises how it failed.")
      .def("done", &Future::isDone)
      .def("cancel", &Future::cancel, "Ends it with CancelledError, unless it is done.")
      .def("__await__", await);
}

/// An array where the model has one output, else a tuple of them.
py::object callSession(Session& self, const py::args& args, const py::kwargs& kwargs) {
  if (!args.empty() && !kwargs.empty())
    throw sdk::Error(CANDELA_INVALID_ARGUMENT, "inputs in order or by name: one of them");
  if (kwargs.empty()) {
    const py::list results = self.run(args, py::none());
    return results.size() == 1 ? py::object(results[0]) : py::tuple(results);
  }
  const py::list results = py::list(self.run(kwargs, py::none()).attr("values")());
  return results.size() == 1 ? py::object(results[0]) : py::tuple(results);
}

py::object parsedJson(const std::string& text) {
  return py::module_::import("json").attr("loads")(decoded(text));
}

std::string decodedPath(const py::object& path) {
  return py::module_::import("os").attr("fsdecode")(path).cast<std::string>();
}

void defineSession(py::module_& module) {
  const auto submit = [](Session& self, const py::object& inputs, const py::object& outputs,
                         std::optional<double> timeout, bool waits) {
    return self.submit(inputs, outputs, {timeout.value_or(0), waits});
  };
  const auto nameStates = [](Session& self, const std::vector<std::string>& inputs,
                             const std::vector<std::string>& outputs) {
    self.model()->nameStates(inputs, outputs);
  };
  const auto save = [](Session& self, const py::object& to) {
    const std::string path = decodedPath(to);
    const std::shared_ptr<Model> model = self.model();
    const sdk::Model& compiled = model->get();
    const Outside outside;
    compiled.save(path);
  };
  py::class_<Session, std::shared_ptr<Session>>(
      module, "Session", "A compiled model. Any number of threads may run it at once.")
      .def_property_readonly("inputs", [](const Session& self) { return self.model()->inputs; })
      .def_property_readonly("outputs", [](const Session& self) { return self.model()->outputs; })
      .def_property_readonly("closed", &Session::isClosed)
      .def("run", &Session::run, py::arg("inputs"), py::arg("outputs") = py::none(),
           "Runs once: inputs by name or in order; outputs by name, or memory for them.")
      .def("__call__", callSession, "Runs once: the output, or a tuple of several.")
      .def("submit", submit, py::arg("inputs"), py::arg("outputs") = py::none(), py::kw_only(),
           py::arg("timeout") = py::none(), py::arg("wait") = true,
           "Asks for a run and returns a Future; arrays stay as they are until it is done.")
      .def("report", [](Session& self) { return parsedJson(self.model()->get().reportJson()); })
      .def("trace", [](Session& self) { return parsedJson(self.model()->get().traceJson()); })
      .def("stats", [](Session& self) { return parsedJson(self.statsJson()); })
      .def(
          "profile", [](Session& self, bool on) { self.model()->get().profile(on); },
          py::arg("on") = true)
      .def("save", save, py::arg("path"), "Writes a bundle (.cdb), which compile takes.")
      .def("_name_states", nameStates)
      .def("close", &Session::close, "Cancels what is not done and gives everything back.")
      .def("__enter__", [](const std::shared_ptr<Session>& self) { return self; })
      .def("__exit__", [](Session& self, const py::args&) { self.close(); });
}

/// Arrays in order or by name, and the learning rate.
double stepOf(Trainer& self, const py::args& args, py::kwargs named) {
  if (!named.contains("learning_rate"))
    throw sdk::Error(CANDELA_INVALID_ARGUMENT, "a step needs its learning_rate");
  const auto rate = named.attr("pop")("learning_rate").cast<double>();
  if (!args.empty() && !named.empty())
    throw sdk::Error(CANDELA_INVALID_ARGUMENT, "a batch in order or by name: one of them");
  return self.step(named.empty() ? py::object(args) : py::object(named), rate);
}

void defineTraining(py::module_& module) {
  py::class_<sdk::Training>(module, "Training", "How to train.")
      .def(py::init<>())
      .def_readwrite("loss", &sdk::Training::loss)
      .def_readwrite("output", &sdk::Training::output)
      .def_readwrite("optimizer", &sdk::Training::optimizer)
      .def_readwrite("freeze", &sdk::Training::freeze)
      .def_readwrite("momentum", &sdk::Training::momentum)
      .def_readwrite("weight_decay", &sdk::Training::weightDecay)
      .def_readwrite("clip_norm", &sdk::Training::clipNorm)
      .def_readwrite("is_random", &sdk::Training::isRandom)
      .def_readwrite("seed", &sdk::Training::seed);
  const auto save = [](Trainer& self, const py::object& to) { self.save(decodedPath(to)); };
  py::class_<Trainer, std::shared_ptr<Trainer>>(
      module, "Trainer", "A step of training, whose states stay on the device.")
      .def_property_readonly("inputs", [](const Trainer& self) { return self.inputs; })
      .def_property_readonly("parameters", [](const Trainer& self) { return self.parameters; })
      .def_property_readonly("closed", &Trainer::isClosed)
      .def("step", stepOf, "One step on a batch: the loss before it.")
      .def("read", &Trainer::read, py::arg("name"), "What a parameter holds now.")
      .def("save", save, py::arg("path"), "Writes the trained model, an .onnx file.")
      .def("report", [](Trainer& self) { return parsedJson(self.reportJson()); })
      .def("close", &Trainer::close, "Gives everything back.")
      .def("__enter__", [](const std::shared_ptr<Trainer>& self) { return self; })
      .def("__exit__", [](Trainer& self, const py::args&) { self.close(); });
}

std::string devicesJson(const std::vector<std::string>& paths) {
  std::vector<const char*> list;
  for (const std::string& path : paths) list.push_back(path.c_str());
  list.push_back(nullptr);
  const Outside outside; // plugins are loaded
  return sdk::detail::taken(candela_devices_json(list.data()));
}

std::string backendsJson(const std::vector<std::string>& paths) {
  const Outside outside; // plugins are loaded
  return sdk::Model::backendsJson(paths);
}

void defineFunctions(py::module_& module) {
  module.def("compile", [](std::optional<py::bytes> content, const std::string& name,
                           const sdk::Options& options, const py::object& progress,
                           uint32_t capacity, uint32_t inFlight) {
    const Source source{content ? std::optional<std::string>(*content) : std::nullopt, name};
    return compiled(source, options, {}, progress, requestOptions(capacity, inFlight));
  });
  module.def("compile_gradients", [](std::optional<py::bytes> content, const std::string& name,
                                     const std::string& of, const std::vector<std::string>& wrt,
                                     const sdk::Options& options, const py::object& progress,
                                     uint32_t capacity, uint32_t inFlight) {
    const Source source{content ? std::optional<std::string>(*content) : std::nullopt, name};
    return compiled(source, options, sdk::Gradients{of, wrt}, progress,
                    requestOptions(capacity, inFlight));
  });
  module.def("trainer", [](std::optional<py::bytes> content, const std::string& name,
                           const sdk::Training& training, const sdk::Options& options,
                           const py::object& progress) {
    const Source source{content ? std::optional<std::string>(*content) : std::nullopt, name};
    return trainerOf(source, training, options, progress);
  });
  module.def("load", [](std::optional<py::bytes> content, const std::string& name,
                        uint32_t capacity, uint32_t inFlight) {
    const Source source{content ? std::optional<std::string>(*content) : std::nullopt, name};
    return std::make_shared<Session>(loaded(source), requestOptions(capacity, inFlight), nullptr);
  });
  module.def("version", &candela_version);
  module.def(
      "set_threads", &sdk::setThreads, py::arg("count"),
      "Threads of this process that compute what no backend takes; 0: as many as are usual.");
  module.def("threads", &sdk::threads);
  module.def("devices",
             [](const std::vector<std::string>& p) { return parsedJson(devicesJson(p)); });
  module.def("backends",
             [](const std::vector<std::string>& p) { return parsedJson(backendsJson(p)); });
  module.def("_end", [] {
    Requests::closeAll();
    endCalls();
  });
}

} // namespace
} // namespace candela::python

PYBIND11_MODULE(_native, module) {
  using namespace candela::python;
  candela::python::processGeneration(); // which watches for forks from now on
  py::register_exception_translator(translate);
  defineOptions(module);
  definePort(module);
  defineDevice(module);
  defineTensor(module);
  defineFuture(module);
  defineSession(module);
  defineTraining(module);
  defineFunctions(module);
}
