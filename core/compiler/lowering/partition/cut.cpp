#include "core/compiler/lowering/partition/cut.h"

#include <limits>
#include <utility>

#include "core/compiler/lowering/partition/costs.h"

namespace candela::lowering::partition {

using graph::Graph, graph::Node, graph::OpKind, graph::Value;

namespace {

/// What one more part is worth in bytes: it is a submission and a wait.
constexpr uint64_t kPartBytes = 4096;

} // namespace

/// Consecutive steps that grow by one at a time, and what they take.
class Cutter::Stretch {
public:
  Stretch(const Cutter& cutter, size_t begin)
      : cutter_(cutter), begin_(begin), isHeld_(cutter.constants_.size(), false),
        isRead_(cutter.storages_.size(), false) {}

  void add(size_t index) {
    const Step& step = cutter_.steps_[index];
    for (const size_t c : step.constants)
      if (!std::exchange(isHeld_[c], char(true))) constants_ += cutter_.constants_[c].bytes;
    for (const size_t s : step.reads)
      if (comesFromOutside(s) && !std::exchange(isRead_[s], char(true)))
        inputs_ += cutter_.storages_[s].bytes;
    if (step.worksInPlace) end(step.reads, index);
    for (const size_t s : step.writes) live_ += cutter_.storages_[s].bytes;
    most_ = std::max(most_, live_);
    if (!step.worksInPlace) end(step.reads, index);
    end(step.writes, index);
  }

  /// At the same time, at most.
  uint64_t bytes() const { return constants_ + inputs_ + most_; }
  /// Loaded and stored by each run.
  uint64_t moved() const { return constants_ + values(); }
  uint64_t constants() const { return constants_; }
  uint64_t values() const { return inputs_ + live_; }

private:
  bool comesFromOutside(size_t storage) const {
    const size_t first = cutter_.storages_[storage].first;
    return first == kNever || first < begin_;
  }
  void end(const std::vector<size_t>& storages, size_t index) {
    for (const size_t s : storages)
      if (!comesFromOutside(s) && cutter_.storages_[s].last == index)
        live_ -= cutter_.storages_[s].bytes;
  }

  const Cutter& cutter_;
  const size_t begin_;
  std::vector<char> isHeld_, isRead_; ///< by constant, by storage
  uint64_t constants_ = 0, inputs_ = 0;
  uint64_t live_ = 0, most_ = 0; ///< of what the steps write: now, and at most
};

Cutter::Cutter(const Graph& graph, const Part& part, const capabilities::Target& target)
    : part_(part) {
  for (Node* node : part.nodes)
    if (node->kind != OpKind::Constant) addStep(graph, *node);
  for (Node* node : part.nodes) // which nothing here reads
    if (node->kind == OpKind::Constant && constantOf_.emplace(node, constants_.size()).second)
      constants_.push_back({node, bytesOf(*node->result()), 0});
  setLastReaders(graph);
  glueProducts(target);
}

void Cutter::addStep(const Graph&, Node& node) {
  stepOf_[&node] = steps_.size();
  Step step;
  step.node = &node;
  step.worksInPlace = node.info().has(graph::kTraitElementwise);
  for (const Value* operand : node.operands())
    if (operand) addOperand(step, *operand);
  for (const Value* result : node.results()) {
    if (decompose::isAlias(node) && !step.reads.empty()) {
      storageOf_[result] = step.reads[0];
      continue;
    }
    storageOf_[result] = storages_.size();
    step.writes.push_back(storages_.size());
    storages_.push_back({bytesOf(*result), steps_.size(), steps_.size()});
  }
  steps_.push_back(std::move(step));
}

void Cutter::addOperand(Step& step, const Value& operand) {
  if (operand.isConstant()) {
    const auto [at, isNew] = constantOf_.emplace(operand.producer, constants_.size());
    if (isNew) constants_.push_back({operand.producer, bytesOf(operand), steps_.size()});
    if (std::ranges::find(step.constants, at->second) == step.constants.end())
      step.constants.push_back(at->second);
    return;
  }
  const auto [at, isNew] = storageOf_.emplace(&operand, storages_.size());
  if (isNew) storages_.push_back({bytesOf(operand), kNever, 0});
  if (std::ranges::find(step.reads, at->second) == step.reads.end())
    step.reads.push_back(at->second);
}

void Cutter::setLastReaders(const Graph& graph) {
  for (size_t i = 0; i < steps_.size(); ++i)
    for (const size_t s : steps_[i].reads)
      if (storages_[s].last != kNever) storages_[s].last = std::max(storages_[s].last, i);
  for (const auto& [value, storage] : storageOf_) {
    const bool leaves =
        graph.isOutput(value) || std::ranges::any_of(value->users(), [&](const Node* user) {
          return !stepOf_.contains(user);
        });
    if (leaves) storages_[storage].last = kNever;
  }
}

/// No cut between a product and what the target does in its instruction alone.
void Cutter::glueProducts(const capabilities::Target& target) {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Node& node = *steps_[i].node;
    if (node.operands().empty() || !node.operand(0) || !decompose::endsInProduct(node, target))
      continue;
    const auto at = storageOf_.find(node.operand(0));
    if (at == storageOf_.end() || storages_[at->second].first == kNever) continue;
    for (size_t between = storages_[at->second].first + 1; between <= i; ++between)
      steps_[between].mayFollowCut = false;
  }
}

bool Cutter::isWhole() const {
  return std::ranges::none_of(steps_.begin() + std::min<size_t>(1, steps_.size()), steps_.end(),
                              &Step::mayFollowCut);
}

Cut Cutter::cut(uint64_t mostBytes) const {
  constexpr uint64_t kUnreached = std::numeric_limits<uint64_t>::max();
  const size_t count = steps_.size();
  // By step that begins a part, and behind the last one: the bytes that all before it move, and
  // where the part before it begins.
  std::vector<uint64_t> cost(count + 1, kUnreached);
  std::vector<size_t> from(count + 1, 0);
  cost[0] = 0;
  for (size_t begin = 0; begin < count; ++begin) {
    if (cost[begin] == kUnreached) continue;
    Stretch stretch(*this, begin);
    bool reaches = false; // a part that begins here is there, however large
    for (size_t end = begin + 1; end <= count; ++end) {
      stretch.add(end - 1);
      if (stretch.bytes() > mostBytes && reaches) break;
      if (end < count && !steps_[end].mayFollowCut) continue;
      reaches = true;
      const uint64_t sum = cost[begin] + stretch.moved() + kPartBytes;
      if (sum >= cost[end]) continue;
      cost[end] = sum;
      from[end] = begin;
    }
  }
  Cut cut;
  for (size_t end = count; end > 0; end = from[end]) {
    Stretch stretch(*this, from[end]);
    for (size_t i = from[end]; i < end; ++i) stretch.add(i);
    cut.parts.push_back(partOf(from[end], end));
    cut.mostBytes = std::max(cut.mostBytes, stretch.bytes());
    cut.valueBytes += stretch.values();
    cut.constantBytes += stretch.constants();
  }
  std::ranges::reverse(cut.parts);
  return cut;
}

/// A constant stands in the part of its first reader and is copied to the others.
Part Cutter::partOf(size_t begin, size_t end) const {
  Part part{part_.target, {}};
  for (Node* node : part_.nodes) {
    const bool isConstant = node->kind == OpKind::Constant;
    const size_t at = isConstant ? constants_[constantOf_.at(node)].firstReader : stepOf_.at(node);
    if (at >= begin && at < end) part.nodes.push_back(node);
  }
  return part;
}

} // namespace candela::lowering::partition
