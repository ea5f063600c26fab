#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tools/candela/console.h"

namespace candela::tool {

/// An empty file in the folder for temporary ones, gone with this. It has no name there, so that a process which is
/// killed leaves nothing behind.
class TemporaryFile {
public:
  /// Throws Failure where none can be made.
  TemporaryFile() {
    std::string name = (std::filesystem::temp_directory_path() / "candela_XXXXXX").string();
    file_ = mkostemp(name.data(), O_CLOEXEC);
    if (file_ < 0) fail(kWorkFailed, "{}: {}", name, std::strerror(errno));
    unlink(name.c_str());
    path_ = fmt::format("/proc/self/fd/{}", file_);
  }
  ~TemporaryFile() { close(file_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  /// Of this process, and of those that it forks.
  const std::string& path() const { return path_; }

private:
  int file_ = -1;
  std::string path_;
};

} // namespace candela::tool
