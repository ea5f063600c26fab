#include "core/compiler/driver/device_costs.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "core/compiler/lowering/emit/emit.h"
#include "core/compiler/program/image.h"
#include "core/support/hash.h"

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

/// Whether the Program numbers memories and engines as the device does.
bool isNumbered(const program::Program& program, const capabilities::Target& target) {
  return program.engines == target.engines() &&
         std::ranges::equal(program.spaces, target.spaces(), {}, &program::Space::name,
                            &capabilities::Target::SpaceInfo::name);
}

/// Makes numbers that stand alone known to the device, as splats are.
void showNumbers(const program::Program& program, Bytes& image) {
  std::byte* const data = image.mutableData();
  const cdl_section_t& section = reinterpret_cast<const cdl_image_t*>(data)->constants;
  auto* const records = reinterpret_cast<cdl_constant_t*>(data + section.offset);
  for (size_t c = 0; c < program.constants.size(); ++c) {
    const Payload& payload = program.constants[c].payload;
    if (payload.count() != 1 || payload.form() != Payload::Form::data) continue;
    const Bytes bytes = payload.bytes();
    records[c + 1].form = 1;
    std::memcpy(&records[c + 1].bits, bytes.data(),
                std::min(bytes.size(), sizeof records[c + 1].bits));
  }
}

/// Cycles of whole Programs, by what was asked: plans of small Programs that compete are often the
/// same.
using Prices = std::map<Hash, std::optional<double>>;
/// The largest image that is remembered, in bytes: of larger ones few plans compete.
constexpr uint64_t kRemembered = 4 << 20;

/// Cycles of the whole.
std::optional<double> askWhole(const runtime::plugin::Device& device, const program::Program& asked,
                               Prices& prices) {
  std::optional<program::Program> renumbered;
  if (!isNumbered(asked, device.target())) {
    renumbered = asked;
    if (!renumber(*renumbered, device.target())) return std::nullopt;
  }
  const program::Program& program = renumbered ? *renumbered : asked;
  Bytes image = program::toImage(program, false);
  showNumbers(program, image);
  std::optional<double> ignored;
  std::optional<double>* price = &ignored;
  if (image.size() <= kRemembered) {
    const auto [known, isNew] = prices.try_emplace(sha256(image.data(), image.size()));
    if (!isNew) return known->second;
    price = &known->second;
  }
  const cdl_cost_query_t query{reinterpret_cast<const cdl_image_t*>(image.data()), 0, 0};
  cdl_cost_t cost{};
  if (!runtime::plugin::callSlot(device.plugin().name(), CDL_SLOT(device.table(), cost_batch),
                                 device.handle(), &query, uint32_t{1}, &cost))
    return std::nullopt;
  return *price = static_cast<double>(cost.latency_cycles);
}

} // namespace

std::shared_ptr<program::passes::tile::DeviceCosts>
costsOf(const std::shared_ptr<runtime::plugin::Device>& device) {
  if (!device->table().cost_batch) return nullptr;
  return std::make_shared<program::passes::tile::DeviceCosts>(
      [device](const program::Program& program) { return ask(*device, program); },
      [device, prices = std::make_shared<Prices>()](const program::Program& program) {
        return askWhole(*device, program, *prices);
      });
}

} // namespace candela::driver
