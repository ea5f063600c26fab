// The queue of the C++ layer under work that runs behind the calls: who destroys it, who waits for
// what failed, and queues of a backend's own. No test waits for a time to pass: threads meet where
// they say.
#include <candela/backend.hpp>

#include <gmock/gmock.h>

#include <atomic>
#include <deque>
#include <functional>
#include <set>
#include <thread>

extern "C" cdl_code_t late_backend_query(const cdl_host_t* host, cdl_plugin_t* out,
                                         cdl_error_t* error);

namespace {

using testing::HasSubstr;

/// A flag that threads wait for.
class Gate {
public:
  void open() {
    std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

/// Runs work in order, on a thread of its own, once its gate is open.
class Worker {
public:
  using Work = std::function<cdl::Status()>;

  explicit Worker(Gate& gate) : gate_(gate), thread_([this] { run(); }) {}
  ~Worker() {
    push({});
    thread_.join();
  }
  void push(Work work) {
    std::lock_guard<std::mutex> lock(mutex_);
    work_.push_back(std::move(work));
    changed_.notify_all();
  }
  /// Until all is done; the first failure since the last call.
  cdl::Status drain() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return work_.empty(); });
    return std::exchange(failed_, cdl::ok());
  }

private:
  void run() {
    gate_.wait();
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !work_.empty(); });
      const Work work = work_.front();
      if (!work) return;
      lock.unlock();
      const cdl::Status status = work();
      lock.lock();
      if (failed_.isOk()) failed_ = status;
      work_.pop_front();
      changed_.notify_all();
    }
  }

  Gate& gate_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> work_;
  cdl::Status failed_;
  std::thread thread_;
};

/// What the tests arrange, and what the device met.
struct Stage {
  Gate starts;                             ///< before which no work is done
  Gate finishing;                          ///< open once somebody waits for work
  cdl::Status failure;                     ///< of each write
  bool reports = false;                    ///< the work itself says so to its queue
  std::atomic<int> written = 0, stray = 0; ///< writes to memory, and to memory that was gone
  std::mutex mutex;
  std::set<const void*> alive; ///< memory
};
Stage* stage = nullptr;

/// A device that writes behind the call. Each queue has a worker of its own.
class Late : public cdl::PrimitiveBackend {
public:
  class LateQueue : public cdl::Queue {
  public:
    explicit LateQueue(cdl::Backend* backend) : cdl::Queue(backend), worker_(stage->starts) {}
    cdl::Status write(cdl::Memory& to, uint64_t, const void*, uint64_t) override {
      worker_.push([this, data = to.data]() -> cdl::Status {
        std::lock_guard<std::mutex> lock(stage->mutex);
        ++(stage->alive.count(data) ? stage->written : stage->stray);
        if (stage->reports) fail(stage->failure);
        return stage->failure;
      });
      return cdl::ok();
    }
    cdl::Status finish() override {
      stage->finishing.open();
      return worker_.drain();
    }

  private:
    Worker worker_;
  };

  Late() : cdl::PrimitiveBackend("late", "1.0.0") {
    space("host", CDL_SPACE_HOST_MAPPED, 0, 64);
    claim(cdl::Profile::BASE);
  }
  cdl::Status memoryCreate(uint64_t alignment, cdl::Memory& memory) override {
    cdl::Status status = cdl::PrimitiveBackend::memoryCreate(alignment, memory);
    std::lock_guard<std::mutex> lock(stage->mutex);
    stage->alive.insert(memory.data);
    return status;
  }
  void memoryDestroy(cdl::Memory& memory) override {
    {
      std::lock_guard<std::mutex> lock(stage->mutex);
      stage->alive.erase(memory.data);
    }
    cdl::PrimitiveBackend::memoryDestroy(memory);
  }
  std::unique_ptr<cdl::Queue> queueCreate() override { return std::make_unique<LateQueue>(this); }
};

/// What a slot said.
struct Reply {
  cdl_code_t code;
  std::string text;
};

class LateQueues : public testing::Test {
protected:
  LateQueues() {
    stage = &stage_;
    cdl_host_t host{};
    host.header = CDL_HEADER(cdl_host_t);
    table.header = CDL_HEADER(cdl_plugin_t);
    EXPECT_EQ(late_backend_query(&host, &table, nullptr), CDL_OK);
    EXPECT_EQ(table.device_open(&host, 0, nullptr, 0, &device, nullptr), CDL_OK);
  }
  ~LateQueues() override { table.device_close(device); }

  template <class... Args, class... Given> Reply ask(cdl_code_t (*slot)(Args...), Given... given) {
    char text[256] = "";
    cdl_error_t error{text, sizeof text, 0};
    const cdl_code_t code = slot(given..., &error);
    return {code, text};
  }
  cdl_queue_t* makeQueue() {
    cdl_queue_t* queue = nullptr;
    EXPECT_EQ(ask(table.queue_create, device, &queue).code, CDL_OK);
    return queue;
  }
  cdl_memory_t* makeMemory() {
    cdl_memory_t* memory = nullptr;
    EXPECT_EQ(ask(table.memory_create, device, 0u, sizeof bytes, uint64_t{64}, &memory).code,
              CDL_OK);
    return memory;
  }
  Reply write(cdl_queue_t* queue, cdl_memory_t* to) {
    return ask(table.queue_write, queue, to, uint64_t{0}, static_cast<const void*>(bytes),
               uint64_t{sizeof bytes});
  }
  Reply wait(cdl_queue_t* queue, uint64_t value) {
    return ask(table.queue_wait, queue, value, kLong);
  }

  static constexpr uint64_t kLong = 120'000'000'000; ///< ns: only a broken queue waits so long
  Stage stage_;
  cdl_plugin_t table{};
  cdl_device_t* device = nullptr;
  const char bytes[1000] = {};
};

TEST_F(LateQueues, AreDestroyedAfterTheirWork) {
  cdl_queue_t* queue = makeQueue();
  cdl_memory_t* memory = makeMemory();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(write(queue, memory).code, CDL_OK);
  std::thread destroyer([&] {
    table.queue_destroy(device, queue);
    table.memory_destroy(device, memory); // as the host does: nothing uses it now
    stage_.finishing.open();              // whoever did not wait lets the work begin here
  });
  stage_.finishing.wait();
  stage_.starts.open();
  destroyer.join();
  EXPECT_EQ(stage_.written, 3);
  EXPECT_EQ(stage_.stray, 0);
}

TEST_F(LateQueues, TellTheirWaitersWhatFailed) {
  stage_.failure = cdl::error(CDL_INTERNAL, "the write went nowhere");
  stage_.starts.open();
  cdl_queue_t* queue = makeQueue();
  cdl_memory_t* memory = makeMemory();
  Reply told{};
  std::thread waiter([&] { told = wait(queue, 1); });
  ASSERT_EQ(write(queue, memory).code, CDL_OK);
  const Reply signalled = ask(table.queue_signal, queue, uint64_t{1});
  waiter.join();
  for (const Reply& reply : {signalled, told, wait(queue, 1), write(queue, memory)}) {
    EXPECT_EQ(reply.code, CDL_INTERNAL);
    EXPECT_THAT(reply.text, HasSubstr("the write went nowhere"));
  }
  table.queue_destroy(device, queue);
  stage_.failure = cdl::ok();
  queue = makeQueue();
  EXPECT_EQ(write(queue, memory).code, CDL_OK) << "a failure stays with its queue";
  EXPECT_EQ(ask(table.queue_signal, queue, uint64_t{1}).code, CDL_OK);
  EXPECT_EQ(wait(queue, 1).code, CDL_OK);
  table.queue_destroy(device, queue);
  table.memory_destroy(device, memory);
}

TEST_F(LateQueues, NeedNoSignalToTell) {
  stage_.failure = cdl::error(CDL_OUT_OF_MEMORY, "no room for the command");
  stage_.reports = true;
  stage_.starts.open();
  cdl_queue_t* queue = makeQueue();
  cdl_memory_t* memory = makeMemory();
  ASSERT_EQ(ask(table.queue_signal, queue, uint64_t{1}).code, CDL_OK);
  ASSERT_EQ(write(queue, memory).code, CDL_OK);
  const Reply told = wait(queue, 2); // nobody signals it
  EXPECT_EQ(told.code, CDL_OUT_OF_MEMORY);
  EXPECT_EQ(told.text, "no room for the command");
  EXPECT_EQ(wait(queue, 1).code, CDL_OK) << "what was reached stays reached";
  table.queue_destroy(device, queue);
  table.memory_destroy(device, memory);
}

TEST_F(LateQueues, AllFailWithTheirDevice) {
  stage_.failure = cdl::error(CDL_DEVICE_LOST, "the device fell off the bus");
  stage_.reports = true;
  stage_.starts.open();
  cdl_queue_t *queue = makeQueue(), *other = makeQueue();
  cdl_memory_t* memory = makeMemory();
  Reply told{};
  std::thread waiter([&] { told = wait(other, 7); });
  ASSERT_EQ(write(queue, memory).code, CDL_OK);
  EXPECT_EQ(wait(queue, 1).code, CDL_DEVICE_LOST);
  waiter.join();
  EXPECT_EQ(told.code, CDL_DEVICE_LOST);
  EXPECT_EQ(told.text, "the device fell off the bus");
  cdl_queue_t* third = nullptr;
  EXPECT_EQ(ask(table.queue_create, device, &third).code, CDL_DEVICE_LOST);
  EXPECT_EQ(third, nullptr);
  for (cdl_queue_t* each : {queue, other}) table.queue_destroy(device, each);
  table.memory_destroy(device, memory);
}

TEST_F(LateQueues, GiveUpWhatIsNotDone) {
  cdl_queue_t *queue = makeQueue(), *other = makeQueue();
  cdl_memory_t* memory = makeMemory();
  Reply told{};
  std::thread waiter([&] { told = wait(queue, 1); });
  ASSERT_EQ(write(queue, memory).code, CDL_OK);
  EXPECT_EQ(ask(table.cancel, queue).code, CDL_OK);
  waiter.join();
  const Reply signalled = ask(table.queue_signal, queue, uint64_t{1});
  for (const Reply& reply :
       {told, wait(queue, 1), wait(queue, 7), signalled, write(queue, memory)}) {
    EXPECT_EQ(reply.code, CDL_CANCELLED);
    EXPECT_THAT(reply.text, HasSubstr("cancelled before its work was done"));
  }
  stage_.starts.open();
  EXPECT_EQ(write(other, memory).code, CDL_OK) << "a cancelled queue is alone with it";
  EXPECT_EQ(ask(table.queue_signal, other, uint64_t{1}).code, CDL_OK);
  for (cdl_queue_t* each : {queue, other}) table.queue_destroy(device, each);
  table.memory_destroy(device, memory);
  EXPECT_EQ(stage_.written, 2) << "what the device had begun ends before the queue goes";
  EXPECT_EQ(stage_.stray, 0);
}

/// Who waits for work in a signal learns that it was given up when it is done.
TEST_F(LateQueues, AreCancelledWhileTheySignal) {
  cdl_queue_t* queue = makeQueue();
  cdl_memory_t* memory = makeMemory();
  ASSERT_EQ(write(queue, memory).code, CDL_OK);
  Reply signalled{};
  std::thread submitter([&] { signalled = ask(table.queue_signal, queue, uint64_t{1}); });
  stage_.finishing.wait();
  EXPECT_EQ(ask(table.cancel, queue).code, CDL_OK);
  EXPECT_EQ(wait(queue, 1).code, CDL_CANCELLED);
  stage_.starts.open();
  submitter.join();
  EXPECT_EQ(signalled.code, CDL_CANCELLED);
  EXPECT_EQ(wait(queue, 1).code, CDL_CANCELLED);
  table.queue_destroy(device, queue);
  table.memory_destroy(device, memory);
}

TEST_F(LateQueues, HaveNothingToGiveUpWhenTheirWorkIsDone) {
  stage_.starts.open();
  cdl_queue_t* queue = makeQueue();
  cdl_memory_t* memory = makeMemory();
  for (const uint64_t value : {1, 2, 3}) {
    EXPECT_EQ(ask(table.cancel, queue).code, CDL_OK);
    EXPECT_EQ(write(queue, memory).code, CDL_OK);
    EXPECT_EQ(ask(table.queue_signal, queue, value).code, CDL_OK);
    EXPECT_EQ(wait(queue, value).code, CDL_OK);
  }
  table.queue_destroy(device, queue);
  table.memory_destroy(device, memory);
}

TEST_F(LateQueues, OutliveErrorsOfTheCaller) {
  stage_.starts.open();
  cdl_queue_t* queue = makeQueue();
  cdl_memory_t* memory = makeMemory();
  const Reply outside = ask(table.queue_write, queue, memory, uint64_t{990},
                            static_cast<const void*>(bytes), uint64_t{11});
  EXPECT_EQ(outside.code, CDL_INVALID_ARGUMENT);
  EXPECT_EQ(ask(table.queue_wait, queue, uint64_t{1}, uint64_t{0}).code, CDL_TIMEOUT);
  EXPECT_EQ(write(queue, memory).code, CDL_OK);
  EXPECT_EQ(ask(table.queue_signal, queue, uint64_t{1}).code, CDL_OK);
  EXPECT_EQ(wait(queue, 1).code, CDL_OK);
  table.queue_destroy(device, queue);
  table.memory_destroy(device, memory);
}

} // namespace

CDL_BACKEND(Late)
