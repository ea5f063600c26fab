// The capability table: the same at every call, and rows that mean something.
#include <bit>
#include <cstring>
#include <map>
#include <set>

#include "conformance/tiers/abi/abi.h"
#include "conformance/tiers/bench.h"
#include "core/compiler/capabilities/atom_holds.h"
#include "core/compiler/capabilities/foreign.h"

namespace candela::conformance::tiers::abi {
namespace {

using capabilities::recordAt;

Result<const cdl_capabilities_t*> tableOfDevice(Port& port) {
  // which checks ids, counts, strides and required rows
  CDL_ASSIGN(const auto device, port.device());
  return device->table().device_capabilities(device->handle());
}

/// The table and everything that it points to, as one text.
std::string wholeTable(const cdl_capabilities_t& table) {
  return std::string(reinterpret_cast<const char*>(&table),
                     std::min<size_t>(table.header.struct_size, sizeof table)) +
         contentOf(table);
}

Outcome accepted(Port& port) {
  CDL_TRY(port.device().status());
  return CaseResult::passed();
}

Outcome sameAgain(Port& port) {
  CDL_ASSIGN(const cdl_capabilities_t* first, tableOfDevice(port));
  const std::string before = wholeTable(*first);
  CDL_ASSIGN(const Sample* sample, claimedSample(port));
  CDL_ASSIGN(const auto other, RawDevice::open(port));
  if (sample) {
    CDL_ASSIGN(const auto work, Work::on(*other, *sample));
    CDL_TRY(work->runWell().status());
  }
  CDL_ASSIGN(const cdl_capabilities_t* second, tableOfDevice(port));
  if (first != second) return wrong("the second call gives another pointer");
  if (wholeTable(*second) != before) return wrong("the table changed while the device was open");
  return CaseResult::passed();
}

Outcome sameWhenOpenedAgain(Port& port) {
  CDL_ASSIGN(const auto first, RawDevice::open(port));
  CDL_ASSIGN(const auto second, RawDevice::open(port));
  const auto claims = [](const RawDevice& device) {
    return contentOf(*device.table.device_capabilities(device.handle));
  };
  if (claims(*first) != claims(*second))
    return wrong("the same device opened twice claims different things");
  return CaseResult::passed();
}

std::string rowName(uint32_t index, const cdl_row_t& row) {
  return fmt::format("row {} ({} function {})", index, cdl_kind_facts(row.kind)->name, row.fn);
}

/// Two atoms of one conjunction that no instruction meets together.
bool contradict(const cdl_atom_t& a, const cdl_atom_t& b) {
  if (a.subject != b.subject || a.operand != b.operand || a.dim != b.dim || a.attr != b.attr)
    return false;
  if (a.relation == CDL_REL_EQ) return !capabilities::atomHolds(b, a.a);
  if (a.relation == CDL_REL_IN)
    return std::none_of(a.set, a.set + a.set_count,
                        [&](int64_t value) { return capabilities::atomHolds(b, value); });
  return a.relation == CDL_REL_LE && b.relation == CDL_REL_GE && a.a < b.a;
}

Outcome rowsCanBeMet(Port& port) {
  CDL_ASSIGN(const cdl_capabilities_t* table, tableOfDevice(port));
  for (uint32_t i = 0; i < table->row_count; ++i) {
    const cdl_row_t row = recordAt(table->rows, table->row_stride, i);
    if (row.support == CDL_SUPPORT_NONE) return wrong("{} claims nothing", rowName(i, row));
    std::vector<cdl_atom_t> atoms;
    for (uint32_t k = 0; k < row.atoms; ++k)
      atoms.push_back(recordAt(table->atoms, table->atom_stride, row.first_atom + k));
    for (size_t a = 0; a < atoms.size(); ++a)
      for (size_t b = 0; b < atoms.size(); ++b)
        if (a != b && contradict(atoms[a], atoms[b]))
          return wrong("{}: its atoms {} and {} are never true together", rowName(i, row), a, b);
    const bool hasSteps =
        (row.flags & (CDL_ROW_EPILOGUE | CDL_ROW_PROLOGUE)) || row.kind == CDL_KIND_ELEMENTWISE;
    if (hasSteps != (row.steps_mask != 0))
      return wrong("{}: steps_mask {:#x} with flags {:#x}", rowName(i, row), row.steps_mask,
                   row.flags);
  }
  return CaseResult::passed();
}

/// The same conditions, but once NATIVE and once EMULATED.
Outcome rowsAgree(Port& port) {
  CDL_ASSIGN(const cdl_capabilities_t* table, tableOfDevice(port));
  std::map<std::string, std::pair<uint32_t, uint8_t>> seen;
  for (uint32_t i = 0; i < table->row_count; ++i) {
    const cdl_row_t row = recordAt(table->rows, table->row_stride, i);
    cdl_row_t conditions = row;
    conditions.support = 0;
    conditions.first_atom = 0;
    std::string key(reinterpret_cast<const char*>(&conditions), sizeof conditions);
    for (uint32_t k = 0; k < row.atoms; ++k) {
      const cdl_atom_t atom = recordAt(table->atoms, table->atom_stride, row.first_atom + k);
      key.append(reinterpret_cast<const char*>(&atom), sizeof atom);
    }
    const auto [at, isNew] = seen.try_emplace(key, i, row.support);
    if (!isNew && at->second.second != row.support)
      return wrong("{} has the conditions of row {}, and another support", rowName(i, row),
                   at->second.first);
  }
  return CaseResult::passed();
}

Outcome everySpaceGivesMemory(Port& port) {
  CDL_ASSIGN(const auto device, RawDevice::open(port));
  const cdl_capabilities_t& table = *device->table.device_capabilities(device->handle);
  if (table.space_count == 0) return wrong("there is no memory space");
  std::set<std::string> names;
  for (uint32_t s = 0; s < table.space_count; ++s) {
    const cdl_space_t space = recordAt(table.spaces, table.space_stride, s);
    const std::string name = table.space_names[s];
    if (!names.insert(name).second) return wrong("two spaces are named '{}'", name);
    if (s == 0 && (space.flags & CDL_SPACE_LOCAL))
      return wrong("the default space '{}' is a scratchpad", name);
    if (s > 0 && !(space.flags & (CDL_SPACE_LOCAL | CDL_SPACE_CONSTANTS)))
      return wrong("space '{}' stands behind the default one and is neither LOCAL nor for "
                   "CONSTANTS: nothing is placed there",
                   name);
    cdl_memory_t* memory = nullptr;
    Said said;
    const uint64_t bytes =
        space.capacity_bytes ? std::min<uint64_t>(space.capacity_bytes, 4096) : 4096;
    const cdl_code_t code = device->table.memory_create(device->handle, s, bytes, space.alignment,
                                                        &memory, said.error());
    CDL_TRY(succeeded(fmt::format("{} bytes of space '{}'", bytes, name), code, said));
    void* pointer = nullptr;
    const bool mapped =
        device->table.memory_map && device->table.memory_map(device->handle, memory, 0, bytes,
                                                             &pointer, said.error()) == CDL_OK;
    if (mapped && device->table.memory_unmap)
      (void)device->table.memory_unmap(device->handle, memory, pointer, said.error());
    device->table.memory_destroy(device->handle, memory);
    if ((space.flags & CDL_SPACE_HOST_MAPPED) && !mapped)
      return wrong("space '{}' is HOST_MAPPED, but its memory is not mapped: {}", name,
                   said.text());
    if (mapped && reinterpret_cast<uintptr_t>(pointer) % space.alignment != 0)
      return wrong("memory of space '{}' is not aligned to {}", name, space.alignment);
  }
  return CaseResult::passed();
}

Outcome noOtherSpace(Port& port) {
  CDL_ASSIGN(const auto device, RawDevice::open(port));
  const uint32_t spaces = device->table.device_capabilities(device->handle)->space_count;
  for (uint32_t space : {spaces, spaces + 1, UINT32_MAX}) {
    cdl_memory_t* memory = nullptr;
    Said said;
    const cdl_code_t code =
        device->table.memory_create(device->handle, space, 64, 64, &memory, said.error());
    CDL_TRY(refusedBy(fmt::format("space {} of {}", space, spaces), code, said,
                      {CDL_INVALID_ARGUMENT}));
    if (memory) return wrong("a call that failed gave memory");
  }
  return CaseResult::passed();
}

Outcome deterministic(Port& port) {
  CDL_ASSIGN(const cdl_capabilities_t* table, tableOfDevice(port));
  if (!(table->flags & CDL_DEVICE_DETERMINISTIC))
    return CaseResult::unsupported("it does not call itself deterministic");
  CDL_ASSIGN(const Sample* sample, claimedSample(port));
  if (!sample) return nothingClaimed();
  std::string first;
  for (int turn = 0; turn < 5; ++turn) {
    CDL_ASSIGN(const auto device, RawDevice::open(port));
    CDL_ASSIGN(const auto work, Work::on(*device, *sample));
    CDL_ASSIGN(const std::string result, work->runWell());
    if (turn == 0) first = result;
    if (result != first) return wrong("{}: turn {} gives other bytes", sample->name, turn + 1);
  }
  return CaseResult::passed();
}

/// An instruction that a row calls NATIVE runs: a late refusal of one alone is no way out.
Check claimHolds(const Sample& sample) {
  return [&sample](Port& port) -> Outcome {
    CDL_ASSIGN(const auto opened, port.device());
    const Bytes image = imageOf(sample);
    const auto desc =
        runtime::plugin::describe(reinterpret_cast<const cdl_image_t*>(image.data()), 1);
    const capabilities::Answer answer = opened->target().query(desc);
    if (answer.support == capabilities::Support::none)
      return CaseResult::unsupported(answer.detail);
    CaseResult result = CaseResult::passed();
    if (answer.support == capabilities::Support::emulated) {
      result.outcome = CaseResult::Outcome::emulated;
      return result;
    }
    CDL_ASSIGN(const auto device, RawDevice::open(port));
    CDL_ASSIGN(const Sample* ready, inTiles(port, sample));
    CDL_ASSIGN(const auto work, Work::on(*device, *ready));
    CDL_TRY(work->runWell().status());
    return result;
  };
}

} // namespace

std::vector<Named> capabilityChecks() {
  std::vector<Named> checks = {
      {"capability/accepted", accepted},
      {"capability/same_again", sameAgain},
      {"capability/same_when_opened_again", sameWhenOpenedAgain},
      {"capability/rows_can_be_met", rowsCanBeMet},
      {"capability/rows_agree", rowsAgree},
      {"capability/every_space_gives_memory", everySpaceGivesMemory},
      {"capability/no_other_space", noOtherSpace},
      {"capability/deterministic", deterministic},
  };
  for (const Sample& sample : samples())
    checks.push_back({"claims/" + sample.name, claimHolds(sample)});
  return checks;
}

} // namespace candela::conformance::tiers::abi
