#include "conformance/random/reduce.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/reference/reference.h"
#include "core/support/float_bits.h"
#include "core/support/out_of_memory.h"

namespace candela::conformance::random {
namespace {

class Reducer {
public:
  Reducer(Recipe recipe, const std::function<bool(const Recipe&)>& fails, int limit)
      : best_(std::move(recipe)), fails_(fails), left_(limit) {}

  Recipe run() {
    do {
      progress_ = false;
      oneOutput();
      cutNodes();
      dropParts();
      shrinkShapes();
      simplifyValues();
    } while (progress_ && left_ > 0);
    return std::move(best_);
  }

private:
  bool take(Recipe candidate) {
    candidate.prune();
    if (candidate.steps.empty() || left_ <= 0) return false;
    --left_;
    if (!candidate.build() || !fails_(candidate)) return false;
    best_ = std::move(candidate);
    return progress_ = true;
  }

  /// The earliest value that is wrong.
  void oneOutput() {
    if (best_.steps.size() == 1 && best_.outputs.size() == 1) return;
    std::vector<int> ids;
    for (const Recipe::Step& step : best_.steps)
      ids.insert(ids.end(), step.results.begin(), step.results.end());
    for (const int id : ids) {
      if (best_.outputs == std::vector<int>{id}) return;
      Recipe candidate = best_;
      candidate.outputs = {id};
      if (take(std::move(candidate))) return;
    }
  }

  /// Results as inputs, with the oracle's values; or one of the operands in place of the result.
  void cutNodes() {
    std::map<int, Tensor> values = oracle();
    for (size_t i = best_.steps.size(); i-- > 0;) {
      if (i >= best_.steps.size()) continue;
      const Recipe::Step step = best_.steps[i];
      Recipe candidate = best_;
      candidate.steps.erase(candidate.steps.begin() + static_cast<std::ptrdiff_t>(i));
      const bool isOutput = std::ranges::any_of(step.results, [&](int id) {
        return std::ranges::find(best_.outputs, id) != best_.outputs.end();
      });
      if (!isOutput && values.count(step.results[0])) {
        Recipe cut = candidate;
        for (const int id : step.results) cut.leaves.push_back({id, values[id], false});
        if (take(std::move(cut))) continue;
      }
      for (const int operand : step.operands) {
        Recipe bypass = candidate;
        for (Recipe::Step& other : bypass.steps)
          std::ranges::replace(other.operands, step.results[0], operand);
        if (operand != Recipe::kAbsent && !isOutput && take(std::move(bypass))) break;
      }
    }
  }
  std::map<int, Tensor> oracle() const {
    Recipe all = best_;
    all.outputs.clear();
    for (const Recipe::Step& step : all.steps)
      all.outputs.insert(all.outputs.end(), step.results.begin(), step.results.end());
    std::map<int, Tensor> values;
    const auto graph = all.build();
    if (!graph) return values;
    const auto tensors = reference::run(*graph, all.inputs());
    for (size_t i = 0; tensors && i < tensors->size(); ++i) values[all.outputs[i]] = (*tensors)[i];
    return values;
  }

  /// Optional operands, attributes with a default, results that nobody needs.
  void dropParts() {
    for (size_t i = 0; i < best_.steps.size(); ++i) {
      for (size_t o = 1; o < best_.steps[i].operands.size(); ++o) {
        Recipe candidate = best_;
        if (candidate.steps[i].operands[o] == Recipe::kAbsent) continue;
        candidate.steps[i].operands[o] = Recipe::kAbsent;
        take(std::move(candidate));
      }
      if (best_.steps[i].operands.size() > 1) {
        Recipe candidate = best_;
        candidate.steps[i].operands.pop_back();
        take(std::move(candidate));
      }
      const graph::Attrs attrs = best_.steps[i].attrs;
      for (const auto& [name, attr] : attrs) {
        Recipe candidate = best_;
        candidate.steps[i].attrs.erase(name);
        take(std::move(candidate));
      }
      while (best_.steps[i].results.size() > 1 &&
             std::ranges::find(best_.outputs, best_.steps[i].results.back()) ==
                 best_.outputs.end()) {
        Recipe candidate = best_;
        candidate.steps[i].results.pop_back();
        if (!take(std::move(candidate))) break;
      }
    }
  }

  static Tensor cut(const Tensor& tensor, const Shape& dims) {
    Tensor out = orThrow(Tensor::zeros(tensor.elem, dims));
    const std::vector<int64_t> strides = denseStrides(tensor.dims);
    for (int64_t i = 0; i < out.count(); ++i) {
      int64_t rest = i, at = 0;
      for (size_t d = dims.size(); d-- > 0;) {
        at += rest % dims[d] * strides[d];
        rest /= dims[d];
      }
      storeElement(out.elem, out.bytes.mutableData(), i,
                   loadElement(tensor.elem, tensor.bytes.data(), at));
    }
    return out;
  }

  /// One dim of one leaf, or all dims and attributes of the same extent.
  void shrinkShapes() {
    std::set<int64_t> extents;
    for (const Recipe::Leaf& leaf : best_.leaves)
      extents.insert(leaf.tensor.dims.begin(), leaf.tensor.dims.end());
    for (auto extent = extents.rbegin(); extent != extents.rend(); ++extent)
      for (const int64_t smaller : {int64_t(1), *extent / 2, *extent - 1}) {
        if (smaller < 1 || smaller >= *extent) continue;
        Recipe candidate = best_;
        for (Recipe::Leaf& leaf : candidate.leaves) {
          Shape dims = leaf.tensor.dims;
          std::ranges::replace(dims, *extent, smaller);
          leaf.tensor = cut(leaf.tensor, dims);
        }
        for (Recipe::Step& step : candidate.steps)
          for (auto& [name, attr] : step.attrs)
            if (auto* list = std::get_if<std::vector<int64_t>>(&attr))
              std::ranges::replace(*list, *extent, smaller);
        if (take(std::move(candidate))) break;
      }
    for (size_t i = 0; i < best_.leaves.size(); ++i)
      for (size_t d = 0; d < best_.leaves[i].tensor.dims.size(); ++d)
        for (const int64_t smaller :
             {int64_t(1), best_.leaves[i].tensor.dims[d] / 2, best_.leaves[i].tensor.dims[d] - 1}) {
          Shape dims = best_.leaves[i].tensor.dims;
          if (smaller < 1 || smaller >= dims[d]) continue;
          dims[d] = smaller;
          Recipe candidate = best_;
          candidate.leaves[i].tensor = cut(candidate.leaves[i].tensor, dims);
          if (take(std::move(candidate))) break;
        }
  }

  /// Zeros, ones, whole numbers; then element by element.
  void simplifyValues() {
    for (size_t i = 0; i < best_.leaves.size(); ++i) {
      const Tensor tensor = best_.leaves[i].tensor;
      const uint64_t one = isFloat(tensor.elem) ? fromReal(tensor.elem, 1) : 1;
      const auto rounded = [&](uint64_t bits) {
        return isFloat(tensor.elem) ? fromReal(tensor.elem, std::round(toReal(tensor.elem, bits)))
                                    : bits;
      };
      const auto change = [&](auto&& make) {
        Recipe candidate = best_;
        Tensor& changed = candidate.leaves[i].tensor;
        changed = orThrow(Tensor::zeros(tensor.elem, tensor.dims));
        bool differs = false;
        for (int64_t e = 0; e < changed.count(); ++e) {
          const uint64_t old = loadElement(tensor.elem, best_.leaves[i].tensor.bytes.data(), e),
                         bits = make(e, old);
          differs |= bits != old;
          storeElement(tensor.elem, changed.bytes.mutableData(), e, bits);
        }
        return differs && take(std::move(candidate));
      };
      if (change([](int64_t, uint64_t) { return uint64_t(0); })) continue;
      if (change([&](int64_t, uint64_t old) { return old ? one : 0; })) continue;
      change([&](int64_t, uint64_t old) { return rounded(old); });
      for (int64_t e = 0; e < std::min<int64_t>(tensor.count(), 64); ++e)
        change([&](int64_t at, uint64_t old) { return at == e ? 0 : old; });
    }
  }

  Recipe best_;
  const std::function<bool(const Recipe&)>& fails_;
  int left_;
  bool progress_ = false;
};

} // namespace

Recipe reduce(Recipe recipe, const std::function<bool(const Recipe&)>& fails, int limit) {
  return Reducer(std::move(recipe), fails, limit).run();
}

} // namespace candela::conformance::random
