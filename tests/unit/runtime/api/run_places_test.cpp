// Where a run reads its inputs and writes its outputs: in the caller's memory as it lies, whatever
// overlaps there.
#include <candela/candela.hpp>
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "candela/backend.hpp"
#include "core/runtime/plugin/plugin.h"

namespace candela {
namespace {

namespace fs = std::filesystem;

sdk::Model modelOf(const std::string& text, const std::string& backends,
                   std::vector<std::string> states = {}) {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  std::string name =
      std::string("places_") + info->name() + "_" + std::to_string(getpid()) + ".cdl";
  for (char& c : name) c = c == '/' ? '_' : c;
  const std::string path = (fs::temp_directory_path() / name).string();
  std::ofstream(path) << text;
  sdk::Options options;
  options.backends = backends;
  options.states = std::move(states);
  sdk::Model model = sdk::Model::compile(path, options);
  fs::remove(path);
  return model;
}

candela_tensor_t floats(float* data, std::vector<int64_t> dims) {
  candela_tensor_t tensor{CANDELA_F32, static_cast<uint32_t>(dims.size()), {}, data, sizeof(float)};
  for (size_t d = 0; d < dims.size(); ++d) {
    tensor.dims[d] = dims[d];
    tensor.bytes *= static_cast<uint64_t>(dims[d]);
  }
  return tensor;
}

void run(const sdk::Model& model, const std::vector<candela_tensor_t>& in,
         std::vector<candela_tensor_t> out) {
  model.run(in, out);
}

std::vector<float> rising(size_t count, float first = 1) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// y[j,i] = x[i,j]: no output is written where its own input was read.
constexpr const char* kTurn = R"(graph @g(%x: f32[24,40]) -> (%y: f32[40,24]) {
  %y = transpose %x {perm = [1, 0]}
}
)";
constexpr int64_t kRows = 24, kColumns = 40;
constexpr size_t kCount = kRows * kColumns;

std::vector<float> turned(const std::vector<float>& x) {
  std::vector<float> y(kCount);
  for (size_t i = 0; i < kCount; ++i) y[i % kColumns * kRows + i / kColumns] = x[i];
  return y;
}

class Places : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Places,
                         testing::Values("reference", "soft", PLUGIN_template,
                                         PLUGIN_template_memory, PLUGIN_door2
#ifdef PLUGIN_cpu
                                         ,
                                         PLUGIN_cpu
#endif
                                         ),
                         [](const auto& info) { return std::to_string(info.index); });

TEST_P(Places, AnOutputMayBeTheInput) {
  const sdk::Model model = modelOf(kTurn, GetParam());
  const std::vector<float> x = rising(kCount);
  for (const ptrdiff_t offset : {0, 4, 100, -4}) { // the same memory, and such that they overlap
    std::vector<float> memory(3 * kCount, -1);
    float *in = memory.data() + kCount, *out = in + offset;
    std::copy(x.begin(), x.end(), in);
    run(model, {floats(in, {kRows, kColumns})}, {floats(out, {kColumns, kRows})});
    EXPECT_EQ(std::vector<float>(out, out + kCount), turned(x)) << offset;
    EXPECT_EQ(out[-1], offset > 0 ? x[static_cast<size_t>(offset) - 1] : -1) << offset;
    EXPECT_EQ(out[kCount], offset < 0 ? x[kCount + static_cast<size_t>(offset)] : -1) << offset;
  }
}

TEST_P(Places, MemoryNeedsNoAlignment) {
  const sdk::Model model = modelOf(kTurn, GetParam());
  const std::vector<float> x = rising(kCount);
  for (size_t in = 0; in < 8; ++in)
    for (size_t out = 0; out < 8; ++out) {
      std::vector<char> from(4 * kCount + 64), to(4 * kCount + 64, 7);
      const size_t odd = in == 7 ? 1 : 0; // not even that of an element
      std::memcpy(from.data() + 4 * in + odd, x.data(), 4 * kCount);
      run(model, {floats(reinterpret_cast<float*>(from.data() + 4 * in + odd), {kRows, kColumns})},
          {floats(reinterpret_cast<float*>(to.data() + 4 * out + odd), {kColumns, kRows})});
      std::vector<float> y(kCount);
      std::memcpy(y.data(), to.data() + 4 * out + odd, 4 * kCount);
      ASSERT_EQ(y, turned(x)) << in << " " << out;
      ASSERT_TRUE(std::all_of(to.begin(), to.begin() + static_cast<ptrdiff_t>(4 * out + odd),
                              [](char c) { return c == 7; }));
      ASSERT_TRUE(std::all_of(to.begin() + static_cast<ptrdiff_t>(4 * (kCount + out) + odd),
                              to.end(), [](char c) { return c == 7; }));
    }
}

/// What is computed in place inside of the program leaves the caller's input as it is.
TEST_P(Places, InputsAreOnlyRead) {
  const sdk::Model model = modelOf(R"(graph @g(%x: f32[1000], %y: f32[1000]) -> (%c: f32[1000]) {
  %a = relu %x
  %b = add %a, %y
  %s = sigmoid %b
  %c = mul %s, %x
}
)",
                                   GetParam());
  std::vector<float> x = rising(1000, -500), out(1000);
  const std::vector<float> was = x;
  for (float& v : x) v /= 100;
  const std::vector<float> scaled = x;
  run(model, {floats(x.data(), {1000}), floats(x.data(), {1000})},
      {floats(out.data(), {1000})}); // one input, two names
  EXPECT_EQ(x, scaled);
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(out[i], x[i] / (1 + std::exp(-(std::max(x[i], 0.f) + x[i]))), 1e-5f) << i;
  // and the output there
  run(model, {floats(x.data(), {1000}), floats(x.data(), {1000})}, {floats(x.data(), {1000})});
  EXPECT_EQ(x, out);
}

/// Inputs and constants that are outputs, one value by two names, and values without elements.
constexpr const char* kShared =
    R"(graph @g(%x: f32[16], %y: f32[16], %e: f32[0,4]) -> (%a: f32[16], %b: f32[16], %c: f32[16], %d: f32[16], %k: f32[3], %f: f32[0,4]) {
  %a = add %x, %y
  %b = add %x, %y
  %c = reshape %x {shape = [16]}
  %d = reshape %y {shape = [16]}
  %k = constant [1.0, 2.0, 3.0] : f32[3]
  %f = relu %e
}
)";

TEST_P(Places, WhatIsPassedOnIsWrittenToo) {
  const sdk::Model model = modelOf(kShared, GetParam());
  const std::vector<float> x = rising(16), y = rising(16, 100);
  std::vector<float> sum(16);
  for (size_t i = 0; i < 16; ++i) sum[i] = x[i] + y[i];
  for (int round = 0; round < 3; ++round) {
    std::vector<float> in0 = x, in1 = y, a(16), b(16), c(16), d(16), k(3);
    float nothing = 5;
    float* none = round == 1 ? &nothing : nullptr;
    const candela_tensor_t empty{CANDELA_F32, 2, {0, 4}, none, 0};
    float* toC = round == 2 ? in1.data() : c.data(); // they change places
    float* toD = round == 2 ? in0.data() : d.data();
    run(model, {floats(in0.data(), {16}), floats(in1.data(), {16}), empty},
        {floats(a.data(), {16}),
         floats(b.data(), {16}),
         floats(toC, {16}),
         floats(toD, {16}),
         floats(k.data(), {3}),
         {CANDELA_F32, 2, {0, 4}, &nothing, 0}});
    EXPECT_EQ(a, sum);
    EXPECT_EQ(b, sum);
    EXPECT_EQ(std::vector<float>(toC, toC + 16), x) << round;
    EXPECT_EQ(std::vector<float>(toD, toD + 16), y) << round;
    EXPECT_EQ(k, (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(nothing, 5);
  }
}

TEST_P(Places, TheLibraryAllocatesWhatLiesNowhere) {
  const sdk::Model model = modelOf(kTurn, GetParam());
  std::vector<float> x = rising(kCount);
  for (int round = 0; round < 2; ++round) {
    std::vector<candela_tensor_t> out(1);
    model.run({floats(x.data(), {kRows, kColumns})}, out);
    ASSERT_EQ(out[0].bytes, 4 * kCount);
    const auto* data = static_cast<const float*>(out[0].data);
    EXPECT_EQ(std::vector<float>(data, data + kCount), turned(x));
    candela_free_data(out[0].data);
  }
}

TEST_P(Places, RoomThatIsTooSmallIsRefusedBeforeTheRun) {
  const sdk::Model model = modelOf(kTurn, GetParam());
  std::vector<float> x = rising(kCount), y(kCount, 3);
  std::vector<candela_tensor_t> out{floats(y.data(), {kColumns, kRows})};
  out[0].bytes -= 1;
  try {
    model.run({floats(x.data(), {kRows, kColumns})}, out);
    ADD_FAILURE() << "ran";
  } catch (const sdk::Error& error) {
    EXPECT_STREQ(error.what(), "output 'y' needs 3840 bytes, there are 3839");
  }
  EXPECT_EQ(y, std::vector<float>(kCount, 3));
}

TEST_P(Places, ThreadsHaveMemoryOfTheirOwn) {
  const sdk::Model model = modelOf(kTurn, GetParam());
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        std::vector<float> x = rising(kCount, static_cast<float>(1000 * t + i)), y(kCount);
        run(model, {floats(x.data(), {kRows, kColumns})}, {floats(y.data(), {kColumns, kRows})});
        right += y == turned(x);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 100);
}

/// Memory that ends where the next page cannot be touched, or begins behind such a page.
class Fenced {
public:
  explicit Fenced(size_t bytes, bool atEnd) : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    const size_t inner = (bytes + page_ - 1) / page_ * page_;
    size_ = inner + 2 * page_;
    base_ = static_cast<char*>(mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(base_ + page_, inner, PROT_READ | PROT_WRITE), 0);
    data_ = base_ + page_ + (atEnd ? inner - bytes : 0);
  }
  ~Fenced() { munmap(base_, size_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  float* data() const { return reinterpret_cast<float*>(data_); }

private:
  size_t page_, size_;
  char *base_, *data_;
};

/// Kernels touch no byte beside the caller's, where those are used as they lie.
TEST_P(Places, NothingIsTouchedAroundTheCallersMemory) {
  const sdk::Model model = modelOf(
      R"(graph @g(%x: f32[4,5,12,11], %a: f32[12,7]) -> (%c: f32[4,6,12,11], %p: f32[4,5,6,5], %m: f32[12,12], %t: f32[4,11,5,12], %s: f32[4,5,12,11], %r: f32[4,12,11]) {
  %w = constant random(3) : f32[6,5,3,3]
  %c = conv %x, %w {pads = [1, 1, 1, 1]}
  %p = max_pool %x {kernel_shape = [2, 2], strides = [2, 2]}
  %k = constant random(4) : f32[7,12]
  %m = matmul %a, %k
  %t = transpose %x {perm = [0, 3, 1, 2]}
  %s = softmax %x {axis = 3}
  %r = reduce_sum %x {axes = [1], keepdims = 0}
}
)",
      GetParam());
  const std::vector<std::vector<int64_t>> inDims{{4, 5, 12, 11}, {12, 7}};
  const std::vector<std::vector<int64_t>> outDims{{4, 6, 12, 11}, {4, 5, 6, 5},   {12, 12},
                                                  {4, 11, 5, 12}, {4, 5, 12, 11}, {4, 12, 11}};
  std::vector<std::vector<float>> results[2];
  for (const bool atEnd : {false, true}) {
    std::vector<std::unique_ptr<Fenced>> memory;
    const auto fenced = [&](const std::vector<std::vector<int64_t>>& all) {
      std::vector<candela_tensor_t> tensors;
      for (const auto& dims : all) {
        const size_t bytes = floats(nullptr, dims).bytes;
        memory.push_back(std::make_unique<Fenced>(bytes, atEnd));
        for (size_t i = 0; i < bytes / 4; ++i)
          memory.back()->data()[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
        tensors.push_back(floats(memory.back()->data(), dims));
        EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.back()->data()) % CANDELA_ALIGNMENT, 0u);
      }
      return tensors;
    };
    const std::vector<candela_tensor_t> in = fenced(inDims), out = fenced(outDims);
    run(model, in, out);
    for (const candela_tensor_t& tensor : out) {
      const auto* data = static_cast<const float*>(tensor.data);
      results[atEnd].emplace_back(data, data + tensor.bytes / 4);
    }
  }
  EXPECT_EQ(results[0], results[1]);
}

// ---- What a device is asked

std::vector<void*> imported;
uint64_t copied = 0;

/// Adds, and tells what it was given.
class Telling : public cdl::PrimitiveBackend {
public:
  Telling() : PrimitiveBackend("telling", "1") { claim(cdl::Profile::FP32); }
  cdl::Status binary(const cdl::Binary& op) override {
    cdl::forEachRow(
        [](int64_t n, cdl::Row<float> y, cdl::Row<const float> a, cdl::Row<const float> b) {
          for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
        },
        op.y<float>(), op.a<const float>(), op.b<const float>());
    return cdl::ok();
  }
  cdl::Status memoryImport(void* data, uint64_t bytes, cdl::Memory& memory) override {
    if (reinterpret_cast<uintptr_t>(data) % 64 != 0)
      return cdl::unsupported("not where a line begins");
    imported.push_back(data);
    return PrimitiveBackend::memoryImport(data, bytes, memory);
  }
  cdl::Status memoryWrite(cdl::Memory& to, uint64_t offset, const void* from,
                          uint64_t bytes) override {
    copied += bytes;
    return PrimitiveBackend::memoryWrite(to, offset, from, bytes);
  }
  cdl::Status memoryRead(cdl::Memory& from, uint64_t offset, void* to, uint64_t bytes) override {
    copied += bytes;
    return PrimitiveBackend::memoryRead(from, offset, to, bytes);
  }
};

TEST(Device, IsGivenTheCallersMemoryWhereItTakesIt) {
  runtime::plugin::registerStatic("telling", cdl::detail::Entry<Telling>::query);
  const sdk::Model model = modelOf(
      "graph @g(%x: f32[16], %y: f32[16]) -> (%a: f32[16]) {\n  %a = add %x, %y\n}\n", "telling");
  alignas(64) float memory[4][16] = {};
  alignas(64) float apart[20] = {};
  for (float& v : memory[0]) v = 3;
  for (float& v : memory[1]) v = 4;
  imported.clear();
  copied = 0;
  run(model, {floats(memory[0], {16}), floats(memory[1], {16})}, {floats(memory[2], {16})});
  EXPECT_EQ(imported, (std::vector<void*>{memory[0], memory[1], memory[2]}));
  EXPECT_EQ(copied, 0u);
  EXPECT_EQ(memory[2][15], 7);
  imported.clear();
  // aligned to 16
  run(model, {floats(apart + 4, {16}), floats(memory[1], {16})}, {floats(memory[3], {16})});
  EXPECT_EQ(imported, (std::vector<void*>{memory[1], memory[3]}));
  EXPECT_EQ(copied, 64u);
  EXPECT_EQ(memory[3][15], 4);
  run(model, {floats(memory[0], {16}), floats(memory[1], {16})}, {floats(apart + 1, {16})});
  EXPECT_EQ(copied, 128u);
  EXPECT_EQ(apart[16], 7);
}

} // namespace
} // namespace candela
