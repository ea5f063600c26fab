#pragma once

#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace candela::tool {

class Console;
void addNewBackend(CLI::App& app, Console& console);

/// A file of the projects below new_backend/, compiled into the tool. Path: "<folder>/<path in the
/// project>", where the folder is a language or "common". Text: with @NAME@, @CLASS@ and @VERSION@.
struct SkeletonFile {
  std::string_view path, text;
};
extern const std::vector<SkeletonFile> skeletonFiles;

} // namespace candela::tool
