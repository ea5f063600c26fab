#include "tools/candela/profile.h"

#include <algorithm>

namespace candela::tool {

void ProfileSum::add(const std::string& traceJson) {
  std::map<std::pair<uint32_t, uint32_t>, InstrTime> run;
  const Json trace = Json::parse(traceJson, nullptr, false);
  if (!trace.is_object()) fail(kWorkFailed, "the trace is not a JSON object");
  for (const Json& event : trace.value("traceEvents", Json::array())) {
    const Json args = event.value("args", Json::object());
    if (!args.contains("instr")) continue;
    const std::pair key(args.value("partition", 0u), args.value("instr", 0u));
    InstrTime& time = run[key];
    if (time.executions == 0)
      time = {key.first,
              key.second,
              args.value("node", ""),
              args.value("op", ""),
              args.value("kind", ""),
              args.value("type", "")};
    ++time.executions;
    time.ms += event.value("dur", 0.0) / 1e3;
    time.bytes += args.value("bytes", uint64_t(0));
  }
  for (auto& [key, time] : run) {
    const auto [at, isNew] = instrs_.try_emplace(key, time);
    if (!isNew) at->second.ms = std::min(at->second.ms, time.ms);
  }
}

std::vector<InstrTime> ProfileSum::instrs(const Json& report) const {
  const auto multiplies = [](const InstrTime& time) { return time.kind == "matmul" || time.kind == "conv2d"; };
  std::map<std::string, uint64_t> macs, sharers;
  for (const Json& node : report.value("nodes_detail", Json::array()))
    macs[node.value("node", "")] += node.value("macs", uint64_t(0));
  for (const auto& [key, time] : instrs_)
    if (multiplies(time)) ++sharers[time.node];
  std::vector<InstrTime> list;
  for (const auto& [key, time] : instrs_) {
    list.push_back(time);
    if (multiplies(time)) list.back().macs = macs[time.node] / sharers[time.node];
  }
  return list;
}

} // namespace candela::tool
