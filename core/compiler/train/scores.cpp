#include <limits>

#include "core/compiler/train/losses.h"

namespace candela::train {
namespace {

using differentiate::Failure, differentiate::Node, differentiate::OpKind, differentiate::Value;

constexpr int64_t kClasses = 1; ///< the axis that cross entropy has them on

bool onlyMoves(OpKind kind) {
  return kind == OpKind::Reshape || kind == OpKind::Transpose || kind == OpKind::Cast;
}

/// Probabilities behind it are probabilities still, though others.
bool keepsProbabilities(OpKind kind) {
  return onlyMoves(kind) || kind == OpKind::Clip || kind == OpKind::Slice ||
         kind == OpKind::ReduceMean || kind == OpKind::Max || kind == OpKind::Min;
}

int64_t sizeBefore(const Shape& dims, size_t axis) {
  int64_t size = 1;
  for (size_t d = 0; d < axis; ++d) size *= dims[d];
  return size;
}

/// The axis of a moving node's operand whose elements are those of `axis` of its result; nullopt
/// where a reshape splits or joins it.
std::optional<int64_t> axisBefore(const Node& node, int64_t axis) {
  if (node.kind == OpKind::Cast) return axis;
  if (node.kind == OpKind::Transpose) return node.intsAttr("perm").at(static_cast<size_t>(axis));
  const Shape to = node.result()->type.shape();
  const Shape from = node.operand(0)->type.shape();
  const auto wanted = static_cast<size_t>(axis);
  for (size_t d = 0; d < from.size(); ++d)
    if (from[d] == to[wanted] && sizeBefore(from, d) == sizeBefore(to, wanted))
      return static_cast<int64_t>(d);
  return std::nullopt;
}

/// The softmax that an output's values come from, if there is one: what lies between, from the
/// output on, and the axis of the softmax that the classes are on.
struct Ending {
  const Node* softmax = nullptr;
  std::vector<const Node*> behind;
  bool onlyMoves = true;
  std::optional<int64_t> classes = kClasses;
};

Ending endingOf(const Value* output) {
  Ending ending;
  const Node* node = output->producer;
  for (; node && keepsProbabilities(node->kind); node = node->operand(0)->producer) {
    ending.onlyMoves = ending.onlyMoves && onlyMoves(node->kind);
    if (ending.onlyMoves && ending.classes) ending.classes = axisBefore(*node, *ending.classes);
    ending.behind.push_back(node);
  }
  if (node && node->kind == OpKind::Softmax) ending.softmax = node;
  return ending;
}

/// Zero becomes the smallest normal number, whose logarithm is finite.
Term logOf(const Term& probabilities) {
  return log(maximum(probabilities, double{std::numeric_limits<float>::min()}));
}

} // namespace

Term scoresOf(const Term& output) {
  const Ending ending = endingOf(output.value());
  if (!ending.softmax || output.rank() < 2) return output;
  if (!ending.onlyMoves || !ending.classes) return logOf(output);
  const Node& softmax = *ending.softmax;
  const int64_t axis =
      graph::wrapAxis(softmax.intAttr("axis"), static_cast<int>(softmax.result()->type.rank()));
  if (axis != *ending.classes)
    throw Failure{badArgument("the output ends in softmax '{}' over axis {}, which is not where "
                              "cross_entropy has the classes: axis 1 of {}",
                              softmax.result()->name, axis, output.value()->type.text())};
  Term scores(output.writer(), softmax.operand(0));
  for (auto node = ending.behind.rbegin(); node != ending.behind.rend(); ++node)
    scores = differentiate::make((*node)->kind, {scores}, (*node)->attrs);
  return scores;
}

} // namespace candela::train
