// The page of a simulation: what a person asks first as text, the rest drawn by page.js from the
// data in the page.
#include <algorithm>

#include "candela/candela.h"
#include "conformance/report/escape.h"
#include "conformance/report/html_style.h"
#include "tools/candela/simulate/energy.h"
#include "tools/candela/simulate/files.h"
#include "tools/candela/simulate/margin.h"
#include "tools/candela/simulate/measure.h"
#include "tools/candela/simulate/simulation_files.h"
#include "tools/candela/support/template.h"

namespace candela::tool {
namespace {

using conformance::report::markupEscaped;

/// More events than this make the page slow: neighbours of one engine and layer become one.
constexpr size_t kMostEvents = 60000;

uint64_t number(const Json& from, const char* key) { return from.value(key, uint64_t{0}); }

uint64_t secondOf(const Json& layer) {
  return number(layer, "second_loaded") + number(layer, "second_stored");
}

/// What crosses the first memory's bus.
uint64_t dramOf(const Json& layer) {
  return number(layer, "weights") + number(layer, "tables") + number(layer, "loaded") +
         number(layer, "stored") + number(layer, "compressed_bytes") -
         number(layer, "expanded_bytes") - secondOf(layer);
}

uint64_t busiest(const Json& layer, std::string_view kind) {
  uint64_t most = 0;
  if (layer.contains("busy"))
    for (const auto& [engine, busy] : layer["busy"].items())
      if (engine.starts_with(kind)) most = std::max(most, busy.get<uint64_t>());
  return most;
}

/// For each engine a flat list of five numbers an event: start after the end of the one before,
/// length, layer, op, cause; and of engines that move bytes those of each event.
struct PackedEvents {
  Json events = Json::array(), moved = Json::array();
};

using EventRow = std::vector<const TimedInstruction*>;

/// Of one engine. Neighbours of one layer with a gap of at most `gap` cycles become one.
void packRow(const EventRow& row, uint64_t gap, PackedEvents& into) {
  Json flat = Json::array(), moved = Json::array();
  uint64_t before = 0;
  bool moves = false;
  for (size_t i = 0; i < row.size();) {
    const TimedInstruction& first = *row[i];
    uint64_t done = first.done;
    uint64_t bytes = first.bytes;
    size_t next = i + 1;
    while (gap > 0 && next < row.size() && row[next]->layer == first.layer &&
           row[next]->start <= done + gap) {
      bytes += row[next]->bytes;
      done = std::max(done, row[next++]->done);
    }
    // a queue's events never overlap; merged ones might
    const uint64_t start = std::max(first.start, before);
    if (done > start) {
      for (const uint64_t value : {start - before, done - start}) flat.push_back(value);
      for (const int64_t value : {int64_t{first.layer}, int64_t{first.op}, int64_t{first.stall}})
        flat.push_back(value);
      moved.push_back(bytes);
      moves |= bytes > 0;
      before = done;
    }
    i = next;
  }
  into.events.push_back(std::move(flat));
  into.moved.push_back(moves ? std::move(moved) : Json::array());
}

PackedEvents packedEvents(const Timeline& timeline) {
  std::vector<EventRow> rows(timeline.engines.size());
  for (const TimedInstruction& each : timeline.instructions)
    if (each.done > each.start) rows[each.engine].push_back(&each);
  size_t all = 0;
  for (EventRow& row : rows) {
    std::ranges::stable_sort(row, {}, &TimedInstruction::start);
    all += row.size();
  }
  // Gaps of this many cycles vanish where there are too many events.
  uint64_t gap = 0, last = 0;
  for (const EventRow& row : rows)
    if (!row.empty()) last = std::max(last, row.back()->done);
  if (all > kMostEvents) gap = last / kMostEvents * 2;
  PackedEvents packed;
  for (const EventRow& row : rows) packRow(row, gap, packed);
  return packed;
}

std::string card(const std::string& value, const std::string& name) {
  return fmt::format("<div class=\"card\"><b>{}</b><span>{}</span></div>", markupEscaped(value),
                     markupEscaped(name));
}

std::string rowsText(const Json& object) {
  std::string out;
  for (const auto& [name, value] : object.items())
    out +=
        fmt::format("<tr><td data-k=\"what\">{}</td><td class=\"n\" data-k=\"value\">{}</td></tr>",
                    markupEscaped(name),
                    markupEscaped(value.is_string() ? value.get<std::string>() : value.dump()));
  return out;
}

/// What cycles go to, and the colour of each in page.css.
struct CauseText {
  const char* name;
  const char* text;
};

constexpr CauseText kCauseTexts[] = {
    {"products", "the array multiplied"},
    {"unused", "rows or columns of the array were empty"},
    {"fill", "the array was filled or emptied"},
    {"requant", "sums were scaled and written"},
    {"vector", "the vector engine computed"},
    {"scatter", "a transfer reordered single bytes"},
    {"load", "bytes came in"},
    {"store", "bytes went out"},
    {"dram", "a transfer waited for memory"},
    {"memory", "an instruction waited for its own bytes"},
    {"bank", "two engines used one bank"},
    {"control", "nothing was under way"},
};

/// A bar of a layer's or of all causes; `rem` is its width, none for all that there is.
std::string causesBar(const Json& from, std::optional<double> rem) {
  const std::string width = rem ? fmt::format(" style=\"width:{:.2f}rem\"", *rem) : "";
  std::string out = fmt::format("<span class=\"bar causes\"{}>", width);
  const double all = std::max(from.value("cycles", 0.0), 1.0);
  const Json causes = from.value("causes", Json::object());
  for (const auto& [cause, cycles] : causes.items())
    if (const double share = 100 * cycles.get<double>() / all; share >= 0.05)
      out += fmt::format("<i class=\"cause-{}\" style=\"width:{:.1f}%\"></i>", cause, share);
  return out + "</span>";
}

/// All cycles of the run by cause, with what the colours mean.
std::string causesSection(const Json& time) {
  const Json causes = time.value("causes", Json::object());
  if (causes.empty()) return "";
  const double all = std::max(time.value("cycles", 0.0), 1.0);
  std::string out = "<section>\n<h2>Cycles go to <small>of the whole; colours as in the "
                    "layers</small></h2>\n" +
                    causesBar(time, std::nullopt) + "\n<ul class=\"legend\" id=\"causes\">\n";
  for (const CauseText& each : kCauseTexts)
    if (const double cycles = causes.value(each.name, 0.0); cycles > 0)
      out += fmt::format("<li><i class=\"cause-{0}\"></i>{0} {1:.1f} % <small>{2}</small></li>\n",
                         each.name, 100 * cycles / all, each.text);
  return out + "</ul>\n</section>\n";
}

/// One row of the table of layers.
class LayerRow {
public:
  explicit LayerRow(const Json& layer) : layer_(layer) {}

  std::string text(size_t index, uint64_t mostCycles, bool hasEnergy) {
    out_ = fmt::format("<tr data-i=\"{}\">", index);
    cell("#", static_cast<double>(index), std::to_string(index));
    out_ += fmt::format("<td data-k=\"layer\">{}</td>", markupEscaped(layer_.value("name", "")));
    const uint64_t cycles = number(layer_, "cycles");
    cell("cycles", static_cast<double>(cycles), groupedText(cycles));
    const double share = static_cast<double>(cycles) / static_cast<double>(mostCycles);
    out_ += fmt::format("<td>{}</td>", causesBar(layer_, 5 * share));
    out_ += fmt::format("<td data-k=\"shape\">{} <small>{}</small></td>",
                        markupEscaped(layer_.value("shape", "")),
                        markupEscaped(layer_.value("op", "")));
    cell("of least", layer_.value("of_least", 0.0),
         layer_.contains("of_least") ? fmt::format("{:.2f}", layer_["of_least"].get<double>())
                                     : "");
    cell("MAC %", layer_.value("mac_utilization", 0.0),
         fmt::format("{:.1f}", 100 * layer_.value("mac_utilization", 0.0)));
    out_ +=
        fmt::format("<td data-k=\"bound by\">{}</td>", markupEscaped(layer_.value("bound", "")));
    out_ += fmt::format("<td data-k=\"cycles go to\">{}</td>", markupEscaped(causesText(layer_)));
    kilobytes("weights KB", number(layer_, "weights") + number(layer_, "tables"));
    kilobytes("loaded KB", number(layer_, "loaded"));
    kilobytes("stored KB", number(layer_, "stored"));
    if (hasEnergy)
      cell("energy", layer_.value("energy_nj", 0.0), energyText(layer_.value("energy_nj", 0.0)));
    return out_ + "</tr>\n";
  }

private:
  void cell(const char* name, double value, const std::string& text) {
    out_ += fmt::format("<td class=\"n\" data-k=\"{}\" data-v=\"{}\">{}</td>", name, value, text);
  }
  void kilobytes(const char* name, uint64_t bytes) {
    const auto value = static_cast<double>(bytes);
    cell(name, value, groupedText(value / 1000, 1));
  }

  const Json& layer_;
  std::string out_;
};

std::string layerRows(const Json& report) {
  uint64_t most = 1;
  for (const Json& layer : report["layers"]) most = std::max(most, number(layer, "cycles"));
  std::string out;
  size_t index = 0;
  for (const Json& layer : report["layers"])
    out += LayerRow(layer).text(index++, most, report.contains("energy"));
  return out;
}

const char* changeClass(int64_t before, int64_t after) {
  if (after > before) return "worse";
  return after < before ? "better" : "zero";
}

std::string comparison(const Json& report, const Json& other) {
  const Json compared = comparedLayers(report, other);
  const auto before = number(compared, "cycles_before"), after = number(compared, "cycles_after");
  std::string out = fmt::format(
      "<section><h2>Compared <small>with {} on {}</small></h2><p class=\"answer\">{} "
      "to {} cycles, {:.2f}x as fast</p>"
      "<div class=\"sheet\"><table><thead><tr><th>layer</th><th "
      "class=\"n\">before</th><th class=\"n\">now</th><th "
      "class=\"n\">change</th></tr></thead><tbody>",
      markupEscaped(compared["model_before"].get<std::string>()),
      markupEscaped(compared["npu_before"].get<std::string>()), groupedText(before),
      groupedText(after), after ? static_cast<double>(before) / static_cast<double>(after) : 0.0);
  for (const Json& row : compared["layers"]) {
    const auto was = static_cast<int64_t>(number(row, "before")),
               is = static_cast<int64_t>(number(row, "after"));
    out += fmt::format("<tr><td data-k=\"layer\">{}</td><td class=\"n\" "
                       "data-k=\"before\">{}</td><td class=\"n\" data-k=\"now\">{}</td>"
                       "<td class=\"n {}\" data-k=\"change\">{:+}</td></tr>\n",
                       markupEscaped(row["name"].get<std::string>()),
                       groupedText(number(row, "before")), groupedText(number(row, "after")),
                       changeClass(was, is), is - was);
  }
  return out + "</tbody></table></div></section>\n";
}

/// What the page draws of a layer.
Json layerData(const Json& layer) {
  Json data = {{"node", layer.value("name", "")},
               {"macs", number(layer, "macs")},
               {"cycles", number(layer, "cycles")},
               {"start", number(layer, "start")},
               {"done", number(layer, "done")},
               {"dram", dramOf(layer)},
               {"second", secondOf(layer)},
               {"matrix", busiest(layer, "matrix")},
               {"requant", busiest(layer, "requant")},
               {"vector", busiest(layer, "vector")},
               {"transfer", std::max(busiest(layer, "load"), busiest(layer, "store"))}};
  for (const char* key : {"shape", "products"})
    if (layer.contains(key)) data[key] = layer[key];
  return data;
}

Json pageData(const Json& report, const Timeline& timeline, const Json& memory) {
  const Json& time = report["time"];
  PackedEvents packed = packedEvents(timeline);
  Json data = {{"clock_mhz", report["clock_mhz"].get<double>()},
               {"cycles", report["cycles"]},
               {"peak", time["peak_macs_per_cycle"]},
               {"bandwidth", time["dram_bytes_per_cycle"]},
               {"second_bandwidth", time.value("second_bytes_per_cycle", 1.0)},
               {"cores", report.value("cores", Json::object()).value("count", 1)},
               {"array", report["array"]},
               {"engines", timeline.engines},
               {"ops", timeline.ops},
               {"causes", kStallCauses},
               {"layers", Json::array()},
               {"events", std::move(packed.events)},
               {"moved", std::move(packed.moved)},
               {"memory", memory}};
  for (const Json& layer : report["layers"]) data["layers"].push_back(layerData(layer));
  return data;
}

/// The whole network with the host's steps; what is missing where nobody measured those.
std::string networkCard(const Json& network) {
  const uint64_t steps = number(network, "host_steps");
  if (!network.contains("time_ms"))
    return card("no runs/s", fmt::format("not counted: steps of the host, {} with {} products",
                                         steps, countText(number(network, "host_macs"))));
  const std::string host =
      steps ? fmt::format("{:.3f} ms of the host, fitted", network["host_ms"].get<double>())
            : "the host has no step";
  return card(fmt::format("{:.1f} runs/s", network["runs_per_s"].get<double>()),
              fmt::format("{:.3f} ms in all; {}", network["time_ms"].get<double>(), host));
}

std::string cards(const Json& report) {
  const Json& time = report["time"];
  std::string out = networkCard(report["network"]);
  out += card(fmt::format("{:.3f} ms", report["time_ms"].get<double>()),
              fmt::format("of the device, {} cycles at {:.0f} MHz",
                          countText(number(report, "cycles")), report["clock_mhz"].get<double>()));
  out += card(fmt::format("{:.1f} %", 100 * report["mac_utilization"].get<double>()),
              fmt::format("of {} products a cycle",
                          static_cast<uint64_t>(time["peak_macs_per_cycle"].get<double>())));
  if (report.contains("of_least"))
    out += card(fmt::format("{:.2f} x", report["of_least"].get<double>()),
                fmt::format("the least cycles of its layers, {}",
                            countText(number(report, "least_cycles"))));
  out += card(bytesText(number(report["dram_bytes"], "all")),
              fmt::format("of DRAM, {:.1f} bytes a cycle at most",
                          time["dram_bytes_per_cycle"].get<double>()));
  if (report.contains("energy"))
    out += card(energyText(report["energy"]["nj"].get<double>()),
                "two digits: " + report["energy"]["table"].get<std::string>() + " prices");
  return out +
         card(countText(number(report, "macs")),
              fmt::format("products, and {} on the host", countText(number(report, "host_macs"))));
}

constexpr const char* kScratchpadSection = R"(<section>
<h2>Scratchpad <small>instructions of the program to the right, below them about when they run; KiB
upwards</small></h2>
<div class="tools"><select id="program"></select></div>
<canvas id="memory"></canvas>
<p class="tell" id="memory-told">&#160;</p>
</section>
)";

/// What --what-if compiled anew.
std::string whatIfTable(const Json& report) {
  if (!report.contains("what_if")) return "";
  std::string out = "<table><thead><tr><th>compiled anew</th><th class=\"n\">cycles</th>"
                    "<th class=\"n\">as fast</th><th class=\"n\">DRAM</th></tr></thead><tbody>";
  for (const Json& each : report["what_if"])
    out += fmt::format("<tr><td data-k=\"change\">{}</td><td class=\"n\" data-k=\"cycles\">{}</td>"
                       "<td class=\"n\" data-k=\"as fast\">{:.2f}x</td>"
                       "<td class=\"n\" data-k=\"DRAM\">{}</td></tr>\n",
                       markupEscaped(each["change"].get<std::string>()),
                       groupedText(number(each, "cycles")), each["speed"].get<double>(),
                       bytesText(number(each, "dram_bytes")));
  return out + "</tbody></table>";
}

std::string energySection(const Json& report) {
  if (!report.contains("energy")) return "";
  std::string out =
      fmt::format("<section>\n<h2>Energy <small>{} prices</small></h2>\n<table><tbody>\n",
                  markupEscaped(report["energy"]["table"].get<std::string>()));
  for (const auto& [action, value] : report["energy"]["by_action"].items())
    out += fmt::format(
        "<tr><td data-k=\"action\">{}</td><td class=\"n\" data-k=\"energy\">{}</td></tr>",
        markupEscaped(action), energyText(value.get<double>()));
  return out + "</tbody></table>\n</section>\n\n";
}

/// Of a simulation or of an estimate.
std::string howText(const Json& report) {
  if (report.contains("source")) return "estimated by " + report["source"].get<std::string>();
  return fmt::format("simulated on an NPU, {}, fidelity {}", report["engine"].get<std::string>(),
                     report["fidelity"].get<std::string>());
}

/// What limits several cores.
std::string coresText(const Json& report) {
  std::string out;
  if (report.contains("cores"))
    out += fmt::format("<dt>cores</dt><dd>{} on one memory, balance {:.2f}: {}</dd>\n",
                       report["cores"]["count"].get<size_t>(),
                       report["cores"]["balance"].get<double>(),
                       markupEscaped(report["cores"]["limit"].get<std::string>()));
  return out;
}

/// What the headline figures rest on, and how far such figures were off where that was measured.
std::string basisText(const Json& report) {
  const Json& margin = report["margin"];
  std::string rests = constantsText(report["time"]["provenance"]);
  if (report.contains("source")) rests += ": " + report["source"].get<std::string>();
  std::string out = fmt::format("<dt>rests on</dt><dd>{}</dd>\n", markupEscaped(rests));
  out += fmt::format("<dt>margin</dt><dd>{}", markupEscaped(margin["text"].get<std::string>()));
  if (margin.contains("source"))
    out += fmt::format(" <small>{}</small>", markupEscaped(margin["source"].get<std::string>()));
  out += "</dd>\n";
  out += coresText(report);
  if (!margin.contains("published")) return out;
  const Json& published = margin["published"];
  return out +
         fmt::format("<dt>other machines</dt><dd>{:.2f} to {:.2f} times the published time of "
                     "{} workloads <small>{}</small></dd>\n",
                     published["least"].get<double>(), published["most"].get<double>(),
                     published["workloads"].get<uint64_t>(),
                     markupEscaped(published["source"].get<std::string>()));
}

std::string hostSection(const Json& report) {
  if (report["host_nodes"].empty()) return "";
  std::string remark = "without a time";
  if (report.contains("host_time")) {
    const Json& time = report["host_time"];
    const double milliseconds = time["ms"].get<double>();
    if (time.contains("gb_per_s"))
      remark = fmt::format("{:.3f} ms by its bytes at {} GB/s, assumed", milliseconds,
                           time["gb_per_s"].get<double>());
    else
      remark = fmt::format("{:.3f} ms, fitted on {}", milliseconds,
                           markupEscaped(time["machine"].get<std::string>()));
  }
  std::string out = fmt::format(
      "<section><h2>On the host <small>{}</small></h2><div class=\"sheet\"><table><thead><tr>"
      "<th>node</th><th>operator</th><th class=\"n\">elements</th><th class=\"n\">KB in</th>"
      "<th class=\"n\">KB out</th><th class=\"n\">MACs</th><th>why</th></tr></thead><tbody>",
      remark);
  for (const Json& node : report["host_nodes"])
    out += fmt::format("<tr><td data-k=\"node\">{}</td><td data-k=\"operator\">{}</td>"
                       "<td class=\"n\" data-k=\"elements\">{}</td>"
                       "<td class=\"n\" data-k=\"KB in\">{:.1f}</td>"
                       "<td class=\"n\" data-k=\"KB out\">{:.1f}</td>"
                       "<td class=\"n\" data-k=\"MACs\">{}</td><td data-k=\"why\">{}</td></tr>",
                       markupEscaped(node.value("node", "")), markupEscaped(node.value("op", "")),
                       groupedText(number(node, "elements")),
                       static_cast<double>(number(node, "bytes_in")) / 1000,
                       static_cast<double>(number(node, "bytes_out")) / 1000,
                       groupedText(number(node, "macs")), markupEscaped(node.value("why", "")));
  return out + "</tbody></table></div></section>\n";
}

/// That the scales are no measured ones, where they are not, what no hardware has, and memories
/// where there are two.
std::string assumedRemark(const Json& report) {
  std::string remarks;
  const auto add = [&](const std::string& text) {
    remarks += fmt::format("<p class=\"answer\">{}</p>\n", markupEscaped(text));
  };
  if (report.contains("assumed_int8")) add(report["assumed_int8"].get<std::string>());
  for (const Json& setting : report.value("model_only", Json::array()))
    add(fmt::format("model only: {} = {}", setting["key"].get<std::string>(),
                    setting["value"].get<std::string>()));
  if (report.contains("compression")) add(report["compression"]["text"].get<std::string>());
  for (const Json& memory : report.value("memories", Json::array()))
    add(memory["text"].get<std::string>());
  return remarks;
}

std::string constantRows(const Json& constants) {
  std::string out;
  for (const Json& constant : constants)
    out += fmt::format(
        "<tr><td data-k=\"constant\">{}</td><td class=\"n\" data-k=\"value\">{} {}</td>"
        "<td data-k=\"tag\">{}</td><td data-k=\"source\">{}</td></tr>\n",
        markupEscaped(constant.value("name", "")), constant["value"].dump(),
        markupEscaped(constant.value("unit", "")), markupEscaped(constant.value("tag", "")),
        markupEscaped(constant.value("source", "")));
  return out;
}

} // namespace

std::string simulationPage(const Json& report, const Timeline& timeline, const Json& memory,
                           const Json* other) {
  const auto escaped = [](const Json& text) { return markupEscaped(text.get<std::string>()); };
  return filledTemplate(
      kSimulationTemplate,
      {{"MODEL", escaped(report["model"])},
       {"NPU", escaped(report["npu"])},
       {"STYLE", fmt::format("{}{}", conformance::report::kHtmlStyle, kSimulationStyle)},
       {"HOW", markupEscaped(howText(report))},
       {"ASSUMED", assumedRemark(report)},
       {"CARDS", cards(report)},
       {"BASIS", basisText(report)},
       {"CAUSES", causesSection(report["time"])},
       {"SCRATCHPAD", memory.empty() ? "" : kScratchpadSection},
       {"WHAT_IF", whatIfTable(report)},
       {"ANEW",
        report.contains("source") ? "--sweep compiles anew" : "--what-if and --sweep compile anew"},
       {"LAYERS", layerRows(report)},
       {"COMPARISON", other ? comparison(report, *other) : ""},
       {"ENERGY_HEAD", report.contains("energy") ? "<th class=\"n\">energy</th>\n" : ""},
       {"ENERGY", energySection(report)},
       {"HOST", hostSection(report)},
       {"PROVENANCE", rowsText(report["time"]["provenance"])},
       {"CONSTANTS", constantRows(report["time"]["constants"])},
       {"COUNTERS", rowsText(report["counters"])},
       {"CONFIGURATION", escaped(report["configuration"])},
       {"VERSION", candela_version()},
       {"DATA", scriptText(pageData(report, timeline, memory))},
       {"SCRIPT", std::string(kSimulationScript)}});
}

} // namespace candela::tool
