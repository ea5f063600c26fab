#include "tools/candela/simulate/host_share.h"

#include <algorithm>
#include <map>

#include "tools/candela/simulate/host_rates.h"

namespace candela::tool {
namespace {

uint64_t hostCount(const Json& from, const char* key) { return from.value(key, uint64_t{0}); }
std::string kilobytesText(uint64_t bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / 1000);
}

/// "1 step", "14 steps"
std::string countedSteps(size_t steps) {
  return fmt::format("{} step{}", steps, steps == 1 ? "" : "s");
}

/// Steps that are not the device's: {node, op, macs, elements, bytes_in, bytes_out, why}.
Json hostNodes(const Json& placement) {
  Json nodes = Json::array();
  for (const Json& node : placement.value("nodes_detail", Json::array())) {
    if (node.value("class", "") == "native") continue;
    nodes.push_back({{"node", node.value("node", "")},
                     {"op", node.value("op", "")},
                     {"macs", hostCount(node, "macs") - hostCount(node, "native_macs")},
                     {"elements", hostCount(node, "elements")},
                     {"bytes_in", hostCount(node, "bytes_in")},
                     {"bytes_out", hostCount(node, "bytes_out")},
                     {"why", node.value("why", "")}});
  }
  return nodes;
}

} // namespace

std::string whyOnHost(const Json& placement) {
  std::map<std::string, size_t> counts;
  for (const Json& node : hostNodes(placement)) ++counts[node["why"].get<std::string>()];
  const auto most =
      std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; });
  if (most == counts.end() || most->first.empty()) return "";
  return fmt::format(" (most often: {})", most->first);
}

namespace {

/// With a bandwidth, the time of a step is that of its bytes: an assumption, and said to be one.
double addAssumedTimes(double gigabytesPerSecond, Json& nodes) {
  double sum = 0;
  for (Json& step : nodes) {
    const auto bytes =
        static_cast<double>(hostCount(step, "bytes_in") + hostCount(step, "bytes_out"));
    const double milliseconds = bytes / gigabytesPerSecond / 1e6;
    step["time_ms"] = milliseconds;
    step["time_tag"] = "assumed";
    sum += milliseconds;
  }
  return sum;
}

/// To a report with `host_nodes`: their times and `host_time`, where the arguments say any.
void addHostTime(const HostArguments& arguments, Json& report) {
  Json& nodes = report["host_nodes"];
  if (!arguments.rates.empty()) {
    const HostRates rates = readHostRates(arguments.rates);
    report["host_time"] = {{"ms", addHostTimes(rates, nodes)},
                           {"rates", arguments.rates},
                           {"machine", rates.machine},
                           {"threads", rates.threads},
                           {"tag", "fitted"}};
  } else if (arguments.bandwidth > 0) {
    report["host_time"] = {{"ms", addAssumedTimes(arguments.bandwidth, nodes)},
                           {"gb_per_s", arguments.bandwidth},
                           {"tag", "assumed"}};
  }
}

} // namespace

void HostArguments::addTo(CLI::App* command) {
  command
      ->add_option("--host-bandwidth", bandwidth,
                   "time the host's steps by their bytes, at so many GB/s (no time)")
      ->type_name("GB/s")
      ->check(numberIn(1e-6, 1e9));
  command
      ->add_option("--host-rates", rates,
                   "time the host's steps by what `candela calibrate-host` measured; they are in "
                   "the network's time then")
      ->type_name("FILE.json")
      ->excludes("--host-bandwidth");
}

void HostArguments::check() const {
  if (!rates.empty()) (void)readHostRates(rates);
}

void printHost(const Json& nodes, size_t rows, Console& console) {
  Table table({"host", "op", "elements", "KB in", "KB out", "MACs", "why"});
  size_t shown = 0;
  uint64_t bytes = 0;
  double milliseconds = 0;
  for (const Json& node : nodes) {
    bytes += hostCount(node, "bytes_in") + hostCount(node, "bytes_out");
    milliseconds += node.value("time_ms", 0.0);
    if (shown++ < rows)
      table.add({node.value("node", ""), node.value("op", ""),
                 countText(hostCount(node, "elements")), kilobytesText(hostCount(node, "bytes_in")),
                 kilobytesText(hostCount(node, "bytes_out")), countText(hostCount(node, "macs")),
                 node.value("why", "")});
  }
  if (!table.empty()) console.printText(table.text());
  if (shown > rows) console.print("  and {} more (--rows)\n", shown - rows);
  if (milliseconds <= 0) return;
  const bool isFitted = nodes[0].value("time_tag", "") == "fitted";
  console.print("  the host's {} move {}: {:.3f} ms by {}\n", countedSteps(nodes.size()),
                bytesText(bytes), milliseconds,
                isFitted ? "--host-rates, fitted"
                         : "--host-bandwidth, assumed, without their products");
}

void addHostShare(const HostArguments& arguments, const Json& placement, Json& report) {
  const Json macs = placement.value("macs", Json::object());
  report["host_macs"] = hostCount(macs, "host") + hostCount(macs, "emulated");
  report["host_nodes"] = hostNodes(placement);
  addHostTime(arguments, report);
}

Json networkOf(const Json& report) {
  const double device = report["time_ms"].get<double>();
  Json network = {{"device_ms", device},
                  {"host_steps", report["host_nodes"].size()},
                  {"host_macs", report["host_macs"]}};
  const bool isMeasured =
      report.contains("host_time") && report["host_time"].value("tag", "") == "fitted";
  if (!report["host_nodes"].empty() && !isMeasured) return network;
  const double host = isMeasured ? report["host_time"]["ms"].get<double>() : 0.0;
  network["host_ms"] = host;
  network["time_ms"] = device + host;
  network["runs_per_s"] = 1000 / std::max(device + host, 1e-9);
  return network;
}

std::string networkText(const Json& network, const std::string& device) {
  const double milliseconds = network["device_ms"].get<double>();
  const auto steps = network["host_steps"].get<size_t>();
  if (!network.contains("time_ms"))
    return fmt::format("{:.3f} ms of the {}; not counted: {} of the host with {} MACs",
                       milliseconds, device, countedSteps(steps),
                       countText(hostCount(network, "host_macs")));
  const double runs = network["runs_per_s"].get<double>();
  if (steps == 0) return fmt::format("{:.3f} ms  {:.1f} runs/s", milliseconds, runs);
  return fmt::format("{:.3f} ms  {:.1f} runs/s: {} {:.3f} ms, {} of the host {:.3f} ms (fitted)",
                     network["time_ms"].get<double>(), runs, device, milliseconds,
                     countedSteps(steps), network["host_ms"].get<double>());
}

} // namespace candela::tool
