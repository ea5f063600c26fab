#include "core/compiler/driver/device_costs.h"

#include <algorithm>
#include <cstring>

#include "core/compiler/lowering/emit/emit.h"
#include "core/compiler/program/image.h"

namespace candela::driver {

namespace {

/// The Program's memory as the device numbers its own; false where it has none of that name.
bool renumber(program::Program& program, const capabilities::Target& target) {
  std::vector<uint32_t> index;
  for (const program::Space& space : program.spaces) {
    const auto& known = target.spaces();
    const auto at = std::ranges::find(known, space.name, &capabilities::Target::SpaceInfo::name);
    if (at == known.end() && space.local) return false;
    index.push_back(at == known.end() ? 0 : static_cast<uint32_t>(at - known.begin()));
  }
  program.spaces = lowering::emit::spacesOf(target);
  for (program::Buffer& buffer : program.buffers) buffer.space = index[buffer.space];
  program.engines = target.engines();
  return true;
}

std::vector<double> ask(const runtime::plugin::Device& device, const program::Program& asked) {
  program::Program program = asked;
  if (!renumber(program, device.target())) return {};
  const Bytes image = program::toImage(program);
  std::vector<cdl_cost_query_t> queries;
  for (uint32_t i = 0; i < program.instrs.size(); ++i)
    queries.push_back({reinterpret_cast<const cdl_image_t*>(image.data()), i + 1, 0});
  std::vector<cdl_cost_t> costs(queries.size());
  const auto count = static_cast<uint32_t>(queries.size());
  if (!runtime::plugin::callSlot(device.plugin().name(), CDL_SLOT(device.table(), cost_batch),
                                 device.handle(), queries.data(), count, costs.data()))
    return {};
  std::vector<double> cycles;
  for (const cdl_cost_t& cost : costs)
    cycles.push_back(static_cast<double>(*std::ranges::max_element(cost.busy_cycles)));
  return cycles;
}

/// Cycles of the whole; numbers alone are known to the device as splats are.
std::optional<double> askWhole(const runtime::plugin::Device& device,
                               const program::Program& asked) {
  program::Program program = asked;
  if (!renumber(program, device.target())) return std::nullopt;
  for (program::Constant& constant : program.constants)
    if (const Payload& payload = constant.payload;
        payload.count() == 1 && payload.form() == Payload::Form::data) {
      uint64_t bits = 0;
      const Bytes bytes = payload.bytes();
      std::memcpy(&bits, bytes.data(), std::min(bytes.size(), sizeof bits));
      constant.payload = Payload::splat(payload.elem(), 1, bits);
    }
  const Bytes image = program::toImage(program, false);
  const cdl_cost_query_t query{reinterpret_cast<const cdl_image_t*>(image.data()), 0, 0};
  cdl_cost_t cost{};
  if (!runtime::plugin::callSlot(device.plugin().name(), CDL_SLOT(device.table(), cost_batch),
                                 device.handle(), &query, uint32_t{1}, &cost))
    return std::nullopt;
  return static_cast<double>(cost.latency_cycles);
}

} // namespace

std::shared_ptr<program::passes::tile::DeviceCosts>
costsOf(const std::shared_ptr<runtime::plugin::Device>& device) {
  if (!device->table().cost_batch) return nullptr;
  return std::make_shared<program::passes::tile::DeviceCosts>(
      [device](const program::Program& program) { return ask(*device, program); },
      [device](const program::Program& program) { return askWhole(*device, program); });
}

} // namespace candela::driver
