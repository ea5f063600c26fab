#include "core/support/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace candela {

Result<Bytes> mapFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return failure(errno == ENOENT ? Code::not_found : Code::io, "{}: cannot open: {}", path, std::strerror(errno));
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return failure(Code::io, "{}: not a regular file", path);
  }
  const uint64_t size = static_cast<uint64_t>(info.st_size);
  if (size == 0) {
    close(fd);
    return Bytes();
  }
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (data == MAP_FAILED) return failure(Code::io, "{}: cannot map: {}", path, std::strerror(errno));
  return Bytes::wrap(data, size,
                     std::shared_ptr<const void>(data, [size](const void* p) { munmap(const_cast<void*>(p), size); }));
}

Status writeFile(const std::string& path, const void* data, uint64_t size) {
  return writeFile(path, [&](std::FILE* file) { return size == 0 || std::fwrite(data, 1, size, file) == size; });
}

Status writeFile(const std::string& path, const std::function<bool(std::FILE*)>& write) {
  // A device or a pipe is written in place; there is nothing to preserve.
  struct stat info;
  const bool special = stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
  const std::string target = special ? path : fmt::format("{}.tmp{}", path, getpid());
  std::FILE* file = std::fopen(target.c_str(), "wb");
  if (!file) return failure(Code::io, "{}: cannot write: {}", path, std::strerror(errno));
  errno = 0;
  const bool written = write(file) && std::fflush(file) == 0;
  int reason = errno;
  const bool closed = std::fclose(file) == 0;
  if (written && !closed) reason = errno;
  const bool done = written && closed && (special || std::rename(target.c_str(), path.c_str()) == 0);
  if (done) return Status::ok();
  if (written && closed) reason = errno;
  if (!special) std::remove(target.c_str());
  return failure(Code::io, "{}: cannot write: {}", path, std::strerror(reason ? reason : EIO));
}

} // namespace candela
