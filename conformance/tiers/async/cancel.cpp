// Work that nobody wants any more: cancel, and queues that are destroyed with work on them. What
// was given up says so for good, nobody waits for it, and its memory is the host's again once the
// queue is gone.
#include "conformance/tiers/async/async.h"

namespace candela::conformance::tiers::async {
namespace {

Status cancel(Bench& bench, const Lane& lane) {
  return valid("cancel", ask(bench.table().cancel, lane.handle()));
}

Status needsCancel(Bench& bench) {
  return bench.table().cancel ? Status::ok() : bench.skip("queues cannot be cancelled");
}

/// A wait for work of a cancelled queue, and each one after it.
Status saysCancelled(Bench& bench, const Lane& lane, uint64_t value, uint64_t timeoutNs) {
  return refused(fmt::format("queue_wait of {} ns on a cancelled queue", timeoutNs), CDL_CANCELLED,
                 ask(bench.table().queue_wait, lane.handle(), value, timeoutNs));
}

// ---- Nothing to give up ----

/// `busy`: work that is done, and was waited for, is nothing to give up.
Status nothing(Bench& bench, const Choice& choice) {
  CDL_TRY(needsCancel(bench));
  CDL_ASSIGN(const auto echo, Echo::make(bench, kTaskBytes));
  CDL_ASSIGN(Task task, makeTask(bench, kTaskBytes, 1));
  CDL_ASSIGN(Lane fresh, bench.lane());
  const bool isFresh = choice.at("queue") == "fresh";
  Lane& lane = isFresh ? fresh : task.lane;
  for (uint64_t round = 0; round < 3; ++round) {
    CDL_TRY(cancel(bench, lane));
    const ByteVector content = pattern(kTaskBytes, 10 + round);
    CDL_TRY(lane.write(task.x, 0, content));
    CDL_TRY(echo->submit(lane, task.y, task.x));
    CDL_TRY(lane.sync().context("after a cancel with nothing to give up"));
    CDL_TRY(lane.expect("y after a cancel with nothing to give up", task.y, 0, content));
  }
  return Status::ok();
}

// ---- Work that is held ----

/// Cancels until the wait for held work ends, and says how it ended. Where the submission has not
/// arrived yet there is nothing to give up, and a cancel does nothing.
Result<Reply> cancelHeld(Bench& bench, const Task& task) {
  constexpr uint64_t kTurnNs = 5'000'000;
  Reply reply;
  for (uint64_t turn = 0; turn < kPatienceNs / kTurnNs; ++turn) {
    CDL_TRY(cancel(bench, task.lane));
    reply = ask(bench.table().queue_wait, task.lane.handle(), task.done, kTurnNs);
    if (reply.code != CDL_TIMEOUT) return reply;
  }
  return failure(Code::mismatch, "a wait for work of a cancelled queue does not end");
}

/// The submission of what was given up may say so, or not know yet.
Status unlessCancelled(const Status& submitted) {
  const bool saysSo = submitted.message().find(codeName(Code::cancelled)) != std::string::npos;
  return saysSo ? Status::ok() : submitted;
}

Status submitHeld(Echo& echo, Task& task, const Held& held) {
  const cdl_timeline_t waits[] = {held.gate()};
  return unlessCancelled(
      echo.execute(task.lane, task.y, task.x, waits, {task.lane.handle(), task.done}));
}

/// The host has the memory again: what it writes there stays, also when the timeline that the work
/// waited for moves.
Status isLeftAlone(Bench& bench, cdl_memory_t* memory, Held& held) {
  CDL_ASSIGN(Lane lane, bench.lane());
  const ByteVector content = pattern(kTaskBytes, 99);
  CDL_TRY(lane.write(memory, 0, content));
  CDL_TRY(lane.sync());
  CDL_TRY(held.open());
  CDL_TRY(notReached(bench, lane, lane.next(), "queue_wait for a value that nobody signalled"));
  return lane.expect("memory of work whose queue is gone", memory, 0, content);
}

Status heldWork(Bench& bench, const Choice&) {
  CDL_TRY(needsCancel(bench));
  CDL_ASSIGN(const auto echo, Echo::make(bench, kTaskBytes));
  CDL_ASSIGN(Task task, makeTask(bench, kTaskBytes, 2));
  CDL_ASSIGN(const auto held, Held::on(bench));
  held->start([&] { return submitHeld(*echo, task, *held); });
  CDL_ASSIGN(const Reply first, cancelHeld(bench, task));
  if (first.code == CDL_OK)
    return failure(Code::mismatch,
                   "queue_wait after cancel: succeeded, though the work cannot have begun");
  CDL_TRY(refused("queue_wait after cancel", CDL_CANCELLED, first));
  for (const uint64_t timeout : {uint64_t{0}, uint64_t{1000}, UINT64_MAX})
    CDL_TRY(saysCancelled(bench, task.lane, task.done, timeout));
  CDL_TRY(saysCancelled(bench, task.lane, task.done + 5, kGlimpseNs));
  if (!held->haveReturned(kPatienceNs))
    return failure(Code::mismatch, "the submission to a cancelled queue does not return");
  bench.destroy(task.lane);
  CDL_TRY(isLeftAlone(bench, task.y, *held));
  CDL_TRY(held->join());
  return bench.usable();
}

/// Whoever waits without limit is woken.
Status whileOneWaits(Bench& bench, const Choice&) {
  CDL_TRY(needsCancel(bench));
  CDL_ASSIGN(const auto echo, Echo::make(bench, kTaskBytes));
  CDL_ASSIGN(Task task, makeTask(bench, kTaskBytes, 3));
  std::atomic<bool> hasEnded = false;
  Reply ended;
  CDL_ASSIGN(const auto held, Held::on(bench));
  held->start([&] { return submitHeld(*echo, task, *held); });
  held->start([&] {
    ended = ask(bench.table().queue_wait, task.lane.handle(), task.done, UINT64_MAX);
    hasEnded = true;
    return Status::ok();
  });
  CDL_TRY(cancelHeld(bench, task).status());
  if (!held->haveReturned(kPatienceNs))
    return failure(Code::mismatch, "{} outlasts the cancel of its queue",
                   hasEnded ? "a submission" : "a wait without limit");
  CDL_TRY(held->join());
  bench.destroy(task.lane);
  return refused("queue_wait without limit, when its queue was cancelled", CDL_CANCELLED, ended);
}

/// The work of other queues is theirs.
Status othersGoOn(Bench& bench, const Choice&) {
  CDL_TRY(needsCancel(bench));
  CDL_ASSIGN(const auto echo, Echo::make(bench, kTaskBytes));
  CDL_ASSIGN(Task given, makeTask(bench, kTaskBytes, 4));
  CDL_ASSIGN(Task kept, makeTask(bench, kTaskBytes, 5));
  CDL_ASSIGN(const auto held, Held::on(bench));
  held->start([&] { return submitHeld(*echo, given, *held); });
  held->start([&] {
    const cdl_timeline_t waits[] = {held->gate()};
    return echo->execute(kept.lane, kept.y, kept.x, waits, {kept.lane.handle(), kept.done});
  });
  CDL_ASSIGN(const Reply first, cancelHeld(bench, given));
  CDL_TRY(refused("queue_wait after cancel", CDL_CANCELLED, first));
  CDL_TRY(notReached(bench, kept.lane, kept.done, "the wait for work of another queue"));
  CDL_TRY(held->join());
  bench.destroy(given.lane);
  CDL_TRY(kept.lane.wait(kept.done));
  return kept.lane.expect("y of the queue that was not cancelled", kept.y, 0,
                          pattern(kTaskBytes, 5));
}

// ---- Work that runs ----

/// It may be done before anybody gives it up. Whatever a wait says then is true, and stays so.
Status runningWork(Bench& bench, const Choice& choice) {
  CDL_TRY(needsCancel(bench));
  const uint64_t runs = numberOf(choice, "runs");
  CDL_ASSIGN(const auto echo, Echo::make(bench, kTaskBytes));
  for (uint64_t round = 0; round < 8; ++round) {
    CDL_ASSIGN(Task task, makeTask(bench, kTaskBytes, 100 + round));
    std::atomic<bool> hasBegun = false;
    CDL_TRY(onThreads(2, [&](size_t t) -> Status {
      if (t == 1) {
        hasBegun.wait(false);
        return cancel(bench, task.lane);
      }
      Status status;
      for (uint64_t run = 0; run < runs && status; ++run) {
        status = echo->submit(task.lane, task.y, task.x);
        hasBegun = true;
        hasBegun.notify_one();
      }
      if (status) status = task.lane.signal(task.done);
      return unlessCancelled(status);
    }));
    const Reply reply = ask(bench.table().queue_wait, task.lane.handle(), task.done, kPatienceNs);
    if (reply.code == CDL_OK) {
      CDL_ASSIGN(Lane reader, bench.lane());
      CDL_TRY(reader.expect("y of work that is done, says queue_wait", task.y, 0,
                            pattern(kTaskBytes, 100 + round)));
      CDL_TRY(valid("queue_wait once more",
                    ask(bench.table().queue_wait, task.lane.handle(), task.done, uint64_t{0})));
    } else {
      CDL_TRY(refused("queue_wait after cancel", CDL_CANCELLED, reply));
      CDL_TRY(saysCancelled(bench, task.lane, task.done, 0));
    }
    bench.destroy(task.lane);
  }
  return bench.usable();
}

// ---- Queues that go with work on them ----

/// The thread that submits destroys the queue, as soon as the call came back.
Status destroyHeld(Bench& bench, const Choice&) {
  CDL_ASSIGN(const auto echo, Echo::make(bench, kTaskBytes));
  CDL_ASSIGN(Task task, makeTask(bench, kTaskBytes, 6));
  CDL_ASSIGN(const auto held, Held::on(bench));
  held->start([&]() -> Status {
    const cdl_timeline_t waits[] = {held->gate()};
    CDL_TRY(echo->execute(task.lane, task.y, task.x, waits, {task.lane.handle(), task.done}));
    bench.destroy(task.lane);
    return Status::ok();
  });
  // Where the calls block there is nothing to see before the work is done.
  if (!held->haveReturned(kGlimpseNs)) CDL_TRY(held->join());
  CDL_TRY(isLeftAlone(bench, task.y, *held));
  CDL_TRY(held->join());
  return bench.usable();
}

/// Whoever destroys a queue may use its memory at once.
Status destroyRunning(Bench& bench, const Choice&) {
  CDL_ASSIGN(const auto echo, Echo::make(bench, kTaskBytes));
  CDL_ASSIGN(Lane other, bench.lane());
  for (uint64_t round = 0; round < 8; ++round) {
    CDL_ASSIGN(Task task, makeTask(bench, kTaskBytes, 200 + round));
    for (int run = 0; run < 10; ++run) CDL_TRY(echo->submit(task.lane, task.y, task.x));
    CDL_TRY(task.lane.signal(task.done));
    bench.destroy(task.lane);
    const ByteVector content = pattern(kTaskBytes, 300 + round);
    CDL_TRY(other.write(task.y, 0, content));
    CDL_TRY(other.sync());
    CDL_TRY(other.expect("memory of work whose queue is gone", task.y, 0, content));
    bench.destroy(task.x);
    bench.destroy(task.y);
  }
  return bench.usable();
}

} // namespace

ProbeFamilies cancelFamilies() {
  return {
      {{"async:cancel/", {{"nothing", nothing}}, {{"queue", {"fresh", "done"}}}}, {0, 2}},
      {{"async:cancel/",
        {{"held", heldWork}, {"while_one_waits", whileOneWaits}, {"others_go_on", othersGoOn}}},
       {0, 3}},
      {{"async:cancel/", {{"running", runningWork}}, {{"runs", {"1", "20"}}}}, {0, 2}},
      {{"async:destroy/", {{"held", destroyHeld}, {"running", destroyRunning}}}, {0, 2}},
  };
}

} // namespace candela::conformance::tiers::async
