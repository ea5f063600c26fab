#include "core/support/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "core/support/file.h"
#include "core/support/text/shown.h"

namespace candela {
namespace {

/// What a handler of a signal may read: no lock, no memory that goes.
struct Slot {
  std::atomic<uintptr_t> begin = 0, end = 0;
  char path[512] = "";
};
std::array<Slot, 128> slots;

struct Registry {
  std::mutex mutex;
  std::map<uintptr_t, uint64_t> sizes; ///< by address
};
Registry& registry() {
  static Registry& instance = *new Registry; // mappings may outlive static objects
  return instance;
}

bool isSame(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

Status changed(const std::string& path, const struct stat& then, const struct stat& now) {
  return failure(Code::io,
                 "{}: it was changed while it was in use: {} bytes then, {} now{}; write a new "
                 "file and rename it",
                 path, then.st_size, now.st_size,
                 then.st_size == now.st_size ? ", with another content" : "");
}

/// What a file is that is not a regular one.
const char* kindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

/// Closes the file unless it is kept. Opening a pipe would wait for its writer.
struct OpenFile {
  explicit OpenFile(const std::string& path)
      : fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}
  ~OpenFile() {
    if (fd >= 0) close(fd);
  }
  int fd;
};

/// Reads until there are `size` bytes, or the file ends. Returns how many there are; -1 with errno.
ssize_t readAll(int fd, void* to, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t got = read(fd, static_cast<std::byte*>(to) + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

Result<Bytes> copyFile(const std::string& path, int fd, const struct stat& info) {
  const auto size = static_cast<uint64_t>(info.st_size);
  // All of it is written: it need not be zeroed first.
  void* const data = std::aligned_alloc(64, (size + 63) / 64 * 64);
  if (!data) return failure(Code::out_of_memory, "{}: cannot allocate {} bytes", path, size);
  Bytes bytes = Bytes::wrap(data, size, std::shared_ptr<const void>(data, [](const void* all) {
                              std::free(const_cast<void*>(all));
                            }));
  const ssize_t done = readAll(fd, data, size);
  if (done < 0) return failure(Code::io, "{}: cannot read: {}", path, std::strerror(errno));
  struct stat now;
  if (fstat(fd, &now) != 0) return failure(Code::io, "{}: {}", path, std::strerror(errno));
  if (static_cast<uint64_t>(done) < size || !isSame(info, now)) return changed(path, info, now);
  return bytes;
}

thread_local FileWatch* innermost = nullptr;

} // namespace

class MappedFile {
public:
  MappedFile(std::string path, int fd, const struct stat& info, void* data)
      : path_(std::move(path)), fd_(fd), info_(info), data_(data) {
    const auto begin = reinterpret_cast<uintptr_t>(data);
    const std::lock_guard lock(registry().mutex);
    registry().sizes[begin] = size();
    for (Slot& slot : slots) {
      if (slot.end) continue;
      std::strncpy(slot.path, text::shownLine(path_).c_str(), sizeof slot.path - 1);
      slot.begin = begin;
      slot.end = begin + size();
      break;
    }
  }
  ~MappedFile() {
    const auto begin = reinterpret_cast<uintptr_t>(data_);
    {
      const std::lock_guard lock(registry().mutex);
      registry().sizes.erase(begin);
      for (Slot& slot : slots) {
        if (slot.begin != begin) continue;
        slot.end = 0;
        slot.begin = 0;
      }
    }
    munmap(data_, size());
    close(fd_);
  }

  const void* data() const { return data_; }
  uint64_t size() const { return static_cast<uint64_t>(info_.st_size); }
  Status check() const {
    struct stat now;
    if (fstat(fd_, &now) != 0) return failure(Code::io, "{}: {}", path_, std::strerror(errno));
    return isSame(info_, now) ? Status::ok() : changed(path_, info_, now);
  }

private:
  std::string path_;
  int fd_; ///< of what was mapped, wherever the path leads later
  struct stat info_;
  void* data_;
};

void watchFile(const std::shared_ptr<const MappedFile>& file) {
  for (FileWatch* watch = innermost; watch; watch = watch->outer_) watch->files_.push_back(file);
}

std::string startOf(const std::string& path, size_t count) {
  const OpenFile file(path);
  struct stat info;
  if (file.fd < 0 || fstat(file.fd, &info) != 0 || !S_ISREG(info.st_mode)) return "";
  std::string start(count, '\0');
  const ssize_t done = readAll(file.fd, start.data(), count);
  start.resize(static_cast<size_t>(std::max<ssize_t>(done, 0)));
  return start;
}

Result<Bytes> mapFile(const std::string& path) {
  OpenFile file(path);
  if (file.fd < 0)
    return failure(errno == ENOENT ? Code::not_found : Code::io, "{}: cannot open: {}", path,
                   std::strerror(errno));
  struct stat info;
  if (fstat(file.fd, &info) != 0) return failure(Code::io, "{}: {}", path, std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return failure(Code::io, "{}: not a regular file but {}", path, kindOf(info.st_mode));
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size == 0) return Bytes();
  if (size <= kCopiedBytes) return copyFile(path, file.fd, info);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED)
    return failure(Code::io, "{}: cannot map: {}", path, std::strerror(errno));
  const auto mapped = std::make_shared<const MappedFile>(path, file.fd, info, data);
  file.fd = -1;
  watchFile(mapped);
  return Bytes::wrap(mapped->data(), size, mapped);
}

bool isMapped(const Bytes& bytes) {
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  const std::lock_guard lock(registry().mutex);
  const auto behind = registry().sizes.upper_bound(address);
  return behind != registry().sizes.begin() &&
         address < std::prev(behind)->first + std::prev(behind)->second;
}

namespace {

int cutFileStatus = 1;

void onBusError(int, siginfo_t* info, void*) {
  const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Slot& slot : slots) {
    if (at < slot.begin || at >= slot.end) continue;
    for (const char* text : {"error: ", slot.path, ": it was cut off while it was in use\n"})
      if (write(STDERR_FILENO, text, std::strlen(text)) < 0) break;
    _exit(cutFileStatus);
  }
  std::signal(SIGBUS, SIG_DFL); // a fault of another kind, which comes again
}

} // namespace

void endOnCutFiles(int status) {
  cutFileStatus = status;
  struct sigaction action{};
  action.sa_sigaction = onBusError;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

FileWatch::FileWatch() : outer_(innermost) { innermost = this; }
FileWatch::~FileWatch() { innermost = outer_; }

FileWatch::Files FileWatch::take() {
  std::erase_if(files_, [](const auto& file) { return file.expired(); });
  return std::move(files_);
}

Status checkUnchanged(const FileWatch::Files& files) {
  for (const auto& each : files)
    if (const auto file = each.lock()) CDL_TRY(file->check());
  return Status::ok();
}

} // namespace candela
