#include "core/compiler/lowering/partition/capacity.h"

#include "core/compiler/capabilities/refusal.h"
#include "core/compiler/lowering/partition/cut.h"

namespace candela::lowering::partition {

std::string Demand::text() const {
  return fmt::format("{} bytes (constants {}, values {}, arena {})", total(), constants, values,
                     arena);
}

double Capacity::load(const Demand& demand) const {
  const auto share = [](uint64_t taken, uint64_t there) {
    return there ? static_cast<double>(taken) / static_cast<double>(there) : 0.0;
  };
  if (!constants) return share(demand.total(), bytes);
  return std::max(share(demand.working(), bytes), share(demand.constants, *constants));
}

std::string Capacity::text() const {
  const std::string most = bytes ? std::to_string(bytes) : "no limit";
  if (constants.value_or(0) == 0) return most;
  return fmt::format("{} and {} for constants", most, *constants);
}

namespace {

class Fitter {
public:
  Fitter(const graph::Graph& graph, std::span<const capabilities::Target* const> targets,
         std::span<const Capacity> capacities, const Measure& measure)
      : graph_(graph), targets_(targets), capacities_(capacities), measure_(measure) {}

  Status add(const Part& part) {
    if (part.target >= capacities_.size() || !capacities_[part.target].isLimited()) {
      take(part, {});
      return Status::ok();
    }
    return addWithin(part, Estimate{capacities_[part.target].total(), false});
  }

  Fitting result;

private:
  /// By which the part at hand was cut out of a larger one.
  struct Estimate {
    uint64_t mostBytes = 0;
    bool wasCut = false;

    /// For the next cuts, of a part that was said to be small enough and is not.
    uint64_t corrected(double load) const {
      return static_cast<uint64_t>(static_cast<double>(mostBytes) * std::min(0.9, 1 / load));
    }
  };

  void take(const Part& part, const Demand& demand) {
    result.parts.push_back(part);
    result.demands.push_back(demand);
  }

  Status addWithin(const Part& part, const Estimate& estimate) {
    const Capacity& capacity = capacities_[part.target];
    const Result<Demand> demand = measure_(part);
    if (!demand && demand.status().code() != Code::out_of_memory) return demand.status();
    if (demand && capacity.holds(*demand)) {
      take(part, *demand);
      return Status::ok();
    }
    const Cutter cutter(graph_, part, *targets_[part.target]);
    if (cutter.isWhole()) {
      bar(part, demand ? "needs " + demand->text() : demand.status().message());
      return Status::ok();
    }
    const double load = demand ? capacity.load(*demand) : 2;
    uint64_t most =
        estimate.wasCut ? estimate.corrected(load) : cheapestSize(cutter, capacity.total());
    Cut cut = cutter.cut(most);
    while (cut.parts.size() == 1) { // the estimate is too low
      most = most / 4 * 3;
      cut = cutter.cut(most);
    }
    for (const Part& piece : cut.parts) CDL_TRY(addWithin(piece, {most, true}));
    return Status::ok();
  }

  /// How large parts are to be at most: small ones leave room for constants that stay, and load and
  /// store more values.
  static uint64_t cheapestSize(const Cutter& cutter, uint64_t capacity) {
    uint64_t best = capacity, least = UINT64_MAX;
    for (const uint64_t eighths : {8, 7, 6, 5, 4, 3, 2, 1}) {
      const uint64_t size = capacity / 8 * eighths;
      const uint64_t moved = cutter.cut(size).movedBytes(capacity);
      if (moved >= least) continue;
      least = moved;
      best = size;
    }
    return best;
  }

  void bar(const Part& part, const std::string& what) {
    const capabilities::Target& target = *targets_[part.target];
    const std::string memory = target.spaces().empty() ? "memory" : target.spaces()[0].name;
    const std::string why =
        fmt::format("alone it {}, '{}' holds {}", what, memory, capacities_[part.target].text());
    for (const graph::Node* node : part.nodes)
      if (node->kind != graph::OpKind::Constant)
        result.tooLarge.insert({{part.target, node->result()->name}, {why, CDL_REASON_MEMORY}});
  }

  const graph::Graph& graph_;
  const std::span<const capabilities::Target* const> targets_;
  const std::span<const Capacity> capacities_;
  const Measure& measure_;
};

} // namespace

Result<Fitting> fitParts(const graph::Graph& graph, const Partitioning& partitioning,
                         std::span<const capabilities::Target* const> targets,
                         std::span<const Capacity> capacities, const Measure& measure) {
  Fitter fitter(graph, targets, capacities, measure);
  for (const Part& part : partitioning.parts) CDL_TRY(fitter.add(part));
  return std::move(fitter.result);
}

} // namespace candela::lowering::partition
