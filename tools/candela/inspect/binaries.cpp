// Pages about what compiles and runs: programs, images, bundles, plugins.
#include <algorithm>

#include "core/compiler/capabilities/idle_rows.h"
#include "core/compiler/program/image.h"
#include "core/runtime/bundle/bundle.h"
#include "core/runtime/plugin/exports.h"
#include "core/runtime/plugin/plugin.h"
#include "core/support/file.h"
#include "tools/candela/inspect/inspect.h"
#include "tools/candela/support/ir_file.h"
#include "tools/candela/support/memory_figure.h"
#include "tools/candela/support/model.h"

namespace candela::tool {
namespace {

const char* roleName(program::Role role) {
  switch (role) {
  case program::Role::temp: return "temp";
  case program::Role::input: return "input";
  case program::Role::output: return "output";
  case program::Role::inout: return "inout";
  case program::Role::state: return "state";
  case program::Role::constant: return "constant";
  }
  return "?";
}

const char* supportName(uint8_t support) {
  if (support == CDL_SUPPORT_NATIVE) return "native";
  return support == CDL_SUPPORT_EMULATED ? "emulated" : "none";
}

/// The Program of a checked or unchecked image; its constants get zero payloads.
program::Program readImage(const Bytes& image, const std::string& path) {
  Result<program::Program> program = program::fromImage(image, nullptr);
  check(program.status().context(path));
  return std::move(program).value();
}

/// The map of a Program that may be without a plan yet.
void addPlanned(Page& page, program::Program program, const std::string& label) {
  try {
    ModelOptions options;
    options.path = page.file;
    addMemory(page, plannedProgram(std::move(program), options), label);
  } catch (const Failure& failure) {
    page.fact("no memory map", failure.what());
  }
}

} // namespace

void addProgram(Page& page, const program::Program& program) {
  uint64_t constantBytes = 0;
  for (const program::Constant& constant : program.constants)
    constantBytes += constant.payload.sizeBytes();
  page.fact("name", program.name);
  page.fact("instructions", program.instrs.size());
  page.fact("by kind", kindCounts(program));
  page.fact("engines", program.engines);
  page.fact("constants", program.constants.size());
  page.fact("constant bytes", constantBytes);
  page.fact("arena bytes", program.arenaBytes());
  PageTable spaces{"spaces", {"name", "capacity", "alignment", "mapped", "local"}, {}};
  for (const program::Space& space : program.spaces)
    spaces.rows.push_back(
        {space.name, space.capacityBytes, space.alignment, space.hostMapped, space.local});
  PageTable buffers{"buffers", {"name", "role", "bytes", "offset"}, {}};
  for (const program::Buffer& buffer : program.buffers)
    buffers.rows.push_back({buffer.name, roleName(buffer.role), buffer.bytes,
                            buffer.role == program::Role::temp && buffer.offset != CDL_UNPLACED
                                ? Json(buffer.offset)
                                : Json()});
  PageTable instrs{"instruction list", {"index", "instruction", "result", "from"}, {}};
  for (size_t i = 0; i < program.instrs.size(); ++i) {
    const program::Instr& instr = program.instrs[i];
    std::string name(program::kindName(instr.kind)), from, result;
    const std::string_view fn = program::fnName(instr.kind, instr.fn);
    if (!fn.empty()) name += fmt::format(".{}", fn);
    for (const program::Origin& origin : instr.provenance)
      from += (from.empty() ? "" : ", ") + origin.node;
    for (const program::View& view : instr.outputs)
      result +=
          fmt::format("{}{}:{}", result.empty() ? "" : ", ", program.buffers[view.buffer].name,
                      typeText(elemName(view.elem), view.dims));
    page.drawing.nodes.push_back(
        {fmt::format("instr {}", i + 1), fmt::format("[{}] {}", i + 1, name), result});
    for (const uint32_t wait : instr.waits)
      page.drawing.edges.push_back(
          {fmt::format("instr {}", wait + 1), fmt::format("instr {}", i + 1), ""});
    instrs.rows.push_back({i + 1, std::move(name), std::move(result), std::move(from)});
  }
  for (PageTable* table : {&spaces, &buffers, &instrs}) page.tables.push_back(std::move(*table));
}

void addModelMemory(Page& page, const ModelOptions& options) {
  try {
    const PlannedModel model = planModel(options);
    for (size_t i = 0; i < model.parts.size(); ++i)
      addMemory(page, model.parts[i],
                model.parts.size() > 1
                    ? fmt::format("partition {} on {}", i + 1, model.parts[i].backend)
                    : "");
    addPlacementFigure(page, model.placed);
    if (model.perNode)
      page.fact("activation bytes moved, one instruction per node", model.perNode->activations());
  } catch (const Failure& failure) {
    page.fact("no memory map", failure.what());
  }
}

Page inspectImage(const std::string& path) {
  const Bytes file = check(mapFile(path));
  Page page{"image of a program", path, {}, {}, {}};
  const program::Program program = readImage(Bytes::copyOf(file.data(), file.size()), path);
  const auto* header = reinterpret_cast<const cdl_image_t*>(file.data());
  page.fact("version", fmt::format("{}.{}", header->major, header->minor));
  page.fact("bytes", file.size());
  addProgram(page, program);
  addPlanned(page, program, "");
  return page;
}

namespace {

PageTable portsOf(const runtime::bundle::Bundle& bundle, const char* name,
                  const std::vector<uint32_t>& values) {
  PageTable table{name, {"name", "type"}, {}};
  for (const uint32_t v : values)
    table.rows.push_back(
        {bundle.values[v].name, typeText(elemName(bundle.values[v].elem), bundle.values[v].dims)});
  return table;
}

const char* stepName(runtime::bundle::StepKind kind) {
  if (kind == runtime::bundle::StepKind::copy) return "copy";
  return kind == runtime::bundle::StepKind::run ? "run" : "soft";
}

/// Draws the steps and what each waits for; returns the table of them.
PageTable addSteps(Page& page, const runtime::bundle::Bundle& bundle) {
  PageTable steps{"steps", {"index", "step", "partition", "inputs", "outputs"}, {}};
  for (size_t i = 0; i < bundle.steps.size(); ++i) {
    const runtime::bundle::BundleStep& step = bundle.steps[i];
    const bool copies = step.kind == runtime::bundle::StepKind::copy;
    std::vector<std::string> in, out;
    for (const uint32_t v : step.inputs) in.push_back(bundle.values[v].name);
    for (const uint32_t v : step.outputs) out.push_back(bundle.values[v].name);
    const std::string id = fmt::format("step {}", i), label = stepName(step.kind);
    page.drawing.nodes.push_back(
        {id, label, copies ? "" : bundle.partitions[step.partition].backend});
    for (size_t before = 0; before < i; ++before)
      for (const uint32_t v : bundle.steps[before].outputs)
        if (std::find(step.inputs.begin(), step.inputs.end(), v) != step.inputs.end())
          page.drawing.edges.push_back({fmt::format("step {}", before), id, bundle.values[v].name});
    steps.rows.push_back(
        {i, label, copies ? Json() : Json(step.partition), std::move(in), std::move(out)});
  }
  return steps;
}

} // namespace

Page inspectBundle(const std::string& path) {
  const runtime::bundle::Bundle bundle = check(runtime::bundle::loadBundle(path));
  Page page{"bundle", path, {}, {}, {}};
  uint64_t constantBytes = 0;
  for (const runtime::bundle::BundleConstant& constant : bundle.constants)
    constantBytes += constant.bytes.size();
  page.fact("model", bundle.model);
  page.fact("bytes", check(mapFile(path)).size());
  page.fact("model nodes", bundle.modelNodes);
  page.fact("parameters", bundle.parameters);
  page.fact("constants", bundle.constants.size());
  page.fact("constant bytes", constantBytes);
  page.fact("arena bytes", bundle.arenaBytes);
  page.fact("max live bytes", bundle.maxLiveBytes);
  page.tables.push_back(portsOf(bundle, "inputs", bundle.inputs));
  page.tables.push_back(portsOf(bundle, "outputs", bundle.outputs));
  PageTable partitions{
      "partitions",
      {"index", "backend", "version", "instructions", "image bytes", "executable bytes"},
      {}};
  for (size_t i = 0; i < bundle.partitions.size(); ++i) {
    const runtime::bundle::BundlePartition& partition = bundle.partitions[i];
    const auto* image = reinterpret_cast<const cdl_image_t*>(partition.image.data());
    partitions.rows.push_back({i, partition.backend.empty() ? "soft" : partition.backend,
                               partition.backendVersion, image->instrs.count - 1,
                               partition.image.size(), partition.executable.size()});
    const std::string label = bundle.partitions.size() > 1 ? fmt::format("partition {}", i) : "";
    addPlanned(page, readImage(partition.image, path), label);
  }
  PageTable steps = addSteps(page, bundle);
  PageTable placement{"placement", {"node", "op", "on", "class", "why", "macs"}, {}};
  constexpr const char* kClasses[] = {"native", "emulated", "host"};
  for (const runtime::bundle::NodePlacement& node : bundle.placement)
    placement.rows.push_back({node.node, node.op, node.on,
                              kClasses[static_cast<size_t>(node.cls) % 3], node.why, node.macs});
  for (PageTable* table : {&partitions, &steps, &placement})
    page.tables.push_back(std::move(*table));
  return page;
}

namespace {

/// What the device claims.
void addDevice(Page& page, const std::string& label, const std::string& name,
               const capabilities::Target& target) {
  std::vector<std::string> profiles;
#define CANDELA_PROFILE_NAME(name, id, ...)                                                        \
  if (target.claims(id)) profiles.push_back(#name);
  CDL_PROFILES(CANDELA_PROFILE_NAME)
#undef CANDELA_PROFILE_NAME
  page.fact(label + "name", name);
  page.fact(label + "profiles", profiles);
  PageTable rows{label + "rows", {"row", "instruction", "types", "support", "class", "limits"}, {}};
  constexpr const char* kClasses[] = {"", "dense", "broadcast", "row_strided", "affine"};
  size_t native = 0;
  for (size_t r = 0; r < target.rows().size(); ++r) {
    const cdl_row_t& row = target.rows()[r].row;
    native += row.support == CDL_SUPPORT_NATIVE;
    std::vector<std::string> types;
    for (unsigned e = 0; e < row.elem_count && e < 8; ++e)
      types.emplace_back(row.elems[e] ? elemName(static_cast<Elem>(row.elems[e])) : "any");
    std::string instruction(program::kindName(row.kind));
    const std::string_view fn = program::fnName(row.kind, row.fn);
    if (!fn.empty()) instruction += fmt::format(".{}", fn);
    rows.rows.push_back({r, std::move(instruction), std::move(types), supportName(row.support),
                         kClasses[row.operand_class % 5], target.rows()[r].atoms.size()});
  }
  page.fact(label + "native rows", fmt::format("{} of {}", native, target.rows().size()));
  std::vector<std::string> idle;
  for (const capabilities::IdleRow& row : capabilities::idleRows(target))
    idle.push_back(fmt::format("row {} ({}): {}", row.row, row.text, row.why));
  if (!idle.empty()) page.fact(label + "rows that never answer", idle);
  page.tables.push_back(std::move(rows));
}

} // namespace

Page inspectPlugin(const std::string& path, bool loads) {
  Page page{"plugin", path, {}, {}, {}};
  const std::vector<std::string> symbols = check(runtime::plugin::exportedSymbols(path));
  if (!std::ranges::count(symbols, CDL_BACKEND_QUERY_SYMBOL))
    fail(kBadInput, "{}: a shared library or program that is no plugin: it does not export {}",
         path, CDL_BACKEND_QUERY_SYMBOL);
  if (!loads) {
    page.fact("bytes", check(mapFile(path)).size());
    page.fact("exported symbols", symbols);
    page.fact("not loaded",
              "its code was not run; --load runs it and shows what it tells of itself");
    return page;
  }
  // A bare name would be looked up on the plugin path.
  const auto plugin =
      check(runtime::plugin::findPlugin(path.find('/') == std::string::npos ? "./" + path : path));
  const cdl_header_t& header = plugin->table().header;
  page.fact("name", plugin->name());
  page.fact("version", plugin->version());
  page.fact("description", plugin->description());
  page.fact("built against abi", fmt::format("{}.{}", header.major, header.minor));
  page.fact("oldest host abi",
            fmt::format("{}.{}", plugin->table().min_host_major, plugin->table().min_host_minor));
  page.fact("door", plugin->table().compile ? "compile and execute" : "run");
  page.fact("exported symbols", symbols);
  PageTable options{"options", {"name", "values", "default", "summary"}, {}};
  for (const cdl_option_schema_t& option : plugin->options())
    options.rows.push_back({option.name, option.values ? option.values : "",
                            option.default_value ? option.default_value : "",
                            option.summary ? option.summary : ""});
  page.tables.push_back(std::move(options));
  for (uint32_t d = 0; d < plugin->deviceCount(); ++d) {
    const std::string label = plugin->deviceCount() > 1 ? fmt::format("device {} ", d) : "device ";
    const auto device = plugin->open(d, {});
    if (!device) {
      page.fact(label + "error", device.status().message());
      continue;
    }
    addDevice(page, label, (*device)->name(), (*device)->target());
  }
  return page;
}

} // namespace candela::tool
