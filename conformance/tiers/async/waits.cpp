// What an execution waits for, and whose timeline it moves: execute with waits, of the program API.
#include "conformance/tiers/async/async.h"

namespace candela::conformance::tiers::async {
namespace {

/// What a task is to have copied once it is done.
Status isDone(Task& task, const ByteVector& content, std::string_view who) {
  CDL_TRY(task.lane.wait(task.done).context(std::string(who)));
  return task.lane.expect(who, task.y, 0, content);
}

/// x gets its content from another queue while the execution is held.
Status waitsForOne(Bench& bench, const Choice& choice) {
  const uint64_t bytes = numberOf(choice, "bytes");
  CDL_ASSIGN(const auto echo, Echo::make(bench, bytes));
  CDL_ASSIGN(Task task, makeTask(bench, bytes, 1));
  CDL_ASSIGN(Lane other, bench.lane());
  CDL_ASSIGN(const auto held, Held::on(bench));
  held->start([&] {
    const cdl_timeline_t waits[] = {held->gate()};
    return echo->execute(task.lane, task.y, task.x, waits, {task.lane.handle(), task.done});
  });
  CDL_TRY(notReached(bench, task.lane, task.done, "the wait for an execution that is held"));
  CDL_TRY(other.write(task.x, 0, pattern(bytes, 2)));
  CDL_TRY(other.sync());
  CDL_TRY(held->join());
  return isDone(task, pattern(bytes, 2), "y of an execution that was held");
}

/// Of three timelines each but the last is not enough, in whatever order they move.
Status waitsForSeveral(Bench& bench, const Choice& choice) {
  const std::string& order = choice.at("order");
  CDL_ASSIGN(const auto echo, Echo::make(bench, kTaskBytes));
  CDL_ASSIGN(Task task, makeTask(bench, kTaskBytes, 3));
  std::vector<Lane> lanes;
  for (size_t i = 0; i < order.size(); ++i) {
    CDL_ASSIGN(const Lane lane, bench.lane());
    lanes.push_back(lane);
  }
  CDL_ASSIGN(const auto held, Held::on(bench));
  const auto moveAll = [&]() -> Status {
    for (const char which : order) {
      CDL_TRY(
          notReached(bench, task.lane, task.done,
                     fmt::format("the wait for an execution, before timeline {} moved", which)));
      CDL_TRY(lanes[static_cast<size_t>(which - '0')].signal(7));
    }
    return Status::ok();
  };
  held->start([&] {
    std::vector<cdl_timeline_t> waits;
    for (const Lane& lane : lanes) waits.push_back({lane.handle(), 7});
    return echo->execute(task.lane, task.y, task.x, waits, {task.lane.handle(), task.done});
  });
  const Status moved = moveAll();
  // Without them the submission might wait for ever. A value that does not rise is reached.
  if (!moved)
    for (Lane& lane : lanes) (void)lane.signal(8);
  CDL_TRY(held->join());
  CDL_TRY(moved);
  return isDone(task, pattern(kTaskBytes, 3), "y of an execution that waited for three queues");
}

/// Smaller values of the timeline are not enough.
Status waitsForValue(Bench& bench, const Choice&) {
  CDL_ASSIGN(const auto echo, Echo::make(bench, kTaskBytes));
  CDL_ASSIGN(Task task, makeTask(bench, kTaskBytes, 4));
  CDL_ASSIGN(Lane other, bench.lane());
  CDL_ASSIGN(const auto held, Held::on(bench));
  held->start([&] {
    const cdl_timeline_t waits[] = {{other.handle(), 5}};
    return echo->execute(task.lane, task.y, task.x, waits, {task.lane.handle(), task.done});
  });
  Status early;
  for (const uint64_t value : {1, 2, 4}) {
    CDL_TRY(other.signal(value));
    if (early)
      early = notReached(bench, task.lane, task.done,
                         fmt::format("the wait for an execution that waits for 5, at {}", value));
  }
  CDL_TRY(other.signal(6));
  CDL_TRY(held->join());
  CDL_TRY(early);
  return isDone(task, pattern(kTaskBytes, 4), "y of an execution that waited for 5, at 6");
}

/// Values that were reached before, of others, of its own queue, and the one that a timeline begins
/// with.
Status waitsForReached(Bench& bench, const Choice&) {
  CDL_TRY(needsPrograms(bench));
  CDL_ASSIGN(const auto echo, Echo::make(bench, kTaskBytes));
  CDL_ASSIGN(Task task, makeTask(bench, kTaskBytes, 5));
  CDL_ASSIGN(Lane other, bench.lane());
  CDL_ASSIGN(Lane idle, bench.lane());
  CDL_TRY(other.signal(4));
  const cdl_timeline_t waits[] = {{other.handle(), 3},
                                  {idle.handle(), 0},
                                  {other.handle(), 4},
                                  {task.lane.handle(), task.done - 1}};
  for (size_t count = 0; count <= std::size(waits); ++count) {
    const ByteVector content = pattern(kTaskBytes, 100 + count);
    CDL_TRY(task.lane.write(task.x, 0, content));
    CDL_TRY(echo->execute(task.lane, task.y, task.x, std::span(waits).first(count),
                          {task.lane.handle(), task.done}));
    CDL_TRY(isDone(task, content, fmt::format("y of an execution with {} waits", count)));
    task.done = task.lane.next();
  }
  return Status::ok();
}

/// y = x, z = y, w = z: each on its own queue, behind the one before it, and submitted in an order
/// that is not theirs.
Status chain(Bench& bench, const Choice& choice) {
  const std::string& order = choice.at("order");
  CDL_ASSIGN(const auto echo, Echo::make(bench, kTaskBytes));
  std::vector<Task> tasks;
  for (uint64_t t = 0; t < order.size(); ++t) {
    CDL_ASSIGN(const Task task, makeTask(bench, kTaskBytes, 10 + t));
    tasks.push_back(task);
    if (t > 0) tasks[t].x = tasks[t - 1].y;
  }
  CDL_ASSIGN(const auto held, Held::on(bench));
  for (const char which : order)
    held->start([&, t = static_cast<size_t>(which - '0')] {
      const cdl_timeline_t before =
          t > 0 ? cdl_timeline_t{tasks[t - 1].lane.handle(), tasks[t - 1].done} : held->gate();
      return echo->execute(tasks[t].lane, tasks[t].y, tasks[t].x, std::span(&before, 1),
                           {tasks[t].lane.handle(), tasks[t].done});
    });
  for (const Task& task : tasks)
    CDL_TRY(notReached(bench, task.lane, task.done, "the wait for a link of a chain that is held"));
  CDL_TRY(held->join());
  for (size_t t = tasks.size(); t-- > 0;)
    CDL_TRY(isDone(tasks[t], pattern(kTaskBytes, 10), fmt::format("the result of link {}", t)));
  return Status::ok();
}

/// b = a and c = a, then d = b behind both; d is held by the slower one too.
Status forkAndJoin(Bench& bench, const Choice&) {
  CDL_ASSIGN(const auto echo, Echo::make(bench, kTaskBytes));
  CDL_ASSIGN(Task left, makeTask(bench, kTaskBytes, 20));
  CDL_ASSIGN(Task right, makeTask(bench, kTaskBytes, 21));
  CDL_ASSIGN(Task last, makeTask(bench, kTaskBytes, 22));
  right.x = left.x;
  last.x = right.y;
  CDL_ASSIGN(const auto held, Held::on(bench));
  held->start([&] {
    const cdl_timeline_t waits[] = {{left.lane.handle(), left.done},
                                    {right.lane.handle(), right.done}};
    return echo->execute(last.lane, last.y, last.x, waits, {last.lane.handle(), last.done});
  });
  held->start([&] {
    const cdl_timeline_t waits[] = {held->gate()};
    return echo->execute(right.lane, right.y, right.x, waits, {right.lane.handle(), right.done});
  });
  CDL_TRY(echo->execute(left.lane, left.y, left.x, {}, {left.lane.handle(), left.done}));
  CDL_TRY(isDone(left, pattern(kTaskBytes, 20), "the branch that is not held"));
  CDL_TRY(notReached(bench, last.lane, last.done, "the wait for what stands behind both branches"));
  CDL_TRY(held->join());
  return isDone(last, pattern(kTaskBytes, 20), "what stands behind both branches");
}

/// The timeline of the queue that it was submitted to stays where it is.
Status signalsAnother(Bench& bench, const Choice&) {
  constexpr uint64_t kValue = 9;
  CDL_ASSIGN(const auto echo, Echo::make(bench, kTaskBytes));
  CDL_ASSIGN(Task task, makeTask(bench, kTaskBytes, 30));
  CDL_ASSIGN(Lane other, bench.lane());
  CDL_ASSIGN(const auto held, Held::on(bench));
  held->start([&] {
    const cdl_timeline_t waits[] = {held->gate()};
    return echo->execute(task.lane, task.y, task.x, waits, {other.handle(), kValue});
  });
  CDL_TRY(notReached(bench, other, kValue, "the wait for an execution that is held"));
  CDL_TRY(held->join());
  CDL_TRY(other.wait(kValue));
  CDL_TRY(other.expect("y, by the queue that was signalled", task.y, 0, pattern(kTaskBytes, 30)));
  CDL_TRY(refused("queue_wait on the queue that was not signalled", CDL_TIMEOUT,
                  ask(bench.table().queue_wait, task.lane.handle(), task.done, uint64_t{0})));
  return task.lane.sync();
}

/// Who signals nothing is waited for by what stands behind it.
Status signalsNothing(Bench& bench, const Choice&) {
  CDL_ASSIGN(const auto echo, Echo::make(bench, kTaskBytes));
  CDL_ASSIGN(Task task, makeTask(bench, kTaskBytes, 31));
  CDL_ASSIGN(cdl_memory_t * z, bench.create(kTaskBytes));
  CDL_ASSIGN(const auto held, Held::on(bench));
  held->start([&]() -> Status {
    const cdl_timeline_t waits[] = {held->gate()};
    CDL_TRY(echo->execute(task.lane, task.y, task.x, waits, {nullptr, 0}));
    CDL_TRY(task.lane.copy(z, 0, task.y, 0, kTaskBytes));
    return task.lane.signal(task.done);
  });
  CDL_TRY(notReached(bench, task.lane, task.done, "the wait for what stands behind an execution"));
  CDL_TRY(held->join());
  CDL_TRY(isDone(task, pattern(kTaskBytes, 31), "y"));
  return task.lane.expect("a copy of y that stands behind it", z, 0, pattern(kTaskBytes, 31));
}

/// Executions of one executable, let go at the same time, each with its own bindings.
Status inFlight(Bench& bench, const Choice&) {
  constexpr uint64_t kTasks = 4;
  CDL_ASSIGN(const auto echo, Echo::make(bench, kTaskBytes));
  std::vector<Task> tasks;
  for (uint64_t t = 0; t < kTasks; ++t) {
    CDL_ASSIGN(const Task task, makeTask(bench, kTaskBytes, 40 + t));
    tasks.push_back(task);
  }
  CDL_ASSIGN(const auto held, Held::on(bench));
  for (Task& task : tasks)
    held->start([&] {
      const cdl_timeline_t waits[] = {held->gate()};
      return echo->execute(task.lane, task.y, task.x, waits, {task.lane.handle(), task.done});
    });
  for (const Task& task : tasks)
    CDL_TRY(notReached(bench, task.lane, task.done, "the wait for one of four executions"));
  CDL_TRY(held->join());
  for (uint64_t t = 0; t < kTasks; ++t)
    CDL_TRY(isDone(tasks[t], pattern(kTaskBytes, 40 + t), fmt::format("y of execution {}", t)));
  return Status::ok();
}

} // namespace

ProbeFamilies waitFamilies() {
  return {
      {{"async:wait/", {{"one", waitsForOne}}, {{"bytes", {"1", "4099", "1048576"}}}}, {0, 3}},
      {{"async:wait/",
        {{"several", waitsForSeveral}, {"chain", chain}},
        {{"order", {"012", "210", "102"}}}},
       {0, 6}},
      {{"async:wait/",
        {{"value", waitsForValue}, {"reached", waitsForReached}, {"fork_and_join", forkAndJoin}}},
       {0, 3}},
      {{"async:signal/", {{"another", signalsAnother}, {"nothing", signalsNothing}}}, {0, 2}},
      {{"async:execution/", {{"in_flight", inFlight}}}, {0, 1}},
  };
}

} // namespace candela::conformance::tiers::async
