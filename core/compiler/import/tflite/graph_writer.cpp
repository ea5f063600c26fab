#include "core/compiler/import/tflite/graph_writer.h"

#include "core/compiler/import/tflite/step.h"

namespace candela::import::tflite {
namespace {

constexpr int kMostDepth = 16;          // of subgraphs
constexpr int64_t kMostNodes = 1000000; // of a model
constexpr size_t kMostOutputs = 4096;   // of an operator
// Of constants that operators make: in all, and for each byte of the file.
constexpr uint64_t kMostConstantBytes = uint64_t(256) << 20, kConstantBytesPerByte = 4;

Status checkCount(size_t have, int least, int most, const char* what) {
  const bool isFew = have < static_cast<size_t>(least);
  const bool isMany = most >= 0 && have > static_cast<size_t>(most);
  if (!isFew && !isMany) return Status::ok();
  if (least == most) return badModel("has {} {}, expected {}", have, what, least);
  if (most < 0) return badModel("has {} {}, expected at least {}", have, what, least);
  return badModel("has {} {}, expected {} to {}", have, what, least, most);
}

Status checkArity(const OperatorInfo& op, const Operator& how) {
  size_t inputs = op.inputs.size();
  while (inputs > 0 && op.inputs[inputs - 1] < 0) --inputs;
  CDL_TRY(checkCount(inputs, how.minInputs, how.maxInputs, "inputs"));
  for (int i = 0; i < how.minInputs; ++i)
    if (op.inputs[static_cast<size_t>(i)] < 0) return badModel("input {} is missing", i);
  return checkCount(op.outputs.size(), how.maxOutputs == 0 ? 0 : 1, how.maxOutputs, "outputs");
}

void writeOperator(Step& step) {
  if (step.outputCount() > kMostOutputs)
    reject("has {} outputs, more than {}", step.outputCount(), kMostOutputs);
  const bool isCustom = step.op().code == schema::BuiltinOperator_CUSTOM;
  if (isCustom && step.op().name == "TFLite_Detection_PostProcess") return writePostProcess(step);
  const Operator* how = findOperator(step.op().code);
  if (!how) return writeUnknown(step);
  if (const Status arity = checkArity(step.op(), *how); !arity) throw Refusal{arity};
  how->write(step);
}

} // namespace

Name ModelWriter::unique(const std::string& wanted) {
  if (names.insert(wanted).second) return wanted;
  for (int& suffix = suffixes[wanted];;) {
    Name name = fmt::format("{}:{}", wanted, ++suffix);
    if (names.insert(name).second) return name;
  }
}

void ModelWriter::checkSize() const {
  if (nodes > kMostNodes)
    reject("it has more than {} operators, with those of subgraphs for each use", kMostNodes);
  const uint64_t most = kMostConstantBytes + kConstantBytesPerByte * file.size();
  if (constantBytes > most)
    reject("its operators make {} bytes of constants, more than {}", constantBytes, most);
}

GraphWriter::GraphWriter(ModelWriter& model, const Subgraph& subgraph, onnx_io::Graph& graph,
                         std::string prefix)
    : model_(model), subgraph_(subgraph), graph_(graph), prefix_(std::move(prefix)),
      stored_(subgraph.tensors.size()), real_(subgraph.tensors.size()) {}

void GraphWriter::bind(const std::vector<Name>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    stored_[static_cast<size_t>(subgraph_.inputs[i])] = inputs[i];
}

void GraphWriter::write() {
  for (size_t i = 0; i < subgraph_.operators.size(); ++i) {
    const OperatorInfo& op = subgraph_.operators[i];
    const std::string name = fmt::format("{}{} {}", prefix_, op.name, i);
    ++model_.nodes;
    model_.checkSize();
    Step step(*this, op, name);
    try {
      writeOperator(step);
    } catch (const Refusal& refusal) {
      model_.diagnostics.add(refusal.status.context(fmt::format("node '{}' ({})", name, op.name)));
    }
    // What reads them may have more to report.
    for (const int output : op.outputs)
      if (output >= 0 && stored_[static_cast<size_t>(output)].empty())
        stored_[static_cast<size_t>(output)] = prefix_ + info(output).name;
  }
  model_.checkSize();
}

std::vector<Name> GraphWriter::outputs() {
  std::vector<Name> names;
  for (const int output : subgraph_.outputs) names.push_back(stored(output));
  return names;
}

Name GraphWriter::stored(int tensor) {
  const TensorInfo& info = this->info(tensor);
  if (!info.refusal.empty()) refuse("tensor '{}': {}", info.name, info.refusal);
  Name& name = stored_[static_cast<size_t>(tensor)];
  if (!name.empty()) return name;
  if (!info.content) reject("tensor '{}' is read before anything gives it a value", info.name);
  name = initializer(info.name, *info.content);
  return name;
}

Name GraphWriter::real(int tensor) {
  const TensorInfo& info = this->info(tensor);
  if (!info.isQuantized()) return stored(tensor);
  Name& name = real_[static_cast<size_t>(tensor)];
  if (!name.empty()) return name;
  const Name x = stored(tensor);
  const std::vector<Name> of = quantization(tensor);
  name = model_.unique(prefix_ + info.name + "/real");
  onnx_io::Node node;
  node.name = fmt::format("{}{}/dequantize", prefix_, info.name);
  node.opType = "DequantizeLinear";
  node.inputs = {x, of[0], of[1]};
  node.outputs = {name};
  if (info.quantization.scales.size() > 1)
    node.attributes["axis"] = static_cast<int64_t>(info.quantization.axis);
  graph_.nodes.push_back(std::move(node));
  return name;
}

Name GraphWriter::produce(int tensor) {
  const TensorInfo& info = this->info(tensor);
  if (!info.refusal.empty()) refuse("tensor '{}': {}", info.name, info.refusal);
  Name& name = stored_[static_cast<size_t>(tensor)];
  if (!name.empty() || info.content) reject("tensor '{}' has a value already", info.name);
  name = model_.unique(prefix_ + info.name);
  return name;
}

Name GraphWriter::constant(const std::string& wanted, Tensor tensor) {
  model_.constantBytes += tensor.bytes.size();
  return initializer(wanted, std::move(tensor));
}

Name GraphWriter::initializer(const std::string& wanted, Tensor tensor) {
  const Name name = model_.unique(prefix_ + wanted);
  graph_.initializers.push_back({name, std::move(tensor)});
  return name;
}

void GraphWriter::noteName(const Name& from, const Name& to) {
  const auto found = channelsFirst_.find(from);
  if (found != channelsFirst_.end()) channelsFirst_[to] = found->second;
}

Name GraphWriter::channelsFirst(const Name& last) const {
  const auto found = channelsFirst_.find(last);
  return found == channelsFirst_.end() ? "" : found->second;
}

std::vector<Name> GraphWriter::quantization(int tensor) {
  std::vector<Name>& names = quantizations_[tensor];
  if (!names.empty()) return names;
  const TensorInfo& info = this->info(tensor);
  const Quantization& quantization = info.quantization;
  const auto count = static_cast<int64_t>(quantization.scales.size());
  const Shape dims = count == 1 ? Shape{} : Shape{count};
  auto zeros = Tensor::zeros(info.elem, dims);
  if (!zeros) throw Refusal{zeros.status()};
  for (int64_t i = 0; i < count; ++i)
    storeElement(info.elem, zeros->bytes.mutableData(), i,
                 static_cast<uint64_t>(quantization.zeros[static_cast<size_t>(i)]) &
                     elemMask(info.elem));
  names = {constant(info.name + "/scale", Tensor::of(Elem::f32_, dims, quantization.scales)),
           constant(info.name + "/zero", *std::move(zeros))};
  return names;
}

std::vector<Name> writeSubgraph(ModelWriter& model, int64_t index, const std::vector<Name>& inputs,
                                onnx_io::Graph& graph, const std::string& prefix) {
  const std::vector<Subgraph>& all = model.file.subgraphs();
  if (index < 1 || index >= static_cast<int64_t>(all.size()))
    reject("subgraph {} is none of {} behind the main one", index, all.size() - 1);
  const Subgraph& subgraph = all[static_cast<size_t>(index)];
  if (subgraph.inputs.size() != inputs.size())
    reject("subgraph {} has {} inputs, expected {}", index, subgraph.inputs.size(), inputs.size());
  if (model.depth >= kMostDepth) reject("subgraphs are nested deeper than {}", kMostDepth);
  model.nodes += static_cast<int64_t>(subgraph.tensors.size());
  model.checkSize();
  ++model.depth;
  GraphWriter writer(model, subgraph, graph, prefix);
  writer.bind(inputs);
  writer.write();
  --model.depth;
  return writer.outputs();
}

} // namespace candela::import::tflite
