#include <algorithm>
#include <cstring>

#include "core/compiler/driver/fit.h"
#include "core/compiler/driver/shortage.h"
#include "core/compiler/graph/custom.h"
#include "core/compiler/graph/loop.h"
#include "core/compiler/graph/passes/passes.h"
#include "core/compiler/program/image.h"
#include "core/compiler/program/passes/schedule/schedule.h"

namespace candela::driver {
namespace {

using runtime::bundle::Bundle, runtime::bundle::NodePlacement;

constexpr int kMaxRounds = 8;

const cdl_image_t* asImage(const Bytes& bytes) {
  return reinterpret_cast<const cdl_image_t*>(bytes.data());
}

/// Names of the model's nodes that an instruction came from.
std::set<std::string> originsOf(const cdl_image_t* image, uint32_t instr) {
  std::set<std::string> names;
  for (uint32_t p = cdl_get_instr(image, instr)->provenance; p != 0;
       p = cdl_get_provenance(image, p)->next)
    names.insert(cdl_get_string(image, cdl_get_provenance(image, p)->node));
  return names;
}

NodePlacement::Class classOf(bool onHost, bool isNative) {
  if (onHost) return NodePlacement::Class::host;
  return isNative ? NodePlacement::Class::native : NodePlacement::Class::emulated;
}

/// A bundle names devices, so that each may be there once.
Status checkDistinct(std::span<const std::shared_ptr<runtime::plugin::Device>> devices) {
  std::set<std::string> seen;
  for (const auto& device : devices)
    if (!seen.insert(device->id()).second)
      return badArgument("backend {} is named twice", device->id());
  return Status::ok();
}

/// Of the arenas in all local memories together.
uint64_t localBytesOf(const program::Program& program) {
  uint64_t bytes = 0;
  for (uint32_t space = 0; space < program.spaces.size(); ++space)
    if (program.spaces[space].local) bytes += program.arenaBytes(space);
  return bytes;
}

struct Attempt {
  Bundle bundle;
  std::vector<std::unique_ptr<runtime::session::Runner>> runners;
};

/// The Program's image and payloads become the next partition of the bundle, with its runner.
/// Failure: Code::refused, with what *refusal says.
Status addPartition(Attempt& attempt, const program::Program& program,
                    const std::shared_ptr<runtime::plugin::Device>& device,
                    runtime::bundle::Holding holding = runtime::bundle::Holding::everything,
                    runtime::session::Refusal* refusal = nullptr) {
  runtime::bundle::BundlePartition& partition = attempt.bundle.partitions.emplace_back();
  partition.holding = holding;
  if (device) {
    partition.backend = device->id();
    partition.backendVersion = device->plugin().version();
    partition.options = device->options();
  }
  partition.image = program::toImage(program);
  for (uint32_t c = 0; c < program.constants.size(); ++c) {
    const Payload& payload = program.constants[c].payload;
    Hash hash; // the image's: to hash a payload is to read it all
    std::memcpy(hash.data(), cdl_get_constant(asImage(partition.image), c + 1)->hash, hash.size());
    const bool splat = payload.form() == Payload::Form::splat;
    partition.constants.push_back(splat ? runtime::bundle::kNoConstant
                                        : attempt.bundle.addConstant(hash, payload.bytes()));
  }
  CDL_ASSIGN(auto runner, runtime::session::makeRunner(attempt.bundle, partition, device, refusal));
  partition.streamedBytes = runner->streamedBytes();
  attempt.runners.push_back(std::move(runner));
  return Status::ok();
}

/// Values by the graph's names.
class ValueTable {
public:
  explicit ValueTable(Bundle& bundle) : bundle_(bundle) {}
  uint32_t of(const graph::Value& value) {
    const auto at = indices_.find(value.name);
    return at != indices_.end() ? at->second : indices_[value.name] = add(value, value.name);
  }

  /// Where a step writes it. A value that is there before any step, an input, is copied to a new
  /// one.
  uint32_t written(const graph::Value& value) {
    const uint32_t index = of(value);
    if (value.producer) {
      computed_.insert(index);
      return index;
    }
    return add(value, value.name);
  }
  /// A value of its own.
  uint32_t add(const graph::Value& value, const std::string& name) {
    bundle_.values.push_back({name, value.type.elem, value.type.shape()});
    return static_cast<uint32_t>(bundle_.values.size() - 1);
  }
  bool isComputed(uint32_t index) const { return computed_.count(index) != 0; }

private:
  Bundle& bundle_;
  std::map<std::string, uint32_t> indices_;
  std::set<uint32_t> computed_;
};

/// Outputs under the model's own names; those that are inputs, constants or named twice are copies.
Status bindOutputs(Bundle& bundle, ValueTable& table, const graph::Graph& graph) {
  std::set<uint32_t> taken(bundle.inputs.begin(), bundle.inputs.end());
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const graph::Value& value = *graph.outputs()[i];
    const uint32_t index = table.of(value);
    if (value.isConstant() && !table.isComputed(index)) {
      CDL_ASSIGN(const Tensor tensor, value.payload().materialize(value.type.shape()));
      bundle.values[index].constant =
          bundle.addConstant(sha256(tensor.bytes.data(), tensor.sizeBytes()), tensor.bytes);
      taken.insert(index);
    }
    if (taken.insert(index).second) {
      bundle.values[index].name = graph.outputNames()[i];
      bundle.outputs.push_back(index);
      continue;
    }
    const uint32_t copy = table.add(value, graph.outputNames()[i]);
    bundle.steps.push_back({runtime::bundle::StepKind::copy, 0, {index}, {copy}});
    bundle.outputs.push_back(copy);
  }
  return Status::ok();
}

/// Which part a backend refused, and the nodes behind the instruction that it names.
struct LateRefusal {
  size_t part = 0;
  std::set<std::string> origins;
  std::string why;
};

class Compiler {
public:
  Compiler(graph::Graph graph, const std::string& name,
           std::span<const std::shared_ptr<runtime::plugin::Device>> devices,
           const CompileOptions& options)
      : graph_(std::move(graph)), described_(describeModel(graph_, name)),
        devices_(devices.begin(), devices.end()), options_(options) {
    nativeOnly_.reserve(devices_.size());
    for (const auto& device : devices_) {
      if (device->compiles()) nativeOnly_.push_back(device->target().nativeOnly());
      targets_.push_back(device->compiles() ? &nativeOnly_.back() : &device->target());
    }
    targets_.push_back(&hostTarget());
    for (const auto& device : devices_) addDevice(device, options_);
  }

  Result<std::unique_ptr<runtime::session::Session>> compile() {
    // An IR file need not say where its nodes come from: they are their own origin, by which
    // instructions find them.
    for (graph::Graph* graph : graph::nestedGraphs(graph_))
      for (const auto& node : graph->nodes())
        if (node->provenance.empty() && node->kind != graph::OpKind::Constant)
          node->provenance = {node->userName()};
    if (options_.keepValues) described_.kept = keepValues(graph_);
    progress("optimize", 0);
    {
      const runtime::session::Span span("optimize");
      CDL_TRY(setPrecision(graph_, std::span(targets_).first(devices_.size()), options_.precision));
      CDL_TRY(graph::passes::optimize(graph_));
    }
    CDL_ASSIGN(const std::unique_ptr<Placer> placer, Placer::create(devices_, targets_, options_));
    lowering::partition::Barred barred;
    Shortages shortages(devices_);
    Status last;
    for (int round = 0; round < kMaxRounds; ++round) {
      progress("partition", static_cast<double>(round) / kMaxRounds);
      std::optional<runtime::session::Span> span(std::in_place, "partition and lower");
      CDL_ASSIGN(const FittedParts fitted,
                 lowerFitting(graph_, *placer, targets_, barred, options_));
      span.reset();
      std::optional<LateRefusal> refusal;
      std::optional<size_t> shortage;
      Result<Attempt> built = build(fitted.parts, refusal, shortage);
      if (shortage) {
        last = shortages.learn(fitted.parts, *shortage, built.status(), options_.memory);
        continue;
      }
      CDL_ASSIGN(Attempt attempt, std::move(built));
      if (refusal) {
        bar(barred, fitted.partitioning.parts[refusal->part], *refusal);
        last = failure(Code::refused,
                       "a backend still refuses instructions after {} rounds, the last one: {}",
                       kMaxRounds, refusal->why);
        continue;
      }
      place(attempt, fitted.partitioning, fitted.parts);
      attempt.bundle.policy = describePolicy(fitted.partitioning, placer->rates());
      CDL_TRY(runtime::bundle::verifyBundle(attempt.bundle));
      progress("done", 1);
      return runtime::session::Session::adopt(std::move(attempt.bundle),
                                              std::move(attempt.runners));
    }
    return last.context(described_.model);
  }

private:
  void progress(const char* stage, double fraction) const {
    if (options_.progress) options_.progress(stage, fraction);
  }

  /// Failure: out_of_memory with the part in *shortage, where the device of that has too little.
  Result<Attempt> build(const std::vector<LoweredPart>& parts, std::optional<LateRefusal>& refusal,
                        std::optional<size_t>& shortage) {
    Attempt attempt;
    Bundle& bundle = attempt.bundle = described_;
    ValueTable table(bundle);
    for (const graph::Value* input : graph_.inputs()) bundle.inputs.push_back(table.of(*input));
    for (size_t p = 0; p < parts.size(); ++p) {
      progress("compile", static_cast<double>(p) / parts.size());
      const LoweredPart& part = parts[p];
      if (!part.unfused.empty()) {
        refusal = LateRefusal{p, part.unfused, "not in the instruction of its product"};
        return attempt;
      }
      const bool onHost = part.target == devices_.size();
      const std::shared_ptr<runtime::plugin::Device> device =
          onHost ? nullptr : devices_[part.target];
      runtime::bundle::BundleStep step{onHost ? runtime::bundle::StepKind::soft
                                              : runtime::bundle::StepKind::run,
                                       static_cast<uint32_t>(p),
                                       {},
                                       {}};
      for (const graph::Value* value : part.graph.inputs()) step.inputs.push_back(table.of(*value));
      // By name: lowering may have put another value in the place of an output.
      for (const std::string& output : part.graph.outputNames()) {
        const graph::Value* value = graph_.find(output);
        CDL_CHECK(value, "part {} computes {}, which the graph does not have", p, output);
        step.outputs.push_back(table.written(*value));
      }
      if (!part.outputOrder.empty()) {
        const std::vector<uint32_t> values = step.outputs;
        std::ranges::transform(part.outputOrder, step.outputs.begin(),
                               [&](size_t output) { return values[output]; });
      }
      bundle.steps.push_back(std::move(step));
      bundle.arenaBytes = std::max(bundle.arenaBytes, part.arenaBytes);
      bundle.maxLiveBytes = std::max(bundle.maxLiveBytes, part.maxLiveBytes);
      bundle.localBytes = std::max(bundle.localBytes, localBytesOf(part.program));
      runtime::session::Refusal refused;
      Status status = addPartition(attempt, part.program, device, part.holding, &refused);
      const bool isLimited = device && hasMemoryOfItsOwn(*device);
      if (status && isLimited) status = attempt.runners.back()->reserve();
      if (status.code() == Code::out_of_memory && isLimited) shortage = p;
      if (status.code() == Code::refused) {
        const std::string who = device->name() + ": "; // who reads a placement knows
        refusal =
            LateRefusal{p, {}, refused.text.substr(refused.text.starts_with(who) ? who.size() : 0)};
        const cdl_image_t* image = asImage(bundle.partitions.back().image);
        if (refused.instr > 0 && refused.instr < image->instrs.count)
          refusal->origins = originsOf(image, refused.instr);
        return attempt;
      }
      CDL_TRY(status);
    }
    CDL_TRY(bindOutputs(bundle, table, graph_));
    return attempt;
  }

  /// The nodes behind the refused instruction, or the whole part when it names none, go elsewhere.
  static void bar(lowering::partition::Barred& barred, const lowering::partition::Part& part,
                  const LateRefusal& refusal) {
    // A constant goes wherever its users go.
    const auto isRefused = [&](const graph::Node* node) {
      return node->kind != graph::OpKind::Constant &&
             std::ranges::any_of(node->provenance,
                                 [&](const auto& name) { return refusal.origins.count(name) > 0; });
    };
    const bool any = std::ranges::any_of(part.nodes, isRefused);
    for (const graph::Node* node : part.nodes)
      if (!any || isRefused(node))
        barred.insert({{part.target, node->result()->name}, {refusal.why}});
  }

  /// What the runner will really do with the instructions that came from a node: names of kinds.
  struct Instrs {
    std::set<std::string_view> native, emulated;
    bool productsNative = true; ///< no MATMUL or CONV2D among the emulated ones
    bool hasProducts = false;
  };

  /// Where every node went.
  void place(Attempt& attempt, const lowering::partition::Partitioning& partitioning,
             const std::vector<LoweredPart>& parts) {
    for (size_t p = 0; p < parts.size(); ++p) {
      const lowering::partition::Part& part = partitioning.parts[p];
      const bool onHost = part.target == devices_.size();
      const cdl_image_t* image = asImage(attempt.bundle.partitions[p].image);
      std::map<std::string, std::vector<uint32_t>> byOrigin;
      for (uint32_t i = 1; i < image->instrs.count; ++i)
        for (const std::string& origin : originsOf(image, i)) byOrigin[origin].push_back(i);
      for (const graph::Node* node : part.nodes) {
        if (node->kind == graph::OpKind::Constant) continue;
        Instrs instrs;
        for (const std::string& origin : node->provenance)
          for (const uint32_t i : byOrigin[origin]) {
            const uint16_t kind = cdl_get_instr(image, i)->kind;
            const bool isNative = attempt.runners[p]->support()[i] == capabilities::Support::native;
            const bool isProduct = kind == CDL_KIND_MATMUL || kind == CDL_KIND_CONV2D;
            (isNative ? instrs.native : instrs.emulated).emplace(program::kindName(kind));
            instrs.hasProducts |= isProduct;
            instrs.productsNative &= isNative || !isProduct;
          }
        NodePlacement placement;
        placement.node = node->userName();
        placement.op =
            fmt::format("{} {}", graph::shownOp(*node), elemName(node->result()->type.elem));
        placement.on = onHost ? "host" : devices_[part.target]->id();
        placement.cls = classOf(onHost, instrs.emulated.empty());
        placement.why = onHost ? whyHost(partitioning, *node) : whyHere(instrs);
        if (const auto reason = partitioning.reasons.find(node);
            reason != partitioning.reasons.end())
          placement.why += "; " + reason->second;
        if (const std::string note = graph::passes::integerNote(*node); !note.empty())
          placement.why += "; " + note;
        placement.macs = macs(*node);
        const bool macsNative =
            instrs.hasProducts ? instrs.productsNative : instrs.emulated.empty();
        placement.nativeMacs = !onHost && macsNative ? placement.macs : 0;
        placement.products = productsOf(*node);
        placement.shape = shapeOf(*node);
        for (const graph::Value* value : node->operands())
          if (value)
            placement.bytesIn +=
                elemBytes(value->type.elem, static_cast<uint64_t>(value->type.count()));
        for (const graph::Value* value : node->results()) {
          const auto elements = static_cast<uint64_t>(value->type.count());
          placement.elements += elements;
          placement.bytesOut += elemBytes(value->type.elem, elements);
        }
        attempt.bundle.placement.push_back(std::move(placement));
      }
    }
  }

  std::string whyHost(const lowering::partition::Partitioning& partitioning,
                      const graph::Node& node) const {
    if (partitioning.reasons.contains(&node)) return "host executor";
    const auto found = partitioning.assessments.find(&node);
    std::string text;
    for (size_t t = 0;
         found != partitioning.assessments.end() && t < devices_.size() && t < found->second.size();
         ++t)
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", devices_[t]->id(),
                          found->second[t].detail);
    return text.empty() ? "host executor" : text;
  }

  static std::string whyHere(const Instrs& instrs) {
    if (instrs.native.empty() && instrs.emulated.empty()) return "native: no work";
    std::string text;
    if (!instrs.native.empty()) text = fmt::format("native {}", fmt::join(instrs.native, " "));
    if (!instrs.emulated.empty())
      text +=
          fmt::format("{}emulated {}", text.empty() ? "" : "; ", fmt::join(instrs.emulated, " "));
    return text;
  }

  graph::Graph graph_;
  Bundle described_;
  std::vector<std::shared_ptr<runtime::plugin::Device>> devices_;
  CompileOptions options_;
  std::vector<capabilities::Target> nativeOnly_;
  std::vector<const capabilities::Target*> targets_;
};

} // namespace

std::vector<runtime::bundle::KeptValue> keepValues(graph::Graph& graph) {
  std::vector<runtime::bundle::KeptValue> kept;
  for (const auto& node : graph.nodes()) {
    if (node->kind == graph::OpKind::Constant) continue;
    for (graph::Value* value : node->results()) {
      if (graph.isOutput(value)) continue;
      graph.addOutput(value, value->name);
      kept.push_back({value->name, node->userName()});
    }
  }
  return kept;
}

Result<std::unique_ptr<runtime::session::Session>>
compile(graph::Graph graph, const std::string& modelName,
        std::span<const std::shared_ptr<runtime::plugin::Device>> devices,
        const CompileOptions& options) {
  CDL_TRY(checkDistinct(devices));
  return Compiler(std::move(graph), modelName, devices, options).compile();
}

Result<std::unique_ptr<runtime::session::Session>>
compileProgram(program::Program program, const std::string& modelName,
               std::shared_ptr<runtime::plugin::Device> device) {
  CDL_TRY(program::verify(program));
  bool placed = true;
  for (const program::Buffer& buffer : program.buffers)
    placed &= buffer.role != program::Role::temp || buffer.offset != CDL_UNPLACED;
  Attempt made;
  Bundle& bundle = made.bundle;
  // it is in tiles
  const bool isLocal = std::ranges::any_of(program.spaces, &program::Space::local);
  if (device && !isLocal) CDL_TRY(tileFor(device->target(), program));
  if (!placed) {
    CDL_ASSIGN(const program::passes::schedule::PlacementReport report,
               program::passes::schedule::place(program));
    bundle.maxLiveBytes = report.maxLiveBytes;
  }
  bundle.arenaBytes = program.arenaBytes();
  bundle.localBytes = localBytesOf(program);
  bundle.model = modelName;
  bundle.modelNodes = program.instrs.size();
  runtime::bundle::BundleStep step{
      device ? runtime::bundle::StepKind::run : runtime::bundle::StepKind::soft, 0, {}, {}};
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    const program::Role role = program.buffers[b].role;
    const bool reads = role == program::Role::input || role == program::Role::inout;
    const bool writes = role == program::Role::output || role == program::Role::inout;
    for (const auto& [bound, list, ports] : {std::tuple(reads, &step.inputs, &bundle.inputs),
                                             std::tuple(writes, &step.outputs, &bundle.outputs)}) {
      if (!bound) continue;
      list->push_back(static_cast<uint32_t>(bundle.values.size()));
      ports->push_back(list->back());
      const auto [elem, dims] = program.contentType(b);
      bundle.values.push_back({program.buffers[b].name, elem, dims});
    }
  }
  bundle.steps.push_back(std::move(step));
  CDL_TRY(addPartition(made, program, device));
  for (uint32_t i = 0; i < program.instrs.size(); ++i) {
    const program::Instr& instr = program.instrs[i];
    bundle.placement.push_back(
        {instr.provenance.empty() ? fmt::format("[{}]", i + 1) : instr.provenance[0].node,
         std::string(program::kindName(instr.kind)), device ? device->id() : "host", "",
         classOf(!device, made.runners[0]->support()[i + 1] == capabilities::Support::native)});
  }
  CDL_TRY(runtime::bundle::verifyBundle(bundle));
  return runtime::session::Session::adopt(std::move(bundle), std::move(made.runners));
}

} // namespace candela::driver
