#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "core/support/file.h"
#include "tools/candela/support/console.h"

namespace candela::tool {

/// An empty file in the folder for temporary ones, gone with this. It has no name there, so that a
/// process which is killed leaves nothing behind; only where /proc is not mounted it keeps one,
/// because nothing else leads to it.
class TemporaryFile {
public:
  /// Throws Failure where none can be made.
  TemporaryFile() {
    name_ = (std::filesystem::temp_directory_path() / "candela_XXXXXX").string();
    file_ = mkostemp(name_.data(), O_CLOEXEC);
    if (file_ < 0) fail(kWorkFailed, "{}: {}", name_, std::strerror(errno));
    path_ = pathOfDescriptor(file_);
    if (path_.empty()) {
      path_ = name_;
      return;
    }
    unlink(name_.c_str());
    name_.clear();
  }
  ~TemporaryFile() {
    close(file_);
    if (!name_.empty()) unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  /// Of this process, and of those that it forks.
  const std::string& path() const { return path_; }

private:
  std::string name_; // in the folder; empty once it is taken away
  int file_ = -1;
  std::string path_;
};

} // namespace candela::tool
