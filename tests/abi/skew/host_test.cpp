// A host of this minor version against plugins of all: the real one (core/runtime/plugin,
// core/compiler/capabilities), built from these headers, and raw calls with structs that end where
// the version says.
#include "core/runtime/plugin/plugin.h"

#include <candela/backend.hpp>

#include <dlfcn.h>
#include <gmock/gmock.h>

#include "tests/abi/image_builder.h"

namespace candela::runtime::plugin {

/// As each version can offer it: the runtime's own fills slots that the oldest lacks.
const cdl_host_t& host() {
  static const cdl_host_t kOffered = [] {
    cdl_host_t offered{};
    offered.header = CDL_HEADER(cdl_host_t);
    offered.log = [](void*, int, const char*) {};
    return offered;
  }();
  return kOffered;
}

namespace {

using abi::Block, abi::ImageBuilder;
using testing::HasSubstr;

constexpr int kHost = CDL_ABI_MINOR;

struct Other {
  int minor;
  int door;
  const char* path;
};
const Other kOthers[] = {SKEW_PLUGINS}; // the build knows them

/// Bytes of the plugin table as a minor version has it.
size_t tableBytes(int minor) {
  const size_t oldest = CDL_OLDEST_cdl_plugin_t;
  return oldest + (minor > 2 ? 56 : 0) + (minor > 3 ? 8 : 0) + (minor > 4 ? 8 : 0);
}

cdl_backend_query_fn symbol(const Other& other, const char* name) {
  void* library = dlopen(other.path, RTLD_NOW | RTLD_LOCAL); // never closed, as by the runtime
  if (!library) ADD_FAILURE() << dlerror();
  return library ? reinterpret_cast<cdl_backend_query_fn>(dlsym(library, name)) : nullptr;
}

/// A struct at the end of a heap block: a sanitizer sees the first byte behind it, the canaries the
/// first before.
template <class T> class Exact {
public:
  explicit Exact(const T& value) : block_(std::vector<uint8_t>(sizeof(T) + 16, 0xab)) {
    std::memcpy(get(), &value, sizeof value);
  }
  T* get() const { return reinterpret_cast<T*>(static_cast<uint8_t*>(block_.data()) + 16); }
  T* operator->() const { return get(); }
  bool isWhole() const {
    const auto* bytes = static_cast<const uint8_t*>(block_.data());
    return std::all_of(bytes, bytes + 16, [](uint8_t byte) { return byte == 0xab; });
  }

private:
  Block block_;
};

cdl_host_t plainHost() {
  cdl_host_t host{};
  host.header = CDL_HEADER(cdl_host_t);
  return host;
}

// y = x + x; in a loop of two rows, so that `run` is given loop values too.
struct Sample {
  ImageBuilder m;
  uint32_t x = m.buffer(CDL_ROLE_INPUT, 24), y = m.buffer(CDL_ROLE_OUTPUT, 24);
  explicit Sample(uint16_t fn = CDL_BINARY_ADD) {
    cdl_view_t from = ImageBuilder::view(x, CDL_I32, {3}), to = ImageBuilder::view(y, CDL_I32, {3});
    from.iv_strides[0] = to.iv_strides[0] = 3;
    m.instr(CDL_KIND_BINARY, fn, {from, from, to}).loop = 1;
    m.loops.push_back({1, 1, 0, 0, 2});
  }
};

/// What door 1 or door 2 makes of these numbers.
std::vector<int32_t> runSample(Device& device, const std::vector<int32_t>& numbers,
                               Status& status) {
  Sample sample;
  const Block image(sample.m.bytes());
  auto queue = device.createQueue();
  auto x = device.allocate(0, 24, 64), y = device.allocate(0, 24, 64);
  EXPECT_TRUE(queue && x && y);
  EXPECT_TRUE((*queue)->write(**x, 0, numbers.data(), 24));
  std::vector<cdl_binding_t> buffers = {{}, {(*x)->handle(), 0, 24}, {(*y)->handle(), 0, 24}};
  cdl_bindings_t whole{};
  whole.header = CDL_HEADER(cdl_bindings_t);
  whole.count = 3;
  whole.buffers = buffers.data();
  const Exact<cdl_bindings_t> bindings(whole);
  if (device.compiles()) {
    cdl_executable_t* executable = nullptr;
    const void* constants[1] = {};
    const Exact<cdl_refusal_t> refusal(cdl_refusal_t{});
    refusal->header = CDL_HEADER(cdl_refusal_t);
    status = callSlot("compile", device.table().compile, device.handle(), image.image(), constants,
                      &executable, refusal.get());
    if (status)
      status = callSlot("execute", device.table().execute, (*queue)->handle(), executable,
                        bindings.get(), nullptr, uint32_t{0},
                        cdl_timeline_t{(*queue)->handle(), (*queue)->next()});
    if (executable) device.table().executable_destroy(device.handle(), executable);
    EXPECT_TRUE(refusal.isWhole());
  } else {
    for (int64_t turn = 0; turn < 2 && status; ++turn) {
      const int64_t loops[CDL_MAX_LOOP_NESTING] = {turn, 0};
      status = callSlot("run", device.table().run, (*queue)->handle(), image.image(), 1u, 1u, loops,
                        bindings.get());
    }
  }
  EXPECT_TRUE(bindings.isWhole());
  std::vector<int32_t> result(6);
  EXPECT_TRUE((*queue)->read(**y, 0, result.data(), 24));
  return result;
}

class Skew : public testing::TestWithParam<Other> {};

TEST_P(Skew, TheTableIsWrittenAsFarAsBothKnow) {
  const cdl_host_t host = plainHost();
  const Exact<cdl_host_t> given(host);
  const size_t known = std::min(tableBytes(kHost), tableBytes(GetParam().minor));
  ASSERT_EQ(sizeof(cdl_plugin_t), tableBytes(kHost));
  std::vector<uint8_t> raw(sizeof(cdl_plugin_t) + 64, 0xab);
  const cdl_header_t header = CDL_HEADER(cdl_plugin_t);
  std::memcpy(raw.data(), &header, sizeof header);
  const Block table(raw);
  auto* out = static_cast<cdl_plugin_t*>(table.data());
  ASSERT_EQ(symbol(GetParam(), CDL_BACKEND_QUERY_SYMBOL)(given.get(), out, nullptr), CDL_OK);
  EXPECT_EQ(out->header.struct_size, known);
  EXPECT_EQ(out->header.minor, GetParam().minor);
  for (size_t i = known; i < raw.size(); ++i)
    ASSERT_EQ(static_cast<uint8_t*>(table.data())[i], 0xab) << "byte " << i << " of " << known;
}

TEST_P(Skew, MissingSlotsAreNullAndPresentOnesWork) {
  auto plugin = Plugin::load(GetParam().path);
  ASSERT_TRUE(plugin) << plugin.status().message();
  const cdl_plugin_t& table = (*plugin)->table();
  EXPECT_EQ(table.run != nullptr, GetParam().door == 1);
#if CDL_ABI_MINOR >= 3
  EXPECT_EQ(table.profile_begin != nullptr, GetParam().minor >= 3);
  EXPECT_EQ(table.cancel, nullptr);
#endif
#if CDL_ABI_MINOR >= 4
  ASSERT_EQ(table.later_4 != nullptr, GetParam().minor >= 4);
  if (table.later_4) {
    EXPECT_EQ(table.later_4(10), 14u);
  }
#endif
#if CDL_ABI_MINOR >= 5
  ASSERT_EQ(table.later_5 != nullptr, GetParam().minor >= 5);
  if (table.later_5) {
    EXPECT_EQ(table.later_5(10), 15u);
  }
#endif
}

TEST_P(Skew, ServicesAreThoseThatBothKnow) {
  static std::string said;
  said.clear();
  cdl_host_t host = plainHost();
  host.context = &said;
  host.log = [](void* context, int, const char* text) {
    *static_cast<std::string*>(context) += text;
  };
  uint64_t expected = 1;
#if CDL_ABI_MINOR >= 3
  host.cache_get = [](void*, const void*, uint64_t, uint64_t*) -> const void* { return nullptr; };
  host.cache_put = [](void*, const void*, uint64_t, const void*, uint64_t) {};
  if (GetParam().minor >= 3) expected |= 2;
#endif
#if CDL_ABI_MINOR >= 4
  host.later_4 = [](void* context, uint64_t value) { return context == &said ? value + 4 : 0; };
  if (GetParam().minor >= 4) expected |= 4;
#endif
#if CDL_ABI_MINOR >= 5
  host.later_5 = [](void* context, uint64_t value) { return context == &said ? value + 5 : 0; };
  if (GetParam().minor >= 5) expected |= 8;
#endif
  auto plugin = Plugin::load(GetParam().path);
  ASSERT_TRUE(plugin);
  cdl_device_t* device = nullptr;
  {
    const Exact<cdl_host_t> given(host); // gone after the call
    ASSERT_EQ((*plugin)->table().device_open(given.get(), 0, nullptr, 0, &device, nullptr), CDL_OK);
  }
  (*plugin)->table().device_close(device);
  EXPECT_EQ(said, "services " + std::to_string(expected));
}

TEST_P(Skew, CapabilitiesOfAnyLengthAreRead) {
  auto plugin = Plugin::load(GetParam().path);
  ASSERT_TRUE(plugin) << plugin.status().message();
  auto device = (*plugin)->open(0, {});
  ASSERT_TRUE(device) << device.status().message();
  const cdl_capabilities_t& given = *(*plugin)->table().device_capabilities((*device)->handle());
  EXPECT_EQ(given.header.minor, GetParam().minor);
  const uint32_t more = 8u * static_cast<uint32_t>(std::max(0, GetParam().minor - 3));
  EXPECT_EQ(given.row_stride, CDL_OLDEST_cdl_row_t + more);
  EXPECT_EQ(given.atom_stride, CDL_OLDEST_cdl_atom_t + more);
#if CDL_ABI_MINOR >= 4
  if (GetParam().minor >= 4) {
    ASSERT_TRUE(CDL_HAS(&given, later_4));
    EXPECT_EQ(given.later_4, 44u);
  } else {
    EXPECT_FALSE(CDL_HAS(&given, later_4));
  }
#endif
  capabilities::InstrDesc add;
  add.kind = CDL_KIND_BINARY;
  add.fn = CDL_BINARY_ADD;
  const auto ask = [&](int64_t count) {
    capabilities::OperandDesc operand;
    operand.elem = Elem::i32_;
    operand.dims = {count};
    add.operands.assign(3, operand);
    return (*device)->target().query(add).support;
  };
  EXPECT_EQ(ask(64), capabilities::Support::native) << "the first row holds";
  EXPECT_EQ(ask(65), capabilities::Support::emulated) << "its atom limits it, a later row does not";
}

TEST_P(Skew, TheDoorRuns) {
  auto plugin = Plugin::load(GetParam().path);
  ASSERT_TRUE(plugin);
  auto device = (*plugin)->open(0, {});
  ASSERT_TRUE(device);
  EXPECT_EQ((*device)->name(), "skew");
  Status status = Status::ok();
  EXPECT_THAT(runSample(**device, {1, 2, 3, 4, 5, -6}, status),
              testing::ElementsAre(2, 4, 6, 8, 10, -12));
  EXPECT_TRUE(status) << status.message();
}

TEST_P(Skew, RefusalsAreFilledAsFarAsTheHostKnows) {
  auto plugin = Plugin::load(GetParam().path);
  ASSERT_TRUE(plugin);
  if (GetParam().door != 2) {
    EXPECT_EQ((*plugin)->table().compile, nullptr) << "the other door has no slot that refuses";
    return;
  }
  auto device = (*plugin)->open(0, {});
  ASSERT_TRUE(device);
  Sample sample(CDL_BINARY_MUL);
  const Block image(sample.m.bytes());
  cdl_refusal_t asked{};
  asked.header = CDL_HEADER(cdl_refusal_t);
  const Exact<cdl_refusal_t> refusal(asked);
  cdl_executable_t* executable = nullptr;
  const void* constants[1] = {};
  const auto compile = (*device)->table().compile;
  EXPECT_EQ(
      compile((*device)->handle(), image.image(), constants, &executable, refusal.get(), nullptr),
      CDL_REFUSED);
  EXPECT_EQ(refusal->instr, 1u);
  EXPECT_EQ(refusal->reason, CDL_REASON_VENDOR);
  EXPECT_TRUE(refusal.isWhole());
#if CDL_ABI_MINOR >= 4
  EXPECT_EQ(refusal->later_4, GetParam().minor >= 4 ? 4u : 0u);
#endif
#if CDL_ABI_MINOR >= 5
  EXPECT_EQ(refusal->later_5, GetParam().minor >= 5 ? 5u : 0u);
#endif
  EXPECT_EQ(compile((*device)->handle(), image.image(), constants, &executable, nullptr, nullptr),
            CDL_REFUSED);
}

TEST_P(Skew, VersionsThatDoNotFitAreRefusedWithBothNumbers) {
  auto strict = Plugin::fromQuery(symbol(GetParam(), "skew_strict_query"), "lib");
  EXPECT_EQ(strict.isOk(), GetParam().minor <= kHost);
  if (!strict) {
    EXPECT_EQ(strict.status().code(), Code::incompatible);
    EXPECT_THAT(strict.status().message(),
                HasSubstr(fmt::format("needs host ABI 0.{} or a later 0.x, the host has 0.{}",
                                      GetParam().minor, kHost)));
  }
  auto other = Plugin::fromQuery(symbol(GetParam(), "skew_major_query"), "lib");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.status().code(), Code::incompatible);
  EXPECT_THAT(other.status().message(),
              HasSubstr(fmt::format("built against ABI 1.{}, this host takes 0.1 to 0.x",
                                    GetParam().minor)));
}

std::string nameOf(const testing::TestParamInfo<Other>& info) {
  return fmt::format("Host{}Plugin{}Door{}", kHost, info.param.minor, info.param.door);
}
INSTANTIATE_TEST_SUITE_P(Pairs, Skew, testing::ValuesIn(kOthers), nameOf);

} // namespace
} // namespace candela::runtime::plugin
