#include "core/compiler/driver/flow_model.h"

#include <algorithm>
#include <list>

#include "core/compiler/capabilities/refusal.h"
#include "core/reference/reference.h"
#include "core/runtime/bundle/flow_bundle.h"

namespace candela::driver {
namespace {

// What waits for data and does less than this runs on the host: compiling it for a device would
// cost more.
constexpr uint64_t kSmallWork = uint64_t(1) << 20;

struct Compilation {
  std::string model;
  std::vector<std::shared_ptr<runtime::plugin::Device>> devices;
  CompileOptions options;
  bool reference = false;
  int depth = 0; ///< of parts that wait within parts that waited
};

// Each level knows more than the one around it, so that no model of use comes near.
constexpr int kMostLevels = 128;

Result<std::vector<Tensor>> tensorsOf(std::span<const runtime::control_flow::Value> values) {
  std::vector<Tensor> tensors;
  for (const runtime::control_flow::Value& value : values) {
    if (!value.isTensor()) return badModel("an operand is {}, expected a tensor", value.text());
    tensors.push_back(value.tensor);
  }
  return tensors;
}

std::vector<runtime::control_flow::Value> valuesOf(std::vector<Tensor> tensors) {
  return {std::make_move_iterator(tensors.begin()), std::make_move_iterator(tensors.end())};
}

class SessionUnit : public runtime::control_flow::Unit {
public:
  explicit SessionUnit(std::unique_ptr<runtime::session::Session> session)
      : session_(std::move(session)) {}
  Result<std::vector<runtime::control_flow::Value>>
  run(std::span<const runtime::control_flow::Value> inputs) override {
    CDL_ASSIGN(const std::vector<Tensor> in, tensorsOf(inputs));
    CDL_ASSIGN(std::vector<Tensor> out, session_->run(in));
    return valuesOf(std::move(out));
  }
  Result<runtime::bundle::Bundle> stored() const { return session_->stored(); }

private:
  std::unique_ptr<runtime::session::Session> session_;
};

class ReferenceUnit : public runtime::control_flow::Unit {
public:
  explicit ReferenceUnit(graph::Graph graph) : graph_(std::move(graph)) {}
  Result<std::vector<runtime::control_flow::Value>>
  run(std::span<const runtime::control_flow::Value> inputs) override {
    CDL_ASSIGN(const std::vector<Tensor> in, tensorsOf(inputs));
    CDL_ASSIGN(std::vector<Tensor> out, reference::run(graph_, in));
    return valuesOf(std::move(out));
  }

private:
  graph::Graph graph_;
};

/// Elements that the Graph's nodes compute; more than any limit where it multiplies matrices.
uint64_t workOf(const graph::Graph& graph) {
  uint64_t work = 0;
  for (const auto& node : graph.nodes()) {
    if (node->kind == graph::OpKind::Constant) continue;
    if (macs(*node)) return UINT64_MAX;
    for (const graph::Value* result : node->results())
      work += static_cast<uint64_t>(result->type.count());
  }
  return work;
}

Result<std::unique_ptr<runtime::control_flow::Unit>>
compileUnit(graph::Graph graph, const Compilation& how, bool waited,
            runtime::bundle::Bundle* described) {
  if (how.reference) {
    for (const auto& node : graph.nodes()) {
      if (!described || node->kind == graph::OpKind::Constant) continue;
      ++described->modelNodes;
      described->placement.push_back({node->userName(), std::string(graph::opName(node->kind)),
                                      "reference", "the oracle",
                                      runtime::bundle::NodePlacement::Class::host, macs(*node), 0});
    }
    return std::unique_ptr<runtime::control_flow::Unit>(
        std::make_unique<ReferenceUnit>(std::move(graph)));
  }
  const bool small = waited && workOf(graph) < kSmallWork;
  CompileOptions options = how.options;
  std::span<const std::shared_ptr<runtime::plugin::Device>> devices = how.devices;
  if (small) { // nothing is to be chosen
    devices = {};
    options.policy = lowering::partition::Policy::preference;
    options.pinFile.clear();
  }
  CDL_ASSIGN(auto session, compile(std::move(graph), how.model, devices, options));
  if (described) {
    const runtime::bundle::Bundle& bundle = session->bundle();
    described->modelNodes += bundle.modelNodes;
    described->parameters += bundle.parameters;
    described->arenaBytes = std::max(described->arenaBytes, bundle.arenaBytes);
    described->maxLiveBytes = std::max(described->maxLiveBytes, bundle.maxLiveBytes);
    described->localBytes = std::max(described->localBytes, bundle.localBytes);
    described->placement.insert(described->placement.end(), bundle.placement.begin(),
                                bundle.placement.end());
    described->partitions.insert(described->partitions.end(), bundle.partitions.begin(),
                                 bundle.partitions.end());
  }
  return std::unique_ptr<runtime::control_flow::Unit>(
      std::make_unique<SessionUnit>(std::move(session)));
}

/// Types of all inputs, and the contents of frozen ones.
std::string signatureOf(const import::Section& section,
                        std::span<const runtime::control_flow::Value> inputs) {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].isSequence())
      for (const Tensor& item : *inputs[i].items) text += item.typeText() + ",";
    else
      text += inputs[i].text();
    if (section.inputs[i].frozen && inputs[i].isTensor())
      text.append(reinterpret_cast<const char*>(inputs[i].tensor.bytes.data()),
                  inputs[i].tensor.sizeBytes());
    text += ';';
  }
  return text;
}

class SectionUnit : public runtime::control_flow::Unit {
public:
  SectionUnit(std::shared_ptr<const import::Section> section, Compilation how)
      : section_(std::move(section)), how_(std::move(how)) {}

  Result<std::vector<runtime::control_flow::Value>>
  run(std::span<const runtime::control_flow::Value> inputs) override {
    CDL_ASSIGN(const std::shared_ptr<const Special> special, find(inputs));
    std::vector<runtime::control_flow::Value> in;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].isSequence())
        in.insert(in.end(), inputs[i].items->begin(), inputs[i].items->end());
      else if (inputs[i].isTensor() && !section_->inputs[i].frozen)
        in.push_back(inputs[i]);
    }
    return runtime::control_flow::run(special->flow, special->units, in);
  }

  const std::string& firstNode() const { return section_->items[0].name; }
  size_t made() const {
    const std::lock_guard lock(mutex_);
    return made_;
  }

private:
  struct Special {
    std::string signature;
    runtime::control_flow::Flow flow;
    std::vector<std::unique_ptr<runtime::control_flow::Unit>> units;
    uint64_t bytes = 0;
  };

  Result<std::shared_ptr<const Special>>
  find(std::span<const runtime::control_flow::Value> inputs) {
    std::string signature = signatureOf(*section_, inputs);
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::ranges::find_if(
          cache_, [&](const auto& special) { return special->signature == signature; });
      if (found != cache_.end()) {
        cache_.splice(cache_.begin(), cache_, found);
        return cache_.front();
      }
    }
    if (how_.depth >= kMostLevels)
      return failure(Code::unsupported,
                     "node '{}' still waits after {} levels of parts that waited", firstNode(),
                     how_.depth);
    Compilation inner = how_;
    ++inner.depth;
    CDL_ASSIGN(import::Script script, import::importSection(*section_, inputs));
    auto made = std::make_shared<Special>();
    made->signature = std::move(signature);
    made->flow = std::move(script.flow);
    runtime::bundle::Bundle seen;
    CDL_ASSIGN(made->units, compileUnits(std::move(script.units), inner, true, &seen));
    // Weights packed for it beside the model's own, and an arena.
    made->bytes = seen.parameters * 2 * sizeof(float) + seen.arenaBytes;
    const std::lock_guard lock(mutex_);
    for (const auto& other : cache_)
      if (other->signature == made->signature) return other; // another thread was as fast
    ++made_;
    cache_.push_front(made);
    bytes_ += made->bytes;
    while (cache_.size() > 1 &&
           (cache_.size() > kMostSpecializations || bytes_ > kMostSpecializedBytes)) {
      bytes_ -= cache_.back()->bytes;
      cache_.pop_back();
    }
    return std::shared_ptr<const Special>(made);
  }

public:
  static Result<std::vector<std::unique_ptr<runtime::control_flow::Unit>>>
  compileUnits(std::vector<import::Script::Unit> parts, const Compilation& how, bool waited,
               runtime::bundle::Bundle* described) {
    std::vector<std::unique_ptr<runtime::control_flow::Unit>> units;
    for (import::Script::Unit& part : parts) {
      if (auto* graph = std::get_if<graph::Graph>(&part)) {
        CDL_ASSIGN(auto unit, compileUnit(std::move(*graph), how, waited, described));
        units.push_back(std::move(unit));
        continue;
      }
      auto& section = std::get<std::shared_ptr<const import::Section>>(part);
      if (described)
        for (const import::Section::Item& item : section->items) {
          ++described->modelNodes;
          described->placement.push_back(
              {item.name, item.node.opType, "host",
               capabilities::refusalText(CDL_REASON_DYNAMIC_SHAPE,
                                         "waits for the run: " + section->why),
               runtime::bundle::NodePlacement::Class::host, 0, 0});
        }
      units.push_back(std::make_unique<SectionUnit>(std::move(section), how));
    }
    return units;
  }

private:
  std::shared_ptr<const import::Section> section_;
  Compilation how_;
  mutable std::mutex mutex_;
  size_t made_ = 0;
  uint64_t bytes_ = 0;                              ///< of the cache
  std::list<std::shared_ptr<const Special>> cache_; ///< the newest first
};

/// Whether the value may be the input of a model that this slot stands for.
bool fits(const runtime::control_flow::Value& value, const runtime::control_flow::Slot& slot) {
  using Kind = runtime::control_flow::Slot::Kind;
  if (slot.kind == Kind::sequence) return value.isSequence();
  if (slot.kind == Kind::optional) return true;
  return value.isTensor() && slot.accepts(value.tensor);
}

void listSteps(const runtime::control_flow::Block& block, runtime::bundle::Bundle& described) {
  for (const runtime::control_flow::Step& step : block.steps) {
    if (step.kind != runtime::control_flow::StepKind::unit) {
      const bool fails = step.kind == runtime::control_flow::StepKind::fail; // no node of the model
      if (!fails) ++described.modelNodes;
      described.placement.push_back(
          {step.node, runtime::control_flow::stepName(step.kind), "host",
           fails ? "a run that takes this branch ends: " + step.why : "a step of the run",
           runtime::bundle::NodePlacement::Class::host, 0, 0});
    }
    for (const runtime::control_flow::Block& inner : step.blocks) listSteps(inner, described);
  }
}

} // namespace

Result<std::unique_ptr<FlowModel>>
FlowModel::create(import::Script script, const std::string& modelName,
                  std::vector<std::shared_ptr<runtime::plugin::Device>> devices,
                  const CompileOptions& options, bool reference) {
  std::unique_ptr<FlowModel> model(new FlowModel());
  model->flow_ = std::move(script.flow);
  model->described_.model = modelName;
  listSteps(model->flow_.main, model->described_);
  Compilation how{modelName, std::move(devices), options, reference};
  how.options.isOneOfSeveral = true;
  CDL_ASSIGN(model->units_,
             SectionUnit::compileUnits(std::move(script.units), how, false, &model->described_));
  model->describePorts();
  return model;
}

void FlowModel::describePorts() {
  for (const auto& [slots, ports] : {std::pair(&flow_.inputs, &described_.inputs),
                                     std::pair(&flow_.outputs, &described_.outputs)})
    for (size_t i = 0; i < slots->size(); ++i) {
      const runtime::control_flow::Slot slot = (*slots)[i] == runtime::control_flow::kNoSlot
                                                   ? runtime::control_flow::Slot()
                                                   : flow_.slots[(*slots)[i]];
      ports->push_back(static_cast<uint32_t>(described_.values.size()));
      described_.values.push_back({ports == &described_.outputs ? flow_.outputNames[i] : slot.name,
                                   slot.elem,
                                   slot.isTyped() || slot.ranked ? slot.dims : kUnranked});
    }
}

Result<std::unique_ptr<FlowModel>> FlowModel::load(runtime::bundle::Bundle bundle) {
  std::unique_ptr<FlowModel> model(new FlowModel());
  const std::shared_ptr<const runtime::bundle::FlowBundle> stored = std::move(bundle.flow);
  model->flow_ = stored->flow;
  for (const runtime::bundle::Bundle& unit : stored->units) {
    CDL_ASSIGN(auto session, runtime::session::Session::create(unit));
    model->units_.push_back(std::make_unique<SessionUnit>(std::move(session)));
  }
  model->described_ = std::move(bundle);
  for (const runtime::bundle::Bundle& unit : stored->units)
    for (const runtime::bundle::BundlePartition& partition : unit.partitions)
      model->described_.partitions.push_back(partition);
  model->describePorts();
  return model;
}

Status FlowModel::save(const std::string& path) const {
  runtime::bundle::Bundle bundle = described_;
  bundle.values.clear();
  bundle.partitions.clear();
  bundle.inputs.clear();
  bundle.outputs.clear();
  auto stored = std::make_shared<runtime::bundle::FlowBundle>();
  stored->flow = flow_;
  for (const auto& unit : units_) {
    const auto* session = dynamic_cast<const SessionUnit*>(unit.get());
    if (!session)
      return failure(Code::unsupported,
                     "node '{}' is compiled for the shapes of each run, which no bundle can hold",
                     dynamic_cast<const SectionUnit&>(*unit).firstNode());
    CDL_ASSIGN(runtime::bundle::Bundle made, session->stored());
    stored->units.push_back(std::move(made));
  }
  bundle.flow = std::move(stored);
  return runtime::bundle::saveBundle(bundle, path);
}

size_t FlowModel::specializations() const {
  size_t made = 0;
  for (const auto& unit : units_)
    if (const auto* section = dynamic_cast<const SectionUnit*>(unit.get())) made += section->made();
  return made;
}

Result<std::vector<Tensor>> FlowModel::runTensors(std::span<const Tensor> inputs) const {
  CDL_ASSIGN(const std::vector<runtime::control_flow::Value> made,
             run(std::vector<runtime::control_flow::Value>(inputs.begin(), inputs.end())));
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < made.size(); ++i) {
    if (!made[i].isTensor())
      return failure(Code::unsupported, "output '{}' is {}, not a tensor", flow_.outputNames[i],
                     made[i].text());
    tensors.push_back(made[i].tensor);
  }
  return tensors;
}

Result<std::vector<runtime::control_flow::Value>>
FlowModel::run(std::span<const runtime::control_flow::Value> inputs) const {
  if (inputs.size() != flow_.inputs.size())
    return badArgument("{} inputs were given, the model has {}", inputs.size(),
                       flow_.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const runtime::control_flow::Slot& slot = flow_.slots[flow_.inputs[i]];
    if (!fits(inputs[i], slot))
      return badArgument("input '{}' is {} but {} was given", slot.name, slot.typeText(),
                         inputs[i].text());
  }
  auto made = runtime::control_flow::run(flow_, units_, inputs);
  if (!made) return made.status().context(described_.model);
  return made;
}

} // namespace candela::driver
