#pragma once

#include <optional>
#include <set>
#include <span>

#include "core/compiler/import/builder.h"
#include "core/compiler/import/onnx_io/model.h"

namespace candela::import {

/// One ONNX node on its way into the Graph: what an adapter reads from and writes to. Failures say
/// the reason only; GraphImporter adds file, node and operator. Where a failure is that something
/// is known at run only, demandedInputs() and demanded() name it: the node can be imported then.
class NodeContext {
public:
  using Contents = std::vector<std::vector<int64_t>>;
  /// `known`: what contents() gives, call by call.
  NodeContext(Builder& build, const onnx_io::Node& node, int opset, std::vector<Value*> inputs,
              Contents known = {})
      : build(build), node(node), opset(opset), inputs_(std::move(inputs)),
        outputs_(node.outputs.size()), known_(std::move(known)) {}

  Builder& build;
  const onnx_io::Node& node;
  const int opset; ///< of the node's domain

  /// Null when absent.
  Value* input(size_t i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }
  const std::vector<Value*>& inputs() const { return inputs_; }
  /// Whether the model gives the output a name.
  bool wants(size_t output) const {
    return output < node.outputs.size() && !node.outputs[output].empty();
  }
  void set(size_t output, Value* value) {
    if (output < outputs_.size()) outputs_[output] = value;
  }
  /// The first output.
  Status set(Result<Value*> value) {
    if (value) set(0, *value);
    return value.status();
  }
  /// The first outputs.
  Status set(const Result<std::vector<Value*>>& values) {
    for (size_t i = 0; values && i < values->size(); ++i) set(i, (*values)[i]);
    return values.status();
  }
  const std::vector<Value*>& outputs() const { return outputs_; }

  // Attributes. One that the adapter does not ask for is reported (unusedAttribute).
  bool has(const std::string& name) const { return node.attributes.count(name) > 0; }
  /// T: a type of onnx_io::Attribute. Nullopt when absent.
  template <typename T> Result<std::optional<T>> maybe(const std::string& name) {
    const auto found = node.attributes.find(name);
    if (found == node.attributes.end()) return std::optional<T>();
    used_.insert(name);
    if (const T* value = std::get_if<T>(&found->second)) return std::optional<T>(*value);
    return wrongType(name, onnx_io::Attribute(T()));
  }
  template <typename T> Result<T> attr(const std::string& name, T fallback) {
    CDL_ASSIGN(const std::optional<T> value, maybe<T>(name));
    return value.value_or(std::move(fallback));
  }
  /// 0 or 1.
  Result<bool> flagAttr(const std::string& name, bool fallback);
  /// An attribute that was given and that nobody asked for; null when there is none.
  const std::string* unusedAttribute() const;

  // What a shape follows from (known.cpp).
  /// The integers of a constant operand; nullopt when it is absent. Failure `unsupported`: not
  /// known at import, so demanded.
  Result<std::optional<std::vector<int64_t>>> knownInts(size_t input, const char* what);
  /// What was an attribute and became input `input` at opset `since`.
  Result<std::optional<std::vector<int64_t>>> intsAttrOrInput(const std::string& name, size_t input,
                                                              int since);
  /// The same, required.
  Result<std::vector<int64_t>> neededInts(const std::string& name, size_t input, int since);
  /// A scalar that was a float attribute and became input `input` at opset `since`; null when it is
  /// absent.
  Result<Value*> scalarAttrOrInput(const std::string& name, size_t input, int since);

  /// Failure `unsupported` unless the operand is a constant, and demands it.
  Status needConstant(size_t input, const char* what);
  /// The integers of a value that the adapter computed from the operands, at most in one dim: those
  /// given for this call, or those of a constant. Failure `unsupported`: known at run only, so
  /// demanded. The calls of an adapter are the same as far as their answers are.
  Result<std::vector<int64_t>> contents(Value* computed);
  const std::set<size_t>& demandedInputs() const { return demandedInputs_; }
  /// What contents() could not answer: with its integers behind those of known() the next import
  /// gets further. Null when nothing.
  Value* demanded() const { return demanded_; }
  const Contents& known() const { return known_; } ///< all answers so far

  /// An output that is the first `count` of `value` along an axis.
  struct Trim {
    size_t output;
    Value* value;
    int64_t axis;
  };
  /// Sets outputs by contents(count). Where that fails, trims() and demanded() say all that is left
  /// to do, and every other output is set.
  Status trim(std::vector<Trim> trims, Value* count);
  const std::vector<Trim>& trims() const { return trims_; }

  /// Writers of models count otherwise than ONNX does now, so that the extents which a model
  /// declares may be theirs.
  void disputeExtents() { disputed_ = true; }
  bool hasDisputedExtents() const { return disputed_; }

  /// What tells the numbers of random nodes without a seed from those of another run; nullopt:
  /// always the same ones.
  std::optional<uint64_t> randomSeed;

private:
  Status wrongType(const std::string& name, const onnx_io::Attribute& wanted) const;
  std::vector<Value*> inputs_, outputs_;
  std::set<std::string, std::less<>> used_;
  Contents known_;
  std::set<size_t> demandedInputs_;
  Value* demanded_ = nullptr;
  size_t asked_ = 0;
  std::vector<Trim> trims_;
  bool disputed_ = false;
};

/// Every axis of the first input, in order.
std::vector<int64_t> allAxes(const NodeContext& context);
/// The dim that `axis` in -rank..rank-1 means.
Result<int64_t> resolveAxis(int64_t axis, int64_t rank);
/// Each once, in the order given.
Result<std::vector<int64_t>> resolveAxes(const std::vector<int64_t>& axes, int64_t rank);

/// "Add", or "com.microsoft.Gelu" of another domain than ONNX's own.
inline std::string qualified(const std::string& domain, const std::string& opType) {
  return domain.empty() ? opType : domain + "." + opType;
}

/// An operator that a function of ours imports.
struct Operator {
  std::string_view name;                ///< qualified
  int minInputs, maxInputs, maxOutputs; ///< maxInputs < 0: any number
  Status (*import)(NodeContext&);
};

// operators/<family>.cpp.
#define FAMILY(name) std::span<const Operator> name##Operators();
#include "core/compiler/import/operators/families.inc"
#undef FAMILY

/// What Conv says of its window over the first input, with auto_pad resolved.
Result<Attrs> convAttrs(NodeContext& context, const graph::TensorType& weight);

/// What imports an operator: a function above, or the op record that it maps
/// onto one to one.
struct OperatorImporter {
  const Operator* adapter = nullptr;
  const graph::OpInfo* record = nullptr;
  explicit operator bool() const { return adapter || record; }
  /// Counts of inputs and outputs against what the operator has.
  Status checkArity(const onnx_io::Node& node) const;
  /// Names of attributes, as far as they can be judged without the operands' types.
  Status checkAttributes(const onnx_io::Node& node, int64_t opset) const;
  Status import(NodeContext& context) const;
};
OperatorImporter findImporter(const onnx_io::Node& node);
/// Of all of them, qualified.
std::vector<std::string> importedNames();

} // namespace candela::import
