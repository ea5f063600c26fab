#include "core/compiler/program/passes/passes.h"

#include <algorithm>
#include <ranges>

#include "core/compiler/program/passes/group/group.h"
#include "core/compiler/program/passes/join_movement/movement.h"
#include "core/compiler/program/passes/join_parts/parts.h"

namespace candela::program::passes {

namespace {

/// The passes, each as an entry of the list.
namespace entries {

Result<PassReport> joinParts(Program& program, const PassContext&) {
  join_parts::joinParts(program);
  return PassReport{};
}

Result<PassReport> joinMovement(Program& program, const PassContext& context) {
  join_movement::joinMovement(program, *context.target);
  return PassReport{};
}

Result<PassReport> pack(Program& program, const PassContext& context) {
  if (context.packer)
    CDL_TRY(pack::packConstants(program, *context.target, context.packer).status());
  return PassReport{};
}

Result<PassReport> simplify(Program& program, const PassContext&) {
  CDL_TRY(schedule::schedule(program, {.reorder = false}));
  return PassReport{};
}

Result<PassReport> schedule(Program& program, const PassContext& context) {
  CDL_TRY(schedule::schedule(program, context.schedule));
  return PassReport{};
}

Result<PassReport> rematerialize(Program& program, const PassContext&) {
  CDL_TRY(schedule::schedule(program, {.rematerialize = true}));
  return PassReport{};
}

Result<PassReport> tile(Program& program, const PassContext& context) {
  CDL_ASSIGN(tile::TileReport report, tile::tile(program, *context.machine));
  return PassReport{report.arenaBytes, report.maxLiveBytes, std::move(report)};
}

Result<PassReport> group(Program& program, const PassContext& context) {
  group::markGroups(program, context.bandBytes);
  return PassReport{};
}

Result<PassReport> place(Program& program, const PassContext&) {
  CDL_ASSIGN(const schedule::PlacementReport report, schedule::place(program));
  return PassReport{report.arenaBytes, report.maxLiveBytes, {}};
}

} // namespace entries

constexpr PassInfo kPasses[] = {
#define PASS(name, function, needs, summary, values)                                               \
  {name, PassInfo::Needs::needs, summary, values, entries::function},
#include "core/compiler/program/passes/passes.inc"
#undef PASS
};

Status checkNeeds(const PassInfo& pass, const PassContext& context) {
  if (pass.needs == PassInfo::Needs::target && !context.target)
    return badArgument("pass '{}' needs a device whose rows it asks", pass.name);
  if (pass.needs == PassInfo::Needs::machine && !context.machine)
    return badArgument("pass '{}' needs a device with local memories", pass.name);
  return Status::ok();
}

} // namespace

std::span<const PassInfo> allPasses() { return kPasses; }

Result<PassReport> runPasses(Program& program, std::span<const std::string_view> names,
                             const PassContext& context) {
  PassReport last;
  for (const std::string_view name : names) {
    const auto pass = std::ranges::find(kPasses, name, &PassInfo::name);
    if (pass == std::end(kPasses))
      return badArgument("no pass '{}' of programs; there are {}", name,
                         fmt::join(kPasses | std::views::transform(&PassInfo::name), ", "));
    CDL_TRY(checkNeeds(*pass, context));
    CDL_ASSIGN(last, pass->run(program, context));
  }
  return last;
}

} // namespace candela::program::passes
