#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tools/candela/console.h"

namespace candela::tool {

/// An empty file in the folder for temporary ones, gone with this.
class TemporaryFile {
public:
  /// `stem`: how its name begins. Throws Failure where none can be made.
  explicit TemporaryFile(const std::string& stem)
      : path_((std::filesystem::temp_directory_path() / (stem + "_XXXXXX")).string()) {
    const int file = mkstemp(path_.data());
    if (file < 0) fail(kWorkFailed, "{}: {}", path_, std::strerror(errno));
    close(file);
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

private:
  std::string path_;
};

} // namespace candela::tool
