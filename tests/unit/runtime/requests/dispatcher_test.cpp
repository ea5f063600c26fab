// Requests on sessions whose devices work by a clock, fail, hang and get lost.
#include "core/runtime/requests/dispatcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>

#include "core/compiler/driver/pipeline.h"

namespace candela::runtime::requests {
namespace {

using session::BufferRef;
using testing::HasSubstr;

constexpr Clock::time_point kForever = Clock::time_point::max();

/// relu runs on a template, the product on device `timed`, the last sum on the host's portable
/// executor where neither is there.
constexpr const char* kText =
    R"(graph @g(%a: f32[4,4], %b: f32[4,4]) -> (%y: f32[4,4]) {
  %c = matmul %a, %b
  %d = add %c, %a
  %y = relu %d
}
)";

using DevicePtr = std::shared_ptr<plugin::Device>;

DevicePtr openDevice(const char* path, uint32_t index = 0, const plugin::Options& options = {}) {
  return plugin::Plugin::load(path).orAbort()->open(index, options).orAbort();
}

std::unique_ptr<session::Session> compile(const std::vector<DevicePtr>& devices) {
  Diagnostics diagnostics;
  auto ir = driver::parseIr(kText, "dispatcher.cdl", diagnostics).orAbort();
  return driver::compile(std::get<graph::Graph>(std::move(ir)), "dispatcher.cdl", devices)
      .orAbort();
}

/// The data of one request: a is `value` everywhere, b the identity.
struct Data {
  explicit Data(float value)
      : a(16, value), b{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, y(16, -1),
        expected(value > 0 ? 2 * value : 0) {}
  alignas(64) std::vector<float> a, b, y;
  float expected;

  Submission submission() {
    Submission s;
    const auto at = [](std::vector<float>& v) {
      return BufferRef::onHost(reinterpret_cast<std::byte*>(v.data()));
    };
    s.inputs = {at(a), at(b)};
    s.outputs = {at(y)};
    return s;
  }
  bool isRight() const { return y == std::vector<float>(16, expected); }
};

std::unique_ptr<Dispatcher> dispatcherOf(const std::vector<session::Session*>& sessions,
                                         const DispatcherOptions& options = {}) {
  std::vector<Replica> replicas;
  for (size_t i = 0; i < sessions.size(); ++i)
    replicas.push_back({"copy " + std::to_string(i), sessions[i]});
  return Dispatcher::create(std::move(replicas), options).orAbort();
}

TEST(Dispatcher, AnswersEachOfManyRequestsWithItsOwnValues) {
  const auto one = compile({openDevice(PLUGIN_timed)}), two = compile({});
  const auto dispatcher = dispatcherOf({one.get(), two.get()}, {8, 3, false});
  std::vector<std::unique_ptr<Data>> data;
  std::vector<RequestPtr> requests;
  for (int i = 0; i < 200; ++i) {
    data.push_back(std::make_unique<Data>(float(i - 50)));
    requests.push_back(dispatcher->submit(data.back()->submission()).orAbort());
  }
  for (size_t i = 0; i < data.size(); ++i) {
    EXPECT_TRUE(dispatcher->wait(requests[i], kForever));
    EXPECT_TRUE(data[i]->isRight()) << i;
  }
  const Counters counters = dispatcher->counters();
  EXPECT_EQ(counters.submitted, 200u);
  EXPECT_EQ(counters.succeeded, 200u);
  EXPECT_EQ(counters.open, 0u);
  EXPECT_LE(counters.mostOpen, 8u);
  const std::vector<ReplicaHealth> health = dispatcher->health();
  EXPECT_GT(health[0].requests, 0u);
  EXPECT_GT(health[1].requests, 0u);
}

TEST(Dispatcher, MovesValuesBetweenDevicesByTheirOwnCopies) {
  // The template lies in memory of the host, timed in memory that the host does not see.
  DevicePtr timed = openDevice(PLUGIN_timed), other = openDevice(PLUGIN_timed, 1);
  const auto session = compile({timed});
  const auto dispatcher = dispatcherOf({session.get()});
  Data data(3);
  const RequestPtr request = dispatcher->submit(data.submission()).orAbort();
  EXPECT_TRUE(dispatcher->wait(request, kForever));
  EXPECT_TRUE(data.isRight());
  EXPECT_EQ(request->stats().deviceCopies, 3u) << "two inputs in, one output out";
  EXPECT_EQ(request->stats().stagedBytes, 0u);
}

TEST(Dispatcher, HoldsBackAndRefusesWhatIsMoreThanItsCapacity) {
  const auto session = compile({openDevice(PLUGIN_timed, 0, {{"fault", "hang"}})});
  const auto dispatcher = dispatcherOf({session.get()}, {2, 2, false});
  Data data[3] = {Data(1), Data(2), Data(3)};
  const RequestPtr first = dispatcher->submit(data[0].submission()).orAbort();
  const RequestPtr second = dispatcher->submit(data[1].submission()).orAbort();
  const auto refused = dispatcher->submit(data[2].submission(), WhenFull::refuse);
  EXPECT_EQ(refused.status().code(), Code::timeout);
  EXPECT_THAT(refused.status().message(), HasSubstr("2 requests are in flight"));
  Submission late = data[2].submission();
  late.deadline = Clock::now();
  EXPECT_EQ(dispatcher->submit(std::move(late)).status().code(), Code::timeout);
  dispatcher->cancel(first, Status(Code::cancelled, "no more"));
  EXPECT_EQ(dispatcher->wait(first, kForever).code(), Code::cancelled);
  dispatcher->cancel(second, Status(Code::cancelled, "no more"));
  EXPECT_EQ(dispatcher->wait(second, kForever).message(), "no more");
}

TEST(Dispatcher, EndsARequestThatHangsAtItsDeadline) {
  const auto session = compile({openDevice(PLUGIN_timed, 0, {{"fault", "hang"}})});
  const auto dispatcher = dispatcherOf({session.get()});
  Data data(1);
  Submission submission = data.submission();
  submission.deadline = Clock::now() + std::chrono::milliseconds(5);
  const RequestPtr request = dispatcher->submit(std::move(submission)).orAbort();
  EXPECT_EQ(dispatcher->wait(request, kForever).code(), Code::timeout);
  EXPECT_EQ(dispatcher->counters().timedOut, 1u);
}

TEST(Dispatcher, CancelsAgainWhatDidNotHearOfIt) {
  // As a queue that gets its work behind the cancellation.
  const auto session = compile({openDevice(PLUGIN_timed, 0, {{"fault", "deaf"}})});
  const auto dispatcher = dispatcherOf({session.get()});
  Data data(1);
  const RequestPtr request = dispatcher->submit(data.submission()).orAbort();
  EXPECT_EQ(dispatcher->wait(request, Clock::now() + std::chrono::milliseconds(1)).code(),
            Code::timeout);
  dispatcher->cancel(request, Status(Code::cancelled, "no more"));
  EXPECT_EQ(dispatcher->wait(request, kForever).message(), "no more");
}

TEST(Dispatcher, RepeatsOnAnotherCopyWhatALostDeviceHad) {
  const auto lost =
      compile({openDevice(PLUGIN_timed, 0, {{"fault", "lost"}, {"fault_every", "3"}})});
  const auto sound = compile({openDevice(PLUGIN_timed, 1)});
  const auto dispatcher = dispatcherOf({lost.get(), sound.get()});
  for (int i = 1; i <= 40; ++i) {
    Data data{float(i)};
    const RequestPtr request = dispatcher->submit(data.submission()).orAbort();
    ASSERT_TRUE(dispatcher->wait(request, kForever)) << request->status().message();
    EXPECT_TRUE(data.isRight());
  }
  EXPECT_TRUE(dispatcher->health()[0].isLost);
  EXPECT_THAT(dispatcher->health()[0].why, HasSubstr("timed device 0 is gone"));
  EXPECT_FALSE(dispatcher->health()[1].isLost);
  EXPECT_GE(dispatcher->counters().repeated, 1u);
}

TEST(Dispatcher, FailsByNameWhereNoCopyIsLeft) {
  const auto session =
      compile({openDevice(PLUGIN_timed, 0, {{"fault", "lost"}, {"fault_every", "2"}})});
  const auto dispatcher = dispatcherOf({session.get()});
  std::vector<std::unique_ptr<Data>> data;
  std::vector<RequestPtr> requests;
  for (int i = 1; i <= 10; ++i) {
    data.push_back(std::make_unique<Data>(float(i)));
    requests.push_back(dispatcher->submit(data.back()->submission()).orAbort());
  }
  size_t right = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const Status status = dispatcher->wait(requests[i], kForever);
    if (status) {
      EXPECT_TRUE(data[i]->isRight());
      ++right;
      continue;
    }
    EXPECT_EQ(status.code(), Code::device_lost);
    EXPECT_THAT(status.message(), HasSubstr("timed device 0 is gone"));
  }
  EXPECT_LE(right, 1u) << "the first one may run beside the one that loses the device";
}

TEST(Dispatcher, GoesOnAfterARequestThatFoundNoMemory) {
  const auto session =
      compile({openDevice(PLUGIN_timed, 0, {{"fault", "memory"}, {"fault_every", "2"}})});
  const auto dispatcher = dispatcherOf({session.get()}, {1, 1, false});
  for (int i = 1; i <= 6; ++i) {
    Data data{float(i)};
    const RequestPtr request = dispatcher->submit(data.submission()).orAbort();
    const Status status = dispatcher->wait(request, kForever);
    EXPECT_EQ(status.code(), i % 2 ? Code::ok : Code::out_of_memory) << i;
    EXPECT_EQ(data.isRight(), status.isOk());
  }
}

TEST(Dispatcher, BeginsWhenItsWaitsAreReachedAndSignalsItsEnd) {
  const auto session = compile({});
  const auto dispatcher = dispatcherOf({session.get()});
  const auto go = std::make_shared<Timeline>(), end = std::make_shared<Timeline>();
  Data first(1), second(2);
  Submission waits = first.submission();
  waits.waits = {{go, 1}};
  waits.signals = {{end, 1}};
  Submission follows = second.submission();
  follows.waits = {{end, 1}, {go, 1}};
  follows.signals = {{end, 2}};
  const RequestPtr b = dispatcher->submit(std::move(follows)).orAbort();
  const RequestPtr a = dispatcher->submit(std::move(waits)).orAbort();
  EXPECT_FALSE(a->isDone());
  EXPECT_EQ(dispatcher->wait(b, Clock::now()).code(), Code::timeout);
  EXPECT_TRUE(go->signal(1));
  EXPECT_TRUE(end->wait(2, kForever));
  EXPECT_TRUE(first.isRight() && second.isRight());
}

TEST(Dispatcher, FailsWhatWaitsForWhatFailed) {
  const auto session = compile({openDevice(PLUGIN_timed, 0, {{"fault", "memory"}})});
  const auto dispatcher = dispatcherOf({session.get()});
  const auto end = std::make_shared<Timeline>();
  Data first(1), second(2);
  Submission fails = first.submission();
  fails.signals = {{end, 1}};
  Submission follows = second.submission();
  follows.waits = {{end, 1}};
  const RequestPtr b = dispatcher->submit(std::move(follows)).orAbort();
  const RequestPtr a = dispatcher->submit(std::move(fails)).orAbort();
  EXPECT_EQ(dispatcher->wait(a, kForever).code(), Code::out_of_memory);
  EXPECT_EQ(dispatcher->wait(b, kForever).code(), Code::out_of_memory);
  EXPECT_THAT(b->status().message(), HasSubstr("waited for"));
}

TEST(Dispatcher, CallsBackOnceForEachRequestAndMaySubmitThere) {
  const auto session = compile({});
  const auto dispatcher = dispatcherOf({session.get()});
  std::mutex mutex;
  std::condition_variable changed;
  int calls = 0;
  Data first(1), second(2);
  const auto count = [&](const Status& status) {
    EXPECT_TRUE(status);
    const std::lock_guard lock(mutex);
    ++calls;
    changed.notify_all();
  };
  Submission submission = first.submission();
  submission.done = [&](const Status& status) {
    Submission next = second.submission();
    next.done = count;
    EXPECT_TRUE(dispatcher->submit(std::move(next)));
    count(status);
  };
  EXPECT_TRUE(dispatcher->submit(std::move(submission)));
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return calls == 2; });
  EXPECT_TRUE(first.isRight() && second.isRight());
}

TEST(Dispatcher, EndsWhatIsOpenWhenItEnds) {
  const auto session = compile({openDevice(PLUGIN_timed, 0, {{"fault", "hang"}})});
  const auto never = std::make_shared<Timeline>();
  Data data[3] = {Data(1), Data(2), Data(3)};
  std::vector<RequestPtr> requests;
  {
    const auto dispatcher = dispatcherOf({session.get()}, {8, 1, false});
    requests.push_back(dispatcher->submit(data[0].submission()).orAbort());
    requests.push_back(dispatcher->submit(data[1].submission()).orAbort());
    Submission waits = data[2].submission();
    waits.waits = {{never, 1}};
    requests.push_back(dispatcher->submit(std::move(waits)).orAbort());
  }
  for (const RequestPtr& request : requests) {
    EXPECT_TRUE(request->isDone());
    EXPECT_EQ(request->status().code(), Code::cancelled);
  }
  EXPECT_TRUE(never->signal(1)) << "which nobody waits for any more";
}

TEST(Dispatcher, TellsWhatEachDeviceDidForWhichRequest) {
  const auto session = compile({openDevice(PLUGIN_timed, 1)});
  const auto dispatcher = dispatcherOf({session.get()}, {8, 2, true});
  Data data(1);
  const RequestPtr request = dispatcher->submit(data.submission()).orAbort();
  EXPECT_TRUE(dispatcher->wait(request, kForever));
  std::vector<std::string> names;
  for (const session::TraceEvent& event : dispatcher->takeTrace()) {
    EXPECT_EQ(event.process, "timed:1");
    EXPECT_EQ(event.request, request->id());
    names.push_back(event.name);
  }
  for (const char* name : {"request", "partition", "execute", "device copy"})
    EXPECT_THAT(names, testing::Contains(name));
  EXPECT_TRUE(dispatcher->takeTrace().empty());
}

TEST(Dispatcher, IsNotMadeOfNothing) {
  EXPECT_EQ(Dispatcher::create({}, {}).status().code(), Code::invalid_argument);
}

} // namespace
} // namespace candela::runtime::requests
