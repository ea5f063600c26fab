#include "conformance/report/candidate.h"

#include <nlohmann/json.hpp>

#include "conformance/port.h"
#include "conformance/workers.h"
#include "core/compiler/capabilities/idle_rows.h"
#include "core/support/file.h"
#include "core/support/hash.h"
#include "core/support/text/name.h"

namespace candela::conformance::report {
namespace {

using Json = nlohmann::ordered_json;

/// A path has a slash or ends in ".so", as for the plugin path.
bool isPath(const std::string& backend) {
  return backend.find('/') != backend.npos || backend.ends_with(".so");
}

Result<Json> describedByQuery(Port& port) {
  CDL_ASSIGN(const std::shared_ptr<runtime::plugin::Plugin> plugin, port.plugin());
  const cdl_header_t& header = plugin->table().header;
  return Json{{"origin", plugin->origin()},   {"name", plugin->name()},
              {"version", plugin->version()}, {"description", plugin->description()},
              {"major", header.major},        {"minor", header.minor}};
}

Result<Json> describedByDevice(Port& port) {
  CDL_ASSIGN(const std::shared_ptr<runtime::plugin::Device> device, port.device());
  std::vector<std::string> idle;
  for (const capabilities::IdleRow& row : capabilities::idleRows(device->target()))
    idle.push_back(fmt::format("row {} ({}): {}", row.row, row.text, row.why));
  return Json{{"device", device->name()}, {"idle_rows", idle}};
}

/// What one question to the backend came to.
struct Told {
  Json record;        ///< null where there is no answer
  std::string reason; ///< why there is none
  bool isLate() const { return reason.starts_with(kNoAnswer); }
};

/// Asks in a process of its own. Failure: what the backend says is wrong.
Result<Told> askApart(Port& port, const std::function<Result<Json>(Port&)>& question,
                      double limitSeconds) {
  const auto ask = [&](size_t) {
    const Result<Json> answer = question(port);
    const Json record = answer ? *answer : Json{{"error", answer.status().message()}};
    CaseResult result = CaseResult::passed();
    result.reason = record.dump(-1, ' ', false, Json::error_handler_t::replace);
    return result;
  };
  CDL_ASSIGN(const std::vector<CaseResult> results,
             runInWorkers({"backend"}, ask, {1, limitSeconds}, nullptr));
  if (results[0].outcome != CaseResult::Outcome::passed) return Told{nullptr, results[0].reason};
  Json record = Json::parse(results[0].reason);
  if (record.contains("error"))
    return badArgument("{}", record["error"].get<std::string>())
        .context(fmt::format("backend {}", port.backend()));
  return Told{std::move(record), ""};
}

Status givenUp(const char* slot, const Told& told) {
  return failure(Code::timeout, "{}: {}, and is not asked again", slot, told.reason);
}

} // namespace

Result<std::string> pluginFileOf(const std::string& backend) {
  if (isPath(backend)) return text::parseDeviceName(backend).backend;
  Port port(backend);
  CDL_ASSIGN(const Candidate candidate, describeCandidate(port));
  return candidate.file;
}

Result<std::string> fileHash(const std::string& path) {
  CDL_ASSIGN(const Bytes bytes, mapFile(path));
  return hashText(sha256(bytes.data(), bytes.size()));
}

Result<Candidate> describeCandidate(Port& port, double limitSeconds) {
  Candidate candidate{.backend = port.backend(), .options = port.options()};
  candidate.name = port.backend();
  if (port.isReference()) return candidate;
  CDL_ASSIGN(const Told plugin, askApart(port, describedByQuery, limitSeconds));
  if (plugin.record.is_null()) {
    candidate.file = port.backend();
    candidate.description = plugin.reason;
    if (plugin.isLate()) port.giveUpQuery(givenUp(CDL_BACKEND_QUERY_SYMBOL, plugin));
  } else {
    candidate.file = plugin.record["origin"];
    candidate.name = plugin.record["name"];
    candidate.version = plugin.record["version"];
    candidate.description = plugin.record["description"];
    candidate.abiMajor = plugin.record["major"];
    candidate.abiMinor = plugin.record["minor"];
    CDL_ASSIGN(const Told device, askApart(port, describedByDevice, limitSeconds));
    if (device.record.is_null()) {
      candidate.description = device.reason;
    } else {
      candidate.device = device.record["device"];
      candidate.idleRows = device.record["idle_rows"];
    }
    if (device.isLate()) port.giveUpDevice(givenUp("device_open", device));
  }
  if (!isPath(candidate.file)) {
    candidate.file.clear();
    return candidate;
  }
  CDL_ASSIGN(candidate.sha256, fileHash(candidate.file));
  return candidate;
}

} // namespace candela::conformance::report
