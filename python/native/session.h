#pragma once

#include "python/native/array.h"

namespace candela::python {

/// An input or output of a model.
struct Port {
  std::string name;
  py::str pyName;         ///< the same, as dicts look it up
  const Element* element; ///< nullptr where only a run knows
  std::vector<int64_t> dims;
  bool isRanked;
  bool isState = false;

  /// Whether nothing of its type waits for a run.
  bool isKnown() const;
  py::object shape() const; ///< None, or a tuple with None for dims that only a run knows
};

std::vector<Port> describePorts(const std::vector<sdk::Port>& described);
/// "'x', 'y'", or none.
std::string namesOf(const std::vector<Port>& ports);
/// Which port has the name; `kind` is what they are in messages. Throws sdk::Error.
size_t indexOfPort(const py::handle& name, const char* kind, const std::vector<Port>& ports);

/// A compiled model and what it takes and gives.
class Model {
public:
  /// `keeps` is what the model has the address of.
  Model(sdk::Model&& model, std::shared_ptr<void> keeps);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// The model, checked for a fork.
  sdk::Model& get() const;
  void nameStates(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);

  std::vector<Port> inputs;
  std::vector<Port> outputs;

private:
  std::shared_ptr<void> keeps_;
  std::unique_ptr<sdk::Model> model_;
  uint32_t generation_;
};

/// What one run reads and writes. It holds the arrays of the caller; made, changed and destroyed
/// with the interpreter's lock.
class Call {
public:
  /// `inputs`: a dict by name, a sequence in the model's order, or the one array of a model with
  /// one input; states may be left out. `outputs`: None for all that are no states, names, or a
  /// dict of names to memory that is written to. Throws sdk::Error.
  Call(const Model& model, const py::object& inputs, const py::object& outputs);

  std::vector<candela_argument_t> in;
  std::vector<candela_argument_t> out;

  /// Whether all memory is the host's, as candela_run wants it.
  bool isOnHost() const { return isOnHost_; }
  /// What the run gave, a dict or, where inputs came in a sequence, a list.
  py::object results(const Model& model);
  /// Output `i`, which the library made; `memory` keeps it.
  void take(uint32_t i, const candela_tensor_t& made, std::shared_ptr<void> memory);
  /// Whether the library allocates this output.
  bool isAllocated(uint32_t i) const { return isAllocated_[i]; }

private:
  void readNamed(const Model& model, const py::dict& named);
  void readInOrder(const Model& model, const py::tuple& inOrder);
  void readInput(const Model& model, size_t i, const py::handle& array);
  void checkInputsGiven(const Model& model) const;
  void chooseOutputs(const Model& model, const py::object& outputs);
  void placeOutput(const Port& port, size_t i);

  std::vector<Argument> inputs_;
  std::vector<Argument> given_;    ///< outputs that the caller has memory for
  std::vector<py::object> memory_; ///< and their objects
  std::vector<std::shared_ptr<Tensor>> made_;
  std::vector<bool> isWanted_;
  std::vector<bool> isAllocated_;
  bool isOnHost_ = true;
  bool isSequence_ = false;
};

} // namespace candela::python
