// The part of the tier `memory` in which a device uses bytes of the host where they lie: it sees
// them as they are when work runs, writes what the work writes and no byte around it, and touches
// them at no other time.
#include "conformance/tiers/memory_import.h"

#include "conformance/tiers/host_bytes.h"

namespace candela::conformance::tiers {
namespace {

constexpr uint64_t kImported = 3 * kPage + 5;

Status reads(Bench& bench, const Choice&) {
  HostBytes host(kImported, 20);
  CDL_ASSIGN(cdl_memory_t * imported, bench.import(host.bytes()));
  CDL_ASSIGN(Lane lane, bench.lane());
  CDL_ASSIGN(cdl_memory_t * memory, bench.create(kImported));
  const ByteVector fresh = pattern(kImported, 21); // an import is no copy of what lay there then
  host.fill(fresh);
  CDL_TRY(lane.copy(memory, 0, imported, 0, kImported));
  CDL_TRY(lane.expect("a copy of bytes of the host", memory, 0, fresh));
  CDL_TRY(lane.expect("a read of bytes of the host", imported, 100,
                      std::span(fresh).subspan(100, 200)));
  return host.check("the host's memory around what was read");
}

Status writes(Bench& bench, const Choice&) {
  HostBytes host(kImported, 22);
  CDL_ASSIGN(cdl_memory_t * imported, bench.import(host.bytes()));
  CDL_ASSIGN(Lane lane, bench.lane());
  const ByteVector copied = pattern(1000, 23), written = pattern(1000, 24);
  CDL_ASSIGN(cdl_memory_t * memory, bench.createWith(lane, copied));
  CDL_TRY(lane.copy(imported, kPage + 1, memory, 0, copied.size()));
  CDL_TRY(lane.write(imported, kImported - written.size(), written));
  CDL_TRY(lane.sync());
  host.expect(kPage + 1, copied);
  host.expect(kImported - written.size(), written);
  return host.check("the host's memory after work wrote there");
}

/// An execution from bytes of the host to others, as long as asked for and at other places of a
/// page.
Status runs(Bench& bench, const Choice& choice) {
  const uint64_t bytes = numberOf(choice, "bytes"), shift = numberOf(choice, "shift");
  HostBytes x(bytes, 25, shift), y(bytes, 26, shift);
  CDL_ASSIGN(cdl_memory_t * from, bench.import(x.bytes()));
  CDL_ASSIGN(cdl_memory_t * to, bench.import(y.bytes()));
  CDL_ASSIGN(const auto echo, Echo::make(bench, bytes));
  CDL_ASSIGN(Lane lane, bench.lane());
  for (const uint64_t seed : {27, 28}) {
    const ByteVector content = pattern(bytes, seed);
    x.fill(content);
    CDL_TRY(echo->submit(lane, to, from));
    CDL_TRY(lane.sync());
    y.expect(0, content);
    CDL_TRY(y.check("the host's memory after a run wrote there"));
    CDL_TRY(x.check("the host's memory after a run read there"));
  }
  return Status::ok();
}

/// One memory stands for other bytes in each run, of another size too; those before stay as they
/// are.
Status again(Bench& bench, const Choice&) {
  constexpr uint64_t kBytes = 500;
  CDL_ASSIGN(const auto echo, Echo::make(bench, kBytes));
  CDL_ASSIGN(Lane lane, bench.lane());
  std::vector<HostBytes> results;
  for (uint64_t round = 0; round < 8; ++round)
    results.emplace_back(kBytes + round % 3 * kPage, 30 + round);
  cdl_memory_t* to = nullptr;
  for (size_t round = 0; round < results.size(); ++round) {
    const ByteVector content = pattern(kBytes, 50 + round);
    CDL_ASSIGN(cdl_memory_t * from, bench.createWith(lane, content));
    CDL_ASSIGN(to, bench.import(results[round].bytes(), to));
    CDL_TRY(echo->submit(lane, to, from));
    CDL_TRY(lane.sync());
    results[round].expect(0, content);
    for (size_t i = 0; i <= round; ++i)
      CDL_TRY(results[i].check(fmt::format("the bytes of run {} after run {}", i, round)));
  }
  return Status::ok();
}

/// What the host writes once the work is done stays, and the bytes outlive the memory that stood
/// for them.
Status released(Bench& bench, const Choice&) {
  HostBytes host(kImported, 60);
  CDL_ASSIGN(cdl_memory_t * imported, bench.import(host.bytes()));
  CDL_ASSIGN(Lane lane, bench.lane());
  CDL_TRY(lane.write(imported, 0, pattern(kImported, 61)));
  CDL_TRY(lane.sync());
  host.fill(pattern(kImported, 62));
  bench.destroy(imported);
  CDL_TRY(bench.usable());
  return host.check("the host's memory after the import was destroyed");
}

Status noSuchSpace(Bench& bench, const Choice&) {
  if (!bench.table().memory_import) return bench.skip("memory of the host cannot be imported");
  HostBytes host(kPage, 63);
  cdl_memory_t* memory = nullptr;
  const Reply reply = ask(bench.table().memory_import, bench.device(), UINT32_MAX,
                          static_cast<void*>(host.bytes().data()), uint64_t{kPage}, &memory);
  CDL_TRY(refused("memory_import in space 4294967295", CDL_INVALID_ARGUMENT, reply));
  if (memory)
    return failure(Code::mismatch,
                   "memory_import: failed, and changed the memory that it was given");
  return bench.usable();
}

} // namespace

std::vector<Case> memoryImportCases(const Selection& selection) {
  std::vector<Case> all = expand({"memory:import/",
                                  {{"reads", reads},
                                   {"writes", writes},
                                   {"again", again},
                                   {"released", released},
                                   {"no_such_space", noSuchSpace}}},
                                 selection, {0, 5});
  const Axis bytes{"bytes", {"1", "333", "12293"}}, shift{"shift", {"0", "16", "4080"}};
  for (Case& one : expand({"memory:import/", {{"runs", runs}}, {bytes, shift}}, selection, {1, 4}))
    all.push_back(std::move(one));
  return all;
}

} // namespace candela::conformance::tiers
