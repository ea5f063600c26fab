#include "tools/candela/package/model.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/compiler/driver/pipeline.h"
#include "core/compiler/graph/passes/row_bands.h"
#include "core/compiler/program/image.h"
#include "tools/candela/package/flash.h"
#include "tools/candela/package/map.h"
#include "tools/candela/package/names.h"
#include "tools/candela/package/web.h"
#include "tools/candela/support/ir_file.h"

namespace candela::tool {
namespace {

using runtime::bundle::Bundle, runtime::bundle::BundleStep;

/// The backend whose slot `emit` object code comes from.
constexpr const char* kEmitter = "cpu";

graph::Graph graphOf(const PackageRequest& request) {
  return readGraph(request.model.path, {request.model.dims, request.model.shapes});
}

/// An order and a placement. What takes less memory may cost time.
struct Plan {
  std::string name;
  bool runsBands = true;           ///< groups in bands, all of whose values are kept at once
  bool computesAgain = false;      ///< what is cheap and waits long for its reader
  std::optional<uint64_t> cutting; ///< the most bytes of a run of rows: graph::passes::cutToFit
};

/// Those that can keep the limits, the fastest first.
std::vector<Plan> plansFor(const PackageRequest& request) {
  std::vector<Plan> plans = {{"bands near", true, false, {}},
                             {"no bands", false, false, {}},
                             {"no bands, values computed again", false, true, {}}};
  if (!request.arenaLimit) return plans;
  // Beside the values of a run lie others, and what kernels need.
  std::set<std::string> known = {""};
  for (const uint64_t eighths : {8, 7, 6, 5, 4, 0}) {
    const uint64_t bytes = *request.arenaLimit / 8 * eighths;
    graph::Graph graph = graphOf(request);
    const std::string name = check(graph::passes::cutToFit(graph, bytes));
    if (known.insert(name).second) plans.push_back({name, false, false, bytes});
  }
  return plans;
}

std::unique_ptr<runtime::session::Session>
compiledFor(const PackageRequest& request, graph::Graph graph,
            const std::shared_ptr<runtime::plugin::Device>& device, const Plan& plan = {}) {
  driver::CompileOptions options;
  options.schedule.rematerialize = plan.computesAgain;
  options.states = request.model.states;
  Result<std::unique_ptr<runtime::session::Session>> session =
      driver::compile(std::move(graph), fileName(request.model.path), std::vector{device}, options);
  check(session.status().context(request.model.path));
  check((*session)->bindStates(request.model.states));
  return std::move(session).value();
}

std::shared_ptr<runtime::plugin::Device> openEmitter(const runtime::plugin::Options& options) {
  return check(check(runtime::plugin::findDevice(kEmitter)).open(options));
}

/// What stands between the model and one piece of object code, node by node.
void refuseHost(const std::string& path, const Bundle& bundle) {
  std::string list;
  for (const runtime::bundle::NodePlacement& node : bundle.placement)
    if (node.cls != runtime::bundle::NodePlacement::Class::native)
      list += fmt::format("\n  {} ({}): {}", node.node, node.op, node.why);
  if (!list.empty())
    fail(kBadInput, "{}: nodes of which {} emits no object code:{}", path, kEmitter, list);
}

/// The one step of a bundle that a package can hold. Throws Failure with what else there is.
const BundleStep& onlyStep(const std::string& path, const Bundle& bundle) {
  const auto isComputed = [&](uint32_t value) {
    return std::ranges::any_of(bundle.steps, [&](const BundleStep& step) {
      return step.kind == runtime::bundle::StepKind::run &&
             std::ranges::find(step.outputs, value) != step.outputs.end();
    });
  };
  for (const uint32_t output : bundle.outputs)
    if (!isComputed(output))
      fail(kBadInput,
           "{}: output '{}' is an input, a constant or another output as it is: object "
           "code computes each output once",
           path, bundle.values[output].name);
  if (bundle.steps.size() != 1)
    fail(kBadInput, "{}: {} parts, and object code is one", path, bundle.steps.size());
  return bundle.steps.front();
}

std::optional<PortQuantization> scalarsOf(const graph::Node& node) {
  const graph::Value *scale = node.operand(1), *zero = node.operand(2);
  if (!scale || !scale->isConstant() || elementCount(scale->type.shape()) != 1) return std::nullopt;
  const Result<Tensor> scales = scale->tensor();
  if (!scales || scales->elem != Elem::f32_) return std::nullopt;
  PortQuantization found;
  found.scale = static_cast<double>(*scales->as<float>());
  if (!zero) return found;
  if (!zero->isConstant()) return std::nullopt;
  const Result<Tensor> zeros = zero->tensor();
  if (!zeros || !isInteger(zeros->elem) || zeros->count() != 1) return std::nullopt;
  found.zero = static_cast<int64_t>(
      integerOf(zeros->elem, loadElement(zeros->elem, zeros->bytes.data(), 0)));
  return found;
}

/// What the nodes around a value say that its integers stand for.
std::optional<PortQuantization> quantizationOf(const graph::Value& value) {
  if (!isInteger(value.type.elem)) return std::nullopt;
  if (value.producer && value.producer->kind == graph::OpKind::Quantize)
    return scalarsOf(*value.producer);
  for (const graph::Node* user : value.users())
    if (user->kind == graph::OpKind::Dequantize && user->operand(0) == &value)
      return scalarsOf(*user);
  return std::nullopt;
}

using Quantizations = std::map<std::string, PortQuantization>;
Quantizations quantizationsOf(const graph::Graph& graph) {
  Quantizations found;
  for (const graph::Value* input : graph.inputs())
    if (const auto quantization = quantizationOf(*input)) found[input->name] = *quantization;
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    if (const auto quantization = quantizationOf(*graph.outputs()[i]))
      found[graph.outputNames()[i]] = *quantization;
  return found;
}

/// The buffers of an image that the caller binds, in the order of cdl_object.h.
std::vector<uint32_t> boundBuffers(const cdl_image_t* image, uint8_t role) {
  std::vector<uint32_t> found;
  for (uint32_t b = 1; b < image->buffers.count; ++b)
    if (const uint8_t has = cdl_get_buffer(image, b)->role; has == role || has == CDL_ROLE_INOUT)
      found.push_back(b);
  return found;
}

std::vector<PackagedPort> portsOf(const Bundle& bundle, const std::vector<uint32_t>& values,
                                  uint8_t role, const Quantizations& quantizations) {
  const auto* image = reinterpret_cast<const cdl_image_t*>(bundle.partitions[0].image.data());
  const std::vector<uint32_t> buffers = boundBuffers(image, role);
  CDL_CHECK(buffers.size() == values.size(), "{} buffers of {} values", buffers.size(),
            values.size());
  std::vector<PackagedPort> ports;
  FieldNames fields;
  for (size_t i = 0; i < values.size(); ++i) {
    const runtime::bundle::BundleValue& value = bundle.values[values[i]];
    PackagedPort port;
    port.name = value.name;
    port.field = fields.add(value.name);
    port.elem = value.elem;
    port.dims = value.dims;
    port.bytes = cdl_get_buffer(image, buffers[i])->bytes;
    port.alignment = cdl_object_alignment(image, buffers[i]);
    if (const auto known = quantizations.find(value.name); known != quantizations.end())
      port.quantization = known->second;
    for (const runtime::bundle::BundleState& state : bundle.states) {
      const uint32_t in = bundle.inputs[state.input], out = bundle.outputs[state.output];
      if (values[i] == in) port.partner = bundle.values[out].name;
      if (values[i] == out) port.partner = bundle.values[in].name;
    }
    port.isInPlace = cdl_get_buffer(image, buffers[i])->role == CDL_ROLE_INOUT;
    ports.push_back(std::move(port));
  }
  return ports;
}

/// The device that computes what a test expects: the instruction set of the package where this
/// machine has it.
std::shared_ptr<runtime::plugin::Device> openSampler(const std::string& isa) {
  const auto found = check(runtime::plugin::findDevice(kEmitter));
  Result<std::shared_ptr<runtime::plugin::Device>> same = found.open({{"isa", isa}});
  return same ? std::move(same).value() : check(found.open({}));
}

Tensor sampleInput(const PackageRequest& request, const PackagedPort& port, size_t index) {
  for (const std::string& text : request.inputs) {
    const Binding input = parseFileBinding("--input", text, {port.name});
    if (input.name != port.name) continue;
    const Tensor given = readTensorFile(input.value);
    if (given.elem != port.elem || given.dims != port.dims)
      fail(kBadInput, "{}: {}, and input '{}' is {}", input.value, given.typeText(), port.name,
           typeText(port.elem, port.dims));
    return given;
  }
  if (!port.partner.empty()) return check(Tensor::zeros(port.elem, port.dims));
  return check(randomTensor(port.elem, port.dims, request.seed + index));
}

void checkInputNames(const PackageRequest& request, const PackagedModel& model) {
  std::set<std::string> names;
  for (const PackagedPort& port : model.inputs) names.insert(port.name);
  for (const std::string& text : request.inputs)
    if (const Binding input = parseFileBinding("--input", text, names); !names.count(input.name))
      fail(kBadInput, "--input {}: the object code has no input '{}'", text, input.name);
}

} // namespace

static PackagedModel packagedBy(const PackageRequest& request, const Plan& plan) {
  const std::string& path = request.model.path;
  PackagedModel model;
  model.name = request.name;
  model.plan = plan.name;
  graph::Graph graph = graphOf(request);
  const Quantizations quantizations = quantizationsOf(graph);
  if (plan.cutting) check(graph::passes::cutToFit(graph, *plan.cutting).status().context(path));
  runtime::plugin::Options options = {{"target", request.target},
                                      {"target_cpu", request.cpu},
                                      {"target_features", request.features},
                                      {"target_name", request.name},
                                      {"target_pic", request.isPic ? "yes" : "no"}};
  if (!plan.runsBands) options["band_bytes"] = "0";
  const auto session = compiledFor(request, std::move(graph), openEmitter(options), plan);
  const Bundle& bundle = session->bundle();
  refuseHost(path, bundle);
  const BundleStep& step = onlyStep(path, bundle);
  model.nodes = bundle.modelNodes;
  model.parameters = bundle.parameters;
  model.inputs = portsOf(bundle, step.inputs, CDL_ROLE_INPUT, quantizations);
  model.outputs = portsOf(bundle, step.outputs, CDL_ROLE_OUTPUT, quantizations);
  Result<Bytes> emitted = session->emitted(step.partition);
  check(emitted.status().context(path), kWorkFailed);
  model.files = check(readObjects(*emitted), kWorkFailed);
  model.program =
      check(program::fromImage(bundle.partitions[step.partition].image, nullptr), kWorkFailed);
  if (!isForWeb(model)) model.codeBytes = check(loadedBytes(model.files.code), kWorkFailed);
  return model;
}

/// Throws Failure: no plan keeps the limits.
[[noreturn]] static void refuseLimits(const PackageRequest& request,
                                      const std::vector<PackagedModel>& tried) {
  const auto arenaOf = [](const PackagedModel& model) { return model.files.facts.arena_bytes; };
  const PackagedModel& near = *std::ranges::min_element(tried, {}, arenaOf);
  const PackagedModel& small = *std::ranges::min_element(tried, {}, &PackagedModel::flashBytes);
  const std::string& path = request.model.path;
  if (request.arenaLimit && arenaOf(near) > *request.arenaLimit)
    fail(kBadInput, "{}: --arena-limit {}: the least that does is {} ({}): {}", path,
         *request.arenaLimit, arenaOf(near), near.plan, peakText(near));
  if (request.flashLimit && small.flashBytes() > *request.flashLimit)
    fail(kBadInput,
         "{}: --flash-limit {}: the least that does is {}: {} B of code, {} B of weights", path,
         *request.flashLimit, small.flashBytes(), small.codeBytes, small.files.facts.weights_bytes);
  fail(kBadInput,
       "{}: --arena-limit {} and --flash-limit {}: one takes {} of arena and {} of flash", path,
       *request.arenaLimit, *request.flashLimit, arenaOf(near), near.flashBytes());
}

PackagedModel packageModel(const PackageRequest& request) {
  std::vector<PackagedModel> tried;
  for (const Plan& plan : plansFor(request)) {
    tried.push_back(packagedBy(request, plan));
    const PackagedModel& model = tried.back();
    if (request.flashLimit && isForWeb(model))
      fail(kBadInput, "--flash-limit {}: {} has no flash", *request.flashLimit, request.target);
    const bool fits =
        (!request.arenaLimit || model.files.facts.arena_bytes <= *request.arenaLimit) &&
        (!request.flashLimit || model.flashBytes() <= *request.flashLimit);
    if (fits) return std::move(tried.back());
  }
  refuseLimits(request, tried);
}

PackageSample sampleOf(const PackageRequest& request, const PackagedModel& model) {
  checkInputNames(request, model);
  const std::string isa = model.files.facts.isa;
  const auto device = openSampler(isa);
  PackageRequest plain = request;
  plain.model.states.clear(); // each an input and an output of its own
  const auto session = compiledFor(plain, graphOf(request), device);
  const Bundle& bundle = session->bundle();
  PackageSample sample;
  for (size_t i = 0; i < model.inputs.size(); ++i)
    sample.inputs.push_back(sampleInput(request, model.inputs[i], i));
  std::vector<Tensor> given;
  for (const uint32_t input : bundle.inputs) {
    const runtime::bundle::BundleValue& value = bundle.values[input];
    const auto isIt = [&](const PackagedPort& port) { return port.name == value.name; };
    const auto port = std::ranges::find_if(model.inputs, isIt);
    given.push_back(port != model.inputs.end() ? sample.inputs[port - model.inputs.begin()]
                                               : check(Tensor::zeros(value.elem, value.dims)));
  }
  std::vector<Tensor> computed = check(session->run(given), kWorkFailed);
  for (const PackagedPort& port : model.outputs)
    for (size_t o = 0; o < bundle.outputs.size(); ++o)
      if (bundle.values[bundle.outputs[o]].name == port.name) sample.outputs.push_back(computed[o]);
  sample.source = fmt::format("{} {} (isa={})", device->name(), device->plugin().version(),
                              device->options().count("isa") ? isa : "best");
  return sample;
}

} // namespace candela::tool
