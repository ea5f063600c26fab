#include "python/native/session.h"

#include <algorithm>

namespace candela::python {
std::vector<Port> describePorts(const std::vector<sdk::Port>& described) {
  std::vector<Port> ports;
  for (const sdk::Port& port : described) {
    PyObject* name =
        PyUnicode_DecodeUTF8(port.name.data(), Py_ssize_t(port.name.size()), "replace");
    if (!name) throw py::error_already_set();
    PyUnicode_InternInPlace(&name);
    ports.push_back({port.name, py::reinterpret_steal<py::str>(name), elementOf(port.elem),
                     port.dims, port.ranked});
  }
  return ports;
}

std::string namesOf(const std::vector<Port>& ports) {
  std::string text;
  for (const Port& port : ports) text += (text.empty() ? "'" : ", '") + port.name + "'";
  return text.empty() ? "none" : text;
}

namespace {

[[noreturn]] void failUnknown(const py::handle& name, const char* kind,
                              const std::vector<Port>& ports) {
  throw sdk::Error(CANDELA_INVALID_ARGUMENT, std::string(py::str(name)) + ": no such " + kind +
                                                 " in the model, which has " + namesOf(ports));
}

} // namespace

size_t indexOfPort(const py::handle& name, const char* kind, const std::vector<Port>& ports) {
  for (size_t i = 0; i < ports.size(); ++i)
    if (ports[i].pyName.equal(name)) return i;
  failUnknown(name, kind, ports);
}

bool Port::isKnown() const {
  const auto isOpen = [](int64_t dim) { return dim < 0; };
  return element && isRanked && std::none_of(dims.begin(), dims.end(), isOpen);
}

py::object Port::shape() const {
  if (!isRanked) return py::none();
  py::tuple shape(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] < 0)
      shape[d] = py::none();
    else
      shape[d] = py::int_(dims[d]);
  }
  return shape;
}

// ---- Model

Model::Model(sdk::Model&& model, std::shared_ptr<void> keeps)
    : inputs(describePorts(model.inputs())), outputs(describePorts(model.outputs())),
      keeps_(std::move(keeps)), model_(std::make_unique<sdk::Model>(std::move(model))),
      generation_(processGeneration()) {}

Model::~Model() {
  if (generation_ == processGeneration()) return;
  (void)model_.release(); // the parent's
}

sdk::Model& Model::get() const {
  checkProcess(generation_, "the session");
  return *model_;
}

void Model::nameStates(const std::vector<std::string>& stateInputs,
                       const std::vector<std::string>& stateOutputs) {
  for (Port& port : inputs)
    port.isState = std::count(stateInputs.begin(), stateInputs.end(), port.name) > 0;
  for (Port& port : outputs)
    port.isState = std::count(stateOutputs.begin(), stateOutputs.end(), port.name) > 0;
}

// ---- Call

Call::Call(const Model& model, const py::object& inputs, const py::object& outputs)
    : in(model.inputs.size()), out(model.outputs.size()), inputs_(model.inputs.size()),
      given_(model.outputs.size()), memory_(model.outputs.size()), made_(model.outputs.size()),
      isWanted_(model.outputs.size()), isAllocated_(model.outputs.size()) {
  if (py::isinstance<py::dict>(inputs))
    readNamed(model, py::reinterpret_borrow<py::dict>(inputs));
  else if (py::isinstance<py::list>(inputs) || py::isinstance<py::tuple>(inputs))
    readInOrder(model, py::tuple(inputs)); // a list is copied: reading arrays may change it
  else
    readInOrder(model, py::make_tuple(inputs));
  checkInputsGiven(model);
  chooseOutputs(model, outputs);
  for (size_t i = 0; i < model.outputs.size(); ++i) placeOutput(model.outputs[i], i);
}

void Call::readInput(const Model& model, size_t i, const py::handle& array) {
  inputs_[i].read(array, "input '" + model.inputs[i].name + "'");
  in[i] = inputs_[i].argument();
  isOnHost_ = isOnHost_ && inputs_[i].isVisible();
}

void Call::readNamed(const Model& model, const py::dict& named) {
  size_t found = 0;
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    PyObject* const array = PyDict_GetItemWithError(named.ptr(), model.inputs[i].pyName.ptr());
    if (!array) continue;
    readInput(model, i, array);
    ++found;
  }
  if (found == named.size()) return;
  for (const auto& [name, array] : named) indexOfPort(name, "input", model.inputs);
}

void Call::readInOrder(const Model& model, const py::tuple& inOrder) {
  isSequence_ = true;
  if (inOrder.size() > model.inputs.size())
    throw sdk::Error(CANDELA_INVALID_ARGUMENT, std::to_string(inOrder.size()) +
                                                   " inputs were given, the model has " +
                                                   std::to_string(model.inputs.size()));
  for (size_t i = 0; i < inOrder.size(); ++i) {
    const py::object array = inOrder[i];
    readInput(model, i, array);
  }
}

void Call::checkInputsGiven(const Model& model) const {
  for (size_t i = 0; i < model.inputs.size(); ++i)
    if (!inputs_[i].isGiven() && !model.inputs[i].isState)
      throw sdk::Error(CANDELA_INVALID_ARGUMENT, "input '" + model.inputs[i].name +
                                                     "' is missing; the model has " +
                                                     namesOf(model.inputs));
}

void Call::chooseOutputs(const Model& model, const py::object& outputs) {
  if (outputs.is_none()) {
    for (size_t i = 0; i < model.outputs.size(); ++i) isWanted_[i] = !model.outputs[i].isState;
    return;
  }
  if (py::isinstance<py::str>(outputs)) {
    isWanted_[indexOfPort(outputs, "output", model.outputs)] = true;
    return;
  }
  const bool isMemory = py::isinstance<py::dict>(outputs);
  for (const py::handle name : outputs) {
    const size_t i = indexOfPort(name, "output", model.outputs);
    isWanted_[i] = true;
    if (!isMemory) continue;
    memory_[i] = outputs[name];
    given_[i].readWritable(memory_[i], "output '" + model.outputs[i].name + "'");
    isOnHost_ = isOnHost_ && given_[i].isVisible();
  }
}

void Call::placeOutput(const Port& port, size_t i) {
  if (given_[i].isGiven()) {
    const candela_tensor_t& memory = given_[i].tensor();
    const std::vector<int64_t> dims(memory.dims, memory.dims + memory.rank);
    const bool fits = &given_[i].element() == port.element && port.isKnown() && dims == port.dims;
    if (!fits)
      throw sdk::Error(CANDELA_INVALID_ARGUMENT,
                       "output '" + port.name + "' is " +
                           (port.isKnown()
                                ? typeText(*port.element, port.dims.data(), uint32_t(dims.size()))
                                : std::string("known at the run only")) +
                           " but memory of " +
                           typeText(given_[i].element(), memory.dims, memory.rank) + " was given");
    out[i] = given_[i].argument();
    return;
  }
  if (port.isState && !isWanted_[i]) return; // it stays in the model
  isAllocated_[i] = !port.isKnown();
  if (isAllocated_[i]) {
    out[i].tensor.rank = CANDELA_UNKNOWN_RANK; // by which a state is written out
    return;
  }
  made_[i] = Tensor::onHost(*port.element, port.dims);
  out[i].tensor.data = made_[i]->data();
  out[i].tensor.bytes = made_[i]->bytes();
}

void Call::take(uint32_t i, const candela_tensor_t& made, std::shared_ptr<void> memory) {
  const Element* const element = elementOf(made.elem);
  if (!element)
    throw sdk::Error(CANDELA_UNSUPPORTED,
                     "an output of element type " + std::to_string(int(made.elem)));
  made_[i] = Tensor::onMemory(*element, std::vector<int64_t>(made.dims, made.dims + made.rank),
                              made.data, std::move(memory));
}

py::object Call::results(const Model& model) {
  py::dict named;
  py::list inOrder;
  for (size_t i = 0; i < model.outputs.size(); ++i) {
    if (!isWanted_[i]) continue;
    py::object result = memory_[i];
    if (!result) {
      const bool isOfNumpy = !dtypeOf(made_[i]->element()).is_none();
      result = isOfNumpy ? Tensor::arrayOf(made_[i]) : py::cast(made_[i]);
    }
    if (isSequence_)
      inOrder.append(result);
    else
      named[model.outputs[i].pyName] = result;
  }
  if (isSequence_) return inOrder;
  return named;
}

} // namespace candela::python
