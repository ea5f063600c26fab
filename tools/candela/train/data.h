#pragma once

#include <map>

#include "core/compiler/import/onnx_io/model.h"
#include "core/compiler/train/losses.h"

/// The samples that a model is trained on and judged by: arrays in memory, whose first axis counts
/// them.
namespace candela::tool {

class TrainingData {
public:
  /// `sources`: FILE.npy, where the model has one input, or INPUT=FILE.npy. `scales`: FACTOR or
  /// INPUT=FACTOR, by which what is stored as integers is multiplied; floats stay. Throws Failure
  /// naming the file: no samples, arrays of several lengths, shapes that do not fit, what is not
  /// finite; or the option: a factor for no input, two arrays for one input.
  TrainingData(const import::onnx_io::Model& model, const std::vector<std::string>& sources,
               const std::vector<std::string>& scales);

  int64_t count() const { return count_; }
  /// Throws Failure naming a factor that nothing was multiplied by.
  void checkScales() const;
  /// Of each input, for so many samples.
  std::map<std::string, Shape> shapes(int64_t batch) const;
  /// The samples of these numbers, by input.
  std::map<std::string, Tensor> batch(const std::vector<int64_t>& samples) const;
  /// The same, each image (a sample of two dims or more) moved by up to `most` places in both of
  /// its last dims, as `seed` and its number say; zeros move in.
  std::map<std::string, Tensor> shiftedBatch(const std::vector<int64_t>& samples, int64_t most,
                                             uint64_t seed) const;
  /// SHA-256 of all arrays as the model takes them, in hexadecimal.
  std::string hash() const;

private:
  void checkArray(const std::string& path, const Tensor& array,
                  const import::onnx_io::ValueInfo& input);
  std::map<std::string, Tensor> arrays_;
  int64_t count_ = 0;
  std::string idleScale_; ///< why a factor had no effect; empty: none
};

/// What each sample should give.
class TrainingLabels {
public:
  /// Reads FILE.npy. Throws Failure naming it where it has another number of samples.
  TrainingLabels(const std::string& path, int64_t samples);

  /// Checks them against what a step takes, `type` of a batch; of a classifier, that each is below
  /// `classes`. Throws Failure naming the file, the sample and the label.
  void check(train::Loss loss, const graph::TensorType& type, int64_t classes);
  Tensor batch(const std::vector<int64_t>& samples) const;
  /// As TrainingData::hash().
  std::string hash() const;

private:
  std::string path_;
  Tensor labels_;
};

/// SHA-256 of type, dims and elements, in hexadecimal.
std::string hashOf(const Tensor& tensor);

/// Throws Failure where the model says itself how many samples it takes at once, and that is not
/// `batch`.
void checkBatch(const import::onnx_io::Model& model, int64_t batch);

} // namespace candela::tool
