#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/compiler/program/image.h"
#include "core/runtime/session/session.h"
#include "core/support/file.h"

namespace candela::runtime::bundle {
namespace {

namespace fs = std::filesystem;
using program::Instr;
using program::Role;

constexpr int64_t kCount = 8;

/// y = (x + c) + splat, eight floats.
program::Program addProgram() {
  program::Program p;
  program::Buffer buffer;
  buffer.bytes = kCount * 4;
  buffer.name = "x";
  buffer.role = Role::input;
  buffer.offset = 0;
  const uint32_t x = p.addBuffer(buffer);
  const uint32_t c = p.addConstant(
      "c", Payload::data(Tensor::of<float>(Elem::f32_, {kCount}, {0, 1, 2, 3, 4, 5, 6, 7})));
  const uint32_t s = p.addConstant("s", Payload::splat(Elem::f32_, kCount, 0x3f000000)); // 0.5
  buffer.name = "t";
  buffer.role = Role::temp;
  buffer.offset = 64;
  const uint32_t t = p.addBuffer(buffer);
  buffer.name = "y";
  buffer.role = Role::output;
  buffer.offset = 0;
  const uint32_t y = p.addBuffer(buffer);
  const auto add = [&](uint32_t a, uint32_t b, uint32_t out, std::vector<uint32_t> waits) {
    Instr instr;
    instr.kind = CDL_KIND_BINARY;
    instr.fn = CDL_BINARY_ADD;
    for (uint32_t in : {a, b}) instr.inputs.push_back(program::denseView(in, Elem::f32_, {kCount}));
    instr.outputs.push_back(program::denseView(out, Elem::f32_, {kCount}));
    instr.waits = std::move(waits);
    p.instrs.push_back(instr);
  };
  add(x, c, t, {});
  add(t, s, y, {0});
  return p;
}

Bundle addBundle() {
  const program::Program program = addProgram();
  Bundle bundle;
  bundle.model = "add";
  bundle.values = {{"x", Elem::f32_, {kCount}}, {"y", Elem::f32_, {kCount}}};
  bundle.inputs = {0};
  bundle.outputs = {1};
  BundlePartition partition;
  partition.image = program::toImage(program);
  const auto* image = reinterpret_cast<const cdl_image_t*>(partition.image.data());
  for (uint32_t c = 1; c < image->constants.count; ++c) {
    if (cdl_get_constant(image, c)->form == 1) {
      partition.constants.push_back(kNoConstant);
    } else {
      const Payload& payload = program.constants[0].payload;
      partition.constants.push_back(bundle.addConstant(payload.hash(), payload.bytes()));
    }
  }
  bundle.partitions.push_back(std::move(partition));
  bundle.steps.push_back({StepKind::soft, 0, {0}, {1}});
  bundle.placement.push_back({"Add_0",
                              "add f32",
                              "host",
                              "host executor",
                              NodePlacement::Class::host,
                              0,
                              0,
                              {1, 2, 3, 4},
                              24,
                              8,
                              2,
                              "2"});
  return bundle;
}

std::vector<float> runOnce(session::Session& session, float first) {
  std::vector<float> x(kCount, first);
  const auto out = session.run(std::vector<Tensor>{Tensor::of<float>(Elem::f32_, {kCount}, x)});
  EXPECT_TRUE(out) << out.status().message();
  if (!out) return {};
  const float* y = (*out)[0].as<float>();
  return {y, y + kCount};
}

class BundleFile : public testing::Test {
protected:
  void SetUp() override {
    path_ = (fs::temp_directory_path() /
             fmt::format("candela_{}_{}.cdb", getpid(),
                         testing::UnitTest::GetInstance()->current_test_info()->name()))
                .string();
  }
  void TearDown() override { fs::remove(path_); }
  std::string good() {
    EXPECT_TRUE(saveBundle(addBundle(), path_));
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  Result<Bundle> loadBytes(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    return loadBundle(path_);
  }
  std::string path_;
};

TEST(Session, RunsOnTheHost) {
  auto session = session::Session::create(addBundle());
  ASSERT_TRUE(session) << session.status().message();
  session::Trace trace(false);
  EXPECT_EQ(runOnce(**session, 1), (std::vector<float>{1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5}));
  EXPECT_EQ(trace.events().size(), 1u);
}

TEST(Session, RunsOnManyThreadsAtOnce) {
  auto session = session::Session::create(addBundle());
  ASSERT_TRUE(session);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const std::vector<float> y = runOnce(**session, static_cast<float>(t * 1000 + i));
        ASSERT_EQ(y.size(), size_t(kCount));
        EXPECT_EQ(y[3], static_cast<float>(t * 1000 + i) + 3.5f);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Session, RefusesInputsOfAnotherType) {
  auto session = session::Session::create(addBundle());
  ASSERT_TRUE(session);
  EXPECT_EQ((*session)->run({}).status().message(), "0 inputs were given, the model has 1");
  const auto wrong =
      (*session)->run(std::vector<Tensor>{Tensor::of<int32_t>(Elem::i32_, {2}, {1, 2})});
  EXPECT_EQ(wrong.status().message(), "input 'x' is f32[8] but i32[2] was given");
}

TEST(Bundle, IncompleteOnesAreRefused) {
  const auto broken = [](auto&& change) {
    Bundle bundle = addBundle();
    change(bundle);
    return verifyBundle(bundle);
  };
  EXPECT_FALSE(broken([](Bundle& b) { b.outputs = {7}; }));
  EXPECT_FALSE(broken([](Bundle& b) { b.steps.clear(); }));
  EXPECT_FALSE(broken([](Bundle& b) { b.steps[0].partition = 1; }));
  EXPECT_FALSE(broken([](Bundle& b) { b.steps[0].kind = StepKind::run; }));
  EXPECT_FALSE(broken([](Bundle& b) { b.steps[0].inputs.clear(); }));
  EXPECT_FALSE(broken([](Bundle& b) { b.steps.push_back(b.steps[0]); }));
  EXPECT_FALSE(broken([](Bundle& b) { b.values[0].dims = {9}; }));
  const auto copyFirst = [](Bundle& b, int64_t count) { // the program reads a copy of the input
    b.values.push_back({"small", Elem::f32_, {count}});
    b.inputs = {2};
    b.steps.insert(b.steps.begin(), {StepKind::copy, 0, {2}, {0}});
  };
  EXPECT_TRUE(broken([&](Bundle& b) { copyFirst(b, kCount); }));
  EXPECT_FALSE(broken([&](Bundle& b) { copyFirst(b, 1); }));
  EXPECT_FALSE(broken([](Bundle& b) { b.partitions[0].constants.clear(); }));
  EXPECT_FALSE(broken([](Bundle& b) { b.partitions[0].constants[0] ^= 1; }));
  EXPECT_FALSE(
      broken([](Bundle& b) { b.partitions[0].image = b.partitions[0].image.slice(0, 400); }));
  EXPECT_TRUE(broken([](Bundle&) {}));
}

TEST(Bundle, OnlyABackendRunsAnExecutable) {
  Bundle bundle = addBundle();
  bundle.partitions[0].executable = Bytes::copyOf("code", 4);
  EXPECT_EQ(verifyBundle(bundle).message(), "partition 0 has an executable, but no backend");
  // One that holds its constants needs none of the bundle's.
  bundle.partitions[0].backend = "acme";
  bundle.steps[0].kind = StepKind::run;
  bundle.partitions[0].constants.clear();
  EXPECT_TRUE(verifyBundle(bundle));
  bundle.partitions[0].executable = {};
  EXPECT_FALSE(verifyBundle(bundle));
}

TEST(Session, StoresWhatItRuns) {
  Bundle bundle = addBundle();
  const Tensor spare = Tensor::of<float>(Elem::f32_, {1}, {3});
  bundle.addConstant(sha256(spare.bytes.data(), spare.sizeBytes()), spare.bytes);
  auto session = session::Session::create(bundle);
  ASSERT_TRUE(session) << session.status().message();
  const std::string path =
      (fs::temp_directory_path() / fmt::format("candela_session_{}.cdb", getpid())).string();
  ASSERT_TRUE((*session)->save(path));
  auto stored = loadBundle(path);
  fs::remove(path);
  ASSERT_TRUE(stored) << stored.status().message();
  EXPECT_EQ(stored->constants.size(), 1u); // nobody reads the spare one
  auto again = session::Session::create(*stored);
  ASSERT_TRUE(again) << again.status().message();
  EXPECT_EQ(runOnce(**again, 1), runOnce(**session, 1));
  EXPECT_FALSE((*session)->save("/no/such/folder/x.cdb"));
}

TEST(Bundle, LoopsThatNeverEndAreRefused) {
  program::Program endless = addProgram();
  endless.instrs[1].waits.clear();
  for (Instr& instr : endless.instrs) instr.loop = 1;
  endless.loops = {{0, 2, program::kNone, uint64_t(1) << 40}, {0, 2, 0, uint64_t(1) << 40}};
  Bundle bundle = addBundle();
  bundle.partitions[0].image = program::toImage(endless);
  const Status status = verifyBundle(bundle);
  EXPECT_EQ(status.code(), Code::bad_model);
  EXPECT_NE(status.message().find("runs more than"), std::string::npos) << status.message();
  endless.loops[0].trip = endless.loops[1].trip = 2;
  bundle.partitions[0].image = program::toImage(endless);
  EXPECT_TRUE(verifyBundle(bundle)) << verifyBundle(bundle).message();
}

TEST_F(BundleFile, RoundTrips) {
  good();
  EXPECT_TRUE(isBundle(path_));
  auto bundle = loadBundle(path_);
  ASSERT_TRUE(bundle) << bundle.status().message();
  EXPECT_EQ(bundle->placement[0].node, "Add_0");
  EXPECT_EQ(bundle->placement[0].products.macs(), 24u);
  EXPECT_EQ(bundle->placement[0].products.columns, 4u);
  EXPECT_EQ(bundle->placement[0].bytesIn, 24u);
  EXPECT_EQ(bundle->placement[0].bytesOut, 8u);
  EXPECT_EQ(bundle->placement[0].elements, 2u);
  auto session = session::Session::create(std::move(bundle).value());
  ASSERT_TRUE(session) << session.status().message();
  EXPECT_EQ(runOnce(**session, 2)[7], 9.5f);
}

TEST_F(BundleFile, TruncatedFilesAreRefusedByName) {
  const std::string bytes = good();
  for (size_t length = 0; length + 64 < bytes.size(); length += 7) {
    const auto bundle = loadBytes(bytes.substr(0, length));
    ASSERT_FALSE(bundle) << "at length " << length;
    EXPECT_NE(bundle.status().message().find(path_), std::string::npos);
  }
}

TEST_F(BundleFile, DamagedFilesAreNeverRun) {
  const std::string bytes = good();
  size_t accepted = 0;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    std::string bad = bytes;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    auto bundle = loadBytes(bad);
    accepted += bundle.isOk();
  }
  // Only the padding between payloads is covered by no hash: at most 63 bytes behind each of four.
  EXPECT_LE(accepted, 4u * 63 / 3 + 4);
}

TEST_F(BundleFile, AnotherVersionIsNamed) {
  std::string bytes = good();
  bytes[6] = 9; // minor
  EXPECT_NE(loadBytes(bytes).status().message().find("bundle version 0.9, this program reads 0.2"),
            std::string::npos);
}

TEST(ImageWalk, FollowsNestedLoops) {
  program::Program p = addProgram();
  p.instrs.push_back(p.instrs[1]);
  p.instrs[0].loop = 0;
  p.instrs[1].loop = 1;
  p.instrs[1].waits.clear();
  p.instrs[2].waits.clear();
  p.loops = {{0, 2, program::kNone, 2}, {1, 1, 0, 3}};
  const Bytes image = program::toImage(p);
  const auto* record = reinterpret_cast<const cdl_image_t*>(image.data());
  char text[256] = "";
  cdl_error_t error{text, sizeof(text), 0};
  ASSERT_EQ(cdl_image_check(image.data(), image.size(), &error), CDL_OK) << text;
  std::string order;
  int64_t loops[CDL_MAX_LOOP_NESTING] = {};
  for (uint32_t i = 1; i < record->instrs.count; i = cdl_next_instr(record, i, loops))
    order += fmt::format("{}@{},{} ", i, loops[0], loops[1]);
  EXPECT_EQ(order, "1@0,0 2@0,0 2@0,1 2@0,2 1@1,0 2@1,0 2@1,1 2@1,2 3@0,0 ");
  EXPECT_EQ(executions(record), 9u);
}

} // namespace
} // namespace candela::runtime::bundle
