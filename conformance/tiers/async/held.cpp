// Executions that are held, and the threads that submit them.
#include <algorithm>
#include <chrono>

#include "conformance/tiers/async/async.h"

namespace candela::conformance::tiers::async {

Status needsPrograms(Bench& bench) {
  return bench.compiles() ? Status::ok() : bench.skip("the device compiles no programs");
}

Result<std::unique_ptr<Held>> Held::on(Bench& bench) {
  CDL_TRY(needsPrograms(bench));
  CDL_ASSIGN(const Lane lane, bench.lane());
  return std::unique_ptr<Held>(new Held(lane));
}

Held::~Held() { (void)join(); }

void Held::start(std::function<Status()> submit) {
  Submission& submission = *submissions_.emplace_back(std::make_unique<Submission>());
  submission.thread = std::jthread([&submission, submit = std::move(submit)] {
    submission.end = submit();
    submission.hasReturned = true;
  });
}

bool Held::haveReturned(uint64_t patienceNs) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(patienceNs);
  const auto haveAll = [&] {
    return std::ranges::all_of(
        submissions_, [](const auto& submission) { return submission->hasReturned.load(); });
  };
  while (!haveAll() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return haveAll();
}

Status Held::open() {
  if (isOpen_) return Status::ok();
  isOpen_ = true;
  return lane_.signal(kOpen);
}

Status Held::join() {
  Status status = open();
  for (const auto& submission : submissions_) {
    submission->thread.join();
    if (status) status = submission->end;
  }
  submissions_.clear();
  return status;
}

Status notReached(Bench& bench, const Lane& lane, uint64_t value, std::string_view who) {
  return refused(who, CDL_TIMEOUT, ask(bench.table().queue_wait, lane.handle(), value, kGlimpseNs));
}

Result<Task> makeTask(Bench& bench, uint64_t bytes, uint64_t seed) {
  CDL_ASSIGN(Lane lane, bench.lane());
  CDL_ASSIGN(cdl_memory_t * x, bench.createWith(lane, pattern(bytes, seed)));
  CDL_ASSIGN(cdl_memory_t * y, bench.createWith(lane, pattern(bytes, ~seed)));
  CDL_TRY(lane.sync());
  Task task{lane, x, y};
  task.done = task.lane.next();
  return task;
}

} // namespace candela::conformance::tiers::async
