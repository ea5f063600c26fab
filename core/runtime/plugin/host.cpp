#include "core/runtime/plugin/host.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "core/support/hash.h"
#include "core/support/text/shown.h"
#include "core/support/worker_pool.h"

namespace candela::runtime::plugin {
namespace {

namespace fs = std::filesystem;

void logToStderr(void*, int level, const char* text) {
  if (level >= 2) std::fprintf(stderr, "%s\n", text::shownText(text ? text : "").c_str());
}

void parallelFor(void*, uint32_t count, void (*body)(void* arg, uint32_t index), void* arg) {
  WorkerPool::ofProcess().run(count, body, arg);
}

/// Whether nobody but its owner and root writes there, in one place wherever the program was
/// started: what lies in it may be code.
bool isTrusted(const char* folder) {
  struct stat info;
  return folder && folder[0] == '/' && stat(folder, &info) == 0 && S_ISDIR(info.st_mode) &&
         !(info.st_mode & S_IWOTH) && (info.st_uid == geteuid() || info.st_uid == 0);
}

/// The file of a key: "" without a cache.
std::string fileOf(const void* key, uint64_t size) {
  const char* folder = secure_getenv("CANDELA_CACHE_DIR");
  return isTrusted(folder) ? (fs::path(folder) / hashText(sha256(key, size))).string()
                           : std::string();
}

/// What plugins make of the bytes is theirs to check: the folder is as trusted as the plugin path.
const void* cacheGet(void*, const void* key, uint64_t keySize, uint64_t* size) {
  thread_local std::string bytes;
  const std::string name = fileOf(key, keySize);
  std::error_code ignored;
  if (name.empty() || !fs::is_regular_file(name, ignored)) return nullptr;
  std::ifstream file(name, std::ios::binary);
  if (!file) return nullptr;
  bytes.assign(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) return nullptr;
  *size = bytes.size();
  return bytes.data();
}

/// By way of a file of this call alone, so that nobody ever reads half of one. What cannot be
/// written is not kept.
void cachePut(void*, const void* key, uint64_t keySize, const void* data, uint64_t size) {
  static std::atomic<unsigned> calls{0};
  const std::string name = fileOf(key, keySize);
  if (name.empty()) return;
  const std::string part = name + "." + std::to_string(getpid()) + "." + std::to_string(calls++);
  std::ofstream file(part, std::ios::binary);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  file.close();
  std::error_code ignored;
  if (file.good()) fs::rename(part, name, ignored);
  if (!file.good() || ignored) fs::remove(part, ignored);
}

} // namespace

const cdl_host_t& host() {
  static const cdl_host_t kHost = [] {
    cdl_host_t host{};
    host.header = CDL_HEADER(cdl_host_t);
    host.log = logToStderr;
    host.parallel_for = parallelFor;
    host.cache_get = cacheGet;
    host.cache_put = cachePut;
    return host;
  }();
  return kHost;
}

} // namespace candela::runtime::plugin
