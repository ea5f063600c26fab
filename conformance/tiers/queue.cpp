// The tier `queue`: order, timelines, threads, and what is left of a queue after an error. Nothing
// here sleeps: threads meet at values of timelines.
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "conformance/suite.h"
#include "conformance/tiers/bench.h"

namespace candela::conformance::tiers {
namespace {

// ---- Order in one queue: nothing waits but the last read ----

struct Ordered {
  Lane lane;
  uint64_t bytes;
  std::vector<cdl_memory_t*> memory; ///< three, with other contents each
};
Result<Ordered> ordered(Bench& bench, const Choice& choice) {
  CDL_ASSIGN(Lane lane, bench.lane());
  Ordered made{lane, numberOf(choice, "bytes"), {}};
  for (uint64_t i = 0; i < 3; ++i) {
    CDL_ASSIGN(made.memory.emplace_back(), bench.createWith(lane, pattern(made.bytes, i)));
  }
  CDL_TRY(lane.sync());
  return made;
}

Status writeWriteRead(Bench& bench, const Choice& choice) {
  CDL_ASSIGN(Ordered at, ordered(bench, choice));
  for (uint64_t i = 10; i < 14; ++i) CDL_TRY(at.lane.write(at.memory[0], 0, pattern(at.bytes, i)));
  return at.lane.expect("the last of four writes", at.memory[0], 0, pattern(at.bytes, 13));
}

Status writeReused(Bench& bench, const Choice& choice) {
  CDL_ASSIGN(Ordered at, ordered(bench, choice));
  ByteVector host = pattern(at.bytes, 20);
  CDL_TRY(at.lane.write(at.memory[0], 0, host));
  std::ranges::fill(host, std::byte{0});
  return at.lane.expect("a write whose source was reused at once", at.memory[0], 0,
                        pattern(at.bytes, 20));
}

Status copyChain(Bench& bench, const Choice& choice) {
  CDL_ASSIGN(Ordered at, ordered(bench, choice));
  CDL_TRY(at.lane.write(at.memory[0], 0, pattern(at.bytes, 21)));
  CDL_TRY(at.lane.copy(at.memory[1], 0, at.memory[0], 0, at.bytes));
  CDL_TRY(at.lane.copy(at.memory[2], 0, at.memory[1], 0, at.bytes));
  CDL_TRY(at.lane.write(at.memory[0], 0, pattern(at.bytes, 22)));
  CDL_TRY(at.lane.copy(at.memory[1], 0, at.memory[0], 0, at.bytes));
  CDL_TRY(at.lane.expect("the copy of the copy", at.memory[2], 0, pattern(at.bytes, 21)));
  return at.lane.expect("the second copy", at.memory[1], 0, pattern(at.bytes, 22));
}

Status readThenWrite(Bench& bench, const Choice& choice) {
  CDL_ASSIGN(Ordered at, ordered(bench, choice));
  CDL_TRY(at.lane.write(at.memory[0], 0, pattern(at.bytes, 23)));
  CDL_ASSIGN(const ByteVector before, at.lane.read(at.memory[0], 0, at.bytes));
  CDL_TRY(at.lane.write(at.memory[0], 0, pattern(at.bytes, 24)));
  CDL_TRY(same("what was read before a write", before, pattern(at.bytes, 23)));
  return at.lane.expect("what was written after a read", at.memory[0], 0, pattern(at.bytes, 24));
}

Status writeRunRead(Bench& bench, const Choice& choice) {
  CDL_ASSIGN(const auto echo, Echo::make(bench, numberOf(choice, "bytes")));
  CDL_ASSIGN(Ordered at, ordered(bench, choice));
  CDL_TRY(at.lane.write(at.memory[0], 0, pattern(at.bytes, 25)));
  CDL_TRY(echo->submit(at.lane, at.memory[1], at.memory[0]));
  CDL_TRY(at.lane.write(at.memory[0], 0, pattern(at.bytes, 26)));
  CDL_TRY(at.lane.expect("y", at.memory[1], 0, pattern(at.bytes, 25)));
  return at.lane.expect("x", at.memory[0], 0, pattern(at.bytes, 26));
}

Status runRunRead(Bench& bench, const Choice& choice) {
  CDL_ASSIGN(const auto echo, Echo::make(bench, numberOf(choice, "bytes")));
  CDL_ASSIGN(Ordered at, ordered(bench, choice));
  CDL_TRY(echo->submit(at.lane, at.memory[1], at.memory[0]));
  CDL_TRY(echo->submit(at.lane, at.memory[2], at.memory[1]));
  return at.lane.expect("y of y", at.memory[2], 0, pattern(at.bytes, 0));
}

Status runCopyRun(Bench& bench, const Choice& choice) {
  CDL_ASSIGN(const auto echo, Echo::make(bench, numberOf(choice, "bytes")));
  CDL_ASSIGN(Ordered at, ordered(bench, choice));
  CDL_ASSIGN(cdl_memory_t * last, bench.create(at.bytes));
  CDL_TRY(echo->submit(at.lane, at.memory[1], at.memory[0]));
  CDL_TRY(at.lane.copy(at.memory[2], 0, at.memory[1], 0, at.bytes));
  CDL_TRY(echo->submit(at.lane, last, at.memory[2]));
  CDL_TRY(at.lane.sync());
  return at.lane.expect("y of a copy of y", last, 0, pattern(at.bytes, 0));
}

/// What a wait says is done can be seen by another queue, and through a map.
Status seenByOthers(Bench& bench, const Choice& choice) {
  CDL_ASSIGN(Ordered at, ordered(bench, choice));
  CDL_ASSIGN(Lane other, bench.lane());
  for (uint64_t round = 0; round < 4; ++round) {
    CDL_TRY(at.lane.write(at.memory[0], 0, pattern(at.bytes, 30 + round)));
    CDL_TRY(at.lane.copy(at.memory[1], 0, at.memory[0], 0, at.bytes));
    CDL_TRY(at.lane.sync());
    CDL_TRY(other.expect(fmt::format("round {}, read by another queue after a wait", round),
                         at.memory[1], 0, pattern(at.bytes, 30 + round)));
  }
  return Status::ok();
}

Status nothingToMove(Bench& bench, const Choice&) {
  CDL_ASSIGN(Lane lane, bench.lane());
  const ByteVector content = pattern(64, 1);
  CDL_ASSIGN(cdl_memory_t * memory, bench.createWith(lane, content));
  CDL_TRY(lane.write(memory, 8, {}));
  CDL_TRY(lane.read(memory, 64, 0).status());
  // Of a copy nothing is said: it may be an error.
  (void)ask(bench.table().queue_copy, lane.handle(), memory, uint64_t{0}, memory, uint64_t{8},
            uint64_t{0});
  return lane.expect("a buffer that 0 bytes were written to", memory, 0, content);
}

// ---- Timelines ----

Status timesOut(Lane& lane, Bench& bench, uint64_t value, uint64_t timeoutNs) {
  const auto start = std::chrono::steady_clock::now();
  const Reply reply = ask(bench.table().queue_wait, lane.handle(), value, timeoutNs);
  const auto waited = std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
  const std::string who =
      fmt::format("queue_wait of {} ns for a value that nobody signalled", timeoutNs);
  CDL_TRY(refused(who, CDL_TIMEOUT, reply));
  if (static_cast<uint64_t>(waited) >= timeoutNs) return Status::ok();
  return failure(Code::mismatch, "{}: gave up after {} ns", who, waited);
}

Status reached(Bench& bench, const Choice&) {
  CDL_ASSIGN(Lane lane, bench.lane());
  CDL_TRY(lane.signal(1));
  CDL_TRY(lane.wait(1));
  CDL_TRY(lane.wait(1));
  return lane.wait(1, 0).context("a value that was reached, with no time to wait");
}

Status zero(Bench& bench, const Choice&) {
  CDL_ASSIGN(Lane lane, bench.lane());
  CDL_TRY(lane.wait(0, 0).context("the value that a timeline begins with"));
  return timesOut(lane, bench, 1, 0);
}

Status earlierValues(Bench& bench, const Choice&) {
  CDL_ASSIGN(Lane lane, bench.lane());
  CDL_TRY(lane.signal(5));
  for (const uint64_t value : {5, 3, 1, 4}) CDL_TRY(lane.wait(value));
  return Status::ok();
}

Status risingValues(Bench& bench, const Choice&) {
  CDL_ASSIGN(Lane lane, bench.lane());
  for (const uint64_t value :
       {uint64_t{1}, uint64_t{2}, uint64_t{1000}, uint64_t{1} << 32, uint64_t{1} << 63}) {
    CDL_TRY(lane.signal(value));
    CDL_TRY(lane.wait(value).context(fmt::format("value {}", value)));
  }
  return Status::ok();
}

Status waitForEver(Bench& bench, const Choice&) {
  CDL_ASSIGN(Lane lane, bench.lane());
  CDL_TRY(lane.signal(1));
  CDL_TRY(lane.wait(1, UINT64_MAX));
  return lane.wait(1, UINT64_MAX - 1);
}

Status unreached(Bench& bench, const Choice&) {
  CDL_ASSIGN(Lane lane, bench.lane());
  CDL_TRY(timesOut(lane, bench, 1, 2'000'000));
  CDL_TRY(lane.signal(3));
  CDL_TRY(timesOut(lane, bench, 4, 2'000'000));
  return timesOut(lane, bench, UINT64_MAX, 2'000'000);
}

Status unreachedAtOnce(Bench& bench, const Choice&) {
  CDL_ASSIGN(Lane lane, bench.lane());
  CDL_TRY(lane.signal(7));
  for (int i = 0; i < 100; ++i) CDL_TRY(timesOut(lane, bench, 8, 0));
  return lane.wait(7);
}

Status reachedAfterTimeout(Bench& bench, const Choice&) {
  CDL_ASSIGN(Lane lane, bench.lane());
  for (uint64_t value = 1; value <= 5; ++value) {
    CDL_TRY(timesOut(lane, bench, value, 100'000));
    CDL_TRY(lane.signal(value));
    CDL_TRY(lane.wait(value));
  }
  const ByteVector content = pattern(1000, 40);
  CDL_ASSIGN(cdl_memory_t * memory, bench.createWith(lane, content));
  return lane.expect("a write after waits that timed out", memory, 0, content);
}

Status waitElsewhere(Bench& bench, const Choice&) {
  CDL_ASSIGN(Lane lane, bench.lane());
  for (uint64_t value = 1; value <= 50; ++value) {
    std::atomic<bool> asked = false, told = false;
    Status end;
    std::jthread waiter([&] {
      asked = true;
      asked.notify_one();
      end = Lane(bench, lane.handle()).wait(value);
      if (end && !told)
        end = failure(Code::mismatch, "queue_wait for {} came back before it was signalled", value);
    });
    asked.wait(false);
    told = true;
    const Status signalled = lane.signal(value);
    waiter.join();
    CDL_TRY(signalled);
    CDL_TRY(end);
  }
  return Status::ok();
}

Status manyWaiters(Bench& bench, const Choice&) {
  CDL_ASSIGN(Lane lane, bench.lane());
  std::atomic<uint64_t> told = 0;
  return onThreads(9, [&](size_t i) -> Status {
    if (i == 8) {
      for (uint64_t value = 1; value <= 8; ++value) {
        told = value;
        CDL_TRY(lane.signal(value));
      }
      return Status::ok();
    }
    const uint64_t value = 8 - i;
    CDL_TRY(Lane(bench, lane.handle()).wait(value));
    return told >= value
               ? Status::ok()
               : failure(Code::mismatch, "queue_wait for {} came back when {} was signalled", value,
                         told.load());
  });
}

/// The host promises rising values; where it did not, what was reached stays reached.
Status fallingValues(Bench& bench, const Choice&) {
  CDL_ASSIGN(Lane lane, bench.lane());
  CDL_TRY(lane.signal(5));
  CDL_TRY(lane.wait(5));
  (void)ask(bench.table().queue_signal, lane.handle(), uint64_t{3});
  return bench.usable();
}

// ---- Several queues ----

Status ownTimelines(Bench& bench, const Choice&) {
  CDL_ASSIGN(Lane first, bench.lane());
  CDL_ASSIGN(Lane second, bench.lane());
  CDL_TRY(first.signal(10));
  CDL_TRY(first.wait(10));
  CDL_TRY(timesOut(second, bench, 1, 100'000));
  CDL_TRY(second.signal(1));
  CDL_TRY(second.wait(1));
  return timesOut(second, bench, 2, 0);
}

Status ownWork(Bench& bench, const Choice&) {
  constexpr uint64_t kQueues = 6, kBytes = 20000;
  std::vector<Lane> lanes;
  std::vector<cdl_memory_t*> from, to;
  for (uint64_t q = 0; q < kQueues; ++q) {
    CDL_ASSIGN(const Lane lane, bench.lane());
    lanes.push_back(lane);
    CDL_ASSIGN(from.emplace_back(), bench.create(kBytes));
    CDL_ASSIGN(to.emplace_back(), bench.create(kBytes));
  }
  for (uint64_t round = 0; round < 8; ++round)
    for (uint64_t q = 0; q < kQueues; ++q) {
      CDL_TRY(lanes[q].write(from[q], 0, pattern(kBytes, round * 100 + q)));
      CDL_TRY(lanes[q].copy(to[q], 0, from[q], 0, kBytes));
    }
  for (uint64_t q = 0; q < kQueues; ++q)
    CDL_TRY(lanes[q].expect(fmt::format("queue {}", q), to[q], 0, pattern(kBytes, 700 + q)));
  return Status::ok();
}

Status handOver(Bench& bench, const Choice&) {
  CDL_ASSIGN(Lane first, bench.lane());
  CDL_ASSIGN(Lane second, bench.lane());
  CDL_ASSIGN(cdl_memory_t * a, bench.create(50000));
  CDL_ASSIGN(cdl_memory_t * b, bench.create(50000));
  for (uint64_t round = 0; round < 20; ++round) {
    const ByteVector content = pattern(50000, round);
    CDL_TRY(first.write(a, 0, content));
    CDL_TRY(first.sync());
    CDL_TRY(second.copy(b, 0, a, 0, 50000));
    CDL_TRY(second.sync());
    CDL_TRY(first.expect(fmt::format("round {}", round), b, 0, content));
  }
  return Status::ok();
}

Status destroyOne(Bench& bench, const Choice&) {
  CDL_ASSIGN(Lane first, bench.lane());
  CDL_ASSIGN(Lane second, bench.lane());
  const ByteVector content = pattern(5000, 50);
  CDL_ASSIGN(cdl_memory_t * memory, bench.createWith(second, content));
  CDL_TRY(first.sync());
  bench.destroy(first);
  CDL_TRY(second.sync());
  return second.expect("the queue that is left", memory, 0, content);
}

/// As the host does after a failure: nobody waited.
Status destroyBusy(Bench& bench, const Choice&) {
  CDL_ASSIGN(const auto echo, Echo::make(bench, 100000));
  CDL_ASSIGN(cdl_memory_t * x, bench.create(100000));
  CDL_ASSIGN(cdl_memory_t * y, bench.create(100000));
  for (uint64_t round = 0; round < 10; ++round) {
    CDL_ASSIGN(Lane lane, bench.lane());
    CDL_TRY(lane.write(x, 0, pattern(100000, round)));
    CDL_TRY(echo->submit(lane, y, x));
    CDL_TRY(lane.signal(1));
    bench.destroy(lane);
  }
  return bench.usable();
}

Status manyQueues(Bench& bench, const Choice&) {
  std::vector<Lane> lanes;
  std::vector<cdl_memory_t*> memory;
  for (uint64_t q = 0; q < 64; ++q) {
    CDL_ASSIGN(Lane lane, bench.lane());
    CDL_ASSIGN(memory.emplace_back(), bench.createWith(lane, pattern(100, q)));
    lanes.push_back(lane);
  }
  for (uint64_t q = 0; q < lanes.size(); ++q)
    CDL_TRY(lanes[q].expect(fmt::format("queue {} of 64", q), memory[q], 0, pattern(100, q)));
  return Status::ok();
}

/// Each thread with a queue and buffers of its own, all made and destroyed there.
Status transfersOnThreads(Bench& bench, const Choice&) {
  return onThreads(8, [&](size_t t) -> Status {
    CDL_ASSIGN(Lane lane, bench.lane());
    for (uint64_t round = 0; round < 40; ++round) {
      const ByteVector content = pattern(3000 + 100 * round, t * 1000 + round);
      CDL_ASSIGN(cdl_memory_t * from, bench.createWith(lane, content));
      CDL_ASSIGN(cdl_memory_t * to, bench.create(content.size()));
      CDL_TRY(lane.copy(to, 0, from, 0, content.size()));
      if (round % 2) CDL_TRY(lane.sync());
      CDL_TRY(lane.expect(fmt::format("round {}", round), to, 0, content));
      bench.destroy(from);
      bench.destroy(to);
    }
    return Status::ok();
  });
}

Status timelinesOnThreads(Bench& bench, const Choice&) {
  return onThreads(8, [&](size_t) -> Status {
    CDL_ASSIGN(Lane lane, bench.lane());
    for (uint64_t value = 1; value <= 200; ++value) {
      CDL_TRY(lane.signal(value));
      CDL_TRY(lane.wait(value));
    }
    return timesOut(lane, bench, 201, 0);
  });
}

/// One Program, other bindings on each thread.
Status runsOnThreads(Bench& bench, const Choice&) {
  CDL_ASSIGN(const auto echo, Echo::make(bench, 4096));
  return onThreads(6, [&](size_t t) -> Status {
    CDL_ASSIGN(Lane lane, bench.lane());
    CDL_ASSIGN(cdl_memory_t * x, bench.create(4096));
    CDL_ASSIGN(cdl_memory_t * y, bench.create(4096));
    for (uint64_t round = 0; round < 40; ++round) {
      const ByteVector content = pattern(4096, t * 1000 + round);
      CDL_TRY(lane.write(x, 0, content));
      CDL_TRY(echo->submit(lane, y, x));
      CDL_TRY(lane.expect(fmt::format("round {}", round), y, 0, content));
    }
    return Status::ok();
  });
}

/// One Program, many bindings in flight on one queue.
Status runsInFlight(Bench& bench, const Choice&) {
  CDL_ASSIGN(const auto echo, Echo::make(bench, 4096));
  CDL_ASSIGN(Lane lane, bench.lane());
  std::vector<cdl_memory_t*> x, y;
  for (uint64_t i = 0; i < 16; ++i) {
    CDL_ASSIGN(x.emplace_back(), bench.createWith(lane, pattern(4096, i)));
    CDL_ASSIGN(y.emplace_back(), bench.create(4096));
  }
  for (uint64_t i = 0; i < x.size(); ++i) CDL_TRY(echo->submit(lane, y[i], x[i]));
  CDL_TRY(lane.sync());
  for (uint64_t i = 0; i < x.size(); ++i)
    CDL_TRY(lane.expect(fmt::format("execution {}", i), y[i], 0, pattern(4096, i)));
  return Status::ok();
}

// ---- execute with timelines: the program API ----

struct Executed {
  std::unique_ptr<Echo> echo;
  Lane lane, other;
  ByteVector content;
  cdl_memory_t *x, *y;
};
Result<Executed> executed(Bench& bench) {
  if (!bench.compiles()) return bench.skip("the device compiles no programs");
  CDL_ASSIGN(auto echo, Echo::make(bench, 10000));
  CDL_ASSIGN(Lane lane, bench.lane());
  CDL_ASSIGN(Lane other, bench.lane());
  ByteVector content = pattern(10000, 60);
  CDL_ASSIGN(cdl_memory_t * x, bench.createWith(lane, content));
  CDL_ASSIGN(cdl_memory_t * y, bench.createWith(lane, pattern(10000, 61)));
  CDL_TRY(lane.sync());
  return Executed{std::move(echo), lane, other, std::move(content), x, y};
}

Status executeSignals(Bench& bench, const Choice&) {
  CDL_ASSIGN(Executed at, executed(bench));
  const uint64_t done = at.lane.next();
  CDL_TRY(at.echo->execute(at.lane, at.y, at.x, {}, {at.lane.handle(), done}));
  CDL_TRY(at.lane.wait(done));
  CDL_TRY(timesOut(at.lane, bench, done + 1, 0));
  return at.other.expect("y after the wait, by another queue", at.y, 0, at.content);
}

Status executeSignalsNothing(Bench& bench, const Choice&) {
  CDL_ASSIGN(Executed at, executed(bench));
  CDL_TRY(at.echo->execute(at.lane, at.y, at.x, {}, {nullptr, 0}));
  CDL_TRY(at.lane.sync());
  return at.other.expect("y", at.y, 0, at.content);
}

Status executeAfterReached(Bench& bench, const Choice&) {
  CDL_ASSIGN(Executed at, executed(bench));
  CDL_TRY(at.other.signal(4));
  const cdl_timeline_t waits[] = {{at.other.handle(), 3}, {at.other.handle(), 4}};
  const uint64_t done = at.lane.next();
  CDL_TRY(at.echo->execute(at.lane, at.y, at.x, waits, {at.lane.handle(), done}));
  CDL_TRY(at.lane.wait(done));
  return at.lane.expect("y", at.y, 0, at.content);
}

/// x gets its content when the execution has been submitted, or is about to be; it must not begin
/// before.
Status executeWaits(Bench& bench, const Choice&) {
  CDL_ASSIGN(Executed at, executed(bench));
  for (uint64_t round = 1; round <= 10; ++round) {
    const ByteVector content = pattern(10000, 70 + round);
    const uint64_t done = at.lane.next();
    const cdl_timeline_t waits[] = {{at.other.handle(), round}};
    std::atomic<bool> asked = false;
    Status end;
    std::jthread submitter([&] {
      asked = true;
      asked.notify_one();
      end = at.echo->execute(at.lane, at.y, at.x, waits, {at.lane.handle(), done});
    });
    asked.wait(false);
    Status told = at.other.write(at.x, 0, content);
    // Without the signal the submitter might wait for ever.
    if (const Status signalled = at.other.signal(round); told) told = signalled;
    submitter.join();
    CDL_TRY(told);
    CDL_TRY(end);
    CDL_TRY(at.lane.wait(done));
    CDL_TRY(at.lane.expect(fmt::format("round {}", round), at.y, 0, content));
  }
  return Status::ok();
}

Status executeSignalsAnother(Bench& bench, const Choice&) {
  CDL_ASSIGN(Executed at, executed(bench));
  CDL_TRY(at.echo->execute(at.lane, at.y, at.x, {}, {at.other.handle(), 9}));
  CDL_TRY(at.other.wait(9));
  return at.other.expect("y after the wait, by the queue that was signalled", at.y, 0, at.content);
}

/// Each execution waits for the one before it on the other queue.
Status executeInTurns(Bench& bench, const Choice&) {
  CDL_ASSIGN(Executed at, executed(bench));
  CDL_ASSIGN(cdl_memory_t * z, bench.create(10000));
  for (uint64_t round = 0; round < 8; ++round) {
    const ByteVector content = pattern(10000, 80 + round);
    CDL_TRY(at.lane.write(at.x, 0, content));
    const uint64_t first = at.lane.next(), second = at.other.next();
    CDL_TRY(at.echo->execute(at.lane, at.y, at.x, {}, {at.lane.handle(), first}));
    const cdl_timeline_t waits[] = {{at.lane.handle(), first}};
    CDL_TRY(at.echo->execute(at.other, z, at.y, waits, {at.other.handle(), second}));
    CDL_TRY(at.other.wait(second));
    CDL_TRY(at.other.expect(fmt::format("round {}", round), z, 0, content));
  }
  return Status::ok();
}

// ---- After errors ----

/// A queue goes on after what was refused.
template <typename Refused> Status goesOn(Bench& bench, Refused&& refuse) {
  CDL_ASSIGN(Lane lane, bench.lane());
  const ByteVector content = pattern(512, 90);
  CDL_ASSIGN(cdl_memory_t * memory, bench.create(512));
  CDL_TRY(lane.write(memory, 0, content));
  for (int i = 0; i < 3; ++i) CDL_TRY(refuse(lane, memory));
  CDL_TRY(lane.expect("after a refusal", memory, 0, content));
  const ByteVector fresh = pattern(512, 91);
  CDL_TRY(lane.write(memory, 0, fresh));
  CDL_TRY(lane.sync());
  return lane.expect("written after a refusal", memory, 0, fresh);
}

Status afterBadWrite(Bench& bench, const Choice&) {
  return goesOn(bench, [&](Lane& lane, cdl_memory_t* memory) {
    const ByteVector host(64);
    return refused("queue_write behind the end", CDL_INVALID_ARGUMENT,
                   ask(bench.table().queue_write, lane.handle(), memory, uint64_t{500},
                       static_cast<const void*>(host.data()), uint64_t{64}));
  });
}
Status afterBadRead(Bench& bench, const Choice&) {
  return goesOn(bench, [&](Lane& lane, cdl_memory_t* memory) {
    ByteVector host(64);
    return refused("queue_read behind the end", CDL_INVALID_ARGUMENT,
                   ask(bench.table().queue_read, lane.handle(), memory, uint64_t{500},
                       static_cast<void*>(host.data()), uint64_t{64}));
  });
}
Status afterBadCopy(Bench& bench, const Choice&) {
  return goesOn(bench, [&](Lane& lane, cdl_memory_t* memory) {
    return refused("queue_copy behind the end", CDL_INVALID_ARGUMENT,
                   ask(bench.table().queue_copy, lane.handle(), memory, uint64_t{500}, memory,
                       uint64_t{0}, uint64_t{64}));
  });
}
Status afterTimeout(Bench& bench, const Choice&) {
  return goesOn(bench,
                [&](Lane& lane, cdl_memory_t*) { return timesOut(lane, bench, 1000, 1000); });
}

/// A binding that cannot be is refused, and nothing around it changes.
Status afterBadBinding(Bench& bench, const Choice& choice) {
  CDL_ASSIGN(const auto echo, Echo::make(bench, 512));
  return goesOn(bench, [&](Lane& lane, cdl_memory_t*) -> Status {
    const ByteVector guard = pattern(1024, 92);
    CDL_ASSIGN(cdl_memory_t * x, bench.createWith(lane, pattern(1024, 93)));
    CDL_ASSIGN(cdl_memory_t * y, bench.createWith(lane, guard));
    CDL_TRY(lane.sync());
    std::vector<cdl_binding_t> buffers = {{}, {x, 0, 512}, {y, 0, 512}};
    const std::string& how = choice.at("binding");
    if (how == "small") buffers[2].bytes = 511;
    if (how == "missing") buffers[2].memory = nullptr;
    if (how == "outside") buffers[2].offset = 1024 - 512 + bench.alignment();
    if (how == "overflow") buffers[2].offset = UINT64_MAX - bench.alignment() + 1;
    if (how == "misaligned") buffers[2].offset = 1;
    if (how == "misaligned" && bench.alignment() == 1) return bench.skip("every offset is aligned");
    if (how == "none") buffers.resize(1);
    if (how != "none" && echo->executable() && bench.table().executable_scratch)
      if (const uint64_t bytes = bench.table().executable_scratch(echo->executable())) {
        CDL_ASSIGN(cdl_memory_t * scratch, bench.create(bytes, 0, 64));
        buffers.push_back({scratch, 0, bytes});
      }
    cdl_bindings_t bindings{CDL_HEADER(cdl_bindings_t), static_cast<uint32_t>(buffers.size()), 0,
                            buffers.data()};
    const int64_t loops[CDL_MAX_LOOP_NESTING] = {};
    const Reply reply =
        echo->executable()
            ? ask(bench.table().execute, lane.handle(), echo->executable(), &bindings,
                  static_cast<const cdl_timeline_t*>(nullptr), 0u, cdl_timeline_t{nullptr, 0})
            : ask(bench.table().run, lane.handle(), echo->image(), 1u, 1u, loops, &bindings);
    CDL_TRY(refused(fmt::format("a binding that is {}", how), CDL_INVALID_ARGUMENT, reply));
    return lane.expect("the buffer of a binding that was refused", y, 0, guard);
  });
}

// ---- Cancel ----

Status cancelIdle(Bench& bench, const Choice&) {
  if (!bench.table().cancel) return bench.skip("queues cannot be cancelled");
  return goesOn(bench, [&](Lane& lane, cdl_memory_t*) -> Status {
    CDL_TRY(lane.sync());
    return valid("cancel of a queue with nothing to do", ask(bench.table().cancel, lane.handle()));
  });
}

/// The work may be done already; if it is not, the wait says so and does not hang.
Status cancelBusy(Bench& bench, const Choice&) {
  if (!bench.table().cancel) return bench.skip("queues cannot be cancelled");
  CDL_ASSIGN(const auto echo, Echo::make(bench, 100000));
  CDL_ASSIGN(Lane lane, bench.lane());
  CDL_ASSIGN(cdl_memory_t * x, bench.createWith(lane, pattern(100000, 95)));
  CDL_ASSIGN(cdl_memory_t * y, bench.create(100000));
  for (int i = 0; i < 20; ++i) CDL_TRY(echo->submit(lane, y, x));
  CDL_TRY(lane.signal(1));
  CDL_TRY(valid("cancel", ask(bench.table().cancel, lane.handle())));
  for (int i = 0; i < 2; ++i) {
    const Reply reply = ask(bench.table().queue_wait, lane.handle(), uint64_t{1}, kPatienceNs);
    if (reply.code != CDL_OK) CDL_TRY(refused("queue_wait after cancel", CDL_CANCELLED, reply));
  }
  bench.destroy(lane);
  return bench.usable();
}

/// The order of work on one queue, and its timeline.
ProbeFamilies orderFamilies() {
  return {
      {{"queue:order/",
        {{"write_write_read", writeWriteRead},
         {"write_reused", writeReused},
         {"copy_chain", copyChain},
         {"read_then_write", readThenWrite},
         {"write_run_read", writeRunRead},
         {"run_run_read", runRunRead},
         {"run_copy_run", runCopyRun},
         {"seen_by_others", seenByOthers}},
        {{"bytes", {"4", "4099", "1048576"}}}},
       {0, 24}},
      {{"queue:order/", {{"nothing_to_move", nothingToMove}}}, {0, 1}},
      {{"queue:timeline/",
        {{"zero", zero},
         {"reached", reached},
         {"earlier_values", earlierValues},
         {"rising_values", risingValues},
         {"falling_values", fallingValues},
         {"wait_for_ever", waitForEver},
         {"unreached", unreached},
         {"unreached_at_once", unreachedAtOnce},
         {"reached_after_timeout", reachedAfterTimeout},
         {"wait_elsewhere", waitElsewhere},
         {"many_waiters", manyWaiters}}},
       {0, 11}},
  };
}

/// Several queues, threads, and runs in flight.
ProbeFamilies concurrencyFamilies() {
  return {
      {{"queue:several/",
        {{"own_timelines", ownTimelines},
         {"own_work", ownWork},
         {"hand_over", handOver},
         {"destroy_one", destroyOne},
         {"destroy_busy", destroyBusy},
         {"many", manyQueues}}},
       {0, 6}},
      {{"queue:threads/",
        {{"transfers", transfersOnThreads},
         {"timelines", timelinesOnThreads},
         {"runs", runsOnThreads}}},
       {0, 3}},
      {{"queue:run/", {{"in_flight", runsInFlight}}}, {0, 1}},
      {{"queue:execute/",
        {{"signals", executeSignals},
         {"signals_nothing", executeSignalsNothing},
         {"after_reached", executeAfterReached},
         {"waits", executeWaits},
         {"signals_another", executeSignalsAnother},
         {"in_turns", executeInTurns}}},
       {0, 6}},
  };
}

/// Queues on which something failed or was cancelled.
ProbeFamilies failureFamilies() {
  return {
      {{"queue:after_error/",
        {{"write", afterBadWrite},
         {"read", afterBadRead},
         {"copy", afterBadCopy},
         {"timeout", afterTimeout}}},
       {0, 4}},
      {{"queue:after_error/",
        {{"run", afterBadBinding}},
        {{"binding", {"small", "missing", "outside", "overflow", "misaligned", "none"}}}},
       {0, 6}},
      {{"queue:cancel/", {{"idle", cancelIdle}, {"busy", cancelBusy}}}, {0, 2}},
  };
}

} // namespace

Result<std::vector<Case>> queueCases(const Selection& selection) {
  std::vector<Case> all;
  for (const ProbeFamilies& families : {orderFamilies(), concurrencyFamilies(), failureFamilies()})
    for (Case& one : expand(families, selection)) all.push_back(std::move(one));
  return all;
}

} // namespace candela::conformance::tiers
