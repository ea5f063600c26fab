#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "core/runtime/plugin/plugin.h"
#include "core/support/text/scan.h"

namespace candela::runtime {
namespace {

namespace fs = std::filesystem;

struct Registry {
  std::mutex mutex;
  std::map<std::string, cdl_backend_query_fn> backends;
};
Registry& registry() {
  static Registry instance;
  return instance;
}

/// Where this code was loaded from: the program, or the shared library that holds the runtime.
std::string ownFile() {
  Dl_info info{};
  return dladdr(reinterpret_cast<const void*>(&ownFile), &info) && info.dli_fname ? info.dli_fname : "";
}

std::vector<std::string> pluginFolders() {
  std::vector<std::string> folders;
  if (const char* path = std::getenv("CANDELA_PLUGIN_PATH")) {
    folders = text::split(path, ':');
    std::erase(folders, "");
  }
  std::error_code ignored;
  for (const std::string& file : {std::string("/proc/self/exe"), ownFile()}) {
    const fs::path own = fs::weakly_canonical(file, ignored);
    if (own.has_parent_path()) {
      for (const char* lib : {"lib", CANDELA_LIBDIR}) // of a build and of an installation; here and there lib/<machine>
        folders.push_back((own.parent_path().parent_path() / lib / "candela").string());
      folders.push_back((own.parent_path() / "candela").string());
    }
  }
  return folders;
}

constexpr std::string_view kPrefix = "libcandela_", kSuffix = ".so";

} // namespace

void registerStatic(const std::string& name, cdl_backend_query_fn query) {
  const std::lock_guard lock(registry().mutex);
  registry().backends[name] = query;
}

Result<std::shared_ptr<Plugin>> findPlugin(const std::string& nameOrPath) {
  if (nameOrPath.find('/') != std::string::npos || nameOrPath.ends_with(kSuffix)) {
    std::error_code ignored;
    if (!fs::exists(nameOrPath, ignored)) return failure(Code::not_found, "{}: no such plugin file", nameOrPath);
    return Plugin::load(fs::absolute(nameOrPath, ignored).string());
  }
  cdl_backend_query_fn query = nullptr;
  {
    const std::lock_guard lock(registry().mutex);
    const auto at = registry().backends.find(nameOrPath);
    if (at != registry().backends.end()) query = at->second;
  }
  if (query) return Plugin::fromQuery(query, nameOrPath);
  for (const std::string& folder : pluginFolders()) {
    const fs::path file = fs::path(folder) / fmt::format("{}{}{}", kPrefix, nameOrPath, kSuffix);
    std::error_code ignored;
    if (fs::exists(file, ignored)) return Plugin::load(file.string());
  }
  std::string all = "reference, soft";
  for (const std::string& name : listPlugins()) all += ", " + name;
  return failure(Code::not_found, "no backend named '{}'; there are {}; more by CANDELA_PLUGIN_PATH", nameOrPath, all);
}

std::vector<std::string> listPlugins() {
  std::set<std::string> names;
  {
    const std::lock_guard lock(registry().mutex);
    for (const auto& [name, query] : registry().backends) names.insert(name);
  }
  for (const std::string& folder : pluginFolders()) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const std::string file = entry.path().filename().string();
      if (file.starts_with(kPrefix) && file.ends_with(kSuffix))
        names.insert(file.substr(kPrefix.size(), file.size() - kPrefix.size() - kSuffix.size()));
    }
  }
  return {names.begin(), names.end()};
}

} // namespace candela::runtime
