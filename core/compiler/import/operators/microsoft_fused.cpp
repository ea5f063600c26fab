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
Term activatedByList(Step& step, const Term& x) {
  const std::string name = attrOf<std::string>(step, "activation", "");
  const auto numbers = attrOf<std::vector<float>>(step, "activation_params", {});
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
    return apply(step, name, kNewestOpset, {x.value()}, {{"alpha", numbers[0]}});
  }
  if (name == "HardSigmoid") {
    expect(2);
    return apply(step, name, kNewestOpset, {x.value()},
                 {{"alpha", numbers[0]}, {"beta", numbers[1]}});
  }
  throw Failure{failure(Code::unsupported, "activation '{}'", name)};
}

/// Conv, plus a fourth operand of its result's shape, and an activation.
Term fusedConv(Step& step, const Term& x, const std::optional<Term>& more) {
  const Attributes attributes = attributesBut(step, {"activation", "activation_params"});
  const Term y =
      apply(step, "Conv", kNewestOpset, {x.value(), step.input(1), step.input(2)}, attributes);
  if (more && more->shape() != y.shape())
    need(badModel("input 3 has shape {}, but the convolution gives {}", shapeText(more->shape()),
                  shapeText(y.shape())));
  return activatedByList(step, more ? y + *more : y);
}
Status importFusedConv(Step& step) {
  std::optional<Term> more;
  if (step.input(3)) more = termOf(step, 3);
  return step.set(fusedConv(step, termOf(step, 0), more));
}
Status importNhwcFusedConv(Step& step) {
  std::optional<Term> more;
  if (step.input(3)) more = channelsFirst(termOf(step, 3));
  return step.set(channelsLast(fusedConv(step, channelsFirst(termOf(step, 0)), more)));
}

/// Gemm and an activation of ONNX, whose attributes have "activation_" before their names.
Status importFusedGemm(Step& step) {
  const std::string name = attrOf<std::string>(step, "activation", ""), prefix = "activation_";
  Attributes product = attributesBut(step, {"activation"}), own;
  for (const char* attribute : {"alpha", "beta", "gamma"})
    if (auto number = product.extract(prefix + attribute)) own.emplace(attribute, number.mapped());
  const Term y = apply(step, "Gemm", kNewestOpset, step.inputs(), product);
  if (name.empty()) return step.set(y);
  constexpr const char* kKnown[] = {"Celu",     "Elu",  "HardSigmoid",    "LeakyRelu",
                                    "Relu",     "Selu", "Sigmoid",        "Softplus",
                                    "Softsign", "Tanh", "ThresholdedRelu"};
  if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown))
    return failure(Code::unsupported, "activation '{}'", name);
  return step.set(apply(step, name, kNewestOpset, {y.value()}, own));
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
Status importFusedMatMul(Step& step) {
  const Term a = termOf(step, 0), b = termOf(step, 1);
  const bool turnA = need(step.flagAttr("transA", false)),
             turnB = need(step.flagAttr("transB", false));
  const bool batchA = need(step.flagAttr("transBatchA", false)),
             batchB = need(step.flagAttr("transBatchB", false));
  const double alpha = attrOf<float>(step, "alpha", 1.0f);
  if ((batchA || batchB) && (a.rank() < 3 || a.rank() != b.rank()))
    return badModel("operands of ranks {} and {} have no batches to transpose", a.rank(), b.rank());
  const auto product = [&](const Term& left, const Term& right) {
    return matmul(matrices(left, turnA, batchA), matrices(right, turnB, batchB));
  };
  if (alpha == 1) return step.set(product(a, b));
  return step.set((product(widened(a), widened(b)) * alpha).cast(a.elem()));
}

Status importMicrosoftGelu(Step& step) { return step.set(make(OpKind::Gelu, {termOf(step, 0)})); }

Status importBiasGelu(Step& step) {
  const Term x = termOf(step, 0), sum = plus(widened(x), widened(termOf(step, 1)), "bias");
  return step.set(make(OpKind::Gelu, {sum}).cast(x.elem()));
}

Status importFastGelu(Step& step) {
  const Term x = termOf(step, 0);
  Term wide = widened(x);
  if (step.input(1)) wide = plus(wide, widened(termOf(step, 1)), "bias");
  return step.set(
      apply(step, "Gelu", kNewestOpset, {wide.value()}, {{"approximate", "tanh"}}).cast(x.elem()));
}

/// x * sigmoid(alpha * x)
Status importQuickGelu(Step& step) {
  const double alpha = attrOf<float>(step, "alpha", 1.702f);
  const Term x = termOf(step, 0), wide = widened(x);
  return step.set((wide * sigmoid(alpha == 1 ? wide : wide * alpha)).cast(x.elem()));
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

Term inputOf(const Step& step, size_t input) {
  if (!step.input(input)) need(badModel("input {} is missing", input));
  return termOf(step, input);
}

Attributes attributesBut(Step& step, std::initializer_list<const char*> own) {
  Attributes attributes = step.node.attributes;
  for (const char* name : own) attributes.erase(name);
  // asked for, whatever its type
  for (const auto& [name, value] : attributes) (void)step.maybe<int64_t>(name);
  return attributes;
}

std::vector<Term> applyAll(const Step& step, const std::string& opType, int opset,
                           const std::vector<Value*>& inputs, const Attributes& attributes,
                           size_t outputs) {
  onnx_io::Node node;
  node.name = step.node.name;
  node.opType = opType;
  node.attributes = attributes;
  for (const Value* value : inputs) {
    const auto given = std::find(step.inputs().begin(), step.inputs().end(), value);
    std::string& name = node.inputs.emplace_back();
    if (!value) continue;
    name = given == step.inputs().end() ? value->name
                                        : step.node.inputs[given - step.inputs().begin()];
    if (name.empty()) name = "a value of its own";
  }
  node.outputs.assign(outputs, "a value of its own");
  const Importer importer = findImporter(node);
  need(importer.checkArity(node));
  Step inner(step.build, node, opset, inputs);
  need(importer.import(inner));
  std::vector<Term> results;
  for (Value* value : inner.outputs()) results.emplace_back(step.build, value);
  return results;
}

Term apply(const Step& step, const std::string& opType, int opset,
           const std::vector<Value*>& inputs, const Attributes& attributes) {
  return applyAll(step, opType, opset, inputs, attributes, 1).front();
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
