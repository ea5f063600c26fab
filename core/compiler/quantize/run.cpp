#include "core/compiler/quantize/run.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "core/support/threads.h"

namespace candela::quantize {
namespace {

import::ImportOptions importOptions(const RunConditions& options) {
  import::ImportOptions import;
  import.dims = options.dims;
  import.shapes = options.shapes;
  return import;
}

import::onnx_io::ValueInfo named(const std::string& name) {
  import::onnx_io::ValueInfo info;
  info.name = name;
  return info;
}

/// The rows' largest elements that are where the labels say.
int64_t rightOnes(const Tensor& scores, int64_t rows, const std::vector<int64_t>& labels,
                  int64_t first) {
  int64_t right = 0;
  const int64_t columns = scores.count() / std::max<int64_t>(1, rows);
  for (int64_t row = 0; row < rows; ++row) {
    const float* at = scores.as<float>() + row * columns;
    right += std::max_element(at, at + columns) - at == labels[static_cast<size_t>(first + row)];
  }
  return right;
}

} // namespace

void Nearness::add(const Tensor& want, const Tensor& got) {
  if (want.elem != Elem::f32_ || got.elem != Elem::f32_ || want.dims != got.dims) return;
  for (int64_t i = 0; i < want.count(); ++i) {
    const double a = static_cast<double>(want.as<float>()[i]);
    const double b = static_cast<double>(got.as<float>()[i]);
    if (!std::isfinite(a) || !std::isfinite(b)) {
      const bool isSame = a == b || (std::isnan(a) && std::isnan(b));
      if (!isSame) noise = largest = std::numeric_limits<double>::infinity();
      continue;
    }
    const double difference = b - a;
    signal += a * a;
    noise += difference * difference;
    largest = std::max(largest, std::abs(difference));
  }
}

double Nearness::snr() const {
  if (noise == 0) return kExactSnr;
  if (signal == 0) return 0;
  return std::clamp(10 * std::log10(signal / noise), -kExactSnr, kExactSnr);
}

Status setTypes(Network& network, const RunConditions& options) {
  import::onnx_io::Model all = network.model;
  std::set<std::string> seen;
  for (const import::onnx_io::ValueInfo& output : all.graph.outputs) seen.insert(output.name);
  for (const import::onnx_io::Node& node : all.graph.nodes)
    for (const std::string& output : node.outputs)
      if (!output.empty() && seen.insert(output).second) all.graph.outputs.push_back(named(output));
  CDL_ASSIGN(const graph::Graph graph, import::importModel(all, importOptions(options)));
  network.types.clear();
  for (const graph::Value* input : graph.inputs()) network.types.emplace(input->name, input->type);
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    if (!graph.outputs()[i]->isConstant())
      network.types.emplace(graph.outputNames()[i], graph.outputs()[i]->type);
  return Status::ok();
}

Result<Observed> Observed::compile(const import::onnx_io::Model& model,
                                   const std::vector<std::string>& values,
                                   const RunConditions& options) {
  import::onnx_io::Model observed = model;
  observed.graph.outputs.clear();
  for (const std::string& value : values) observed.graph.outputs.push_back(named(value));
  CDL_ASSIGN(graph::Graph graph, import::importModel(observed, importOptions(options)));
  Observed made;
  CDL_ASSIGN(made.session_, driver::compile(std::move(graph), model.path, options.devices));
  return made;
}

Result<Profile> profileModel(const Network& network, const std::set<std::string>& values,
                             const Samples& samples, const RunConditions& options, bool perChannel,
                             const OnProgress& progress) {
  Profile profile;
  profile.model = modelFingerprint(network);
  std::vector<std::string> inputs, names;
  const std::vector<Port> ports = network.ports();
  for (const std::string& value : values)
    (std::ranges::count(ports, value, &Port::name) ? inputs : names).push_back(value);
  std::optional<Observed> model;
  if (!names.empty()) {
    CDL_ASSIGN(model, Observed::compile(network.model, names, options));
  }
  std::vector<Observer*> observers;
  for (const std::string& name : names) observers.push_back(&profile.values[name]);
  const size_t threads = std::max(1u, std::min(16u, std::thread::hardware_concurrency()));
  for (int64_t run = 0; run < samples.runs(); ++run) {
    CDL_ASSIGN(const std::vector<Tensor> in, samples.run(run));
    std::vector<Tensor> out;
    if (model) {
      CDL_ASSIGN(out, model->run(in));
    }
    std::atomic<size_t> next = 0;
    onThreads(std::min(threads, std::max<size_t>(1, out.size())), [&](size_t) {
      for (size_t i = next++; i < out.size(); i = next++) observers[i]->add(out[i], perChannel);
    });
    for (size_t i = 0; i < ports.size(); ++i)
      if (std::ranges::count(inputs, ports[i].name))
        profile.values[ports[i].name].add(in[i], perChannel);
    profile.samples += static_cast<uint64_t>(samples.batch());
    if (progress) progress(static_cast<double>(run + 1) / static_cast<double>(samples.runs()));
  }
  return profile;
}

Result<Comparison> compareModels(const Network& network, const import::onnx_io::Model& quantized,
                                 const std::map<std::string, std::string>& names,
                                 const Samples& samples, int64_t mostRuns,
                                 const std::vector<int64_t>& labels, const RunConditions& options,
                                 const OnProgress& progress) {
  std::vector<std::string> wanted, got;
  for (const import::onnx_io::ValueInfo& output : network.model.graph.outputs) {
    wanted.push_back(output.name);
    got.push_back(output.name);
  }
  for (const auto& [value, other] : names) {
    if (!network.isReal(value) || network.producer(value) < 0) continue;
    if (std::ranges::count(wanted, value)) continue;
    wanted.push_back(value);
    got.push_back(other);
  }
  CDL_ASSIGN(const Observed a, Observed::compile(network.model, wanted, options));
  CDL_ASSIGN(const Observed b, Observed::compile(quantized, got, options));
  Comparison comparison;
  const int64_t runs = std::min(mostRuns, samples.runs());
  for (int64_t run = 0; run < runs; ++run) {
    CDL_ASSIGN(const std::vector<Tensor> in, samples.run(run));
    CDL_ASSIGN(const std::vector<Tensor> want, a.run(in));
    CDL_ASSIGN(const std::vector<Tensor> have, b.run(in));
    for (size_t i = 0; i < wanted.size(); ++i) comparison.values[wanted[i]].add(want[i], have[i]);
    if (!labels.empty() && want[0].elem == Elem::f32_) {
      const int64_t rows = samples.batch(), first = run * rows;
      comparison.floatRight += rightOnes(want[0], rows, labels, first);
      comparison.quantizedRight += rightOnes(have[0], rows, labels, first);
      comparison.labelled += rows;
    }
    comparison.samples += samples.batch();
    if (progress) progress(static_cast<double>(run + 1) / static_cast<double>(runs));
  }
  return comparison;
}

} // namespace candela::quantize
