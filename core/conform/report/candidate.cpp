#include "core/conform/report/candidate.h"

#include <nlohmann/json.hpp>

#include "core/conform/port.h"
#include "core/conform/workers.h"
#include "core/support/file.h"
#include "core/support/hash.h"

namespace candela::conform {
namespace {

using Json = nlohmann::ordered_json;

/// A path has a slash or ends in ".so", as for the plugin path.
bool isPath(const std::string& backend) { return backend.find('/') != backend.npos || backend.ends_with(".so"); }

Result<Json> askedHere(Port& port) {
  CDL_ASSIGN(const std::shared_ptr<runtime::Plugin> plugin, port.plugin());
  CDL_ASSIGN(const std::shared_ptr<runtime::Device> device, port.device());
  const cdl_header_t& header = plugin->table().header;
  return Json{{"origin", plugin->origin()},   {"name", plugin->name()},
              {"version", plugin->version()}, {"description", plugin->description()},
              {"device", device->name()},     {"major", header.major},
              {"minor", header.minor}};
}

} // namespace

Result<std::string> pluginFileOf(const std::string& backend) {
  if (isPath(backend)) return backend;
  Port port(backend);
  CDL_ASSIGN(const Candidate candidate, describeCandidate(port));
  return candidate.file;
}

Result<std::string> fileHash(const std::string& path) {
  CDL_ASSIGN(const Bytes bytes, mapFile(path));
  return hashText(sha256(bytes.data(), bytes.size()));
}

Result<Candidate> describeCandidate(Port& port) {
  Candidate candidate{.backend = port.backend(), .options = port.options()};
  candidate.name = port.backend();
  if (port.isReference()) return candidate;
  const auto ask = [&](size_t) {
    const Result<Json> answer = askedHere(port);
    const Json record = answer ? *answer : Json{{"error", answer.status().message()}};
    CaseResult result = CaseResult::passed();
    result.reason = record.dump(-1, ' ', false, Json::error_handler_t::replace);
    return result;
  };
  CDL_ASSIGN(const std::vector<CaseResult> results, runInWorkers({"backend"}, ask, {}, nullptr));
  if (results[0].outcome == CaseResult::Outcome::passed) {
    const Json record = Json::parse(results[0].reason);
    if (record.contains("error"))
      return badArgument("{}", record["error"].get<std::string>()).context(fmt::format("backend {}", port.backend()));
    candidate.file = record["origin"];
    candidate.name = record["name"];
    candidate.version = record["version"];
    candidate.description = record["description"];
    candidate.device = record["device"];
    candidate.abiMajor = record["major"];
    candidate.abiMinor = record["minor"];
  } else {
    candidate.file = port.backend();
    candidate.description = results[0].reason;
  }
  if (!isPath(candidate.file)) {
    candidate.file.clear();
    return candidate;
  }
  CDL_ASSIGN(candidate.sha256, fileHash(candidate.file));
  return candidate;
}

} // namespace candela::conform
