// The tiers `devices` and `async` on devices that soft is not by itself: two of one plugin, with
// two memory spaces each, and one whose queues work behind the calls. What keeps its promises
// passes every case, and none is left out.
#include <candela/backend.hpp>

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <thread>

#include "conformance/mutants/soft_port.h"
#include "conformance/port.h"
#include "tests/conformance/run_cases.h"

namespace candela::conformance {
namespace {

void expectAllPass(const std::string& backend, const char* tier, runtime::plugin::Options options) {
  Port port(backend, std::move(options));
  Selection selection;
  selection.size = Size::nightly;
  const std::vector<Case> cases = findTier(tier)->list(selection).orAbort();
  EXPECT_GT(cases.size(), 30u);
  for (const Case& one : cases) {
    const CaseResult result = one.run(port);
    EXPECT_EQ(result.outcome, CaseResult::Outcome::passed) << one.address << ": " << result.reason;
  }
}

// ---- A plugin of two devices

cdl_plugin_t single; ///< the table of the one that stands behind both

cdl_code_t openEither(const cdl_host_t* host, uint32_t index, const cdl_option_t* options,
                      uint32_t count, cdl_device_t** device, cdl_error_t* error) {
  return single.device_open(host, index == 1 ? 0 : index, options, count, device, error);
}

cdl_code_t pairQuery(const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error) {
  const cdl_code_t code = mutants::softQuery(host, out, error);
  single = *out;
  out->device_count = 2;
  out->device_open = openEither;
  return code;
}

TEST(DevicesTier, LeavesNothingOutWhereThereAreTwoDevicesWithTwoSpaces) {
  runtime::plugin::registerStatic("pair", pairQuery);
  expectAllPass("pair", "devices", {{"spaces", "2"}});
  expectAllPass("pair:1", "devices", {{"spaces", "2"}});
}

// ---- Queues that work behind the calls

cdl_plugin_t blocking; ///< the table of the one whose calls do the work

/// Does the work of one queue in order, on a thread of its own.
class Worker {
public:
  using Work = std::function<void()>;

  explicit Worker(cdl_queue_t* queue) : queue_(queue), thread_([this] { work(); }) {}
  ~Worker() {
    cancel(); // who destroys a queue may do without its work
    push(nullptr);
    thread_.join();
  }
  void push(Work work) {
    const std::lock_guard lock(mutex_);
    if (isCancelled_ && work) return;
    works_.push_back(std::move(work));
    changed_.notify_all();
  }
  void drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return works_.empty(); });
  }
  /// What has begun ends, soon: it waits for nobody any more.
  void cancel() {
    const std::lock_guard lock(mutex_);
    if (works_.empty()) return;
    isCancelled_ = true;
    works_.erase(works_.begin() + 1, works_.end());
    reinterpret_cast<cdl::Queue*>(queue_)->fail(
        cdl::error(CDL_CANCELLED, "the queue was cancelled"));
  }

private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !works_.empty(); });
      const Work work = works_.front();
      if (!work) return;
      lock.unlock();
      work();
      lock.lock();
      works_.pop_front();
      changed_.notify_all();
    }
  }

  cdl_queue_t* queue_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> works_; ///< the first one runs
  bool isCancelled_ = false;
  std::thread thread_; ///< last: it uses the others
};

std::mutex workersMutex;
std::map<cdl_queue_t*, std::unique_ptr<Worker>> workers;
Worker& workerOf(cdl_queue_t* queue) {
  const std::lock_guard lock(workersMutex);
  return *workers.at(queue);
}

cdl_code_t createWorker(cdl_device_t* device, cdl_queue_t** queue, cdl_error_t* error) {
  const cdl_code_t code = blocking.queue_create(device, queue, error);
  if (code != CDL_OK) return code;
  const std::lock_guard lock(workersMutex);
  workers[*queue] = std::make_unique<Worker>(*queue);
  return code;
}
void destroyWorker(cdl_device_t* device, cdl_queue_t* queue) {
  std::unique_ptr<Worker> worker;
  {
    const std::lock_guard lock(workersMutex);
    worker = std::move(workers.extract(queue).mapped());
  }
  worker.reset();
  blocking.queue_destroy(device, queue);
}
cdl_code_t writeLater(cdl_queue_t* queue, cdl_memory_t* to, uint64_t offset, const void* from,
                      uint64_t bytes, cdl_error_t*) {
  const auto* first = static_cast<const char*>(from);
  workerOf(queue).push([=, data = std::vector<char>(first, first + bytes)] {
    (void)blocking.queue_write(queue, to, offset, data.data(), data.size(), nullptr);
  });
  return CDL_OK;
}
cdl_code_t readBehind(cdl_queue_t* queue, cdl_memory_t* from, uint64_t offset, void* to,
                      uint64_t bytes, cdl_error_t* error) {
  workerOf(queue).drain();
  return blocking.queue_read(queue, from, offset, to, bytes, error);
}
cdl_code_t copyLater(cdl_queue_t* queue, cdl_memory_t* to, uint64_t toOffset, cdl_memory_t* from,
                     uint64_t fromOffset, uint64_t bytes, cdl_error_t*) {
  workerOf(queue).push(
      [=] { (void)blocking.queue_copy(queue, to, toOffset, from, fromOffset, bytes, nullptr); });
  return CDL_OK;
}
cdl_code_t signalLater(cdl_queue_t* queue, uint64_t value, cdl_error_t*) {
  workerOf(queue).push([=] { (void)blocking.queue_signal(queue, value, nullptr); });
  return CDL_OK;
}
cdl_code_t executeLater(cdl_queue_t* queue, cdl_executable_t* executable,
                        const cdl_bindings_t* bindings, const cdl_timeline_t* wait, uint32_t waits,
                        cdl_timeline_t signal, cdl_error_t*) {
  const std::vector<cdl_binding_t> buffers(bindings->buffers, bindings->buffers + bindings->count);
  const std::vector<cdl_timeline_t> timelines(wait, wait + waits);
  workerOf(queue).push([=] {
    const cdl_bindings_t all{CDL_HEADER(cdl_bindings_t), static_cast<uint32_t>(buffers.size()), 0,
                             buffers.data()};
    (void)blocking.execute(queue, executable, &all, timelines.data(),
                           static_cast<uint32_t>(timelines.size()), signal, nullptr);
  });
  return CDL_OK;
}
cdl_code_t cancelWorker(cdl_queue_t* queue, cdl_error_t*) {
  workerOf(queue).cancel();
  return CDL_OK;
}
cdl_code_t beginBehind(cdl_queue_t* queue, cdl_error_t* error) {
  workerOf(queue).drain();
  return blocking.profile_begin(queue, error);
}
cdl_code_t endBehind(cdl_queue_t* queue, cdl_profile_record_t* records, uint32_t capacity,
                     uint32_t* count, cdl_error_t* error) {
  workerOf(queue).drain();
  return blocking.profile_end(queue, records, capacity, count, error);
}

cdl_code_t lateQuery(const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error) {
  static const cdl_backend_query_fn query = mutants::softQueryFor({{"door", "compile"}});
  const cdl_code_t code = query(host, out, error);
  blocking = *out;
  out->queue_create = createWorker;
  out->queue_destroy = destroyWorker;
  out->queue_write = writeLater;
  out->queue_read = readBehind;
  out->queue_copy = copyLater;
  out->queue_signal = signalLater;
  out->execute = executeLater;
  out->cancel = cancelWorker;
  out->profile_begin = beginBehind;
  out->profile_end = endBehind;
  return code;
}

TEST(AsyncTier, PassesQueuesThatWorkBehindTheCalls) {
  runtime::plugin::registerStatic("late", lateQuery);
  expectAllPass("late", "async", {});
}

TEST(AsyncTier, PassesQueuesWhoseCallsBlock) {
  expectAllPass("soft", "async", {{"door", "compile"}});
}

/// Where a call never returns, the cases that make it fail by name, and the others run.
TEST(AsyncTier, NamesTheCasesThatHang) {
  Port port("soft", {{"fault", "cancel.waits_for_work"}});
  WorkerOptions options;
  options.jobs = 2;
  options.timeLimitSeconds = 4;
  const std::map<std::string, std::string> failed =
      failuresOf(port, findTier("async")->list({}).orAbort(), "async:cancel/", options);
  const std::string late = "no answer after 4 s";
  const std::map<std::string, std::string> expected = {{"async:cancel/held", late},
                                                       {"async:cancel/others_go_on", late},
                                                       {"async:cancel/while_one_waits", late}};
  EXPECT_EQ(failed, expected);
}

} // namespace
} // namespace candela::conformance
