#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/compiler/import/import_diagnostics.h"
#include "core/compiler/import/onnx_io/model.h"
#include "core/compiler/import/refusal.h"
#include "core/compiler/import/tflite/file.h"

namespace candela::import::tflite {

/// Of a value of the model that is written.
using Name = std::string;

/// What the writers of one model share.
struct ModelWriter {
  const File& file;
  ImportDiagnostics diagnostics = {};
  std::set<Name> names = {};  ///< taken
  int64_t nodes = 0;          ///< and tensors of subgraphs, each time that they are written
  uint64_t constantBytes = 0; ///< of constants that operators made
  int depth = 0;              ///< of subgraphs that are written at the moment
  std::set<std::string> domains = {};

  /// `wanted`, or the first of wanted:1, wanted:2, ... that is not taken.
  Name unique(const std::string& wanted);
  /// Throws where what is written has become too much.
  void checkSize() const;
  std::map<std::string, int> suffixes = {};
};

/// Writes one subgraph as nodes of a graph.
class GraphWriter {
public:
  /// `prefix` stands in front of the names of nodes and values.
  GraphWriter(ModelWriter& model, const Subgraph& subgraph, onnx_io::Graph& graph,
              std::string prefix);

  /// The subgraph's inputs are these values.
  void bind(const std::vector<Name>& inputs);
  /// All of its operators.
  void write();
  /// After that.
  std::vector<Name> outputs();

  ModelWriter& model() { return model_; }
  const Subgraph& subgraph() const { return subgraph_; }
  const std::string& prefix() const { return prefix_; }
  onnx_io::Graph& graph() { return graph_; }

  /// The tensor's elements as the file holds them. Throws where it cannot be read.
  Name stored(int tensor);
  /// What they mean: dequantized, if they are quantized.
  Name real(int tensor);
  /// The name that the tensor's producer has to give its result, which is called once for each.
  Name produce(int tensor);
  /// Of elements that the file does not have so.
  Name constant(const std::string& wanted, Tensor tensor);
  /// `last` is `first` with its channels moved from dim 1 to the end.
  void noteLayout(const Name& last, const Name& first) { channelsFirst_[last] = first; }
  /// A value has another name from now on.
  void noteName(const Name& from, const Name& to);
  /// What a value was before its channels moved to the end; "" where they did not.
  Name channelsFirst(const Name& last) const;
  /// Its scales and zero points as operands, the latter of the element type.
  std::vector<Name> quantization(int tensor);

private:
  Name initializer(const std::string& wanted, Tensor tensor);
  const TensorInfo& info(int tensor) const {
    return subgraph_.tensors[static_cast<size_t>(tensor)];
  }

  ModelWriter& model_;
  const Subgraph& subgraph_;
  onnx_io::Graph& graph_;
  std::string prefix_;
  std::vector<Name> stored_, real_; ///< by tensor; "": not yet
  std::map<int, std::vector<Name>> quantizations_;
  std::map<Name, Name> channelsFirst_;
};

/// Writes a subgraph with these values as its inputs. Throws where it is none of the file's, takes
/// other inputs, or subgraphs nest too deep.
std::vector<Name> writeSubgraph(ModelWriter& model, int64_t index, const std::vector<Name>& inputs,
                                onnx_io::Graph& graph, const std::string& prefix);

} // namespace candela::import::tflite
