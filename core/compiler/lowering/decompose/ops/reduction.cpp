#include <algorithm>
#include <cmath>

#include "core/compiler/lowering/decompose/shared.h"

namespace candela::lowering::decompose {

namespace {

bool isHalf(Elem elem) { return elem == Elem::f16_ || elem == Elem::bf16_; }

struct Run {
  size_t first, end;
};
// Neighbouring reduced dims; dims of extent 1 join whatever stands beside them.
std::vector<Run> runsOf(const Shape& dims, const std::vector<bool>& reduced) {
  std::vector<Run> runs;
  bool open = false;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (reduced[d]) {
      if (open)
        runs.back().end = d + 1;
      else
        runs.push_back({d, d + 1});
      open = true;
    } else if (dims[d] != 1) {
      open = false;
    }
  }
  return runs;
}

int64_t productOf(const Shape& dims, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t d = begin; d < end; ++d) product *= dims[d];
  return product;
}

// In which the elements of a mean are added.
Elem meanSumElem(Lowering& l, Elem elem) {
  if (isFloat(elem)) return l.wide(elem);
  return elemBits(elem) < 32 ? Elem::i32_ : elem;
}

} // namespace

Value reduceDims(Lowering& l, Value x, const std::vector<bool>& reduced, const char* fn) {
  Shape dims = x->type.shape(), kept = dims;
  for (size_t d = 0; d < dims.size(); ++d)
    if (reduced[d]) kept[d] = 1;
  std::vector<Run> runs = runsOf(dims, reduced);
  if (runs.empty()) return x;
  // A sum of halves is rounded once, so all of it is one REDUCE and the reduced dims go last. Other
  // types take one REDUCE per run, which moves nothing.
  if (runs.size() > 1 && isHalf(x->type.elem)) {
    std::vector<int64_t> perm;
    int64_t outer = 1, inner = 1;
    for (const bool last : {false, true})
      for (size_t d = 0; d < dims.size(); ++d)
        if (reduced[d] == last) {
          perm.push_back(static_cast<int64_t>(d));
          (last ? inner : outer) *= dims[d];
        }
    return l.reshape(l.reduce3(l.reshape(l.transpose(x, perm), {outer, inner, 1}), fn), kept);
  }
  for (size_t i = runs.size(); i-- > 0;) {
    const int64_t outer = productOf(dims, 0, runs[i].first),
                  middle = productOf(dims, runs[i].first, runs[i].end),
                  inner = productOf(dims, runs[i].end, dims.size());
    x = l.reduce3(l.reshape(x, {outer, middle, inner}), fn);
    for (size_t d = runs[i].first; d < runs[i].end; ++d) dims[d] = 1;
  }
  return l.reshape(x, kept);
}

Value meanDims(Lowering& l, Value x, const std::vector<bool>& reduced) {
  const Elem elem = x->type.elem;
  const Shape dims = x->type.shape();
  double count = 1;
  for (size_t d = 0; d < dims.size(); ++d)
    if (reduced[d]) count *= static_cast<double>(dims[d]);
  const Elem sumElem = meanSumElem(l, elem);
  if (sumElem != elem || elem != Elem::f16_ || count < 16) {
    Value sum = reduceDims(l, l.cast(x, sumElem), reduced, "sum");
    return l.cast(l.div(sum, l.scalar(sumElem, count)), elem);
  }
  // f16 alone ends at 65504: half of the divisor goes in before the sum, as a power of two that
  // rounds nothing.
  const double before = std::exp2(std::ceil(std::log2(count) / 2));
  Value sum = reduceDims(l, l.mul(x, l.scalar(elem, 1 / before)), reduced, "sum");
  return l.div(sum, l.scalar(elem, count / before));
}

namespace {

std::vector<bool> reducedOf(const Node& node) {
  const int rank = node.operand(0)->type.rank();
  std::vector<bool> reduced(static_cast<size_t>(rank), false);
  for (int64_t axis : node.intsAttr("axes"))
    reduced[static_cast<size_t>(graph::wrapAxis(axis, rank))] = true;
  return reduced;
}

Values reduction(Lowering& l, const Node& node, const char* fn) {
  return {
      l.reshape(reduceDims(l, node.operand(0), reducedOf(node), fn), node.result()->type.shape())};
}

} // namespace

Result<Values> lowerReduceSum(Lowering& l, const Node& node) { return reduction(l, node, "sum"); }
Result<Values> lowerReduceMax(Lowering& l, const Node& node) { return reduction(l, node, "max"); }
Result<Values> lowerReduceMin(Lowering& l, const Node& node) { return reduction(l, node, "min"); }
Result<Values> lowerReduceProd(Lowering& l, const Node& node) { return reduction(l, node, "prod"); }

Result<Values> lowerReduceMean(Lowering& l, const Node& node) {
  const std::vector<bool> reduced = reducedOf(node);
  if (std::find(reduced.begin(), reduced.end(), true) == reduced.end())
    return Values{l.reshape(node.operand(0), node.result()->type.shape())};
  return Values{l.reshape(meanDims(l, node.operand(0), reduced), node.result()->type.shape())};
}

} // namespace candela::lowering::decompose
