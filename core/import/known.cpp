// What a shape follows from: operands and computed integers that must be known when a node is imported. What is not is
// demanded by name, so that the node can be imported when the model runs.
#include "core/import/term.h"
#include "core/reference/reference.h"

namespace candela::import {

Status Step::needConstant(size_t index, const char* what) {
  if (input(index)->isConstant()) return Status::ok();
  demandedInputs_.insert(index);
  return failure(Code::unsupported, "{} ('{}') is not known when the model is imported", what, node.inputs[index]);
}

Result<std::optional<std::vector<int64_t>>> Step::knownInts(size_t index, const char* what) {
  const Value* value = input(index);
  if (!value) return std::optional<std::vector<int64_t>>();
  if (isFloat(value->type.elem)) return badModel("{} is {}, expected integers", what, value->type.text());
  if (value->type.rank() > 1) return badModel("{} has rank {}, expected at most 1", what, value->type.rank());
  CDL_TRY(needConstant(index, what));
  auto ints = Builder::knownInts(value);
  if (!ints)
    return failure(Code::unsupported, "{} ('{}') is {}: too much", what, node.inputs[index], value->type.text());
  return ints;
}

Result<std::vector<int64_t>> Step::contents(Value* computed) {
  if (asked_ == known_.size()) {
    if (!computed->isConstant()) {
      demanded_ = computed;
      return failure(Code::unsupported, "the shape of its result is known at run only");
    }
    CDL_ASSIGN(const Tensor tensor, computed->tensor());
    known_.push_back(tensor.toInts());
  }
  const std::vector<int64_t>& answer = known_[asked_++];
  if (static_cast<int64_t>(answer.size()) != computed->type.count())
    return failure(Code::internal, "{} integers are given for {}", answer.size(), computed->type.text());
  return answer;
}

Result<std::optional<std::vector<int64_t>>> Step::intsAttrOrInput(const std::string& name, size_t index, int since) {
  return opset < since ? maybe<std::vector<int64_t>>(name) : knownInts(index, name.c_str());
}

Result<std::vector<int64_t>> Step::neededInts(const std::string& name, size_t index, int since) {
  CDL_ASSIGN(auto ints, intsAttrOrInput(name, index, since));
  if (!ints) return badModel("{} '{}' is missing", opset < since ? "attribute" : "input", name);
  return *std::move(ints);
}

Result<Value*> Step::scalarAttrOrInput(const std::string& name, size_t index, int since) {
  Value* value = input(index);
  if (opset < since) {
    CDL_ASSIGN(const auto number, maybe<float>(name));
    return number ? build.scalar(*number, input(0)->type.elem) : nullptr;
  }
  // Writers that give a vector of one mean a scalar.
  return value && value->type.shape() == Shape{1} ? build.reshape(value, {}) : value;
}

double knownNumber(Step& step, size_t input, const char* what) {
  return need([&]() -> Result<double> {
    const Value* value = step.input(input);
    if (value->type.count() != 1) return badModel("{} is {}, expected one value", what, value->type.text());
    CDL_TRY(step.needConstant(input, what));
    CDL_ASSIGN(const Tensor tensor, value->tensor());
    CDL_ASSIGN(const reference::Array array, reference::fromTensor(tensor));
    return isFloat(array.elem) ? array.real[0] : static_cast<double>(array.whole[0]);
  }());
}

} // namespace candela::import
