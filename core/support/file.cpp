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
  return Bytes::wrap(data, size, std::shared_ptr<const void>(data, [size](const void* p) {
                       munmap(const_cast<void*>(p), size);
                     }));
}

Status writeFile(const std::string& path, const void* data, uint64_t size) {
  const std::string temporary = fmt::format("{}.tmp{}", path, getpid());
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (!file) return failure(Code::io, "{}: cannot write: {}", path, std::strerror(errno));
  const bool written = size == 0 || std::fwrite(data, 1, size, file) == size;
  const int writeError = errno;
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed) {
    const int reason = written ? errno : writeError;
    std::remove(temporary.c_str());
    return failure(Code::io, "{}: cannot write {} bytes: {}", path, size, std::strerror(reason));
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    std::remove(temporary.c_str());
    return failure(Code::io, "{}: cannot write: {}", path, std::strerror(reason));
  }
  return Status::ok();
}

} // namespace candela
