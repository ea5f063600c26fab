#include "core/compiler/export/onnx/writer.h"

#include <algorithm>
#include <numeric>

#include "core/compiler/export/onnx/ops.h"
#include "core/support/text/literal.h"

namespace candela::exporter::onnx {
namespace {

/// A constant of one repeated element is made by a node from this size on.
constexpr int64_t kLongestSplat = 64;
/// Contents of integer constants up to this size are kept for formulas that ask them.
constexpr int64_t kLongestKnown = 65536;

Tensor scalarOfBits(Elem elem, uint64_t bits) {
  Tensor tensor = need(Tensor::zeros(elem, {}));
  storeElement(elem, tensor.bytes.mutableData(), 0, bits);
  return tensor;
}

Shape broadcastDims(const Terms& terms) {
  Shape dims;
  for (const Term& term : terms) {
    if (term.isAbsent()) continue;
    const auto both = graph::broadcastShapes(dims, term.dims);
    CDL_CHECK(both, "operands of a formula broadcast");
    dims = *both;
  }
  return dims;
}

int64_t onnxType(Elem elem) { return elemToOnnx(elem); }

} // namespace

Tensor scalarOf(double value, Elem elem) {
  if (isInteger(elem) || elem == Elem::bool_)
    return scalarOfBits(elem, static_cast<uint64_t>(static_cast<int64_t>(value)) & elemMask(elem));
  return scalarOfBits(elem, need(text::parseElement(elem, text::realText(value))));
}

std::string ModelWriter::unique(const std::string& wanted) {
  const std::string base = wanted.empty() ? "value" : wanted;
  std::string name = base;
  for (int& i = suffixes_[base]; !names.insert(name).second;)
    name = fmt::format("{}_{}", base, ++i);
  return name;
}

Term GraphWriter::of(const graph::Value* value) {
  if (!value) return {};
  const auto known = terms_.find(value);
  if (known != terms_.end()) return known->second;
  const auto named = names_.find(value);
  Term term{named == names_.end() ? model_.unique(value->name) : named->second, value->type.elem,
            value->type.dims};
  terms_[value] = term;
  bound_.insert(term.name);
  return term;
}

Terms GraphWriter::operandsOf(const graph::Node& node) {
  Terms terms;
  for (const graph::Value* operand : node.operands()) terms.push_back(of(operand));
  return terms;
}

void GraphWriter::name(const graph::Value* value, std::string name) {
  names_[value] = std::move(name);
}

void GraphWriter::alias(const graph::Value* value, const Term& term) {
  terms_[value] = term;
  bound_.insert(term.name);
}

void GraphWriter::bind(const graph::Value* value, const Term& term) {
  const Term target = of(value);
  CDL_CHECK(term.elem == target.elem && term.dims == target.dims,
            "a node is written with the type of its result");
  const auto takeOver = [&](onnx_io::Node& node) {
    const auto at = std::ranges::find(node.outputs, term.name);
    if (at == node.outputs.end()) return false;
    *at = target.name;
    return true;
  };
  // A formula may end in one of its operands, which other values are made of.
  const bool isNew = !into_.nodes.empty() && !bound_.contains(term.name);
  if (isNew && takeOver(into_.nodes.back())) return;
  addIdentity(term.name, target.name);
}

void GraphWriter::copyTo(const graph::Value* value, const std::string& name) {
  nodeName_ = name;
  addIdentity(of(value).name, name);
}

void GraphWriter::addIdentity(const std::string& from, const std::string& to) {
  onnx_io::Node node;
  node.name = nodeName_;
  node.opType = "Identity";
  node.inputs = {from};
  node.outputs = {to};
  into_.nodes.push_back(std::move(node));
}

Terms GraphWriter::makeSeveral(const std::string& opType, const Terms& operands,
                               const std::vector<graph::TensorType>& types, Attributes attributes) {
  onnx_io::Node node;
  node.name = nodeName_;
  node.opType = opType;
  node.attributes = std::move(attributes);
  for (const Term& operand : operands) node.inputs.push_back(operand.name);
  while (!node.inputs.empty() && node.inputs.back().empty()) node.inputs.pop_back();
  Terms results;
  for (const graph::TensorType& type : types) {
    results.push_back({model_.unique(nodeName_ + "." + opType), type.elem, type.dims});
    node.outputs.push_back(results.back().name);
  }
  into_.nodes.push_back(std::move(node));
  return results;
}

Term GraphWriter::make(const std::string& opType, const Terms& operands, Elem elem, Shape dims,
                       Attributes attributes) {
  return makeSeveral(opType, operands, {{elem, std::move(dims)}}, std::move(attributes))[0];
}

Term GraphWriter::op(const std::string& opType, const Terms& operands, Attributes attributes) {
  return make(opType, operands, operands[0].elem, broadcastDims(operands), std::move(attributes));
}

Term GraphWriter::test(const std::string& opType, const Term& a, const Term& b) {
  return make(opType, {a, b}, Elem::bool_, broadcastDims({a, b}));
}

Term GraphWriter::constant(const Tensor& tensor, const std::string& hint) {
  const Term term{model_.unique(hint.empty() ? "constant" : hint), tensor.elem, tensor.dims};
  into_.initializers.push_back({term.name, tensor});
  return term;
}

Term GraphWriter::ints(const std::vector<int64_t>& values) {
  Term& known = constants_[fmt::format("{}", fmt::join(values, ","))];
  if (known.isAbsent())
    known = constant(Tensor::of(Elem::i64_, {static_cast<int64_t>(values.size())}, values), "ints");
  return known;
}

Term GraphWriter::number(double value, Elem elem) {
  Term& known = constants_[fmt::format("{} {}", elemName(elem), text::realText(value))];
  if (known.isAbsent()) known = constant(scalarOf(value, elem), "number");
  return known;
}

Term GraphWriter::whole(__int128 value, Elem elem) {
  const auto bits = static_cast<uint64_t>(value) & elemMask(elem);
  Term& known = constants_[fmt::format("{} whole {}", elemName(elem), bits)];
  if (known.isAbsent()) known = constant(scalarOfBits(elem, bits), "number");
  return known;
}

Term GraphWriter::cast(const Term& x, Elem to) {
  if (x.elem == to) return x;
  return make("Cast", {x}, to, x.dims, {{"to", onnxType(to)}});
}

Term GraphWriter::reshape(const Term& x, const Shape& dims) {
  if (x.dims == dims) return x;
  Attributes attributes;
  if (std::ranges::find(dims, 0) != dims.end()) attributes["allowzero"] = int64_t(1);
  return make("Reshape", {x, ints(dims)}, x.elem, dims, std::move(attributes));
}

Term GraphWriter::transpose(const Term& x, const std::vector<int64_t>& perm) {
  Shape dims;
  for (const int64_t from : perm) dims.push_back(x.dims[static_cast<size_t>(from)]);
  return make("Transpose", {x}, x.elem, dims, {{"perm", perm}});
}

Term GraphWriter::expand(const Term& x, const Shape& dims) {
  if (x.dims == dims) return x;
  const auto both = graph::broadcastShapes(x.dims, dims);
  CDL_CHECK(both, "a value is expanded to a shape that it broadcasts to");
  return make("Expand", {x, ints(dims)}, x.elem, *both);
}

Term GraphWriter::along(const Term& x, int64_t axis, int64_t rank) {
  if (x.rank() == 0) return x;
  Shape dims(static_cast<size_t>(rank), 1);
  dims[static_cast<size_t>(axis)] = x.dims[0];
  return reshape(x, dims);
}

Term GraphWriter::where(const Term& condition, const Term& a, const Term& b) {
  return make("Where", {condition, a, b}, a.elem, broadcastDims({condition, a, b}));
}

Term GraphWriter::slice(const Term& x, int64_t axis, int64_t first, int64_t end, int64_t step) {
  Shape dims = x.dims;
  const int64_t span = step > 0 ? end - first : first - end;
  const int64_t size = step > 0 ? step : -step;
  dims[static_cast<size_t>(axis)] = std::max<int64_t>(0, (span + size - 1) / size);
  const int64_t last = end < 0 ? std::numeric_limits<int64_t>::min() : end;
  return make("Slice", {x, ints({first}), ints({last}), ints({axis}), ints({step})}, x.elem, dims);
}

Term GraphWriter::limit(const Term& x, __int128 low, __int128 high) {
  return make("Clip", {x, whole(low, x.elem), whole(high, x.elem)}, x.elem, x.dims);
}

const std::vector<int64_t>* GraphWriter::knownInts(const Term& term) const {
  const auto known = knownInts_.find(term.name);
  return known == knownInts_.end() ? nullptr : &known->second;
}

void GraphWriter::writeConstant(const graph::Node& node) {
  const graph::Value* value = node.result();
  const Payload& payload = *node.payload;
  const Term target = of(value);
  if (isInteger(payload.elem()) && payload.count() <= kLongestKnown)
    knownInts_[target.name] = need(value->tensor()).toInts();
  if (payload.form() != Payload::Form::splat || payload.count() <= kLongestSplat) {
    into_.initializers.push_back({target.name, need(value->tensor())});
    return;
  }
  Tensor element = need(Tensor::zeros(payload.elem(), {1}));
  storeElement(payload.elem(), element.bytes.mutableData(), 0, payload.splatBits());
  bind(value, make("ConstantOfShape", {ints(target.dims)}, target.elem, target.dims,
                   {{"value", element}}));
}

void GraphWriter::writeNode(const graph::Node& node) {
  nodeName_ = node.userName();
  if (node.kind == graph::OpKind::Constant) return writeConstant(node);
  writeOp(*this, node);
}

void GraphWriter::write(const graph::Graph& graph) {
  for (const auto& node : graph.nodes()) {
    try {
      writeNode(*node);
    } catch (const Refusal& refusal) {
      model_.refusals.add(*node, refusal.why);
    }
  }
}

} // namespace candela::exporter::onnx
