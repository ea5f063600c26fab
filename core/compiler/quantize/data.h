#pragma once

#include <map>
#include <string>

#include "core/support/tensor.h"

/// The data that a model is run on, sample by sample.
namespace candela::quantize {

/// An input of the model as its file declares it; a dim without a value is -1.
struct Port {
  std::string name;
  Elem elem = Elem::none;
  Shape dims;
};

/// Stored numbers as reals: real = factor * stored + offset.
struct Scaling {
  double factor = 1, offset = 0;
};

/// Files of arrays, whose first axis counts samples. What lies in large files is read when a sample
/// is asked for.
class Samples {
public:
  /// `sources`: .npy and .npz files and folders of them, or INPUT=FILE. A .npy belongs to the input
  /// that it is named after, else to the only one; several in a row continue each other.
  /// `batch`: samples a run where the model leaves that open.
  /// Failures name the file: invalid_argument, bad_model, not_found.
  static Result<Samples> open(const std::vector<std::string>& sources,
                              const std::vector<Port>& ports, int64_t batch,
                              const std::map<std::string, Scaling>& scaling);

  int64_t samples() const { return samples_; }
  int64_t runs() const { return samples_ / batch_; }
  int64_t batch() const { return batch_; }
  /// By input, what a run takes.
  const std::map<std::string, Shape>& shapes() const { return shapes_; }
  /// In the order of the ports.
  Result<std::vector<Tensor>> run(int64_t index) const;

private:
  Result<Tensor> tensorOf(const Port& port, int64_t first) const;
  std::vector<Port> ports_;
  std::map<std::string, std::vector<Tensor>> arrays_; ///< by input, one after the other
  std::map<std::string, Scaling> scaling_;
  std::map<std::string, Shape> shapes_;
  int64_t samples_ = 0, batch_ = 1;
};

} // namespace candela::quantize
