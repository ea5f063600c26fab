#include <algorithm>
#include <numeric>

#include "core/compiler/import/operators/microsoft.h"
#include "core/compiler/import/opset_history.h"

/// Operators that ONNX Runtime's optimizer makes of several: products with what stands behind them,
/// and activations.
namespace candela::import {
namespace {

std::vector<int64_t> axesOf(const Term& x) {
  if (x.rank() < 3) need(badModel("input {} has rank {}, expected at least 3", x.text(), x.rank()));
  std::vector<int64_t> perm(static_cast<size_t>(x.rank()));
  std::iota(perm.begin(), perm.end(), 0);
  return perm;
}

/// x + more, which broadcasts to x.
Term plus(const Term& x, const Term& more, const char* what) {
  const Term sum = x + more;
  if (sum.shape() != x.shape())
    need(badModel("{} of shape {} does not broadcast to {}", what, shapeText(more.shape()),
                  shapeText(x.shape())));
  return sum;
}

/// The activation behind a convolution; its numbers come in a list.
Term activatedByList(NodeContext& context, const Term& x) {
  const std::string name = attrOf<std::string>(context, "activation", "");
  const auto numbers = attrOf<std::vector<float>>(context, "activation_params", {});
  const auto expect = [&](size_t count) {
    if (numbers.size() != count)
      need(badModel("activation_params has {} values, but {} takes {}", numbers.size(), name,
                    count));
  };
  if (name.empty()) return x;
  if (name == "Relu") return relu(x);
  if (name == "Tanh") return tanh(x);
  if (name == "Sigmoid") return sigmoid(x);
  if (name == "Silu") return x * sigmoid(x);
  if (name == "Clip") {
    expect(2);
    return make(OpKind::Clip, {x, x.number(numbers[0]), x.number(numbers[1])});
  }
  if (name == "LeakyRelu") {
    expect(1);
    return apply(context, name, kNewestOpset, {x.value()}, {{"alpha", numbers[0]}});
  }
  if (name == "HardSigmoid") {
    expect(2);
    return apply(context, name, kNewestOpset, {x.value()},
                 {{"alpha", numbers[0]}, {"beta", numbers[1]}});
  }
  throw Failure{failure(Code::unsupported, "activation '{}'", name)};
}

/// Conv, plus a fourth operand of its result's shape, and an activation.
Term fusedConv(NodeContext& context, const Term& x, const std::optional<Term>& more) {
  const Attributes attributes = attributesBut(context, {"activation", "activation_params"});
  const Term y = apply(context, "Conv", kNewestOpset,
                       {x.value(), context.input(1), context.input(2)}, attributes);
  if (more && more->shape() != y.shape())
    need(badModel("input 3 has shape {}, but the convolution gives {}", shapeText(more->shape()),
                  shapeText(y.shape())));
  return activatedByList(context, more ? y + *more : y);
}
Status importFusedConv(NodeContext& context) {
  std::optional<Term> more;
  if (context.input(3)) more = termOf(context, 3);
  return context.set(fusedConv(context, termOf(context, 0), more));
}
Status importNhwcFusedConv(NodeContext& context) {
  std::optional<Term> more;
  if (context.input(3)) more = channelsFirst(termOf(context, 3));
  return context.set(channelsLast(fusedConv(context, channelsFirst(termOf(context, 0)), more)));
}

/// Gemm and an activation of ONNX, whose attributes have "activation_" before their names.
Status importFusedGemm(NodeContext& context) {
  const std::string name = attrOf<std::string>(context, "activation", ""), prefix = "activation_";
  Attributes product = attributesBut(context, {"activation"}), own;
  for (const char* attribute : {"alpha", "beta", "gamma"})
    if (auto number = product.extract(prefix + attribute)) own.emplace(attribute, number.mapped());
  const Term y = apply(context, "Gemm", kNewestOpset, context.inputs(), product);
  if (name.empty()) return context.set(y);
  constexpr const char* kKnown[] = {"Celu",     "Elu",  "HardSigmoid",    "LeakyRelu",
                                    "Relu",     "Selu", "Sigmoid",        "Softplus",
                                    "Softsign", "Tanh", "ThresholdedRelu"};
  if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown))
    return failure(Code::unsupported, "activation '{}'", name);
  return context.set(apply(context, name, kNewestOpset, {y.value()}, own));
}

/// An operand's matrices in its last two dims: `batches` says that its first dim belongs behind
/// those of the batch, `turned` that the two are exchanged then. A vector stays what it is.
Term matrices(const Term& x, bool turned, bool batches) {
  if (x.rank() < 2) return x;
  std::vector<int64_t> perm(static_cast<size_t>(x.rank()));
  std::iota(perm.begin(), perm.end(), 0);
  if (batches) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (turned) std::swap(perm.back(), perm[perm.size() - 2]);
  return x.transpose(perm);
}

/// alpha * a . b
Status importFusedMatMul(NodeContext& context) {
  const Term a = termOf(context, 0), b = termOf(context, 1);
  const bool turnA = need(context.flagAttr("transA", false)),
             turnB = need(context.flagAttr("transB", false));
  const bool batchA = need(context.flagAttr("transBatchA", false)),
             batchB = need(context.flagAttr("transBatchB", false));
  const double alpha = attrOf<float>(context, "alpha", 1.0f);
  if ((batchA || batchB) && (a.rank() < 3 || a.rank() != b.rank()))
    return badModel("operands of ranks {} and {} have no batches to transpose", a.rank(), b.rank());
  const auto product = [&](const Term& left, const Term& right) {
    return matmul(matrices(left, turnA, batchA), matrices(right, turnB, batchB));
  };
  if (alpha == 1) return context.set(product(a, b));
  return context.set((product(widened(a), widened(b)) * alpha).cast(a.elem()));
}

Status importMicrosoftGelu(NodeContext& context) {
  return context.set(make(OpKind::Gelu, {termOf(context, 0)}));
}

Status importBiasGelu(NodeContext& context) {
  const Term x = termOf(context, 0), sum = plus(widened(x), widened(termOf(context, 1)), "bias");
  return context.set(make(OpKind::Gelu, {sum}).cast(x.elem()));
}

Status importFastGelu(NodeContext& context) {
  const Term x = termOf(context, 0);
  Term wide = widened(x);
  if (context.input(1)) wide = plus(wide, widened(termOf(context, 1)), "bias");
  return context.set(apply(context, "Gelu", kNewestOpset, {wide.value()}, {{"approximate", "tanh"}})
                         .cast(x.elem()));
}

/// x * sigmoid(alpha * x)
Status importQuickGelu(NodeContext& context) {
  const double alpha = attrOf<float>(context, "alpha", 1.702f);
  const Term x = termOf(context, 0), wide = widened(x);
  return context.set((wide * sigmoid(alpha == 1 ? wide : wide * alpha)).cast(x.elem()));
}

constexpr Operator kMicrosoftFusedOperators[] = {
    {"com.microsoft.BiasGelu", 2, 2, 1, importBiasGelu},
    {"com.microsoft.FastGelu", 1, 2, 1, importFastGelu},
    {"com.microsoft.FusedConv", 2, 4, 1, importFusedConv},
    {"com.microsoft.FusedGemm", 2, 3, 1, importFusedGemm},
    {"com.microsoft.FusedMatMul", 2, 2, 1, importFusedMatMul},
    {"com.microsoft.Gelu", 1, 1, 1, importMicrosoftGelu},
    {"com.microsoft.NhwcFusedConv", 2, 4, 1, importNhwcFusedConv},
    {"com.microsoft.QuickGelu", 1, 1, 1, importQuickGelu},
    {"com.microsoft.TransposeMatMul", 2, 2, 1, importFusedMatMul},
};

} // namespace

Term inputOf(const NodeContext& context, size_t input) {
  if (!context.input(input)) need(badModel("input {} is missing", input));
  return termOf(context, input);
}

Attributes attributesBut(NodeContext& context, std::initializer_list<const char*> own) {
  Attributes attributes = context.node.attributes;
  for (const char* name : own) attributes.erase(name);
  // asked for, whatever its type
  for (const auto& [name, value] : attributes) (void)context.maybe<int64_t>(name);
  return attributes;
}

std::vector<Term> applyAll(const NodeContext& context, const std::string& opType, int opset,
                           const std::vector<Value*>& inputs, const Attributes& attributes,
                           size_t outputs) {
  onnx_io::Node node;
  node.name = context.node.name;
  node.opType = opType;
  node.attributes = attributes;
  for (const Value* value : inputs) {
    const auto given = std::find(context.inputs().begin(), context.inputs().end(), value);
    std::string& name = node.inputs.emplace_back();
    if (!value) continue;
    name = given == context.inputs().end() ? value->name
                                           : context.node.inputs[given - context.inputs().begin()];
    if (name.empty()) name = "a value of its own";
  }
  node.outputs.assign(outputs, "a value of its own");
  const OperatorImporter importer = findImporter(node);
  need(importer.checkArity(node));
  NodeContext inner(context.build, node, opset, inputs);
  need(importer.import(inner));
  std::vector<Term> results;
  for (Value* value : inner.outputs()) results.emplace_back(context.build, value);
  return results;
}

Term apply(const NodeContext& context, const std::string& opType, int opset,
           const std::vector<Value*>& inputs, const Attributes& attributes) {
  return applyAll(context, opType, opset, inputs, attributes, 1).front();
}

Term channelsFirst(const Term& x) {
  std::vector<int64_t> perm = axesOf(x);
  std::rotate(perm.begin() + 1, perm.end() - 1, perm.end());
  return x.transpose(perm);
}

Term channelsLast(const Term& x) {
  std::vector<int64_t> perm = axesOf(x);
  std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
  return x.transpose(perm);
}

std::span<const Operator> microsoft_fusedOperators() { return kMicrosoftFusedOperators; }

} // namespace candela::import
