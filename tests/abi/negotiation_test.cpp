// Old and new hosts against old and new plugins: versions are compared, and no byte beyond a
// struct_size is touched.
#include "host.h"

#include <gmock/gmock.h>

namespace candela::abi {
namespace {

using testing::HasSubstr;

struct Answer {
  cdl_code_t code;
  std::string text;
};

// Queries with a table of `tableBytes`, whose struct_size says so, and guard bytes behind it.
struct Query {
  std::vector<uint8_t> before, after;
  Answer answer;
  uint16_t structSize() const { return static_cast<uint16_t>(after[0] | after[1] << 8); }
};
Query query(const char* path, const cdl_host_t& host, size_t tableBytes) {
  Query q;
  q.before.assign(tableBytes + 64, 0xab);
  const cdl_header_t header = {static_cast<uint16_t>(tableBytes), host.header.major,
                               host.header.minor, 0};
  std::memcpy(q.before.data(), &header, sizeof header);
  q.after = q.before;
  char text[200] = "";
  cdl_error_t error{text, sizeof text, 0};
  const cdl_backend_query_fn entry = load(path);
  q.answer.code = entry(&host, reinterpret_cast<cdl_plugin_t*>(q.after.data()), &error);
  q.answer.text = text;
  return q;
}

struct Door {
  const char* path;
  size_t required; // bytes of the table that reach its last required slot
};
const Door kDoors[] = {
    {PLUGIN_template, offsetof(cdl_plugin_t, run) + sizeof(cdl_plugin_t::run)},
    {PLUGIN_template_memory, offsetof(cdl_plugin_t, run) + sizeof(cdl_plugin_t::run)},
    {PLUGIN_door2, offsetof(cdl_plugin_t, execute) + sizeof(cdl_plugin_t::execute)}};

TEST(Negotiation, AnOldHostGetsAsMuchAsItKnows) {
  for (const Door& door : kDoors)
    for (size_t bytes = sizeof(cdl_header_t); bytes <= sizeof(cdl_plugin_t); ++bytes) {
      const Query q = query(door.path, currentHost(), bytes);
      if (bytes < door.required) {
        EXPECT_EQ(q.answer.code, CDL_INCOMPATIBLE) << bytes;
        EXPECT_THAT(q.answer.text, HasSubstr("the host knows " + std::to_string(bytes)));
        EXPECT_EQ(q.before, q.after) << "written before the answer, " << bytes;
      } else {
        EXPECT_EQ(q.answer.code, CDL_OK) << bytes << q.answer.text;
        EXPECT_EQ(q.structSize(), bytes);
        for (size_t i = bytes; i < q.after.size(); ++i)
          ASSERT_EQ(q.after[i], 0xab) << "byte " << i << " of " << bytes;
      }
    }
}

TEST(Negotiation, ANewHostSeesWhatThePluginKnows) {
  cdl_host_t host = currentHost();
  host.header.minor = 9;
  for (const Door& door : kDoors) {
    const Query q = query(door.path, host, sizeof(cdl_plugin_t) + 32);
    EXPECT_EQ(q.answer.code, CDL_OK) << q.answer.text;
    EXPECT_EQ(q.structSize(), sizeof(cdl_plugin_t));
    for (size_t i = sizeof(cdl_plugin_t); i < q.after.size(); ++i) ASSERT_EQ(q.after[i], 0xab) << i;
  }
}

TEST(Negotiation, ANewHostReadsTheMissingSlotsOfAnOldPluginAsNull) {
  cdl_plugin_t table{};
  table.header = CDL_HEADER(cdl_plugin_t);
  const cdl_host_t host = currentHost();
  ASSERT_EQ(load(PLUGIN_old_plugin)(&host, &table, nullptr), CDL_OK);
  EXPECT_TRUE(CDL_HAS(&table, run));
  EXPECT_FALSE(CDL_HAS(&table, executable_scratch));
  EXPECT_FALSE(CDL_HAS(&table, cancel));
  EXPECT_EQ(table.cancel, nullptr);
  cdl_device_t* device = nullptr;
  ASSERT_EQ(table.device_open(&host, 0, nullptr, 0, &device, nullptr), CDL_OK);
  EXPECT_EQ(table.device_capabilities(device)->space_count, 1u);
  table.device_close(device);
}

TEST(Negotiation, VersionsThatDoNotFitAreNamed) {
  const auto ask = [](const char* path, uint16_t major, uint16_t minor) {
    cdl_host_t host = currentHost();
    host.header.major = major;
    host.header.minor = minor;
    const Query q = query(path, host, sizeof(cdl_plugin_t));
    EXPECT_TRUE(q.answer.code == CDL_OK || q.before == q.after) << "written before the answer";
    return q.answer;
  };
  for (const Door& door : kDoors) {
    EXPECT_EQ(ask(door.path, 0, CDL_ABI_MINOR).code, CDL_OK);
    EXPECT_EQ(ask(door.path, 0, 9).code, CDL_OK);
    EXPECT_EQ(ask(door.path, 0, 0).code, CDL_INCOMPATIBLE);
    EXPECT_THAT(ask(door.path, 0, 0).text,
                HasSubstr(cdl::text("needs host ABI 0.", CDL_ABI_MINOR,
                                    " or a later 0.x, the host has 0.0")));
    EXPECT_EQ(ask(door.path, 1, 0).code, CDL_INCOMPATIBLE);
  }
  EXPECT_EQ(ask(PLUGIN_wrong_abi, 0, 1).code, CDL_INCOMPATIBLE);
  EXPECT_EQ(ask(PLUGIN_wrong_abi, 0, 1).text, "wrong_abi needs host ABI 9.0, the host has 0.1");
}

TEST(Negotiation, AHostOfAnyLengthIsReadNoFurther) {
  for (size_t bytes = 0; bytes <= sizeof(cdl_host_t); ++bytes) {
    cdl_host_t host = currentHost();
    host.header.struct_size = static_cast<uint16_t>(bytes);
    std::vector<uint8_t> start(sizeof host);
    std::memcpy(start.data(), &host, sizeof host);
    start.resize(bytes < sizeof(cdl_header_t) ? sizeof(cdl_header_t) : bytes);
    const Block exact(start);
    const auto* shortHost = static_cast<const cdl_host_t*>(exact.data());
    cdl_plugin_t table{};
    table.header = CDL_HEADER(cdl_plugin_t);
    const cdl_code_t code = load(PLUGIN_template)(shortHost, &table, nullptr);
    if (bytes < sizeof(cdl_header_t)) {
      EXPECT_EQ(code, CDL_INVALID_ARGUMENT) << bytes;
      continue;
    }
    ASSERT_EQ(code, CDL_OK) << bytes;
    cdl_device_t* device = nullptr;
    EXPECT_EQ(table.device_open(shortHost, 0, nullptr, 0, &device, nullptr), CDL_OK) << bytes;
    table.device_close(device);
  }
}

TEST(Negotiation, NullArgumentsAreErrors) {
  cdl_plugin_t table{};
  const cdl_host_t host = currentHost();
  EXPECT_EQ(load(PLUGIN_template)(nullptr, &table, nullptr), CDL_INVALID_ARGUMENT);
  EXPECT_EQ(load(PLUGIN_template)(&host, nullptr, nullptr), CDL_INVALID_ARGUMENT);
  EXPECT_EQ(load(PLUGIN_template)(&host, &table, nullptr), CDL_INVALID_ARGUMENT)
      << "a table of struct_size 0";
}

TEST(Negotiation, ALibraryThatIsNoPluginHasNoEntry) {
  EXPECT_EQ(load(PLUGIN_not_a_plugin), nullptr);
}

} // namespace
} // namespace candela::abi
