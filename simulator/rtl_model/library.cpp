#include "simulator/rtl_model/library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "simulator/error.h"
#include "simulator/rtl_model/parameters.h"

namespace candela::npu {
namespace {

namespace fs = std::filesystem;
using Command = std::vector<std::string>;

constexpr const char* kLibrary = "libcdl_npu.so";
constexpr const char* kStamp = "libcdl_npu.hash"; ///< the library's hash, written behind it

/// What a kind of library is built with: an argument of Verilator, the source of Verilator that
/// goes with it, and the macro that its headers and ours ask.
struct Extra {
  RtlLibrary::Kind kind;
  const char* argument;
  const char* source;
  const char* macro;
};
constexpr Extra kExtras[] = {
    {RtlLibrary::Kind::kWaves, "--trace", "verilated_vcd_c.cpp", "VM_TRACE"},
    {RtlLibrary::Kind::kCounts, "--coverage-line", "verilated_cov.cpp", "VM_COVERAGE"},
};

/// From this many multipliers on the hardware runs on two threads: at 64 x 32 on two processors 2.4
/// times as fast (45 and 19 kcycles/s, digits on edge4t, AMD EPYC), at 16 x 16 1.2 times for 1.6
/// times the processor time.
constexpr int64_t kThreadedArray = 1024;

/// FNV-1a of 64 bits.
uint64_t hashOf(std::string_view bytes, uint64_t hash = 0xcbf29ce484222325) {
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return hash;
}

std::string contentsOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Files below a folder with that ending, in the order of their names.
std::vector<fs::path> filesBelow(const fs::path& folder, std::string_view extension) {
  std::vector<fs::path> files;
  std::error_code ignored; // an empty list says it
  for (fs::recursive_directory_iterator at(folder, ignored), end; at != end; at.increment(ignored))
    if (at->path().extension() == extension) files.push_back(at->path());
  std::sort(files.begin(), files.end());
  return files;
}

/// Starts a command whose output goes to a file. Returns its process, or -1.
pid_t start(const Command& command, const fs::path& folder, const fs::path& log) {
  std::vector<char*>
      arguments; // made before: a child of a process of several threads allocates nothing
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t process = fork();
  if (process != 0) return process;
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file >= 0 && dup2(file, 1) >= 0 && dup2(file, 2) >= 0 && chdir(folder.c_str()) == 0)
    execvp(arguments[0], arguments.data());
  _exit(127);
}
int waitFor(pid_t process) {
  int status = 0;
  while (process > 0 && waitpid(process, &status, 0) < 0 && errno == EINTR) {}
  return process > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

Error failure(const Command& command, int status, const fs::path& log) {
  if (status == 127)
    return error("{} cannot be started: the RTL is built with Verilator and a C++ compiler "
                 "(packages verilator, g++)",
                 command[0]);
  std::string text = contentsOf(log);
  constexpr size_t kShown = 2000;
  if (text.size() > kShown) text.resize(kShown);
  return error("{} failed with status {}: {}", command[0], status, text);
}

Outcome runAll(const std::vector<Command>& commands, const fs::path& folder, const fs::path& log) {
  const size_t most = std::max(1u, std::thread::hardware_concurrency());
  for (size_t from = 0; from < commands.size(); from += most) {
    std::vector<pid_t> running;
    for (size_t i = from; i < std::min(commands.size(), from + most); ++i)
      running.push_back(start(commands[i], folder, log));
    std::optional<Error> first;
    for (size_t i = 0; i < running.size(); ++i)
      if (const int status = waitFor(running[i]); status && !first)
        first = failure(commands[from + i], status, log);
    if (first) return first;
  }
  return {};
}

/// What one command says, which may fail.
std::string outputOf(const Command& command, const fs::path& folder) {
  const fs::path log = folder / fmt::format("output.{}", getpid());
  waitFor(start(command, folder, log));
  const std::string text = contentsOf(log);
  std::error_code ignored;
  fs::remove(log, ignored);
  return text;
}

Command verilate(const RtlLibrary::Places& places, const std::vector<std::string>& parameters) {
  const fs::path rtl = places.sources / "rtl";
  Command command{places.verilator,
                  "--cc",
                  "-O3",
                  "--x-initial",
                  "unique",
                  "--x-assign",
                  "unique",
                  "--assert",
                  "--prefix",
                  "Vcdl_npu",
                  "--top-module",
                  "cdl_npu",
                  "--Mdir",
                  "verilated",
                  "-Wno-fatal",
                  "--output-split",
                  "40000",
                  "--output-split-cfuncs",
                  "4000"};
  command.insert(command.end(), parameters.begin(), parameters.end());
  for (const char* folder :
       {"prim", "matrix", "requant", "vector", "dma", "scratchpad", "command", "top"}) {
    command.push_back("-y");
    command.push_back(rtl / folder);
  }
  for (const fs::path& package : filesBelow(rtl / "generated", ".sv")) command.push_back(package);
  command.push_back("cdl_npu.sv");
  return command;
}

/// Verilator's own headers.
fs::path includesOf(const RtlLibrary::Places& places, const fs::path& folder) {
  const std::string text = outputOf({places.verilator, "--getenv", "VERILATOR_ROOT"}, folder);
  return fs::path(text.substr(0, text.find('\n'))) / "include";
}

/// Makes the library in `folder`.
Outcome build(const RtlLibrary::Places& places, const std::vector<std::string>& parameters,
              const fs::path& folder) {
  const fs::path log = folder / "build.log";
  if (Outcome bad = runAll({verilate(places, parameters)}, folder, log)) return bad;
  const fs::path includes = includesOf(places, folder);
  std::vector<fs::path> sources = filesBelow(folder / "verilated", ".cpp");
  sources.push_back(includes / "verilated.cpp");
  sources.push_back(includes / "verilated_threads.cpp");
  sources.push_back(places.sources / "simulator/rtl_model/library_entry.cpp");
  Command compiler{places.compiler,
                   "-std=c++20",
                   "-fPIC",
                   "-w",
                   "-I",
                   "verilated",
                   "-I",
                   includes,
                   "-I",
                   includes / "vltstd",
                   "-I",
                   places.sources};
  for (const Extra& extra : kExtras) {
    const bool has =
        std::find(parameters.begin(), parameters.end(), extra.argument) != parameters.end();
    compiler.push_back(fmt::format("-D{}={:d}", extra.macro, has));
    if (has) sources.push_back(includes / extra.source);
  }
  std::vector<Command> compilations;
  Command link{places.compiler, "-shared", "-o", kLibrary};
  for (const fs::path& source : sources) {
    const std::string object = source.stem().string() + ".o";
    // It runs once, or writes: neither is worth its time in the compiler.
    const bool isSlow = object.ends_with("Slow.o") || object.find("__Trace__") != object.npos;
    compilations.push_back(compiler);
    compilations.back().insert(compilations.back().end(),
                               {isSlow ? "-O0" : "-O2", "-c", source, "-o", object});
    link.push_back(object);
  }
  if (Outcome bad = runAll(compilations, folder, log)) return bad;
  link.push_back("-lpthread");
  if (Outcome bad = runAll({link}, folder, log)) return bad;
  std::ofstream(folder / kStamp) << fmt::format("{:016x}", hashOf(contentsOf(folder / kLibrary)));
  return {};
}

/// Whether the library of a folder is what was written there.
bool isWhole(const fs::path& folder) {
  std::error_code none;
  if (!fs::exists(folder / kLibrary, none)) return false;
  return contentsOf(folder / kStamp) ==
         fmt::format("{:016x}", hashOf(contentsOf(folder / kLibrary)));
}

/// Holds the lock of a folder's name until it goes.
class Lock {
public:
  explicit Lock(const fs::path& path)
      : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    while (file_ >= 0 && flock(file_, LOCK_EX) < 0 && errno == EINTR) {}
  }
  ~Lock() {
    if (file_ >= 0) close(file_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  bool isHeld() const { return file_ >= 0; }

private:
  int file_;
};

Result<uint64_t> keyOf(const RtlLibrary::Places& places,
                       const std::vector<std::string>& parameters) {
  const std::string version = outputOf({places.verilator, "--version"}, places.cache);
  if (version.find("Verilator") == version.npos)
    return failure({places.verilator}, 127, places.cache / "none");
  uint64_t key = hashOf(version, hashOf(places.compiler));
  for (const std::string& parameter : parameters) key = hashOf(parameter, key);
  std::vector<fs::path> files = filesBelow(places.sources / "rtl", ".sv");
  for (const char* name : {"library_entry.cpp", "pins.h", "verilated_top.h"})
    files.push_back(places.sources / "simulator/rtl_model" / name);
  for (const fs::path& file : files)
    key = hashOf(contentsOf(file), hashOf(file.filename().string(), key));
  return key;
}

fs::path folderOf(const RtlLibrary::Places& places, uint64_t key) {
  return places.cache / fmt::format("{:016x}", key);
}

/// Arguments of Verilator that make a library what it is.
Result<std::vector<std::string>> parametersOf(const Configuration& configuration,
                                              RtlLibrary::Kind kind) {
  Result<std::vector<std::string>> parameters = rtlParameters(configuration);
  if (!parameters) return parameters;
  for (const Extra& extra : kExtras)
    if (extra.kind == kind) parameters->push_back(extra.argument);
  const bool isLarge = configuration.rows() * configuration.columns() >= kThreadedArray;
  if (isLarge && std::thread::hardware_concurrency() >= 2)
    parameters->insert(parameters->end(), {"--threads", "2"});
  return parameters;
}

/// The folder of the library or program that this code lies in.
fs::path ownFolder() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<void*>(&ownFolder), &info) || !info.dli_fname) return {};
  std::error_code none;
  return fs::canonical(info.dli_fname, none).parent_path();
}

/// A variable that is not heeded in a program with raised rights.
std::string environment(const char* name) {
  const char* const value = secure_getenv(name);
  return value ? value : "";
}

/// Whether nobody but its owner and root writes there: what lies in it is code.
bool isTrusted(const fs::path& folder) {
  struct stat info;
  return folder.is_absolute() && stat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         !(info.st_mode & S_IWOTH) && (info.st_uid == geteuid() || info.st_uid == 0);
}

Result<fs::path> findCache() {
  if (const fs::path given = environment("CANDELA_CACHE_DIR"); !given.empty()) {
    if (isTrusted(given)) return given;
    return error("CANDELA_CACHE_DIR={}: an absolute folder is wanted that others cannot write to",
                 given.string());
  }
  if (const fs::path cache = environment("XDG_CACHE_HOME"); cache.is_absolute())
    return cache / "candela";
  if (const fs::path home = environment("HOME"); home.is_absolute()) return home / ".cache/candela";
  return error("the RTL is built in a cache: none of CANDELA_CACHE_DIR, XDG_CACHE_HOME and HOME "
               "names a folder");
}

} // namespace

Result<RtlLibrary::Places> RtlLibrary::findPlaces() {
  Places places;
  std::vector<fs::path> candidates;
  if (const fs::path given = environment("CANDELA_NPU_RTL"); given.is_absolute())
    candidates.push_back(given);
  for (const char* up : {"..", "../..", "../../.."})
    candidates.push_back(ownFolder() / up / "share/candela/npu_rtl");
  std::error_code none;
  const auto found = std::find_if(candidates.begin(), candidates.end(), [&](const fs::path& path) {
    return fs::exists(path / "rtl/top/cdl_npu.sv", none);
  });
  if (found == candidates.end())
    return error("the sources of the RTL are neither in {} nor where CANDELA_NPU_RTL says",
                 candidates.back().lexically_normal().string());
  places.sources = fs::canonical(*found, none);
  const Result<fs::path> cache = findCache();
  if (!cache) return error("{}", cache.message());
  places.cache = *cache / "npu_rtl";
  if (const std::string compiler = environment("CXX"); !compiler.empty())
    places.compiler = compiler;
  return places;
}

bool RtlLibrary::isMade(const Configuration& configuration, const Places& places, Kind kind) {
  const Result<std::vector<std::string>> parameters = parametersOf(configuration, kind);
  std::error_code none;
  if (!parameters || !fs::exists(places.cache, none)) return false;
  const Result<uint64_t> key = keyOf(places, *parameters);
  return key && isWhole(folderOf(places, *key));
}

Result<std::shared_ptr<RtlLibrary>> RtlLibrary::of(const Configuration& configuration,
                                                   const Places& places, Kind kind) {
  const Result<std::vector<std::string>> parameters = parametersOf(configuration, kind);
  if (!parameters) return error("{}", parameters.message());
  std::error_code failed;
  fs::create_directories(places.cache, failed);
  if (failed) return error("{}: {}", places.cache.string(), failed.message());
  if (!isTrusted(places.cache))
    return error("{}: others can write there, and what lies in it is run", places.cache.string());
  const Result<uint64_t> key = keyOf(places, *parameters);
  if (!key) return error("{}", key.message());
  const fs::path folder = folderOf(places, *key);
  const Lock lock(folder.string() + ".lock");
  if (!lock.isHeld()) return error("{}.lock cannot be written", folder.string());
  if (isWhole(folder)) return open(folder / kLibrary);
  const fs::path fresh = folder.string() + ".new";
  fs::remove_all(fresh, failed);
  fs::remove_all(folder, failed);
  fs::create_directories(fresh, failed);
  if (failed) return error("{}: {}", fresh.string(), failed.message());
  if (Outcome bad = build(places, *parameters, fresh)) return *bad;
  fs::remove_all(fresh / "verilated", failed);
  for (const fs::path& object : filesBelow(fresh, ".o")) fs::remove(object, failed);
  fs::rename(fresh, folder, failed);
  if (failed) return error("{}: {}", folder.string(), failed.message());
  return open(folder / kLibrary);
}

Result<std::shared_ptr<RtlLibrary>> RtlLibrary::open(const fs::path& file) {
  std::shared_ptr<RtlLibrary> library(new RtlLibrary);
  library->handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library->handle_) return error("{}", dlerror());
  const auto pins =
      reinterpret_cast<uint64_t (*)()>(dlsym(library->handle_, "candela_rtl_pins_bytes"));
  if (!pins || pins() != sizeof(RtlPins))
    return error("{}: it has other pins; are its sources of this version?", file.string());
  library->make_ = reinterpret_cast<RtlTop* (*)(int)>(dlsym(library->handle_, "candela_rtl_make"));
  if (!library->make_) return error("{}: it has no candela_rtl_make", file.string());
  return library;
}

RtlLibrary::~RtlLibrary() {
  if (handle_) dlclose(handle_);
}

} // namespace candela::npu
