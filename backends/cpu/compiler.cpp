#include "compiler.hpp"

#include "version.hpp"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <mutex>
#include <unistd.h>

namespace cpu {

namespace {

/// The folder of a file, without its last slash.
std::string folderOf(const std::string& file) {
  const size_t slash = file.rfind('/');
  return slash == std::string::npos ? "." : file.substr(0, slash);
}

/// Where the library may lie, the likeliest first, each folder once.
std::vector<std::string> folders() {
  std::vector<std::string> found;
  const auto add = [&](const std::string& folder) {
    if (folder.empty() || folder[0] != '/') return; // where the program was started says nothing
    if (std::find(found.begin(), found.end(), folder) == found.end()) found.push_back(folder);
  };
  // Of a program itself the name is empty here; dli_fname would be what its caller says.
  Dl_info info{};
  link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<const void*>(&openCompiler), &info, reinterpret_cast<void**>(&map),
              RTLD_DL_LINKMAP) &&
      map && map->l_name)
    add(folderOf(map->l_name));
  if (const char* path = secure_getenv("CANDELA_PLUGIN_PATH")) {
    const std::string all = path;
    for (size_t from = 0; from <= all.size();) {
      const size_t colon = std::min(all.find(':', from), all.size());
      if (colon > from) add(all.substr(from, colon - from));
      from = colon + 1;
    }
  }
  char program[4096];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program);
  if (length > 0) {
    const std::string own = folderOf(std::string(program, static_cast<size_t>(length)));
    add(folderOf(own) + "/lib/candela");
    add(own + "/candela");
  }
  return found;
}

cdl::Status load(const Compiler*& opened) {
  std::string places;
  for (const std::string& folder : folders()) {
    const std::string file = folder + "/" + kCompilerFile;
    places += (places.empty() ? "" : ", ") + folder;
    if (access(file.c_str(), F_OK) != 0) continue;
    // Never closed, as LLVM registers what runs at exit. It is linked as it was built: symbols do
    // not mix with the program's.
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return cdl::error(CDL_NOT_FOUND, file + ": cannot load the compiler: " + dlerror());
    const auto* compiler = static_cast<const Compiler*>(dlsym(library, kCompilerSymbol));
    if (!compiler || compiler->format != kFormat)
      return cdl::error(CDL_INCOMPATIBLE,
                        file + ": " +
                            (compiler ? "compiles to format " + std::to_string(compiler->format)
                                      : "is no compiler") +
                            ", this is cpu " + kVersion + ", which runs format " +
                            std::to_string(kFormat));
    opened = compiler;
    return cdl::ok();
  }
  return cdl::error(CDL_NOT_FOUND, std::string("compiling needs ") + kCompilerFile +
                                       ", and there is none in: " + places +
                                       "; stored executables run without it");
}

} // namespace

cdl::Status openCompiler(const Compiler*& compiler) {
  static std::mutex mutex;
  static const Compiler* opened = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  cdl::Status status = opened ? cdl::ok() : load(opened);
  compiler = opened;
  return status;
}

} // namespace cpu
