#include "integrations/onnxruntime/options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>

namespace candela::ort {

using namespace abi;

namespace {

std::string prefixOfOptions() {
  std::string name = kProviderName;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return "ep." + name + ".";
}

[[noreturn]] void refuse(const std::string& key, const std::string& value,
                         const std::string& expected) {
  throw Failure(ErrorCode::InvalidArgument, std::string(kProviderName) + ": option " + key + "='" +
                                                value + "', expected " + expected);
}

bool flagOf(const std::string& key, const std::string& value) {
  if (value != "0" && value != "1") refuse(key, value, "0 or 1");
  return value == "1";
}

uint32_t threadsOf(const std::string& value) {
  uint32_t count = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
  if (error != std::errc() || end != value.data() + value.size() || count < 1 || count > 4096)
    refuse("threads", value, "1 to 4096");
  return count;
}

/// Whether "soft" or "reference", which run on the host, are among backends that commas separate.
bool hasHost(const std::string& backends) {
  size_t begin = 0;
  while (begin <= backends.size()) {
    const size_t end = std::min(backends.find(',', begin), backends.size());
    const std::string one = backends.substr(begin, end - begin);
    if (one == "soft" || one == "reference") return true;
    begin = end + 1;
  }
  return false;
}

void setOption(ProviderOptions& options, const std::string& key, const std::string& value) {
  constexpr std::string_view kOfBackend = "option.";
  if (key == "backend") {
    if (value.empty()) refuse(key, value, "names or paths of backends");
    options.compile.backends = value;
    options.namesBackend = true;
  } else if (key.rfind(kOfBackend, 0) == 0 && key.size() > kOfBackend.size()) {
    options.compile.options.push_back(key.substr(kOfBackend.size()) + "=" + value);
  } else if (key == "partition") {
    options.compile.partition = value;
  } else if (key == "pin") {
    if (!std::ifstream(value)) refuse(key, value, "a file that can be read");
    options.compile.pinFile = value;
  } else if (key == "precision") {
    options.compile.precision = value;
  } else if (key == "require_native") {
    options.compile.requireNative = flagOf(key, value);
  } else if (key == "to_primitives") {
    options.compile.toPrimitives = flagOf(key, value);
  } else if (key == "threads") {
    sdk::setThreads(threadsOf(value));
  } else if (key == "trace") {
    options.trace = value;
  } else {
    refuse(key, value,
           "one of backend, option.KEY, partition, pin, precision, require_native, "
           "to_primitives, threads, trace");
  }
}

} // namespace

ProviderOptions optionsOf(const std::map<std::string, std::string>& configuration) {
  ProviderOptions options;
  const std::string prefix = prefixOfOptions();
  for (const auto& [key, value] : configuration) {
    if (key.rfind(prefix, 0) == 0) setOption(options, key.substr(prefix.size()), value);
    if (key == "ep.context_enable") options.makesContext = value == "1";
    if (key == "ep.context_embed_mode") options.embedsContext = value == "1";
    if (key == "ep.context_file_path") options.contextPath = value;
  }
  // Files beside the model are what ONNX Runtime does where the session does not say.
  if (!configuration.contains("ep.context_embed_mode")) options.embedsContext = false;
  options.takesHost = hasHost(options.compile.backends);
  return options;
}

std::map<std::string, std::string> configurationOf(const Api& api,
                                                   const OrtSessionOptions* session) {
  const auto pairs = owned(api, api.get<OrtKeyValuePairs*>(GetSessionOptionsConfigEntries, session),
                           ReleaseKeyValuePairs);
  const char* const* keys = nullptr;
  const char* const* values = nullptr;
  size_t count = 0;
  api.call(GetKeyValuePairs, static_cast<const OrtKeyValuePairs*>(pairs.get()), &keys, &values,
           &count);
  std::map<std::string, std::string> configuration;
  for (size_t i = 0; i < count; ++i) configuration[keys[i]] = values[i];
  return configuration;
}

void checkBackends(const ProviderOptions& options) {
  static const std::string model =
      "graph @check(%x: f32[16]) -> (%y: f32[16]) {\n  %y = relu %x\n}\n";
  sdk::Options compile = options.compile;
  compile.requireNative = false; // a backend need not take this node
  compile.pinFile.clear();       // nor does the file know it
  sdk::Model::compile(model.data(), model.size(), "check.cdl", compile);
}

} // namespace candela::ort
