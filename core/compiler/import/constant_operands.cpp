// What a shape follows from: operands and computed integers that must be known when a node is
// imported. What is not is demanded by name, so that the node can be imported when the model runs.
#include <map>

#include "core/compiler/import/term.h"
#include "core/reference/reference.h"

namespace candela::import {
namespace {

/// What follows from constants alone, though nobody folded it because the model would grow.
class Evaluation {
public:
  /// Nullopt: it does not, or is too much work.
  std::optional<Tensor> run(const Value* value) {
    if (const auto found = values_.find(value); found != values_.end()) return found->second;
    const graph::Node* node = value->producer;
    if (!node || !isCheap(*node)) return std::nullopt;
    std::vector<Tensor> operands;
    for (const Value* operand : node->operands()) {
      std::optional<Tensor> tensor = operand ? run(operand) : Tensor();
      if (!tensor) return std::nullopt;
      operands.push_back(*std::move(tensor));
    }
    auto results = reference::evaluate(*node, operands);
    if (!results) return std::nullopt;
    for (size_t i = 0; i < results->size(); ++i)
      values_[node->results()[i]] = std::move((*results)[i]);
    return values_[value];
  }

private:
  bool isCheap(const graph::Node& node) {
    if (node.info().has(graph::kTraitContraction) || node.info().has(graph::kTraitWindow))
      return false;
    for (const Value* result : node.results()) {
      if (result->type.count() > kMostElements - elements_) return false;
      elements_ += result->type.count();
    }
    return ++nodes_ <= kMostNodes;
  }

  static constexpr int64_t kMostElements = int64_t(1) << 22;
  static constexpr int kMostNodes = 1000;
  std::map<const Value*, Tensor> values_;
  int64_t elements_ = 0;
  int nodes_ = 0;
};

} // namespace

Status NodeContext::needConstant(size_t index, const char* what) {
  if (input(index)->isConstant()) return Status::ok();
  demandedInputs_.insert(index);
  return failure(Code::unsupported, "{} ('{}') is not known when the model is imported", what,
                 node.inputs[index]);
}

Result<std::optional<std::vector<int64_t>>> NodeContext::knownInts(size_t index, const char* what) {
  const Value* value = input(index);
  if (!value) return std::optional<std::vector<int64_t>>();
  if (isFloat(value->type.elem))
    return badModel("{} is {}, expected integers", what, value->type.text());
  if (value->type.rank() > 1)
    return badModel("{} has rank {}, expected at most 1", what, value->type.rank());
  CDL_TRY(needConstant(index, what));
  auto ints = Builder::knownInts(value);
  if (!ints)
    return failure(Code::unsupported, "{} ('{}') is {}: too much", what, node.inputs[index],
                   value->type.text());
  return ints;
}

Result<std::vector<int64_t>> NodeContext::contents(Value* computed) {
  if (asked_ == known_.size()) {
    const auto tensor = Evaluation().run(computed);
    if (!tensor) {
      demanded_ = computed;
      return failure(Code::unsupported, "the shape of its result is known at run only");
    }
    known_.push_back(tensor->toInts());
  }
  const std::vector<int64_t>& answer = known_[asked_++];
  if (static_cast<int64_t>(answer.size()) != computed->type.count())
    return failure(Code::internal, "{} integers are given for {}", answer.size(),
                   computed->type.text());
  return answer;
}

Status NodeContext::trim(std::vector<Trim> trims, Value* count) {
  const auto answer = contents(count);
  if (!answer) {
    trims_ = std::move(trims);
    return answer.status();
  }
  for (const Trim& trim : trims) {
    const Term value(build, trim.value);
    if (answer->front() < 0 || answer->front() > value.dim(trim.axis))
      return failure(Code::internal, "{} of {} are kept along axis {}", answer->front(),
                     value.text(), trim.axis);
    set(trim.output, value.slice(trim.axis, 0, answer->front()).value());
  }
  return Status::ok();
}

Result<std::optional<std::vector<int64_t>>> NodeContext::intsAttrOrInput(const std::string& name,
                                                                         size_t index, int since) {
  return opset < since ? maybe<std::vector<int64_t>>(name) : knownInts(index, name.c_str());
}

Result<std::vector<int64_t>> NodeContext::neededInts(const std::string& name, size_t index,
                                                     int since) {
  CDL_ASSIGN(auto ints, intsAttrOrInput(name, index, since));
  if (!ints) return badModel("{} '{}' is missing", opset < since ? "attribute" : "input", name);
  return *std::move(ints);
}

Result<Value*> NodeContext::scalarAttrOrInput(const std::string& name, size_t index, int since) {
  Value* value = input(index);
  if (opset < since) {
    CDL_ASSIGN(const auto number, maybe<float>(name));
    return number ? build.scalar(*number, input(0)->type.elem) : nullptr;
  }
  // Writers that give a vector of one mean a scalar.
  return value && value->type.shape() == Shape{1} ? build.reshape(value, {}) : value;
}

double knownNumber(NodeContext& context, size_t input, const char* what) {
  return need([&]() -> Result<double> {
    const Value* value = context.input(input);
    if (value->type.count() != 1)
      return badModel("{} is {}, expected one value", what, value->type.text());
    CDL_TRY(context.needConstant(input, what));
    CDL_ASSIGN(const Tensor tensor, value->tensor());
    CDL_ASSIGN(const reference::Array array, reference::fromTensor(tensor));
    return isFloat(array.elem) ? array.real[0] : static_cast<double>(array.whole[0]);
  }());
}

} // namespace candela::import
