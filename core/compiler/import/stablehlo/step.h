#pragma once

#include <span>

#include "core/compiler/import/stablehlo/scope.h"

namespace candela::import::stablehlo {

using Attributes = std::map<std::string, onnx_io::Attribute>;

/// A value on its way through an operation: its name, and its dims.
struct Part {
  Name name;
  Shape dims;
};

/// One operation on its way into the model: what the function of its kind reads and writes.
class Step {
public:
  Step(Scope& scope, const Operation& op, std::string name)
      : scope_(scope), op_(op), name_(std::move(name)) {}

  const Operation& op() const { return op_; }
  Scope& scope() { return scope_; }
  const std::string& name() const { return name_; } ///< of its nodes

  // Operands. Those that are no tensors of ours are refused.
  size_t inputCount() const { return op_.operands.size(); }
  Value& input(size_t i);
  const Type& type(size_t i) { return input(i).type; }
  std::vector<Value> operands();
  /// As it is kept, for operators that broadcast.
  Name kept(size_t i);
  /// With all of its elements.
  Name whole(size_t i);
  Name whole(Value& value);
  Part part(size_t i) { return {whole(i), type(i).dims}; }

  // Results.
  size_t outputCount() const { return op_.results.size(); }
  const Type& output(size_t i = 0) const;
  /// Throws where the result has other dims.
  void expectDims(const Shape& dims, size_t output = 0) const;
  void expectElem(Elem elem, size_t output = 0) const;
  /// The result has all of its elements.
  void set(const Name& y, size_t output = 0);
  /// It is kept with these dims.
  void setKept(const Name& y, Shape kept, size_t output = 0);
  /// Of elements that are known.
  void setConstant(Tensor tensor, size_t output = 0);
  /// Its dims and type are checked.
  void setPart(const Part& y, size_t output = 0);
  void setValue(Value value, size_t output = 0);
  /// Results that have no value yet, so that what reads them may have more to report.
  void defineRest();

  // Attributes. Throws where one is none of its kind.
  const Attribute* find(std::string_view key) const;
  Ints ints(std::string_view key) const; ///< must be there
  Ints ints(std::string_view key, const Ints& otherwise) const;
  int64_t integer(std::string_view key, int64_t otherwise) const;
  int64_t integer(std::string_view key) const; ///< must be there
  /// A word of the operation, or its attribute: "LT" of comparison_direction.
  std::string word(std::string_view key, size_t position) const;
  /// Rows of two: padding.
  std::vector<std::pair<int64_t, int64_t>> pairs(std::string_view key, size_t count) const;
  /// Dims of a tensor of this rank, each once.
  void checkAxes(const Ints& axes, size_t rank, const char* what) const;

  // Nodes.
  Name add(const char* op, std::vector<Name> inputs, Attributes attributes = {});
  std::vector<Name> addAll(const char* op, std::vector<Name> inputs, size_t outputs,
                           Attributes attributes = {}, const char* domain = "");
  Name constant(Tensor tensor);
  Name constant(const Ints& values); ///< i64, one dim
  Name number(double value, Elem elem);
  Name cast(const Name& x, Elem to);
  Part transpose(const Part& x, const Ints& perm);
  Part reshape(const Part& x, const Shape& dims);
  /// Elements along dims: [begin, end) by a stride, which may be negative along a dim.
  Part slice(const Part& x, const Ints& begins, const Ints& ends, const Ints& strides);
  /// Turned around along these dims.
  Part reverse(const Part& x, const Ints& axes);
  /// Pads with a value of rank 0; counts may be negative.
  Part pad(Part x, const Name& value, const Ints& low, const Ints& high, const Ints& interior);

private:
  Scope& scope_;
  const Operation& op_;
  std::string name_;
  std::set<size_t> set_; ///< outputs that have a value
};

/// How an operation is written.
struct Operator {
  std::string_view name;        ///< "stablehlo.add"
  int minOperands, maxOperands; ///< < 0: any number
  int regions;                  ///< < 0: any number
  void (*write)(Step&);
  std::string_view limits = ""; ///< what of it is not supported
};

// operators/<family>.cpp.
#define FAMILY(name) std::span<const Operator> name##Operators();
#include "core/compiler/import/stablehlo/operators/families.inc"
#undef FAMILY

/// A list of integers. Throws where it is another value.
Ints integersOf(const Attribute& list, std::string_view key);

/// Null where it has no form.
const Operator* findOperator(std::string_view name);

/// Integers from 0 on, i64, of one dim.
Tensor countTo(Step& step, int64_t count);

} // namespace candela::import::stablehlo
