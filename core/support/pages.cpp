#include "core/support/pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "core/support/text/scan.h"

namespace candela {
namespace {

constexpr uint64_t kUnlimited = UINT64_MAX;

/// The beginning of a small file of the system, which says a size of 0; empty where there is none.
std::string beginOf(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  std::array<char, 8192> buffer;
  const ssize_t size = read(fd, buffer.data(), buffer.size());
  close(fd);
  return {buffer.data(), static_cast<size_t>(std::max<ssize_t>(size, 0))};
}

/// The number at the beginning of a text, behind blanks.
std::optional<uint64_t> numberAt(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text::parseNumber<uint64_t>(text.substr(0, text.find_first_not_of("0123456789")));
}

/// The number behind a word at the beginning of a line.
std::optional<uint64_t> numberOf(std::string_view text, std::string_view word) {
  for (size_t at = 0; (at = text.find(word, at)) != text.npos; at += word.size())
    if (at == 0 || text[at - 1] == '\n') return numberAt(text.substr(at + word.size()));
  return std::nullopt;
}

uint64_t leftOf(uint64_t limit, uint64_t used) { return limit - std::min(limit, used); }

/// What nobody uses, and what the system can take back or move to a disk.
uint64_t leftOfMachine() {
  const std::string info = beginOf("/proc/meminfo");
  const auto kibibytes = numberOf(info, "MemAvailable:");
  if (kibibytes) return (*kibibytes + numberOf(info, "SwapFree:").value_or(0)) * 1024;
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

/// How one version of control groups calls its files.
struct GroupFiles {
  /// cache: the line of memory.stat that says what can be taken back
  const char *limit, *used, *cache;
};

/// Of a folder and those above it, each of which may have a limit.
uint64_t leftOfGroups(const std::string& root, std::string group, const GroupFiles& files) {
  uint64_t left = kUnlimited;
  for (;;) {
    const std::string folder = root + group + "/";
    const auto limit = numberAt(beginOf(folder + files.limit)); // none for the word "max"
    const auto used = numberAt(beginOf(folder + files.used));
    if (limit && used) {
      const uint64_t cache = numberOf(beginOf(folder + "memory.stat"), files.cache).value_or(0);
      left = std::min(left, leftOf(*limit, leftOf(*used, cache)));
    }
    if (group.empty()) return left;
    group.resize(group.find_last_of('/') == group.npos ? 0 : group.find_last_of('/'));
  }
}

/// "0::/a/b" of version 2, "5:memory:/a/b" of version 1. In a container the path may be one of
/// outside; the root is ours.
uint64_t leftOfControlGroups() {
  uint64_t left = kUnlimited;
  for (const std::string& line : text::split(beginOf("/proc/self/cgroup"), '\n')) {
    const std::vector<std::string> parts = text::split(line, ':');
    if (parts.size() != 3) continue;
    const std::string group = parts[2] == "/" ? "" : parts[2];
    if (parts[1].empty())
      left = std::min(left, leftOfGroups("/sys/fs/cgroup", group,
                                         {"memory.max", "memory.current", "inactive_file "}));
    else if (parts[1] == "memory")
      left = std::min(left, leftOfGroups("/sys/fs/cgroup/memory", group,
                                         {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                          "total_inactive_file "}));
  }
  return left;
}

uint64_t leftOfAddresses() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  const uint64_t pages = numberAt(beginOf("/proc/self/statm")).value_or(0);
  return leftOf(limit.rlim_cur, pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
}

} // namespace

AvailableMemory availableMemory() {
  AvailableMemory least{leftOfMachine(), "the machine"};
  for (const AvailableMemory& other :
       {AvailableMemory{leftOfControlGroups(), "the control group"},
        AvailableMemory{leftOfAddresses(), "the limit of addresses (ulimit -v)"}})
    if (other.bytes < least.bytes) least = other;
  return least;
}

Result<Bytes> zeroPages(uint64_t size) {
  if (const AvailableMemory available = availableMemory(); size > available.bytes)
    return failure(Code::out_of_memory, "cannot allocate {} bytes: {} has {} left", size,
                   available.of, available.bytes);
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return failure(Code::out_of_memory, "cannot allocate {} bytes", size);
  return Bytes::wrap(data, size, std::shared_ptr<const void>(data, [size](const void* p) {
                       munmap(const_cast<void*>(p), size);
                     }));
}

} // namespace candela
