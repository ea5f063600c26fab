// Profiles of queues that work beside others, or that wait: the records are those of the queue's
// own executions.
#include "conformance/tiers/async/async.h"

namespace candela::conformance::tiers::async {
namespace {

Status needsProfile(Bench& bench) {
  if (bench.table().profile_begin && bench.table().profile_end) return Status::ok();
  return bench.skip("the device times no instructions");
}

Status beginProfile(Bench& bench, const Lane& lane) {
  return valid("profile_begin", ask(bench.table().profile_begin, lane.handle()));
}

/// How many records there are; each is of the image.
Result<uint32_t> endProfile(Bench& bench, const Echo& echo, const Lane& lane) {
  constexpr uint32_t kCapacity = 4096;
  std::vector<cdl_profile_record_t> records(kCapacity);
  uint32_t count = 0;
  CDL_TRY(valid("profile_end",
                ask(bench.table().profile_end, lane.handle(), records.data(), kCapacity, &count)));
  for (uint32_t i = 0; i < std::min(count, kCapacity); ++i) {
    const cdl_profile_record_t& record = records[i];
    if (record.instr >= echo.image()->instrs.count)
      return failure(Code::mismatch, "record {} is of instruction {} of {}", i, record.instr,
                     echo.image()->instrs.count - 1);
    if (record.end_ns < record.start_ns)
      return failure(Code::mismatch, "record {} ends {} ns before it begins", i,
                     record.start_ns - record.end_ns);
  }
  return count;
}

/// Runs in a profile of their own.
Result<uint32_t> profiled(Bench& bench, Echo& echo, Task& task, uint64_t runs) {
  CDL_TRY(beginProfile(bench, task.lane));
  for (uint64_t run = 0; run < runs; ++run) CDL_TRY(echo.submit(task.lane, task.y, task.x));
  CDL_TRY(task.lane.sync());
  return endProfile(bench, echo, task.lane);
}

Status expectCount(std::string_view who, uint32_t count, uint32_t expected) {
  if (count == expected) return Status::ok();
  return failure(Code::mismatch, "{}: {} records, {} when it is alone", who, count, expected);
}

/// Another queue works, without a profile or with its own: no record strays.
Status profileBeside(Bench& bench, const Choice& choice) {
  CDL_TRY(needsProfile(bench));
  CDL_ASSIGN(const auto echo, Echo::make(bench, kTaskBytes));
  CDL_ASSIGN(Task first, makeTask(bench, kTaskBytes, 1));
  CDL_ASSIGN(Task second, makeTask(bench, kTaskBytes, 2));
  CDL_ASSIGN(const uint32_t three, profiled(bench, *echo, first, 3));
  CDL_ASSIGN(const uint32_t seven, profiled(bench, *echo, second, 7));
  if (three == 0 || seven == 0) return failure(Code::mismatch, "a profile of runs has no records");
  const bool hasOwn = choice.at("other") == "profiled";
  CDL_TRY(beginProfile(bench, first.lane));
  if (hasOwn) CDL_TRY(beginProfile(bench, second.lane));
  CDL_TRY(onThreads(2, [&](size_t t) -> Status {
    Task& task = t == 0 ? first : second;
    for (int run = 0; run < (t == 0 ? 3 : 7); ++run)
      CDL_TRY(echo->submit(task.lane, task.y, task.x));
    return task.lane.sync();
  }));
  CDL_ASSIGN(const uint32_t count, endProfile(bench, *echo, first.lane));
  CDL_TRY(expectCount("a profile beside another queue", count, three));
  if (!hasOwn) return Status::ok();
  CDL_ASSIGN(const uint32_t other, endProfile(bench, *echo, second.lane));
  return expectCount("a profile beside another one", other, seven);
}

/// profile_end comes while the work waits, or behind it where the submission blocks: its records
/// are there.
Status profileHeld(Bench& bench, const Choice&) {
  CDL_TRY(needsProfile(bench));
  CDL_ASSIGN(const auto echo, Echo::make(bench, kTaskBytes));
  CDL_ASSIGN(Task task, makeTask(bench, kTaskBytes, 3));
  CDL_ASSIGN(const uint32_t expected, profiled(bench, *echo, task, 2));
  task.done = task.lane.next();
  uint32_t count = 0;
  CDL_ASSIGN(const auto held, Held::on(bench));
  held->start([&]() -> Status {
    CDL_TRY(beginProfile(bench, task.lane));
    for (int run = 0; run < 2; ++run) {
      const cdl_timeline_t waits[] = {held->gate()};
      const cdl_timeline_t done = {task.lane.handle(), task.done + static_cast<uint64_t>(run)};
      CDL_TRY(echo->execute(task.lane, task.y, task.x, waits, done));
    }
    CDL_ASSIGN(count, endProfile(bench, *echo, task.lane));
    return Status::ok();
  });
  CDL_TRY(
      notReached(bench, task.lane, task.done, "the wait for a profiled execution that is held"));
  CDL_TRY(held->join());
  CDL_TRY(expectCount("a profile of executions that were held", count, expected));
  CDL_TRY(task.lane.wait(task.done + 1));
  return task.lane.expect("y", task.y, 0, pattern(kTaskBytes, 3));
}

} // namespace

ProbeFamilies profileFamilies() {
  return {
      {{"async:profile/", {{"beside", profileBeside}}, {{"other", {"unprofiled", "profiled"}}}},
       {0, 2}},
      {{"async:profile/", {{"held", profileHeld}}}, {0, 1}},
  };
}

} // namespace candela::conformance::tiers::async
