#include "core/support/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace candela {

namespace {

/// A new file in the folder of `path`, by which a killed process leaves nothing behind: it has no
/// name before it is whole. -1 where the file system has no such files, or where none could be
/// named later.
int openUnnamed(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  const std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
  const int file = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0 || !pathOfDescriptor(file).empty()) return file;
  close(file);
  return -1;
}

bool giveName(int file, const std::string& name) {
  const std::string here = pathOfDescriptor(file);
  const auto link = [&] {
    return linkat(AT_FDCWD, here.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  if (link()) return true;
  // of a killed process that had our number
  return errno == EEXIST && std::remove(name.c_str()) == 0 && link();
}

/// A file of that name and nobody else's: what was left there, or a link, is not written through.
int openExclusively(const std::string& name) {
  const auto make = [&] {
    return open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  };
  const int file = make();
  return file < 0 && errno == EEXIST && std::remove(name.c_str()) == 0 ? make() : file;
}

} // namespace

std::string pathOfDescriptor(int descriptor) {
  std::string path = fmt::format("/proc/self/fd/{}", descriptor);
  return access(path.c_str(), F_OK) == 0 ? path : std::string();
}

Status writeFile(const std::string& path, const void* data, uint64_t size) {
  return writeFile(
      path, [&](std::FILE* file) { return size == 0 || std::fwrite(data, 1, size, file) == size; });
}

Status writeFile(const std::string& path, const std::function<bool(std::FILE*)>& write) {
  // A device or a pipe is written in place, as is a file without a name: there is nothing to
  // preserve.
  struct stat info{};
  const bool isInPlace =
      stat(path.c_str(), &info) == 0 && (!S_ISREG(info.st_mode) || info.st_nlink == 0);
  const std::string temporary = fmt::format("{}.tmp{}", path, getpid());
  int fd = isInPlace ? open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)
                     : openUnnamed(path);
  const bool isUnnamed = !isInPlace && fd >= 0;
  if (!isInPlace && !isUnnamed) fd = openExclusively(temporary);
  std::FILE* const file = fd < 0 ? nullptr : fdopen(fd, "wb");
  if (!file) {
    const int reason = errno;
    if (fd >= 0) close(fd);
    if (fd >= 0 && !isInPlace && !isUnnamed) std::remove(temporary.c_str());
    return failure(Code::io, "{}: cannot write: {}", path, std::strerror(reason));
  }
  errno = 0;
  const bool written =
      write(file) && std::fflush(file) == 0 && (!isUnnamed || giveName(fd, temporary));
  int reason = errno;
  const bool closed = std::fclose(file) == 0;
  if (written && !closed) reason = errno;
  const bool done =
      written && closed && (isInPlace || std::rename(temporary.c_str(), path.c_str()) == 0);
  if (done) return Status::ok();
  if (written && closed) reason = errno;
  if (!isInPlace && (written || !isUnnamed)) std::remove(temporary.c_str());
  return failure(Code::io, "{}: cannot write: {}", path, std::strerror(reason ? reason : EIO));
}

} // namespace candela
