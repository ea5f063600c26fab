#include "core/compiler/program/passes/tile/kept_plans.h"

#include <algorithm>
#include <cstring>

#include "core/compiler/program/image.h"

namespace candela::program::passes::tile {

namespace {

constexpr size_t kMostFamilies = 2;
constexpr size_t kMostInstrsOfPlans = 400'000; ///< of one family: half a gigabyte

thread_local KeptPlans* innermostKept = nullptr;

template <typename T> bool hasSameBytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Whether two targets take the same instructions. Padding that differs makes them two.
bool isSameTarget(const capabilities::Target* a, const capabilities::Target* b) {
  if (!a || !b || a == b) return a == b;
  const auto isSameRow = [](const auto& one, const auto& other) {
    return std::memcmp(&one.row, &other.row, sizeof one.row) == 0 &&
           hasSameBytes(one.atoms, other.atoms);
  };
  if (a->layouts().size() != b->layouts().size()) return false;
  for (uint32_t l = 0; l < a->layouts().size(); ++l)
    if (a->layoutName(l) != b->layoutName(l)) return false;
  return a->isHost() == b->isHost() && a->alignment() == b->alignment() &&
         a->engines() == b->engines() && hasSameBytes(a->layouts(), b->layouts()) &&
         std::ranges::equal(a->rows(), b->rows(), isSameRow);
}

/// What does not differ from machine to machine of a family: all but the key of a plan.
std::string familyTextOf(const Machine& machine, const TileOptions& options) {
  std::string text = fmt::format(
      "{} {} {} {} {} {} | {} {} {} | {} {}", options.fuse, options.keep, options.prefetch,
      options.splitSums, options.buffers, options.instrs, machine.loadEngine, machine.storeEngine,
      machine.computeEngine, machine.costs.instrCycles, machine.costs.lanes);
  for (const LocalMemory& memory : machine.memories)
    text += fmt::format(" | {} {} {}", memory.name, memory.alignment, memory.sums);
  return text;
}

bool hasSamePayloads(const Program& a, const Program& b) {
  const auto isSame = [](const Constant& one, const Constant& other) {
    return one.payload == other.payload;
  };
  return std::ranges::equal(a.constants, b.constants, isSame);
}

} // namespace

PlanKey planKeyOf(const Machine& machine, const Machine& device, bool brief) {
  std::vector<uint64_t> capacities;
  for (const Machine* each : {&machine, &device})
    for (const LocalMemory& memory : each->memories) capacities.push_back(memory.capacityBytes);
  const TileCosts& costs = machine.costs;
  return {std::move(capacities), costs.bytesPerCycle, costs.copyCycles, costs.rows,
          costs.columns,         costs.storesLast,    costs.packs,      brief};
}

struct KeptPlans::Member {
  Bytes image; ///< of the Program, without hashes of payloads
  Program whole;
  std::shared_ptr<const capabilities::Target> target;
  std::string text;
  PlanFamily family;
};

KeptPlans::KeptPlans() : outer_(innermostKept) { innermostKept = this; }
KeptPlans::~KeptPlans() { innermostKept = outer_; }
KeptPlans* KeptPlans::innermost() { return innermostKept; }

PlanFamily& KeptPlans::familyOf(const Program& whole, const Machine& machine,
                                const TileOptions& options) {
  const Bytes image = toImage(whole, false);
  const std::string text = familyTextOf(machine, options);
  const auto isOf = [&](const Member& member) {
    return member.text == text && member.image.size() == image.size() &&
           std::memcmp(member.image.data(), image.data(), image.size()) == 0 &&
           isSameTarget(member.target.get(), machine.target.get()) &&
           hasSamePayloads(member.whole, whole);
  };
  const auto found = std::ranges::find_if(members_, isOf);
  if (found != members_.end()) {
    members_.splice(members_.begin(), members_, found);
    return members_.front().family;
  }
  members_.emplace_front(image, whole, machine.target, text, PlanFamily{});
  if (members_.size() > kMostFamilies) members_.pop_back();
  return members_.front().family;
}

void KeptPlans::keep(PlanFamily& family, KeptPlan& into, const SharedPlan& plan) {
  const size_t instrs = plan->program.instrs.size();
  if (family.instrs + instrs > kMostInstrsOfPlans) {
    for (auto& [key, kept] : family.plans) kept.plan = nullptr;
    family.instrs = 0;
  }
  if (instrs > kMostInstrsOfPlans) return;
  into.plan = plan;
  family.instrs += instrs;
}

} // namespace candela::program::passes::tile
