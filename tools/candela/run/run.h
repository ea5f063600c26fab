#pragma once

#include <map>
#include <optional>
#include <set>

#include "core/support/compare.h"
#include "core/support/text/pairs.h"
#include "tools/candela/support/model.h"

/// The parts of `candela run`.
namespace candela::tool {

struct RunOptions {
  ModelOptions model;
  std::map<std::string, std::string> inputFiles;              ///< by input
  std::map<std::string, std::vector<std::string>> laterFiles; ///< for the runs behind the first
  std::optional<uint64_t> seed;
  std::string dumpFolder;
  std::vector<std::string> zeroed; ///< states whose inputs are zeros where no file gives them
  bool keepsCompiled = true; ///< nothing was said about how to compile, so a bundle may be run

  /// Takes the texts of --input. Fails when an input is given twice, unless those are `several`
  /// runs.
  void addInputs(const std::vector<std::string>& texts, bool several = false);
};

/// Where runs put their outputs; kept from one run to the next.
struct Results {
  std::vector<Tensor> outputs;
  std::vector<candela_tensor_t> in, out; ///< as the embedding API takes them
};

/// A compiled model and the data of one run.
struct Session {
  sdk::Model model;
  Json report; ///< candela.placement/1
  double compileMs = 0;
  std::vector<sdk::Port> inputPorts, outputPorts;
  std::vector<Tensor> inputs;
  std::set<std::string> states; ///< names of the inputs and outputs that are some
  /// What --input says more than once: the inputs of the runs behind the first, each as often as
  /// there are such runs.
  std::map<size_t, std::vector<Tensor>> laterInputs;
  size_t runs() const { return laterInputs.empty() ? 1 : 1 + laterInputs.begin()->second.size(); }
  /// From the inputs of run `run` - 1 to its own: what is a state goes on.
  void prepare(size_t run);
  /// The model is a program's text: its inputs and outputs are buffers, whose size says no shape.
  bool flatShapes = false;

  /// Runs once into `results`, where an earlier run's outputs are overwritten; adds the time that
  /// it took. Outputs that are states are left where they are unless they are wanted, or have so
  /// few elements.
  void run(std::vector<double>& latenciesMs, Results& results, bool wantsStates = true,
           int64_t few = 0) const;
  /// The same into fresh outputs.
  std::vector<Tensor> run(std::vector<double>& latenciesMs) const;
  /// The tensor with these dims, when it has as many elements and the model says no shape; else as
  /// it is.
  Tensor shaped(Tensor tensor, const Shape& dims) const;
  /// Index of the output with this name; fails with the list of them.
  size_t outputIndex(const std::string& option, const std::string& name) const;
};

/// The inputs and outputs that the texts of --state mean; fails on a text that means none.
std::vector<text::NamePair> statesOf(const std::vector<std::string>& texts, const Session& session);

/// bf16 and storage types stand in .npy files as the unsigned integers that hold them: such a
/// tensor as `wanted`.
Tensor asStored(Tensor tensor, Elem wanted);

/// Compiles or loads and prepares the inputs: the given files, else random data by the definition
/// of tests/models/README.md. Shapes of given tensors bind symbolic dims when neither --shape nor
/// --dim was given.
Session openSession(const RunOptions& options);

/// Top-1 accuracy.
struct Accuracy {
  int64_t correct = 0, total = 0;
  std::string predictionsSha256; ///< of the predictions as little-endian i64
  double fraction() const {
    return total ? static_cast<double>(correct) / static_cast<double>(total) : 0;
  }
};
/// scores: the first output, one row for each label. The first of equal scores wins; NaN never
/// does.
Accuracy measureAccuracy(const Session& session, Tensor scores, const std::string& labelsFile);

/// The k largest of each row of scores, largest first: rows of (index, value).
std::vector<std::vector<std::pair<int64_t, double>>> topOf(const Tensor& scores, int k);

/// "min -1.2  max 3.4  mean 0.1", or the values when there are few.
std::string summaryText(const Tensor& tensor);
/// {name, dtype, shape, min, max, mean}
Json summaryJson(const sdk::Port& port, const Tensor& tensor);

} // namespace candela::tool
