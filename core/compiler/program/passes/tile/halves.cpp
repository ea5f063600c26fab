#include "core/compiler/program/passes/tile/halves.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/compiler/program/passes/tile/device_costs.h"

namespace candela::program::passes::tile {

namespace {

/// Halving goes on while the plan takes at most so many times the cycles of the best one: the next
/// half may be faster.
constexpr double kSlower = 1.002;
constexpr double kHardlySlower = 1.01;
constexpr double kFarSlower = 1.1;

/// Where the array of the first plan computes for this share of its cycles, no plan is much faster.
constexpr double kBusy = 0.9;

bool takeQuarters(const Machine& machine, LocalMemory& memory, uint64_t quarters) {
  memory.capacityBytes = memory.capacityBytes * quarters / 4 / memory.alignment * memory.alignment;
  return checkMachine(machine).isOk();
}

/// A machine that has less of something, and whose plans run on the whole machine too.
struct Half {
  bool (*make)(Machine&);        ///< false where there is none
  int times = 64;                ///< how often it is taken of the one before, at most
  double slower = kHardlySlower; ///< where its plan is slower than that, no further half is tried
  bool isOfSmall = false;        ///< for small Programs alone
  bool isOfIdle = false;         ///< not where the array is busy
  bool hasSameCosts = false;     ///< what its tilings cost is what they cost on the whole machine
};
/// Halves of the bytes that the default space brings in a cycle (down to an eighth, since less
/// changes what is held and what moves), of the memory next to it, of that for sums, and of the
/// array. For small Programs also three quarters of the memory, half of it more again, and a
/// machine that stores last: what large ones store is a small part.
constexpr Half kHalves[] = {
    {.make = [](Machine& machine) { return (machine.costs.bytesPerCycle /= 2) > 0.25; },
     .times = 3,
     .slower = kFarSlower},
    {.make = [](Machine& machine) { return takeQuarters(machine, machine.memories[0], 2); },
     .hasSameCosts = true},
    {.make = [](Machine& machine) { return takeQuarters(machine, machine.memories[0], 3); },
     .isOfSmall = true},
    {.make = [](Machine& machine) { return takeQuarters(machine, machine.memories[0], 6); },
     .isOfSmall = true},
    {.make =
         [](Machine& machine) {
           LocalMemory& last = machine.memories.back();
           return last.sums && takeQuarters(machine, last, 2);
         },
     .times = 1,
     .hasSameCosts = true},
    {.make = [](Machine& machine) { return (machine.costs.rows /= 2) > 0; }, .isOfIdle = true},
    {.make = [](Machine& machine) { return (machine.costs.columns /= 2) > 0; }, .isOfIdle = true},
    {.make = [](Machine& machine) { return !std::exchange(machine.costs.storesLast, true); },
     .isOfSmall = true},
};
/// How many plans are made besides the first one, and how many instructions all of them have: plans
/// take time, and large Programs lose little by one choice.
constexpr size_t kMostPlans = 8, kMostPlansOfSmall = 128, kMostInstrs = 30'000, kSmall = 50,
                 kMostRounds = 6;

class Halving {
public:
  Halving(SharedPlan& best, const Program& whole, const Machine& machine, const PlanFor& planFor)
      : best_(best), whole_(whole), machine_(machine), planFor_(planFor), bestOf_(machine) {}

  void run() {
    if (!machine_.costs.device) return;
    std::unique_ptr<Machine>& known = machine_.costs.device->bestOf(whole_);
    if (known) return again(*known);
    const std::optional<double> cycles = priceOf(*best_);
    if (!cycles || *cycles <= 0) return;
    least_ = *cycles;
    firstCost_ = best_->cost;
    hasSeveral_ = best_->computing > kFarSlower * least_;
    isBusy_ = best_->computing >= kBusy * least_ && !hasSeveral_;
    work_ = best_->program.instrs.size();
    const bool isSmall = whole_.instrs.size() <= kSmall;
    plans_ = isSmall ? kMostPlansOfSmall : kMostPlans;
    if (isSmall)
      descend();
    else
      tryEachHalf(machine_, false);
    if (!isSmall && !isBusy_) tryPacked(bestOf_);
    known = std::make_unique<Machine>(bestOf_);
    known->costs.device = nullptr;
  }

private:
  /// A search that goes on from the best machine whose halves were not tried yet: the way to the
  /// best one often leads over one that is not the best by itself.
  void descend() {
    tryPacked(machine_);
    tried_.push_back({machine_, least_});
    for (size_t round = 0; round < kMostRounds; ++round) {
      const auto next = std::ranges::min_element(tried_, {}, &Tried::cycles);
      if (next == tried_.end() || next->cycles > kFarSlower * least_) return;
      const Tried from = *next;
      // Equal cycles are of equal plans.
      std::erase_if(tried_, [&](const Tried& each) { return each.cycles == from.cycles; });
      expanded_.insert(from.cycles);
      tryEachHalf(from.machine, true);
    }
  }

  /// Halves of one machine: of large Programs all are of the whole one, since one half says nothing
  /// of another.
  void tryEachHalf(const Machine& from, bool isSmall) {
    for (const Half& each : kHalves) {
      if (!isSmall && (each.isOfSmall || (each.isOfIdle && isBusy_))) continue;
      Machine half = from;
      const double slower = !isSmall && isBusy_ ? kSlower : each.slower;
      // A large Program takes long to plan: no plan that costs more by declared costs is made.
      // Of several arrays, which declared costs do not know, it may be faster all the same.
      const bool isBound = !isSmall && each.hasSameCosts && !hasSeveral_;
      const double mostCost = isBound ? kHardlySlower * firstCost_ : INFINITY;
      for (int turn = 0; turn < each.times && each.make(half) && isWithin(half); ++turn) {
        double ratio = tryOn(half, mostCost);
        if (isSmall) ratio = std::min(ratio, tryPacked(half));
        if (ratio > slower) break;
      }
    }
  }

  bool isWithin(const Machine& half) const {
    return half.memories[0].capacityBytes <= machine_.memories[0].capacityBytes;
  }

  /// Tries the same tiles in a memory that is packed as tightly as may be.
  double tryPacked(Machine machine) {
    machine.costs.packs = !machine.costs.packs;
    return tryOn(machine, INFINITY);
  }

  /// Takes the machine that was the best for a Program like this one: the layers of a network are
  /// often the same.
  void again(const Machine& known) {
    bestOf_ = known;
    bestOf_.costs.device = machine_.costs.device;
    const auto hasSameRoom = [](const LocalMemory& a, const LocalMemory& b) {
      return a.capacityBytes == b.capacityBytes;
    };
    if (std::ranges::equal(bestOf_.memories, machine_.memories, hasSameRoom) &&
        bestOf_.costs.rows == machine_.costs.rows &&
        bestOf_.costs.columns == machine_.costs.columns &&
        bestOf_.costs.storesLast == machine_.costs.storesLast &&
        bestOf_.costs.packs == machine_.costs.packs &&
        bestOf_.costs.bytesPerCycle == machine_.costs.bytesPerCycle)
      return;
    if (auto plan = planFor_(bestOf_, {})) best_ = *std::move(plan);
  }

  /// The cycles of a plan, and of the time of its copies a little more: of two that are as fast the
  /// one that copies less is taken, since memory is shared and costs energy.
  std::optional<double> priceOf(const Plan& plan) const {
    constexpr double kOfCopies = 1.0 / 256;
    const std::optional<double> cycles = machine_.costs.device->cyclesOf(plan.program);
    if (!cycles) return std::nullopt;
    return *cycles + kOfCopies * plan.bytes / machine_.costs.bytesPerCycle;
  }

  /// Plans for a half. Returns how many times the cycles of the best plan it takes, and makes it
  /// the best one where it is faster.
  double tryOn(const Machine& half, double mostCost) {
    if (plans_ == 0 || work_ >= kMostInstrs) return INFINITY;
    --plans_;
    // more take longer by themselves
    const double mostBytes = kHardlySlower * least_ * machine_.costs.bytesPerCycle;
    const Result<SharedPlan> made = planFor_(half, {mostBytes, mostCost});
    if (!made) return INFINITY;
    const SharedPlan& plan = made.value();
    work_ += plan->program.instrs.size();
    const double cycles = priceOf(*plan).value_or(INFINITY);
    const double ratio = cycles / least_;
    if (!expanded_.contains(cycles)) tried_.push_back({half, cycles});
    if (ratio < 1) {
      least_ = cycles;
      bestOf_ = half;
      best_ = plan;
    }
    return ratio;
  }

  /// A machine, and what its plan takes.
  struct Tried {
    Machine machine;
    double cycles;
  };

  SharedPlan& best_;
  const Program& whole_;
  const Machine& machine_;
  const PlanFor& planFor_;
  Machine bestOf_;            ///< what the best plan is for
  double firstCost_ = 0;      ///< Plan::cost for the machine itself
  bool hasSeveral_ = false;   ///< arrays: they compute for longer than the program takes
  bool isBusy_ = false;       ///< the array of the plan for the machine itself
  double least_ = 0;          ///< cycles of the best plan
  std::vector<Tried> tried_;  ///< whose halves were not tried
  std::set<double> expanded_; ///< cycles of those whose halves were
  size_t plans_ = 0;          ///< that may still be made
  size_t work_ = 0;           ///< instructions of all plans so far
};

} // namespace

void takeFastest(SharedPlan& best, const Program& whole, const Machine& machine,
                 const PlanFor& planFor) {
  Halving(best, whole, machine, planFor).run();
}

} // namespace candela::program::passes::tile
