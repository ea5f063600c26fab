#include "integrations/onnxruntime/context.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace candela::ort {

using namespace abi;

namespace {

namespace fs = std::filesystem;

/// Attributes of EPContext, an operator of com.microsoft.
constexpr const char* kBlob = "ep_cache_context";
constexpr const char* kEmbedded = "embed_mode";
constexpr const char* kIsFirst = "main_context";
constexpr const char* kSource = "source";
constexpr const char* kVersion = "ep_sdk_version";
constexpr const char* kBackends = "hardware_architecture";
constexpr const char* kPart = "partition_name";
constexpr const char* kForm = "notes"; ///< free for the provider: kBundle or kModel
constexpr const char* kBundle = "candela bundle";
constexpr const char* kModel = "onnx, compiled for the shapes of each run";

struct Content {
  std::map<std::string, std::string> texts;
  std::map<std::string, int64_t> numbers;

  /// Empty where there is none.
  std::string text(const char* name) const {
    const auto found = texts.find(name);
    return found == texts.end() ? std::string() : found->second;
  }
};

Content contentOf(const Api& api, const OrtNode* node) {
  Content content;
  for (const OrtOpAttr* one : api.list(Node_GetNumAttributes, Node_GetAttributes, node)) {
    const std::string name = api.get<const char*>(OpAttr_GetName, one);
    const auto type = api.get<AttributeType>(OpAttr_GetType, one);
    if (type == AttributeType::Int) {
      const std::string number = api.contentOf(one, type);
      std::memcpy(&content.numbers[name], number.data(), std::min(number.size(), sizeof(int64_t)));
    }
    if (type == AttributeType::String) content.texts[name] = api.contentOf(one, type);
  }
  return content;
}

/// A file's name that is gone with it.
class TemporaryFile {
public:
  TemporaryFile() {
    path_ = (fs::temp_directory_path() / "candela_ort_XXXXXX").string();
    const int file = mkstemp(path_.data());
    if (file < 0) throw Failure(ErrorCode::NoSuchFile, "no temporary file can be made as " + path_);
    close(file);
  }
  ~TemporaryFile() { unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

private:
  std::string path_;
};

std::string readFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file) throw Failure(ErrorCode::NoSuchFile, path.string() + " cannot be read");
  return content.str();
}

void writeFile(const fs::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw Failure(ErrorCode::NoSuchFile, path.string() + " cannot be written");
}

/// The path of the model that will hold the parts: as the session says or as ONNX Runtime names it.
fs::path pathOfContext(const ProviderOptions& options, const std::string& modelPath) {
  if (!options.contextPath.empty()) return options.contextPath;
  if (modelPath.empty())
    throw Failure(ErrorCode::InvalidArgument,
                  "a model from memory needs ep.context_file_path, or ep.context_embed_mode 1");
  fs::path path = modelPath;
  return path.replace_filename(path.stem().string() + "_ctx.onnx");
}

/// The attributes of a node that is made, until it has copied them.
class Attributes {
public:
  explicit Attributes(const Api& api) : api_(api) {}
  ~Attributes() {
    for (OrtOpAttr* one : all_) api_.call(ReleaseOpAttr, one);
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  void text(const char* name, const std::string& value) {
    if (value.size() > INT32_MAX)
      throw Failure(ErrorCode::NotImplemented, "a compiled part of more than 2 GiB: set "
                                               "ep.context_embed_mode to 0");
    add(name, value.data(), static_cast<int>(value.size()), AttributeType::String);
  }
  void number(const char* name, int64_t value) { add(name, &value, 1, AttributeType::Int); }
  std::vector<OrtOpAttr*>& all() { return all_; }

private:
  void add(const char* name, const void* data, int size, AttributeType type) {
    all_.push_back(api_.get<OrtOpAttr*>(CreateOpAttr, name, data, size, type));
  }

  const Api& api_;
  std::vector<OrtOpAttr*> all_;
};

std::vector<const char*> pointersOf(const std::vector<std::string>& names) {
  std::vector<const char*> pointers;
  for (const std::string& name : names) pointers.push_back(name.c_str());
  return pointers;
}

/// Refuses what another version or for others made.
void checkContent(const ProviderOptions& options, const NodeView& node, const Content& content) {
  const std::string version = content.text(kVersion);
  if (version != candela_version())
    throw Failure(ErrorCode::InvalidGraph, textOf(node) + " was compiled by Candela " + version +
                                               ", and this is " + candela_version() +
                                               ": compile the model again");
  const std::string backends = content.text(kBackends);
  if (options.namesBackend && backends != options.compile.backends)
    throw Failure(ErrorCode::InvalidGraph, textOf(node) + " was compiled for backend '" + backends +
                                               "', and the session says '" +
                                               options.compile.backends + "'");
}

/// The backends that a node names, for a session that names none: a file may say names, which are
/// looked up, and never paths, which are code.
std::string backendsOf(const NodeView& node, const Content& content) {
  const std::string backends = content.text(kBackends);
  if (backends.find('/') != std::string::npos || backends.find(".so") != std::string::npos)
    throw Failure(ErrorCode::InvalidGraph,
                  textOf(node) + " names the plugin '" + backends +
                      "' by a path, which no model may: say it as the option backend");
  return backends;
}

/// The file beside the model that a node names: never one elsewhere.
fs::path pathOfPart(const NodeView& node, const std::string& modelPath, const std::string& named) {
  const fs::path name = named;
  if (named.empty() || name.filename() != name)
    throw Failure(ErrorCode::InvalidGraph,
                  textOf(node) + " names '" + named + "', which is no file beside the model");
  if (modelPath.empty())
    throw Failure(ErrorCode::InvalidGraph,
                  textOf(node) + " names '" + named + "' beside the model, which came from memory");
  return fs::path(modelPath).parent_path() / name;
}

} // namespace

bool isOwnContext(const Api& api, const NodeView& node) {
  return contentOf(api, node.node).text(kSource) == kProviderName;
}

Stored store(const sdk::Model& part, const std::function<std::string()>& onnx) {
  const TemporaryFile file;
  try {
    part.save(file.path());
  } catch (const sdk::Error& error) {
    if (error.status() != CANDELA_UNSUPPORTED) throw;
    return {onnx(), false};
  }
  return {readFile(file.path()), true};
}

OrtNode* makeContext(const Api& api, const ProviderOptions& options, const std::string& modelPath,
                     const ContextNode& node, const Stored& stored) {
  if (!api.hasEditor())
    throw Failure(ErrorCode::NotImplemented, "this ONNX Runtime cannot make nodes of a model");
  Attributes attributes(api);
  if (options.embedsContext) {
    attributes.text(kBlob, stored.bytes);
  } else {
    const fs::path model = pathOfContext(options, modelPath);
    const std::string name =
        model.stem().string() + "_" + node.name + (stored.isBundle ? ".cdb" : ".onnx");
    writeFile(model.parent_path() / name, stored.bytes);
    attributes.text(kBlob, name);
  }
  attributes.text(kForm, stored.isBundle ? kBundle : kModel);
  attributes.number(kIsFirst, node.isFirst ? 1 : 0);
  attributes.number(kEmbedded, options.embedsContext ? 1 : 0);
  attributes.text(kSource, kProviderName);
  attributes.text(kVersion, candela_version());
  attributes.text(kBackends, options.compile.backends);
  attributes.text(kPart, node.name);
  const std::vector<const char*> inputs = pointersOf(node.inputs);
  const std::vector<const char*> outputs = pointersOf(node.outputs);
  return api.get<OrtNode*>(CreateNode, "EPContext", "com.microsoft", node.name.c_str(),
                           inputs.data(), inputs.size(), outputs.data(), outputs.size(),
                           attributes.all().data(), attributes.all().size());
}

Compiled loadContext(const Api& api, const ProviderOptions& options, const std::string& modelPath,
                     const NodeView& node) {
  const Content content = contentOf(api, node.node);
  checkContent(options, node, content);
  const auto blob = content.texts.find(kBlob);
  if (blob == content.texts.end())
    throw Failure(ErrorCode::InvalidGraph, textOf(node) + " holds no compiled part");
  std::string bytes = blob->second;
  const auto embedded = content.numbers.find(kEmbedded);
  if (embedded != content.numbers.end() && embedded->second == 0)
    bytes = readFile(pathOfPart(node, modelPath, blob->second));
  const std::string name = textOf(node);
  if (content.text(kForm) != kModel)
    return std::make_shared<sdk::Model>(sdk::Model::load(bytes.data(), bytes.size(), name));
  sdk::Options compile = options.compile;
  compile.bindAtRun = true;
  compile.requireNative = false; // it was asked for when the part was stored
  if (!options.namesBackend) compile.backends = backendsOf(node, content);
  return std::make_shared<sdk::Model>(
      sdk::Model::compile(bytes.data(), bytes.size(), name + ".onnx", compile));
}

} // namespace candela::ort
