#include "tools/candela/simulate/timeline.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "core/support/json.h"
#include "core/support/text/shown.h"
#include "tools/candela/simulate/measure.h"

namespace candela::tool {
namespace {

uint32_t indexOf(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) names.push_back(name);
  return static_cast<uint32_t>(std::ranges::find(names, name) - names.begin());
}

uint32_t causeOf(const std::string& name) {
  return static_cast<uint32_t>(std::ranges::find(kStallCauses, name) - std::begin(kStallCauses));
}

} // namespace

Timeline readTimeline(const std::string& path, const std::vector<std::string>& engines,
                      const Json& layers) {
  Timeline timeline;
  timeline.engines = engines;
  // A node of one program is one layer: the first of the name.
  const auto layerOf = layerIndex(layers);
  std::map<uint32_t, uint32_t> bySequence; // of this program
  uint64_t programs = 0, begin = 0, end = 0;
  std::ifstream file(path);
  size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const Json record = parseJson<Json>(line);
    const auto wrong = [&](const char* what) {
      fail(kWorkFailed, "{}:{}: {}", path, number, what);
    };
    if (!record.is_object()) wrong("no JSON object");
    if (record.contains("program")) {
      ++programs;
      begin = end;
      end += record.value("cycles", uint64_t{0});
      bySequence.clear();
      continue;
    }
    if (programs == 0) wrong("an instruction before the first program");
    TimedInstruction each;
    const auto engine = std::ranges::find(timeline.engines, record.value("engine", ""));
    each.stall = causeOf(record.value("stall", ""));
    if (engine == timeline.engines.end()) wrong("an engine that the configuration has not");
    if (each.stall >= std::size(kStallCauses)) wrong("an unknown cause of a stall");
    each.engine = static_cast<uint32_t>(engine - timeline.engines.begin());
    each.start = begin + record.value("start", uint64_t{0});
    each.done = begin + record.value("done", uint64_t{0});
    each.op = indexOf(timeline.ops, record.value("op", ""));
    each.instruction = record.value("instruction", uint32_t{0});
    each.tile = record.value("tile", uint32_t{0});
    each.bytes = record.value("bytes", uint64_t{0});
    if (const auto layer = layerOf.find({programs - 1, record.value("node", "")});
        layer != layerOf.end())
      each.layer = static_cast<int32_t>(layer->second);
    if (const auto after = record.find("after"); after != record.end()) {
      const Json wait = record.value("wait", Json::array());
      const std::string semaphore = wait.empty() ? "" : fmt::format("s{}", wait[0].get<uint32_t>());
      for (const Json& sequence : *after)
        if (const auto source = bySequence.find(sequence.get<uint32_t>());
            source != bySequence.end())
          each.after.emplace_back(source->second, semaphore);
    }
    if (const auto source = bySequence.find(record.value("awaited", UINT32_MAX));
        source != bySequence.end())
      each.after.emplace_back(source->second, "post");
    bySequence[record.value("seq", uint32_t{0})] =
        static_cast<uint32_t>(timeline.instructions.size());
    timeline.instructions.push_back(std::move(each));
  }
  return timeline;
}

std::string chromeTrace(const Timeline& timeline, const Json& report) {
  const double perMicrosecond = report["clock_mhz"].get<double>();
  const auto at = [&](double cycle) { return fmt::format("{:.4f}", cycle / perMicrosecond); };
  const auto quoted = [](const Json& text) {
    return text::shownJson(text.dump(-1, ' ', false, Json::error_handler_t::replace));
  };
  const Json& layers = report["layers"];
  std::string out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  out += fmt::format(R"({{"ph":"M","pid":1,"name":"process_name","args":{{"name":{}}}}})",
                     quoted(fmt::format("{} on {}", report["model"].get<std::string>(),
                                        report["npu"].get<std::string>())));
  for (size_t i = 0; i < timeline.engines.size(); ++i)
    out += fmt::format(
        ",\n"
        R"({{"ph":"M","pid":1,"tid":{0},"name":"thread_name","args":{{"name":{1}}}}},)"
        R"({{"ph":"M","pid":1,"tid":{0},"name":"thread_sort_index","args":{{"sort_index":{0}}}}})",
        i + 1, quoted(timeline.engines[i]));
  uint64_t arrows = 0;
  for (const TimedInstruction& each : timeline.instructions) {
    out += fmt::format(
        ",\n"
        R"({{"ph":"X","pid":1,"tid":{},"ts":{},"dur":{},"name":{},"args":{{"node":{},"tile":{},)"
        R"("instruction":{},"start":{},"done":{},"stall":"{}")",
        each.engine + 1, at(static_cast<double>(each.start)),
        at(static_cast<double>(each.done - each.start)), quoted(timeline.ops[each.op]),
        each.layer < 0 ? "null" : quoted(layers[static_cast<size_t>(each.layer)]["name"]),
        each.tile, each.instruction, each.start, each.done, kStallCauses[each.stall]);
    if (each.bytes) out += fmt::format(",\"bytes\":{}", each.bytes);
    out += "}}";
    // An arrow leaves within the instruction that signalled: at its very end the next one may have
    // begun.
    for (const auto& [source, semaphore] : each.after) {
      const TimedInstruction& from = timeline.instructions[source];
      ++arrows;
      out += fmt::format(
          ",\n"
          R"({{"ph":"s","pid":1,"tid":{},"ts":{},"id":{},"cat":"semaphore","name":"{}"}},)"
          R"({{"ph":"f","bp":"e","pid":1,"tid":{},"ts":{},"id":{},"cat":"semaphore","name":"{}"}})",
          from.engine + 1,
          at(std::max(static_cast<double>(from.start), static_cast<double>(from.done) - .5)),
          arrows, semaphore, each.engine + 1, at(static_cast<double>(each.start)), arrows,
          semaphore);
    }
  }
  out += "\n]";
  if (report.contains("assumed_int8"))
    out += fmt::format(",\"otherData\":{{\"assumed_int8\":{}}}", quoted(report["assumed_int8"]));
  return out + "}\n";
}

} // namespace candela::tool
