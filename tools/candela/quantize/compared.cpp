#include "tools/candela/quantize/compared.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/support/file.h"
#include "core/support/json.h"
#include "tools/candela/support/model.h"
#include "tools/candela/support/page.h"

namespace candela::tool {
namespace {

constexpr size_t kComparedRows = 20;

/// A value as one report has it.
struct SeenValue {
  std::string type;
  std::optional<double> snr; ///< none where nothing was compared
};
/// A value as two reports have it.
struct ComparedValue {
  std::string value, op;
  std::optional<SeenValue> first, second;
  /// Decibels that the second one has more.
  std::optional<double> gain() const {
    if (!first || !second || !first->snr || !second->snr) return std::nullopt;
    return *second->snr - *first->snr;
  }
};
/// A node that stays float in one report alone.
struct FloatInOne {
  std::string node, op, file, why;
};

bool hasText(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_string();
}

Json readQuantization(const std::string& path) {
  const Bytes bytes = check(mapFile(path));
  Json report = parseJson<Json>({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!hasText(report, "schema") || report["schema"] != "candela.quantize/1")
    fail(kBadInput, "{}: it is no report of 'candela quantize --json'", path);
  for (const char* key : {"model", "calibrator", "scheme"})
    if (!hasText(report, key)) fail(kBadInput, "{}: no '{}'", path, key);
  for (const char* key : {"layers", "float"})
    if (!report.contains(key) || !report[key].is_array())
      fail(kBadInput, "{}: no list '{}'", path, key);
  for (const Json& layer : report["layers"]) {
    for (const char* key : {"value", "op", "type"})
      if (!hasText(layer, key)) fail(kBadInput, "{}: a layer without '{}'", path, key);
    if (layer.contains("snr_db") && !layer["snr_db"].is_number())
      fail(kBadInput, "{}: layer '{}': 'snr_db' is no number", path,
           layer["value"].get<std::string>());
  }
  for (const Json& node : report["float"])
    for (const char* key : {"node", "op", "why"})
      if (!hasText(node, key)) fail(kBadInput, "{}: a float node without '{}'", path, key);
  return report;
}

SeenValue seenValue(const Json& layer) {
  SeenValue seen{layer["type"].get<std::string>(), {}};
  if (layer.contains("snr_db")) seen.snr = layer["snr_db"].get<double>();
  return seen;
}

/// What the second one loses most first; values of one report alone last.
std::vector<ComparedValue> comparedValues(const Json& first, const Json& second) {
  std::vector<ComparedValue> values;
  std::map<std::string, size_t> rows;
  for (const Json& layer : first["layers"]) {
    const auto name = layer["value"].get<std::string>();
    if (rows.try_emplace(name, values.size()).second)
      values.push_back({name, layer["op"].get<std::string>(), seenValue(layer), {}});
  }
  for (const Json& layer : second["layers"]) {
    const auto name = layer["value"].get<std::string>();
    if (rows.try_emplace(name, values.size()).second)
      values.push_back({name, layer["op"].get<std::string>(), {}, {}});
    values[rows[name]].second = seenValue(layer);
  }
  std::ranges::stable_sort(values, [](const ComparedValue& a, const ComparedValue& b) {
    return std::pair(!a.gain(), a.gain().value_or(0)) < std::pair(!b.gain(), b.gain().value_or(0));
  });
  return values;
}

/// The nodes of `report` that stay float, but for those that do so in `other` too.
void addFloats(const Json& report, const Json& other, const std::string& file,
               std::vector<FloatInOne>& floats) {
  std::set<std::string> both;
  for (const Json& node : other["float"]) both.insert(node["node"].get<std::string>());
  for (const Json& node : report["float"])
    if (!both.count(node["node"].get<std::string>()))
      floats.push_back({node["node"].get<std::string>(), node["op"].get<std::string>(), file,
                        node["why"].get<std::string>()});
}

std::string decibels(const std::optional<SeenValue>& seen) {
  return seen && seen->snr ? fmt::format("{:.1f}", *seen->snr) : "";
}
std::string typeOf(const std::optional<SeenValue>& seen) { return seen ? seen->type : "float"; }
/// "u8", or "u8, i16" where they differ.
std::string typesOf(const ComparedValue& value) {
  const std::string first = typeOf(value.first), second = typeOf(value.second);
  return first == second ? first : first + ", " + second;
}
std::string gainText(const ComparedValue& value) {
  return value.gain() ? fmt::format("{:+.1f}", *value.gain()) : "";
}

std::string schemeText(const std::string& path, const Json& report) {
  std::string text =
      fmt::format("{}: {}, {}, {}", fileName(path), fileName(report["model"].get<std::string>()),
                  report["calibrator"].get<std::string>(), report["scheme"].get<std::string>());
  if (report.contains("snr_db") && report["snr_db"].is_number())
    text += fmt::format(", {:.1f} dB at the worst output", report["snr_db"].get<double>());
  return text;
}

Json seenJson(const std::optional<SeenValue>& seen) {
  if (!seen) return nullptr;
  Json json = {{"type", seen->type}};
  if (seen->snr) json["snr_db"] = *seen->snr;
  return json;
}

Json comparedJson(const std::vector<ComparedValue>& values, const std::vector<FloatInOne>& floats,
                  Json json) {
  json["layers"] = Json::array();
  for (const ComparedValue& value : values) {
    Json& row = json["layers"].emplace_back(Json{{"value", value.value},
                                                 {"op", value.op},
                                                 {"first", seenJson(value.first)},
                                                 {"second", seenJson(value.second)}});
    if (value.gain()) row["difference_db"] = *value.gain();
  }
  json["float_in_one"] = Json::array();
  for (const FloatInOne& node : floats)
    json["float_in_one"].push_back(
        {{"node", node.node}, {"op", node.op}, {"report", node.file}, {"why", node.why}});
  return json;
}

void writeComparedPage(const std::vector<ComparedValue>& values,
                       const std::vector<FloatInOne>& floats, const std::string& first,
                       const std::string& second, const Json& report, const std::string& html) {
  Page page;
  page.kind = "quantizations compared";
  page.file = fmt::format("{} and {}", fileName(first), fileName(second));
  page.fact("first", report["first"]);
  page.fact("second", report["second"]);
  PageTable table{"layers", {"value", "op", "type", "first dB", "second dB", "difference dB"}, {}};
  for (const ComparedValue& value : values)
    table.rows.push_back({value.value, value.op, typesOf(value), decibels(value.first),
                          decibels(value.second), gainText(value)});
  page.tables.push_back(std::move(table));
  PageTable left{"float in one", {"node", "op", "report", "why"}, {}};
  for (const FloatInOne& node : floats)
    left.rows.push_back({node.node, node.op, fileName(node.file), node.why});
  page.tables.push_back(std::move(left));
  const std::string text = pageHtml(page);
  check(writeFile(html, text.data(), text.size()), kWorkFailed);
}

void printCompared(const std::vector<ComparedValue>& values, const std::vector<FloatInOne>& floats,
                   Console& console) {
  Table table({"value", "op", "type", "first dB", "second dB", "difference"});
  for (const ComparedValue& value : std::span(values).first(std::min(kComparedRows, values.size())))
    table.add({value.value, value.op, typesOf(value), decibels(value.first), decibels(value.second),
               gainText(value)});
  if (!table.empty()) console.printText(table.text());
  if (values.size() > kComparedRows)
    console.print("  and {} more values\n", values.size() - kComparedRows);
  Table left({"float in one", "op", "report", "why"});
  for (const FloatInOne& node : std::span(floats).first(std::min(kComparedRows, floats.size())))
    left.add({node.node, node.op, fileName(node.file), node.why});
  if (!left.empty()) console.printText(left.text());
  if (floats.size() > kComparedRows)
    console.print("  and {} more nodes that stay float in one\n", floats.size() - kComparedRows);
}

} // namespace

void compareReports(const std::string& first, const std::string& second, const std::string& html,
                    Console& console) {
  const Json a = readQuantization(first), b = readQuantization(second);
  const std::vector<ComparedValue> values = comparedValues(a, b);
  std::vector<FloatInOne> floats;
  addFloats(a, b, first, floats);
  addFloats(b, a, second, floats);
  Json report = console.report("quantize_compared");
  report["first"] = schemeText(first, a);
  report["second"] = schemeText(second, b);
  report = comparedJson(values, floats, std::move(report));
  console.print("first   {}\n", schemeText(first, a));
  console.print("second  {}\n", schemeText(second, b));
  if (fileName(a["model"].get<std::string>()) != fileName(b["model"].get<std::string>()))
    console.note("these are reports of two models: values are matched by name");
  for (const auto& [path, json] : {std::pair(&first, &a), {&second, &b}})
    if (std::ranges::none_of((*json)["layers"],
                             [](const Json& layer) { return layer.contains("snr_db"); }))
      console.note("{}: no signal to noise: it was made without --data, or with --compare 0",
                   *path);
  printCompared(values, floats, console);
  if (!html.empty()) writeComparedPage(values, floats, first, second, report, html);
  console.writeJson(report);
}

} // namespace candela::tool
