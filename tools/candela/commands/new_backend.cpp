// candela new-backend: the first files of a port, as a CMake project of its own.
#include "tools/candela/commands/new_backend.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "candela/candela.hpp"
#include "tools/candela/support/command.h"
#include "tools/candela/support/template.h"

namespace candela::tool {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFooter = R"(Example:
  candela new-backend acme acme && cd acme
  cmake -B build -DCMAKE_PREFIX_PATH=/opt/candela && cmake --build build && ctest --test-dir build
  candela run model.onnx --random 1 --backend build/lib/candela/libcandela_acme.so --explain

The project needs an installed Candela and nothing else. Every model runs at once: the plugin
brings memory, the host emulates each instruction. Its README.md says how to go on.)";

struct Arguments {
  std::string name, folder, language = "c++", door = "primitive";
};

/// As cdl_plugin_t.name has to be, and as C can spell it: it becomes part of a function's name.
void checkName(const std::string& name) {
  const auto isLower = [](char c) { return c >= 'a' && c <= 'z'; };
  bool fits = !name.empty() && name.size() <= 64 && isLower(name[0]);
  for (const char c : name) fits = fits && (isLower(c) || (c >= '0' && c <= '9') || c == '_');
  if (!fits)
    fail(kBadInput,
         "NAME '{}': a backend's name is a letter a-z, then at most 63 of a-z, 0-9 and _, such as "
         "{}",
         name, "acme_npu2");
  if (name == "soft" || name == "reference")
    fail(kBadInput, "NAME '{}': is a backend of Candela itself; choose another name", name);
}

/// acme_npu2: AcmeNpu2
std::string className(const std::string& name) {
  std::string made;
  bool upper = true;
  for (const char c : name) {
    if (c != '_') made += upper && c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c;
    upper = c == '_';
  }
  return made;
}

/// What was made so far; taken away again unless all of it was.
class Making {
public:
  explicit Making(fs::path root) : root_(std::move(root)) {}
  ~Making() {
    // takes no memory
    for (; !isDone_ && !made_.empty(); made_.pop_back()) std::remove(made_.back().c_str());
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

  void makeFolder(const fs::path& folder) {
    std::error_code error;
    if (folder.empty() || fs::is_directory(folder, error)) return;
    makeFolder(folder.parent_path());
    if (fs::create_directory(folder, error)) made_.push_back(folder);
    if (error)
      fail(kWorkFailed, "{}: cannot be made: {}; nothing was left behind", folder.string(),
           error.message());
  }
  void write(const std::string& path, const std::string& text) {
    const fs::path file = root_ / path;
    makeFolder(file.parent_path());
    FILE* out = std::fopen(file.c_str(), "wx"); // never over a file
    bool written = out != nullptr;
    int reason = errno;
    if (out) {
      made_.push_back(file);
      written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
      reason = errno;
      if (std::fclose(out) != 0 && written) {
        written = false;
        reason = errno;
      }
    }
    if (!written)
      fail(kWorkFailed, "{}: cannot be written: {}; nothing was left behind", file.string(),
           std::strerror(reason));
  }
  void finish() { isDone_ = true; }

private:
  fs::path root_;
  std::vector<fs::path> made_;
  bool isDone_ = false;
};

/// The installation that this tool is part of, or empty: run from where it was built.
std::string prefix() {
  std::error_code ignored;
  const fs::path root = fs::canonical("/proc/self/exe", ignored).parent_path().parent_path();
  const auto holdsPackage = [&](const fs::path& folder) {
    return fs::exists(folder / "cmake" / "Candela" / "CandelaConfig.cmake", ignored);
  };
  for (const char* name : {"lib", "lib64"}) {
    if (holdsPackage(root / name)) return root.string();
    // lib/<machine>
    for (fs::directory_iterator at(root / name, ignored), end; at != end; at.increment(ignored))
      if (holdsPackage(at->path())) return root.string();
  }
  return "";
}

void newBackend(const Arguments& arguments, Console& console) {
  checkName(arguments.name);
  if (arguments.door != "primitive")
    fail(kBadInput,
         "--door {}: a port begins behind the door 'primitive'; how it moves to another stands in "
         "the porting guide",
         arguments.door);
  if (arguments.folder.empty()) fail(kBadInput, "DIR: a folder is needed");
  const fs::path root = arguments.folder;
  std::error_code error;
  if (fs::exists(root, error) && !fs::is_directory(root, error))
    fail(kBadInput, "{}: is there already and no folder; give a new one", arguments.folder);
  if (fs::is_directory(root, error) && !fs::is_empty(root, error))
    fail(kBadInput, "{}: is not empty; give a new folder, nothing is written over",
         arguments.folder);

  const std::string version = candela_version();
  const std::map<std::string_view, std::string> values = {
      {"NAME", arguments.name},
      {"CLASS", className(arguments.name)},
      {"VERSION", version.substr(0, version.find('.', version.find('.') + 1))}};
  Making making(root);
  making.makeFolder(root);
  Json files = Json::array();
  for (const SkeletonFile& file : skeletonFiles) {
    const size_t slash = file.path.find('/');
    const std::string_view language = file.path.substr(0, slash);
    if (language != "common" && language != arguments.language) continue;
    const std::string path(file.path.substr(slash + 1));
    making.write(path, filledTemplate(file.text, values));
    files.push_back(path);
  }
  making.finish();

  const std::string found = prefix(),
                    plugin = fmt::format("build/lib/candela/libcandela_{}.so", arguments.name);
  console.print("{}: {} files of a backend in {}; README.md says how to go on\n",
                console.bold(arguments.folder), files.size(),
                arguments.language == "c" ? "C" : "C++");
  console.print("  cd {}\n", shellQuoted(arguments.folder));
  console.print(
      "  cmake -B build -DCMAKE_PREFIX_PATH={} && cmake --build build && ctest --test-dir build\n",
      found.empty() ? "<where Candela is installed>" : shellQuoted(found));
  console.print("  candela run MODEL.onnx --random 1 --backend {} --explain\n", plugin);
  Json report = console.report("new_backend");
  report["name"] = arguments.name;
  report["language"] = arguments.language;
  report["folder"] = arguments.folder;
  report["files"] = std::move(files);
  report["plugin"] = plugin;
  console.writeJson(report);
}

} // namespace

void addNewBackend(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand(
      "new-backend", "Write the first files of a backend, as a project of its own.");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("NAME", arguments->name, "the backend's name: a-z, 0-9 and _")->required();
  command->add_option("DIR", arguments->folder, "the project's folder: a new or an empty one")
      ->required();
  command->add_option("--language", arguments->language, "what it is written in (c++)")
      ->type_name("c++|c")
      ->check(CLI::IsMember({"c++", "c"}));
  command->add_option("--door", arguments->door, "how instructions reach it (primitive)")
      ->type_name("primitive");
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, &console] { newBackend(*arguments, console); });
}

} // namespace candela::tool
