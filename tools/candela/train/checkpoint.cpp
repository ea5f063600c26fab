#include "tools/candela/train/checkpoint.h"

#include "core/support/file.h"
#include "core/support/hash.h"

namespace candela::tool {
namespace {

constexpr std::string_view kFirstLine = "candela.checkpoint/1\n";

std::string headerOf(const Checkpoint& checkpoint, const std::vector<train::CarriedState>& states) {
  Json header = {{"epochs", checkpoint.epochs},
                 {"steps", checkpoint.steps},
                 {"settings", checkpoint.settings},
                 {"history", checkpoint.history},
                 {"states", Json::array()}};
  for (const train::CarriedState& state : states)
    header["states"].push_back({{"name", state.name}, {"dims", state.first.dims}});
  return header.dump() + "\n";
}

/// The states that a header tells of are those of this model, in their order.
void checkStates(const std::string& path, const Json& stored,
                 const std::vector<train::CarriedState>& states) {
  if (stored.size() != states.size())
    fail(kBadInput, "{}: the checkpoint has {} states, training this model has {}", path,
         stored.size(), states.size());
  for (size_t i = 0; i < states.size(); ++i) {
    const auto name = stored[i].at("name").get<std::string>();
    const auto dims = stored[i].at("dims").get<Shape>();
    if (name != states[i].name || dims != states[i].first.dims)
      fail(kBadInput, "{}: state {} is '{}' of {}, expected '{}' of {}", path, i, name,
           shapeText(dims), states[i].name, shapeText(states[i].first.dims));
  }
}

} // namespace

void writeCheckpoint(const std::string& path, const Checkpoint& checkpoint,
                     const std::vector<train::CarriedState>& states) {
  std::string content(kFirstLine);
  content += headerOf(checkpoint, states);
  for (const Tensor& state : checkpoint.states)
    content.append(reinterpret_cast<const char*>(state.bytes.data()), state.sizeBytes());
  const Hash hash = sha256(content.data(), content.size());
  content.append(reinterpret_cast<const char*>(hash.data()), hash.size());
  check(writeFile(path, content.data(), content.size()), kWorkFailed);
}

Checkpoint readCheckpoint(const std::string& path, const std::vector<train::CarriedState>& states) {
  const Bytes file = check(mapFile(path));
  const std::string_view content(reinterpret_cast<const char*>(file.data()), file.size());
  if (!content.starts_with(kFirstLine)) fail(kBadInput, "{}: no checkpoint of candela train", path);
  constexpr size_t kHashBytes = sizeof(Hash);
  const size_t headerEnd = content.find('\n', kFirstLine.size());
  if (headerEnd == content.npos || content.size() < headerEnd + 1 + kHashBytes)
    fail(kBadInput, "{}: the checkpoint was cut off", path);
  const std::string_view whole = content.substr(0, content.size() - kHashBytes);
  const Hash hash = sha256(whole.data(), whole.size());
  if (content.substr(whole.size()) !=
      std::string_view(reinterpret_cast<const char*>(hash.data()), hash.size()))
    fail(kBadInput, "{}: the checkpoint was cut off, or changed since it was written", path);
  const Json header = Json::parse(content.substr(kFirstLine.size(), headerEnd - kFirstLine.size()));
  checkStates(path, header.at("states"), states);
  Checkpoint checkpoint{
      header.at("epochs"), header.at("steps"), header.at("settings"), header.at("history"), {}};
  uint64_t at = headerEnd + 1;
  for (const train::CarriedState& state : states) {
    const uint64_t bytes = state.first.sizeBytes();
    if (at + bytes > whole.size()) fail(kBadInput, "{}: the checkpoint was cut off", path);
    checkpoint.states.push_back(
        {state.first.elem, state.first.dims, Bytes::copyOf(content.data() + at, bytes)});
    at += bytes;
  }
  return checkpoint;
}

} // namespace candela::tool
