#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "core/runtime/plugin/plugin.h"
#include "core/support/text/name.h"
#include "core/support/text/scan.h"

namespace candela::runtime::plugin {
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

/// The shared library that holds the runtime; "" where the program does, whose name here is what
/// its caller says (argv[0]), or where it was loaded by a name that means something else from
/// another folder.
std::string ownLibrary() {
  Dl_info info{};
  link_map* map = nullptr;
  const bool isKnown = dladdr1(reinterpret_cast<const void*>(&ownLibrary), &info,
                               reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0;
  return isKnown && map && map->l_name && map->l_name[0] == '/' ? map->l_name : "";
}

/// The folders of CANDELA_PLUGIN_PATH. Failure: invalid_argument for one that depends on where the
/// program was started.
Result<std::vector<std::string>> namedFolders() {
  const char* path = secure_getenv("CANDELA_PLUGIN_PATH");
  std::vector<std::string> folders = text::split(path ? path : "", ':');
  std::erase(folders, "");
  for (const std::string& folder : folders)
    if (!folder.starts_with('/'))
      return badArgument("CANDELA_PLUGIN_PATH: '{}' is no absolute path; plugins of the current "
                         "folder are not loaded by "
                         "name",
                         folder);
  return folders;
}

std::vector<std::string> pluginFolders(std::vector<std::string> folders) {
  std::error_code failed;
  for (const std::string& file : {std::string("/proc/self/exe"), ownLibrary()}) {
    if (file.empty()) continue;
    const fs::path own = fs::canonical(file, failed);
    if (!failed && own.is_absolute()) {
      // of a build and of an installation; here and there lib/<machine>
      for (const char* lib : {"lib", CANDELA_LIBDIR})
        folders.push_back((own.parent_path().parent_path() / lib / "candela").string());
      folders.push_back((own.parent_path() / "candela").string());
    }
  }
  return folders;
}

constexpr std::string_view kPrefix = "libcandela_", kSuffix = ".so";

bool isPath(const std::string& nameOrPath) {
  return nameOrPath.find('/') != std::string::npos || nameOrPath.ends_with(kSuffix);
}

} // namespace

void registerStatic(const std::string& name, cdl_backend_query_fn query) {
  const std::lock_guard lock(registry().mutex);
  registry().backends[name] = query;
}

Result<std::shared_ptr<Plugin>> findPlugin(const std::string& nameOrPath) {
  if (!isPath(nameOrPath)) return findPluginNamed(nameOrPath);
  std::error_code ignored;
  if (!fs::exists(nameOrPath, ignored))
    return failure(Code::not_found, "{}: no such plugin file", nameOrPath);
  return Plugin::load(fs::absolute(nameOrPath, ignored).string());
}

Result<std::shared_ptr<Plugin>> findPluginNamed(const std::string& name) {
  cdl_backend_query_fn query = nullptr;
  {
    const std::lock_guard lock(registry().mutex);
    const auto at = registry().backends.find(name);
    if (at != registry().backends.end()) query = at->second;
  }
  if (query) return Plugin::fromQuery(query, name);
  CDL_ASSIGN(std::vector<std::string> named, namedFolders());
  for (const std::string& folder : pluginFolders(std::move(named))) {
    if (!text::isBackendName(name)) break;
    const fs::path file = fs::path(folder) / fmt::format("{}{}{}", kPrefix, name, kSuffix);
    std::error_code ignored;
    if (fs::exists(file, ignored)) return Plugin::load(file.string());
  }
  std::string all = "reference, soft";
  for (const std::string& known : listPlugins()) all += ", " + known;
  return failure(Code::not_found,
                 "no backend named '{}'; there are {}; more by CANDELA_PLUGIN_PATH", name, all);
}

Result<FoundDevice> findDevice(const std::string& nameOrPath) {
  const text::DeviceName name = text::parseDeviceName(nameOrPath);
  CDL_ASSIGN(std::shared_ptr<Plugin> plugin, findPlugin(name.backend));
  return FoundDevice{std::move(plugin), name.index};
}
Result<FoundDevice> findDeviceNamed(const std::string& text) {
  const text::DeviceName name = text::parseDeviceName(text);
  CDL_ASSIGN(std::shared_ptr<Plugin> plugin, findPluginNamed(name.backend));
  return FoundDevice{std::move(plugin), name.index};
}

std::vector<std::string> listPlugins() {
  std::set<std::string> names;
  {
    const std::lock_guard lock(registry().mutex);
    for (const auto& [name, query] : registry().backends) names.insert(name);
  }
  Result<std::vector<std::string>> named = namedFolders();
  for (const std::string& folder :
       pluginFolders(named ? std::move(*named) : std::vector<std::string>())) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const std::string file = entry.path().filename().string();
      if (file.size() <= kPrefix.size() + kSuffix.size() || !file.starts_with(kPrefix) ||
          !file.ends_with(kSuffix))
        continue;
      const std::string name =
          file.substr(kPrefix.size(), file.size() - kPrefix.size() - kSuffix.size());
      if (text::isBackendName(name)) names.insert(name);
    }
  }
  return {names.begin(), names.end()};
}

} // namespace candela::runtime::plugin
