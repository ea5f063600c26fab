#pragma once

#include <list>
#include <map>
#include <tuple>

#include "core/compiler/program/passes/tile/cuts.h"
#include "core/compiler/program/passes/tile/halves.h"

/// Plans of Programs that are tiled again for machines that differ in little.
namespace candela::program::passes::tile {

/// The numbers of a machine that a plan follows from, beside what makes a family: those of the
/// machine that it is for, and how large the spaces of the device are. Equal for machines whose
/// plans of one Program are the same.
using PlanKey =
    std::tuple<std::vector<uint64_t>, double, uint32_t, uint32_t, uint32_t, bool, bool, bool>;
/// `brief`: how long offsets are searched.
PlanKey planKeyOf(const Machine& machine, const Machine& device, bool brief);

/// The largest values of a plan on the way to it: it exists within bounds that hold these.
struct PlanDemand {
  double bytes = 0; ///< PlanBounds::bytes
  double cost = 0;  ///< PlanBounds::cost
};
/// A plan that was made, or what is known of one that was too dear.
struct KeptPlan {
  SharedPlan plan;   ///< null: not made to the end
  PlanDemand demand; ///< of the plan; without one, at least this
};

/// What is known of one Program, for one target and options.
struct PlanFamily {
  KnownChains known;
  std::map<PlanKey, KeptPlan> plans;
  size_t instrs = 0; ///< of all plans
};

/// While one lives, tile() on this thread takes chains, their tiles and whole plans from earlier
/// calls. What it takes is equal to what it would make: a family is found by all of a Program
/// (image.h, and payloads byte by byte), of the target's rows, layouts and spaces, and of the
/// options, a plan in it by the key above. Holds a few families of some hundred thousand
/// instructions.
class KeptPlans {
public:
  KeptPlans();
  ~KeptPlans();
  KeptPlans(const KeptPlans&) = delete;
  KeptPlans& operator=(const KeptPlans&) = delete;

  /// The innermost one of this thread; null where there is none.
  static KeptPlans* innermost();

  /// Of Programs equal to `whole`. The family stays for as long as no other one is asked for.
  PlanFamily& familyOf(const Program& whole, const Machine& machine, const TileOptions& options);
  /// Keeps a plan; those of the family that are too many go.
  static void keep(PlanFamily& family, KeptPlan& into, const SharedPlan& plan);

private:
  struct Member;
  KeptPlans* const outer_;
  std::list<Member> members_; ///< the one that was asked for last first
};

} // namespace candela::program::passes::tile
