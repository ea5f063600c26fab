// Timelines of queues at work, of either interface: what a value says is done, is done.
#include "conformance/tiers/async/async.h"

namespace candela::conformance::tiers::async {
namespace {

/// Whoever waits on another thread, and reads by another queue, sees all that was submitted before
/// the value.
Status neverEarly(Bench& bench, const Choice& choice) {
  constexpr uint64_t kRounds = 6;
  const uint64_t bytes = numberOf(choice, "bytes");
  CDL_ASSIGN(const auto echo, Echo::make(bench, bytes));
  CDL_ASSIGN(Task task, makeTask(bench, bytes, 1));
  CDL_ASSIGN(Lane reader, bench.lane());
  std::vector<cdl_memory_t*> z; // one for each round: the next one begins while it is read
  for (uint64_t round = 0; round < kRounds; ++round) {
    CDL_ASSIGN(z.emplace_back(), bench.createWith(reader, pattern(bytes, 90)));
  }
  CDL_TRY(reader.sync());
  const uint64_t before = task.done;
  return onThreads(2, [&](size_t t) -> Status {
    for (uint64_t round = 0; round < kRounds; ++round) {
      const ByteVector content = pattern(bytes, 100 + round);
      if (t == 0) {
        CDL_TRY(task.lane.write(task.x, 0, content));
        CDL_TRY(echo->submit(task.lane, task.y, task.x));
        CDL_TRY(task.lane.copy(z[round], 0, task.y, 0, bytes));
        CDL_TRY(task.lane.signal(before + round));
      } else {
        CDL_TRY(Lane(bench, task.lane.handle()).wait(before + round));
        CDL_TRY(reader.expect(fmt::format("what round {} signalled", round), z[round], 0, content));
      }
    }
    return Status::ok();
  });
}

/// Each value stands for the work before it, whoever waits for a later one meanwhile.
Status inSteps(Bench& bench, const Choice&) {
  constexpr uint64_t kSteps = 5, kBytes = 30'000;
  CDL_ASSIGN(Lane lane, bench.lane());
  CDL_ASSIGN(cdl_memory_t * source, bench.createWith(lane, pattern(kBytes, 2)));
  std::vector<cdl_memory_t*> targets;
  for (uint64_t step = 0; step < kSteps; ++step) {
    CDL_ASSIGN(targets.emplace_back(), bench.createWith(lane, pattern(kBytes, 3)));
  }
  CDL_TRY(lane.sync());
  const uint64_t before = lane.next();
  return onThreads(kSteps + 1, [&](size_t t) -> Status {
    if (t < kSteps) {
      CDL_ASSIGN(Lane reader, bench.lane());
      CDL_TRY(Lane(bench, lane.handle()).wait(before + t));
      return reader.expect(fmt::format("the buffer of step {}", t), targets[t], 0,
                           pattern(kBytes, 2));
    }
    for (uint64_t step = 0; step < kSteps; ++step) {
      CDL_TRY(lane.copy(targets[step], 0, source, 0, kBytes));
      CDL_TRY(lane.signal(before + step));
    }
    return Status::ok();
  });
}

/// Three queues, each fed by a thread that waits for the queue before it: what went in first comes
/// out, round by round.
Status handOver(Bench& bench, const Choice&) {
  constexpr uint64_t kStages = 3, kRounds = 6, kBytes = 5000;
  CDL_ASSIGN(const auto echo, Echo::make(bench, kBytes));
  std::vector<Lane> lanes;
  std::vector<std::vector<cdl_memory_t*>> buffers(kStages + 1); // by stage and round
  for (uint64_t s = 0; s <= kStages; ++s) {
    CDL_ASSIGN(const Lane lane, bench.lane());
    lanes.push_back(lane);
    for (uint64_t round = 0; round < kRounds; ++round) {
      CDL_ASSIGN(buffers[s].emplace_back(), bench.createWith(lanes[s], pattern(kBytes, 4 + s)));
    }
    CDL_TRY(lanes[s].sync());
  }
  constexpr uint64_t kFirst = 2; // sync() signalled 1
  return onThreads(kStages + 1, [&](size_t s) -> Status {
    for (uint64_t round = 0; round < kRounds; ++round) {
      if (s == 0) {
        CDL_TRY(lanes[0].write(buffers[0][round], 0, pattern(kBytes, 50 + round)));
      } else {
        CDL_TRY(Lane(bench, lanes[s - 1].handle()).wait(kFirst + round));
        CDL_TRY(echo->submit(lanes[s], buffers[s][round], buffers[s - 1][round]));
      }
      CDL_TRY(lanes[s].signal(kFirst + round));
    }
    if (s < kStages) return Status::ok();
    for (uint64_t round = 0; round < kRounds; ++round)
      CDL_TRY(lanes[s].expect(fmt::format("what came out in round {}", round), buffers[s][round], 0,
                              pattern(kBytes, 50 + round)));
    return Status::ok();
  });
}

/// A wait that ends without the value may be repeated, however often, and takes nothing away.
Status shortWaits(Bench& bench, const Choice& choice) {
  constexpr uint64_t kBytes = 4099;
  const uint64_t timeout = numberOf(choice, "timeout_ns");
  CDL_ASSIGN(const auto echo, Echo::make(bench, kBytes));
  CDL_ASSIGN(Task task, makeTask(bench, kBytes, 5));
  CDL_ASSIGN(const auto held, Held::on(bench));
  held->start([&] {
    const cdl_timeline_t waits[] = {held->gate()};
    return echo->execute(task.lane, task.y, task.x, waits, {task.lane.handle(), task.done});
  });
  for (int i = 0; i < 20; ++i)
    CDL_TRY(refused(fmt::format("queue_wait of {} ns for an execution that is held", timeout),
                    CDL_TIMEOUT,
                    ask(bench.table().queue_wait, task.lane.handle(), task.done, timeout)));
  CDL_TRY(held->join());
  CDL_TRY(task.lane.wait(task.done));
  CDL_TRY(task.lane.wait(task.done, 0).context("a value that was reached, with no time to wait"));
  return task.lane.expect("y after waits that timed out", task.y, 0, pattern(kBytes, 5));
}

/// Waits too short for the work, one behind the other, until one of them sees its end.
Status untilReached(Bench& bench, const Choice&) {
  constexpr uint64_t kBytes = 1 << 20, kShortNs = 1000, kMost = kPatienceNs / kShortNs;
  CDL_ASSIGN(const auto echo, Echo::make(bench, kBytes));
  CDL_ASSIGN(Task task, makeTask(bench, kBytes, 6));
  CDL_ASSIGN(Lane reader, bench.lane());
  return onThreads(2, [&](size_t t) -> Status {
    if (t == 0) {
      CDL_TRY(echo->submit(task.lane, task.y, task.x));
      return task.lane.signal(task.done);
    }
    Reply reply;
    for (uint64_t i = 0; i < kMost; ++i) {
      reply = ask(bench.table().queue_wait, task.lane.handle(), task.done, kShortNs);
      if (reply.code != CDL_TIMEOUT) break;
      CDL_TRY(refused("a short queue_wait", CDL_TIMEOUT, reply));
    }
    CDL_TRY(valid("the last of many short waits", reply));
    return reader.expect("y after a short wait that saw its end", task.y, 0, pattern(kBytes, 6));
  });
}

} // namespace

ProbeFamilies timelineFamilies() {
  return {
      {{"async:timeline/", {{"never_early", neverEarly}}, {{"bytes", {"64", "4099", "1048576"}}}},
       {0, 3}},
      {{"async:timeline/",
        {{"in_steps", inSteps}, {"hand_over", handOver}, {"until_reached", untilReached}}},
       {0, 3}},
      {{"async:timeline/",
        {{"short_waits", shortWaits}},
        {{"timeout_ns", {"0", "1000", "1000000"}}}},
       {0, 3}},
  };
}

} // namespace candela::conformance::tiers::async
