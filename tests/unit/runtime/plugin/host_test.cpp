// The cache that plugins are offered: what one call put another gets, as it was, or nothing.
#include "core/runtime/plugin/host.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace candela::runtime::plugin {
namespace {

namespace fs = std::filesystem;

class HostCache : public testing::Test {
protected:
  HostCache() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    setenv("CANDELA_CACHE_DIR", folder_.c_str(), 1);
  }
  ~HostCache() override {
    unsetenv("CANDELA_CACHE_DIR");
    fs::remove_all(folder_);
  }
  static void put(const std::string& key, const std::string& value) {
    host().cache_put(host().context, key.data(), key.size(), value.data(), value.size());
  }
  static std::string get(const std::string& key) {
    uint64_t size = 0;
    const void* bytes = host().cache_get(host().context, key.data(), key.size(), &size);
    return bytes ? std::string(static_cast<const char*>(bytes), size) : "nothing";
  }
  const fs::path folder_ = fs::path(testing::TempDir()) / "candela_host_cache";
};

TEST_F(HostCache, KeepsBytesByKey) {
  const std::string bytes("a\0b", 3);
  put("acme 1 conv", bytes);
  put("acme 2 conv", "");
  EXPECT_EQ(get("acme 1 conv"), bytes);
  EXPECT_EQ(get("acme 2 conv"), "");
  EXPECT_EQ(get("acme 3 conv"), "nothing");
  put("acme 1 conv", "another");
  EXPECT_EQ(get("acme 1 conv"), "another");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 2)
      << "something else was left behind";
}

TEST_F(HostCache, KeepsNothingWithoutAFolder) {
  fs::remove_all(folder_);
  put("acme", "bytes");
  EXPECT_EQ(get("acme"), "nothing");
  EXPECT_FALSE(fs::exists(folder_));
  unsetenv("CANDELA_CACHE_DIR");
  put("acme", "bytes");
  EXPECT_EQ(get("acme"), "nothing");
}

} // namespace
} // namespace candela::runtime::plugin
