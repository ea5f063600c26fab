#include "core/compiler/lowering/fusion/expression.h"

#include <algorithm>
#include <map>

#include "core/compiler/capabilities/views.h"
#include "core/support/text/literal.h"

namespace candela::lowering::fusion {

using graph::Node;
using graph::OpKind;
using graph::Value;

namespace {

constexpr size_t kMaxViews = 16;

/// The bits of a constant of one element.
std::optional<uint64_t> literalBits(const Value& value) {
  if (!value.isConstant() || value.type.count() != 1) return std::nullopt;
  const auto tensor = value.payload().materialize({1});
  if (!tensor) return std::nullopt;
  return loadElement(value.type.elem, tensor->bytes.data(), 0);
}

/// A literal takes its type from a neighbour: a condition and the only operand of a step have none.
bool canBeLiteral(uint16_t kind, size_t index) {
  return kind == CDL_KIND_BINARY || kind == CDL_KIND_COMPARE ||
         (kind == CDL_KIND_SELECT && index > 0);
}

class Builder {
public:
  Builder(const std::set<const Node*>& inside, Value* accumulator, const std::optional<Shape>& over)
      : inside_(inside), accumulator_(accumulator), over_(over) {
    if (accumulator) out_.operands.push_back({accumulator, accumulator->type.shape()});
  }

  /// False when there are too many steps or operands.
  bool append(const Node& node) {
    text::ExprStep step = *decompose::stepOf(node);
    bool literal = false;
    for (size_t i = 0; i < node.operands().size(); ++i) {
      Value* operand = behindReshapes(node.operand(i));
      text::ExprArg arg;
      if (accumulator_ && operand == accumulator_) {
        arg.source = text::ExprArg::Source::acc;
      } else if (operand->producer && inside_.count(operand->producer)) {
        if (!stepIndex_.count(operand->producer) && !append(*operand->producer)) return false;
        arg.source = text::ExprArg::Source::step;
        arg.index = stepIndex_.at(operand->producer);
      } else if (const auto bits = literalBits(*operand);
                 bits && !literal && canBeLiteral(step.kind, i)) {
        literal = true; // a step holds one
        arg.source = text::ExprArg::Source::literal;
        arg.literal = text::elementText(operand->type.elem, *bits);
      } else if (const auto index = view(operand, node)) {
        arg.index = *index;
      } else {
        return false;
      }
      step.args.push_back(std::move(arg));
    }
    stepIndex_[&node] = static_cast<uint16_t>(out_.steps.size());
    out_.steps.push_back(std::move(step));
    return out_.steps.size() <= CDL_MAX_STEPS &&
           out_.operands.size() <= kMaxViews + (accumulator_ ? 1 : 0);
  }
  Expression take() { return std::move(out_); }

private:
  Value* behindReshapes(Value* value) const {
    while (value->producer && value->producer->kind == OpKind::Reshape &&
           inside_.count(value->producer))
      value = value->producer->operand(0);
    return value;
  }

  /// The index of an operand of `node`, which may be a new one.
  std::optional<uint16_t> view(Value* value, const Node& node) {
    std::optional<Shape> shape = value->type.shape();
    if (over_) shape = capabilities::shapeOver(*shape, node.result()->type.shape(), *over_);
    if (!shape) return std::nullopt;
    const Expression::Operand operand{value, std::move(*shape)};
    const auto known = std::ranges::find(out_.operands, operand);
    const auto index = static_cast<uint16_t>(known - out_.operands.begin());
    if (known == out_.operands.end()) out_.operands.push_back(operand);
    return index;
  }

  const std::set<const Node*>& inside_;
  Value* accumulator_;
  const std::optional<Shape> over_;
  std::map<const Node*, uint16_t> stepIndex_;
  Expression out_;
};

} // namespace

std::optional<Expression> expressionOf(const Node& root, const std::set<const Node*>& inside,
                                       Value* accumulator, const std::optional<Shape>& over) {
  Builder builder(inside, accumulator,
                  accumulator ? std::optional(accumulator->type.shape()) : over);
  if (!builder.append(root)) return std::nullopt;
  return builder.take();
}

} // namespace candela::lowering::fusion
