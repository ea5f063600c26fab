// What `candela quantize` tells: the worst layers first, what stays float and why.
#include "tools/candela/quantize/report.h"

#include <algorithm>

#include "core/support/file.h"
#include "tools/candela/support/model.h"
#include "tools/candela/support/page.h"

namespace candela::tool {
namespace {

using quantize::Histogram, quantize::Move, quantize::Network, quantize::Observer,
    quantize::Quantization, quantize::Quantized, quantize::Quantizer, quantize::Settings;

constexpr size_t kShownRows = 12;

struct Layer {
  std::string value, node, op;
  Quantization steps;
  const Observer* seen = nullptr;
  double snr = 0, saturated = 0;
  bool measured = false;
};

std::vector<Layer> layersOf(const Quantizer& quantizer, const Quantized& made,
                            const QuantizeReport& report) {
  std::vector<Layer> layers;
  const Network& network = quantizer.network();
  for (const auto& [value, steps] : made.steps) {
    if (made.plan.sameAs.count(value)) continue;
    Layer layer{value, "", "input", steps};
    if (const int from = network.producer(value); from >= 0) {
      layer.node = network.nodeName(from);
      layer.op = network.node(from).opType;
    }
    if (const auto seen = quantizer.profile().values.find(value);
        seen != quantizer.profile().values.end()) {
      layer.seen = &seen->second;
      layer.saturated = quantize::saturation(seen->second, steps);
    }
    if (report.comparison) {
      const auto at = report.comparison->values.find(value);
      layer.measured = at != report.comparison->values.end();
      if (layer.measured) layer.snr = at->second.snr();
    }
    layers.push_back(layer);
  }
  std::ranges::stable_sort(layers, [](const Layer& a, const Layer& b) {
    return std::pair(!a.measured, a.snr) < std::pair(!b.measured, b.snr);
  });
  return layers;
}

/// A node that stays float, and its multiply-accumulates where it has some.
struct Left {
  std::string node, op, why;
  uint64_t elements = 0, macs = 0;
};
std::vector<Left> leftOf(const Quantizer& quantizer, const Quantized& made) {
  std::vector<Left> left;
  const Network& network = quantizer.network();
  for (int i = 0; i < std::ssize(network.model.graph.nodes); ++i) {
    const std::string& why = made.plan.why[static_cast<size_t>(i)];
    if (why.empty() || made.plan.quantized[static_cast<size_t>(i)]) continue;
    const auto type = network.types.find(network.node(i).outputs[0]);
    left.push_back({network.nodeName(i), network.node(i).opType, why,
                    type == network.types.end() ? 0 : static_cast<uint64_t>(type->second.count()),
                    quantize::macsOf(network, i)});
  }
  std::ranges::stable_sort(left, [](const Left& a, const Left& b) { return a.macs > b.macs; });
  return left;
}

std::string snrText(const Layer& layer) {
  return layer.measured ? fmt::format("{:.1f}", layer.snr) : "";
}

Json layerJson(const Layer& layer) {
  Json json = {{"value", layer.value},
               {"node", layer.node},
               {"op", layer.op},
               {"type", elemName(layer.steps.elem)},
               {"scale", layer.steps.scale},
               {"zero", layer.steps.zero},
               {"saturated", layer.saturated}};
  if (layer.seen) json.update({{"min", layer.seen->min}, {"max", layer.seen->max}});
  if (layer.measured) json["snr_db"] = layer.snr;
  return json;
}

/// The histogram as an inline picture.
std::string barsOf(const Layer& layer) {
  if (!layer.seen || layer.seen->histogram.empty()) return "";
  constexpr int kBars = 96, kEach = Histogram::kBins / kBars, kHeight = 60;
  std::vector<double> bars(kBars, 0);
  for (int bin = 0; bin < kBars * kEach; ++bin)
    bars[static_cast<size_t>(bin / kEach)] += static_cast<double>(layer.seen->histogram.count(bin));
  const double most = std::log1p(*std::ranges::max_element(bars));
  std::string svg =
      fmt::format("<svg width=\"{}\" height=\"{}\" role=\"img\">", kBars * 4, kHeight);
  for (int bar = 0; bar < kBars; ++bar) {
    const double height =
        most > 0 ? std::log1p(bars[static_cast<size_t>(bar)]) / most * kHeight : 0;
    const double at = layer.seen->histogram.edge(bar * kEach);
    const bool isWithin = at >= layer.steps.lowest() && at <= layer.steps.highest();
    svg += fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"3\" height=\"{:.1f}\" fill=\"{}\"/>",
                       bar * 4, kHeight - height, height, isWithin ? "#47a" : "#c43");
  }
  return svg + "</svg>";
}

/// "--equalize: 31.2 dB, 29.8 dB without: it pays; 4 pairs of layers".
std::string improvementText(const Improvement& improvement) {
  std::string text = improvement.option + ": ";
  if (!improvement.measured) return text + "not measured; " + improvement.did;
  const auto [with, without] = *improvement.measured;
  return text + fmt::format("{:.1f} dB, {:.1f} dB without{}; {}", with, without,
                            with > without ? "" : ": it does not pay here", improvement.did);
}

Json improvementJson(const Improvement& improvement) {
  Json json = {{"option", improvement.option}, {"did", improvement.did}};
  if (improvement.measured) {
    json["snr_db"] = improvement.measured->with;
    json["snr_db_without"] = improvement.measured->without;
  }
  return json;
}

Json equalizationJson(const quantize::Equalization& equalization) {
  Json json = {
      {"sweeps", equalization.sweeps}, {"pairs", Json::array()}, {"left_out", Json::array()}};
  for (const quantize::EqualizedPair& pair : equalization.pairs)
    json["pairs"].push_back({{"first", pair.first},
                             {"second", pair.second},
                             {"least_factor", pair.least},
                             {"most_factor", pair.most}});
  for (const quantize::NotEqualized& layer : equalization.leftOut)
    json["left_out"].push_back({{"node", layer.node}, {"why", layer.why}});
  return json;
}

Json roundingJson(const quantize::AdaptiveRounding& rounding) {
  Json json = {{"runs", rounding.runs}, {"layers", Json::array()}, {"left_out", Json::array()}};
  for (const quantize::AdaptedLayer& layer : rounding.layers)
    json["layers"].push_back({{"node", layer.node},
                              {"error_nearest", layer.nearest},
                              {"error_adaptive", layer.adaptive}});
  for (const quantize::NotAdapted& layer : rounding.leftOut)
    json["left_out"].push_back({{"node", layer.node}, {"why", layer.why}});
  return json;
}

Json biasesJson(const quantize::BiasCorrection& biases) {
  Json json = {{"runs", biases.runs}, {"nodes", biases.nodes}, {"left_out", Json::array()}};
  for (const quantize::NotCorrected& layer : biases.leftOut)
    json["left_out"].push_back({{"node", layer.node}, {"why", layer.why}});
  return json;
}

PageTable improvementTable(const std::vector<Improvement>& improvements) {
  PageTable table{"improvements", {"option", "SNR dB", "without it", "what it changed"}, {}};
  for (const Improvement& improvement : improvements) {
    const auto& measured = improvement.measured;
    table.rows.push_back({improvement.option, measured ? fmt::format("{:.1f}", measured->with) : "",
                          measured ? fmt::format("{:.1f}", measured->without) : "",
                          improvement.did});
  }
  return table;
}

void writePage(const std::vector<Layer>& layers, const std::vector<Left>& left, const Json& report,
               const std::vector<Improvement>& improvements, const QuantizeFiles& files) {
  Page page;
  page.kind = "quantization";
  page.file = files.model;
  for (const char* key : {"output", "calibrator", "scheme", "samples", "integer_nodes", "snr_db",
                          "accuracy_float", "accuracy"})
    if (report.contains(key)) page.fact(key, report[key]);
  if (!improvements.empty()) page.tables.push_back(improvementTable(improvements));
  PageTable table{
      "layers", {"value", "node", "op", "type", "SNR dB", "saturated", "min", "max", "scale"}, {}};
  for (const Layer& layer : layers)
    table.rows.push_back({layer.value, layer.node, layer.op, elemName(layer.steps.elem),
                          snrText(layer), fmt::format("{:.3g} %", 100 * layer.saturated),
                          layer.seen ? Json(layer.seen->min) : Json(),
                          layer.seen ? Json(layer.seen->max) : Json(), layer.steps.scale});
  page.tables.push_back(std::move(table));
  PageTable floats{"float", {"node", "op", "elements", "macs", "why"}, {}};
  for (const Left& node : left)
    floats.rows.push_back({node.node, node.op, node.elements, node.macs, node.why});
  page.tables.push_back(std::move(floats));
  constexpr size_t kMostFigures = 64;
  for (size_t i = 0; i < layers.size() && i < kMostFigures; ++i)
    page.figures.push_back(
        {layers[i].value,
         fmt::format("{}: counts by magnitude of their logarithm; red is beyond the steps",
                     layers[i].op),
         barsOf(layers[i])});
  const std::string html = pageHtml(page);
  check(writeFile(files.html, html.data(), html.size()), kWorkFailed);
}

Json reportJson(const Quantizer& quantizer, const Quantized& made, const QuantizeReport& report,
                const QuantizeFiles& files, Console& console) {
  const Settings& settings = quantizer.settings();
  Json json = console.report("quantize");
  json["model"] = files.model;
  json["output"] = files.output;
  json["calibrator"] = quantize::calibratorName(settings.activations.calibrator);
  json["scheme"] = quantize::schemeName(settings.activations.scheme);
  json["samples"] = quantizer.profile().samples;
  json["integer_nodes"] = std::ranges::count(made.plan.quantized, true);
  json["nodes"] = made.plan.quantized.size();
  json["weight_bytes_before"] = made.rewritten.weightBytesBefore;
  json["weight_bytes"] = made.rewritten.weightBytes;
  json["profile_ms"] = report.profiledMs;
  json["total_ms"] = report.totalMs;
  if (report.comparison) {
    json["snr_db"] = quantize::worstSnr(quantizer.network(), *report.comparison);
    json["outputs"] = Json::array();
    for (const import::onnx_io::ValueInfo& output : quantizer.network().model.graph.outputs)
      if (const auto at = report.comparison->values.find(output.name);
          at != report.comparison->values.end())
        json["outputs"].push_back({{"name", output.name},
                                   {"snr_db", at->second.snr()},
                                   {"largest_difference", at->second.largest}});
    if (const auto all = static_cast<double>(report.comparison->labelled); all > 0) {
      json["accuracy_float"] = static_cast<double>(report.comparison->floatRight) / all;
      json["accuracy"] = static_cast<double>(report.comparison->quantizedRight) / all;
    }
  }
  json["improvements"] = Json::array();
  for (const Improvement& improvement : report.improvements)
    json["improvements"].push_back(improvementJson(improvement));
  if (report.equalization) json["equalized"] = equalizationJson(*report.equalization);
  if (made.rounding) json["adaptive_rounding"] = roundingJson(*made.rounding);
  if (made.biases) json["corrected_biases"] = biasesJson(*made.biases);
  json["notes"] = made.rewritten.notes;
  json["path"] = Json::array();
  for (const Move& move : report.path)
    json["path"].push_back(
        {{"node", move.node}, {"to", move.to}, {"snr_db", move.snr}, {"right", move.right}});
  return json;
}

void printTables(const std::vector<Layer>& layers, const std::vector<Left>& left,
                 const QuantizeReport& report, Console& console) {
  Table table({"value", "op", "type", "SNR dB", "saturated", "range"});
  for (size_t i = 0; i < layers.size() && i < kShownRows; ++i) {
    const Layer& layer = layers[i];
    table.add(
        {layer.value, layer.op, std::string(elemName(layer.steps.elem)), snrText(layer),
         fmt::format("{:.3g} %", 100 * layer.saturated),
         layer.seen ? fmt::format("{:.4g} to {:.4g}", layer.seen->min, layer.seen->max) : ""});
  }
  if (!table.empty()) console.printText(table.text());
  if (layers.size() > kShownRows)
    console.print("  and {} more values, less affected\n", layers.size() - kShownRows);
  Table path({"node", "becomes", "SNR dB", "right"});
  const bool isLabelled = report.comparison && report.comparison->labelled > 0;
  for (const Move& move : report.path)
    path.add({move.node.empty() ? "(start)" : move.node, move.to, fmt::format("{:.1f}", move.snr),
              isLabelled ? fmt::format("{:.2f} %", move.right) : ""});
  if (!path.empty()) console.printText(path.text());
  Table floats({"stays float", "op", "elements", "MACs", "why"});
  for (size_t i = 0; i < left.size() && i < kShownRows; ++i)
    floats.add({left[i].node, left[i].op, countText(left[i].elements), countText(left[i].macs),
                left[i].why});
  if (!floats.empty()) console.printText(floats.text());
  if (left.size() > kShownRows)
    console.print("  and {} more nodes that stay float\n", left.size() - kShownRows);
}

} // namespace

void writeReport(const Quantizer& quantizer, const Quantized& made, const QuantizeReport& report,
                 const QuantizeFiles& files, Console& console) {
  const std::vector<Layer> layers = layersOf(quantizer, made, report);
  const std::vector<Left> left = leftOf(quantizer, made);
  Json json = reportJson(quantizer, made, report, files, console);
  json["layers"] = Json::array();
  for (const Layer& layer : layers) json["layers"].push_back(layerJson(layer));
  json["float"] = Json::array();
  for (const Left& node : left)
    json["float"].push_back({{"node", node.node},
                             {"op", node.op},
                             {"elements", node.elements},
                             {"macs", node.macs},
                             {"why", node.why}});
  console.print("{}  {} of {} nodes in integers   weights {} → {}   {} samples, {}, {}   {}\n",
                console.bold(fileName(files.model)), std::ranges::count(made.plan.quantized, true),
                made.plan.quantized.size(), bytesText(made.rewritten.weightBytesBefore),
                bytesText(made.rewritten.weightBytes), quantizer.profile().samples,
                quantize::calibratorName(quantizer.settings().activations.calibrator),
                quantize::schemeName(quantizer.settings().activations.scheme),
                timeText(report.totalMs));
  if (report.comparison)
    console.print("signal to noise  {:.1f} dB at the worst output, over {} samples\n",
                  quantize::worstSnr(quantizer.network(), *report.comparison),
                  report.comparison->samples);
  if (json.contains("accuracy"))
    console.print("accuracy  {:.2f} %   float {:.2f} %\n", 100 * json["accuracy"].get<double>(),
                  100 * json["accuracy_float"].get<double>());
  for (const Improvement& improvement : report.improvements)
    console.print("{}\n", improvementText(improvement));
  for (const std::string& note : made.rewritten.notes) console.note("{}", note);
  printTables(layers, left, report, console);
  console.print("written {}\n", files.output);
  if (!files.html.empty()) writePage(layers, left, json, report.improvements, files);
  console.writeJson(json);
}

} // namespace candela::tool
