#pragma once

#include "core/compiler/import/tflite/graph_writer.h"

namespace candela::import::tflite {

using Attributes = std::map<std::string, onnx_io::Attribute>;
using Ints = std::vector<int64_t>;

/// A table without fields: all of them have their defaults.
alignas(8) inline constexpr uint16_t kEmptyTable[] = {4, 4, 4, 0};

/// More places than this are not written down, one by one.
inline constexpr int64_t kMostPlaces = int64_t(1) << 20;

/// One operator on its way into the model: what the function of its kind reads and writes.
class Step {
public:
  Step(GraphWriter& writer, const OperatorInfo& op, std::string name)
      : writer_(writer), op_(op), name_(std::move(name)), first_(writer.graph().nodes.size()) {}

  const OperatorInfo& op() const { return op_; }
  GraphWriter& writer() { return writer_; }
  const std::string& name() const { return name_; } ///< of its nodes

  /// The operator's attributes; all defaults where it has none. Throws where it has others.
  template <typename T> const T& options() const {
    if (const T* own = op_.table->builtin_options_as<T>()) return *own;
    if (op_.table->builtin_options_type() != schema::BuiltinOptions_NONE)
      reject("its attributes are those of another operator");
    return *reinterpret_cast<const T*>(kEmptyTable + 2);
  }

  // Operands.
  size_t inputCount() const { return op_.inputs.size(); }
  size_t outputCount() const { return op_.outputs.size(); }
  bool has(size_t input) const { return input < op_.inputs.size() && op_.inputs[input] >= 0; }
  bool wants(size_t output) const {
    return output < op_.outputs.size() && op_.outputs[output] >= 0;
  }
  const TensorInfo& input(size_t i) const;
  const TensorInfo& output(size_t i) const;
  Name stored(size_t i);
  Name real(size_t i);
  /// Stored, as operators that only move elements have it, if the result is quantized alike; else
  /// real. finishMoved() takes what was made of it.
  Name moved(size_t i);
  /// Whether input and output hold the same numbers for the same elements.
  bool isAlike(size_t input, size_t output) const;
  /// As int64, for operands that decide shapes: a constant where the file has one.
  Name longs(size_t i);
  /// The integers of a constant operand, within +-2^40. Throws where it is none.
  Ints ints(size_t i, const char* what) const;
  /// The one integer of a constant operand.
  int64_t integer(size_t i, const char* what) const;
  /// Dims that are all known. Throws where one is free.
  Shape shape(size_t i) const;
  /// A dim that is known, counted from the end if negative.
  int64_t dim(size_t input, int64_t axis) const;
  /// In 0..rank-1.
  int64_t axis(int64_t axis, int64_t rank) const;

  // Nodes.
  Name add(const char* op, std::vector<Name> inputs, Attributes attributes = {});
  std::vector<Name> addAll(const char* op, std::vector<Name> inputs, size_t outputs,
                           Attributes attributes = {}, const char* domain = "");
  Name constant(Tensor tensor);
  Name constant(const Ints& values); ///< i64, one dim
  Name number(double value, Elem elem);
  Name cast(const Name& x, Elem to);
  Name transpose(const Name& x, const Ints& perm);
  Name reshape(const Name& x, const Ints& shape); ///< with at most one -1
  Name unsqueeze(const Name& x, const Ints& axes);
  Name squeeze(const Name& x, const Ints& axes);
  /// What the operator does to its result at last.
  Name activate(const Name& x, schema::ActivationFunctionType activation);

  // Results.
  /// `y` is real; it is quantized if the result is.
  void set(size_t output, const Name& y);
  void setStored(size_t output, const Name& y);
  /// Of moved(input).
  void finishMoved(size_t input, size_t output, const Name& y);

private:
  GraphWriter& writer_;
  const OperatorInfo& op_;
  std::string name_;
  size_t first_; ///< of its nodes
};

/// How a builtin operator is written.
struct Operator {
  schema::BuiltinOperator code;
  int minInputs, maxInputs, maxOutputs; ///< < 0: any number
  void (*write)(Step&);
  std::string_view limits = ""; ///< what of it is not supported
};

// operators/<family>.cpp.
#define FAMILY(name) std::span<const Operator> name##Operators();
#include "core/compiler/import/tflite/operators/families.inc"
#undef FAMILY

/// Null where it has no form.
const Operator* findOperator(schema::BuiltinOperator code);
std::vector<const Operator*> allOperators();

/// The custom operator TFLite_Detection_PostProcess.
void writePostProcess(Step& step);
/// An operator that has none: a node of the domain kDomain, which a backend may claim.
void writeUnknown(Step& step);
/// The attributes of a custom operator, from its flexbuffer; its bytes as the text "custom_options"
/// where they are none.
Attributes customAttributes(const schema::Operator& op);

} // namespace candela::import::tflite
