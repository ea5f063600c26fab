// candela plan: the memory of a compiled model, or offsets for a problem.
#include <algorithm>

#include "core/compiler/import/formats.h"
#include "core/support/file.h"
#include "tools/candela/commands/plan_problem.h"
#include "tools/candela/support/assumed.h"
#include "tools/candela/support/command.h"
#include "tools/candela/support/ir_file.h"
#include "tools/candela/support/planned.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Examples:
  candela plan mobilenet.onnx --backend cpu --dim N=1
  candela plan resnet50.onnx mobilenet.onnx --backend cpu --dim N=1 --json -
  candela plan resnet50.onnx --backend npu_sim --dim N=1 --assume-int8
  candela plan program.cdl -o planned.cdl
  candela plan problem.csv --capacity 1048576 -o solution.csv

A model is compiled up to where the backends would take it. For each partition and memory space:
the arena, the bytes that are live at once at most (no arena is smaller), the same in the order
before scheduling, and what lives at the peak. Then the bytes that its instructions move, beside
one instruction for each node of the model: logical bytes of what is read and written, each
once, without the padding of layouts; nothing for what stays within a group whose band fits in 1
MiB.

A .cdl file may hold a Program; what has no offsets yet is planned. A .csv file is a memory
problem in minimalloc's form, id,lower,upper,size[,alignment]: alive from lower to before upper.
Exit status 1: it does not fit into the capacity.)";

struct Arguments {
  std::vector<std::string> paths;
  ModelOptions model;
  ProblemOptions problem;
  size_t rows = 10;
};

double ratioOf(uint64_t a, uint64_t b) {
  return b ? static_cast<double>(a) / static_cast<double>(b) : 1;
}

std::string plural(uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void printSpace(const PlannedPart& part, const program::report::MemoryMap& map, size_t rows,
                Console& console) {
  const program::Program& program = part.program;
  std::string before;
  if (!part.wasPlaced)
    before = fmt::format("   before scheduling {}", part.emittedLiveBytes[map.space]);
  std::string capacity;
  if (map.capacityBytes) capacity = fmt::format("   capacity {}", map.capacityBytes);
  console.print("  space {}   arena {}   max live {}   ratio {:.3f}{}{}\n",
                program.spaces[map.space].name, map.arenaBytes, map.maxLiveBytes,
                ratioOf(map.arenaBytes, map.maxLiveBytes), before, capacity);
  if (map.peak == program::kNone) return;
  const std::vector<program::report::MemoryMap::Block> alive = map.at(map.peak);
  console.print("  peak at {}: {} live\n", program.instrName(map.peak),
                bytesText(map.live[map.peak]));
  Table table({"bytes", "offset", "life", "value", "of"});
  for (const program::report::MemoryMap::Block& block :
       std::span(alive).first(std::min(rows, alive.size())))
    table.add({fmt::format("{}", block.bytes), fmt::format("{}", block.offset),
               fmt::format("[{}..{}]{}", block.first + 1, block.last + 1,
                           block.takesOver && block.first == map.peak ? " in place" : ""),
               "%" + program.buffers[block.buffer].name, valueText(program, block.buffer)});
  console.printText(table.text(4));
  if (alive.size() > rows) console.print("    and {} more (--rows)\n", alive.size() - rows);
}

void printMoved(const char* what, const program::report::Traffic& moved, Console& console) {
  console.print("  {:<16}activations {} ({} read, {} written)   constants {}\n", what,
                moved.activations(), moved.read, moved.written, moved.constants);
}

void printPart(const PlannedPart& part, size_t index, size_t count, size_t rows, Console& console) {
  if (!part.backend.empty())
    console.print("partition {} of {} on {}", index + 1, count, part.backend);
  else
    console.print("program @{}", part.program.name);
  console.print("   {}, {}", plural(part.program.instrs.size(), "instruction"),
                plural(part.program.buffers.size(), "buffer"));
  if (part.wasPlaced)
    console.print("   placed already\n");
  else
    console.print("   planned in {} (order {}, offsets {})\n",
                  timeText(part.scheduleMs + part.placeMs), timeText(part.scheduleMs),
                  timeText(part.placeMs));
  for (const program::report::MemoryMap& map : part.maps)
    if (map.arenaBytes || part.maps.size() == 1) printSpace(part, map, rows, console);
  printMoved("bytes moved", part.traffic.total, console);
  if (!part.wasPlaced && part.emittedTraffic != part.traffic.total)
    printMoved("before planning", part.emittedTraffic, console);
  const std::vector<program::report::Passage> missed =
      program::report::missedFusions(part.program, part.traffic);
  if (missed.empty()) return;
  uint64_t sum = 0;
  for (const program::report::Passage& passage : missed) sum += passage.bytes;
  console.print("  values that one instruction writes for another alone, where either is "
                "elementwise or a copy: {} bytes\n",
                sum);
  Table table({"bytes", "written by", "read by"});
  for (const program::report::Passage& passage :
       std::span(missed).first(std::min(rows, missed.size())))
    table.add({fmt::format("{}", passage.bytes), part.program.instrName(passage.writer),
               part.program.instrName(passage.reader)});
  console.printText(table.text(4));
  if (missed.size() > rows) console.print("    and {} more (--rows)\n", missed.size() - rows);
}

Json movedJson(const program::report::Traffic& moved) {
  return {{"activations", moved.activations()},
          {"activations_read", moved.read},
          {"activations_written", moved.written},
          {"constants", moved.constants}};
}

Json instrJson(const program::Program& program, uint32_t index) {
  const program::Instr& instr = program.instrs[index];
  Json nodes = Json::array();
  for (const program::Origin& origin : instr.provenance) nodes.push_back(origin.node);
  return {
      {"index", index + 1}, {"kind", program::kindName(instr.kind)}, {"nodes", std::move(nodes)}};
}

Json spaceJson(const PlannedPart& part, const program::report::MemoryMap& map) {
  const program::Program& program = part.program;
  Json space{{"name", program.spaces[map.space].name},
             {"size", map.arenaBytes},
             {"max_live", map.maxLiveBytes},
             {"ratio", ratioOf(map.arenaBytes, map.maxLiveBytes)},
             {"capacity", map.capacityBytes ? Json(map.capacityBytes) : Json()},
             {"fits", map.capacityBytes == 0 || map.arenaBytes <= map.capacityBytes},
             {"optimal", map.arenaBytes == map.maxLiveBytes}};
  if (!part.wasPlaced) space["max_live_before_scheduling"] = part.emittedLiveBytes[map.space];
  if (map.peak == program::kNone) return space;
  Json values = Json::array();
  for (const program::report::MemoryMap::Block& block : map.at(map.peak))
    values.push_back({{"value", program.buffers[block.buffer].name},
                      {"nodes", program::report::nodesBehind(program, block.buffer)},
                      {"bytes", block.bytes},
                      {"offset", block.offset},
                      {"first", block.first + 1},
                      {"last", block.last + 1},
                      {"in_place", block.takesOver}});
  space["peak"] = instrJson(program, map.peak);
  space["peak"]["values"] = std::move(values);
  return space;
}

Json copiedJson(const program::passes::tile::CopiedBytes& copied) {
  return {{"weights", copied.weights}, {"tables", copied.tables},   {"loaded", copied.loaded},
          {"stored", copied.stored},   {"memory", copied.memory()}, {"inner", copied.inner},
          {"copies", copied.copies}};
}

/// Above 0: more than must move; below: something waits in local memory that a bound for each value
/// alone counts.
int64_t distanceOf(const program::passes::tile::MovedValue& moved) {
  return static_cast<int64_t>(moved.loadedBytes + moved.storedBytes) -
         static_cast<int64_t>(moved.leastBytes);
}

int64_t distanceOf(const program::passes::tile::TiledStep& step) {
  int64_t sum = 0;
  for (const program::passes::tile::MovedValue& moved : step.moved) sum += distanceOf(moved);
  return sum;
}

Json distanceJson(const program::passes::tile::TiledStep& step) {
  Json values = Json::array();
  for (const program::passes::tile::MovedValue& moved : step.moved)
    if (distanceOf(moved))
      values.push_back({{"value", moved.name},
                        {"loaded_bytes", moved.loadedBytes},
                        {"stored_bytes", moved.storedBytes},
                        {"least_bytes", moved.leastBytes}});
  return {{"bytes", distanceOf(step)}, {"values", std::move(values)}};
}

/// What each step says of itself, and the bytes of the Program that came of them all.
Json tilingJson(const PlannedPart& part) {
  Json steps = Json::array();
  for (const program::passes::tile::TiledStep& step : part.tiled->steps) {
    Json kinds = Json::array();
    for (const uint16_t kind : step.kinds) kinds.push_back(program::kindName(kind));
    steps.push_back({{"memory", step.memory},
                     {"nodes", step.nodes},
                     {"kinds", std::move(kinds)},
                     {"extents", step.extents},
                     {"tile", step.tile},
                     {"tiles", step.boxes},
                     {"buffers", step.buffers},
                     {"loaded_bytes", step.loadedBytes},
                     {"stored_bytes", step.storedBytes},
                     {"distance", distanceJson(step)},
                     {"local_bytes", step.localBytes},
                     {"kept", step.kept}});
  }
  return {{"copied_bytes", copiedJson(program::passes::tile::copiesOf(part.program).total)},
          {"bound_bytes", part.tiled->boundBytes},
          {"steps", std::move(steps)}};
}

void printTiling(const PlannedPart& part, size_t rows, Console& console) {
  const program::passes::tile::CopiedBytes copied =
      program::passes::tile::copiesOf(part.program).total;
  console.print("  copied from and to memory   {} bytes: weights {}, tables {}, values {} in and "
                "{} out; {} copies; bound {}\n",
                copied.memory(), copied.weights, copied.tables, copied.loaded, copied.stored,
                copied.copies, part.tiled->boundBytes);
  if (copied.inner) console.print("  copied between local memories   {} bytes\n", copied.inner);
  std::vector<const program::passes::tile::TiledStep*> steps;
  for (const program::passes::tile::TiledStep& step : part.tiled->steps) steps.push_back(&step);
  std::ranges::stable_sort(steps, std::greater(),
                           [](const auto* s) { return s->loadedBytes + s->storedBytes; });
  Table table({"bytes in", "out", "above bound", "tiles", "tile", "of", "kept", "by"});
  for (const program::passes::tile::TiledStep* step :
       std::span(steps).first(std::min(rows, steps.size())))
    table.add({fmt::format("{}", step->loadedBytes), fmt::format("{}", step->storedBytes),
               fmt::format("{}", distanceOf(*step)), fmt::format("{}", step->boxes),
               shapeText(step->tile), shapeText(step->extents),
               fmt::format("{}", fmt::join(step->kept, " ")),
               fmt::format("{} '{}' for {}", program::kindName(step->kinds[0]),
                           step->nodes.empty() ? "" : step->nodes[0], step->memory)});
  console.printText(table.text(4));
  if (steps.size() > rows) console.print("    and {} more (--rows)\n", steps.size() - rows);
}

size_t groupsInBands(const program::Program& program) {
  return static_cast<size_t>(std::ranges::count_if(
      program.groups, [](const program::Group& group) { return group.bands > 1; }));
}

Json partJson(const PlannedPart& part) {
  Json json{{"backend", part.backend.empty() ? Json() : Json(part.backend)},
            {"instructions", part.program.instrs.size()},
            {"buffers", part.program.buffers.size()},
            {"groups", part.program.groups.size()},
            {"groups_in_bands", groupsInBands(part.program)},
            {"time_ms", part.scheduleMs + part.placeMs},
            {"schedule_ms", part.scheduleMs},
            {"place_ms", part.placeMs}};
  for (const program::report::MemoryMap& map : part.maps)
    json["spaces"].push_back(spaceJson(part, map));
  json["moved_bytes"] = movedJson(part.traffic.total);
  if (part.tiled) json["tiling"] = tilingJson(part);
  if (!part.wasPlaced) json["moved_bytes_before_planning"] = movedJson(part.emittedTraffic);
  Json& missed = json["missed_fusions"] = Json::array();
  for (const program::report::Passage& passage :
       program::report::missedFusions(part.program, part.traffic))
    missed.push_back({{"bytes", passage.bytes},
                      {"value", part.program.buffers[passage.buffer].name},
                      {"writer", instrJson(part.program, passage.writer)},
                      {"reader", instrJson(part.program, passage.reader)}});
  Json& instrs = json["instruction_bytes"] = Json::array();
  for (uint32_t i = 0; i < part.program.instrs.size(); ++i) {
    instrs.push_back(instrJson(part.program, i));
    instrs.back()["moved_bytes"] = movedJson(part.traffic.instrs[i]);
  }
  return json;
}

void printOverflow(const PlannedModel& model, const driver::Overflow& overflow, Console& console) {
  const lowering::partition::Demand& demand = overflow.demand;
  console.print("does not fit on {}: it takes {}, there are {}\n", model.backends[overflow.target],
                demand.text(), overflow.capacity.text());
  console.print("  {} take turns, and each run streams {} bytes of constants\n",
                plural(overflow.parts, "partition"), overflow.streamedBytes);
}

Json overflowsJson(const PlannedModel& model) {
  Json list = Json::array();
  for (const driver::Overflow& overflow : model.overflows)
    list.push_back({{"backend", model.backends[overflow.target]},
                    {"constants", overflow.demand.constants},
                    {"values", overflow.demand.values},
                    {"arena", overflow.demand.arena},
                    {"capacity", overflow.capacity.bytes},
                    {"constant_capacity", overflow.capacity.constants.value_or(0)},
                    {"partitions", overflow.parts},
                    {"streamed_bytes", overflow.streamedBytes}});
  return list;
}

Json tooLargeJson(const PlannedModel& model) {
  Json list = Json::array();
  for (const LoweredModel::TooLarge& node : model.tooLarge)
    list.push_back({{"backend", node.backend}, {"value", node.node}, {"why", node.why}});
  return list;
}

/// What a device cannot hold, and what becomes of it.
void tellLimits(const PlannedModel& model, Console& console, Json& json) {
  for (const driver::Overflow& overflow : model.overflows) printOverflow(model, overflow, console);
  for (const LoweredModel::TooLarge& node : model.tooLarge)
    console.print("  '{}' does not go to {}: {}\n", node.node, node.backend, node.why);
  if (!model.overflows.empty()) json["overflows"] = overflowsJson(model);
  if (!model.tooLarge.empty()) json["too_large"] = tooLargeJson(model);
}

void planOne(const Arguments& arguments, ModelOptions options, Console& console, Json& report) {
  const PlannedModel model = planModel(options);
  console.print("{}\n", console.bold(fileName(model.path)));
  for (size_t i = 0; i < model.parts.size(); ++i)
    printPart(model.parts[i], i, model.parts.size(), arguments.rows, console);
  const program::report::Traffic moved = model.traffic();
  Json json{
      {"model", model.path}, {"moved_bytes", movedJson(moved)}, {"partitions", Json::array()}};
  tellLimits(model, console, json);
  if (model.perNode) {
    if (model.parts.size() > 1) printMoved("all partitions", moved, console);
    printMoved("one per node", *model.perNode, console);
    const double ratio = ratioOf(model.perNode->activations(), moved.activations());
    console.print(
        "  {:.3f} times fewer bytes of activations than one instruction per node of the model\n",
        ratio);
    json["moved_bytes_per_node"] = movedJson(*model.perNode);
    json["activations_ratio"] = ratio;
  }
  for (size_t i = 0; i < model.parts.size(); ++i)
    if (model.parts[i].tiled) printTiling(model.parts[i], arguments.rows, console);
  for (const PlannedPart& part : model.parts) json["partitions"].push_back(partJson(part));
  report["models"].push_back(std::move(json));
  if (arguments.problem.output.empty()) return;
  if (model.parts.size() != 1)
    fail(kBadInput, "-o: {} has {} partitions; `candela lower -o` writes them all", model.path,
         model.parts.size());
  const std::string text =
      printProgram(model.parts[0].program, resourceFolderOf(arguments.problem.output));
  check(writeFile(arguments.problem.output, text.data(), text.size()), kWorkFailed);
}

void planFiles(const Arguments& arguments, Console& console) {
  if (arguments.paths.size() > 1 && !arguments.problem.output.empty())
    fail(kBadInput, "-o: {} files to plan, but one to write", arguments.paths.size());
  Json report = console.report("plan");
  tellAssumed(arguments.model, "bytes", report, console);
  bool fits = true;
  for (const std::string& path : arguments.paths) {
    ModelOptions options = arguments.model;
    options.path = path;
    assumeInt8(options);
    if (endsWith(path, ".csv")) {
      Json one = Json::object();
      fits &= planProblem(path, arguments.problem, console, one);
      if (arguments.paths.size() == 1)
        report.update(one);
      else
        report["problems"].push_back(std::move(one));
      continue;
    }
    if (arguments.problem.capacity)
      fail(kBadInput,
           "--capacity {}: {} is no .csv file; a model's spaces have theirs from the backend",
           arguments.problem.capacity, path);
    planOne(arguments, std::move(options), console, report);
  }
  console.writeJson(report);
  console.finish();
  if (!fits) fail(kWorkFailed, "the plan does not fit into {} bytes", arguments.problem.capacity);
}

} // namespace

void addPlan(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand(
      "plan",
      "Show the memory plan of a model and the bytes that it moves, or solve a memory problem.");
  auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("FILE", arguments->paths,
                   "models: " + import::extensionsText({".cdl"}) + "; or problems: .csv")
      ->required()
      ->type_name("FILE...");
  arguments->model.addCompilingTo(command);
  arguments->model.addTilingTo(command);
  arguments->model.addAssumeInt8To(command);
  command
      ->add_option("--capacity", arguments->problem.capacity,
                   "of a .csv file: the bytes that there are")
      ->type_name("BYTES")
      ->check(CLI::PositiveNumber);
  command->add_option("--rows", arguments->rows, "so many rows of each table (default 10)")
      ->type_name("N");
  command
      ->add_option("-o,--output", arguments->problem.output,
                   "write the planned Program, or the problem with its offsets")
      ->type_name("FILE");
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, &console] { planFiles(*arguments, console); });
}

} // namespace candela::tool
