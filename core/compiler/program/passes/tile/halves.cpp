#include "core/compiler/program/passes/tile/halves.h"

#include <cmath>
#include <utility>

#include "core/compiler/program/passes/tile/device_costs.h"

namespace candela::program::passes::tile {

namespace {

/// Halving goes on while the plan takes at most so many times the cycles of the best one: the next
/// half may be faster.
constexpr double kHardlySlower = 1.01, kFarSlower = 1.1;

/// A machine that has less of something, and whose plans run on the whole machine too.
struct Half {
  bool (*make)(Machine&);        ///< false where there is none
  int times = 64;                ///< how often it is taken of the one before, at most
  double slower = kHardlySlower; ///< where its plan is slower than that, no further half is tried
  bool isOfSmall = false;        ///< for small Programs alone
};
/// Halves of the bytes that the default space brings in a cycle (down to an eighth, since less
/// changes what is held and what moves), of the memory next to it, and of the array. For small
/// Programs also a machine that stores last: what large ones store is a small part.
constexpr Half kHalves[] = {
    {[](Machine& machine) { return (machine.costs.bytesPerCycle /= 2) > 0.25; }, 3, kFarSlower},
    {[](Machine& machine) {
      LocalMemory& memory = machine.memories[0];
      memory.capacityBytes = memory.capacityBytes / 2 / memory.alignment * memory.alignment;
      return checkMachine(machine).isOk();
    }},
    {[](Machine& machine) { return (machine.costs.rows /= 2) > 0; }},
    {[](Machine& machine) { return (machine.costs.columns /= 2) > 0; }},
    {.make = [](Machine& machine) { return !std::exchange(machine.costs.storesLast, true); },
     .isOfSmall = true},
};
/// How many plans are made besides the first one, and how many instructions all of them have: plans
/// take time, and large Programs lose little by one choice.
constexpr size_t kMostPlans = 5, kMostPlansOfSmall = 64, kMostInstrs = 30'000, kSmall = 50;

class Halving {
public:
  Halving(Plan& best, const Program& whole, const Machine& machine, const PlanFor& planFor)
      : best_(best), whole_(whole), machine_(machine), planFor_(planFor), bestOf_(machine) {}

  void run() {
    if (!machine_.costs.device) return;
    std::unique_ptr<Machine>& known = machine_.costs.device->bestOf(whole_);
    if (known) return again(*known);
    const auto cycles = machine_.costs.device->cyclesOf(best_.program);
    if (!cycles || *cycles <= 0) return;
    least_ = *cycles;
    work_ = best_.program.instrs.size();
    const bool isSmall = whole_.instrs.size() <= kSmall;
    plans_ = isSmall ? kMostPlansOfSmall : kMostPlans;
    // For small Programs each round tries all halves of the machine that it began with, and the
    // next round begins with the best one.
    for (bool isBetter = true; isBetter;) {
      const Machine from = bestOf_;
      const double before = least_;
      for (const Half& each : kHalves) {
        if (each.isOfSmall && !isSmall) continue;
        // Large ones try halves of the whole machine alone: one half says nothing of another.
        Machine half = isSmall ? from : machine_;
        for (int turn = 0; turn < each.times && each.make(half); ++turn)
          if (tryOn(half) > each.slower) break;
      }
      isBetter = isSmall && least_ < before;
    }
    known = std::make_unique<Machine>(bestOf_);
    known->costs.device = nullptr;
  }

private:
  /// Takes the machine that was the best for a Program like this one: the layers of a network are
  /// often the same.
  void again(const Machine& known) {
    bestOf_ = known;
    bestOf_.costs.device = machine_.costs.device;
    if (bestOf_.memories[0].capacityBytes == machine_.memories[0].capacityBytes &&
        bestOf_.costs.rows == machine_.costs.rows &&
        bestOf_.costs.columns == machine_.costs.columns &&
        bestOf_.costs.storesLast == machine_.costs.storesLast &&
        bestOf_.costs.bytesPerCycle == machine_.costs.bytesPerCycle)
      return;
    if (auto plan = planOf(bestOf_, INFINITY)) best_ = std::move(*plan);
  }

  Result<Plan> planOf(const Machine& half, double mostBytes) const {
    CDL_ASSIGN(Plan plan, planFor_(half, mostBytes));
    for (Space& space : plan.program.spaces)
      if (space.name == half.memories[0].name)
        space.capacityBytes = machine_.memories[0].capacityBytes;
    return plan;
  }

  /// Plans for a half. Returns how many times the cycles of the best plan it takes, and makes it
  /// the best one where it is faster.
  double tryOn(const Machine& half) {
    if (plans_ == 0 || work_ >= kMostInstrs) return INFINITY;
    --plans_;
    // more take longer by themselves
    const double mostBytes = kHardlySlower * least_ * machine_.costs.bytesPerCycle;
    auto plan = planOf(half, mostBytes);
    if (!plan) return INFINITY;
    work_ += plan->program.instrs.size();
    const double cycles = machine_.costs.device->cyclesOf(plan->program).value_or(INFINITY);
    const double ratio = cycles / least_;
    if (ratio < 1) {
      least_ = cycles;
      bestOf_ = half;
      best_ = std::move(*plan);
    }
    return ratio;
  }

  Plan& best_;
  const Program& whole_;
  const Machine& machine_;
  const PlanFor& planFor_;
  Machine bestOf_; ///< what the best plan is for
  double least_ = 0;
  size_t plans_ = 0; ///< that may still be made
  size_t work_ = 0;  ///< instructions of all plans so far
};

} // namespace

void takeFastest(Plan& best, const Program& whole, const Machine& machine, const PlanFor& planFor) {
  Halving(best, whole, machine, planFor).run();
}

} // namespace candela::program::passes::tile
