// Optional services: profiles, costs, cancelling, packing.
#include <cstring>

#include "conformance/tiers/abi/abi.h"

namespace candela::conformance::tiers::abi {
namespace {

using Has = bool (*)(const cdl_plugin_t&);

/// On a device where the slot is, with the claimed sample at work.
Check withWork(const char* slot, Has has, Outcome (*check)(RawDevice&, Work&)) {
  return [=](Port& port) -> Outcome {
    CDL_ASSIGN(const Sample* sample, claimedSample(port));
    CDL_ASSIGN(const auto device, RawDevice::open(port));
    if (!has(device->table)) return missing(slot);
    if (!sample) return nothingClaimed();
    CDL_ASSIGN(const auto work, Work::on(*device, *sample));
    return check(*device, *work);
  };
}

Outcome profileIsSane(RawDevice& device, Work& work) {
  const uint32_t engines =
      std::max(1u, device.table.device_capabilities(device.handle)->engine_count);
  for (uint32_t runs : {1u, 3u}) {
    Said said;
    CDL_TRY(succeeded("profile_begin", device.table.profile_begin(work.queue, said.error()), said));
    for (uint32_t i = 0; i < runs; ++i) CDL_TRY(work.runWell().status());
    std::vector<cdl_profile_record_t> records(16, {77, 77, 77, 77});
    uint32_t count = 0;
    CDL_TRY(succeeded(
        "profile_end",
        device.table.profile_end(work.queue, records.data(), 15, &count, said.error()), said));
    if (count == 0 || count > 15)
      return wrong("{} records of {} executions of one instruction", count, runs);
    if (records[15].instr != 77 || records[count].instr != 77)
      return wrong("more records were written than there are");
    for (uint32_t i = 0; i < count; ++i) {
      const cdl_profile_record_t& r = records[i];
      const uint32_t instrs = work.image()->instrs.count - 1; // several where it is in tiles
      if (r.instr > instrs)
        return wrong("record {} is of instruction {} of {}", i, r.instr, instrs);
      if (r.engine >= engines)
        return wrong("record {} is of engine {} of {}", i, r.engine, engines);
      if (r.end_ns < r.start_ns)
        return wrong("record {} ends {} ns before it begins", i, r.start_ns - r.end_ns);
    }
  }
  return CaseResult::passed();
}

Outcome profileIntoNothing(RawDevice& device, Work& work) {
  Said said;
  CDL_TRY(succeeded("profile_begin", device.table.profile_begin(work.queue, said.error()), said));
  CDL_TRY(work.runWell().status());
  uint32_t count = 0;
  cdl_profile_record_t guard{77, 77, 77, 77};
  CDL_TRY(succeeded("profile_end",
                    device.table.profile_end(work.queue, &guard, 0, &count, said.error()), said));
  if (count == 0) return wrong("0 records of an execution");
  return guard.instr == 77 ? CaseResult::passed()
                           : Outcome(wrong("a record was written beyond the capacity of 0"));
}

Outcome profileWithoutBegin(RawDevice& device, Work& work) {
  cdl_profile_record_t record{};
  uint32_t count = 0;
  Said said;
  CDL_TRY(refusedBy("profile_end without profile_begin",
                    device.table.profile_end(work.queue, &record, 1, &count, said.error()), said,
                    {CDL_INVALID_ARGUMENT}));
  for (int turn = 0; turn < 2; ++turn)
    CDL_TRY(succeeded("profile_begin", device.table.profile_begin(work.queue, said.error()), said));
  CDL_TRY(succeeded("profile_end",
                    device.table.profile_end(work.queue, &record, 1, &count, said.error()), said));
  CDL_TRY(refusedBy("a second profile_end",
                    device.table.profile_end(work.queue, &record, 1, &count, said.error()), said,
                    {CDL_INVALID_ARGUMENT}));
  return CaseResult::passed();
}

Outcome costsArePure(RawDevice& device, Work& work) {
  bool isKnown = false;
  // the whole program, and an instruction: one of them may be unknown
  for (const uint32_t instr : {0u, 1u}) {
    const std::vector<cdl_cost_query_t> queries(3, {work.image(), instr, 0});
    std::vector<cdl_cost_t> first(4), second(4);
    std::memset(static_cast<void*>(first.data()), 0x5A, 4 * sizeof(cdl_cost_t));
    second = first;
    uint32_t unknown = 0;
    for (auto* costs : {&first, &second}) {
      Said said;
      const cdl_code_t code =
          device.table.cost_batch(device.handle, queries.data(), 3, costs->data(), said.error());
      if (code == CDL_UNSUPPORTED && !(instr == 1 && !isKnown))
        ++unknown;
      else
        CDL_TRY(succeeded("cost_batch", code, said));
      CDL_TRY(work.runWell().status());
    }
    if (unknown == 2) continue;
    isKnown = true;
    if (unknown || std::memcmp(first.data(), second.data(), 3 * sizeof(cdl_cost_t)) != 0)
      return wrong("the second call gives other costs");
    if (std::memcmp(&first[0], &first[1], sizeof(cdl_cost_t)) != 0)
      return wrong("equal candidates have different costs");
    if (first[3].latency_cycles != 0x5A5A5A5A5A5A5A5A)
      return wrong("more costs were written than candidates given");
  }
  return CaseResult::passed();
}

Outcome cancelOfNothing(RawDevice& device, Work& work) {
  CDL_TRY(work.runWell().status());
  Said said;
  CDL_TRY(
      succeeded("cancel of an idle queue", device.table.cancel(work.queue, said.error()), said));
  CDL_TRY(work.runWell().status().context("after a cancel with nothing to give up"));
  return CaseResult::passed();
}

/// What layouts need it is data; without one there is nothing to pack.
Outcome packing(Port& port) {
  CDL_ASSIGN(const auto device, port.device());
  const cdl_capabilities_t& table = *device->table().device_capabilities(device->handle());
  bool opaque = false;
  for (uint32_t i = 1; i < table.layout_count; ++i)
    opaque |= reinterpret_cast<const cdl_layout_t*>(reinterpret_cast<const char*>(table.layouts) +
                                                    uint64_t(table.layout_stride) * i)
                  ->opaque != 0;
  if (opaque && !device->table().pack_constant)
    return wrong("there are OPAQUE layouts, but pack_constant is null");
  if (!device->table().pack_constant) return missing("pack_constant");
  cdl_view_t view{};
  view.elem = CDL_F32;
  view.rank = 1;
  view.dims[0] = 4;
  view.strides[0] = 1;
  const float data[4] = {};
  const cdl_writer_t writer{nullptr, [](void*, const void*, uint64_t) { return 1; }};
  Said said;
  return CaseResult::of(refusedBy("an unknown layout",
                                  device->table().pack_constant(device->handle(), "no such layout",
                                                                data, &view, &writer, said.error()),
                                  said, {CDL_UNSUPPORTED}));
}

} // namespace

std::vector<Named> serviceChecks() {
  const Has profile = [](const cdl_plugin_t& t) { return t.profile_begin && t.profile_end; };
  const Has cost = [](const cdl_plugin_t& t) { return t.cost_batch != nullptr; };
  const Has cancel = [](const cdl_plugin_t& t) { return t.cancel != nullptr; };
  return {
      {"profile/is_sane", withWork("profile_begin", profile, profileIsSane)},
      {"profile/into_nothing", withWork("profile_begin", profile, profileIntoNothing)},
      {"profile/without_begin", withWork("profile_begin", profile, profileWithoutBegin)},
      {"cost/is_pure", withWork("cost_batch", cost, costsArePure)},
      {"cancel/of_nothing", withWork("cancel", cancel, cancelOfNothing)},
      {"pack/unknown_layout", packing},
  };
}

} // namespace candela::conformance::tiers::abi
