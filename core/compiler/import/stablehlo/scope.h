#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/compiler/import/import_diagnostics.h"
#include "core/compiler/import/onnx_io/model.h"
#include "core/compiler/import/refusal.h"
#include "core/compiler/import/stablehlo/program.h"

namespace candela::import::stablehlo {

/// Of a value of the model that is written.
using Name = std::string;
using Ints = std::vector<int64_t>;

/// A value of the program, and what it is in the model. Operators of ONNX broadcast: what is alike
/// along a dim is kept with an extent of 1 there until somebody needs all of its elements.
struct Value {
  Type type;
  Name name;                      ///< of what is kept; "" for a constant that nothing has read yet
  Shape kept;                     ///< its dims: rank 0, or 1 wherever it differs from the type's
  Name whole;                     ///< the same with all of the type's dims; "": not yet
  std::optional<Tensor> constant; ///< the elements of what is kept, where the program has them
  std::optional<int64_t> counted; ///< the dim along which elements are 0, 1, 2, ...

  bool isWhole() const { return kept == type.dims; }
  /// The one element that all are alike to, where it is known.
  bool isSplat() const { return constant && constant->count() == 1; }
};

/// What the scopes of one model share.
struct ModelWriter {
  const Program& program;
  uint64_t fileSize = 0;
  ImportDiagnostics diagnostics = {};
  std::set<Name> names = {};          ///< taken
  int64_t operations = 0;             ///< those of functions each time that they are called
  uint64_t constantBytes = 0;         ///< of constants that operations made
  int depth = 0;                      ///< of functions and regions that are written at the moment
  std::set<std::string> domains = {}; ///< of custom calls
  std::map<std::string, int> suffixes = {};

  /// `wanted`, or the first of wanted:1, wanted:2, ... that is not taken.
  Name unique(const std::string& wanted);
  /// Throws where what is written has become too much.
  void checkSize() const;
  /// Before a constant of so many bytes is made. Throws where they become too many.
  void countConstant(uint64_t bytes);
};

/// The values that the operations of a function or region can name, and the graph that they are
/// written into.
class Scope {
public:
  /// `prefix` stands in front of the names of nodes. A region sees the values of `outer`.
  Scope(ModelWriter& model, onnx_io::Graph& graph, std::string prefix, Scope* outer = nullptr)
      : model_(model), graph_(graph), prefix_(std::move(prefix)), outer_(outer) {}

  ModelWriter& model() { return model_; }
  onnx_io::Graph& graph() { return graph_; }
  const std::string& prefix() const { return prefix_; }

  /// Throws where the name is taken.
  void define(const std::string& name, Value value);
  /// Throws where there is none. One of an outer scope becomes a record of this one.
  Value& find(const std::string& name);
  /// What nodes of this graph call it.
  Name nameOf(Value& value, const std::string& wanted);
  Name initializer(const std::string& wanted, Tensor tensor);

  /// Writes the operations of a function or region. Returns what its last one gives.
  std::vector<Value> write(const Region& region);

private:
  const Value* lookUp(const std::string& name) const;

  ModelWriter& model_;
  onnx_io::Graph& graph_;
  std::string prefix_;
  Scope* outer_;
  std::map<std::string, Value> values_;
};

/// Writes a region with these values as its arguments. Throws where it takes others, or regions and
/// functions nest too deep.
std::vector<Value> writeRegion(Scope& scope, const Region& region,
                               const std::vector<Value>& arguments);

} // namespace candela::import::stablehlo
