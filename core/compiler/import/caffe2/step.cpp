#include "core/compiler/import/caffe2/step.h"

#include <net.pb.h>

#include <algorithm>

#include "core/compiler/import/caffe2/model.h"
#include "core/support/text/shown.h"
#include "core/support/transpose.h"

namespace candela::import::caffe2 {
namespace {

constexpr size_t kMostOutputs = 4096; // of an operator

Status checkInputs(size_t have, const Operator& how) {
  const bool isFew = have < static_cast<size_t>(how.minInputs);
  const bool isMany = how.maxInputs >= 0 && have > static_cast<size_t>(how.maxInputs);
  if (!isFew && !isMany) return Status::ok();
  if (how.minInputs == how.maxInputs)
    return badModel("has {} inputs, expected {}", have, how.minInputs);
  if (how.maxInputs < 0)
    return badModel("has {} inputs, expected at least {}", have, how.minInputs);
  return badModel("has {} inputs, expected {} to {}", have, how.minInputs, how.maxInputs);
}

void writeAs(Step& step) {
  const Operator* how = findOperator(step.type());
  if (step.outputCount() > kMostOutputs)
    reject("has {} outputs, more than {}", step.outputCount(), kMostOutputs);
  if (!how) return step.setUnknown();
  if (step.outputCount() == 0) reject("has no outputs");
  if (const Status status = checkInputs(step.inputCount(), *how); !status) throw Refusal{status};
  how->write(step);
}

} // namespace

void NetWriter::write() {
  std::set<std::string> seen;
  for (const proto::OperatorDef& op : nets_.net->op()) {
    read_.insert(op.input().begin(), op.input().end());
    for (const std::string& output : op.output())
      if (seen.insert(output).second) written_.push_back(output);
  }
  outputs_.insert(nets_.net->external_output().begin(), nets_.net->external_output().end());
  graph_.name = nets_.net->name();
  writeInputs();
  // Names of outputs are taken before values inside get them.
  for (const std::string& output : nets_.net->external_output()) names_.insert(output);
  for (int i = 0; i < nets_.net->op_size(); ++i)
    writeOperator(nets_.net->op(i), static_cast<size_t>(i));
  writeOutputs();
}

void NetWriter::writeInputs() {
  std::vector<std::string> inputs(nets_.net->external_input().begin(),
                                  nets_.net->external_input().end());
  if (inputs.empty()) { // what is read before anything writes it
    std::set<std::string> known;
    for (const proto::OperatorDef& op : nets_.net->op()) {
      for (const std::string& input : op.input())
        if (known.insert(input).second) inputs.push_back(input);
      known.insert(op.output().begin(), op.output().end());
    }
  }
  for (const std::string& input : inputs) {
    if (nets_.constants.count(input) || blobs_.count(input)) continue;
    onnx_io::ValueInfo info;
    info.name = unique(input);
    info.elem = Elem::f32_;
    if (const auto type = nets_.inputs.find(input); type != nets_.inputs.end()) {
      info.elem = type->second.elem;
      info.hasShape = true;
      for (const int64_t dim : type->second.dims) info.dims.push_back({.value = dim, .name = {}});
    }
    blobs_[input] = {.value = info.name};
    graph_.inputs.push_back(std::move(info));
  }
}

void NetWriter::writeOperator(const proto::OperatorDef& op, size_t index) {
  const std::string name = fmt::format("{} {}", op.type(), index);
  Step step(*this, op, name);
  try {
    writeAs(step);
  } catch (const Refusal& refusal) {
    // Texts of arguments may stand in it, of any kind.
    const Status shown(refusal.status.code(), text::shownLine(refusal.status.message()));
    diagnostics_.add(shown.context(fmt::format("node '{}' ({})", name, op.type())));
    // What reads its results may have more to report.
    for (const std::string& output : op.output()) blobs_[output].value = output;
  }
}

void NetWriter::writeOutputs() {
  std::vector<std::string> outputs(nets_.net->external_output().begin(),
                                   nets_.net->external_output().end());
  if (outputs.empty())
    std::ranges::copy_if(written_, std::back_inserter(outputs),
                         [&](const std::string& name) { return read_.count(name) == 0; });
  std::set<std::string> seen;
  for (const std::string& output : outputs) {
    if (!seen.insert(output).second) continue;
    try {
      const Blob from = blob(output);
      // An input that the net also gives out has its name already.
      const bool isInput = std::ranges::count(graph_.inputs, output, &onnx_io::ValueInfo::name) > 0;
      const Name port = isInput || from.value == output ? unique(output) : output;
      onnx_io::Node node;
      node.name = port;
      node.opType = "Identity";
      node.inputs = {from.value};
      node.outputs = {port};
      names_.insert(port);
      graph_.nodes.push_back(std::move(node));
      onnx_io::ValueInfo info; // of the type that import finds
      info.name = port;
      graph_.outputs.push_back(std::move(info));
    } catch (const Refusal& refusal) {
      diagnostics_.add(refusal.status.context(fmt::format("output '{}'", output)));
    }
  }
}

const Blob& NetWriter::blob(const std::string& name) {
  const auto found = blobs_.find(name);
  if (found != blobs_.end()) return found->second;
  const auto constant = nets_.constants.find(name);
  if (constant == nets_.constants.end())
    reject("blob '{}' is read before anything gives it a value", name);
  return blobs_[name] = {.value = initializer(name, constant->second.tensor),
                         .quantization = constant->second.quantization,
                         .constant = constant->second.tensor};
}

Name NetWriter::unique(const std::string& wanted) {
  if (names_.insert(wanted).second) return wanted;
  for (int& suffix = suffixes_[wanted];;) {
    Name name = fmt::format("{}:{}", wanted, ++suffix);
    if (names_.insert(name).second) return name;
  }
}

Name NetWriter::initializer(const std::string& wanted, Tensor tensor) {
  const Name name = unique(wanted);
  graph_.initializers.push_back({name, std::move(tensor)});
  return name;
}

Step::Step(NetWriter& writer, const proto::OperatorDef& op, std::string name)
    : arguments(op), writer_(writer), op_(op), name_(std::move(name)) {}

const std::string& Step::type() const { return op_.type(); }
size_t Step::inputCount() const { return static_cast<size_t>(op_.input_size()); }
size_t Step::outputCount() const { return static_cast<size_t>(op_.output_size()); }

const Blob& Step::blob(size_t i) {
  if (!has(i)) reject("has {} inputs, input {} is missing", inputCount(), i);
  return writer_.blob(op_.input(static_cast<int>(i)));
}

Name Step::in(size_t i) {
  const Blob& operand = blob(i);
  if (operand.quantization) refuse("input {} is quantized", i);
  return operand.value;
}

std::vector<Name> Step::inputs() {
  std::vector<Name> all;
  for (size_t i = 0; i < inputCount(); ++i) all.push_back(in(i));
  return all;
}

Name Step::real(size_t i) {
  const Blob& operand = blob(i);
  return dequantized(operand.value, operand);
}

Name Step::realInOrder(size_t i, const Ints& perm) {
  const Blob& operand = blob(i);
  if (!operand.constant || operand.constant->dims.size() != perm.size())
    return transpose(real(i), perm);
  Result<Tensor> moved = transposed(*operand.constant, perm);
  if (!moved) throw Refusal{moved.status()};
  return dequantized(constant(*std::move(moved)), operand);
}

Name Step::dequantized(const Name& stored, const Blob& blob) {
  if (!blob.quantization) return stored;
  const auto& [scale, zero] = *blob.quantization;
  const bool isBias = blob.constant && blob.constant->elem == Elem::i32_;
  const Name zeroPoint =
      isBias ? constant(Tensor::of<int32_t>(Elem::i32_, {}, {zero}))
             : constant(Tensor::of<uint8_t>(Elem::u8_, {}, {static_cast<uint8_t>(zero)}));
  return add("DequantizeLinear", {stored, number(scale), zeroPoint});
}

std::vector<Name> Step::addAll(const char* op, std::vector<Name> inputs, size_t outputs,
                               Attributes attributes, const char* domain) {
  onnx_io::Node node;
  node.name = name_;
  node.opType = op;
  node.domain = domain;
  node.inputs = std::move(inputs);
  for (size_t i = 0; i < outputs; ++i)
    node.outputs.push_back(writer_.unique(fmt::format("{}/{}", name_, op)));
  node.attributes = std::move(attributes);
  writer_.graph_.nodes.push_back(std::move(node));
  return writer_.graph_.nodes.back().outputs;
}

Name Step::add(const char* op, std::vector<Name> inputs, Attributes attributes) {
  return addAll(op, std::move(inputs), 1, std::move(attributes))[0];
}

Name Step::constant(Tensor tensor) {
  return writer_.initializer(name_ + "/constant", std::move(tensor));
}

Name Step::constant(const Ints& values) {
  return constant(Tensor::of<int64_t>(Elem::i64_, {static_cast<int64_t>(values.size())}, values));
}

Name Step::number(float value) { return constant(Tensor::of<float>(Elem::f32_, {}, {value})); }

Name Step::transpose(const Name& x, const Ints& perm) {
  return add("Transpose", {x}, {{"perm", perm}});
}

Name Step::reshape(const Name& x, const Ints& shape) {
  return add("Reshape", {x, constant(shape)});
}

Name Step::dims(const Name& x, int64_t first, int64_t last) {
  return add("Shape", {x}, {{"start", first}, {"end", last}});
}

Name Step::join(std::vector<Name> vectors) {
  return add("Concat", std::move(vectors), {{"axis", int64_t(0)}});
}

void Step::set(size_t output, const Name& y) {
  if (wants(output)) writer_.blobs_[op_.output(static_cast<int>(output))] = {.value = y};
}

void Step::setQuantized(size_t output, const Name& y) {
  const Quantization q = quantizationOf(arguments);
  needByte(q);
  const Name zero = constant(Tensor::of<uint8_t>(Elem::u8_, {}, {static_cast<uint8_t>(q.zero)}));
  setStored(output, add("QuantizeLinear", {y, number(q.scale), zero}), q);
}

void Step::setStored(size_t output, const Name& y, const Quantization& quantization) {
  if (wants(output))
    writer_.blobs_[op_.output(static_cast<int>(output))] = {.value = y,
                                                            .quantization = quantization};
}

void Step::setFilled() {
  Result<Constant> made = fill(op_);
  if (!made) throw Refusal{made.status()};
  const std::string& output = op_.output(0);
  writer_.blobs_[output] = {.value = writer_.initializer(output, made->tensor),
                            .quantization = made->quantization,
                            .constant = made->tensor};
}

void Step::needUnread(size_t output, const char* what) const {
  if (!wants(output)) return;
  const std::string& name = op_.output(static_cast<int>(output));
  if (writer_.read_.count(name) || writer_.outputs_.count(name))
    refuse("{} ('{}') is read", what, name);
}

void Step::setUnknown() {
  Attributes attributes;
  for (const proto::Argument& argument : op_.arg()) {
    onnx_io::Attribute value = Ints(argument.ints().begin(), argument.ints().end());
    if (argument.floats_size() > 0)
      value = std::vector<float>(argument.floats().begin(), argument.floats().end());
    if (argument.strings_size() > 0)
      value = std::vector<std::string>(argument.strings().begin(), argument.strings().end());
    if (argument.has_f()) value = argument.f();
    if (argument.has_i()) value = argument.i();
    if (argument.has_s()) value = argument.s();
    attributes[argument.name()] = std::move(value);
  }
  const std::vector<Name> results =
      addAll(op_.type().c_str(), inputs(), outputCount(), std::move(attributes), kDomain);
  for (size_t i = 0; i < results.size(); ++i) set(i, results[i]);
}

} // namespace candela::import::caffe2
