// The tier `devices`: a host that has several devices of one plugin open, the same one more than
// once too. Each has its own memory, queues and options, works beside the others, and goes without
// them.
#include <algorithm>

#include "conformance/suite.h"
#include "conformance/tiers/bench.h"
#include "conformance/tiers/host_bytes.h"
#include "core/support/text/scan.h"

namespace candela::conformance::tiers::devices {
namespace {

using Opened = std::unique_ptr<Bench>;

/// A device of the plugin, opened beside the one under test with these options.
Result<Opened> openBeside(Bench& bench, uint32_t index, const runtime::plugin::Options& options) {
  auto device = bench.plugin()->open(index, options);
  if (!device) return device.status().context(fmt::format("device {}", index));
  return std::make_unique<Bench>(bench, std::move(*device));
}

/// The device under test, once more.
Result<Opened> openAgain(Bench& bench) {
  return openBeside(bench, bench.opened().index(), bench.opened().options());
}

/// The same device once more, or each other one of the plugin that this machine has.
Result<std::vector<Opened>> openOthers(Bench& bench, const Choice& choice) {
  std::vector<Opened> others;
  if (choice.at("beside") == "itself") {
    CDL_ASSIGN(others.emplace_back(), openAgain(bench));
    return others;
  }
  for (uint32_t index = 0; index < bench.plugin()->deviceCount(); ++index) {
    if (index == bench.opened().index()) continue;
    Result<Opened> other = openBeside(bench, index, bench.opened().options());
    if (other.status().code() == Code::unsupported) continue; // this machine lacks what it needs
    CDL_ASSIGN(others.emplace_back(), std::move(other));
  }
  if (others.empty()) return bench.skip("the plugin has one device");
  return others;
}

/// A device that takes part in a case, and what the case has on it.
struct Party {
  Bench* bench;
  Lane lane;
  std::string name; ///< for messages
};
Result<std::vector<Party>> partiesOf(Bench& bench, const std::vector<Opened>& others) {
  std::vector<Bench*> benches{&bench};
  for (const Opened& other : others) benches.push_back(other.get());
  std::vector<Party> parties;
  for (Bench* one : benches) {
    CDL_ASSIGN(const Lane lane, one->lane());
    parties.push_back(
        {one, lane,
         fmt::format("device {}, opened as number {}", one->opened().index(), parties.size())});
  }
  return parties;
}

// ---- Opening ----

Status each(Bench& bench, const Choice&) {
  for (uint32_t index = 0; index < bench.plugin()->deviceCount(); ++index) {
    const Result<Opened> opened = openBeside(bench, index, bench.opened().options());
    const bool isMissing = opened.status().code() == Code::unsupported;
    if (isMissing && index != bench.opened().index()) continue;
    CDL_TRY(opened.status());
    CDL_TRY((*opened)->usable().context(fmt::format("device {}", index)));
  }
  return bench.usable();
}

Status many(Bench& bench, const Choice&) {
  std::vector<Opened> all;
  for (int i = 0; i < 6; ++i) {
    CDL_ASSIGN(all.emplace_back(), openAgain(bench));
  }
  for (const Opened& one : all) CDL_TRY(one->usable());
  std::swap(all.front(), all[2]); // closed in another order than opened
  while (!all.empty()) {
    all.pop_back();
    for (const Opened& one : all) CDL_TRY(one->usable().context("after another was closed"));
  }
  return bench.usable();
}

/// At every call, of each opening, and whatever is open beside.
Status capabilitiesStay(Bench& bench, const Choice&) {
  const auto* const first = bench.table().device_capabilities(bench.device());
  const std::string content = contentOf(*first);
  for (int opening = 0; opening < 3; ++opening) {
    CDL_ASSIGN(const Opened other, openAgain(bench));
    const auto* const theirs = bench.table().device_capabilities(other->device());
    if (contentOf(*theirs) != content)
      return failure(Code::mismatch, "opening {} of the device has other capabilities",
                     opening + 2);
    CDL_TRY(other->usable());
    if (bench.table().device_capabilities(other->device()) != theirs)
      return failure(Code::mismatch, "the second call gives another pointer");
    if (bench.table().device_capabilities(bench.device()) != first || contentOf(*first) != content)
      return failure(Code::mismatch, "the capabilities changed when the device was opened again");
  }
  return Status::ok();
}

/// While the device is open with these options, and when it was closed, the ones that are open with
/// others are what they were.
Status beside(Bench& bench, const runtime::plugin::Options& options) {
  const auto* const ours = bench.table().device_capabilities(bench.device());
  const std::string before = contentOf(*ours);
  const auto unchanged = [&](std::string_view when) -> Status {
    if (contentOf(*ours) != before)
      return failure(Code::mismatch, "the capabilities of an open device changed {}", when);
    CDL_ASSIGN(const Opened again, openAgain(bench));
    if (contentOf(*bench.table().device_capabilities(again->device())) == before)
      return Status::ok();
    return failure(Code::mismatch, "{} the device has other capabilities with the same options",
                   when);
  };
  CDL_ASSIGN(const Opened other, openBeside(bench, bench.opened().index(), options));
  CDL_TRY(other->usable());
  CDL_TRY(unchanged("while another opening has other options"));
  CDL_TRY(bench.usable());
  return Status::ok();
}

Status optionsAreItsOwn(Bench& bench, const Choice&) {
  size_t tried = 0;
  for (const cdl_option_schema_t& option : bench.plugin()->options()) {
    const std::string values = option.values ? option.values : "string";
    if (values.find('|') == std::string::npos) continue; // which values there are is not said
    for (const std::string& value : text::split(values, '|')) {
      runtime::plugin::Options options = bench.opened().options();
      options[option.name] = value;
      if (!bench.plugin()->open(bench.opened().index(), options)) continue; // not on this machine
      ++tried;
      CDL_TRY(beside(bench, options).context(fmt::format("{}={}", option.name, value)));
    }
  }
  return tried ? Status::ok() : bench.skip("no option has a list of values");
}

/// Who is refused disturbs nobody.
Status outOfRange(Bench& bench, const Choice&) {
  CDL_ASSIGN(const Opened other, openAgain(bench));
  cdl_host_t host{};
  host.header = CDL_HEADER(cdl_host_t);
  const uint32_t count = bench.plugin()->deviceCount();
  for (const uint32_t index : {count, count + 1, UINT32_MAX}) {
    cdl_device_t* device = nullptr;
    const Reply reply = ask(bench.table().device_open, static_cast<const cdl_host_t*>(&host), index,
                            static_cast<const cdl_option_t*>(nullptr), 0u, &device);
    CDL_TRY(refused(fmt::format("device {} of {}", index, count), CDL_NOT_FOUND, reply));
    if (device) return failure(Code::mismatch, "device_open: failed, and gave a device");
  }
  CDL_TRY(other->usable());
  return bench.usable();
}

// ---- Beside each other ----

/// Buffers of the same sizes, made in turns; each keeps what was written to it alone.
Status ownMemory(Bench& bench, const Choice& choice) {
  CDL_ASSIGN(const std::vector<Opened> others, openOthers(bench, choice));
  CDL_ASSIGN(std::vector<Party> parties, partiesOf(bench, others));
  const std::vector<uint64_t> sizes = {1, 64, 500, kPage, 100'000};
  std::vector<std::vector<cdl_memory_t*>> memory(parties.size());
  const auto content = [&](size_t device, size_t buffer) {
    return pattern(sizes[buffer], device * 100 + buffer);
  };
  for (size_t b = 0; b < sizes.size(); ++b)
    for (size_t d = 0; d < parties.size(); ++d) {
      const Party& party = parties[d];
      CDL_ASSIGN(memory[d].emplace_back(), party.bench->create(sizes[b]));
    }
  for (size_t b = 0; b < sizes.size(); ++b)
    for (size_t d = 0; d < parties.size(); ++d)
      CDL_TRY(parties[d].lane.write(memory[d][b], 0, content(d, b)));
  for (size_t d = 0; d < parties.size(); ++d) {
    CDL_TRY(parties[d].lane.sync());
    for (size_t b = 0; b < sizes.size(); ++b)
      CDL_TRY(parties[d].lane.expect(fmt::format("buffer {} of {}", b, parties[d].name),
                                     memory[d][b], 0, content(d, b)));
  }
  return Status::ok();
}

Status ownTimelines(Bench& bench, const Choice& choice) {
  CDL_ASSIGN(const std::vector<Opened> others, openOthers(bench, choice));
  CDL_ASSIGN(std::vector<Party> parties, partiesOf(bench, others));
  for (size_t d = 0; d < parties.size(); ++d) {
    const Party& party = parties[d];
    const uint64_t ours = 10 * (parties.size() - d); // the first device's stands highest
    CDL_TRY(parties[d].lane.signal(ours));
    CDL_TRY(parties[d].lane.wait(ours));
    const Reply beyond =
        ask(party.bench->table().queue_wait, party.lane.handle(), ours + 1, uint64_t{0});
    CDL_TRY(refused(fmt::format("queue_wait for {} on {}, whose timeline stands at {}", ours + 1,
                                party.name, ours),
                    CDL_TIMEOUT, beyond));
  }
  return Status::ok();
}

/// Writes, runs and reads in rounds, with buffers and a queue of its own.
Status work(Bench& bench, Echo& echo, uint64_t seed) {
  CDL_ASSIGN(Lane lane, bench.lane());
  CDL_ASSIGN(cdl_memory_t * x, bench.create(echo.bytes()));
  CDL_ASSIGN(cdl_memory_t * y, bench.create(echo.bytes()));
  for (uint64_t round = 0; round < 12; ++round) {
    const ByteVector content = pattern(echo.bytes(), seed * 1000 + round);
    CDL_TRY(lane.write(x, 0, content));
    CDL_TRY(echo.submit(lane, y, x));
    CDL_TRY(lane.sync());
    CDL_TRY(lane.expect(fmt::format("y of round {}", round), y, 0, content));
  }
  bench.destroy(lane);
  bench.destroy(x);
  bench.destroy(y);
  return Status::ok();
}

/// Two threads on each device, all at once.
Status atOnce(Bench& bench, const Choice& choice) {
  CDL_ASSIGN(const std::vector<Opened> others, openOthers(bench, choice));
  CDL_ASSIGN(const std::vector<Party> parties, partiesOf(bench, others));
  std::vector<std::unique_ptr<Echo>> echoes;
  for (const Party& party : parties) {
    CDL_ASSIGN(echoes.emplace_back(), Echo::make(*party.bench, 5000));
  }
  return onThreads(2 * parties.size(), [&](size_t t) {
    const size_t d = t % parties.size();
    return work(*parties[d].bench, *echoes[d], t).context(parties[d].name);
  });
}

/// Everything is submitted to each device before anybody waits.
Status inFlight(Bench& bench, const Choice& choice) {
  constexpr uint64_t kBytes = 20'000;
  CDL_ASSIGN(const std::vector<Opened> others, openOthers(bench, choice));
  CDL_ASSIGN(std::vector<Party> parties, partiesOf(bench, others));
  std::vector<std::unique_ptr<Echo>> echoes;
  std::vector<cdl_memory_t*> x, y;
  for (size_t d = 0; d < parties.size(); ++d) {
    Party& party = parties[d];
    CDL_ASSIGN(echoes.emplace_back(), Echo::make(*party.bench, kBytes));
    CDL_ASSIGN(x.emplace_back(), party.bench->createWith(party.lane, pattern(kBytes, d)));
    CDL_ASSIGN(y.emplace_back(), party.bench->createWith(party.lane, pattern(kBytes, 100 + d)));
  }
  for (size_t d = 0; d < parties.size(); ++d)
    CDL_TRY(echoes[d]->submit(parties[d].lane, y[d], x[d]));
  for (size_t d = parties.size(); d-- > 0;)
    CDL_TRY(parties[d].lane.expect(fmt::format("y of {}", parties[d].name), y[d], 0,
                                   pattern(kBytes, d)));
  return Status::ok();
}

/// The one that is left has work that nobody waited for, and content.
Status closeOne(Bench& bench, const Choice& choice) {
  constexpr uint64_t kBytes = 50'000;
  CDL_ASSIGN(Opened first, openAgain(bench));
  CDL_ASSIGN(Opened second, openAgain(bench));
  Opened& closed = choice.at("closed") == "first" ? first : second;
  Bench& left = choice.at("closed") == "first" ? *second : *first;
  CDL_TRY(closed->usable());
  CDL_ASSIGN(const auto echo, Echo::make(left, kBytes));
  CDL_ASSIGN(Lane lane, left.lane());
  CDL_ASSIGN(cdl_memory_t * x, left.createWith(lane, pattern(kBytes, 1)));
  CDL_ASSIGN(cdl_memory_t * y, left.create(kBytes));
  CDL_TRY(echo->submit(lane, y, x));
  CDL_TRY(lane.signal(lane.next()));
  closed.reset();
  CDL_TRY(lane.sync());
  CDL_TRY(lane.expect("x of the device that is left", x, 0, pattern(kBytes, 1)));
  CDL_TRY(lane.expect("y of the device that is left", y, 0, pattern(kBytes, 1)));
  CDL_TRY(work(left, *echo, 2).context("after the other device was closed"));
  return bench.usable();
}

/// One thread opens and closes, the other one works.
Status opensMeanwhile(Bench& bench, const Choice&) {
  CDL_ASSIGN(const auto echo, Echo::make(bench, 5000));
  return onThreads(2, [&](size_t t) -> Status {
    for (uint64_t turn = 0; turn < 6; ++turn) {
      if (t == 0) {
        CDL_TRY(work(bench, *echo, turn));
        continue;
      }
      CDL_ASSIGN(const Opened other, openAgain(bench));
      CDL_TRY(other->usable());
    }
    return Status::ok();
  });
}

// ---- From one device to the other ----

Status throughHost(Bench& bench, const Choice& choice) {
  const uint64_t bytes = numberOf(choice, "bytes");
  CDL_ASSIGN(const std::vector<Opened> others, openOthers(bench, choice));
  CDL_ASSIGN(std::vector<Party> parties, partiesOf(bench, others));
  ByteVector content = pattern(bytes, 40);
  parties.push_back(parties.front()); // and back
  for (size_t d = 0; d < parties.size(); ++d) {
    Party& party = parties[d];
    CDL_ASSIGN(cdl_memory_t * to, party.bench->create(bytes + 64));
    CDL_TRY(party.lane.write(to, 64, content));
    CDL_ASSIGN(content, party.lane.read(to, 64, bytes));
    CDL_TRY(same(fmt::format("what went to {} and back", party.name), content, pattern(bytes, 40)));
  }
  return Status::ok();
}

/// Memory of one device, mapped, is bytes of the host to the other.
Status fromMapped(Bench& bench, const Choice& choice) {
  constexpr uint64_t kBytes = 3 * kPage;
  CDL_ASSIGN(const std::vector<Opened> others, openOthers(bench, choice));
  CDL_ASSIGN(Lane lane, bench.lane());
  CDL_ASSIGN(cdl_memory_t * ours, bench.createWith(lane, pattern(kBytes, 41)));
  CDL_TRY(lane.sync());
  CDL_ASSIGN(std::byte * mapped, bench.map(ours, 0, kBytes));
  const auto exchange = [&](Bench& other) -> Status {
    CDL_ASSIGN(Lane theirLane, other.lane());
    CDL_ASSIGN(cdl_memory_t * imported, other.import({mapped, kBytes}));
    CDL_ASSIGN(cdl_memory_t * theirs, other.create(kBytes));
    CDL_TRY(theirLane.copy(theirs, 0, imported, 0, kBytes));
    CDL_TRY(theirLane.sync());
    CDL_TRY(theirLane.expect("a copy of memory of another device", theirs, 0, pattern(kBytes, 41)));
    CDL_TRY(theirLane.write(theirs, 0, pattern(kPage, 42)));
    CDL_TRY(theirLane.copy(imported, kPage, theirs, 0, kPage));
    CDL_TRY(theirLane.sync());
    other.destroy(imported);
    CDL_TRY(lane.expect("what another device copied into memory of this one", ours, kPage,
                        pattern(kPage, 42)));
    CDL_TRY(lane.write(ours, 0, pattern(kBytes, 41)));
    return lane.sync();
  };
  Status status;
  for (const Opened& other : others)
    if (status) status = exchange(*other);
  if (const Status unmapped = bench.unmap(ours, mapped); status) status = unmapped;
  return status;
}

/// A region of the host that both devices use, one after the other.
Status sharedRegion(Bench& bench, const Choice& choice) {
  constexpr uint64_t kBytes = 2 * kPage + 100;
  CDL_ASSIGN(const std::vector<Opened> others, openOthers(bench, choice));
  CDL_ASSIGN(std::vector<Party> parties, partiesOf(bench, others));
  HostBytes region(kBytes, 43);
  std::vector<cdl_memory_t*> imported, own;
  for (size_t d = 0; d < parties.size(); ++d) {
    Party& party = parties[d];
    CDL_ASSIGN(imported.emplace_back(), party.bench->import(region.bytes()));
    CDL_ASSIGN(own.emplace_back(), party.bench->createWith(party.lane, pattern(kPage, 50 + d)));
    CDL_TRY(party.lane.sync());
  }
  for (size_t from = 0; from < parties.size(); ++from) {
    const ByteVector content = pattern(kPage, 50 + from);
    CDL_TRY(parties[from].lane.copy(imported[from], 100, own[from], 0, kPage));
    CDL_TRY(parties[from].lane.sync());
    region.expect(100, content);
    CDL_TRY(region.check(fmt::format("the region after {} wrote there", parties[from].name)));
    for (size_t to = 0; to < parties.size(); ++to) {
      Party& party = parties[to];
      CDL_ASSIGN(cdl_memory_t * copy, party.bench->create(kPage));
      CDL_TRY(party.lane.copy(copy, 0, imported[to], 100, kPage));
      CDL_TRY(party.lane.expect(fmt::format("what {} copied from the region", party.name), copy, 0,
                                content));
    }
  }
  return Status::ok();
}

// ---- Between memory spaces of one device ----

/// Those that hold what is copied to them, whoever runs: no scratchpads.
std::vector<uint32_t> ordinarySpaces(const Bench& bench) {
  std::vector<uint32_t> spaces;
  for (uint32_t s = 0; s < bench.target().spaces().size(); ++s)
    if (!(bench.target().spaces()[s].space.flags & (CDL_SPACE_LOCAL | CDL_SPACE_CONSTANTS)))
      spaces.push_back(s);
  return spaces;
}

/// Calls body(to, from) with each pair of ordinary spaces, in the direction asked for.
template <typename Body> Status onPairs(Bench& bench, const Choice& choice, Body&& body) {
  const std::vector<uint32_t> spaces = ordinarySpaces(bench);
  if (spaces.size() < 2) return bench.skip("the device declares one ordinary memory space");
  for (size_t high = 1; high < spaces.size(); ++high)
    for (size_t low = 0; low < high; ++low) {
      const bool goesOut = choice.at("direction") == "out";
      const uint32_t to = spaces[goesOut ? high : low];
      const uint32_t from = spaces[goesOut ? low : high];
      const auto& names = bench.target().spaces();
      CDL_TRY(body(to, from).context(
          fmt::format("from space '{}' to '{}'", names[from].name, names[to].name)));
    }
  return Status::ok();
}

/// A window of one buffer goes to another place of a buffer in the other space. Nothing else
/// changes.
Status copyBetween(Bench& bench, const Choice& choice) {
  struct Window {
    uint64_t to, from;
  };
  constexpr uint64_t kRoom = 160;
  const uint64_t bytes = numberOf(choice, "bytes");
  const std::map<std::string, Window, std::less<>> windows = {
      {"start", {0, 0}}, {"apart", {65, 32}}, {"end", {kRoom, kRoom}}, {"crossed", {kRoom, 1}}};
  const Window at = windows.at(choice.at("at"));
  return onPairs(bench, choice, [&](uint32_t toSpace, uint32_t fromSpace) -> Status {
    CDL_ASSIGN(Lane lane, bench.lane());
    CDL_ASSIGN(cdl_memory_t * to, bench.create(bytes + kRoom, toSpace));
    CDL_ASSIGN(cdl_memory_t * from, bench.create(bytes + kRoom, fromSpace));
    const ByteVector source = pattern(bytes + kRoom, 60);
    ByteVector expected = pattern(bytes + kRoom, 61);
    CDL_TRY(lane.write(from, 0, source));
    CDL_TRY(lane.write(to, 0, expected));
    CDL_TRY(lane.copy(to, at.to, from, at.from, bytes));
    std::copy_n(source.begin() + static_cast<ptrdiff_t>(at.from), bytes,
                expected.begin() + static_cast<ptrdiff_t>(at.to));
    CDL_TRY(lane.sync());
    CDL_TRY(lane.expect("the buffer that was copied to", to, 0, expected));
    return lane.expect("the buffer that was copied from", from, 0, source);
  });
}

/// From space to space and back, in one queue, while nobody waits.
Status thereAndBack(Bench& bench, const Choice& choice) {
  constexpr uint64_t kBytes = 10'000;
  return onPairs(bench, choice, [&](uint32_t far, uint32_t near) -> Status {
    CDL_ASSIGN(Lane lane, bench.lane());
    CDL_ASSIGN(cdl_memory_t * first, bench.create(kBytes, near));
    CDL_ASSIGN(cdl_memory_t * second, bench.create(kBytes, far));
    CDL_ASSIGN(cdl_memory_t * third, bench.create(kBytes, near));
    CDL_TRY(lane.write(first, 0, pattern(kBytes, 62)));
    CDL_TRY(lane.copy(second, 0, first, 0, kBytes));
    CDL_TRY(lane.write(first, 0, pattern(kBytes, 63)));
    CDL_TRY(lane.copy(third, 0, second, 0, kBytes));
    CDL_TRY(lane.write(second, 0, pattern(kBytes, 64)));
    CDL_TRY(lane.expect("what came back", third, 0, pattern(kBytes, 62)));
    return lane.expect("what was written behind it", second, 0, pattern(kBytes, 64));
  });
}

Status nothingBetween(Bench& bench, const Choice& choice) {
  return onPairs(bench, choice, [&](uint32_t toSpace, uint32_t fromSpace) -> Status {
    CDL_ASSIGN(Lane lane, bench.lane());
    CDL_ASSIGN(cdl_memory_t * to, bench.create(64, toSpace));
    CDL_ASSIGN(cdl_memory_t * from, bench.create(64, fromSpace));
    CDL_TRY(lane.write(to, 0, pattern(64, 65)));
    CDL_TRY(lane.write(from, 0, pattern(64, 66)));
    // Whether a copy of no bytes is an error is not said; it moves none.
    for (const uint64_t offset : {0, 8, 64})
      (void)ask(bench.table().queue_copy, lane.handle(), to, offset, from, offset, uint64_t{0});
    CDL_TRY(lane.expect("a buffer that 0 bytes were copied to", to, 0, pattern(64, 65)));
    return lane.expect("a buffer that 0 bytes were copied from", from, 0, pattern(64, 66));
  });
}

ProbeFamilies families() {
  const Axis beside{"beside", {"itself", "others"}}, direction{"direction", {"out", "back"}};
  return {
      {{"devices:open/",
        {{"each", each},
         {"many", many},
         {"capabilities", capabilitiesStay},
         {"options", optionsAreItsOwn},
         {"out_of_range", outOfRange}}},
       {0, 5}},
      {{"devices:together/",
        {{"own_memory", ownMemory},
         {"own_timelines", ownTimelines},
         {"at_once", atOnce},
         {"in_flight", inFlight}},
        {beside}},
       {0, 8}},
      {{"devices:together/", {{"opens_meanwhile", opensMeanwhile}}}, {0, 1}},
      {{"devices:close/", {{"one", closeOne}}, {{"closed", {"first", "second"}}}}, {0, 2}},
      {{"devices:move/",
        {{"through_host", throughHost}},
        {beside, {"bytes", {"1", "4099", "1048576"}}}},
       {0, 6}},
      {{"devices:move/", {{"mapped", fromMapped}, {"region", sharedRegion}}, {beside}}, {0, 4}},
      {{"devices:spaces/",
        {{"copy", copyBetween}},
        {direction,
         {"at", {"start", "apart", "end", "crossed"}},
         {"bytes", {"1", "4099", "65536"}}}},
       {0, 12}},
      {{"devices:spaces/",
        {{"there_and_back", thereAndBack}, {"nothing", nothingBetween}},
        {direction}},
       {0, 4}},
  };
}

} // namespace

Result<std::vector<Case>> deviceCases(const Selection& selection) {
  return expand(families(), selection);
}

} // namespace candela::conformance::tiers::devices
