#include "core/compiler/driver/report.h"

#include <cmath>

#include "core/compiler/capabilities/idle_rows.h"
#include "core/compiler/driver/pipeline.h"
#include "core/compiler/driver/steady_json.h"
#include "core/compiler/lowering/emit/emit.h"
#include "core/support/text/shown.h"

namespace candela::driver {
namespace {

using Json = SteadyJson;

/// By NodePlacement::Class.
constexpr const char* kClassNames[] = {"native", "emulated", "host"};
/// By runtime::bundle::Holding.
constexpr const char* kHoldingNames[] = {"everything", "constants", "nothing"};

/// Bytes that cross from one partition to another, and how many values that are.
Json transfers(const runtime::bundle::Bundle& bundle) {
  std::map<uint32_t, uint32_t> producer;
  std::set<std::pair<uint32_t, uint32_t>> seen;
  uint64_t count = 0, bytes = 0;
  for (const runtime::bundle::BundleStep& step : bundle.steps) {
    if (step.kind == runtime::bundle::StepKind::copy) continue;
    for (uint32_t v : step.inputs)
      if (producer.count(v) && seen.insert({v, step.partition}).second) {
        ++count;
        bytes += bundle.values[v].sizeBytes();
      }
    for (uint32_t v : step.outputs) producer[v] = step.partition;
  }
  return {{"count", count}, {"bytes", bytes}};
}

/// Instructions that only bring a value into another layout.
uint64_t layoutConversions(const cdl_image_t* image) {
  uint64_t count = 0;
  for (uint32_t i = 1; i < image->instrs.count; ++i)
    if (const uint32_t origin = cdl_get_instr(image, i)->provenance)
      count += cdl_get_string(image, cdl_get_provenance(image, origin)->op) ==
               lowering::emit::kLayoutOrigin;
  return count;
}

/// What it holds only where it takes turns with others of its device.
Json describePartition(const runtime::bundle::BundlePartition& partition) {
  const auto* image = reinterpret_cast<const cdl_image_t*>(partition.image.data());
  Json json = {{"backend", partition.backend.empty() ? "soft" : partition.backend},
               {"instructions", image->instrs.count - 1},
               {"image_bytes", partition.image.size()},
               {"executable_bytes", partition.executable.size()}};
  if (partition.holding == runtime::bundle::Holding::everything) return json;
  json["holds"] = kHoldingNames[static_cast<size_t>(partition.holding)];
  json["streamed_bytes"] = partition.streamedBytes;
  return json;
}

Json describeTarget(const capabilities::Target& target) {
  Json profiles = Json::array(), spaces = Json::array();
#define CANDELA_PROFILE(name, id, mask)                                                            \
  if (target.claims(id)) profiles.push_back(#name);
  CDL_PROFILES(CANDELA_PROFILE)
#undef CANDELA_PROFILE
  uint64_t native = 0, emulated = 0;
  for (const capabilities::Target::Row& row : target.rows()) {
    native += row.row.support == CDL_SUPPORT_NATIVE;
    emulated += row.row.support == CDL_SUPPORT_EMULATED;
  }
  for (const capabilities::Target::SpaceInfo& space : target.spaces())
    spaces.push_back({{"name", space.name},
                      {"capacity_bytes", space.space.capacity_bytes},
                      {"alignment", space.space.alignment},
                      {"host_mapped", (space.space.flags & CDL_SPACE_HOST_MAPPED) != 0},
                      {"used", spaces.empty() || (space.space.flags &
                                                  (CDL_SPACE_LOCAL | CDL_SPACE_CONSTANTS)) != 0}});
  Json idle = Json::array();
  for (const capabilities::IdleRow& row : capabilities::idleRows(target))
    idle.push_back({{"row", row.row}, {"text", row.text}, {"why", row.why}});
  return {{"profiles", profiles},
          {"rows", {{"native", native}, {"emulated", emulated}, {"idle", std::move(idle)}}},
          {"spaces", spaces}};
}

Json describePlugin(const std::string& nameOrPath) {
  Json entry = {{"name", nameOrPath}};
  const auto plugin = runtime::plugin::findPlugin(nameOrPath);
  if (!plugin) {
    entry["error"] = plugin.status().message();
    return entry;
  }
  entry["name"] = (*plugin)->name();
  entry["version"] = (*plugin)->version();
  entry["origin"] = (*plugin)->origin();
  entry["description"] = (*plugin)->description();
  const cdl_header_t& header = (*plugin)->table().header;
  entry["abi"] = fmt::format("{}.{}", header.major, header.minor);
  entry["door"] = (*plugin)->table().compile ? "compile" : "run";
  entry["options"] = Json::array();
  for (const cdl_option_schema_t& option : (*plugin)->options())
    entry["options"].push_back({{"name", option.name},
                                {"summary", option.summary ? option.summary : ""},
                                {"values", option.values ? option.values : "string"},
                                {"default", option.default_value ? option.default_value : ""}});
  entry["devices"] = Json::array();
  for (uint32_t d = 0; d < (*plugin)->deviceCount(); ++d) {
    const auto device = (*plugin)->open(d, {});
    if (!device) {
      entry["devices"].push_back({{"error", device.status().message()}});
      continue;
    }
    Json description = {{"name", (*device)->name()}};
    description.update(describeTarget((*device)->target()));
    entry["devices"].push_back(description);
  }
  return entry;
}

/// Nodes and multiply-accumulates by device, and their shares of all.
Json byDevice(const runtime::bundle::Bundle& bundle) {
  struct Sum {
    uint64_t nodes = 0, macs = 0;
  };
  std::map<std::string, Sum> sums;
  Sum all;
  for (const runtime::bundle::NodePlacement& node : bundle.placement)
    for (Sum* sum : {&sums[node.on], &all}) {
      ++sum->nodes;
      sum->macs += node.macs;
    }
  const auto share = [](uint64_t part, uint64_t whole) {
    return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
  };
  Json devices = Json::array();
  for (const auto& [on, sum] : sums)
    devices.push_back({{"on", on},
                       {"nodes", sum.nodes},
                       {"nodes_share", share(sum.nodes, all.nodes)},
                       {"macs", sum.macs},
                       {"macs_share", share(sum.macs, all.macs)}});
  return devices;
}

/// JSON has no infinity: null is no limit.
Json finite(double number) { return std::isfinite(number) ? Json(number) : Json(); }

Json describePolicy(const runtime::bundle::Bundle& bundle) {
  const runtime::bundle::PlacementPolicy& policy = *bundle.policy;
  Json rates = Json::array();
  for (const runtime::bundle::PlacementPolicy::Rates& at : policy.rates)
    rates.push_back({{"on", at.name},
                     {"macs_per_second", at.macsPerSecond},
                     {"elements_per_second", at.elementsPerSecond},
                     {"bytes_per_second", at.bytesPerSecond},
                     {"node_seconds", at.nodeSeconds},
                     {"compute_source", at.computeSource},
                     {"link_bytes_per_second", finite(at.linkBytesPerSecond)},
                     {"link_seconds", at.linkSeconds},
                     {"part_seconds", at.partSeconds},
                     {"link_source", at.linkSource}});
  Json seconds = {{"compute", policy.computeSeconds},
                  {"transfer", policy.transferSeconds},
                  {"starts", policy.startSeconds},
                  {"total", policy.computeSeconds + policy.transferSeconds + policy.startSeconds}};
  if (policy.preferenceSeconds > 0) seconds["by_preference"] = policy.preferenceSeconds;
  Json described = {{"policy", policy.name},
                    {"least", policy.isLeast},
                    {"seconds", std::move(seconds)},
                    {"devices", byDevice(bundle)},
                    {"rates", std::move(rates)}};
  if (!policy.stageSeconds.empty()) described["stage_seconds"] = policy.stageSeconds;
  return described;
}

} // namespace

std::string placementJson(const runtime::bundle::Bundle& bundle) {
  Json nodes = {{"native", 0}, {"emulated", 0}, {"host", 0}}, macsBy = nodes,
       detail = Json::array();
  std::set<std::string> backends;
  for (const runtime::bundle::NodePlacement& node : bundle.placement) {
    const char* cls = kClassNames[static_cast<size_t>(node.cls)];
    nodes[cls] = nodes[cls].get<uint64_t>() + 1;
    macsBy["native"] = macsBy["native"].get<uint64_t>() + node.nativeMacs;
    const char* rest =
        node.cls == runtime::bundle::NodePlacement::Class::host ? "host" : "emulated";
    macsBy[rest] = macsBy[rest].get<uint64_t>() + node.macs - std::min(node.macs, node.nativeMacs);
    Json& shown = detail.emplace_back(Json{{"node", node.node},
                                           {"op", node.op},
                                           {"on", node.on},
                                           {"class", cls},
                                           {"why", node.why},
                                           {"macs", node.macs},
                                           {"native_macs", node.nativeMacs},
                                           {"bytes_in", node.bytesIn},
                                           {"bytes_out", node.bytesOut},
                                           {"elements", node.elements}});
    if (!node.shape.empty()) shown["shape"] = node.shape;
    if (const runtime::bundle::Products& p = node.products; p.count)
      shown["products"] = {
          {"count", p.count}, {"rows", p.rows}, {"terms", p.terms}, {"columns", p.columns}};
  }
  Json partitions = Json::array();
  uint64_t conversions = 0, streamedBytes = 0;
  for (const runtime::bundle::BundlePartition& partition : bundle.partitions) {
    backends.insert(partition.backend.empty() ? "soft" : partition.backend);
    const auto* image = reinterpret_cast<const cdl_image_t*>(partition.image.data());
    conversions += layoutConversions(image);
    streamedBytes += partition.streamedBytes;
    partitions.push_back(describePartition(partition));
  }
  Json report = {{"schema", "candela.placement/1"},
                 {"model", bundle.model},
                 {"backends", backends},
                 {"nodes", bundle.modelNodes},
                 {"parameters", bundle.parameters},
                 {"arena_bytes", bundle.arenaBytes},
                 {"max_live_bytes", bundle.maxLiveBytes},
                 {"placement", nodes},
                 {"macs", macsBy},
                 {"transfers", transfers(bundle)},
                 {"layout_conversions", conversions},
                 {"partitions", partitions},
                 {"nodes_detail", detail}};
  if (bundle.policy) report["partition"] = describePolicy(bundle);
  if (bundle.localBytes) report["local_bytes"] = bundle.localBytes;
  if (streamedBytes) report["streamed_bytes"] = streamedBytes;
  for (const runtime::bundle::KeptValue& value : bundle.kept)
    report["values"].push_back({{"name", value.name}, {"node", value.node}});
  for (const runtime::bundle::BundleState& state : bundle.states)
    report["states"].push_back({{"input", bundle.values[bundle.inputs[state.input]].name},
                                {"output", bundle.values[bundle.outputs[state.output]].name}});
  return text::shownJson(report.dump(2, ' ', false, Json::error_handler_t::replace));
}

std::string backendsJson(const std::vector<std::string>& paths) {
  Json list = Json::array();
  list.push_back({{"name", "reference"},
                  {"description", "the oracle: f64 and 128-bit integers, slow"},
                  {"devices", Json::array()}});
  Json soft = {
      {"name", "soft"}, {"description", "the portable host executor"}, {"devices", Json::array()}};
  Json device = {{"name", "host"}};
  device.update(describeTarget(hostTarget()));
  soft["devices"].push_back(device);
  list.push_back(soft);
  for (const std::string& name : runtime::plugin::listPlugins())
    list.push_back(describePlugin(name));
  for (const std::string& path : paths) list.push_back(describePlugin(path));
  const Json report = {{"schema", "candela.backends/1"}, {"backends", list}};
  return text::shownJson(report.dump(2, ' ', false, Json::error_handler_t::replace));
}

} // namespace candela::driver
