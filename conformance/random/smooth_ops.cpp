#include "conformance/random/smooth_ops.h"

#include <algorithm>
#include <cmath>

#include "core/reference/reference.h"

namespace candela::conformance::random {
namespace {

using graph::OpKind;

struct Limits {
  double lo, hi;
};
/// Where an op is smooth and defined; else anything up to 2.
std::optional<Limits> smoothLimits(OpKind kind, size_t operand) {
  switch (kind) {
  case OpKind::Log:
  case OpKind::Sqrt:
  case OpKind::Reciprocal:
  case OpKind::Log1p: return Limits{0.4, 2};
  case OpKind::Acosh: return Limits{1.2, 3};
  case OpKind::Asin:
  case OpKind::Acos:
  case OpKind::Atanh: return Limits{-0.9, 0.9};
  case OpKind::Tan: return Limits{-1.2, 1.2};
  case OpKind::Pow:
    if (operand == 0) return Limits{0.4, 2};
    break;
  case OpKind::Div:
  case OpKind::Rem:
    if (operand == 1) return Limits{0.4, 2};
    break;
  case OpKind::BatchNorm:
    if (operand == 4) return Limits{0.3, 2};
    break;
  default: break;
  }
  return std::nullopt;
}

/// All floats are of the type, and all are inputs.
void makeSmooth(Draft& draft, Elem elem) {
  for (size_t i = 0; i < draft.operands.size(); ++i) {
    Draft::Operand& operand = draft.operands[i];
    if (!isFloat(operand.elem) || isStorageOnly(operand.elem)) continue;
    operand.elem = elem;
    operand.constant = false;
    if (const auto limits = smoothLimits(draft.kind, i)) {
      operand.lo = limits->lo;
      operand.hi = limits->hi;
    }
  }
  if (const auto to = draft.attrs.find("to"); to != draft.attrs.end()) to->second = elem;
}

double numberOf(const Tensor& tensor, int64_t i) {
  return tensor.elem == Elem::f64_ ? tensor.as<double>()[i]
                                   : static_cast<double>(tensor.as<float>()[i]);
}

/// Whether there is something to differentiate, of finite numbers.
bool isUseful(const Recipe& recipe, Elem elem) {
  const auto graph = recipe.build();
  const std::vector<Tensor> inputs = recipe.inputs();
  const auto outputs = graph ? reference::run(*graph, inputs) : graph.status();
  if (!outputs) return false;
  const auto hasNumbers = [&](const Tensor& tensor) {
    return tensor.elem == elem && tensor.count() > 0;
  };
  for (const Tensor& output : *outputs)
    for (int64_t i = 0; output.elem == elem && i < output.count(); ++i)
      if (!std::isfinite(numberOf(output, i))) return false;
  return std::ranges::any_of(*outputs, hasNumbers) && std::ranges::any_of(inputs, hasNumbers);
}

} // namespace

std::optional<Recipe> smoothNode(const graph::OpInfo& info, Elem elem, Random& random) {
  CDL_CHECK(elem == Elem::f32_ || elem == Elem::f64_, "numbers of {}", elemName(elem));
  const std::vector<Elem> elems = firstElems(info);
  const Elem first = std::ranges::count(elems, elem) ? elem : random.of(elems);
  std::optional<Draft> draft = draftOf(info, first, nullptr, random);
  if (!draft) return std::nullopt;
  makeSmooth(*draft, elem);
  auto recipe = recipeOf(*draft, Data::calm, random);
  if (!recipe || !isUseful(*recipe, elem)) return std::nullopt;
  return std::move(*recipe);
}

Recipe inDoubles(const Recipe& recipe, Elem elem) {
  Recipe made = recipe;
  for (Recipe::Leaf& leaf : made.leaves) {
    if (leaf.tensor.elem != elem) continue;
    std::vector<double> values;
    for (int64_t i = 0; i < leaf.tensor.count(); ++i) values.push_back(numberOf(leaf.tensor, i));
    leaf.tensor = Tensor::of(Elem::f64_, leaf.tensor.dims, values);
  }
  for (Recipe::Step& step : made.steps)
    if (const auto to = step.attrs.find("to"); to != step.attrs.end())
      if (std::get<Elem>(to->second) == elem) to->second = Elem::f64_;
  return made;
}

bool refusesSomeForms(OpKind kind) { return kind == OpKind::Put || kind == OpKind::Place; }

} // namespace candela::conformance::random
