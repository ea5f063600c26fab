#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/compiler/import/caffe2/arguments.h"
#include "core/compiler/import/caffe2/nets.h"
#include "core/compiler/import/import_diagnostics.h"
#include "core/compiler/import/onnx_io/model.h"

namespace candela::import::caffe2 {

/// Of a value of the model that is written.
using Name = std::string;
using Attributes = std::map<std::string, onnx_io::Attribute>;

/// What a blob is at the moment. Operators may write blobs again, so a name of the net stands for
/// one value after the other.
struct Blob {
  Name value;
  std::optional<Quantization> quantization{}; ///< real = scale * (value - zero)
  std::optional<Tensor> constant{};           ///< of what a fill made
};

/// Writes one net as nodes of a graph.
class NetWriter {
public:
  NetWriter(const Nets& nets, onnx_io::Graph& graph) : nets_(nets), graph_(graph) {}

  void write();

  const ImportDiagnostics& diagnostics() const { return diagnostics_; }

private:
  friend class Step;

  void writeInputs();
  void writeOperator(const proto::OperatorDef& op, size_t index);
  void writeOutputs();
  /// What is read under this name; a constant of the init net is made one of the graph by that.
  /// Throws where nothing has written it.
  const Blob& blob(const std::string& name);
  /// `wanted`, or the first of wanted:1, wanted:2, ... that is not taken.
  Name unique(const std::string& wanted);
  Name initializer(const std::string& wanted, Tensor tensor);

  const Nets& nets_;
  onnx_io::Graph& graph_;
  ImportDiagnostics diagnostics_;
  std::map<std::string, Blob> blobs_;
  std::vector<std::string> written_; ///< blobs, in the order in which operators wrote them first
  std::set<std::string> outputs_;    ///< external ones
  std::set<std::string> read_;       ///< blobs that an operator reads
  std::set<Name> names_;             ///< taken
  std::map<std::string, int> suffixes_;
};

/// One operator on its way into the model: what the function of its type reads and writes.
class Step {
public:
  Step(NetWriter& writer, const proto::OperatorDef& op, std::string name);

  const Arguments arguments;
  const std::string& type() const;

  // Operands.
  size_t inputCount() const;
  size_t outputCount() const;
  bool has(size_t input) const { return input < inputCount(); }
  /// Throws where the operand is quantized.
  Name in(size_t i);
  /// All of them.
  std::vector<Name> inputs();
  /// What the operand means: dequantized, if it is quantized.
  Name real(size_t i);
  /// The same with its dims in another order; of a constant before it is dequantized.
  Name realInOrder(size_t i, const Ints& perm);
  const Blob& blob(size_t i);

  // Nodes.
  Name add(const char* op, std::vector<Name> inputs, Attributes attributes = {});
  std::vector<Name> addAll(const char* op, std::vector<Name> inputs, size_t outputs,
                           Attributes attributes = {}, const char* domain = "");
  Name constant(Tensor tensor);
  Name constant(const Ints& values); ///< i64, one dim
  Name number(float value);          ///< f32 of no dims
  Name transpose(const Name& x, const Ints& perm);
  Name reshape(const Name& x, const Ints& shape); ///< 0 keeps a dim, one may be -1
  /// Dims first..last of the shape of x, i64; last is left out.
  Name dims(const Name& x, int64_t first, int64_t last);
  Name join(std::vector<Name> vectors); ///< one behind the other

  // Results.
  void set(size_t output, const Name& y);
  /// `y` is real; the result is u8, quantized by Y_scale and Y_zero_point.
  void setQuantized(size_t output, const Name& y);
  void setStored(size_t output, const Name& y, const Quantization& quantization);
  /// The result is the constant that the arguments hold.
  void setFilled();
  bool wants(size_t output) const { return output < outputCount(); }
  /// Throws where something reads a result that has no form.
  void needUnread(size_t output, const char* what) const;
  /// All of it as a node of the domain kDomain, which a backend may claim.
  void setUnknown();

private:
  /// `stored` of what the blob holds, as real numbers.
  Name dequantized(const Name& stored, const Blob& blob);

  NetWriter& writer_;
  const proto::OperatorDef& op_;
  std::string name_;
};

/// How an operator is written.
struct Operator {
  std::string_view type;
  int minInputs, maxInputs; ///< < 0: any number
  void (*write)(Step&);
  std::string_view limits = ""; ///< what of it is not supported
};

// operators/<family>.cpp.
#define FAMILY(name) std::span<const Operator> name##Operators();
#include "core/compiler/import/caffe2/operators/families.inc"
#undef FAMILY

/// Null where it has no form.
const Operator* findOperator(std::string_view type);
/// All of them, sorted by type.
std::vector<const Operator*> allOperators();

} // namespace candela::import::caffe2
