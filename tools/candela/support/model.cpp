#include "tools/candela/support/model.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

#include "core/compiler/import/formats.h"
#include "core/compiler/import/onnx_io/model.h"
#include "core/runtime/bundle/bundle.h"
#include "core/support/file.h"
#include "tools/candela/support/temporary_file.h"

namespace candela::tool {

void ModelOptions::addTo(CLI::App* command, std::initializer_list<std::string_view> kinds) {
  command->add_option("MODEL", path, "a model: " + import::extensionsText(kinds))
      ->required()
      ->type_name("FILE");
  addCompilingTo(command);
}

void ModelOptions::addCompilingTo(CLI::App* command) {
  command
      ->add_option("--backend", backends,
                   "backends by name or path, the first one first; :N behind one is its device N "
                   "(default soft)")
      ->type_name("B[,B2...]");
  addPlacingTo(command);
  addRepeated(command, "--shape", shapes, "the shape of an input: images=1x3x224x224", "NAME=DIMS");
  addRepeated(command, "--dim", dims, "the value of a symbolic dimension: N=1", "NAME=VALUE");
  addRepeated(command, "--option", options,
              "an option of a backend: key=value or backend.key=value", "KEY=VALUE");
  command
      ->add_option_function<std::string>(
          "--isa", [this](const std::string& name) { options.push_back("isa=" + name); },
          "the instruction set, of a backend that has several: --option isa=NAME")
      ->type_name("NAME");
  command->add_flag("--require-native", requireNative,
                    "fail, with a list, when a node is emulated or on the host");
  command
      ->add_option(
          "--precision", precision,
          "of products of f32: f32; f16 or bf16 where a device has them, else with weights "
          "that are rounded to it")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}))
      ->type_name("TYPE");
  command->add_flag("--to-primitives", toPrimitives, "lower every op to the 13 primitives");
  command->add_flag("--unstacked", unstacked,
                    "leave every node an instruction of its own: no epilogues, no expressions");
  command->add_flag(
      "--rematerialize", rematerialize,
      "compute cheap values again before late readers, where that lowers the peak of memory");
  command->add_flag("--no-groups", noGroups,
                    "run every instruction as a whole: no chains by bands of rows");
}

void ModelOptions::addPlacingTo(CLI::App* command) {
  command
      ->add_option("--partition", partition,
                   "by what nodes get their backends: preference, the first one that takes a node; "
                   "cost, the least sum of work and transfers; pipeline, a stage for each backend")
      ->check(CLI::IsMember({"preference", "cost", "pipeline"}))
      ->type_name("POLICY");
  command
      ->add_option("--pin", pinFile,
                   "nodes that have to be where a line says: PATTERN = BACKEND, of names or op:OP")
      ->type_name("FILE");
}

void ModelOptions::addTilingTo(CLI::App* command) {
  command
      ->add_option("--tile", tile,
                   "tile for local memories: NAME=BYTES[K|M|G][:align=N][:sums],... the outermost "
                   "first; and settings such as "
                   "engines=3, bytes_per_cycle=16")
      ->type_name("MEMORIES");
}

void ModelOptions::addAssumeInt8To(CLI::App* command) {
  command->add_flag("--assume-int8{symmetric-uint8}", assumedScheme,
                    "quantize a float model with assumed scales first, by a scheme of `candela "
                    "quantize`: what it costs in integers, not what it answers");
}

void ModelOptions::addIoLayoutTo(CLI::App* command) {
  command
      ->add_option("--io-layout", ioLayout,
                   "nhwc: inputs and outputs of four dims have their channels last, as devices "
                   "have them inside (as the model says)")
      ->type_name("LAYOUT");
}

void ModelOptions::addStatesTo(CLI::App* command) {
  addRepeated(command, "--state", states,
              "an output that is the input of the next run: past=present; past_*=present_* for all "
              "that differ in the same text",
              "INPUT=OUTPUT");
}

const std::string& ModelOptions::compiledPath() const {
  return rewritten ? rewritten->path() : path;
}

sdk::Options ModelOptions::sdkOptions(Progress& progress) const {
  sdk::Options sdk;
  sdk.backends = backends;
  sdk.dims = dims;
  sdk.shapes = shapes;
  sdk.options = options;
  sdk.states = states;
  sdk.requireNative = requireNative;
  sdk.toPrimitives = toPrimitives;
  sdk.keepValues = keepValues;
  sdk.rematerialize = rematerialize;
  sdk.unstacked = unstacked;
  sdk.noGroups = noGroups;
  sdk.partition = partition;
  sdk.pinFile = pinFile;
  sdk.precision = precision;
  sdk.progress = &Progress::callback;
  sdk.progressContext = &progress;
  return sdk;
}

bool ModelOptions::passThreads(int threads, Console& console) {
  if (threadsOption()) fail(kBadInput, "--threads {}: --option says how many threads too", threads);
  if (endsWith(path, ".cdb")) return false; // which says itself that it is compiled already
  sdk::setThreads(static_cast<uint32_t>(threads));
  if (isSoftAlone()) return true;
  const std::vector<std::string> wanted = splitList(backends);
  std::vector<std::string> paths;
  for (const std::string& name : wanted)
    if (name.find('/') != std::string::npos || endsWith(name, ".so")) paths.push_back(name);
  const Json known = Json::parse(sdk::Model::backendsJson(paths), nullptr, false);
  bool passed = false;
  for (const Json& backend :
       known.is_object() ? known.value("backends", Json::array()) : Json::array()) {
    const std::string name = backend.value("name", ""), origin = backend.value("origin", "");
    const bool used = std::any_of(wanted.begin(), wanted.end(), [&](const std::string& w) {
      return w == name || (w.find('.') != std::string::npos && fileName(w) == fileName(origin));
    });
    for (const Json& option : backend.value("options", Json::array()))
      if (used && option.is_object() && option.value("name", "") == "threads") {
        options.push_back(fmt::format("{}.threads={}", name, threads));
        passed = true;
      }
  }
  if (!passed)
    console.note("--threads {}: for the host's steps alone: backend {} has no such option", threads,
                 backends);
  return passed;
}

bool ModelOptions::isSoftAlone() const { return backends.empty() || backends == "soft"; }

std::optional<int> ModelOptions::threadsOption() const {
  for (const std::string& text : options) {
    const Binding option = parseBinding("--option", text);
    int threads = 0;
    const char *begin = option.value.data(), *end = begin + option.value.size();
    const bool named = option.name == "threads" || endsWith(option.name, ".threads");
    if (named && std::from_chars(begin, end, threads).ptr == end) return threads;
  }
  return std::nullopt;
}

bool saysHowToCompile(const CLI::App* command) {
  for (const char* name : {"--backend", "--partition", "--pin", "--shape", "--dim", "--option",
                           "--require-native", "--to-primitives", "--unstacked"})
    if (command->count(name)) return true;
  return false;
}

namespace {

/// CLI11 wraps what does not fit; a seed must be what was typed. Returns the complaint, or nothing.
std::string wrongSeed(const std::string& text) {
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error == std::errc() && end == text.data() + text.size()) return "";
  return fmt::format("'{}' is not a number of 0 to {}", text, UINT64_MAX);
}

} // namespace

void addSeedOption(CLI::App* command, std::optional<uint64_t>& seed, const std::string& help,
                   const std::string& name) {
  command->add_option(name, seed, help)
      ->type_name("SEED")
      ->check(CLI::Validator(wrongSeed, "SEED"));
}

bool endsWith(const std::string& text, std::string_view suffix) {
  return std::string_view(text).ends_with(suffix);
}

void refuseBundle(const std::string& path) {
  if (endsWith(path, ".cdb") || runtime::bundle::isBundle(path))
    fail(kBadInput, "{}: this is a bundle already; the model itself is needed", path);
}

std::string fileName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

int exitCodeOf(candela_status_t status) {
  switch (status) {
  case CANDELA_INVALID_ARGUMENT:
  case CANDELA_INCOMPATIBLE:
  case CANDELA_UNSUPPORTED:
  case CANDELA_NOT_FOUND:
  case CANDELA_BAD_MODEL:
  case CANDELA_IO: return kBadInput;
  default: return kWorkFailed;
  }
}

void failWith(const sdk::Error& error, const std::string& path) {
  const std::string message = error.what();
  // A message about a backend or a resource names that instead.
  const bool named = message.find(fileName(path)) != std::string::npos;
  throw Failure(exitCodeOf(error.status()), named ? message : path + ": " + message);
}

namespace {

/// With the name that the user knows the compiled file by.
sdk::Error inUserTerms(const sdk::Error& error, const ModelOptions& options) {
  std::string message = error.what();
  const std::string& compiled = options.compiledPath();
  for (size_t at = message.find(compiled); at != message.npos;
       at = message.find(compiled, at + options.path.size()))
    message.replace(at, compiled.size(), options.path);
  return {error.status(), message};
}

} // namespace

sdk::Model compileModel(const ModelOptions& options) {
  Progress progress("compiling");
  try {
    return sdk::Model::compile(options.compiledPath(), options.sdkOptions(progress));
  } catch (const sdk::Error& error) {
    failWith(inUserTerms(error, options), options.path);
  }
}

std::vector<std::string> splitList(const std::string& text) {
  std::vector<std::string> list;
  for (size_t from = 0; from <= text.size();) {
    const size_t comma = std::min(text.find(',', from), text.size());
    list.push_back(text.substr(from, comma - from));
    from = comma + 1;
  }
  return list;
}

Binding parseBinding(const std::string& option, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    fail(kBadInput, "{} {}: expected NAME=VALUE", option, text);
  return {text.substr(0, equals), text.substr(equals + 1)};
}

namespace {

/// Every way to cut NAME=VALUE.
std::vector<Binding> cutsOf(const std::string& text) {
  std::vector<Binding> cuts;
  for (size_t at = text.find('=', 1); at != std::string::npos && at + 1 < text.size();
       at = text.find('=', at + 1))
    cuts.push_back({text.substr(0, at), text.substr(at + 1)});
  return cuts;
}

} // namespace

bool hasSeveralCuts(const std::string& text) { return cutsOf(text).size() > 1; }

Binding parseFileBinding(const std::string& option, const std::string& text,
                         const std::set<std::string>& names) {
  const std::vector<Binding> cuts = cutsOf(text);
  if (cuts.size() < 2) return parseBinding(option, text);
  std::vector<Binding> named;
  std::ranges::copy_if(cuts, std::back_inserter(named),
                       [&](const Binding& cut) { return names.count(cut.name) > 0; });
  if (named.size() > 1)
    fail(kBadInput, "{} {}: the model has both '{}' and '{}'", option, text, named[0].name,
         named[1].name);
  if (!named.empty()) return named[0];
  const auto existing = std::ranges::find_if(
      cuts, [](const Binding& cut) { return std::filesystem::exists(cut.value); });
  return existing == cuts.end() ? cuts[0] : *existing;
}

Tensor readTensorFile(const std::string& path) {
  return check(endsWith(path, ".pb") ? import::onnx_io::readTensor(path) : readNpy(path));
}

void makeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error || !std::filesystem::is_directory(path, error))
    fail(kWorkFailed, "{}: cannot make this folder{}{}", path, error ? ": " : "",
         error ? error.message() : "");
}

TensorFolder::TensorFolder(std::string path) : path_(std::move(path)) { makeFolder(path_); }

std::string TensorFolder::write(const std::string& name, const Tensor& tensor) {
  std::string safe;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || c == '.';
    safe += plain ? c : '_';
  }
  if (safe.empty() || safe.front() == '.') safe.insert(0, "_");
  safe.resize(std::min<size_t>(safe.size(), 200)); // file systems end at 255 bytes
  std::string unique = safe;
  for (int n = 1; std::find(used_.begin(), used_.end(), unique) != used_.end(); ++n)
    unique = fmt::format("{}_{}", safe, n);
  used_.push_back(unique);
  const std::string path = (std::filesystem::path(path_) / (unique + ".npy")).string();
  check(writeNpy(path, tensor), kWorkFailed);
  return path;
}

std::string portType(const sdk::Port& port) { return typeText(elemName(elemOf(port)), port.dims); }

candela_tensor_t view(const Tensor& tensor) {
  candela_tensor_t out{};
  out.elem = static_cast<candela_elem_t>(tensor.elem);
  out.rank = static_cast<uint32_t>(tensor.dims.size());
  std::copy(tensor.dims.begin(), tensor.dims.end(), out.dims);
  out.data = const_cast<std::byte*>(tensor.bytes.data());
  out.bytes = tensor.bytes.size();
  return out;
}

Json placementReport(const sdk::Model& model) {
  Json report = Json::parse(model.reportJson(), nullptr, false);
  if (!report.is_object()) fail(kWorkFailed, "the model's placement report is not a JSON object");
  return report;
}

namespace {

std::string backendsText(const Json& report) {
  std::string text;
  for (const Json& backend : report.value("backends", Json::array())) {
    const Json name = backend.is_object() ? backend.value("name", Json("")) : backend;
    if (!text.empty()) text += ", ";
    text += name.is_string() ? name.get<std::string>() : name.dump();
  }
  return text;
}

std::string percent(double part, double whole) {
  return fmt::format("{:.1f} %", whole > 0 ? 100 * part / whole : 0);
}

} // namespace

std::string memoryText(const Json& report) {
  std::string text = fmt::format("arena {}", bytesText(report.value("arena_bytes", uint64_t(0))));
  if (const uint64_t bytes = report.value("local_bytes", uint64_t(0)))
    text += fmt::format("   local {}", bytesText(bytes));
  if (const uint64_t bytes = report.value("streamed_bytes", uint64_t(0)))
    text += fmt::format("   streamed {}", bytesText(bytes));
  return text;
}

std::string placementLine(const Json& report) {
  const uint64_t parameters = report.value("parameters", uint64_t(0));
  return fmt::format("{} nodes, {} parameters → {}", report.value("nodes", uint64_t(0)),
                     countText(parameters), backendsText(report));
}

namespace {

/// The instruction kind that most nodes wait for, by the "emulated a b c" of their reasons, which
/// ";" ends; "" when nothing is emulated.
std::string nextText(const Json& report) {
  std::map<std::string, int> waiting;
  for (const Json& node : report.value("nodes_detail", Json::array())) {
    const std::string why = node.value("why", "");
    const size_t at = why.find("emulated ");
    if (node.value("class", "") != "emulated" || at == std::string::npos) continue;
    std::istringstream kinds(why.substr(at + 9, why.find(';', at) - (at + 9)));
    for (std::string kind; kinds >> kind;) ++waiting[kind];
  }
  const auto most =
      std::max_element(waiting.begin(), waiting.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == waiting.end()) return "";
  return fmt::format(
      "  next: {} is emulated in {} nodes (by weight: candela backends PLUGIN --next MODEL)\n",
      most->first, most->second);
}

std::string secondsText(double seconds) { return timeText(seconds * 1e3); }

/// What a policy weighed, and the share of each device.
std::string policyText(const Json& partition) {
  const Json seconds = partition.value("seconds", Json::object());
  const auto time = [&](const char* key) { return secondsText(seconds.value(key, 0.0)); };
  std::string text =
      fmt::format("  by {}: {} of work, {} of transfers, {} of starts{}",
                  partition.value("policy", ""), time("compute"), time("transfer"), time("starts"),
                  partition.value("least", false) ? "; the least" : "");
  if (seconds.contains("by_preference"))
    text += fmt::format("; by preference {} in all", time("by_preference"));
  text += "\n";
  for (const Json& device : partition.value("devices", Json::array()))
    text += fmt::format("  {}: {} of nodes, {} of MACs\n", device.value("on", ""),
                        percent(device.value("nodes_share", 0.0), 1),
                        percent(device.value("macs_share", 0.0), 1));
  std::vector<std::string> stages;
  for (const Json& stage : partition.value("stage_seconds", Json::array()))
    stages.push_back(secondsText(stage.get<double>()));
  if (!stages.empty()) text += fmt::format("  stages: {}\n", fmt::join(stages, ", "));
  return text;
}

} // namespace

std::string explainText(const Json& report) {
  Table table({"node", "op", "on", "class", "why"});
  for (const Json& node : report.value("nodes_detail", Json::array()))
    table.add({node.value("node", ""), node.value("op", ""), node.value("on", ""),
               node.value("class", ""), node.value("why", "")});
  const Json nodes = report.value("placement", Json::object()),
             macs = report.value("macs", Json::object());
  const auto count = [](const Json& of, const char* key) { return of.value(key, uint64_t(0)); };
  const auto total = [&](const Json& of) {
    return double(count(of, "native") + count(of, "emulated") + count(of, "host"));
  };
  return table.text() +
         fmt::format("  {} of nodes, {} of MACs native; {} native, {} emulated, {} host; {} layout "
                     "conversion{}\n",
                     percent(double(count(nodes, "native")), total(nodes)),
                     percent(double(count(macs, "native")), total(macs)), count(nodes, "native"),
                     count(nodes, "emulated"), count(nodes, "host"),
                     count(report, "layout_conversions"),
                     count(report, "layout_conversions") == 1 ? "" : "s") +
         (report.contains("partition") ? policyText(report["partition"]) : "") + nextText(report);
}

void addPlacement(Json& to, const Json& report, bool withNodes) {
  for (const char* key : {"model", "backends", "nodes", "parameters", "arena_bytes",
                          "max_live_bytes", "local_bytes", "streamed_bytes", "placement", "macs",
                          "transfers", "layout_conversions", "partition", "steps"})
    if (report.contains(key)) to[key] = report[key];
  if (withNodes && report.contains("nodes_detail")) to["nodes_detail"] = report["nodes_detail"];
}

} // namespace candela::tool
