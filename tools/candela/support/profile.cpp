#include "tools/candela/support/profile.h"

#include <algorithm>

namespace candela::tool {

void ProfileSum::add(const std::string& traceJson) {
  std::map<std::pair<uint32_t, uint32_t>, InstrTime> run;
  std::map<std::string, StepTime> steps;
  double runMs = 0;
  const Json trace = Json::parse(traceJson, nullptr, false);
  if (!trace.is_object()) fail(kWorkFailed, "the trace is not a JSON object");
  for (const Json& event : trace.value("traceEvents", Json::array())) {
    const Json args = event.value("args", Json::object());
    const double ms = event.value("dur", 0.0) / 1e3;
    if (const std::string step = args.value("step", ""); !step.empty()) {
      // What comes before the run is compiling.
      if (step == "run") steps.clear();
      if (step == "run") runMs = ms;
      if (step == "run" || step == "partition") continue;
      StepTime& time = steps[step];
      ++time.count;
      time.ms += ms;
      time.bytes += args.value("bytes", uint64_t(0));
    }
    if (!args.contains("instr")) continue;
    const std::pair key(args.value("partition", 0u), args.value("instr", 0u));
    InstrTime& time = run[key];
    if (time.executions == 0)
      time = {key.first,
              key.second,
              args.value("node", ""),
              args.value("op", ""),
              args.value("kind", ""),
              args.value("type", ""),
              args.value("function", ""),
              args.value("on", ""),
              args.value("support", ""),
              args.value("class", ""),
              args.value("operands", std::vector<std::string>())};
    ++time.executions;
    time.ms += ms;
    time.bytes += args.value("bytes", uint64_t(0));
  }
  for (auto& [key, time] : run) {
    const auto [at, isNew] = instrs_.try_emplace(key, time);
    if (!isNew) at->second.ms = std::min(at->second.ms, time.ms);
  }
  if (runMs_ > 0 && runMs >= runMs_) return;
  runMs_ = runMs;
  steps_ = std::move(steps);
}

std::vector<InstrTime> ProfileSum::instrs(const Json& report) const {
  const auto multiplies = [](const InstrTime& time) {
    return time.kind == "matmul" || time.kind == "conv2d";
  };
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

namespace {

double sumOf(const std::vector<InstrTime>& list, std::string_view support) {
  double ms = 0;
  for (const InstrTime& time : list)
    if (support.empty() || time.support == support) ms += time.ms;
  return ms;
}

double shareOf(double part, double whole) { return whole > 0 ? part / whole : 0; }

} // namespace

std::string ProfileSum::text(const Json& report, size_t rows) const {
  std::vector<InstrTime> list = instrs(report);
  const double all = sumOf(list, "");
  std::string line = fmt::format("profile  {} in {} instructions", timeText(all), list.size());
  for (const char* support : {"native", "emulated", "host"})
    if (const double ms = sumOf(list, support); ms > 0)
      line += fmt::format(", {:.1f} % {}", 100 * shareOf(ms, all), support);
  line += fmt::format("; the run {}", timeText(runMs_));
  for (const auto& [name, step] : steps_)
    if (step.bytes || name == "wait")
      line += fmt::format(", {} {}{}", name, timeText(step.ms),
                          step.bytes ? " (" + bytesText(step.bytes) + ")" : "");
  std::stable_sort(list.begin(), list.end(),
                   [](const InstrTime& a, const InstrTime& b) { return a.ms > b.ms; });
  Table table({"node", "op", "instruction", "type", "on", "how", fmt::format("{:>5}", "calls"),
               fmt::format("{:>9}", "time"), fmt::format("{:>7}", "share"),
               fmt::format("{:>9}", "bytes"), fmt::format("{:>8}", "MACs")});
  double rest = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const InstrTime& time = list[i];
    if (i >= rows) rest += time.ms;
    if (i >= rows) continue;
    table.add({time.node, time.op, time.kind + (time.fn.empty() ? "" : "." + time.fn), time.type,
               time.on, time.support, fmt::format("{:>5}", time.executions),
               fmt::format("{:>9}", timeText(time.ms)),
               fmt::format("{:>5.1f} %", 100 * shareOf(time.ms, all)),
               fmt::format("{:>9}", bytesText(time.bytes)),
               fmt::format("{:>8}", time.macs ? countText(time.macs) : "-")});
  }
  line += "\n" + table.text();
  if (list.size() > rows)
    line += fmt::format("  and {} more, {} (all of them: --json)\n", list.size() - rows,
                        timeText(rest));
  return line;
}

Json ProfileSum::json(const Json& report) const {
  const std::vector<InstrTime> list = instrs(report);
  const double all = sumOf(list, "");
  Json instructions = Json::array(), steps = Json::object();
  for (const InstrTime& time : list)
    instructions.push_back({{"node", time.node},
                            {"op", time.op},
                            {"kind", time.kind},
                            {"function", time.fn},
                            {"type", time.type},
                            {"operands", time.operands},
                            {"class", time.cls},
                            {"on", time.on},
                            {"support", time.support},
                            {"partition", time.partition},
                            {"instr", time.instr},
                            {"calls", time.executions},
                            {"ms", time.ms},
                            {"share", shareOf(time.ms, all)},
                            {"bytes", time.bytes},
                            {"macs", time.macs}});
  for (const auto& [name, step] : steps_)
    steps[name] = {{"count", step.count}, {"ms", step.ms}, {"bytes", step.bytes}};
  return {{"run_ms", runMs_},
          {"instructions_ms", all},
          {"native_ms", sumOf(list, "native")},
          {"emulated_ms", sumOf(list, "emulated")},
          {"host_ms", sumOf(list, "host")},
          {"steps", std::move(steps)},
          {"instructions", std::move(instructions)}};
}

} // namespace candela::tool
