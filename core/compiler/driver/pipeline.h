#pragma once

#include <functional>

#include "core/compiler/driver/precision.h"
#include "core/compiler/import/script.h"
#include "core/compiler/lowering/partition/capacity.h"
#include "core/compiler/program/passes/pack/pack.h"
#include "core/compiler/program/passes/schedule/schedule.h"
#include "core/compiler/program/passes/tile/tile.h"
#include "core/compiler/program/program.h"
#include "core/runtime/session/session.h"

/// The compilation driver: calls the stages in their order, and does nothing else.
namespace candela::driver {

/// What there is of a device's memory, and for what.
struct MemoryLimit {
  lowering::partition::Capacity capacity;
  bool holdsValues = true; ///< inputs and outputs too: it cannot use the host's memory
};

struct CompileOptions {
  bool toPrimitives = false; ///< lower every op to the 13 primitives
  bool stack = true;         ///< join what follows element by element: epilogues and expressions
  bool keepValues = false;   ///< every value becomes an output before anything is fused
  bool groups = true;        ///< mark groups for targets that run them band by band
  Precision precision = Precision::model;
  bool keepEmitted = false; ///< LoweredPart::emitted is there
  program::passes::schedule::ScheduleOptions schedule;
  /// per target, as bandBytesOf() says; beyond its end: 0, no groups
  std::vector<uint64_t> bandBytes;
  /// The local memories to tile every part for; else those that its target declares.
  std::optional<program::passes::tile::Machine> machine;
  /// Per target, as costsOf() says; null or beyond its end: tiles are chosen by declared costs.
  std::vector<std::shared_ptr<program::passes::tile::DeviceCosts>> deviceCosts;
  /// Per target, as packerOf() says; null or beyond its end: it packs no constants.
  std::vector<program::passes::pack::Packer> packers;
  /// By what nodes get their devices.
  lowering::partition::Policy policy = lowering::partition::Policy::preference;
  /// "INPUT=OUTPUT" (core/support/text/pairs.h): what a run leaves for the next one, which Programs
  /// then update in place where they can.
  std::vector<std::string> states;
  std::string pinFile; ///< lines PATTERN = DEVICE; empty: nothing is pinned
  /// The graph is one of several of a model: pins may be for the others.
  bool isOneOfSeveral = false;
  /// per target, as memoryLimitOf() says; beyond its end: without a limit
  std::vector<MemoryLimit> memory;
  /// Stage and 0..1 of it; null is allowed.
  std::function<void(const char* stage, double fraction)> progress;
};

/// What a device's option of this name says, its default included; nullopt: it has none, or that is
/// no number.
std::optional<uint64_t> declaredNumber(const runtime::plugin::Device& device,
                                       std::string_view option);

/// What the values inside of a group may hold at once on a device: its plugin's option
/// `band_bytes`, by which it says that it runs groups band by band. 0: it has no such option, or
/// that says so.
uint64_t bandBytesOf(const runtime::plugin::Device& device);

/// Adds what the stages have to know of the next target, a device.
void addDevice(const std::shared_ptr<runtime::plugin::Device>& device, CompileOptions& options);

/// What the device declares.
MemoryLimit memoryLimitOf(const runtime::plugin::Device& device);

/// soft's own target: the last one of every partitioning.
const capabilities::Target& hostTarget();

/// One partition on its way down: the lowered graph and its planned Program.
struct LoweredPart {
  size_t target = 0; ///< index into the targets
  graph::Graph graph;
  program::Program program;
  /// The outputs of the graph in the order in which the Program binds them; empty: in their own.
  std::vector<size_t> outputOrder;
  uint64_t arenaBytes = 0, maxLiveBytes = 0;
  std::optional<program::passes::tile::Machine> machine; ///< whose local memories it is tiled for
  std::optional<program::Program> emitted; ///< the Program before it had an order and offsets
  /// Names of nodes whose steps counted on being in a product's instruction and are not; no Program
  /// is made then.
  std::set<std::string> unfused;
  /// Of a target that options.memory tells of.
  lowering::partition::Demand demand;
  runtime::bundle::Holding holding = runtime::bundle::Holding::everything;
};

/// A part of an optimized graph through extract, lower, layout, fuse, emit, schedule and place.
Result<LoweredPart> lowerPart(const lowering::partition::Extractor& extractor,
                              const lowering::partition::Part& part,
                              const capabilities::Target& target, const CompileOptions& options);

/// The whole way: optimize, partition, lower, compile on the devices (≤ 8 rounds of late refusals
/// and of memory that was less than declared),
/// bundle, session. Devices come in order of preference; what none of them takes runs on the host.
Result<std::unique_ptr<runtime::session::Session>>
compile(graph::Graph graph, const std::string& modelName,
        std::span<const std::shared_ptr<runtime::plugin::Device>> devices,
        const CompileOptions& options = {});

/// Cuts a Program into tiles for the local memories that the target declares; nothing happens where
/// it declares none.
/// Failures: those of program::passes::tile::tile.
Status tileFor(const capabilities::Target& target, program::Program& program);

/// A Program as it stands, planned when it is not: on the device, or on the host without one.
Result<std::unique_ptr<runtime::session::Session>>
compileProgram(program::Program program, const std::string& modelName,
               std::shared_ptr<runtime::plugin::Device> device);

using Ir = std::variant<graph::Graph, program::Program>;
/// Parses one graph or one program, as its first word says, and verifies it. `file` names it in
/// messages; resources are looked up beside it.
Result<Ir> parseIr(std::string_view text, const std::string& file, Diagnostics& diagnostics);

/// A model file: .cdl with one graph or one program, or any of import::formats(), by content. The
/// options apply to the latter.
using Loaded = std::variant<graph::Graph, program::Program, import::Script>;
Result<Loaded> loadAny(const std::string& path, const import::ImportOptions& options);
/// The same of a file's content; `path` names it, and files beside it.
Result<Loaded> loadContent(const Bytes& content, const std::string& path,
                           const import::ImportOptions& options);

/// A bundle that names the model and counts its nodes and parameters, with nothing to run.
runtime::bundle::Bundle describeModel(const graph::Graph& graph, const std::string& name);
/// Makes every value an output; returns those that were none.
std::vector<runtime::bundle::KeptValue> keepValues(graph::Graph& graph);

/// Multiply-accumulates of one node; 0 for what does none.
uint64_t macs(const graph::Node& node);
/// Of a convolution or a product of matrices; of attention and transposed convolutions, which are
/// more than that, none.
runtime::bundle::Products productsOf(const graph::Node& node);
/// What a person calls the shape of a node. Of a convolution its window, channels in and out, and
/// places: "3x3, 64->128, 56x56, stride 2", with groups and batch where there are several; of a
/// product "128x768 by 768x3072", behind "12 of" where there are as many; of others the extents of
/// the first result, "1x64x56x56".
std::string shapeOf(const graph::Node& node);

} // namespace candela::driver
