#include "python/native/trainer.h"

#include <algorithm>

namespace candela::python {
namespace {

/// The arrays of a step, in the order of its inputs.
std::vector<py::object> arraysOf(const py::object& batch, const std::vector<Port>& inputs) {
  std::vector<py::object> arrays;
  if (!py::isinstance<py::dict>(batch)) {
    for (const py::handle array : batch)
      arrays.push_back(py::reinterpret_borrow<py::object>(array));
    if (arrays.size() != inputs.size())
      throw sdk::Error(CANDELA_INVALID_ARGUMENT,
                       std::to_string(arrays.size()) + " arrays were given, a step takes " +
                           std::to_string(inputs.size()) + ": " + namesOf(inputs));
    return arrays;
  }
  const auto named = py::reinterpret_borrow<py::dict>(batch);
  for (const Port& port : inputs) {
    if (!named.contains(port.pyName))
      throw sdk::Error(CANDELA_INVALID_ARGUMENT,
                       "input '" + port.name + "' is missing; a step takes " + namesOf(inputs));
    arrays.push_back(named[port.pyName]);
  }
  if (named.size() != inputs.size())
    for (const auto& [name, array] : named) indexOfPort(name, "input", inputs);
  return arrays;
}

} // namespace

Trainer::Trainer(sdk::Trainer&& trainer)
    : inputs(describePorts(trainer.inputs())), parameters(describePorts(trainer.parameters())),
      trainer_(std::make_unique<sdk::Trainer>(std::move(trainer))),
      generation_(processGeneration()) {}

Trainer::~Trainer() {
  if (generation_ == processGeneration()) return;
  (void)trainer_.release(); // the parent's
}

void Trainer::checkUsable() const {
  checkProcess(generation_, "the trainer");
  if (!trainer_) throw sdk::Error(CANDELA_CANCELLED, "the trainer is closed");
}

double Trainer::step(const py::object& batch, double learningRate) {
  checkUsable();
  const std::vector<py::object> arrays = arraysOf(batch, inputs);
  std::vector<Argument> arguments(arrays.size());
  std::vector<candela_tensor_t> tensors;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const std::string what = "input '" + inputs[i].name + "'";
    arguments[i].read(arrays[i], what);
    if (!arguments[i].isVisible())
      throw sdk::Error(CANDELA_INVALID_ARGUMENT,
                       what + " is in memory that the host does not see: a step takes arrays of "
                              "the host");
    tensors.push_back(arguments[i].tensor());
  }
  const Outside outside;
  const std::lock_guard turn(turn_);
  checkUsable();
  return trainer_->step(tensors, learningRate);
}

py::object Trainer::read(const std::string& name) {
  checkUsable();
  const size_t index = indexOfPort(py::str(name), "parameter", parameters);
  const Port& port = parameters[index];
  const std::shared_ptr<Tensor> made = Tensor::onHost(*port.element, port.dims);
  candela_tensor_t output{};
  output.data = made->data();
  output.bytes = made->bytes();
  {
    const Outside outside;
    const std::lock_guard turn(turn_);
    checkUsable();
    trainer_->read(static_cast<uint32_t>(index), output);
  }
  const bool isOfNumpy = !dtypeOf(made->element()).is_none();
  return isOfNumpy ? Tensor::arrayOf(made) : py::cast(made);
}

void Trainer::save(const std::string& path) {
  checkUsable();
  const Outside outside;
  const std::lock_guard turn(turn_);
  checkUsable();
  trainer_->save(path);
}

std::string Trainer::reportJson() {
  checkUsable();
  const Outside outside;
  const std::lock_guard turn(turn_);
  checkUsable();
  return trainer_->reportJson();
}

void Trainer::close() {
  checkProcess(generation_, "the trainer");
  const Outside outside;
  const std::lock_guard turn(turn_);
  trainer_.reset();
}

} // namespace candela::python
