#pragma once

#include <cmath>
#include <functional>
#include <memory>

#include "core/compiler/program/passes/tile/tile.h"

/// Plans that compete: for smaller devices, and with stores behind loads.
namespace candela::program::passes::tile {

struct Plan {
  Program program;
  TileReport report;
  /// Of its tilings, by what the machine that it is for declares (Tiling::cost and ::computing).
  double cost = 0;
  double computing = 0;
  double bytes = 0; ///< copied from and to the default space
};
/// What a plan may take at most.
struct PlanBounds {
  double bytes = INFINITY; ///< copied from and to the default space
  double cost = INFINITY;  ///< Plan::cost
};
/// Plans may be others' too: they are read alone.
using SharedPlan = std::shared_ptr<const Plan>;
/// A plan for that machine, whose local spaces are as large as the device's; a failure where it
/// takes more than that.
using PlanFor = std::function<Result<SharedPlan>(const Machine& machine, const PlanBounds& bounds)>;

/// A plan for a smaller device runs on this one too, and so does one that stores last. Where the
/// device prices whole Programs, the fastest of these plans is taken: declared costs choose well
/// step by step, not always for the whole, and a larger device would lose by choosing more freely.
/// It is a local search whose moves halve one number of the machine. `best` is the plan for the
/// machine itself, `whole` the Program that it is of.
void takeFastest(SharedPlan& best, const Program& whole, const Machine& machine,
                 const PlanFor& planFor);

} // namespace candela::program::passes::tile
