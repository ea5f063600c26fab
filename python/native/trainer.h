#pragma once

#include <mutex>

#include <candela/train.hpp>

#include "python/native/session.h"

namespace candela::python {

/// A step of training, as Python sees it. Threads: any, with the interpreter's lock; steps take
/// turns.
class Trainer {
public:
  explicit Trainer(sdk::Trainer&& trainer);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  std::vector<Port> inputs;     ///< the model's, then the labels
  std::vector<Port> parameters; ///< in the order of the model's nodes

  /// `batch`: a sequence in the order of inputs, or a dict by name. Throws sdk::Error.
  double step(const py::object& batch, double learningRate);
  /// An ndarray of its own, or a Tensor where there is no NumPy.
  py::object read(const std::string& name);
  void save(const std::string& path);
  std::string reportJson();
  void close();
  bool isClosed() const { return !trainer_; }

private:
  void checkUsable() const;

  std::unique_ptr<sdk::Trainer> trainer_;
  std::mutex turn_;
  uint32_t generation_;
};

} // namespace candela::python
