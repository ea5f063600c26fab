#include "tools/candela/bench/timeline_picture.h"

#include <algorithm>
#include <map>
#include <vector>

namespace candela::tool {
namespace {

constexpr size_t kColumns = 72;
constexpr size_t kRequests = 12; ///< that are shown, in the middle of the trace

/// One request on one device.
struct Execution {
  int process = 0;
  double start = 0, end = 0; ///< microseconds
  uint64_t request = 0;
};

struct Executions {
  std::map<int, std::string> names; ///< of processes
  std::vector<Execution> list;
};

Executions readExecutions(const Json& trace) {
  Executions read;
  for (const Json& event : trace.value("traceEvents", Json::array())) {
    if (event.value("name", "") == "process_name")
      read.names[event["pid"].get<int>()] = event["args"]["name"].get<std::string>();
    const Json args = event.value("args", Json::object());
    if (event.value("ph", "") != "X" || args.value("step", "") != "request") continue;
    const double start = event["ts"].get<double>();
    read.list.push_back({event["pid"].get<int>(), start, start + event["dur"].get<double>(),
                         args["request"].get<uint64_t>()});
  }
  std::ranges::sort(read.list, {}, &Execution::start);
  return read;
}

char glyphOf(uint64_t request) {
  constexpr std::string_view kGlyphs = "0123456789abcdefghijklmnopqrstuvwxyz";
  return kGlyphs[request % kGlyphs.size()];
}

} // namespace

std::string timelinePicture(const Json& trace) {
  const Executions all = readExecutions(trace);
  if (all.list.empty()) return "";
  const size_t shown = std::min(all.list.size(), kRequests * all.names.size());
  const size_t first = (all.list.size() - shown) / 2;
  const double start = all.list[first].start;
  double end = start;
  for (size_t i = first; i < first + shown; ++i) end = std::max(end, all.list[i].end);
  std::map<int, std::string> rows;
  for (const auto& [process, name] : all.names) rows[process].assign(kColumns, '.');
  const double perColumn = std::max((end - start) / kColumns, 1e-3);
  for (const Execution& execution : all.list) {
    const double from = (execution.start - start) / perColumn;
    const double to = (execution.end - start) / perColumn;
    if (to <= 0 || from >= kColumns) continue;
    const auto begin = static_cast<size_t>(std::max(from, 0.0));
    const auto last = std::max(begin + 1, static_cast<size_t>(std::min<double>(to, kColumns)));
    for (size_t c = begin; c < std::min(last, kColumns); ++c)
      rows[execution.process][c] = glyphOf(execution.request);
  }
  size_t width = 0;
  for (const auto& [process, name] : all.names) width = std::max(width, name.size());
  std::string text;
  for (const auto& [process, row] : rows)
    text += fmt::format("  {:<{}}  {}\n", all.names.at(process), width, row);
  text += fmt::format("  {:<{}}  {:<{}}{:>8}\n", "", width, "0", kColumns - 8,
                      fmt::format("{:.3g} ms", (end - start) / 1e3));
  return text;
}

} // namespace candela::tool
