#pragma once

#include <algorithm>

#include "core/compiler/lowering/partition/partition.h"

namespace candela::lowering::partition {

/// Consecutive parts, and estimates of what they take.
struct Cut {
  std::vector<Part> parts;
  uint64_t mostBytes = 0;     ///< of the largest one
  uint64_t valueBytes = 0;    ///< that all of them load and store
  uint64_t constantBytes = 0; ///< that all of them read

  /// What each run moves on a device with so many bytes, which holds constants beside the largest
  /// part and streams the others.
  uint64_t movedBytes(uint64_t capacity) const {
    const uint64_t held = capacity - std::min(mostBytes, capacity);
    return valueBytes + constantBytes - std::min(held, constantBytes);
  }
};

/// Where a part can be cut into consecutive ones, by what its graph says of bytes. It knows neither
/// layouts nor plans: the estimates are for the choice of cuts alone.
class Cutter {
public:
  Cutter(const graph::Graph& graph, const Part& part, const capabilities::Target& target);

  /// Parts that take at most so many bytes each, or cannot be cut further. The sum of the bytes
  /// that they load and store is the least of all such cuts.
  Cut cut(uint64_t mostBytes) const;
  /// Nothing of it can be apart.
  bool isWhole() const;

private:
  static constexpr size_t kNever = SIZE_MAX;

  /// A value with what are only views of it. Indices are those of steps.
  struct Storage {
    uint64_t bytes = 0;
    size_t first = kNever; ///< who writes it; kNever: it comes from outside
    size_t last = 0;       ///< who reads it last; kNever: it leaves the part
  };
  /// A node that is no constant.
  struct Step {
    graph::Node* node = nullptr;
    std::vector<size_t> reads, writes, constants;
    bool worksInPlace = false; ///< the result may lie where an operand lay
    bool mayFollowCut = true;
  };
  struct Constant {
    graph::Node* node = nullptr;
    uint64_t bytes = 0;
    size_t firstReader = 0;
  };
  class Stretch;

  void addStep(const graph::Graph& graph, graph::Node& node);
  void addOperand(Step& step, const graph::Value& operand);
  void setLastReaders(const graph::Graph& graph);
  void glueProducts(const capabilities::Target& target);
  Part partOf(size_t begin, size_t end) const;

  const Part& part_;
  std::vector<Step> steps_;
  std::vector<Storage> storages_;
  std::vector<Constant> constants_; ///< of the part, and those of others that it reads
  std::map<const graph::Value*, size_t> storageOf_;
  std::map<const graph::Node*, size_t> constantOf_, stepOf_;
};

} // namespace candela::lowering::partition
