// A plugin whose primitives are methods of a class of Python: candela.Backend. A copy of it lies
// wherever Backend.plugin puts it, under the backend's name; candela.backend knows by its path
// which class it stands for. In a program that is no Python, as the tool, it brings an interpreter.
#include <candela/backend.hpp>

#include <dlfcn.h>
#include <fstream>
#include <set>

#include <pybind11/pybind11.h>

namespace {

namespace py = pybind11;
using cdl::Kind, cdl::Operand, cdl::Status;

/// The plugin's own file.
std::string ownPath() {
  Dl_info info{};
  dladdr(reinterpret_cast<const void*>(&ownPath), &info);
  return info.dli_fname ? info.dli_fname : "";
}

/// The lines of the file beside the plugin, which Backend.plugin wrote: the interpreter's program,
/// the folder of the package, the file of the class, the name of the class, and where modules are
/// searched for.
std::vector<std::string> linesBeside(const std::string& plugin) {
  std::ifstream file(plugin + ".python");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  if (lines.size() < 4) throw std::runtime_error(plugin + ".python: no such file, or a short one");
  return lines;
}

/// Extension modules expect the symbols of Python in the program, not in what a plugin brought.
void showPythonToModules() {
  Dl_info info{};
  dladdr(reinterpret_cast<const void*>(&Py_IsInitialized), &info);
  const bool isShown =
      info.dli_fname && dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  if (!isShown) throw std::runtime_error("the shared library of Python cannot be opened again");
}

/// Where modules are found; and in the place of the package `candela`, whose library would be a
/// second one in this program, one that has Backend alone.
void prepareModules(const std::vector<std::string>& lines) {
  const py::module_ sys = py::module_::import("sys");
  for (size_t i = 4; i < lines.size(); ++i) sys.attr("path").attr("append")(lines[i]);
  const py::object package = py::module_::import("types").attr("ModuleType")("candela");
  py::list path;
  path.append(lines[1]);
  package.attr("__path__") = path;
  sys.attr("modules")["candela"] = package;
  package.attr("Backend") = py::module_::import("candela.backend").attr("Backend");
}

/// Starts an interpreter where the program has none, and leaves its lock to whoever wants it.
void ensureInterpreter() {
  if (Py_IsInitialized()) return;
  const std::vector<std::string> lines = linesBeside(ownPath());
  showPythonToModules();
  PyConfig config;
  PyConfig_InitPythonConfig(&config);
  config.install_signal_handlers = 0;
  PyStatus status = PyConfig_SetBytesString(&config, &config.program_name, lines[0].c_str());
  if (!PyStatus_Exception(status)) status = Py_InitializeFromConfig(&config);
  PyConfig_Clear(&config);
  if (PyStatus_Exception(status))
    throw std::runtime_error(std::string("no interpreter: ") +
                             (status.err_msg ? status.err_msg : "it ended"));
  prepareModules(lines);
  PyEval_SaveThread();
}

/// What Python raises, as a status with its class and text.
template <class F> Status guarded(F&& body) {
  try {
    ensureInterpreter();
    const py::gil_scoped_acquire acquire;
    try {
      return body();
    } catch (py::error_already_set& error) {
      const bool isMissing = error.matches(PyExc_NotImplementedError);
      const auto type = py::str(error.type().attr("__name__")).cast<std::string>();
      const auto said = py::str(error.value()).cast<std::string>();
      return cdl::error(isMissing ? CDL_UNSUPPORTED : CDL_INTERNAL, type + ": " + said);
    }
  } catch (const std::exception& error) {
    return cdl::error(CDL_INTERNAL, error.what());
  }
}

const char* functionName(uint16_t kind, uint16_t fn) {
#define CDL_X(kindName, name, id, optional)                                                        \
  if (kind == cdl_kind_id_##kindName && fn == (id)) return #name;
  CDL_FNS(CDL_X)
#undef CDL_X
  return nullptr;
}

/// What NumPy makes an array of: memory of an operand, with any strides.
py::object arrayOf(const Operand& operand) {
  const auto itemBytes = static_cast<int64_t>(cdl_elem_bits(operand.elem) / 8);
  py::tuple shape(operand.rank);
  py::tuple strides(operand.rank);
  for (int d = 0; d < operand.rank; ++d) {
    shape[d] = operand.dims[d];
    strides[d] = operand.strides[d] * itemBytes;
  }
  static PyObject* const make =
      py::object(py::module_::import("candela.backend").attr("_array_at")).release().ptr();
  return py::reinterpret_borrow<py::object>(make)(reinterpret_cast<uintptr_t>(operand.data), shape,
                                                  strides, cdl::elemName(operand.elem));
}

py::object attributeOf(const cdl_attr_t& attribute, const cdl_attr_facts_t& facts) {
  constexpr uint8_t kFloat = 2;
  if (facts.type == kFloat) {
    double value = 0;
    std::memcpy(&value, attribute.values, sizeof value);
    return py::float_(value);
  }
  if (facts.count == 1) return py::int_(attribute.values[0]);
  py::tuple values(attribute.count);
  for (uint32_t i = 0; i < attribute.count; ++i) values[i] = attribute.values[i];
  return values;
}

/// Attributes by name, but those that are dealt with here.
py::dict attributesOf(const cdl::Op& op) {
  py::dict named;
#define CDL_X(name, id, ...)                                                                       \
  if (const cdl_attr_t* const found = cdl_find_attr(op.image(), &op.instr(), id))                  \
    named[#name] = attributeOf(*found, *cdl_attr_facts(id));
  CDL_ATTRS(CDL_X)
#undef CDL_X
  for (const char* name : {"accumulate", "value"})
    if (named.contains(name)) named.attr("pop")(name);
  return named;
}

class PythonBackend : public cdl::PrimitiveBackend {
public:
  PythonBackend() : PrimitiveBackend(field("name"), field("version")) {
    const Status status = guarded([&] {
      const py::object type = loaded();
      describe(keptText(py::str(type.attr("description"))));
      for (const py::handle method : type.attr("_methods")())
        methods_.insert(py::str(method).cast<std::string>());
      for (const py::handle profile : type.attr("profiles"))
        profiles_.insert(py::str(profile).cast<std::string>());
      return cdl::ok();
    });
    if (!status.isOk()) throw std::runtime_error(status.text());
    claimProfiles();
    claimRows();
  }
  ~PythonBackend() override {
    if (!Py_IsInitialized()) {
      (void)instance_.release(); // it went with the interpreter
      return;
    }
    const py::gil_scoped_acquire acquire;
    instance_ = py::object();
  }

  Status open(uint32_t) override {
    return guarded([&] {
      instance_ = loaded()();
      return cdl::ok();
    });
  }

#define CDL_X(Struct, function, NAME)                                                              \
  Status function(const cdl::Struct& op) override { return call(op); }
  CDL_OPS(CDL_X)
#undef CDL_X

private:
  static py::object loaded() {
    const py::object load = py::module_::import("candela.backend").attr("_load");
    return load(ownPath());
  }
  /// Of the class; the base is made of it before there is an object.
  static std::string field(const char* name) {
    std::string text;
    const Status status = guarded([&] {
      text = py::str(loaded().attr(name)).cast<std::string>();
      return cdl::ok();
    });
    if (!status.isOk()) throw std::runtime_error(status.text());
    return text;
  }
  static const std::string& keptText(const std::string& text) { return *new std::string(text); }

  void claimProfiles() {
#define CDL_X(name, id, ...)                                                                       \
  if (profiles_.count(#name)) claim(cdl::Profile::name);
    CDL_PROFILES(CDL_X)
#undef CDL_X
  }

  /// Native is what the profiles require of kinds that have a method.
  void claimRows() {
#define CDL_X(Struct, function, NAME) support(Kind::Struct, cdl::Support::EMULATED);
    CDL_OPS(CDL_X)
#undef CDL_X
#define CDL_X(profile, kind, fn, count, e0, e1, e2, e3, e4, cls, ulp)                              \
  claimRow(profile, kind, fn, count, {e0, e1, e2, e3, e4}, cls);
    CDL_REQUIRED_ROWS(CDL_X)
#undef CDL_X
  }
  void claimRow(unsigned profile, uint16_t kind, uint16_t fn, uint32_t count,
                const std::array<uint8_t, 5>& e, cdl_operand_class_t operandClass) {
    if (!profiles_.count(profileName(profile)) || !methods_.count(cdl::kindName(kind))) return;
    const Kind of = static_cast<Kind>(kind);
    switch (count) {
    case 1: return native(of, fn, {e[0]}, operandClass);
    case 2: return native(of, fn, {e[0], e[1]}, operandClass);
    case 3: return native(of, fn, {e[0], e[1], e[2]}, operandClass);
    case 4: return native(of, fn, {e[0], e[1], e[2], e[3]}, operandClass);
    default: return native(of, fn, {e[0], e[1], e[2], e[3], e[4]}, operandClass);
    }
  }
  static std::string profileName(unsigned profile) {
#define CDL_X(name, id, ...)                                                                       \
  if (profile == (id)) return #name;
    CDL_PROFILES(CDL_X)
#undef CDL_X
    return "";
  }

  /// _call(kind, y, operands, attributes, accumulate) of the class, which knows what methods get.
  Status call(const cdl::Op& op) {
    return guarded([&] {
      const py::object y = arrayOf(op.y());
      py::list operands;
      if (const char* const fn = functionName(op.instr().kind, op.fn())) operands.append(fn);
      for (uint32_t i = 0; i < op.operands(); ++i) operands.append(arrayOf(op.input(i)));
      if (op.kind() == Kind::Fill) operands.append(fillValue(op, y));
      instance_.attr("_call")(cdl::kindName(op.instr().kind), y, operands, attributesOf(op),
                              op.attr(CDL_ATTR_ACCUMULATE, 0) != 0);
      return cdl::ok();
    });
  }
  static py::object fillValue(const cdl::Op& op, const py::object& y) {
    const auto bits = static_cast<uint64_t>(op.attr(CDL_ATTR_VALUE, 0));
    const py::bytes bytes(reinterpret_cast<const char*>(&bits), cdl_elem_bits(op.y().elem) / 8);
    return py::module_::import("numpy").attr("frombuffer")(bytes, y.attr("dtype"))[py::int_(0)];
  }

  std::set<std::string> methods_;
  std::set<std::string> profiles_;
  py::object instance_;
};

} // namespace

CDL_BACKEND(PythonBackend)
