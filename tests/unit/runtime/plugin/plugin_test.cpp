// The host against tables that are short, incomplete or hostile: each is refused by the name of
// what is wrong.
#include <candela/backend.hpp>

#include <gmock/gmock.h>

#include "core/runtime/plugin/plugin.h"

namespace candela::runtime::plugin {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class Tiny : public cdl::PrimitiveBackend {
public:
  Tiny() : PrimitiveBackend("tiny", "0.1.0") {
    claim(cdl::Profile::FP32);
    option("speed", "how fast", "slow|fast", "slow");
    option("count", "how many", "int", "1");
  }
};

using Damage = std::function<void(cdl_plugin_t&)>;
Damage damage;

cdl_code_t query(const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error) {
  const cdl_code_t code = cdl::detail::Entry<Tiny>::query(host, out, error);
  if (code == CDL_OK && damage) damage(*out);
  return code;
}

Result<std::shared_ptr<Plugin>> load(Damage how) {
  damage = std::move(how);
  return Plugin::fromQuery(query, "lib");
}

void expectRefused(Damage how, const std::string& why) {
  auto plugin = load(std::move(how));
  ASSERT_FALSE(plugin.isOk()) << why;
  EXPECT_EQ(plugin.status().code(), Code::incompatible) << why;
  EXPECT_THAT(plugin.status().message(), HasSubstr(why));
}

TEST(PluginTable, EveryRequiredSlotIsMissedByName) {
  ASSERT_TRUE(load(nullptr).isOk());
#define CDL_X(slot)                                                                                \
  expectRefused([](cdl_plugin_t& t) { t.slot = nullptr; }, "required slot " #slot " is null");
  CDL_REQUIRED_SLOTS(CDL_X)
#undef CDL_X
  expectRefused([](cdl_plugin_t& t) { t.run = nullptr; }, "required slot run or compile is null");
  expectRefused([](cdl_plugin_t& t) { t.compile = [](auto...) -> cdl_code_t { return CDL_OK; }; },
                "compile needs executable_destroy and execute");
}

TEST(PluginTable, WhatIsWrongIsNamed) {
  expectRefused([](cdl_plugin_t& t) { t.name = nullptr; }, "plugin has no name of [a-z0-9_]");
  expectRefused([](cdl_plugin_t& t) { t.name = "Tiny"; }, "plugin has no name of [a-z0-9_]");
  expectRefused([](cdl_plugin_t& t) { t.version = nullptr; }, "plugin has no version");
  expectRefused([](cdl_plugin_t& t) { t.header.struct_size = 40; },
                "plugin table of 40 bytes is too short");
  expectRefused([](cdl_plugin_t& t) { t.header.struct_size = offsetof(cdl_plugin_t, queue_wait); },
                "required slot queue_wait is null");
  expectRefused(
      [](cdl_plugin_t& t) { t.min_host_minor = 9; },
      fmt::format("plugin needs host ABI 0.9 or newer, this host has 0.{}", CDL_ABI_MINOR));
  expectRefused([](cdl_plugin_t& t) { t.header.major = 7; },
                fmt::format("built against ABI 7.{}, this host takes 0.1 to 0.x", CDL_ABI_MINOR));
  expectRefused([](cdl_plugin_t& t) { t.header.minor = 0; },
                "built against ABI 0.0, this host takes 0.1 to 0.x");
}

TEST(PluginTable, OptionsAreWhole) {
  static cdl_option_schema_t schema[2] = {};
  const auto with = [](const char* first, const char* second) {
    return [=](cdl_plugin_t& t) {
      schema[0].name = first, schema[1].name = second;
      t.options = schema, t.option_count = 2;
    };
  };
  EXPECT_TRUE(load(with("a", "b")).isOk());
  expectRefused([](cdl_plugin_t& t) { t.options = nullptr; }, "options are null");
  expectRefused([](cdl_plugin_t& t) { t.option_count = 1u << 31; },
                "2147483648 options are more than the limit");
  expectRefused(with("a", nullptr), "option 1 has no name");
  expectRefused(with("", "b"), "option 0 has no name");
  expectRefused(with("a", "a"), "option a is there twice");
}

TEST(PluginTable, OptionsAreCheckedBeforeTheDeviceOpens) {
  auto plugin = load(
      [](cdl_plugin_t& t) { t.device_open = [](auto...) -> cdl_code_t { return CDL_INTERNAL; }; });
  ASSERT_TRUE(plugin.isOk());
  const auto answer = [&](const char* name, const char* value) {
    return (*plugin)->open(0, {{name, value}}).status().message();
  };
  EXPECT_THAT(answer("speed", "medium"), HasSubstr("expected slow|fast"));
  EXPECT_THAT(answer("count", "two"), HasSubstr("expected int"));
  EXPECT_THAT(answer("colour", "red"), HasSubstr("unknown option colour; it has speed, count"));
  EXPECT_THAT((*plugin)->open(1, {}).status().message(), EndsWith("device 1 of 1 does not exist"));
  EXPECT_EQ((*plugin)->open(0, {{"speed", "fast"}}).status().code(), Code::internal)
      << "this one is asked";
}

TEST(PluginTable, MissingOptionalSlotsMeanTheirDefaults) {
  auto plugin = load([](cdl_plugin_t& t) {
    t.device_name = nullptr, t.memory_map = nullptr, t.memory_unmap = nullptr,
    t.description = nullptr;
    t.header.struct_size = offsetof(cdl_plugin_t, compile);
  });
  ASSERT_TRUE(plugin.isOk()) << plugin.status().message();
  auto device = (*plugin)->open(0, {});
  ASSERT_TRUE(device.isOk()) << device.status().message();
  EXPECT_EQ((*device)->name(), "tiny");
  EXPECT_FALSE((*device)->compiles());
  auto memory = (*device)->allocate(0, 16, 64);
  ASSERT_TRUE(memory.isOk());
  EXPECT_EQ((*memory)->mapped(), nullptr);
}

TEST(PluginTable, SuccessWithoutAnObjectIsADefect) {
  const auto openWith = [](Damage how) {
    auto plugin = load(std::move(how));
    auto device = (*plugin)->open(0, {});
    if (!device) return device.status().message();
    auto memory = (*device)->allocate(0, 16, 64);
    auto queue = (*device)->createQueue();
    return memory.status().message() + queue.status().message();
  };
  EXPECT_EQ(openWith(nullptr), "");
  EXPECT_THAT(openWith([](cdl_plugin_t& t) {
                t.device_open = [](auto...) -> cdl_code_t { return CDL_OK; };
              }),
              HasSubstr("device_open succeeded without a device"));
  EXPECT_THAT(openWith([](cdl_plugin_t& t) {
                t.device_capabilities = [](cdl_device_t*) -> const cdl_capabilities_t* {
                  return nullptr;
                };
              }),
              HasSubstr("device_capabilities gave nothing"));
  EXPECT_THAT(openWith([](cdl_plugin_t& t) {
                t.memory_create = [](auto...) -> cdl_code_t { return CDL_OK; };
              }),
              HasSubstr("memory_create succeeded without memory"));
  EXPECT_THAT(openWith([](cdl_plugin_t& t) {
                t.queue_create = [](auto...) -> cdl_code_t { return CDL_OK; };
              }),
              HasSubstr("queue_create succeeded without a queue"));
}

TEST(PluginTable, MoreDevicesThanAnyMachineHasAreRefused) {
  expectRefused([](cdl_plugin_t& t) { t.device_count = UINT32_MAX; },
                "4294967295 devices are more than the limit of 1024");
  EXPECT_TRUE(load([](cdl_plugin_t& t) { t.device_count = 1024; }).isOk());
}

// What no slot may do: an exception of a class, of none, and of no memory. Each is told with the
// plugin and the slot.
struct Throw {
  const char* said; ///< behind "tiny: <slot> threw"
  Code code;
  void (*now)();
};
const Throw kThrows[] = {
    {": a bad day", Code::internal, [] { throw std::runtime_error("a bad day"); }},
    {" something that is no std::exception", Code::internal, [] { throw 42; }},
    {": std::bad_alloc", Code::out_of_memory, [] { throw std::bad_alloc(); }}};
const Throw* thrown;

void expectThrown(const char* slot, const Status& status) {
  EXPECT_EQ(status.code(), thrown->code) << slot;
  EXPECT_THAT(status.message(), HasSubstr(fmt::format("{} threw{}", slot, thrown->said)));
  EXPECT_THAT(status.message(), HasSubstr("tiny")) << slot;
}

TEST(PluginThrows, InTheQuery) {
  for (const Throw& one : kThrows) {
    thrown = &one;
    const auto query = [](const cdl_host_t*, cdl_plugin_t*, cdl_error_t*) -> cdl_code_t {
      thrown->now();
      return CDL_OK;
    };
    expectThrown("cdl_backend_query", Plugin::fromQuery(query, "libtiny.so").status());
  }
}

TEST(PluginThrows, InASlotThatOpens) {
  for (const Throw& one : kThrows) {
    thrown = &one;
    const auto opened = [](Damage how) {
      const auto plugin = load(std::move(how));
      EXPECT_TRUE(plugin.isOk());
      return (*plugin)->open(0, {});
    };
    const auto slot = [](auto...) -> cdl_code_t {
      thrown->now();
      return CDL_OK;
    };
    expectThrown("device_open", opened([=](cdl_plugin_t& t) { t.device_open = slot; }).status());
    expectThrown("device_capabilities",
                 opened([](cdl_plugin_t& t) {
                   t.device_capabilities = [](cdl_device_t*) -> const cdl_capabilities_t* {
                     thrown->now();
                     return nullptr;
                   };
                 }).status());
    const auto device = opened([=](cdl_plugin_t& t) {
      t.memory_create = slot, t.queue_create = slot;
      t.device_name = [](cdl_device_t*) -> const char* {
        thrown->now();
        return nullptr;
      };
    });
    ASSERT_TRUE(device.isOk());
    EXPECT_EQ((*device)->name(), "tiny");
    expectThrown("memory_create", (*device)->allocate(0, 16, 64).status());
    expectThrown("queue_create", (*device)->createQueue().status());
  }
}

TEST(PluginThrows, InASlotOfAQueue) {
  for (const Throw& one : kThrows) {
    thrown = &one;
    const auto plugin = load([](cdl_plugin_t& t) {
      const auto slot = [](auto...) -> cdl_code_t {
        thrown->now();
        return CDL_OK;
      };
      t.queue_write = slot, t.queue_read = slot, t.queue_wait = slot, t.queue_signal = slot;
    });
    const auto device = (*plugin)->open(0, {});
    const auto memory = (*device)->allocate(0, 16, 64);
    const auto queue = (*device)->createQueue();
    char bytes[16] = {};
    expectThrown("queue_write", (*queue)->write(**memory, 0, bytes, sizeof bytes));
    expectThrown("queue_read", (*queue)->read(**memory, 0, bytes, sizeof bytes));
    expectThrown("queue_wait", (*queue)->wait(1));
    expectThrown("queue_signal", (*queue)->drain());
  }
}

// Nothing can be returned there: it is a line on stderr, and the process lives.
TEST(PluginThrows, InASlotThatEnds) {
  for (const Throw& one : kThrows) {
    thrown = &one;
    static cdl_plugin_t ending; // what ends first, and throws then
    const auto plugin = load([](cdl_plugin_t& t) {
      ending = t;
      t.device_close = [](cdl_device_t* device) {
        ending.device_close(device);
        thrown->now();
      };
      t.memory_destroy = [](cdl_device_t* device, cdl_memory_t* memory) {
        ending.memory_destroy(device, memory);
        thrown->now();
      };
      t.queue_destroy = [](cdl_device_t* device, cdl_queue_t* queue) {
        ending.queue_destroy(device, queue);
        thrown->now();
      };
    });
    testing::internal::CaptureStderr();
    {
      const auto device = (*plugin)->open(0, {});
      const auto memory = (*device)->allocate(0, 16, 64);
      const auto queue = (*device)->createQueue();
    }
    const std::string told = testing::internal::GetCapturedStderr();
    for (const char* slot : {"device_close", "memory_destroy", "queue_destroy"})
      EXPECT_THAT(told, HasSubstr(fmt::format("tiny: {} threw{}", slot, one.said)));
  }
}

TEST(PluginErrors, UnknownCodesAndEmptyMessagesAreTold) {
  const auto codeOf = [](auto slot) {
    auto plugin = load([=](cdl_plugin_t& t) { t.device_open = slot; });
    return (*plugin)->open(0, {}).status();
  };
  const Status unknown = codeOf([](auto...) -> cdl_code_t { return 999; });
  EXPECT_EQ(unknown.code(), Code::internal);
  EXPECT_EQ(unknown.message(), "tiny: internal (unknown code 999)");
  const Status endless = codeOf([](auto, auto, auto, auto, auto, cdl_error_t* e) -> cdl_code_t {
    std::memset(e->text, 'x', e->capacity); // without its NUL
    e->vendor_code = 7;
    return CDL_DEVICE_LOST;
  });
  EXPECT_EQ(endless.code(), Code::device_lost);
  EXPECT_THAT(endless.message(), EndsWith("x (code 7)"));
}

} // namespace
} // namespace candela::runtime::plugin
